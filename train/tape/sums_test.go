package tape

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// differences compares gradients with finite differences, in float64.
type differences struct {
	t    *testing.T
	be   *kernels.Reference
	tape *Tape
	rng  *rand.Rand
}

func newDifferences(t *testing.T) *differences {
	be := kernels.NewReference()
	return &differences{t, be, New(be), rand.New(rand.NewPCG(1, 2))}
}

func (d *differences) tensor(rows, cols int) kernels.Tensor {
	x, values := kernels.Tensor{Buf: d.be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}, make([]float64, rows*cols)
	for i := range values {
		values[i] = d.rng.NormFloat64()
	}
	d.be.UploadF64(x, values)
	return x
}

// param is a random parameter whose gradient is not 0 at first.
func (d *differences) param(rows, cols int) *Var {
	return NewParam(d.tensor(rows, cols), d.tensor(rows, cols))
}

func (d *differences) values(x kernels.Tensor) []float64 {
	s := make([]float64, x.Len())
	d.be.DownloadF64(s, x)
	return s
}

// check takes the squares of what run makes of params for the loss, so that every element counts
// differently.
func (d *differences) check(name string, run func() *Var, params ...*Var) {
	d.t.Helper()
	loss := func() (sum float64) {
		d.tape.Reset(false)
		for _, v := range d.values(run().Value) {
			sum += v * v / 2
		}
		return sum
	}
	var before [][]float64
	for _, p := range params {
		before = append(before, d.values(p.Grad))
	}
	d.tape.Reset(true)
	y := run()
	d.be.Add(d.tape.grad(y), y.Value)
	d.tape.Backward()
	for n, p := range params {
		grad, point := d.values(p.Grad), d.values(p.Value)
		for i, v := range point {
			const h = 1e-5
			at := func(v float64) float64 {
				point[i] = v
				d.be.UploadF64(p.Value, point)
				return loss()
			}
			up, down := at(v+h), at(v-h)
			at(v)
			require.InDelta(d.t, (up-down)/(2*h), grad[i]-before[n][i], 1e-6, "%s: parameter %d, element %d", name, n, i)
		}
	}
}

func TestSumGradients(t *testing.T) {
	d := newDifferences(t)
	x, y, w := d.param(4, 3), d.param(4, 3), d.param(3, 3)
	leaf := d.tape.Leaf(d.tensor(4, 3))
	times := func(x *Var) *Var { return d.tape.Affine(nil, Term{X: x, W: w}) }
	d.check("of results", func() *Var { return d.tape.Sum(times(x), times(y), x, leaf, y) }, x, y, w)
	d.check("of parameters, which stay", func() *Var { return d.tape.Sum(x, y, x) }, x, y)
	d.check("of one", func() *Var { return d.tape.Sum(times(x)) }, x, w)
	d.check("from a leaf on", func() *Var { return d.tape.Sum(leaf, times(x)) }, x, w)
	d.check("that is kept", func() *Var {
		sum := d.tape.Sum(times(x), y)
		d.tape.Keep(sum)
		return d.tape.ELU(sum)
	}, x, y, w)

	d.tape.Reset(false)
	require.False(t, d.tape.Sum(times(x), y).needsGrad, "in evaluation")
}

func TestMixGradients(t *testing.T) {
	d := newDifferences(t)
	x, y, a, w := d.param(4, 3), d.param(4, 3), d.param(5, 2), d.param(3, 3)
	leaf := d.tape.Leaf(d.tensor(4, 3))
	d.check("two mixes of four", func() *Var {
		mixed := d.tape.Mix([]*Var{x, d.tape.Affine(nil, Term{X: y, W: w}), leaf, x}, a, []int{3, 0, 4, 4})
		require.Len(t, mixed, 2)
		return d.tape.Affine(nil, Term{X: mixed[1], W: w}, Term{X: mixed[0], W: w}, Term{X: mixed[1], W: w})
	}, x, y, a, w)
	d.check("one is left over", func() *Var { return d.tape.Mix([]*Var{x, leaf}, a, []int{1, 2})[1] }, x, a)

	one := d.param(3, 1)
	d.check("a single column", func() *Var { return d.tape.Mix([]*Var{x, y}, one, []int{2, 0})[0] }, x, y, one)
	d.tape.Reset(false)
	got := d.values(d.tape.Mix([]*Var{x, y}, a, []int{3, 1})[1].Value)
	for i, v := range d.values(x.Value) {
		require.InDelta(t, d.values(a.Value)[3*2+1]*v+d.values(a.Value)[1*2+1]*d.values(y.Value)[i], got[i], 1e-12)
	}
}

func TestWindowsAndProducts(t *testing.T) {
	d := newDifferences(t)
	x, w, bias := d.param(4, 3), d.param(9, 2), d.param(1, 2)
	d.check("windows of weights that lie across", func() *Var {
		return d.tape.AffineReLU(bias, Term{X: x, W: d.tape.Window(w, 6, 9), Across: true}, Term{X: x, W: d.tape.Window(w, 0, 3), Across: true})
	}, x, w, bias)
	d.check("windows of windows", func() *Var { return d.tape.ELU(d.tape.Window(d.tape.Window(w, 2, 8), 1, 4)) }, w)
	d.check("a product of other shapes", func() *Var {
		return d.tape.Reshape(d.tape.Product(x, d.tape.Window(d.tape.Reshape(w, 6, 3), 1, 4)), 2, 6)
	}, x, w)
	require.Panics(t, func() { d.tape.Reshape(x, 5, 3) })
	require.Equal(t, x, d.tape.Window(x, 0, 4))
}

func TestRepeatGradient(t *testing.T) {
	d := newDifferences(t)
	row, w := d.param(1, 3), d.param(3, 3)
	d.check("repeat", func() *Var { return d.tape.Affine(nil, Term{X: d.tape.Repeat(row, 5), W: w}) }, row, w)
	d.tape.Reset(false)
	require.Equal(t, 0, d.tape.Repeat(row, 0).Value.Rows)
}

func TestScatterRowsGradient(t *testing.T) {
	d := newDifferences(t)
	x, w := d.param(3, 2), d.param(2, 2)
	ids := kernels.Tensor{Buf: d.be.Alloc(kernels.U32, 3), Type: kernels.U32, Rows: 3, Cols: 1}
	d.be.UploadU32(ids, []uint32{4, 0, 2})
	run := func() *Var { return d.tape.ScatterRows(d.tape.Affine(nil, Term{X: x, W: w}), ids, 6) }
	d.check("scatter", run, x, w)
	d.tape.Reset(false)
	got := d.values(run().Value)
	require.Equal(t, make([]float64, 2), got[2:4])
	require.Equal(t, d.values(d.tape.Affine(nil, Term{X: x, W: w}).Value), append(append(got[8:10:10], got[:2]...), got[4:6]...))
}
