package build

import (
	"slices"

	"github.com/gnnstore/gnnstore/store"

	"github.com/gnnstore/gnnstore/ingest"
)

// madeOfEdges is the TableEncoding.Made of a table of aggregates alone.
const madeOfEdges = "counts"

// encodings returns the encodings of the dataset. Call it once the report is complete.
func (b *builder) encodings() *store.Encodings {
	said := b.described()
	e := &store.Encodings{Tables: []store.TableEncoding{}, Relations: []store.RelationEncoding{}}
	for _, t := range b.report.Tables {
		of := store.TableEncoding{Name: t.Name, NodeType: t.NodeType, Relation: t.Relation, Stream: t.Stream}
		switch {
		case t.Made && t.Stream != "":
			of.Made, of.Seed = b.EdgeFeatures, b.Seed
		case t.Made:
			of.Made = b.Features
			if b.features.kind == "random" || b.features.kind == "fastrp" {
				of.Seed = b.Seed
			}
		case t.NodeType != "" && b.Normalize != NormalizeNone:
			of.Normalize = string(b.Normalize)
		}
		if !t.Made {
			of.Columns = columnsOf(&said, b.schema, t)
		}
		if own := t.Dim - len(t.Aggregates); len(of.Columns) == 0 && own > 0 {
			of.Columns = []store.Encoding{unnamed("", own)}
		} else if own == 0 {
			of.Made = madeOfEdges
		}
		if len(t.Aggregates) > 0 {
			of.Columns = append(slices.Clone(of.Columns), b.aggregateColumns(t.NodeType)...)
		}
		e.Tables = append(e.Tables, of)
	}
	for i, r := range b.relations() {
		of := store.RelationEncoding{Relation: r.Key(), SelfLoops: string(SelfLoopsKeep), Duplicates: string(b.Duplicates)}
		if of.Undirected = b.form(i).reverse; of.Undirected {
			of.Duplicates = string(b.rule())
		}
		if r.Src == r.Dst {
			of.SelfLoops = string(b.SelfLoops)
		}
		if k := b.madeFrom(i); k != i {
			of.ReverseOf = b.schema.Relations[k].Key()
		}
		if name := nth(said.Names, i); name != r.Name {
			of.From = name
		}
		from := nth(said.Relations, b.madeFrom(i))
		for k, c := range r.Columns {
			of.Columns = append(of.Columns, store.ColumnEncoding{Name: c.Name, From: nth(from, k), Elem: c.Elem})
		}
		e.Relations = append(e.Relations, of)
	}
	for _, l := range b.report.Labels {
		from := ""
		for i, of := range b.schema.Labels {
			if of.Name == l.Name && of.NodeType == l.NodeType {
				from = nth(said.Labels, i)
			}
		}
		of := store.Label{Name: l.Name, NodeType: l.NodeType, Classes: int64(l.Classes), ClassNames: l.ClassNames}
		of.Multi, of.Numbers = l.Multi, l.Numbers
		e.Labels = append(e.Labels, of.EncodingOf(from))
	}
	for _, s := range b.report.Streams {
		of := store.Stream{Name: s.Name, Src: s.Src, Dst: s.Dst, TimeScale: s.TimeScale}
		of.Classes, of.ClassNames = int64(s.Classes), s.ClassNames
		e.Streams = append(e.Streams, of.EncodingOf())
	}
	return e
}

// nth returns the i-th of list, which may stop early.
func nth[T any](list []T, i int) (none T) {
	if i < len(list) {
		return list[i]
	}
	return none
}

// described returns the source's names of its columns.
func (b *builder) described() ingest.Description {
	if b.extras.Describe != nil {
		return b.extras.Describe()
	}
	return ingest.Description{}
}

// columnsOf returns the columns of a table that was read, or nil if the source describes none.
func columnsOf(d *ingest.Description, s *ingest.Schema, t TableReport) []store.Encoding {
	for i, of := range s.Tables[:min(len(d.Tables), len(s.Tables))] {
		owner := of.NodeType
		for _, r := range s.Relations {
			if r.Key() == of.Relation && (r.Stream == nil || r.Name != t.Stream) {
				owner = of.Relation
			}
		}
		if of.Name == t.Name && owner == t.NodeType+t.Relation {
			return d.Tables[i]
		}
	}
	return nil
}

// unnamed describes dim columns without names. from is the array or file that they come from.
func unnamed(from string, dim int) store.Encoding {
	e := store.Encoding{From: from, Kind: store.VectorColumn, Width: int64(dim)}
	if dim == 1 {
		e.Kind = store.NumberColumn
	}
	return e
}

// Unnamed describes a table of dim columns without names. from names their array or file for
// messages.
func Unnamed(from string, dim int) []store.Encoding { return []store.Encoding{unnamed(from, dim)} }
