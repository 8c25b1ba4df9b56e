//go:build cuda && linux

package main

import (
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/kernels"
)

// checkKernels compares every kernel with a plain loop.
func checkKernels(o *options) error {
	t, err := newTrial(o)
	if err != nil {
		return err
	}
	for _, cols := range []int{8, 24, 128, 264} {
		checkMean(t, o.size(1003, 103), 777, cols)
	}
	for _, heads := range []int{1, 3, 8} {
		checkSoftmax(t, o.size(1003, 103), 777, heads)
	}
	for _, shape := range [][3]int{{1003, 259, 264}, {1, 1, 8}, {129, 127, 16}, {128, 128, 256}} {
		checkProduct(t, o.size(shape[0], min(shape[0], 131)), shape[1], shape[2])
	}
	checkAdam(t, o.size(1_000_003, 10_003))
	checkSquares(t, o.size(10_000_019, 100_019))
	for _, cols := range []int{1, 37, 256} {
		checkDropout(t, o.size(1003, 103), cols)
	}
	checkTimes(t, o.size(10_007, 107), 37)
	checkHalves(t)
	return t.err()
}

// randomLength draws the length of a list. A quarter of the lists are empty, and a few are longer
// than a warp.
func (t *trial) randomLength() int {
	if t.rng.IntN(4) == 0 {
		return 0
	}
	if t.rng.IntN(20) == 0 {
		return 30 + t.rng.IntN(70)
	}
	return 1 + t.rng.IntN(15)
}

func checkMean(t *trial, rows, sources, cols int) {
	l := t.newLists(rows, sources, t.randomLength)
	halves := make([]uint16, sources*cols)
	kernels.Float32ToHalf(halves, t.normals(len(halves)))
	wide := make([]float32, len(halves))
	kernels.HalfToFloat32(wide, halves)
	resident := sources / 3
	place := make([]uint32, sources) // row of each input
	for i, p := range t.rng.Perm(sources) {
		place[i] = uint32(p)
	}
	want := make([]float32, rows*cols)
	for i := range rows {
		list := l.neighbours[l.start[i]:l.end[i]]
		inverse := float32(0)
		if len(list) > 0 {
			inverse = 1 / float32(len(list))
		}
		for c := range cols {
			var sum float32
			for _, u := range list {
				sum += wide[int(place[u])*cols+c]
			}
			want[i*cols+c] = sum * inverse
		}
	}
	dResident, dSlot := up(t, halves[:resident*cols]), up(t, halves[resident*cols:])
	dPlace := up(t, place)
	dst := t.output(rows * cols)
	what := fmt.Sprintf("gather_mean_half, %d columns", cols)
	got := twice(t, what, func() []float32 {
		t.poison(dst, rows*cols)
		t.kernels["gather_mean_half"].launch(blocksFor(rows, 32), 1, 256, t.s, dst, dResident, dSlot,
			dPlace, l.dStart, l.dEnd, l.dNeighbours, uint32(rows), uint32(cols), uint32(resident))
		return result[float32](t, what, dst, rows*cols)
	})
	t.equal(what, got, want)
	for _, shift := range []int{0, 2, 4, 5} {
		what := fmt.Sprintf("gather_mean_half_split, %d columns, %d lanes", cols, 1<<shift)
		t.poison(dst, rows*cols)
		t.kernels["gather_mean_half_split"].launch(blocksFor(rows, 1<<shift), 1, 256, t.s, dst,
			dResident, dSlot, dPlace, l.dStart, l.dEnd, l.dNeighbours, uint32(rows), uint32(cols),
			uint32(resident), uint32(shift))
		t.equal(what, result[float32](t, what, dst, rows*cols), want)
	}
	checkMeanGrad(t, l, cols)
}

func checkMeanGrad(t *trial, l *lists, cols int) {
	before, grad := t.normals(l.sources*cols), t.normals(l.rows*cols)
	want := make([]float64, len(before))
	for i, v := range before {
		want[i] = float64(v)
	}
	for i := range l.rows {
		list := l.neighbours[l.start[i]:l.end[i]]
		for _, u := range list {
			for c := range cols {
				want[int(u)*cols+c] += float64(grad[i*cols+c]) / float64(len(list))
			}
		}
	}
	dGrad, dst := up(t, grad), t.output(len(before))
	what := fmt.Sprintf("mean_grad, %d columns", cols)
	got := twice(t, what, func() []float32 {
		put(t, dst, before)
		t.kernels["mean_grad"].launch(blocksFor(l.sources, 32), 1, 256, t.s, dst, dGrad,
			l.dReverseStart, l.dReverse, l.dStart, l.dEnd, uint32(l.sources), uint32(cols))
		return result[float32](t, what, dst, len(before))
	})
	t.compare(what, got, want, 2e-6)
}

func checkSoftmax(t *trial, rows, sources, heads int) {
	l := t.newLists(rows, sources, t.randomLength)
	source, own := t.normals(sources*heads), t.normals(rows*heads)
	const slope = float32(0.2)
	want := make([]float64, len(l.neighbours)*heads)
	for i := range rows {
		for h := range heads {
			var sum float64
			for e := l.start[i]; e < l.end[i]; e++ {
				x := float64(source[int(l.neighbours[e])*heads+h]) + float64(own[i*heads+h])
				if x < 0 {
					x *= float64(slope)
				}
				want[int(e)*heads+h] = math.Exp(x)
				sum += math.Exp(x)
			}
			for e := l.start[i]; e < l.end[i]; e++ {
				want[int(e)*heads+h] /= sum
			}
		}
	}
	dSource, dOwn, dst := up(t, source), up(t, own), t.output(len(want))
	what := fmt.Sprintf("edge_softmax, %d heads", heads)
	got := twice(t, what, func() []float32 {
		t.poison(dst, len(want))
		t.kernels["edge_softmax"].launch(blocksFor(rows, 32), 1, 256, t.s, dst, dSource, dOwn, l.dStart,
			l.dEnd, l.dNeighbours, uint32(rows), uint32(heads), slope)
		return result[float32](t, what, dst, len(want))
	})
	t.compare(what, got, want, 1e-6)
}

// checkProduct checks the product of an m × k matrix and the transpose of an n × k matrix.
func checkProduct(t *trial, m, n, k int) {
	a, b, bias := t.normals(m*k), t.normals(n*k), t.normals(n)
	plain, affine := make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		for j := range n {
			var sum float64
			for p := range k {
				sum += float64(a[i*k+p]) * float64(b[j*k+p])
			}
			plain[i*n+j] = sum
			affine[i*n+j] = max(0, sum+float64(bias[j]))
		}
	}
	dA, dB, dBias, dst := up(t, a), up(t, b), up(t, bias), t.output(m*n)
	gridX, gridY := (n+127)/128, (m+127)/128
	what := fmt.Sprintf("gemm_v, %d × %d × %d", m, n, k)
	got := twice(t, what, func() []float32 {
		t.poison(dst, m*n)
		t.kernels["gemm_v"].launch(gridX, gridY, 256, t.s, dst, dA, dB, uint32(m), uint32(n), uint32(k))
		return result[float32](t, what, dst, m*n)
	})
	t.compare(what, got, plain, 4e-7*float64(k))
	what = fmt.Sprintf("affine_f32 with bias and ReLU, %d × %d × %d", m, n, k)
	got = twice(t, what, func() []float32 {
		t.poison(dst, m*n)
		t.kernels["affine_f32"].launch(gridX, gridY, 256, t.s, dst, dA, dB, dBias, uint32(m), uint32(n),
			uint32(k), uint32(1))
		return result[float32](t, what, dst, m*n)
	})
	t.compare(what, got, affine, 4e-7*float64(k))
}

func checkAdam(t *trial, n int) {
	param, grad, first, second := t.normals(n), t.normals(n), t.normals(n), t.normals(n)
	for i := range second {
		second[i] *= second[i]
	}
	const clip = 0.25
	rates := []float32{1e-2, 0.9, 0.999, 1e-8, 1e-3, 0.271, 0.0029955}
	r := make([]float64, len(rates))
	for i := range rates {
		r[i] = float64(rates[i])
	}
	wantParam, wantFirst := make([]float64, n), make([]float64, n)
	wantSecond := make([]float64, n)
	for i := range n {
		g := float64(grad[i])*clip + r[4]*float64(param[i])
		m := r[1]*float64(first[i]) + (1-r[1])*g
		v := r[2]*float64(second[i]) + (1-r[2])*g*g
		wantFirst[i], wantSecond[i] = m, v
		wantParam[i] = float64(param[i]) - r[0]*(m/r[5])/(math.Sqrt(v/r[6])+r[3])
	}
	dRates, dClip := up(t, rates), up(t, []float32{clip})
	buffers := [4]address{t.output(n), t.output(n), t.output(n), t.output(n)}
	run := func(void uint32) [4][]float32 {
		bad := up(t, []uint32{void})
		var got [4][]float32
		for i, data := range [][]float32{param, grad, first, second} {
			put(t, buffers[i], data)
		}
		t.kernels["adam"].launch(1056, 1, 256, t.s, buffers[0], buffers[1], buffers[2], buffers[3],
			uint64(n), dRates, bad, dClip)
		for i := range got {
			got[i] = result[float32](t, "adam", buffers[i], n)
		}
		return got
	}
	var moments [4][]float32
	got := twice(t, "adam", func() []float32 {
		moments = run(0)
		return moments[0]
	})
	t.compare("adam, parameters", got, wantParam, 2e-6)
	t.compare("adam, first moments", moments[2], wantFirst, 1e-6)
	t.compare("adam, second moments", moments[3], wantSecond, 1e-6)
	zero := make([]float32, n)
	t.equal("adam, gradients", moments[1], zero)
	void := run(1)
	t.equal("adam of a void step, parameters", void[0], param)
	t.equal("adam of a void step, gradients", void[1], zero)
}

func checkSquares(t *trial, n int) {
	x := t.normals(n)
	var want float64
	for _, v := range x {
		want += float64(v) * float64(v)
	}
	const blocks = 264
	dX, parts, sum := up(t, x), t.d.alloc(8*blocks), t.output(2)
	run := func() float64 {
		t.poison(sum, 2)
		t.kernels["sumsq"].launch(blocks, 1, 256, t.s, parts, dX, uint64(n))
		t.kernels["total"].launch(1, 1, 256, t.s, sum, parts, uint32(blocks))
		return result[float64](t, "sumsq", sum, 2)[0]
	}
	got, again := run(), run()
	fmt.Printf("sumsq: %d values, relative error %.3g\n", n, math.Abs(got-want)/want)
	if math.Float64bits(got) != math.Float64bits(again) {
		t.add("sumsq: %v, then %v", got, again)
	}
	if !(math.Abs(got-want) <= 1e-12*want) {
		t.add("sumsq: %v, want %v", got, want)
	}
}

func checkDropout(t *trial, rows, cols int) {
	src, ids := t.normals(rows*cols), make([]uint32, rows)
	for i := range ids {
		ids[i] = t.rng.Uint32()
	}
	const key, p = 0x9876_5432_10ab_cdef, 0.3
	threshold := uint32(math.Round(p * 65536))
	factor := float32(65536 / float64(65536-threshold))
	want := make([]float32, len(src))
	kernels.Dropout(want, src, ids, cols, key, p)
	dSrc, dIDs, dst := up(t, src), up(t, ids), t.output(len(src))
	what := fmt.Sprintf("dropout, %d columns", cols)
	got := twice(t, what, func() []float32 {
		t.poison(dst, len(src))
		t.kernels["dropout"].launch(264, 1, 256, t.s, dst, dSrc, dIDs, uint64(rows), uint32(cols),
			uint64(key), threshold, factor)
		return result[float32](t, what, dst, len(src))
	})
	t.equal(what, got, want)
}

// checkTimes checks the encoding of times from 1970 to now in seconds, at rates from one a second
// down.
func checkTimes(t *trial, rows, cols int) {
	times, w, b := make([]float32, 2*rows), make([]float32, cols), t.normals(cols)
	for i := range rows {
		times[2*i], times[2*i+1] = kernels.SplitTime(t.rng.Float64() * 1.8e9)
	}
	for c := range w {
		w[c] = float32(math.Pow(10, -9*float64(c)/float64(cols-1)))
	}
	want := make([]float64, rows*cols)
	for i := range rows {
		when := float64(times[2*i]) + float64(times[2*i+1])
		for c := range cols {
			want[i*cols+c] = math.Cos(math.FMA(when, float64(w[c]), float64(b[c])))
		}
	}
	dTimes, dW, dB, dst := up(t, times), up(t, w), up(t, b), t.output(len(want))
	got := twice(t, "time_encode", func() []float32 {
		t.poison(dst, len(want))
		t.kernels["time_encode"].launch(264, 1, 256, t.s, dst, dTimes, dW, dB, uint64(rows), uint32(cols))
		return result[float32](t, "time_encode", dst, len(want))
	})
	t.compare("time_encode", got, want, 3e-7)
}

// checkHalves checks the conversion of all halves, and of the floats midway between two halves and
// right beside that.
func checkHalves(t *trial) {
	halves := make([]uint16, 1<<16)
	for i := range halves {
		halves[i] = uint16(i)
	}
	want := make([]float32, len(halves))
	kernels.HalfToFloat32(want, halves)
	dst := t.output(len(halves))
	got := twice(t, "widen", func() []float32 {
		t.poison(dst, len(halves))
		t.kernels["widen"].launch(64, 1, 256, t.s, dst, up(t, halves), uint64(len(halves)))
		return result[float32](t, "widen", dst, len(halves))
	})
	t.equal("widen", got, want)

	floats := append([]float32{}, want...)
	for i := range len(want) - 1 {
		middle := (want[i] + want[i+1]) / 2
		floats = append(floats, middle, math.Nextafter32(middle, float32(math.Inf(1))),
			math.Nextafter32(middle, float32(math.Inf(-1))))
	}
	floats = append(floats, 65504, 65519.996, 65520, 65536, 1e30, 0x1p-25, 0x1.000002p-25, 1e-30)
	for len(floats)%2 != 0 {
		floats = append(floats, 0)
	}
	wantHalves := make([]uint16, len(floats))
	kernels.Float32ToHalf(wantHalves, floats)
	narrow := t.output(len(floats) / 2)
	t.kernels["narrow"].launch(64, 1, 256, t.s, narrow, up(t, floats), uint64(len(floats)))
	gotHalves := result[uint16](t, "narrow", narrow, len(floats)/2)
	isNaN := func(h uint16) bool { return h&0x7fff > 0x7c00 }
	other := 0
	for i, h := range wantHalves {
		if gotHalves[i] != h && !(isNaN(gotHalves[i]) && isNaN(h)) {
			if other == 0 {
				t.add("narrow: %v becomes %#x, want %#x", floats[i], gotHalves[i], h)
			}
			other++
		}
	}
	fmt.Printf("narrow: %d values, %d other than the reference's\n", len(floats), other)
}
