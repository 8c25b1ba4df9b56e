package table

import (
	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// Describe returns the names of the columns of all tables, labels and relations.
func (s *Source) Describe() (d ingest.Description) {
	for _, t := range s.tables {
		if t.nodes != nil {
			d.Tables = append(d.Tables, t.nodes.encodings(&t.nodes.tables[t.index]))
		} else {
			d.Tables = append(d.Tables, t.edges.encodings(&t.edges.tables[t.index]))
		}
	}
	for _, n := range s.labels {
		from := n.label
		if n.value.set() {
			from = n.value
		}
		d.Labels = append(d.Labels, n.title(from))
	}
	for _, r := range s.relations {
		var from []string
		for _, c := range r.columns {
			from = append(from, r.title(c.column))
		}
		d.Relations = append(d.Relations, from)
		name := ""
		if r.by.set() {
			name = r.edges.relations.Names[r.kind]
		}
		d.Names = append(d.Names, name)
	}
	return d
}

// encodings describes the columns of a table. Call it once the entry is settled.
func (e *entry) encodings(m *matrix) (all []store.Encoding) {
	for _, f := range m.features {
		c := store.Encoding{Name: e.title(f.column), Width: int64(f.width()), Unit: f.unit}
		switch {
		case f.hashed > 0:
			c.Kind, c.Encoder = store.CategoryColumn, store.HashedCategory
		case f.dates != nil:
			c.Kind, c.Parts = store.DateColumn, f.dates.parts
			if f.dates.hasAge() {
				text, _ := f.dates.reference.AppendTo(nil) // its year was checked
				c.Reference = string(text)
			}
		case f.category != nil:
			c.Kind, c.Encoder, c.Categories = store.CategoryColumn, store.OneHot, f.category.Names
			if f.index {
				c.Encoder = store.CategoryIndex
			}
			if f.bucket {
				c.Unknown = store.UnknownBucket
			}
		case f.dim == 1:
			c.Kind = store.NumberColumn
		default:
			c.Kind = store.VectorColumn
		}
		if f.scaler != nil {
			c.Scale, c.Scalings = f.scaler.text, f.scaler.learnt
		}
		switch f.missing {
		case zero:
			c.Missing = store.MissingZero
		case indicate:
			c.Missing = store.MissingIndicator
		case mean:
			c.Missing, c.Means, c.Filled = store.MissingMean, f.means, f.absent
		}
		all = append(all, c)
	}
	return all
}
