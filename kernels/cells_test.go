package kernels

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCellSetsAgree(t *testing.T) {
	var f fence
	for _, n := range rowSizes() {
		x := withSpecials(floatsFrom(1, n), math.MaxFloat32, -math.MaxFloat32, 12, -0x1p-20)
		agree(t, &f, 1e-6, fmt.Sprintf("tanh of %d", n), func(r *routines, f *fence) [][]float32 {
			dst, src, dx, dy := lay(f, floatsFrom(2, n)), lay(f, x), lay(f, floatsFrom(3, n)), lay(f, floatsFrom(4, n))
			r.tanh(dst, src)
			r.tanhGrad(dx, dy, dst)
			return [][]float32{dst, src, dx, dy}
		})
		const rows = rowsPerTrial
		products := withSpecials(floatsFrom(5, 3*rows*n), 40, -40)
		agree(t, &f, 2e-6, fmt.Sprintf("gruCell, %d columns", n), func(r *routines, f *fence) [][]float32 {
			dst, gates := lay(f, floatsFrom(2, rows*n)), lay(f, floatsFrom(3, 3*rows*n))
			x, h, s := lay(f, products), lay(f, floatsFrom(4, 3*rows*n)), lay(f, floatsFrom(6, rows*n))
			r.gruCell(dst, gates, x, h, s, n)
			dx, dh, ds, dy := lay(f, floatsFrom(7, 3*rows*n)), lay(f, floatsFrom(8, 3*rows*n)), lay(f, floatsFrom(9, rows*n)), lay(f, floatsFrom(10, rows*n))
			r.gruCellGrad(dx, dh, ds, dy, gates, h, s, n)
			return [][]float32{dst, gates, x, h, s, dx, dh, ds, dy}
		})
	}
}

// TestCellsByHand has the values that a calculator gives: all weights 0.5, biases 0, input and
// state 1.
func TestCellsByHand(t *testing.T) {
	for _, set := range Sets() {
		r := routinesOf(set)
		dst, gates := make([]float32, 1), make([]float32, 3)
		r.gruCell(dst, gates, []float32{0.5, 0.5, 0.5}, []float32{0.5, 0.5, 0.5}, []float32{1}, 1)
		require.InDeltaSlice(t, []float32{0.7310586, 0.7310586, 0.6990955}, gates, 2e-7, set)
		require.InDelta(t, 0.9190743, dst[0], 2e-7, set)
		r.tanh(dst, []float32{1})
		require.InDelta(t, 0.7615942, dst[0], 2e-7, set)
	}
}

// TestStateStaysWithinBounds: a state of 1 and less stays so, whatever the gates are, or it would
// grow over millions of events.
func TestStateStaysWithinBounds(t *testing.T) {
	const rows, d = 4000, 33
	x, h, s := floatsFrom(1, 3*rows*d), floatsFrom(2, 3*rows*d), floatsFrom(3, rows*d)
	for i := range x {
		x[i] *= float32(i % 40)
	}
	for i := range s {
		s[i] = []float32{1, -1, 0.99999994, -0.99999994, 0}[i%5]
	}
	for _, set := range Sets() {
		r, dst, gates := routinesOf(set), make([]float32, rows*d), make([]float32, 3*rows*d)
		for range 3 {
			r.gruCell(dst, gates, x, h, s, d)
			for i, v := range dst {
				require.LessOrEqual(t, math.Abs(float64(v)), 1.0, "%s: element %d", set, i)
			}
			copy(s, dst)
		}
	}
}

// BenchmarkGRUCell has as many rows as a batch of 600 events with ten neighbours has distinct ones
// on a stream like Wikipedia's.
func BenchmarkGRUCell(b *testing.B) {
	const rows, d = 8000, 100
	c := NewCPU(CPUOptions{})
	f := func(seed uint64, cols int) Tensor { return tensorOf(c, rows, cols, floatsFrom(seed, rows*cols)) }
	dst, gates, x, h, s := f(1, d), f(2, 3*d), f(3, 3*d), f(4, 3*d), f(5, d)
	dx, dh, ds := f(6, 3*d), f(7, 3*d), f(8, d)
	b.Run("op=forward", func(b *testing.B) {
		for b.Loop() {
			c.GRUCell(dst, gates, x, h, s)
		}
		b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("op=backward", func(b *testing.B) {
		for b.Loop() {
			c.GRUCellGrad(dx, dh, ds, dst, gates, h, s)
		}
		b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}
