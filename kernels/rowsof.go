package kernels

import (
	"math"
	"unsafe"
)

// Shapes: a list of N rows of C columns. hot has H rows, which lie on the device, and came M rows,
// which were uploaded for the list. Both have C columns, or hot has 2·C halves.

// rowsOf copies to row i of dst row at[i] of hot or, with InSlot, of came. Rows have size bytes.
func rowsOf(dst, hot, came []byte, size int, at []uint32) {
	for i, from := range at {
		rows := hot
		if from&InSlot != 0 {
			rows, from = came, from&^InSlot
		}
		copy(dst[i*size:][:size], rows[int(from)*size:][:size])
	}
}

func checkRowsOf(dst, hot, came, at Tensor) {
	pairs := dst.Type == F32 && hot.Type == F16 && hot.Cols == 2*dst.Cols
	fits := func(t Tensor) bool { return t.Rows == 0 || t.Type == dst.Type && t.Cols == dst.Cols }
	if dst.Type == U32 || !isColumn(at, dst.Rows) || !pairs && !fits(hot) || !fits(came) {
		refuse("RowsOf", "dst", dst, "hot", hot, "came", came, "at", at)
	}
}

// RowsOf implements [Backend].
func (c *CPU) RowsOf(dst, hot, came, at Tensor) {
	const op = "RowsOf"
	checkRowsOf(dst, hot, came, at)
	d, h, m, from := c.raw(op, "dst", dst), c.raw(op, "hot", hot), c.raw(op, "came", came), c.uints(op, "at", at)
	checkOrigins(op, from, hot.Rows, came.Rows)
	size := dst.Cols * dst.Type.Size()
	c.rows(dst.Rows, dst.Cols, func(lo, hi int) { rowsOf(d[lo*size:hi*size], h, m, size, from[lo:hi]) })
}

// raw returns the window of t, which holds floats, as bytes in the host's order.
func (c *CPU) raw(op, name string, t Tensor) []byte {
	if t.Rows == 0 {
		return nil
	}
	if t.Type == F16 {
		return rawOf(c.halves(op, name, t))
	}
	return rawOf(c.floats(op, name, t))
}

func rawOf[T float32 | uint16](s []T) []byte {
	var element T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(element)))
}

// RowsOf implements [Backend].
func (r *Reference) RowsOf(dst, hot, came, at Tensor) {
	const op = "RowsOf"
	checkRowsOf(dst, hot, came, at)
	from := r.uints(op, "at", at)
	checkOrigins(op, from, hot.Rows, came.Rows)
	if dst.Type == F16 {
		rowsOfRef(r.halves(op, "dst", dst), r.halvesOf(op, "hot", hot), r.halvesOf(op, "came", came), dst.Cols, from)
		return
	}
	d := r.floats(op, "dst", dst)
	var lying, arrived []float64
	if came.Rows > 0 {
		arrived = r.floats(op, "came", came)
	}
	switch {
	case hot.Rows == 0:
	case hot.Type == F16:
		h := r.halves(op, "hot", hot)
		lying = make([]float64, len(h)/2)
		for i := range lying {
			lying[i] = float64(math.Float32frombits(uint32(h[2*i]) | uint32(h[2*i+1])<<16))
		}
	default:
		lying = r.floats(op, "hot", hot)
	}
	rowsOfRef(d, lying, arrived, dst.Cols, from)
}

// halvesOf is halves of a tensor that may have no rows, and then any type.
func (r *Reference) halvesOf(op, name string, t Tensor) []uint16 {
	if t.Rows == 0 {
		return nil
	}
	return r.halves(op, name, t)
}

// keepRows copies row from[i] of came to row to[i] of hot. Rows have size bytes.
func keepRows(hot, came []byte, size int, from, to []uint32) {
	for i, u := range from {
		copy(hot[int(to[i])*size:][:size], came[int(u)*size:][:size])
	}
}

func checkKeepRows(hot, came, from, to Tensor) {
	pairs := came.Type == F32 && hot.Type == F16 && hot.Cols == 2*came.Cols
	same := hot.Type == came.Type && hot.Cols == came.Cols && came.Type != U32
	if !isColumn(from, to.Rows) || !isColumn(to, from.Rows) || from.Rows > 0 && !pairs && !same {
		refuse("KeepRows", "hot", hot, "came", came, "from", from, "to", to)
	}
}

// KeepRows implements [Backend].
func (c *CPU) KeepRows(hot, came, from, to Tensor) {
	const op = "KeepRows"
	checkKeepRows(hot, came, from, to)
	f, t := c.uints(op, "from", from), c.uints(op, "to", to)
	checkIDs(op, f, came.Rows)
	checkIDs(op, t, hot.Rows)
	if len(f) == 0 {
		return
	}
	h, m, size := c.raw(op, "hot", hot), c.raw(op, "came", came), came.Cols*came.Type.Size()
	c.rows(len(f), came.Cols, func(lo, hi int) { keepRows(h, m, size, f[lo:hi], t[lo:hi]) })
}

// KeepRows implements [Backend].
func (r *Reference) KeepRows(hot, came, from, to Tensor) {
	const op = "KeepRows"
	checkKeepRows(hot, came, from, to)
	f, t := r.uints(op, "from", from), r.uints(op, "to", to)
	checkIDs(op, f, came.Rows)
	checkIDs(op, t, hot.Rows)
	switch {
	case len(f) == 0:
	case came.Type == F16:
		keepRowsRef(r.halves(op, "hot", hot), r.halves(op, "came", came), came.Cols, f, t)
	case hot.Type == F32:
		keepRowsRef(r.floats(op, "hot", hot), r.floats(op, "came", came), came.Cols, f, t)
	default:
		pairs := make([]uint16, 0, 2*came.Len())
		for _, v := range r.floats(op, "came", came) {
			b := math.Float32bits(float32(v))
			pairs = append(pairs, uint16(b), uint16(b>>16))
		}
		keepRowsRef(r.halves(op, "hot", hot), pairs, hot.Cols, f, t)
	}
}
