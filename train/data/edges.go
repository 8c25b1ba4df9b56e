package data

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// useEdgeInputs sets the columns of edges, or the table, that networks read of each relation.
// Inputs under its key go before inputs under its name.
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
			used[name], r.Inputs, r.RowIDs = true, nil, nil
			if is, err := d.useEdgeTable(name, columns, r); is || err != nil {
				if err != nil {
					return err
				}
				continue
			}
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
			return d.fail("{edge_input} %s: no relation of that name; there are %s", name, some(keys))
		}
	}
	return nil
}

// useEdgeTable gives r the rows of a table, if columns name a table. A column of the same name
// comes first.
func (d *Data) useEdgeTable(name string, columns []string, r *Relation) (is bool, err error) {
	at := slices.IndexFunc(columns, func(c string) bool {
		return (c == Table || strings.HasPrefix(c, Table+":")) && r.Column(c) == nil
	})
	if at < 0 {
		return false, nil
	}
	_, wanted, named := strings.Cut(columns[at], ":")
	switch {
	case len(columns) > 1:
		return false, d.fail("{edge_input} %s=%s: a table comes alone; give %s=%s, or columns", name, strings.Join(columns, ","), name, columns[at])
	case named && wanted == "":
		return false, d.fail("{edge_input} %s=%s: there are table and table:NAME", name, columns[at])
	}
	table, there := d.edgeTable(r, wanted)
	switch {
	case table == nil && len(there) > 0:
		return false, d.fail("{edge_input} %s=%s: the edges of relation %s have no such table; there is %s", name, columns[at], r.Relation.Key(), some(there))
	case table == nil:
		return false, d.fail("{edge_input} %s=%s: the edges of relation %s have no table%s; ingest them with their features, or leave it out", name, columns[at],
			r.Relation.Key(), orColumns(r.columnNames()))
	case d.rowsOf(table) > math.MaxUint32:
		return false, d.fail("{edge_input} %s=%s: table %s of relation %s has %d rows, and at most %d are read", name, columns[at], table.Table.Name,
			table.Table.Relation, d.rowsOf(table), uint32(math.MaxUint32))
	case d.rowsOf(table) == 0 && r.Edges() > 0:
		return false, d.corrupt("table %s of relation %s has no rows, and relation %s has %d edges", table.Table.Name, table.Table.Relation, r.Relation.Key(), r.Edges())
	}
	r.RowIDs = r.Column(store.EdgeID)
	for r.Table = range d.EdgeTables { // its reverse may read it as well
		if d.EdgeTables[r.Table].Features.Table == table.Table {
			return true, nil
		}
	}
	r.Table = len(d.EdgeTables)
	d.EdgeTables = append(d.EdgeTables, Type{Name: table.Table.Relation + "/" + table.Table.Name, Nodes: int(d.rowsOf(table)), Features: table, number: -1})
	return true, nil
}

// rowsOf returns the rows of a table, of a part the whole's.
func (d *Data) rowsOf(f *store.Features) int64 {
	m := d.Set.Manifest()
	for i := range m.Tables {
		if &m.Tables[i] == f.Table {
			return m.RowsOf(i)
		}
	}
	return int64(f.Rows())
}

// edgeTable returns the table of r's edges of that name, or the first where the name is empty. It
// is a table of r, or else of the relation that r reverses. there has the names of all these
// tables.
func (d *Data) edgeTable(r *Relation, name string) (table *store.Features, there []string) {
	for _, of := range []string{r.Relation.Key(), r.Relation.ReverseOf} {
		for i, t := range d.Set.Manifest().Tables {
			if t.Relation != of || of == "" || r.Column(store.EdgeID) == nil {
				continue
			}
			there = append(there, t.Name)
			if table == nil && (name == "" || t.Name == name) {
				table = d.Set.Features(i)
			}
		}
		if len(there) > 0 {
			break
		}
	}
	return table, there
}

// orColumns ends an error about a missing table with the columns that there are.
func orColumns(there []string) string {
	if len(there) == 0 {
		return ""
	}
	return "; there are the columns " + some(there)
}

// noColumn returns the error for a column that edges of r do not have, or that is only their
// number.
func (d *Data) noColumn(name, column string, r *Relation) error {
	there := r.columnNames()
	switch {
	case len(there) == 0:
		return d.fail("{edge_input} %s=%s: the edges of relation %s have no columns; ingest them with their values, or leave it out",
			name, column, r.Relation.Key())
	case column == store.EdgeID:
		return d.fail("{edge_input} %s=%s: that is the edges' number as they were read; relation %s has the columns %s",
			name, column, r.Relation.Key(), some(there))
	}
	return d.fail("{edge_input} %s=%s: the edges of relation %s have no column %s; there are %s",
		name, column, r.Relation.Key(), column, some(there))
}

// CheckEdgeInputs refuses inputs of a relation that no batch draws from.
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

// reads reports whether networks read a column.
func (r *Relation) reads(column string) bool {
	return slices.ContainsFunc(r.Inputs, func(c *store.EdgeColumn) bool { return c.Column.Name == column })
}

// Brought returns the columns of the edges that batches bring along: the columns that networks
// read, and RowIDs.
func (r *Relation) Brought() []*store.EdgeColumn {
	if r.RowIDs == nil {
		return r.Inputs
	}
	return append(r.Inputs[:len(r.Inputs):len(r.Inputs)], r.RowIDs)
}

// EdgeDim returns the number of values that networks read of each edge of relation r.
func (d *Data) EdgeDim(r int) int {
	if rel := &d.Relations[r]; rel.RowIDs == nil {
		return len(rel.Inputs)
	}
	return d.EdgeTables[d.Relations[r].Table].Dim()
}

// DrawnTables marks the EdgeTables that batches read when they draw from these relations.
func (d *Data) DrawnTables(drawn []bool) []bool {
	read := make([]bool, len(d.EdgeTables))
	for i, r := range d.Relations {
		if drawn[i] && r.RowIDs != nil {
			read[r.Table] = true
		}
	}
	return read
}

// BringRows makes batches of s bring along the rows of edges in EdgeTables. has returns where the
// row numbers of a relation are read; it is called for relations with RowIDs.
func (d *Data) BringRows(s *sample.Sampler, has func(r int) sample.Rows) {
	if len(d.EdgeTables) == 0 {
		return
	}
	rows, of, table := make([]int, len(d.EdgeTables)), make([]sample.Rows, len(d.Relations)), make([]int, len(d.Relations))
	for k, t := range d.EdgeTables {
		rows[k] = t.Nodes
	}
	for i, r := range d.Relations {
		if r.RowIDs != nil {
			of[i], table[i] = has(i), r.Table
		}
	}
	s.BringRows(of, table, rows)
}

// Rows returns the numbers of the rows of the relation's edges, read through their map.
func (r Relation) Rows() sample.Rows { return mappedRows{r.RowIDs, r.own} }

// mappedRows is sample.Rows of a column that is at hand.
type mappedRows struct {
	*store.EdgeColumn
	own store.Own // of the nodes whose edges these are
}

func (m mappedRows) TakeRows(dst []uint32, v uint32, places []uint32) {
	b := m.Bytes(m.own.MustRow(v))
	for i, p := range places {
		dst[i] = m.Row(b, int(p))
	}
}

func (m mappedRows) ReadRows(context.Context, []uint32, func(i, from int, part []uint32) error) error {
	panic("data: numbers of rows are read that are at hand")
}

// Values returns the values that edges of the relation bring along, read through their map; nil
// where they bring none.
func (r Relation) Values() sample.Values {
	if len(r.Inputs) == 0 {
		return nil
	}
	return mapped{r.Inputs, r.own}
}

// mapped is sample.Values of columns that are all at hand.
type mapped struct {
	columns []*store.EdgeColumn
	own     store.Own // of the nodes whose edges these are
}

func (m mapped) Columns() int { return len(m.columns) }

func (m mapped) TakeValues(dst []float32, v uint32, places []uint32) {
	for c, column := range m.columns {
		b := column.Bytes(m.own.MustRow(v))
		for i, p := range places {
			dst[i*len(m.columns)+c] = column.Float(b, int(p))
		}
	}
}

func (m mapped) ReadValues(context.Context, int, []uint32, func(i, from int, part []float32) error) error {
	panic("data: values are read that are at hand")
}
