package kernels

import (
	"fmt"
	"testing"
)

// The sizes come from a training step: a hidden layer of 256 under some ten thousand sampled rows.

// BenchmarkMatMul has the three products of a layer, whose weights w are out×in.
// tools/bench/openblas.py times the same.
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
