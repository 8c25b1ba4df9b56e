package kerneltest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// slotSizes are lists put together of computed rows and of slots, which may be wider: of none, of
// one, of one kind alone, around the widths of vectors, and large enough to be split.
var slotSizes = []struct{ list, rows, slots, cols, stride int }{
	{0, 0, 0, 3, 3}, {0, 2, 2, 3, 5}, {2, 1, 1, 0, 0}, {2, 1, 1, 0, 4}, {1, 1, 0, 1, 1}, {1, 0, 1, 1, 1}, {7, 3, 2, 7, 9}, {17, 9, 6, 16, 16},
	{19, 9, 6, 33, 48}, {300, 0, 1, 65, 65}, {6000, 500, 500, 1, 3}, {3000, 700, 90, 67, 96},
}

func testAssembleRows(r *rig) {
	for _, s := range slotSizes {
		for _, draw := range []func(int) []float32{r.normals, r.spread} {
			r.at("%d of %d and %d slots, %d columns of %d", s.list, s.rows, s.slots, s.cols, s.stride)
			from := make([]uint32, s.list)
			for i := range from {
				if n := r.rng.IntN(s.rows + s.slots); n < s.rows {
					from[i] = uint32(n)
				} else {
					from[i] = kernels.InSlot + uint32(n-s.rows)
				}
			}
			at, x, slots := r.uints(from), r.floats(s.rows, s.cols, draw(s.rows*s.cols)), r.halves(s.slots, s.stride, draw(s.slots*s.stride))
			dst := r.normal(s.list, s.cols)
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.AssembleRows(on(dst), on(x), on(slots), on(at))
			})
			r.close(0, dst)
			r.unchanged(x, slots, at)
			if s.slots == 0 {
				again := r.normal(s.list, s.cols)
				r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
					b.AssembleRows(on(again), on(x), kernels.Tensor{}, on(at))
				})
				r.close(0, again)
			}
		}
	}
}

func testRowsOf(r *rig) {
	for _, s := range slotSizes {
		r.at("%d of %d and %d that came, %d columns", s.list, s.rows, s.slots, s.cols)
		from := make([]uint32, s.list)
		for i := range from {
			if n := r.rng.IntN(s.rows + s.slots); n < s.rows {
				from[i] = uint32(n)
			} else {
				from[i] = kernels.InSlot + uint32(n-s.rows)
			}
		}
		at, lie, come := r.uints(from), r.spread(s.rows*s.cols), r.spread(s.slots*s.cols)
		bits := make([]uint16, 0, 2*len(lie)) // the floats of lie, as halves
		for _, v := range lie {
			b := math.Float32bits(v)
			bits = append(bits, uint16(b), uint16(b>>16))
		}
		for _, of := range []struct{ dst, hot, came operand }{
			{r.normal(s.list, s.cols), r.floats(s.rows, s.cols, lie), r.floats(s.slots, s.cols, come)},
			{r.normal(s.list, s.cols), r.halfBits(s.rows, 2*s.cols, bits), r.floats(s.slots, s.cols, come)},
			{
				r.halves(s.list, s.cols, r.normals(s.list*s.cols)), r.halves(s.rows, s.cols, lie),
				r.halves(s.slots, s.cols, come),
			},
		} {
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				hot, came := on(of.hot), on(of.came)
				if s.rows == 0 {
					hot = kernels.Tensor{}
				}
				if s.slots == 0 {
					came = kernels.Tensor{}
				}
				b.RowsOf(on(of.dst), hot, came, on(at))
			})
			if of.dst.tensor.Type == kernels.F16 {
				r.closeHalves(of.dst)
			} else {
				r.close(0, of.dst)
				all := r.download(of.dst)[of.dst.off:] // a NaN keeps its bits
				for i, v := range from {
					row := lie
					if v >= kernels.InSlot {
						row, v = come, v-kernels.InSlot
					}
					r.sameBits("row", row[int(v)*s.cols:][:s.cols], all[i*s.cols:][:s.cols])
				}
			}
			r.unchanged(of.hot, of.came, at)
		}
	}
}

func testKeepRows(r *rig) {
	for _, s := range tableSizes {
		list := min(s.list, s.table)
		r.at("%d of %d to %d, %d columns", list, s.list, s.table, s.cols)
		to := make([]uint32, list)
		for i, u := range r.rng.Perm(s.table)[:list] {
			to[i] = uint32(u)
		}
		from, into, come := r.pick(list, max(s.list, 1)), r.uints(to), r.spread(s.list*s.cols)
		for _, of := range []struct{ hot, came operand }{
			{r.normal(s.table, s.cols), r.floats(s.list, s.cols, come)},
			{r.halves(s.table, 2*s.cols, r.normals(2*s.table*s.cols)), r.floats(s.list, s.cols, come)},
			{r.halves(s.table, s.cols, r.normals(s.table*s.cols)), r.halves(s.list, s.cols, come)},
		} {
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.KeepRows(on(of.hot), on(of.came), on(from), on(into))
			})
			if of.hot.tensor.Type == kernels.F16 {
				r.closeHalves(of.hot)
			} else {
				r.close(0, of.hot)
			}
			r.unchanged(of.came, from, into)
		}
	}
	r.at("bits")
	come := r.spread(40)
	hot, came := r.halves(7, 16, make([]float32, 7*16)), r.floats(5, 8, come)
	order, again := r.uints([]uint32{4, 2, 0, 1, 3}), r.uints([]uint32{6, 0, 3, 1, 2})
	dst, at := r.normal(5, 8), r.uints([]uint32{3, 1, 0, 2, 6})
	r.b.KeepRows(hot.tensor, came.tensor, order.tensor, again.tensor)
	r.b.RowsOf(dst.tensor, hot.tensor, kernels.Tensor{}, at.tensor)
	r.sameBits("rows that came and went", come, r.download(dst)[dst.off:][:40])
}

// limits are values around those that float16 has for the largest and the smallest.
var limits = []float32{65504, 65519.99, 65520, -65519.99, -65520, 1e30, -1e30, 0x1p-24, 0x1p-25, -0x1p-26, 2049, 2051}

func testStoreRows(r *rig) {
	for _, s := range slotSizes {
		pairs := min(s.list, s.slots)
		if s.rows == 0 {
			pairs = 0
		}
		some, narrow := r.normals(s.rows*s.cols), r.normals(s.rows*s.cols)
		for i := 0; i < len(some); i += 1 + s.cols*3 {
			some[i] = limits[r.rng.IntN(len(limits))] // in some rows
		}
		for _, values := range [][]float32{narrow, some, r.spread(s.rows * s.cols)} {
			r.at("%d of %d to %d slots, %d columns of %d", pairs, s.rows, s.slots, s.cols, s.stride)
			from, into := make([]uint32, pairs), make([]uint32, pairs)
			for i, u := range r.rng.Perm(s.slots)[:pairs] {
				from[i], into[i] = r.rng.Uint32N(uint32(s.rows)), uint32(u)
			}
			rows, to, lost := r.uints(from), r.uints(into), r.ids(pairs)
			slots, x := r.halves(s.slots, s.stride, r.spread(s.slots*s.stride)), r.floats(s.rows, s.cols, values)
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.StoreRows(on(slots), on(lost), on(x), on(rows), on(to), kernels.Tensor{})
			})
			r.closeHalves(slots)
			r.closeUints(lost)
			r.unchanged(x, rows, to)
		}
	}
	r.at("by hand")
	x, slots, lost := r.floats(3, 2, []float32{1, -1e9, 65519, 0x1p-24, 3, 4}), r.halves(2, 3, make([]float32, 6)), r.uints([]uint32{7, 7})
	rows, to := r.uints([]uint32{1, 0}), r.uints([]uint32{0, 1})
	r.b.StoreRows(slots.tensor, lost.tensor, x.tensor, rows.tensor, to.tensor, kernels.Tensor{})
	require.Equal(r.t, []float32{65504, 0x1p-24, 0, 1, -65504, 0}, r.widened(slots)[slots.off:][:6])
	got := make([]uint32, 2)
	r.b.DownloadU32(got, lost.tensor)
	require.Equal(r.t, []uint32{0, 1}, got)
}

// testSlotRefusals has shapes that do not fit, and rows and slots that are not there. A refusal
// comes before the first row is written.
func testSlotRefusals(r *rig) {
	f := func(rows, cols int) kernels.Tensor { return r.normal(rows, cols).tensor }
	u := func(ids ...uint32) kernels.Tensor { return r.uints(ids).tensor }
	h := func(rows, cols int) kernels.Tensor { return r.halves(rows, cols, r.normals(rows*cols)).tensor }
	b, slot, none := r.b, uint32(kernels.InSlot), kernels.Tensor{}
	r.refuses(map[string]func(){
		"AssembleRows columns":           func() { b.AssembleRows(f(2, 3), f(4, 2), h(4, 3), u(0, 1)) },
		"AssembleRows narrow slots":      func() { b.AssembleRows(f(2, 3), f(4, 3), h(4, 2), u(0, 1)) },
		"AssembleRows at":                func() { b.AssembleRows(f(2, 3), f(4, 3), h(4, 3), u(0)) },
		"AssembleRows outside":           func() { b.AssembleRows(f(2, 3), f(4, 3), h(5, 3), u(0, 4)) },
		"AssembleRows outside slots":     func() { b.AssembleRows(f(2, 3), f(5, 3), h(4, 3), u(0, slot+4)) },
		"AssembleRows without slots":     func() { b.AssembleRows(f(2, 3), f(5, 3), kernels.Tensor{}, u(0, slot)) },
		"AssembleRows of halves":         func() { b.AssembleRows(f(2, 3), h(4, 3), h(4, 3), u(0, 1)) },
		"AssembleRows of floats in slot": func() { b.AssembleRows(f(2, 3), f(4, 3), f(4, 3), u(0, 1)) },
		"RowsOf hot columns":             func() { b.RowsOf(f(2, 3), f(4, 2), f(4, 3), u(0, 1)) },
		"RowsOf came columns":            func() { b.RowsOf(f(2, 3), f(4, 3), f(4, 2), u(0, 1)) },
		"RowsOf at":                      func() { b.RowsOf(f(2, 3), f(4, 3), f(4, 3), u(0)) },
		"RowsOf outside":                 func() { b.RowsOf(f(2, 3), f(4, 3), f(5, 3), u(0, 4)) },
		"RowsOf outside what came":       func() { b.RowsOf(f(2, 3), f(5, 3), f(4, 3), u(0, slot+4)) },
		"RowsOf nothing that came":       func() { b.RowsOf(f(2, 3), f(5, 3), none, u(0, slot)) },
		"RowsOf nothing that lies":       func() { b.RowsOf(f(2, 3), none, f(5, 3), u(slot, 0)) },
		"RowsOf of halves":               func() { b.RowsOf(f(2, 3), f(4, 3), h(4, 3), u(0, 1)) },
		"RowsOf halves of halves":        func() { b.RowsOf(h(2, 3), h(4, 6), h(4, 3), u(0, 1)) },
		"RowsOf halves that do not fit":  func() { b.RowsOf(f(2, 3), h(4, 3), f(4, 3), u(0, 1)) },
		"RowsOf halves of floats":        func() { b.RowsOf(h(2, 6), f(4, 3), h(4, 6), u(0, 1)) },
		"RowsOf of indices":              func() { b.RowsOf(u(1, 2), u(1, 2), u(1, 2), u(0, 1)) },
		"KeepRows columns":               func() { b.KeepRows(f(4, 3), f(2, 2), u(0, 1), u(0, 1)) },
		"KeepRows from":                  func() { b.KeepRows(f(4, 3), f(2, 3), u(0), u(0, 1)) },
		"KeepRows outside":               func() { b.KeepRows(f(4, 3), f(2, 3), u(0, 1), u(0, 4)) },
		"KeepRows of more than came":     func() { b.KeepRows(f(4, 3), f(2, 3), u(0, 2), u(0, 1)) },
		"KeepRows of halves":             func() { b.KeepRows(f(4, 3), h(2, 3), u(0, 1), u(0, 1)) },
		"KeepRows halves of halves":      func() { b.KeepRows(h(4, 6), h(2, 3), u(0, 1), u(0, 1)) },
		"KeepRows of indices":            func() { b.KeepRows(u(1, 2), u(1, 2), u(0), u(1)) },
		"StoreRows columns":              func() { b.StoreRows(h(4, 2), u(0, 0), f(4, 3), u(0, 1), u(0, 1), none) },
		"StoreRows rows":                 func() { b.StoreRows(h(4, 3), u(0, 0), f(4, 3), u(0), u(0, 1), none) },
		"StoreRows lost":                 func() { b.StoreRows(h(4, 3), u(0), f(4, 3), u(0, 1), u(0, 1), none) },
		"StoreRows outside":              func() { b.StoreRows(h(5, 3), u(0, 0), f(4, 3), u(0, 4), u(0, 1), none) },
		"StoreRows outside slots":        func() { b.StoreRows(h(4, 3), u(0, 0), f(5, 3), u(0, 1), u(0, 4), none) },
		"StoreRows to floats":            func() { b.StoreRows(f(4, 3), u(0, 0), f(4, 3), u(0, 1), u(0, 1), none) },
	})
	dst, slots, lost, x := r.normal(2, 3), r.halves(4, 3, r.normals(12)), r.uints([]uint32{7, 7}), r.normal(4, 3)
	r.refusesUntouched([]func(){
		func() { b.AssembleRows(dst.tensor, x.tensor, slots.tensor, u(0, slot+4)) },
		func() { b.StoreRows(slots.tensor, lost.tensor, x.tensor, u(0, 1), u(0, 4), none) },
		func() { b.RowsOf(dst.tensor, x.tensor, x.tensor, u(0, slot+4)) },
		func() { b.KeepRows(x.tensor, dst.tensor, u(0, 1), u(0, 4)) },
	}, dst, slots, lost, x)
}
