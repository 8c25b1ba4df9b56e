package topology

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/store"
)

// valueColumn is file number file of the reader as a column of values. No value is looked at before
// it is wanted.
func valueColumn(c *store.EdgeColumn, file int) column[float32] {
	v := column[float32]{file: file, size: c.Column.Elem.Size(), of: c.Float}
	v.lend = func([]byte) ([]float32, bool) { return nil, false }
	if c.Column.Elem == store.F32 {
		v.lend = store.Float32s
	}
	return v
}

// Columns is how many values an edge has: as many as Options.Values.
func (t *Tier) Columns() int { return len(t.valuesOf) }

// TakeValues copies the values of v's edges at places, v being below Resident: one edge behind the
// other, in the order of columns. dst has room for them. Another v panics.
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

// ReadValues is Read for a column of values: it takes the same nodes, and serves parts in the same
// way, of wide values shorter ones. The bytes count as those of cold lists do; the lists themselves
// are counted by Read alone.
func (t *Tier) ReadValues(ctx context.Context, column int, nodes []uint32, serve func(i, from int, part []float32) error) error {
	return read(ctx, t, &t.valuesOf[column], nodes, 0, serve)
}
