//go:build cuda && linux

package main

import (
	"fmt"
	"math"
	"math/bits"
)

// hop is one layer of a GraphSAGE step. hops are of a batch of 1,000 seeds at fanout 15, 10, 5.
type hop struct{ rows, fanout, sources int }

var hops = []hop{{130_000, 5, 500_000}, {14_000, 10, 130_000}, {1000, 15, 14_000}}

// timeKernels prints the rates of a step's kernels, compared with a copy on the device and with
// cuBLAS.
func timeKernels(o *options) error {
	t, err := newTrial(o)
	if err != nil {
		return err
	}
	rate := deviceCopyRate(t.d, t.s, o.size(1<<30, 1<<20))
	fmt.Printf("copy on the device: %.0f GB/s\n", rate)
	b := &bench{trial: t, o: o, watch: newStopwatch(t.d, t.s), copyRate: rate}
	for _, h := range hops {
		for _, cols := range []int{128, 256} {
			b.means(h, cols)
		}
	}
	b.updates(o.size(10_000_000, 10_000))
	b.dropout(o.size(130_000, 130), 256)
	var library *cublas
	if o.cublas != "" {
		if library, err = openCublas(t.d, o.cublas, t.s); err != nil {
			t.add("%w", err)
		}
	}
	for _, m := range []int{130_000, 14_000, 1000} {
		b.products(library, o.size(m, m/1000), 256, 256)
	}
	return t.err()
}

// bench times launches.
type bench struct {
	*trial
	o        *options
	watch    *stopwatch
	copyRate float64
}

// time returns the milliseconds of one run of work. Ten runs are timed together, so that the events
// cost little.
func (b *bench) time(work func()) float64 {
	launches := b.o.size(10, 1)
	took := b.watch.median(b.o.size(11, 1), func() {
		for range launches {
			work()
		}
	})
	return took / float64(launches)
}

// show prints the time of a kernel that moves this many bytes, and its rate.
func (b *bench) show(what string, bytes int, took float64) {
	rate := gigabytes(bytes, took)
	fmt.Printf("%s: %.4f ms, %.0f GB/s, %.0f %% of the copy\n", what, took, rate, 100*rate/b.copyRate)
}

func (b *bench) means(h hop, cols int) {
	rows, sources := b.o.size(h.rows, h.rows/1000), b.o.size(h.sources, h.sources/1000)
	l := b.newLists(rows, sources, func() int { return h.fanout })
	edges := len(l.neighbours)
	place := make([]uint32, sources)
	for i, p := range b.rng.Perm(sources) {
		place[i] = uint32(p)
	}
	resident := sources / 2
	dPlace := up(b.trial, place)
	halves := b.d.alloc(sources * cols * 2)
	b.d.fill(halves, 0x3c00_3a66, sources*cols/2, b.s) // 1.0 and 0.8
	dst, grad := b.d.alloc(rows*cols*4), b.d.alloc(sources*cols*4)
	b.d.fill(grad, 0, sources*cols, b.s)
	slot := halves + address(resident*cols*2)
	what := fmt.Sprintf("%d rows, fanout %d, of %d, %d columns", rows, h.fanout, sources, cols)

	bytes := edges*(cols*2+8) + rows*(cols*4+8)
	args := []any{dst, halves, slot, dPlace, l.dStart, l.dEnd, l.dNeighbours, uint32(rows),
		uint32(cols), uint32(resident)}
	b.show("gather_mean_half, "+what, bytes, b.time(func() {
		b.kernels["gather_mean_half"].launch(blocksFor(rows, 32), 1, 256, b.s, args...)
	}))
	shift := min(5, bits.Len(uint(cols/8))-1)
	split := append(args, uint32(shift))
	b.show(fmt.Sprintf("gather_mean_half_split by %d, %s", 1<<shift, what), bytes, b.time(func() {
		b.kernels["gather_mean_half_split"].launch(blocksFor(rows, 1<<shift), 1, 256, b.s, split...)
	}))
	bytes = edges*(cols*4+12) + sources*(cols*8+8)
	b.show("mean_grad, "+what, bytes, b.time(func() {
		b.kernels["mean_grad"].launch(blocksFor(sources, 32), 1, 256, b.s, grad, dst, l.dReverseStart,
			l.dReverse, l.dStart, l.dEnd, uint32(sources), uint32(cols))
	}))
	for _, a := range []address{dPlace, halves, dst, grad, l.dStart, l.dEnd, l.dNeighbours,
		l.dReverseStart, l.dReverse} {
		b.d.freeMemory(a)
	}
}

// updates times Adam and the norm over n parameters.
func (b *bench) updates(n int) {
	var buffers [4]address
	for i := range buffers {
		buffers[i] = b.d.alloc(4 * n)
		b.d.fill(buffers[i], 0x3c23_d70a, n, b.s) // 0.01
	}
	rates := up(b.trial, []float32{1e-3, 0.9, 0.999, 1e-8, 0, 0.5, 0.5})
	bad, clip := up(b.trial, []uint32{0}), up(b.trial, []float32{1})
	for _, blocks := range []int{528, 1056, 4224, (n + 255) / 256} {
		b.show(fmt.Sprintf("adam, %d parameters, %d blocks", n, blocks), 8*4*n, b.time(func() {
			b.kernels["adam"].launch(blocks, 1, 256, b.s, buffers[0], buffers[1], buffers[2],
				buffers[3], uint64(n), rates, bad, clip)
		}))
	}
	for _, blocks := range []int{264, 1056} {
		parts, sum := b.d.alloc(8*blocks), b.d.alloc(8)
		b.show(fmt.Sprintf("sumsq and total, %d values, %d blocks", n, blocks), 4*n, b.time(func() {
			b.kernels["sumsq"].launch(blocks, 1, 256, b.s, parts, buffers[0], uint64(n))
			b.kernels["total"].launch(1, 1, 256, b.s, sum, parts, uint32(blocks))
		}))
	}
}

func (b *bench) dropout(rows, cols int) {
	ids := make([]uint32, rows)
	for i := range ids {
		ids[i] = b.rng.Uint32()
	}
	src, dst, dIDs := b.d.alloc(4*rows*cols), b.d.alloc(4*rows*cols), up(b.trial, ids)
	b.d.fill(src, 0x3f80_0000, rows*cols, b.s)
	bytes := rows * (cols*8 + 4)
	b.show(fmt.Sprintf("dropout, %d × %d", rows, cols), bytes, b.time(func() {
		b.kernels["dropout"].launch(1056, 1, 256, b.s, dst, src, dIDs, uint64(rows), uint32(cols),
			uint64(1), uint32(32768), float32(2))
	}))
}

// products times our kernels and cuBLAS's, and compares part of their results.
func (b *bench) products(library *cublas, m, n, k int) {
	t := b.trial
	dA, dB := up(t, t.normals(m*k)), up(t, t.normals(n*k))
	ours, theirs := b.d.alloc(4*m*n), b.d.alloc(4*m*n)
	work := 2 * float64(m) * float64(n) * float64(k)
	reference := 0.0 // of the last library way below, which computes in f32
	show := func(what string, took float64) float64 {
		rate := work / took / 1e9
		fmt.Printf("%s, %d × %d × %d: %.4f ms, %.2f TFLOP/s", what, m, n, k, took, rate)
		return rate
	}
	if library != nil {
		for _, way := range []struct {
			name string
			run  func() error
		}{
			{"cublasSgemm", func() error { return library.multiplyPlain(theirs, dA, dB, m, n, k) }},
			{"cublasGemmEx TF32", func() error {
				return library.multiply(theirs, dA, dB, m, n, k, computeFastTF32)
			}},
			{"cublasGemmEx f32", func() error {
				return library.multiply(theirs, dA, dB, m, n, k, compute32)
			}},
		} {
			var failed error
			took := b.time(func() {
				if err := way.run(); err != nil {
					failed = err
				}
			})
			if reference = 0; failed != nil {
				b.add("%s: %w", way.name, failed)
				continue
			}
			reference = show(way.name, took)
			fmt.Println()
		}
	}
	gridX, gridY := (n+127)/128, (m+127)/128
	for _, name := range []string{"gemm_v", "affine_f32"} {
		args := []any{ours, dA, dB, uint32(m), uint32(n), uint32(k)}
		if name == "affine_f32" {
			args = []any{ours, dA, dB, address(0), uint32(m), uint32(n), uint32(k), uint32(0)}
		}
		rate := show(name, b.time(func() { b.kernels[name].launch(gridX, gridY, 256, b.s, args...) }))
		if reference != 0 {
			fmt.Printf(", %.0f %% of cuBLAS in f32", 100*rate/reference)
		}
		fmt.Println()
		if reference != 0 {
			b.compareHeads(name, ours, theirs, min(m*n, 1<<16), k)
		}
	}
	for _, a := range []address{dA, dB, ours, theirs} {
		b.d.freeMemory(a)
	}
}

// compareHeads compares the first n results of two products.
func (b *bench) compareHeads(name string, ours, theirs address, n, k int) {
	read := func(from address) []float32 {
		a := newArena(4 * n)
		b.d.download(addressOf(a.bytes), from, 4*n, b.s)
		b.d.syncStream(b.s)
		return cast[float32](a.bytes)
	}
	got, want := read(ours), read(theirs)
	var most float64
	for i := range got {
		diff := math.Abs(float64(got[i]) - float64(want[i]))
		if !(diff <= most) {
			most = diff
		}
	}
	if !(most <= 1e-6*float64(k)) {
		b.add("%s and cuBLAS differ by %v", name, most)
	}
}
