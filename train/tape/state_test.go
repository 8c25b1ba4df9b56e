package tape

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// TestCellGradients: a GRU cell, whose gates are written over its first product, and an RNN cell
// after it; the old states are parameters as well, and then constants.
func TestCellGradients(t *testing.T) {
	const rows, in, d = 3, 4, 2
	be := kernels.NewReference()
	shapes := [][2]int{{rows, in}, {rows, d}, {3 * d, in}, {1, 3 * d}, {3 * d, d}, {1, 3 * d}, {d, d}, {5, d}}
	cells := func(tape *Tape, p []*Var, s *Var) *Var {
		fillWithNaN(tape)
		y := tape.GRUCell(tape.Affine(p[3], Term{X: p[0], W: p[2]}), tape.Affine(p[5], Term{X: s, W: p[4]}), s)
		return tape.Affine(nil, Term{X: tape.Tanh(tape.Sum(tape.Affine(nil, Term{X: y, W: p[6]}), s)), W: p[7]})
	}
	checkGradients(t, be, shapes, func(tape *Tape, p []*Var) *Var { return cells(tape, p, p[1]) })
	old := kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*d), Rows: rows, Cols: d}
	be.UploadF64(old, []float64{0.5, -1, 2, 0.25, -0.75, 0})
	checkGradients(t, be, shapes, func(tape *Tape, p []*Var) *Var { return cells(tape, p, tape.Leaf(old)) })
	// Products that are parameters stay as they are.
	checkGradients(t, be, [][2]int{{rows, 3 * d}, {rows, 3 * d}, {rows, d}}, func(tape *Tape, p []*Var) *Var {
		before, after := make([]float64, p[0].Value.Len()), make([]float64, p[0].Value.Len())
		be.DownloadF64(before, p[0].Value)
		y := tape.GRUCell(p[0], p[1], p[2])
		be.DownloadF64(after, p[0].Value)
		require.Equal(t, before, after)
		return y
	})
}

// TestTimeEncodeGradients: two modules share the rates and shifts.
func TestTimeEncodeGradients(t *testing.T) {
	be := kernels.NewReference()
	times := func(all ...float64) kernels.Tensor {
		x, pairs := kernels.Tensor{Buf: be.Alloc(kernels.F32, 2*len(all)), Rows: len(all), Cols: 2}, []float32(nil)
		for _, v := range all {
			high, low := kernels.SplitTime(v)
			pairs = append(pairs, high, low)
		}
		be.UploadF32(x, pairs)
		return x
	}
	a, b := times(0, 0.1, -3, 7.7), times(1, 2, 3, 4)
	checkGradients(t, be, [][2]int{{1, 5}, {1, 5}}, func(tape *Tape, p []*Var) *Var {
		return tape.Sum(tape.TimeEncode(a, p[0], p[1]), tape.LeakyReLU(tape.TimeEncode(b, p[0], p[1]), 0.2))
	})
}

// TestColumnsGradient: two windows that overlap and one that is all, of a parameter, which is used
// as a whole as well.
func TestColumnsGradient(t *testing.T) {
	checkGradients(t, kernels.NewReference(), [][2]int{{3, 5}, {2, 3}, {4, 5}}, func(tape *Tape, p []*Var) *Var {
		part := tape.Affine(nil, Term{X: tape.Columns(p[2], 1, 3), W: tape.Columns(p[0], 2, 3)})
		both := tape.Affine(nil, Term{X: tape.Columns(p[2], 0, 5), W: tape.Columns(p[0], 0, 5)})
		return tape.Sum(part, both)
	})
}

// TestAddRowsGradients: to a result, which is written over, and to a parameter, which is not; one
// row of the table is named twice, one never, and the table may be a constant.
func TestAddRowsGradients(t *testing.T) {
	be := kernels.NewReference()
	ids, count := indices(be, 2, 0, 2, 3), indices(be, 0, 1, 2, 3)
	table := kernels.Tensor{Buf: be.Alloc(kernels.F32, 12), Rows: 4, Cols: 3}
	be.UploadF64(table, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3})
	checkGradients(t, be, [][2]int{{4, 5}, {3, 5}, {4, 3}, {4, 3}}, func(tape *Tape, p []*Var) *Var {
		fillWithNaN(tape)
		y := tape.AddRows(tape.Affine(nil, Term{X: p[0], W: p[1]}), p[2], ids, count)
		both := tape.AddRows(p[3], y, ids, count)
		return tape.AddRows(both, tape.Leaf(table), ids, count)
	})
	tp := New(be)
	defer tp.Close()
	gathered := tp.Sum(tp.GatherRows(NewConstant(table), count), tp.GatherRows(NewConstant(table), ids))
	want, got := make([]float64, 12), make([]float64, 12)
	be.DownloadF64(want, gathered.Value)
	be.DownloadF64(got, tp.AddRows(NewConstant(table), NewConstant(table), ids, count).Value)
	require.Equal(t, want, got)
}

// TestAttentionByHand is one query among two keys, of two columns, and one among none; and a norm.
func TestAttentionByHand(t *testing.T) {
	be := kernels.NewReference()
	matrix := func(cols int, values ...float64) *Var {
		x := kernels.Tensor{Buf: be.Alloc(kernels.F32, len(values)), Rows: len(values) / cols, Cols: cols}
		be.UploadF64(x, values)
		return NewConstant(x)
	}
	read := func(x kernels.Tensor) []float64 {
		s := make([]float64, x.Len())
		be.DownloadF64(s, x)
		return s
	}
	tp := New(be)
	defer tp.Close()
	g := kernels.Adjacency{Start: indices(be, 0, 2), End: indices(be, 2, 2), Nbr: indices(be, 0, 1)}
	scores := tp.LeakyReLU(tp.EdgeDot(matrix(2, 1, 0, 5, 5), matrix(2, 2, 0, -1, 0), 1, g, 1), 0.2)
	require.InDeltaSlice(t, []float64{2, -0.2}, read(scores.Value), 1e-8)
	alpha := tp.EdgeSoftmaxOf([]*Var{scores}, make([]kernels.Tensor, 1), []kernels.Adjacency{g})[0]
	require.InDeltaSlice(t, []float64{0.9002495, 0.0997505}, read(alpha.Value), 1e-7)
	require.InDeltaSlice(t, []float64{1.1995010, 2.1995010, 0, 0}, read(tp.WeightedSum(matrix(2, 1, 2, 3, 4), alpha, nil, g).Value), 1e-7)
	normed := tp.LayerNorm(matrix(4, 1, 2, 3, 4), matrix(4, 1, 1, 1, 1), matrix(4, 0, 0, 0, 0))
	require.InDeltaSlice(t, []float64{-1.3416354, -0.4472118, 0.4472118, 1.3416354}, read(normed.Value), 1e-7)
}

func TestLinkLoss(t *testing.T) {
	be := kernels.NewReference()
	scores := func(values ...float64) *Var {
		tensor := func() kernels.Tensor {
			return kernels.Tensor{Buf: be.Alloc(kernels.F32, len(values)), Rows: len(values), Cols: 1}
		}
		p := NewParam(tensor(), tensor())
		be.UploadF64(p.Value, values)
		return p
	}
	tp := New(be)
	defer tp.Close()
	tp.Reset(true)
	there, others := scores(0.3), scores(-0.2, -0.2)
	a, b := tp.LinkLoss(there, others)
	tp.Backward()
	got := func(x kernels.Tensor) []float64 {
		s := make([]float64, x.Len())
		be.DownloadF64(s, x)
		return s
	}
	require.InDelta(t, 0.5543552, got(a)[0], 1e-7)
	require.InDelta(t, 0.5981389, got(b)[1], 1e-7)
	require.InDelta(t, 1/(1+math.Exp(-0.3))-1, got(there.Grad)[0], 1e-7)
	require.InDelta(t, 1/(1+math.Exp(0.2))/2, got(others.Grad)[1], 1e-7)
}

// TestCellsKeepTheirMemory: once the arena is as large as a step, a step takes no more of it, and
// the heap gets closures alone.
func TestCellsKeepTheirMemory(t *testing.T) {
	const rows, d = 2000, 17
	be := kernels.NewCPU(kernels.CPUOptions{Threads: 1})
	tensor := func(rows, cols int) kernels.Tensor {
		return kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
	}
	param := func(rows, cols int) *Var { return NewParam(tensor(rows, cols), tensor(rows, cols)) }
	times, state, w, b, in, own := tensor(rows, 2), tensor(rows, d), param(1, 9), param(1, 9), param(3*d, 11), param(3*d, d)
	tp := New(be)
	defer tp.Close()
	step := func() {
		tp.Reset(true)
		x := tp.Affine(nil, Term{X: tp.TimeEncode(times, w, b), W: tp.Columns(in, 2, 9)})
		y := tp.Tanh(tp.GRUCell(x, tp.Affine(nil, Term{X: tp.Leaf(state), W: own}), tp.Leaf(state)))
		tp.be.Fill(tp.grad(y), 1)
		tp.Backward()
	}
	step()
	step()
	bytes := tp.Bytes()
	require.Less(t, testing.AllocsPerRun(5, step), 100.0)
	require.Equal(t, bytes, tp.Bytes())
}
