package kerneltest

import (
	"github.com/gnnstore/gnnstore/kernels"
)

// tableSizes are lists of rows out of tables: of none, of one, of a single row many times, of fewer
// and of more rows than the table has, around the widths of vectors, and large enough to be split.
var tableSizes = []struct{ list, table, cols int }{
	{0, 0, 3}, {0, 4, 3}, {3, 2, 0}, {1, 1, 1}, {5, 3, 7}, {17, 9, 16}, {3, 20, 33}, {300, 1, 65}, {6000, 500, 1}, {3000, 700, 67},
}

// pick draws a list of rows of a table, the first and the last among them.
func (r *rig) pick(list, table int) operand {
	ids := make([]uint32, list)
	for i := range ids {
		ids[i] = r.rng.Uint32N(uint32(table))
	}
	if list > 1 {
		ids[0], ids[list-1] = uint32(table-1), 0
	}
	return r.uints(ids)
}

func testGatherRows(r *rig) {
	for _, s := range tableSizes {
		r.at("%d of %d, %d columns", s.list, s.table, s.cols)
		ids, values := r.pick(s.list, s.table), r.spread(s.table*s.cols)
		for _, src := range []operand{r.floats(s.table, s.cols, values), r.halves(s.table, s.cols, values)} {
			dst := r.normal(s.list, s.cols)
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.GatherRows(on(dst), on(src), on(ids)) })
			r.close(0, dst)
			r.unchanged(src, ids)
		}
	}
}

func testGatherRowsGrad(r *rig) {
	for _, s := range tableSizes {
		for _, draw := range []func(int) []float32{r.normals, r.sparseSpecials} {
			r.at("%d of %d, %d columns", s.list, s.table, s.cols)
			ids, dsrc, ddst := r.pick(s.list, s.table), r.normal(s.table, s.cols), r.floats(s.list, s.cols, draw(s.list*s.cols))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.GatherRowsGrad(on(dsrc), on(ddst), on(ids))
			})
			r.close(sumTolerance, dsrc)
			r.unchanged(ddst, ids)
		}
	}
}

func testAddEdges(r *rig) {
	for _, s := range tableSizes {
		for _, draw := range []func(int) []float32{r.normals, r.sparseSpecials} {
			r.at("%d of %d, %d columns", s.list, s.table, s.cols)
			to, from, w := r.pick(s.list, s.table), r.pick(s.list, s.table), r.normal(s.list, 1)
			values := draw(s.table * s.cols)
			for _, src := range []operand{r.floats(s.table, s.cols, values), r.halves(s.table, s.cols, values)} {
				dst := r.normal(s.table, s.cols)
				r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
					b.AddEdges(on(dst), on(src), kernels.Tensor{}, on(to), on(from))
					b.AddEdges(on(dst), on(src), on(w), on(to), on(from))
				})
				r.close(sumTolerance, dst)
				r.unchanged(src, w, to, from)
			}
		}
	}
}

func testScatterRows(r *rig) {
	for _, s := range tableSizes {
		list := min(s.list, s.table)
		r.at("%d to %d, %d columns", list, s.table, s.cols)
		distinct := make([]uint32, list)
		for i, u := range r.rng.Perm(s.table)[:list] {
			distinct[i] = uint32(u)
		}
		ids, values := r.uints(distinct), r.spread(list*s.cols)
		for i := 0; i < len(values); i += 3 {
			values[i] *= 0x1p-16 // below 2⁻¹⁴ a half has fewer bits
		}
		src := r.floats(list, s.cols, values)
		floats, halves := r.normal(s.table, s.cols), r.halves(s.table, s.cols, r.spread(s.table*s.cols))
		r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
			b.ScatterRows(on(floats), on(src), on(ids))
			b.ScatterRows(on(halves), on(src), on(ids))
		})
		r.close(0, floats)
		r.closeHalves(halves)
		r.unchanged(src, ids)
	}
}

func testRowNorms(r *rig) {
	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		n := s[0] * s[1]
		large := r.normals(n)
		for i := 0; i < n; i += 7 {
			large[i] *= 1e30 // its square is beyond float32
		}
		for _, values := range [][]float32{r.normals(n), large, r.spread(n)} {
			dst, src := r.normal(s[0], 1), r.floats(s[0], s[1], values)
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.RowNorms(on(dst), on(src)) })
			r.close(1e-7, dst)
			r.unchanged(src)
		}
	}
}

// testRowRefusals calls the operations on lists of rows with shapes that do not fit, and with ids
// outside the table. A refusal comes before the first row is written.
func testRowRefusals(r *rig) {
	f := func(rows, cols int) kernels.Tensor { return r.normal(rows, cols).tensor }
	u := func(ids ...uint32) kernels.Tensor { return r.uints(ids).tensor }
	b := r.b
	r.refuses(map[string]func(){
		"GatherRows columns":        func() { b.GatherRows(f(2, 3), f(4, 2), u(0, 1)) },
		"GatherRows ids":            func() { b.GatherRows(f(2, 3), f(4, 3), u(0, 1, 2)) },
		"GatherRows outside":        func() { b.GatherRows(f(2, 3), f(4, 3), u(0, 4)) },
		"GatherRows far outside":    func() { b.GatherRows(f(2, 3), f(4, 3), u(1<<32-1, 0)) },
		"GatherRows of no columns":  func() { b.GatherRows(f(1, 0), f(4, 0), u(4)) },
		"GatherRows of indices":     func() { b.GatherRows(f(2, 1), u(1, 2), u(0, 1)) },
		"GatherRowsGrad columns":    func() { b.GatherRowsGrad(f(4, 2), f(2, 3), u(0, 1)) },
		"GatherRowsGrad ids":        func() { b.GatherRowsGrad(f(4, 3), f(2, 3), u(0)) },
		"GatherRowsGrad outside":    func() { b.GatherRowsGrad(f(4, 3), f(2, 3), u(4, 0)) },
		"GatherRowsGrad of halves":  func() { b.GatherRowsGrad(f(4, 1), r.halves(1, 1, []float32{1}).tensor, u(0)) },
		"AddEdges columns":          func() { b.AddEdges(f(4, 2), f(4, 3), kernels.Tensor{}, u(0, 1), u(0, 1)) },
		"AddEdges from":             func() { b.AddEdges(f(4, 3), f(4, 3), kernels.Tensor{}, u(0, 1), u(0)) },
		"AddEdges weights":          func() { b.AddEdges(f(4, 3), f(4, 3), f(3, 1), u(0, 1), u(0, 1)) },
		"AddEdges outside":          func() { b.AddEdges(f(4, 3), f(5, 3), kernels.Tensor{}, u(0, 4), u(0, 1)) },
		"AddEdges from outside":     func() { b.AddEdges(f(5, 3), f(4, 3), kernels.Tensor{}, u(0, 4), u(0, 4)) },
		"ScatterRows columns":       func() { b.ScatterRows(f(4, 3), f(2, 2), u(0, 1)) },
		"ScatterRows ids":           func() { b.ScatterRows(f(4, 3), f(2, 3), u(0, 1, 2)) },
		"ScatterRows outside":       func() { b.ScatterRows(f(4, 3), f(2, 3), u(1, 4)) },
		"ScatterRows of halves":     func() { b.ScatterRows(f(4, 1), r.halves(1, 1, []float32{1}).tensor, u(0)) },
		"RowNorms":                  func() { b.RowNorms(f(2, 1), f(3, 4)) },
		"RowNorms of several norms": func() { b.RowNorms(f(3, 2), f(3, 4)) },
	})
	dst, dsrc, table, list := r.normal(2, 3), r.normal(4, 3), r.normal(4, 3), r.normal(2, 3)
	r.refusesUntouched([]func(){
		func() { b.GatherRows(dst.tensor, table.tensor, u(0, 4)) },
		func() { b.GatherRowsGrad(dsrc.tensor, list.tensor, u(0, 4)) },
		func() { b.AddEdges(dsrc.tensor, list.tensor, kernels.Tensor{}, u(0, 1), u(0, 2)) },
		func() { b.ScatterRows(table.tensor, list.tensor, u(0, 4)) },
	}, dst, dsrc, table, list)
}
