package trace

import (
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/train/sample"
)

// table is the rows of one type, or of edges, that caches can hold: batches read it, and it has
// features, or is the only type.
type table struct {
	number int    // among the inputs of a batch
	name   string // empty where it is the only one
	nodes  int
	asked  []Size
	sizes  []uint32 // of asked, ascending
}

// openTables finds the tables that batches read, with the sizes of their caches, and reports all
// types.
func (r *run) openTables() error {
	types, rows, largest := slices.Concat(r.data.Types, r.data.EdgeTables), 0, 0
	read := slices.Concat(r.reach.Types[0], r.data.DrawnTables(r.reach.Drawn()))
	several := len(types) > 1
	for i := range types {
		t, of := &types[i], TypeOf{Type: types[i].Name, Nodes: types[i].Nodes, Edges: i >= len(r.data.Types)}
		switch {
		case t.Features != nil:
			of.RowBytes = t.Features.RowBytes()
		case t.Embed > 0:
			of.RowBytes = 3 * 4 * t.Embed
		}
		if !several || read[i] && (t.Features != nil || t.Embed > 0) && t.Nodes > 0 {
			table := table{number: i, nodes: t.Nodes}
			for _, c := range r.Caches {
				n := c.of(t.Nodes)
				table.asked = append(table.asked, Size{c.String(), int64(n), float64(n) / float64(t.Nodes)})
				table.sizes = append(table.sizes, n)
			}
			slices.Sort(table.sizes)
			table.sizes = slices.Compact(table.sizes)
			if several {
				table.name, of.Caches = t.Name, table.asked
			}
			r.tables = append(r.tables, table)
			rows, largest = rows+t.Nodes, max(largest, t.Nodes)
		}
		if several {
			r.report.Types = append(r.report.Types, of)
		}
		if r.report.RowBytes += of.RowBytes; i < len(r.data.Types) {
			r.report.Nodes += of.Nodes
		}
	}
	if several {
		r.report.Target = types[r.data.Target].Name
	}
	if len(r.tables) == 0 {
		return nil
	}
	for i, c := range r.Caches {
		switch {
		case c.Rows > int64(largest) && several:
			return fmt.Errorf("{cache} %v: the largest table that batches read has %d rows", c, largest)
		case c.Rows > int64(largest):
			return fmt.Errorf("{cache} %v: the dataset has %d rows", c, largest)
		}
		all := Size{Asked: c.String()}
		for _, t := range r.tables {
			all.Rows += t.asked[i].Rows
		}
		all.Share = float64(all.Rows) / float64(rows)
		r.report.Caches = append(r.report.Caches, all)
	}
	return nil
}

// warmup returns the number of batches before the counted ones, by the rule at Options.Steps. fresh
// has the number of first requests of each batch.
func (t *table) warmup(fresh []int64, kappa int) int {
	warm, held := 0, int64(0)
	for warm < len(fresh)/2 && len(t.sizes) > 0 && held < int64(t.sizes[len(t.sizes)-1]) {
		held += fresh[warm]
		warm++
	}
	if left := len(fresh) - warm; kappa != sample.Forever && left >= kappa {
		return len(fresh) - left/kappa*kappa
	}
	return warm
}
