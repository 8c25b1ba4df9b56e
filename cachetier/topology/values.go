package topology

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/store"
)

// valueColumn returns file number file of the reader as a column of values. It has no check: Open
// and Resize do not look at values.
func valueColumn(c *store.EdgeColumn, file int) column[float32] {
	v := column[float32]{file: file, size: c.Column.Elem.Size(), of: c.Float}
	v.lend = func([]byte) ([]float32, bool) { return nil, false }
	if c.Column.Elem == store.F32 {
		v.lend = store.Float32s
	}
	return v
}

// Columns returns the number of values of an edge, which is the length of Options.Values.
func (t *Tier) Columns() int { return len(t.valuesOf) }

// TakeValues copies to dst the values of v's edges at places of its list: edge after edge, each in
// the order of columns. dst has room for them. It panics if v is not below Resident.
func (t *Tier) TakeValues(dst []float32, v uint32, places []uint32) {
	if v >= t.resident {
		panic(fmt.Sprintf("topology: TakeValues(%d), and %d lists are resident", v, t.resident))
	}
	lo, _ := t.offsets.span(v)
	columns := len(t.valuesOf)
	for c := range t.valuesOf {
		values, of := t.values[c], t.valuesOf[c].of
		for i, p := range places {
			dst[i*columns+c] = of(values, int(lo)+int(p))
		}
	}
}

// ReadValues is Read for a column of values. It takes the same nodes, and serves parts in the same
// way, but shorter ones if values are wide. The bytes count as bytes of cold lists; the lists
// themselves are counted by Read alone.
func (t *Tier) ReadValues(ctx context.Context, column int, nodes []uint32, serve func(i, from int, part []float32) error) error {
	return read(ctx, t, &t.valuesOf[column], nodes, 0, serve)
}
