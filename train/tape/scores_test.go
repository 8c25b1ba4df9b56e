package tape

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// checkGradients compares the gradients of a loss of forward's result by all parameters, which are
// normal and of these shapes, with finite differences, in float64.
func checkGradients(t *testing.T, be *kernels.Reference, shapes [][2]int, forward func(tape *Tape, params []*Var) *Var) {
	t.Helper()
	rng, tape := rand.New(rand.NewPCG(3, 4)), New(be)
	defer tape.Close()
	points, params := make([][]float64, len(shapes)), make([]*Var, len(shapes))
	for i, s := range shapes {
		tensor := func() kernels.Tensor {
			return kernels.Tensor{Buf: be.Alloc(kernels.F32, s[0]*s[1]), Rows: s[0], Cols: s[1]}
		}
		params[i] = NewParam(tensor(), tensor())
		for range s[0] * s[1] {
			points[i] = append(points[i], rng.NormFloat64())
		}
	}
	loss := func(record bool) (sum float64) {
		tape.Reset(record)
		for i, p := range params {
			be.UploadF64(p.Value, points[i])
		}
		y := forward(tape, params)
		labels := make([]uint32, y.Value.Rows)
		for i := range labels {
			labels[i] = uint32(i % y.Value.Cols)
		}
		losses := make([]float64, y.Value.Rows)
		be.DownloadF64(losses, tape.CrossEntropy(y, indices(be, labels...), 1))
		for _, l := range losses {
			sum += l
		}
		return sum
	}
	loss(true)
	tape.Backward()
	for p, point := range points {
		got := make([]float64, len(point))
		be.DownloadF64(got, params[p].Grad)
		for i, v := range point {
			const h = 1e-5
			point[i] = v + h
			above := loss(false)
			point[i] = v - h
			below := loss(false)
			point[i] = v
			require.InDelta(t, (above-below)/(2*h), got[i], 1e-7, "parameter %d, element %d", p, i)
		}
	}
}

func indices(be kernels.Backend, values ...uint32) kernels.Tensor {
	u := kernels.Tensor{Buf: be.Alloc(kernels.U32, len(values)), Type: kernels.U32, Rows: len(values), Cols: 1}
	be.UploadU32(u, values)
	return u
}

// twoRelations are 3 destinations among 4 sources, and among 2: one destination has edges in the
// first alone, one in the second alone, and positions of the first are unused.
func twoRelations(be kernels.Backend) []kernels.Adjacency {
	u := func(values ...uint32) kernels.Tensor { return indices(be, values...) }
	return []kernels.Adjacency{{ // 0: 3 1 3, 1: 0, 2: none
		Start: u(1, 4, 6), End: u(4, 5, 6), Nbr: u(99, 3, 1, 3, 0, 99),
		RevStart: u(0, 1, 2, 2, 4), RevDst: u(1, 0, 0, 0), RevEdge: u(4, 2, 1, 3),
	}, { // 0: 1, 1: none, 2: 0 1
		Start: u(0, 1, 1), End: u(1, 1, 3), Nbr: u(1, 0, 1),
		RevStart: u(0, 1, 3), RevDst: u(2, 0, 2), RevEdge: u(1, 0, 2),
	}}
}

// TestAttentionGradients is attention over two relations, two heads of three columns, with a
// parameter for each relation and head that scores are multiplied by. The arena is full of NaN,
// which unused positions have until something is written there.
func TestAttentionGradients(t *testing.T) {
	const heads, cols = 2, 6
	be := kernels.NewReference()
	g := twoRelations(be)
	weights := kernels.Tensor{Buf: be.Alloc(kernels.F32, 3), Rows: 3, Cols: 1}
	be.UploadF64(weights, []float64{0.5, 3, 1})
	for name, w := range map[string][]kernels.Tensor{"": make([]kernels.Tensor, 2), "weighted": {{}, weights}} {
		t.Run(name, func(t *testing.T) {
			checkGradients(t, be, [][2]int{{3, cols}, {4, cols}, {2, cols}, {heads, 1}, {heads, 1}, {5, cols}, {5, cols}}, func(tape *Tape, p []*Var) *Var {
				fillWithNaN(tape)
				q, k, prior, out := p[0], p[1:3], p[3:5], p[5:7]
				var scores []*Var
				for r := range g {
					scores = append(scores, tape.HeadDot(tape.EdgeDot(q, k[r], heads, g[r], 0.5), prior[r]))
				}
				var terms []Term
				for r, alpha := range tape.EdgeSoftmaxOf(scores, w, g) {
					terms = append(terms, Term{X: tape.WeightedSum(k[r], alpha, nil, g[r]), W: out[r]})
				}
				return tape.Affine(nil, terms...)
			})
		})
	}
}

// fillWithNaN leaves NaN in memory that the tape is about to hand out.
func fillWithNaN(tape *Tape) {
	record := !tape.off
	tape.be.Fill(tape.arena.alloc(1, minChunk), float32(math.NaN()))
	tape.Reset(record)
}

// TestGateGradients is a skip connection by a gate around GELU.
func TestGateGradients(t *testing.T) {
	checkGradients(t, kernels.NewReference(), [][2]int{{4, 5}, {4, 5}, {1, 1}}, func(tape *Tape, p []*Var) *Var {
		return tape.Gate(tape.GELU(p[0]), p[1], p[2])
	})
}

// TestConstantRowGradient gathers the one row of a table for every node of a type that has no rows
// of its own.
func TestConstantRowGradient(t *testing.T) {
	be := kernels.NewReference()
	rows := indices(be, make([]uint32, 7)...)
	checkGradients(t, be, [][2]int{{1, 4}}, func(tape *Tape, p []*Var) *Var { return tape.GatherRows(p[0], rows) })
}

// TestEdgeSoftmaxOfNothing has no relation, and then one whose result nothing reads.
func TestEdgeSoftmaxOfNothing(t *testing.T) {
	be := kernels.NewReference()
	tape := New(be)
	defer tape.Close()
	require.Empty(t, tape.EdgeSoftmaxOf(nil, nil, nil))
	zeros := func(rows, cols int) kernels.Tensor {
		return kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
	}
	scores := NewParam(zeros(3, 2), zeros(3, 2))
	tape.Reset(true)
	alpha := tape.EdgeSoftmaxOf([]*Var{scores}, make([]kernels.Tensor, 1), twoRelations(be)[1:])
	tape.Backward()
	got := make([]float64, 6)
	be.DownloadF64(got, alpha[0].Value)
	require.Equal(t, []float64{1, 1, 0.5, 0.5, 0.5, 0.5}, got)
	be.DownloadF64(got, scores.Grad)
	require.Equal(t, make([]float64, 6), got)
}

// TestEdgeSoftmaxWith: attention whose scores edges add to, with weights and without, and positions
// that are in no list.
func TestEdgeSoftmaxWith(t *testing.T) {
	be := kernels.NewReference()
	u := func(values ...uint32) kernels.Tensor { return indices(be, values...) }
	g := kernels.Adjacency{Start: u(1, 4, 6), End: u(4, 5, 6), Nbr: u(2, 3, 1, 3, 0, 2)} // as in twoRelations
	own := kernels.Adjacency{
		Start: g.Start, End: g.End, Nbr: u(0, 1, 2, 3, 4, 5), RevStart: u(0, 1, 2, 3, 4, 5, 6), RevEdge: u(0, 1, 2, 3, 4, 5),
	}
	weights := kernels.Tensor{Buf: be.Alloc(kernels.F32, 6), Rows: 6, Cols: 1}
	be.UploadF32(weights, []float32{9, 1, 2, 0.5, 3, 9})
	for _, w := range []kernels.Tensor{{}, weights} {
		forward := func(tape *Tape, p []*Var) *Var {
			alpha := tape.EdgeSoftmaxWith(p[0], p[1], p[2], w, g, own, 0.2)
			return tape.WeightedSum(p[3], alpha, nil, kernels.Adjacency{
				Start: g.Start, End: g.End, Nbr: g.Nbr, RevStart: u(0, 1, 2, 2, 4), RevDst: u(1, 0, 0, 0), RevEdge: u(4, 2, 1, 3),
			})
		}
		checkGradients(t, be, [][2]int{{4, 2}, {3, 2}, {6, 2}, {4, 4}}, forward)
	}

	// Edges that add nothing leave EdgeSoftmax's bits.
	cpu := kernels.NewCPU(kernels.CPUOptions{})
	tape := New(cpu)
	defer tape.Close()
	on := func(v kernels.Tensor) kernels.Tensor {
		values := make([]uint32, v.Rows)
		be.DownloadU32(values, v)
		return indices(cpu, values...)
	}
	g = kernels.Adjacency{Start: on(g.Start), End: on(g.End), Nbr: on(g.Nbr), RevStart: on(u(0, 1, 2, 2, 4)), RevDst: on(u(1, 0, 0, 0)), RevEdge: on(u(4, 2, 1, 3))}
	own = kernels.Adjacency{Start: g.Start, End: g.End, Nbr: on(own.Nbr), RevStart: on(own.RevStart), RevEdge: on(own.RevEdge)}
	rows := func(values ...float32) *Var {
		v := kernels.Tensor{Buf: cpu.Alloc(kernels.F32, len(values)), Rows: len(values), Cols: 1}
		cpu.UploadF32(v, values)
		return tape.Leaf(v)
	}
	src, dst := rows(0.5, -1, 2, 0.25), rows(-0.75, 1, 0)
	want, got := make([]float32, 6), make([]float32, 6)
	cpu.DownloadF32(want, tape.EdgeSoftmax(src, dst, kernels.Tensor{}, g, 0.2).Value)
	cpu.DownloadF32(got, tape.EdgeSoftmaxWith(src, dst, rows(0, 0, 0, 0, 0, 0), kernels.Tensor{}, g, own, 0.2).Value)
	require.Equal(t, want[1:5], got[1:5])
}
