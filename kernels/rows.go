package kernels

import (
	"fmt"
	"math"
)

// Shapes: a table of R rows, a list of N rows, both of C columns; ids (N) has the table row of each
// row of the list.

// GatherRows copies row ids[i] of src to row i of dst. Both have cols columns.
func GatherRows(dst, src []float32, cols int, ids []uint32) {
	if cols == 1 { // a neighbour's weight: a fourth of the time that calls of copy take
		dst = dst[:len(ids)]
		for i, u := range ids {
			dst[i] = src[u]
		}
		return
	}
	for i, u := range ids {
		copy(dst[i*cols:][:cols], row(src, u, cols))
	}
}

// gatherRowsHalf is GatherRows of float16 rows.
func (r *routines) gatherRowsHalf(dst []float32, src []uint16, cols int, ids []uint32) {
	for i, u := range ids {
		r.widen(dst[i*cols:][:cols], row(src, u, cols))
	}
}

// gatherRowsGrad adds columns [lo, hi) of row i of ddst to the same columns of row ids[i] of dsrc,
// in the order of i.
func (r *routines) gatherRowsGrad(dsrc, ddst []float32, cols, lo, hi int, ids []uint32) {
	for i, u := range ids {
		r.add(row(dsrc, u, cols)[lo:hi], ddst[i*cols:][lo:hi])
	}
}

// ScatterRows copies row i of src to row ids[i] of dst. Both have cols columns.
func ScatterRows(dst, src []float32, cols int, ids []uint32) {
	for i, u := range ids {
		copy(row(dst, u, cols), src[i*cols:][:cols])
	}
}

// scatterRowsHalf is ScatterRows to float16 rows. It rounds as Float32ToHalf does.
func (r *routines) scatterRowsHalf(dst []uint16, src []float32, cols int, ids []uint32) {
	for i, u := range ids {
		r.narrow(row(dst, u, cols), src[i*cols:][:cols])
	}
}

// addEdges adds columns [lo, hi) of row from[e] of src to row to[e] of dst, edge after edge, times
// w[e] if w is not nil. All rows exist.
func addEdges(dst, src, w []float32, cols, lo, hi int, to, from []uint32) {
	if w == nil {
		for e, i := range to {
			Add(row(dst, i, cols)[lo:hi], row(src, from[e], cols)[lo:hi])
		}
		return
	}
	var at [2]uint32 // where the list of one edge starts and ends
	for e, i := range to {
		at[0], at[1] = uint32(e), uint32(e+1)
		weightedSum(row(dst, i, cols)[lo:hi], cols, hi-lo, src[lo:], cols, at[:1], at[1:], from, w, 1)
	}
}

// addEdgesWidened is addEdges of float16 rows. It widens each row first.
func (r *routines) addEdgesWidened(dst []float32, src []uint16, w []float32, cols, lo, hi int, to, from []uint32) {
	wide, zero, by := make([]float32, hi-lo), []uint32{0}, w
	for e, i := range to {
		r.widen(wide, row(src, from[e], cols)[lo:hi])
		if w != nil {
			by = w[e : e+1]
		}
		r.addEdges(row(dst, i, cols)[lo:hi], wide, by, hi-lo, 0, hi-lo, zero, zero)
	}
}

// RowNorms sets dst[i] to the Euclidean norm of row i of src, which has len(dst) rows of cols
// columns. See SumSquares.
func RowNorms(dst, src []float32, cols int) {
	for i := range dst {
		dst[i] = float32(math.Sqrt(SumSquares(src[i*cols:][:cols])))
	}
}

// checkRows checks the shapes of list, table and ids, which go by these names.
func checkRows(op, listName string, list Tensor, tableName string, table, ids Tensor) {
	if list.Cols != table.Cols || !isColumn(ids, list.Rows) {
		refuse(op, listName, list, tableName, table, "ids", ids)
	}
}

// checkIDs looks at the values: an id beyond the table would otherwise be found when other rows are
// written already.
func checkIDs(op string, ids []uint32, rows int) {
	for i, u := range ids {
		if int64(u) >= int64(rows) {
			panic(fmt.Sprintf("kernels: %s: ids[%d] is %d, of %d rows", op, i, u, rows))
		}
	}
}

func checkAddEdges(dst, src, w, to, from Tensor) {
	if dst.Cols != src.Cols || !isColumn(to, from.Rows) || !isColumn(from, to.Rows) || w.Buf != nil && !isColumn(w, to.Rows) {
		refuse("AddEdges", "dst", dst, "src", src, "w", w, "to", to, "from", from)
	}
}

func checkRowNorms(dst, src Tensor) {
	if !isColumn(dst, src.Rows) {
		refuse("RowNorms", "dst", dst, "src", src)
	}
}

// GatherRows implements [Backend].
func (c *CPU) GatherRows(dst, src, ids Tensor) {
	const op = "GatherRows"
	checkRows(op, "dst", dst, "src", src, ids)
	d, id, n := c.floats(op, "dst", dst), c.uints(op, "ids", ids), dst.Cols
	checkIDs(op, id, src.Rows)
	if src.Type == F16 {
		s := c.inHost.halves(op, "src", src)
		c.bytes.Add(2 * int64(len(d)))
		c.rows(dst.Rows, n, func(lo, hi int) { c.gatherRowsHalf(d[lo*n:hi*n], s, n, id[lo:hi]) })
		return
	}
	s := c.inHost.floats(op, "src", src)
	c.bytes.Add(4 * int64(len(d)))
	c.rows(dst.Rows, n, func(lo, hi int) { GatherRows(d[lo*n:hi*n], s, n, id[lo:hi]) })
}

// lineElements is a cache line of float32s: goroutines that write to the same one slow each other
// down.
const lineElements = cacheLine / 4

// GatherRowsGrad implements [Backend]. Goroutines share the columns: each takes all positions in
// order, for columns of its own. So the work is as even where all positions name one row as where
// each names another. Ranges of source rows would not be even, and each goroutine would skip the
// positions of the others.
func (c *CPU) GatherRowsGrad(dsrc, ddst, ids Tensor) {
	const op = "GatherRowsGrad"
	checkRows(op, "ddst", ddst, "dsrc", dsrc, ids)
	ds, dd, id, n := c.floats(op, "dsrc", dsrc), c.floats(op, "ddst", ddst), c.uints(op, "ids", ids), dsrc.Cols
	checkIDs(op, id, dsrc.Rows)
	c.columns(n, len(dd), func(lo, hi int) { c.gatherRowsGrad(ds, dd, n, lo, hi, id) })
}

// columns calls work with ranges of n columns, on as many goroutines as the elements are worth.
func (c *CPU) columns(n, elements int, work func(lo, hi int)) {
	goroutines := max(1, min(c.threads, elements/chunkElements))
	width := (n + goroutines - 1) / goroutines
	width = max(1, (width+lineElements-1)/lineElements) * lineElements
	parallelFor(goroutines, n, width, work)
}

// AddEdges implements [Backend]. Goroutines share the columns, as in GatherRowsGrad.
func (c *CPU) AddEdges(dst, src, w, to, from Tensor) {
	const op = "AddEdges"
	checkAddEdges(dst, src, w, to, from)
	d, t, f, n := c.floats(op, "dst", dst), c.uints(op, "to", to), c.uints(op, "from", from), dst.Cols
	var by []float32
	if w.Buf != nil {
		by = c.floats(op, "w", w)
	}
	checkIDs(op, t, dst.Rows)
	checkIDs(op, f, src.Rows)
	if src.Type == F16 {
		s := c.halves(op, "src", src)
		c.columns(n, len(t)*n, func(lo, hi int) { c.addEdgesHalf(d, s, by, n, lo, hi, t, f) })
		return
	}
	s := c.floats(op, "src", src)
	c.columns(n, len(t)*n, func(lo, hi int) { c.addEdges(d, s, by, n, lo, hi, t, f) })
}

// ScatterRows implements [Backend].
func (c *CPU) ScatterRows(dst, src, ids Tensor) {
	const op = "ScatterRows"
	checkRows(op, "src", src, "dst", dst, ids)
	s, id, n := c.floats(op, "src", src), c.uints(op, "ids", ids), src.Cols
	checkIDs(op, id, dst.Rows)
	if dst.Type == F16 {
		d := c.halves(op, "dst", dst)
		c.rows(src.Rows, n, func(lo, hi int) { c.scatterRowsHalf(d, s[lo*n:hi*n], n, id[lo:hi]) })
		return
	}
	d := c.floats(op, "dst", dst)
	c.rows(src.Rows, n, func(lo, hi int) { ScatterRows(d, s[lo*n:hi*n], n, id[lo:hi]) })
}

// RowNorms implements [Backend].
func (c *CPU) RowNorms(dst, src Tensor) {
	checkRowNorms(dst, src)
	d, s, n := c.floats("RowNorms", "dst", dst), c.floats("RowNorms", "src", src), src.Cols
	c.rows(src.Rows, n, func(lo, hi int) { c.rowNorms(d[lo:hi], s[lo*n:hi*n], n) })
}

// GatherRows implements [Backend].
func (r *Reference) GatherRows(dst, src, ids Tensor) {
	const op = "GatherRows"
	checkRows(op, "dst", dst, "src", src, ids)
	d, s, id := r.floats(op, "dst", dst), r.input(op, "src", src), r.uints(op, "ids", ids)
	checkIDs(op, id, src.Rows)
	gatherRowsRef(d, s, dst.Cols, id)
}

// GatherRowsGrad implements [Backend].
func (r *Reference) GatherRowsGrad(dsrc, ddst, ids Tensor) {
	const op = "GatherRowsGrad"
	checkRows(op, "ddst", ddst, "dsrc", dsrc, ids)
	ds, dd, id := r.floats(op, "dsrc", dsrc), r.floats(op, "ddst", ddst), r.uints(op, "ids", ids)
	checkIDs(op, id, dsrc.Rows)
	gatherRowsGradRef(ds, dd, dsrc.Cols, id)
}

// AddEdges implements [Backend].
func (r *Reference) AddEdges(dst, src, w, to, from Tensor) {
	const op = "AddEdges"
	checkAddEdges(dst, src, w, to, from)
	d, s, t, f := r.floats(op, "dst", dst), r.input(op, "src", src), r.uints(op, "to", to), r.uints(op, "from", from)
	checkIDs(op, t, dst.Rows)
	checkIDs(op, f, src.Rows)
	var by []float64
	if w.Buf != nil {
		by = r.floats(op, "w", w)
	}
	addEdgesRef(d, s, by, dst.Cols, t, f)
}

// ScatterRows implements [Backend].
func (r *Reference) ScatterRows(dst, src, ids Tensor) {
	const op = "ScatterRows"
	checkRows(op, "src", src, "dst", dst, ids)
	s, id := r.floats(op, "src", src), r.uints(op, "ids", ids)
	checkIDs(op, id, dst.Rows)
	if dst.Type == F16 {
		rounded := make([]uint16, len(s))
		for i, v := range s {
			rounded[i] = floatToHalfRef(v)
		}
		scatterRowsRef(r.halves(op, "dst", dst), rounded, src.Cols, id)
		return
	}
	scatterRowsRef(r.floats(op, "dst", dst), s, src.Cols, id)
}

// RowNorms implements [Backend].
func (r *Reference) RowNorms(dst, src Tensor) {
	checkRowNorms(dst, src)
	rowNormsRef(r.floats("RowNorms", "dst", dst), r.floats("RowNorms", "src", src), src.Rows, src.Cols)
}
