package data

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// useEdgeInputs gives relations the columns of their edges that networks read: those given under its name or, which is the more
// exact, its key.
func (d *Data) useEdgeInputs(inputs map[string][]string) error {
	keys, used := []string{}, map[string]bool{}
	for i := range d.Relations {
		r := &d.Relations[i]
		keys = append(keys, r.Relation.Key())
		for _, name := range []string{r.Relation.Name, r.Relation.Key()} {
			columns, ok := inputs[name]
			if !ok {
				continue
			}
			used[name], r.Inputs = true, nil
			for _, column := range columns {
				c := r.Column(column)
				if c == nil || column == store.EdgeID {
					return d.noColumn(name, column, r)
				}
				r.Inputs = append(r.Inputs, c)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		if !used[name] {
			return d.fail("{edge_input} %s: no relation of that name; there are %s", name, strings.Join(keys, ", "))
		}
	}
	return nil
}

// noColumn is the error of a column that edges of r do not have, or that is only their number.
func (d *Data) noColumn(name, column string, r *Relation) error {
	there := r.columnNames()
	switch {
	case len(there) == 0:
		return d.fail("{edge_input} %s=%s: the edges of relation %s have no columns; ingest them with their values, or leave it out",
			name, column, r.Relation.Key())
	case column == store.EdgeID:
		return d.fail("{edge_input} %s=%s: that is the edges' number as they were read; relation %s has the columns %s",
			name, column, r.Relation.Key(), strings.Join(there, ", "))
	}
	return d.fail("{edge_input} %s=%s: the edges of relation %s have no column %s; there are %s",
		name, column, r.Relation.Key(), column, strings.Join(there, ", "))
}

// CheckEdgeInputs refuses columns of relations of which none is drawn from.
func (d *Data) CheckEdgeInputs(inputs map[string][]string, drawn []bool) error {
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		reached := false
		for i, r := range d.Relations {
			reached = reached || drawn[i] && (name == r.Relation.Name || name == r.Relation.Key())
		}
		if !reached {
			return d.fail("{edge_input} %s: no batch draws from this relation: seeds of type %s do not reach it with these {layers} and "+
				"{fanout}; leave it out", name, d.Types[d.Target].Name)
		}
	}
	return nil
}

// reads tells whether networks read a column.
func (r *Relation) reads(column string) bool {
	return slices.ContainsFunc(r.Inputs, func(c *store.EdgeColumn) bool { return c.Column.Name == column })
}

// Values are what edges of the relation bring along, read through their map; nil where they bring nothing.
func (r Relation) Values() sample.Values {
	if len(r.Inputs) == 0 {
		return nil
	}
	return mapped(r.Inputs)
}

// mapped is sample.Values of columns that are all at hand.
type mapped []*store.EdgeColumn

func (m mapped) Columns() int { return len(m) }

func (m mapped) TakeValues(dst []float32, v uint32, places []uint32) {
	for c, column := range m {
		b := column.Bytes(v)
		for i, p := range places {
			dst[i*len(m)+c] = column.Float(b, int(p))
		}
	}
}

func (m mapped) ReadValues(context.Context, int, []uint32, func(i, from int, part []float32) error) error {
	panic("data: values are read that are at hand")
}
