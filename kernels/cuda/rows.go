//go:build cuda && linux

package cuda

import (
	"math/bits"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// GatherRows implements [kernels.Backend].
func (b *Backend) GatherRows(dst, src, ids kernels.Tensor) {
	const op = "GatherRows"
	b.shapes.GatherRows(dst, src, ids)
	d, s, id := b.f32(op, "dst", dst), b.f32OrHalf(op, "src", src), b.u32(op, "ids", ids)
	if ids.Rows == 0 {
		return
	}
	name, per := ofType("gather_rows", src)
	grid, shift := b.lanes(ids.Rows, dst.Cols, per)
	b.run(b.wide(name, dst.Cols%per == 0, d, s), grid, d, s, id, ids.Rows, src.Rows, dst.Cols, shift, b.failures)
}

// ScatterRows implements [kernels.Backend].
func (b *Backend) ScatterRows(dst, src, ids kernels.Tensor) {
	const op = "ScatterRows"
	b.shapes.ScatterRows(dst, src, ids)
	d, s, id := b.f32OrHalf(op, "dst", dst), b.f32(op, "src", src), b.u32(op, "ids", ids)
	if ids.Rows == 0 {
		return
	}
	name, per := ofType("scatter_rows", dst)
	grid, shift := b.lanes(ids.Rows, dst.Cols, per)
	b.run(b.wide(name, dst.Cols%per == 0, d, s), grid, d, s, id, ids.Rows, dst.Rows, dst.Cols, shift, b.failures)
}

// GatherRowsGrad implements [kernels.Backend].
func (b *Backend) GatherRowsGrad(dsrc, ddst, ids kernels.Tensor) {
	const op = "GatherRowsGrad"
	b.shapes.GatherRowsGrad(dsrc, ddst, ids)
	ds, dd, id := b.f32(op, "dsrc", dsrc), b.f32(op, "ddst", ddst), b.u32(op, "ids", ids)
	b.addSorted(dsrc, ddst, ids.Rows, ds, dd, operand{}, id, operand{})
}

// AddEdges implements [kernels.Backend].
func (b *Backend) AddEdges(dst, src, w, to, from kernels.Tensor) {
	const op = "AddEdges"
	b.shapes.AddEdges(dst, src, w, to, from)
	d, s, by := b.f32(op, "dst", dst), b.f32OrHalf(op, "src", src), b.f32(op, "w", w)
	b.addSorted(dst, src, to.Rows, d, s, by, b.u32(op, "to", to), b.u32(op, "from", from))
}

// addSorted adds rows of src to rows of dst, in the order of a list of n edges.
func (b *Backend) addSorted(dst, src kernels.Tensor, n int, d, s, w, to, from operand) {
	if n == 0 {
		return
	}
	keys, order := b.sorted(to, n, dst.Rows)
	name, per := ofType("add_sorted", src)
	grid, shift := b.lanes(n, dst.Cols, per)
	b.run(b.wide(name, dst.Cols%per == 0, d, s), grid,
		d, s, w, from, keys, order, n, dst.Rows, src.Rows, dst.Cols, shift, b.failures)
}

// sortChunk is the number of keys that a block sorts, and that sort_small takes at most.
const sortChunk = 2048

// sorted returns the n ids in ascending order, and the position that each had. Equal ids stay in
// their order. limit is above all valid ids. Both results are temporary.
func (b *Backend) sorted(ids operand, n, limit int) (keys, order operand) {
	width := bits.Len(uint(max(0, limit-1)))
	chunks := (n + sortChunk - 1) / sortChunk
	t := b.temporary(4*n, 4*n, 4*n, 4*n, 4*16*chunks)
	keys, order = t[0], t[1]
	if n <= sortChunk && !b.options.Narrow {
		b.run("sort_small", driver.Dim{X: 1}, keys, order, ids, n, width)
		return keys, order
	}
	otherKeys, otherOrder, counts := t[2], t[3], t[4]
	from, places := ids, operand{}
	for bit := 0; bit < max(width, 1); bit += 4 {
		grid := b.flat(threads * chunks)
		b.run("sort_count", grid, counts, from, n, chunks, bit)
		b.run("sort_scan", driver.Dim{X: 1}, counts, 16*chunks)
		b.run("sort_scatter", grid, otherKeys, otherOrder, from, places, counts, n, chunks, bit)
		keys, order, otherKeys, otherOrder = otherKeys, otherOrder, keys, order
		from, places = keys, order
	}
	return keys, order
}

// AssembleRows implements [kernels.Backend].
func (b *Backend) AssembleRows(dst, x, slots, at kernels.Tensor) {
	const op = "AssembleRows"
	b.shapes.AssembleRows(dst, x, slots, at)
	d, s, places := b.f32(op, "dst", dst), b.f32(op, "x", x), b.u32(op, "at", at)
	var kept operand
	if slots.Rows > 0 {
		kept = b.halves(op, "slots", slots)
	}
	if dst.Rows == 0 {
		return
	}
	name := b.wideHalf("assemble_rows", dst.Cols%8 == 0 && slots.Cols%8 == 0, d, s, kept)
	grid, shift := b.lanes(dst.Rows, dst.Cols, 8)
	b.run(name, grid, d, s, kept, places, dst.Rows, x.Rows, slots.Rows, dst.Cols, slots.Cols, shift, b.failures)
}

// wideHalf is wide for kernels whose wide variant is called NAME_half_wide.
func (b *Backend) wideHalf(name string, fits bool, operands ...operand) string {
	if b.wide("", fits, operands...) == "" {
		return name
	}
	return name + "_half_wide"
}

// RowsOf implements [kernels.Backend].
func (b *Backend) RowsOf(dst, hot, came, at kernels.Tensor) {
	const op = "RowsOf"
	b.shapes.RowsOf(dst, hot, came, at)
	d, places := b.f32OrHalf(op, "dst", dst), b.u32(op, "at", at)
	var h, c operand
	if hot.Rows > 0 {
		h = b.f32OrHalf(op, "hot", hot)
	}
	if came.Rows > 0 {
		c = b.f32OrHalf(op, "came", came)
	}
	if dst.Rows == 0 {
		return
	}
	units := dst.Cols * dst.Type.Size() / 2 // 16 bits each, whatever the type
	grid, shift := b.lanes(dst.Rows, units, 8)
	b.run(b.wide("rows_of", units%8 == 0, d, h, c), grid, d, h, c, places, dst.Rows, hot.Rows, came.Rows, units, shift, b.failures)
}

// KeepRows implements [kernels.Backend].
func (b *Backend) KeepRows(hot, came, from, to kernels.Tensor) {
	const op = "KeepRows"
	b.shapes.KeepRows(hot, came, from, to)
	rows, into := b.u32(op, "from", from), b.u32(op, "to", to)
	if from.Rows == 0 {
		return
	}
	h, c := b.f32OrHalf(op, "hot", hot), b.f32OrHalf(op, "came", came)
	units := came.Cols * came.Type.Size() / 2
	grid, shift := b.lanes(from.Rows, units, 8)
	b.run(b.wide("keep_rows", units%8 == 0, h, c), grid, h, c, rows, into, from.Rows, hot.Rows, came.Rows, units, shift, b.failures)
}

// StoreRows implements [kernels.Backend].
func (b *Backend) StoreRows(slots, lost, x, rows, to, void kernels.Tensor) {
	const op = "StoreRows"
	b.shapes.StoreRows(slots, lost, x, rows, to, void)
	d, l, s := b.halves(op, "slots", slots), b.u32(op, "lost", lost), b.f32(op, "x", x)
	from, into, flag := b.u32(op, "rows", rows), b.u32(op, "to", to), b.u32(op, "void", void)
	if rows.Rows == 0 {
		return
	}
	name := b.wideHalf("store_rows", x.Cols%8 == 0 && slots.Cols%8 == 0, d, s)
	b.run(name, b.warps(rows.Rows), d, l, s, from, into, rows.Rows, x.Rows, slots.Rows, x.Cols, slots.Cols,
		flag, b.failures)
}

// RowNorms implements [kernels.Backend].
func (b *Backend) RowNorms(dst, src kernels.Tensor) {
	b.shapes.RowNorms(dst, src)
	d, s := b.f32("RowNorms", "dst", dst), b.f32("RowNorms", "src", src)
	if src.Rows > 0 {
		b.run(b.wide("row_norms", src.Cols%4 == 0, s), b.warps(src.Rows), d, s, src.Rows, src.Cols)
	}
}

// Columns implements [kernels.Backend].
func (b *Backend) Columns(dst, src kernels.Tensor, from int) {
	b.shapes.Columns(dst, src, from)
	b.columns("columns", b.f32("Columns", "dst", dst), b.f32("Columns", "src", src), dst, src, from)
}

// ColumnsGrad implements [kernels.Backend].
func (b *Backend) ColumnsGrad(dsrc, ddst kernels.Tensor, from int) {
	const op = "ColumnsGrad"
	b.shapes.ColumnsGrad(dsrc, ddst, from)
	b.columns("columns_grad", b.f32(op, "dsrc", dsrc), b.f32(op, "ddst", ddst), ddst, dsrc, from)
}

// columns launches a kernel over some columns of the matrix of, from on.
func (b *Backend) columns(name string, dst, src operand, some, of kernels.Tensor, from int) {
	if some.Len() == 0 {
		return
	}
	fits := some.Cols%4 == 0 && of.Cols%4 == 0 && from%4 == 0
	grid, shift := b.lanes(some.Rows, some.Cols, 4)
	b.run(b.wide(name, fits, dst, src), grid, dst, src, some.Rows, some.Cols, of.Cols, from, shift)
}
