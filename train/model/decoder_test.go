package model

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// TestDecoders compares scores with their formulas, and the gradients of rows and parameters with
// finite differences, in float64. A partner comes several times, one never, and a node has no
// partner.
func TestDecoders(t *testing.T) {
	const rows, partners, cols = 4, 5, 6
	be := kernels.NewReference()
	block := sample.Block{Start: []uint32{0, 3, 3}, End: []uint32{3, 3, 5}, Nbr: []uint32{4, 0, 4, 2, 0}}
	block.Reverse(partners)
	uints := func(values ...uint32) kernels.Tensor {
		u := kernels.Tensor{Buf: be.Alloc(kernels.U32, len(values)), Type: kernels.U32, Rows: len(values), Cols: 1}
		be.UploadU32(u, values)
		return u
	}
	nodes, owner := []uint32{3, 1, 0}, []uint32{0, 0, 0, 2, 2}
	pairs := Pairs{
		Nodes: uints(nodes...), Owner: uints(owner...), Count: uints(0, 1, 2, 3, 4, 5),
		Lists: kernels.Adjacency{
			Start: uints(block.Start...), End: uints(block.End...), Nbr: uints(block.Nbr...),
			RevStart: uints(block.RevStart...), RevDst: uints(block.RevDst...), RevEdge: uints(block.RevEdge...),
		},
	}
	for _, kind := range Decoders {
		rng := rand.New(rand.NewPCG(1, 2))
		c := Config{Kind: SAGE, Layers: 1, Hidden: 4, Norm: "none", Decoder: kind}
		if kind.Distance() {
			c.Margin = 4.5
		}
		m := New(be, c, Shape{In: []int{3}, Out: cols}, 1)
		tp := tape.New(be)
		type point struct {
			value, grad kernels.Tensor
			at          []float64
		}
		matrix := func(rows int) point {
			p := point{kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols},
				kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}, nil}
			return p
		}
		points := []point{matrix(rows), matrix(partners)}
		for _, p := range m.Params {
			if strings.HasPrefix(p.Name, "decoder.") {
				points = append(points, point{p.Value, p.Grad, nil})
			}
		}
		for i := range points {
			for range points[i].value.Len() {
				points[i].at = append(points[i].at, rng.NormFloat64())
			}
		}
		scores := func(record bool) []float64 {
			for _, p := range points {
				be.UploadF64(p.value, p.at)
			}
			tp.Reset(record)
			s := m.Score(tp, tape.NewParam(points[0].value, points[0].grad), tape.NewParam(points[1].value, points[1].grad), pairs)
			got := make([]float64, s.Value.Len())
			be.DownloadF64(got, s.Value)
			if record {
				ones := kernels.Tensor{Buf: be.Alloc(kernels.F32, s.Value.Rows), Rows: s.Value.Rows, Cols: 1}
				be.Fill(ones, 1)
				tp.SigmoidCrossEntropy(s, ones, 1)
				tp.Backward()
			}
			return got
		}
		got := scores(true)
		for e, i := range owner {
			u, v := points[0].at[nodes[i]*cols:][:cols], points[1].at[block.Nbr[e]*cols:][:cols]
			want := 0.0
			switch kind {
			case Dot:
				for k := range cols {
					want += u[k] * v[k]
				}
			case DistMult:
				for k := range cols {
					want += u[k] * points[2].at[k] * v[k]
				}
			case ComplEx:
				w := points[2].at
				for k := range cols / 2 {
					z := complex(u[k], u[cols/2+k]) * complex(w[k], w[cols/2+k]) * complex(v[k], -v[cols/2+k])
					want += real(z)
				}
			case TransE:
				want = 4.5
				for k := range cols {
					want -= math.Abs(u[k] + points[2].at[k] - v[k])
				}
			case RotatE:
				want = 4.5
				for k := range cols / 2 {
					z := complex(u[k], u[cols/2+k])*cmplx.Rect(1, points[2].at[k]) - complex(v[k], v[cols/2+k])
					want -= cmplx.Abs(z)
				}
			case PairMLP:
				for o := range cols {
					h := points[3].at[o]
					for k := range cols {
						h += points[2].at[o*cols+k] * u[k] * v[k]
					}
					want += max(h, 0) * points[4].at[o]
				}
				want += points[5].at[0]
			}
			require.InDelta(t, want, got[e], 1e-9, "%s, pair %d", kind, e)
		}
		loss := func() (sum float64) { // of all ones, as the backward pass has it
			for _, s := range scores(false) {
				sum += math.Log1p(math.Exp(-s))
			}
			return sum
		}
		for n, p := range points {
			grad := make([]float64, p.value.Len())
			be.DownloadF64(grad, p.grad)
			for i, x := range p.at {
				const h = 1e-5
				p.at[i] = x + h
				above := loss()
				p.at[i] = x - h
				below := loss()
				p.at[i] = x
				require.InDelta(t, (above-below)/(2*h), grad[i], 1e-6, "%s, matrix %d, element %d", kind, n, i)
			}
		}
		tp.Close()
		m.Close()
	}
}
