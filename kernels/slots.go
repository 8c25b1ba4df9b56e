package kernels

import "fmt"

// Shapes: x has M rows of C columns that were computed, slots S rows of C columns or more that were
// kept in float16; a list puts N of both together. What is further right in a slot is neither read
// nor written.

// InSlot, added to the number of a row, marks it as a row of slots. So either kind has at most
// InSlot rows.
const InSlot = 1 << 31

// largestHalf is the largest finite float16, 65504.
const largestHalf = 0x7bff

// assembleRows copies to row i of dst row at[i] of x, or of slots, which are stride elements apart.
func (r *routines) assembleRows(dst, x []float32, cols int, slots []uint16, stride int, at []uint32) {
	for i, from := range at {
		d := dst[i*cols:][:cols]
		if from&InSlot == 0 {
			copy(d, row(x, from, cols))
			continue
		}
		r.widen(d, row(slots, from&^InSlot, stride)[:cols])
	}
}

// storeRows narrows row rows[i] of x to the beginning of slot to[i]. Slots are stride elements
// apart. It sets lost[i] to 1 where a value was lost, else to 0.
func (r *routines) storeRows(slots []uint16, stride int, lost []uint32, x []float32, cols int, rows, to []uint32) {
	for i, from := range rows {
		d := row(slots, to[i], stride)[:cols]
		r.narrow(d, row(x, from, cols))
		lost[i] = saturate(d)
	}
}

// saturate sets infinities to the largest finite value. It returns 1 if there was one, or a NaN,
// else 0.
func saturate(h []uint16) uint32 {
	const infinity = 0x7c00
	if finiteHalves(h) {
		return 0
	}
	for i, v := range h {
		if v&0x7fff == infinity {
			h[i] = v&0x8000 | largestHalf
		}
	}
	return 1
}

func checkAssembleRows(dst, x, slots, at Tensor) {
	if dst.Cols != x.Cols || !isColumn(at, dst.Rows) || slots.Rows > 0 && slots.Cols < dst.Cols {
		refuse("AssembleRows", "dst", dst, "x", x, "slots", slots, "at", at)
	}
}

// checkOrigins is checkIDs for both kinds of rows.
func checkOrigins(op string, at []uint32, rows, slots int) {
	for i, from := range at {
		n, kind, of := from, "row", rows
		if from&InSlot != 0 {
			n, kind, of = from&^InSlot, "slot", slots
		}
		if int64(n) >= int64(of) {
			panic(fmt.Sprintf("kernels: %s: at[%d] is %s %d, of %d", op, i, kind, n, of))
		}
	}
}

func checkStoreRows(slots, lost, x, rows, to, void Tensor) {
	checkGuard("StoreRows", Guard{Void: void})
	if slots.Cols < x.Cols || !isColumn(rows, lost.Rows) || !isColumn(to, lost.Rows) || !isColumn(lost, lost.Rows) {
		refuse("StoreRows", "slots", slots, "lost", lost, "x", x, "rows", rows, "to", to)
	}
}

// AssembleRows implements [Backend].
func (c *CPU) AssembleRows(dst, x, slots, at Tensor) {
	const op = "AssembleRows"
	checkAssembleRows(dst, x, slots, at)
	d, s, from, n := c.floats(op, "dst", dst), c.floats(op, "x", x), c.uints(op, "at", at), dst.Cols
	var kept []uint16
	if slots.Rows > 0 {
		kept = c.inHost.halves(op, "slots", slots) // few of them are read
	}
	checkOrigins(op, from, x.Rows, slots.Rows)
	c.rows(dst.Rows, n, func(lo, hi int) { c.assembleRows(d[lo*n:hi*n], s, n, kept, slots.Cols, from[lo:hi]) })
}

// StoreRows implements [Backend].
func (c *CPU) StoreRows(slots, lost, x, rows, to, void Tensor) {
	const op = "StoreRows"
	checkStoreRows(slots, lost, x, rows, to, void)
	d, l, s, n := c.inHost.halves(op, "slots", slots), c.uints(op, "lost", lost), c.floats(op, "x", x), x.Cols
	c.bytes.Add(2 * int64(rows.Rows) * int64(n))
	from, into := c.uints(op, "rows", rows), c.uints(op, "to", to)
	checkIDs(op, from, x.Rows)
	checkIDs(op, into, slots.Rows)
	if c.isVoid(op, void) {
		return
	}
	c.rows(rows.Rows, n, func(lo, hi int) { c.storeRows(d, slots.Cols, l[lo:hi], s, n, from[lo:hi], into[lo:hi]) })
}

// AssembleRows implements [Backend].
func (r *Reference) AssembleRows(dst, x, slots, at Tensor) {
	const op = "AssembleRows"
	checkAssembleRows(dst, x, slots, at)
	d, s, from := r.floats(op, "dst", dst), r.floats(op, "x", x), r.uints(op, "at", at)
	var kept []float64
	if slots.Rows > 0 {
		r.halves(op, "slots", slots) // they must be in float16
		kept = r.input(op, "slots", slots)
	}
	checkOrigins(op, from, x.Rows, slots.Rows)
	assembleRowsRef(d, s, dst.Cols, kept, slots.Cols, from)
}

// StoreRows implements [Backend].
func (r *Reference) StoreRows(slots, lost, x, rows, to, void Tensor) {
	const op = "StoreRows"
	checkStoreRows(slots, lost, x, rows, to, void)
	d, l, s := r.halves(op, "slots", slots), r.uints(op, "lost", lost), r.floats(op, "x", x)
	from, into := r.uints(op, "rows", rows), r.uints(op, "to", to)
	checkIDs(op, from, x.Rows)
	checkIDs(op, into, slots.Rows)
	if r.isVoid(op, void) {
		return
	}
	storeRowsRef(d, slots.Cols, l, s, x.Cols, from, into)
}
