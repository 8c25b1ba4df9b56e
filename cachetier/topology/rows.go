package topology

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/store"
)

// rowColumn returns file number file of the reader as a column of row numbers. Callers check for
// themselves that the table has such a row.
func rowColumn(c *store.EdgeColumn, file int) column[uint32] {
	r := column[uint32]{file: file, size: c.Column.Elem.Size(), lend: store.NodeIDs, of: c.Row}
	if r.size != 4 {
		r.lend = func([]byte) ([]uint32, bool) { return nil, false }
	}
	return r
}

// HasRows reports whether edges have rows, by Options.Rows.
func (t *Tier) HasRows() bool { return t.rowsOf.file != 0 }

// TakeRows copies to dst the row numbers of v's edges at places of its list. It panics if v is not
// below Resident, and if the Tier has no rows.
func (t *Tier) TakeRows(dst []uint32, v uint32, places []uint32) {
	t.mustHaveRows("TakeRows")
	if v >= t.resident {
		panic(fmt.Sprintf("topology: TakeRows(%d), and %d lists are resident", v, t.resident))
	}
	lo, _ := t.offsets.span(v)
	for i, p := range places {
		dst[i] = t.rowsOf.of(t.rows, int(lo)+int(p))
	}
}

// ReadRows is Read for row numbers. It takes the same nodes, and serves parts in the same way, but
// shorter ones if numbers are wide. The bytes count as bytes of cold lists; the lists themselves
// are counted by Read alone. It panics if the Tier has no rows.
func (t *Tier) ReadRows(ctx context.Context, nodes []uint32, serve func(i, from int, part []uint32) error) error {
	t.mustHaveRows("ReadRows")
	return read(ctx, t, &t.rowsOf, nodes, 0, serve)
}

// mustHaveRows panics in the name of op if edges have no rows.
func (t *Tier) mustHaveRows(op string) {
	if !t.HasRows() {
		panic("topology: " + op + " of a Tier that was opened without Options.Rows")
	}
}
