package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSigmoidCrossEntropyGradient takes the sum of the losses, scaled, as the objective.
func TestSigmoidCrossEntropyGradient(t *testing.T) {
	g := newGradCheck(t)
	const scale = 0.5
	nan := math.NaN()
	x, targets := g.normal(3, 4), g.zeros(3, 4)
	g.r.UploadF64(targets, []float64{0, 1, nan, 0.25, nan, nan, nan, nan, 1, 1, 0, 0})
	loss, dlogits := g.zeros(3, 1), g.zeros(3, 4)
	forward := func() {
		g.r.SigmoidCrossEntropy(loss, dlogits, x, targets, scale)
		g.r.Scale(loss, scale)
	}
	g.check("SigmoidCrossEntropy", x, loss, forward, func(dx, weights Tensor) {
		g.r.ScaleRows(dlogits, weights)
		g.r.Add(dx, dlogits)
	})
}

func TestSigmoidCrossEntropyOfKnownValues(t *testing.T) {
	loss, d := make([]float32, 3), make([]float32, 6)
	nan := float32(math.NaN())
	SigmoidCrossEntropy(loss, d, []float32{0, 0, 100, -100, nan, 7}, []float32{0, 1, 1, 0, nan, nan}, 2, 3)
	require.Equal(t, []float32{float32(2 * math.Ln2), 0, 0}, loss, "a row without targets has no loss, whatever its logits")
	require.InDeltaSlice(t, []float32{1.5, -1.5, 0, 0, 0, 0}, d, 1e-7)
}

// TestSquaredErrorGradient takes the sum of the losses, scaled, as the objective.
func TestSquaredErrorGradient(t *testing.T) {
	g := newGradCheck(t)
	const scale = 0.5
	nan := math.NaN()
	x, targets := g.normal(3, 4), g.zeros(3, 4)
	g.r.UploadF64(targets, []float64{0, 3, nan, 0.25, nan, nan, nan, nan, -1, 1, 7, 0})
	loss, d := g.zeros(3, 1), g.zeros(3, 4)
	forward := func() {
		g.r.SquaredError(loss, d, x, targets, scale)
		g.r.Scale(loss, scale)
	}
	g.check("SquaredError", x, loss, forward, func(dx, weights Tensor) {
		g.r.ScaleRows(d, weights)
		g.r.Add(dx, d)
	})
}

func TestSquaredErrorOfKnownValues(t *testing.T) {
	loss, d := make([]float32, 2), make([]float32, 4)
	nan := float32(math.NaN())
	SquaredError(loss, d, []float32{1, 5, nan, 7}, []float32{3, 4.5, nan, nan}, 2, 3)
	require.Equal(t, []float32{4.25, 0}, loss, "a row without targets has no loss, whatever is predicted")
	require.Equal(t, []float32{-12, 3, 0, 0}, d)
}

// TestScalingThreadsGiveTheSameBits: sums of more chunks than there are threads.
func TestScalingThreadsGiveTheSameBits(t *testing.T) {
	const rows, cols = 2003, 67
	values := floatsFrom(1, rows*cols)
	var want [][]float32
	for _, threads := range []int{1, 2, 7} {
		c := NewCPU(CPUOptions{Threads: threads})
		x, sum, loss, d := tensorOf(c, rows, cols, values), tensorOf(c, 1, 1, []float32{0}), tensorOf(c, rows, 1, make([]float32, rows)), tensorOf(c, rows, cols, values)
		c.SumSquares(sum, x)
		targets := tensorOf(c, rows, cols, make([]float32, rows*cols))
		c.SigmoidCrossEntropy(loss, d, x, targets, 0.1)
		c.ScaleRows(d, loss)
		c.Scale(d, 3)
		got := [][]float32{valuesOf(c, sum), valuesOf(c, loss), valuesOf(c, d)}
		if want == nil {
			want = got
		}
		require.Equal(t, want, got, "threads=%d", threads)
	}
}

func BenchmarkSigmoidCrossEntropy(b *testing.B) {
	const rows, cols = 1000, 112 // a batch of ogbn-proteins
	x, y, d, loss := floatsFrom(1, rows*cols), make([]float32, rows*cols), make([]float32, rows*cols), make([]float32, rows)
	b.Run("rows=1000/cols=112", func(b *testing.B) {
		b.SetBytes(4 * rows * cols)
		for b.Loop() {
			SigmoidCrossEntropy(loss, d, x, y, cols, 1e-3)
		}
	})
}

func BenchmarkSumSquares(b *testing.B) {
	const n = 256 * 256
	x := floatsFrom(1, n)
	b.Run("n=65536", func(b *testing.B) {
		b.SetBytes(4 * n)
		for b.Loop() {
			SumSquares(x)
		}
	})
}
