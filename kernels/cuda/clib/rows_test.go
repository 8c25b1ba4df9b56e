//go:build cuda && linux

package clib

import (
	"math/bits"

	"github.com/gnnstore/gnnstore/kernels"
)

// half returns name with _half where t holds halves, and how many columns its wide variant reads.
func half(name string, t kernels.Tensor) (string, int) {
	if t.Type == kernels.F16 {
		return name + "_half", 8
	}
	return name, 4
}

func (d *device) GatherRows(dst, src, ids kernels.Tensor) {
	d.Backend.GatherRows(onCPU(dst), onCPU(src), onCPU(ids))
	defer d.begin()()
	if ids.Rows == 0 {
		return
	}
	name, n := half("gather_rows", src)
	d.lib.run(d.wide(name, dst.Cols%n == 0, dst, src), flat(ids.Rows), at(dst), at(src), at(ids), ids.Rows, src.Rows,
		dst.Cols,
		shift(dst.Cols, n), d.word)
}

func (d *device) ScatterRows(dst, src, ids kernels.Tensor) {
	d.Backend.ScatterRows(onCPU(dst), onCPU(src), onCPU(ids))
	defer d.begin()()
	if ids.Rows == 0 {
		return
	}
	name, n := half("scatter_rows", dst)
	d.lib.run(d.wide(name, dst.Cols%n == 0, dst, src), flat(ids.Rows), at(dst), at(src), at(ids), ids.Rows, dst.Rows,
		dst.Cols,
		shift(dst.Cols, n), d.word)
}

// smallSort is the most keys that sort_small takes.
const smallSort = 2048

// sorted returns ids sorted, and their positions.
func (d *device) sorted(ids kernels.Tensor, rows int) (keys, order address) {
	n, width := ids.Rows, bits.Len(uint(max(0, rows-1)))
	keys, order = d.temp(4*n), d.temp(4*n)
	if n <= smallSort && d.mode != elements {
		d.lib.run("sort_small", grid{1, 1, 1}, keys, order, at(ids), n, width)
		return keys, order
	}
	chunks := (n + smallSort - 1) / smallSort
	counts, from, of := d.temp(4*16*chunks), at(ids), address(0)
	otherKeys, otherOrder := d.temp(4*n), d.temp(4*n)
	for bit := 0; bit < max(width, 1); bit += 4 {
		d.lib.run("sort_count", grid{2, 1, 1}, counts, from, n, chunks, bit)
		d.lib.run("sort_scan", grid{1, 1, 1}, counts, 16*chunks)
		d.lib.run("sort_scatter", grid{2, 1, 1}, otherKeys, otherOrder, from, of, counts, n, chunks, bit)
		keys, order, otherKeys, otherOrder = otherKeys, otherOrder, keys, order
		from, of = keys, order
	}
	return keys, order
}

func (d *device) addSorted(dst, src, w, to, from kernels.Tensor) {
	if to.Rows == 0 {
		return
	}
	keys, order := d.sorted(to, dst.Rows)
	name, n := half("add_sorted", src)
	d.lib.run(d.wide(name, dst.Cols%n == 0, dst, src), flat(to.Rows), at(dst), at(src), at(w), at(from), keys, order,
		to.Rows,
		dst.Rows, src.Rows, dst.Cols, shift(dst.Cols, n), d.word)
}

func (d *device) GatherRowsGrad(dsrc, ddst, ids kernels.Tensor) {
	d.Backend.GatherRowsGrad(onCPU(dsrc), onCPU(ddst), onCPU(ids))
	defer d.begin()()
	d.addSorted(dsrc, ddst, kernels.Tensor{}, ids, kernels.Tensor{})
}

func (d *device) AddEdges(dst, src, w, to, from kernels.Tensor) {
	d.Backend.AddEdges(onCPU(dst), onCPU(src), onCPU(w), onCPU(to), onCPU(from))
	defer d.begin()()
	d.addSorted(dst, src, w, to, from)
}

func (d *device) AssembleRows(dst, x, slots, places kernels.Tensor) {
	d.Backend.AssembleRows(onCPU(dst), onCPU(x), onCPU(slots), onCPU(places))
	defer d.begin()()
	if dst.Rows == 0 {
		return
	}
	name := "assemble_rows"
	if d.wide("", dst.Cols%8 == 0 && slots.Cols%8 == 0, dst, x, slots) != "" {
		name = "assemble_rows_half_wide"
	}
	d.lib.run(name, flat(dst.Rows), at(dst), at(x), at(slots), at(places), dst.Rows, x.Rows, slots.Rows, dst.Cols,
		slots.Cols,
		shift(dst.Cols, 8), d.word)
}

func (d *device) StoreRows(slots, lost, x, rows, to, void kernels.Tensor) {
	d.Backend.StoreRows(onCPU(slots), onCPU(lost), onCPU(x), onCPU(rows), onCPU(to), onCPU(void))
	defer d.begin()()
	if rows.Rows == 0 {
		return
	}
	name := "store_rows"
	if d.wide("", x.Cols%8 == 0 && slots.Cols%8 == 0, slots, x) != "" {
		name = "store_rows_half_wide"
	}
	d.lib.run(name, flat(32*rows.Rows), at(slots), at(lost), at(x), at(rows), at(to), rows.Rows, x.Rows, slots.Rows,
		x.Cols,
		slots.Cols, at(void), d.word)
}

func (d *device) RowNorms(dst, src kernels.Tensor) {
	d.Backend.RowNorms(onCPU(dst), onCPU(src))
	defer d.begin()()
	if src.Rows > 0 {
		d.lib.run(d.wide("row_norms", src.Cols%4 == 0, src), flat(32*src.Rows), at(dst), at(src), src.Rows, src.Cols)
	}
}

func (d *device) Columns(dst, src kernels.Tensor, from int) {
	d.Backend.Columns(onCPU(dst), onCPU(src), from)
	defer d.begin()()
	if dst.Rows > 0 {
		d.lib.run(d.wide("columns", dst.Cols%4 == 0 && src.Cols%4 == 0 && from%4 == 0, dst, src), flat(dst.Rows),
			at(dst), at(src),
			dst.Rows, dst.Cols, src.Cols, from, shift(dst.Cols, 4))
	}
}

func (d *device) ColumnsGrad(dsrc, ddst kernels.Tensor, from int) {
	d.Backend.ColumnsGrad(onCPU(dsrc), onCPU(ddst), from)
	defer d.begin()()
	if ddst.Rows > 0 {
		d.lib.run(d.wide("columns_grad", ddst.Cols%4 == 0 && dsrc.Cols%4 == 0 && from%4 == 0, dsrc, ddst),
			flat(ddst.Rows), at(dsrc),
			at(ddst), ddst.Rows, ddst.Cols, dsrc.Cols, from, shift(ddst.Cols, 4))
	}
}

func (d *device) NeighborMean(dst, src kernels.Tensor, g kernels.Adjacency) {
	d.Backend.NeighborMean(onCPU(dst), onCPU(src), graphOnCPU(g))
	defer d.begin()()
	if dst.Rows == 0 {
		return
	}
	name, n := half("neighbor_mean", src)
	d.lib.run(d.wide(name, dst.Cols%n == 0, dst, src), flat(dst.Rows), at(dst), at(src), at(g.Start), at(g.End),
		at(g.Nbr),
		dst.Rows, src.Rows, g.Nbr.Rows, dst.Cols, shift(dst.Cols, n), d.word)
}

func (d *device) NeighborMeanGrad(dsrc, ddst kernels.Tensor, g kernels.Adjacency) {
	d.Backend.NeighborMeanGrad(onCPU(dsrc), onCPU(ddst), graphOnCPU(g))
	defer d.begin()()
	if dsrc.Rows == 0 {
		return
	}
	d.lib.run(d.wide("neighbor_mean_grad", dsrc.Cols%4 == 0, dsrc, ddst), flat(dsrc.Rows), at(dsrc), at(ddst),
		at(g.Start),
		at(g.End), at(g.RevStart), at(g.RevDst), ddst.Rows, dsrc.Rows, g.RevDst.Rows, dsrc.Cols, shift(dsrc.Cols, 4),
		d.word)
}
