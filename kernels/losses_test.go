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
		x, loss, d := tensorOf(c, rows, cols, values), tensorOf(c, rows, 1, make([]float32, rows)), tensorOf(c, rows, cols, values)
		sum, factor := tensorOf(c, 1, 1, []float32{0}), tensorOf(c, 1, 1, []float32{0})
		c.ClipFactor(factor, sum, []Tensor{x}, 1)
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

// TestSigmoidCrossEntropyOfSets holds every set to the reference loop, at large and small logits
// and at rows of one column and of many.
func TestSigmoidCrossEntropyOfSets(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, set := range Sets() {
		r := routinesOf(set)
		for _, cols := range []int{0, 1, 3, 17, 5000} {
			const rows = 3
			x, y := floatsFrom(1, rows*cols), floatsFrom(2, rows*cols)
			for i := range x {
				x[i], y[i] = x[i]*float32(i%40), float32(math.Abs(float64(y[i]-float32(int(y[i])))))
				switch i {
				case 5:
					y[i] = nan
				case 7, 8:
					x[i], y[i] = inf*float32(15-2*i), float32(8-i)
				}
			}
			loss, d, wantLoss, wantD := make([]float32, rows), make([]float32, rows*cols), make([]float32, rows), make([]float32, rows*cols)
			r.sigmoidCrossEntropy(loss, d, x, y, cols, 0.25)
			sigmoidCrossEntropyRef(wantLoss, wantD, x, y, rows, cols, 0.25)
			for i, want := range wantLoss {
				require.InEpsilon(t, 1+want, 1+loss[i], 1e-6, "%s, %d columns, row %d", set, cols, i)
			}
			require.InDeltaSlice(t, wantD, d, 1e-7, "%s, %d columns", set, cols)
		}
		x, y, d, loss := []float32{nan, 1}, []float32{0, 0}, make([]float32, 2), make([]float32, 1)
		r.sigmoidCrossEntropy(loss, d, x, y, 2, 1)
		require.True(t, loss[0] != loss[0] && d[0] != d[0] && d[1] == d[1], "%s: NaN", set)
	}
}

func BenchmarkSigmoidCrossEntropy(b *testing.B) {
	const rows, cols = 1000, 112 // a batch of ogbn-proteins
	x, y, d, loss := floatsFrom(1, rows*cols), make([]float32, rows*cols), make([]float32, rows*cols), make([]float32, rows)
	for _, set := range Sets() {
		r := routinesOf(set)
		b.Run("rows=1000/cols=112/set="+string(set), func(b *testing.B) {
			b.SetBytes(4 * rows * cols)
			for b.Loop() {
				r.sigmoidCrossEntropy(loss, d, x, y, cols, 1e-3)
			}
		})
	}
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
