package kernels

import (
	"fmt"
	"testing"
)

// The sizes are those of a training step: a hidden layer of 256 under some ten thousand sampled rows.

// BenchmarkMatMul has the three products of a layer, whose weights w are out×in. tools/bench/openblas.py times the same.
func BenchmarkMatMul(b *testing.B) {
	for _, shape := range []struct{ rows, in, out int }{{8192, 256, 256}, {65536, 128, 256}, {8192, 40, 256}, {8192, 256, 40}, {16, 256, 256}} {
		rows, in, out := shape.rows, shape.in, shape.out
		for _, set := range Sets() {
			for _, threads := range []int{1, 2} {
				c := NewCPU(CPUOptions{Threads: threads, Set: set})
				x, w, y := tensorOf(c, rows, in, floatsFrom(1, rows*in)), tensorOf(c, out, in, floatsFrom(2, in*out)), tensorOf(c, rows, out, floatsFrom(3, rows*out))
				for _, product := range []struct {
					name string
					run  func()
				}{
					{"x·wT", func() { c.MatMul(y, x, w, false, true, false) }},
					{"dy·w", func() { c.MatMul(x, y, w, false, false, false) }},
					{"dyT·x", func() { c.MatMul(w, y, x, true, false, false) }},
				} {
					b.Run(fmt.Sprintf("product=%s/rows=%d/in=%d/out=%d/set=%s/threads=%d", product.name, rows, in, out, set, threads), func(b *testing.B) {
						b.SetBytes(int64(4 * (rows*in + in*out + rows*out)))
						for b.Loop() {
							product.run()
						}
						b.ReportMetric(2*float64(rows*in*out)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
					})
				}
			}
		}
	}
}

func BenchmarkHalfToFloat32(b *testing.B) {
	for _, n := range []int{4096, 1 << 22} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			src, dst := make([]uint16, n), make([]float32, n)
			Float32ToHalf(src, floatsFrom(1, n))
			b.SetBytes(int64(2 * n))
			for b.Loop() {
				HalfToFloat32(dst, src)
			}
		})
	}
}

func BenchmarkFloat32ToHalf(b *testing.B) {
	const n = 4096
	b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
		src, dst := floatsFrom(1, n), make([]uint16, n)
		b.SetBytes(4 * n)
		for b.Loop() {
			Float32ToHalf(dst, src)
		}
	})
}

func BenchmarkDropout(b *testing.B) {
	const rows, cols = 64, 256
	b.Run(fmt.Sprintf("rows=%d/cols=%d", rows, cols), func(b *testing.B) {
		src, dst, ids := floatsFrom(1, rows*cols), make([]float32, rows*cols), make([]uint32, rows)
		for i := range ids {
			ids[i] = uint32(i * 977)
		}
		b.SetBytes(4 * rows * cols)
		for b.Loop() {
			Dropout(dst, src, ids, cols, 42, 0.5)
		}
	})
}

func BenchmarkReLUGrad(b *testing.B) {
	const n = 16384
	b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
		dx, dy, y := make([]float32, n), floatsFrom(1, n), floatsFrom(2, n)
		b.SetBytes(4 * n)
		for b.Loop() {
			ReLUGrad(dx, dy, y)
		}
	})
}

func BenchmarkLayerNorm(b *testing.B) {
	const rows, cols = 64, 256
	x, y, dx := floatsFrom(1, rows*cols), make([]float32, rows*cols), make([]float32, rows*cols)
	stats, gain, bias := make([]float32, 2*rows), floatsFrom(2, cols), floatsFrom(3, cols)
	b.Run(fmt.Sprintf("pass=forward/rows=%d/cols=%d", rows, cols), func(b *testing.B) {
		b.SetBytes(4 * rows * cols)
		for b.Loop() {
			LayerNorm(y, stats, x, gain, bias, 1e-5)
		}
	})
	b.Run(fmt.Sprintf("pass=backward/rows=%d/cols=%d", rows, cols), func(b *testing.B) {
		dgain, dbias := make([]float32, cols), make([]float32, cols)
		b.SetBytes(4 * rows * cols)
		for b.Loop() {
			LayerNormGrad(dx, dgain, dbias, y, x, stats, gain)
		}
	})
}
