package build

import (
	"github.com/gnnstore/gnnstore/store"

	"github.com/gnnstore/gnnstore/ingest"
)

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
		if len(of.Columns) == 0 {
			of.Columns = []store.Encoding{unnamed("", t.Dim)}
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
		if i < len(said.Relations) {
			for k, from := range said.Relations[i] {
				of.Columns = append(of.Columns, store.ColumnEncoding{Name: r.Columns[k].Name, From: from})
			}
		}
		e.Relations = append(e.Relations, of)
	}
	for i, from := range said.Labels {
		if l := b.schema.Labels[i]; from != "" {
			e.Labels = append(e.Labels, store.LabelEncoding{Name: l.Name, NodeType: l.NodeType, From: from})
		}
	}
	return e
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
