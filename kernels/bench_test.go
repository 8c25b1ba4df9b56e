package kernels

import (
	"fmt"
	"math/rand/v2"
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

// BenchmarkNeighborMean counts the bytes of the rows that are read. table=warm fits in the second-level cache, table=cold in
// none, so that its rows come from memory.
func BenchmarkNeighborMean(b *testing.B) {
	const dsts, degree, cols = 4096, 10, 128
	for _, table := range []struct {
		name string
		rows int
	}{{"warm", 2000}, {"cold", 400_000}} {
		rng := rand.New(rand.NewPCG(1, 2))
		start, end, nbr := make([]uint32, dsts), make([]uint32, dsts), make([]uint32, dsts*degree)
		for i := range start {
			start[i], end[i] = uint32(i*degree), uint32(i*degree+degree)
		}
		for i := range nbr {
			nbr[i] = rng.Uint32N(uint32(table.rows))
		}
		for _, dtype := range []DType{F16, F32} {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("dtype=%v/cols=%d/degree=%d/table=%s/threads=%d", dtype, cols, degree, table.name, threads), func(b *testing.B) {
					c := NewCPU(CPUOptions{Threads: threads})
					column := func(values []uint32) Tensor {
						t := Tensor{Buf: c.Alloc(U32, len(values)), Type: U32, Rows: len(values), Cols: 1}
						c.UploadU32(t, values)
						return t
					}
					src := Tensor{Buf: c.Alloc(dtype, table.rows*cols), Type: dtype, Rows: table.rows, Cols: cols}
					defer c.Free(src.Buf)
					row, wide := make([]uint16, cols), floatsFrom(1, cols)
					Float32ToHalf(row, wide)
					for r := range table.rows {
						if dtype == F16 {
							c.UploadHalf(src.Slice(r, r+1), row)
						} else {
							c.UploadF32(src.Slice(r, r+1), wide)
						}
					}
					dst := Tensor{Buf: c.Alloc(F32, dsts*cols), Rows: dsts, Cols: cols}
					g := Adjacency{Start: column(start), End: column(end), Nbr: column(nbr)}
					size := 4
					if dtype == F16 {
						size = 2
					}
					b.SetBytes(int64(size * dsts * degree * cols))
					for b.Loop() {
						c.NeighborMean(dst, src, g)
					}
					b.ReportMetric(float64(dsts*degree)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
				})
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
