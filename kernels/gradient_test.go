package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// gradCheck compares gradients with finite differences in float64, on the Reference.
type gradCheck struct {
	t   *testing.T
	r   *Reference
	rng *rand.Rand
}

func newGradCheck(t *testing.T) gradCheck {
	return gradCheck{t, NewReference(), rand.New(rand.NewPCG(5, 6))}
}

func (g gradCheck) normal(rows, cols int) Tensor {
	x := g.zeros(rows, cols)
	values := make([]float64, rows*cols)
	for i := range values {
		values[i] = g.rng.NormFloat64()
	}
	g.r.UploadF64(x, values)
	return x
}

func (g gradCheck) zeros(rows, cols int) Tensor {
	return Tensor{Buf: g.r.Alloc(F32, rows*cols), Rows: rows, Cols: cols}
}

func (g gradCheck) uints(values ...uint32) Tensor {
	u := Tensor{Buf: g.r.Alloc(U32, len(values)), Type: U32, Rows: len(values), Cols: 1}
	g.r.UploadU32(u, values)
	return u
}

func (g gradCheck) values(x Tensor) []float64 {
	s := make([]float64, x.Len())
	g.r.DownloadF64(s, x)
	return s
}

// check runs forward, which fills out, and takes Σ weights·out as the objective. Its derivative by
// every element of x is compared with what grad adds to dx, given weights as the gradient of out.
func (g gradCheck) check(name string, x, out Tensor, forward func(), grad func(dx, weights Tensor)) {
	g.t.Helper()
	weights, dx := g.normal(out.Rows, out.Cols), g.normal(x.Rows, x.Cols)
	before := g.values(dx)
	forward()
	grad(dx, weights)
	got, w, point := g.values(dx), g.values(weights), g.values(x)
	objective := func() (sum float64) {
		forward()
		for i, v := range g.values(out) {
			sum += w[i] * v
		}
		return sum
	}
	for i, v := range point {
		const h = 1e-5
		point[i] = v + h
		g.r.UploadF64(x, point)
		above := objective()
		point[i] = v - h
		g.r.UploadF64(x, point)
		below := objective()
		point[i] = v
		g.r.UploadF64(x, point)
		want := (above - below) / (2 * h)
		require.InDelta(g.t, want, got[i]-before[i], 1e-7*(1+math.Abs(want)), "%s, element %d", name, i)
	}
}

func TestMatMulGradients(t *testing.T) {
	g := newGradCheck(t)
	x, w, y := g.normal(4, 3), g.normal(3, 5), g.zeros(4, 5)
	forward := func() { g.r.MatMul(y, x, w, false, false, false) }
	g.check("by x", x, y, forward, func(dx, dy Tensor) { g.r.MatMul(dx, dy, w, false, true, true) })
	g.check("by w", w, y, forward, func(dw, dy Tensor) { g.r.MatMul(dw, x, dy, true, false, true) })
}

func TestAddRowGradient(t *testing.T) {
	g := newGradCheck(t)
	x, row, y := g.normal(4, 3), g.normal(1, 3), g.zeros(4, 3)
	g.check("ColumnSumGrad", row, y, func() { g.r.Convert(y, x); g.r.AddRow(y, row) },
		func(drow, dy Tensor) { g.r.ColumnSumGrad(drow, dy) })
}

func TestNeighborMeanGradient(t *testing.T) {
	g := newGradCheck(t)
	adj := Adjacency{ // 0: 1 1 2, 1: none, 2: 0, 3: 2 0; one unused entry
		Start: g.uints(0, 3, 4, 5), End: g.uints(3, 3, 5, 7), Nbr: g.uints(1, 1, 2, 99, 0, 2, 0),
		RevStart: g.uints(0, 2, 4, 6, 6), RevDst: g.uints(2, 3, 0, 0, 0, 3),
	}
	x, y := g.normal(4, 3), g.zeros(4, 3)
	g.check("NeighborMeanGrad", x, y, func() { g.r.NeighborMean(y, x, adj) },
		func(dx, dy Tensor) { g.r.NeighborMeanGrad(dx, dy, adj, dx.Rows) })
}

func TestGatherRowsGradient(t *testing.T) {
	g := newGradCheck(t)
	x, y, ids := g.normal(5, 3), g.zeros(6, 3), g.uints(4, 1, 1, 0, 4, 1)
	g.check("GatherRowsGrad", x, y, func() { g.r.GatherRows(y, x, ids) },
		func(dx, dy Tensor) { g.r.GatherRowsGrad(dx, dy, ids) })
}

func TestReLUGradient(t *testing.T) {
	g := newGradCheck(t)
	x, y := g.normal(5, 4), g.zeros(5, 4)
	g.check("ReLUGrad", x, y, func() { g.r.ReLU(y, x) }, func(dx, dy Tensor) { g.r.ReLUGrad(dx, dy, y) })
}

func TestGELUGradient(t *testing.T) {
	g := newGradCheck(t)
	x, y := g.normal(5, 4), g.zeros(5, 4)
	g.check("GELUGrad", x, y, func() { g.r.GELU(y, x) }, func(dx, dy Tensor) { g.r.GELUGrad(dx, dy, x) })
}

func TestLeakyReLUGradient(t *testing.T) {
	g := newGradCheck(t)
	x, y := g.normal(5, 4), g.zeros(5, 4)
	g.check("LeakyReLUGrad", x, y, func() { g.r.LeakyReLU(y, x, 0.2) }, func(dx, dy Tensor) { g.r.LeakyReLUGrad(dx, dy, x, 0.2) })
}

func TestTanhGradient(t *testing.T) {
	g := newGradCheck(t)
	x, y := g.normal(5, 4), g.zeros(5, 4)
	g.check("TanhGrad", x, y, func() { g.r.Tanh(y, x) }, func(dx, dy Tensor) { g.r.TanhGrad(dx, dy, y) })
}

func TestGRUCellGradients(t *testing.T) {
	g := newGradCheck(t)
	x, h, s, y, gates := g.normal(4, 9), g.normal(4, 9), g.normal(4, 3), g.zeros(4, 3), g.zeros(4, 9)
	forward := func() { g.r.GRUCell(y, gates, x, h, s) }
	wide, state := g.zeros(4, 9), g.zeros(4, 3)
	g.check("by x", x, y, forward, func(d, dy Tensor) { g.r.GRUCellGrad(d, wide, state, dy, gates, h, s) })
	g.check("by h", h, y, forward, func(d, dy Tensor) { g.r.GRUCellGrad(wide, d, state, dy, gates, h, s) })
	g.check("by s", s, y, forward, func(d, dy Tensor) { g.r.GRUCellGrad(wide, g.zeros(4, 9), d, dy, gates, h, s) })
}

func TestTimeEncodeGradients(t *testing.T) {
	g := newGradCheck(t)
	times, w, b, y := g.normal(5, 2), g.normal(1, 4), g.normal(1, 4), g.zeros(5, 4)
	forward := func() { g.r.TimeEncode(y, times, w, b) }
	g.check("by w", w, y, forward, func(d, dy Tensor) { g.r.TimeEncodeGrad(d, g.zeros(1, 4), dy, times, w, b) })
	g.check("by b", b, y, forward, func(d, dy Tensor) { g.r.TimeEncodeGrad(g.zeros(1, 4), d, dy, times, w, b) })
}

func TestColumnsGradient(t *testing.T) {
	g := newGradCheck(t)
	x, y := g.normal(4, 5), g.zeros(4, 2)
	g.check("ColumnsGrad", x, y, func() { g.r.Columns(y, x, 2) }, func(dx, dy Tensor) { g.r.ColumnsGrad(dx, dy, 2) })
}

func TestGateGradients(t *testing.T) {
	g := newGradCheck(t)
	a, x, s, y := g.normal(5, 4), g.normal(5, 4), g.normal(1, 1), g.zeros(5, 4)
	forward := func() { g.r.Gate(y, a, x, s) }
	g.check("by a", a, y, forward, func(d, dy Tensor) { g.r.GateGrad(d, g.zeros(5, 4), g.zeros(1, 1), dy, a, x, s) })
	g.check("by x", x, y, forward, func(d, dy Tensor) { g.r.GateGrad(g.zeros(5, 4), d, g.zeros(1, 1), dy, a, x, s) })
	g.check("by s", s, y, forward, func(d, dy Tensor) { g.r.GateGrad(g.zeros(5, 4), g.zeros(5, 4), d, dy, a, x, s) })
}

func TestDropoutGradient(t *testing.T) {
	g := newGradCheck(t)
	x, y, ids := g.normal(5, 6), g.zeros(5, 6), g.uints(3, 1, 4, 1, 5)
	g.check("DropoutGrad", x, y, func() { g.r.Dropout(y, x, ids, 42, 0.4) },
		func(dx, dy Tensor) { g.r.DropoutGrad(dx, dy, ids, 42, 0.4) })
}

func TestLayerNormGradients(t *testing.T) {
	g := newGradCheck(t)
	x, gain, bias, y, stats := g.normal(4, 6), g.normal(1, 6), g.normal(1, 6), g.zeros(4, 6), g.zeros(4, 2)
	forward := func() { g.r.LayerNorm(y, stats, x, gain, bias, 1e-3) }
	scratch := func(cols int) Tensor { return g.zeros(1, cols) }
	g.check("by x", x, y, forward, func(dx, dy Tensor) {
		g.r.LayerNormGrad(dx, scratch(6), scratch(6), dy, x, stats, gain, false)
	})
	g.check("by gain", gain, y, forward, func(dgain, dy Tensor) {
		g.r.LayerNormGrad(g.zeros(4, 6), dgain, scratch(6), dy, x, stats, gain, false)
	})
	g.check("by bias", bias, y, forward, func(dbias, dy Tensor) {
		g.r.LayerNormGrad(g.zeros(4, 6), scratch(6), dbias, dy, x, stats, gain, false)
	})
}

// TestSoftmaxCrossEntropyGradient takes the sum of the losses as the objective; dlogits is
// overwritten, not added to.
func TestSoftmaxCrossEntropyGradient(t *testing.T) {
	g := newGradCheck(t)
	const scale = 0.5
	x, labels := g.normal(4, 5), g.uints(2, NoLabel, 0, 4)
	loss, dlogits, scaled := g.zeros(4, 1), g.zeros(4, 5), g.zeros(4, 1)
	half := g.zeros(1, 1)
	g.r.Fill(half, scale)
	forward := func() {
		g.r.SoftmaxCrossEntropy(loss, dlogits, x, labels, scale)
		g.r.MatMul(scaled, loss, half, false, false, false)
	}
	g.check("SoftmaxCrossEntropy", x, scaled, forward, func(dx, weights Tensor) {
		// Row r's objective is weights[r]·scale·loss[r], and dlogits is the gradient of scale·loss.
		d, w, sum := g.values(dlogits), g.values(weights), g.values(dx)
		for i := range sum {
			sum[i] += w[i/5] * d[i]
		}
		g.r.UploadF64(dx, sum)
	})
}

// TestAdamFirstStep has a closed form: whatever the gradient's size, the first step moves by the
// learning rate.
func TestAdamFirstStep(t *testing.T) {
	r := NewReference()
	param, grad := tensorOf(r, 1, 3, []float32{1, 1, 1}), tensorOf(r, 1, 3, []float32{1e-3, -5, 0})
	m, v := tensorOf(r, 1, 3, make([]float32, 3)), tensorOf(r, 1, 3, make([]float32, 3))
	step := AdamStep{LR: 0.125, Beta1: 0.5, Beta2: 0.75, Correct1: 0.5, Correct2: 0.25}
	r.Adam([]AdamParam{{param, grad, m, v}}, 1, step, Guard{})
	got := make([]float64, 3)
	r.DownloadF64(got, param)
	require.InDelta(t, 0.875, got[0], 1e-9)
	require.InDelta(t, 1.125, got[1], 1e-9)
	require.True(t, math.IsNaN(got[2]), "0/0 where eps is 0")
}
