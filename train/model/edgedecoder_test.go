package model

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/tape"
)

// TestEdgeDecoders compares logits of edges with their formula, a product with [z_u ‖ z_v ‖ e], and
// the gradients of rows and parameters with finite differences, in float64. Edges share ends, and
// both ends may be of one table.
func TestEdgeDecoders(t *testing.T) {
	const rows, cols, out = 4, 3, 2
	be := kernels.NewReference()
	uints := func(values ...uint32) kernels.Tensor {
		u := kernels.Tensor{Buf: be.Alloc(kernels.U32, len(values)), Type: kernels.U32, Rows: len(values), Cols: 1}
		be.UploadU32(u, values)
		return u
	}
	src, dst := []uint32{3, 1, 1, 0, 3}, []uint32{0, 2, 1, 1, 0}
	for _, kind := range EdgeDecoders {
		for _, given := range []int{0, 2} {
			for _, shared := range []bool{false, true} {
				rng := rand.New(rand.NewPCG(1, 2))
				m := New(be, Config{Kind: SAGE, Layers: 1, Hidden: 4, Norm: "none", Decoder: kind}, Shape{In: []int{3}, Out: cols, EdgeOut: out, EdgeIn: given}, 1)
				tp := tape.New(be)
				type point struct {
					value, grad kernels.Tensor
					at          []float64
				}
				tensor := func(rows, cols int) kernels.Tensor {
					return kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
				}
				points := []*point{{tensor(rows, cols), tensor(rows, cols), nil}, {tensor(rows, cols), tensor(rows, cols), nil}}
				named := map[string]*point{}
				for _, p := range m.Params {
					if name, ok := strings.CutPrefix(p.Name, "decoder."); ok {
						named[name] = &point{p.Value, p.Grad, nil}
						points = append(points, named[name])
					}
				}
				for _, p := range points {
					be.Fill(p.grad, 0)
					for range p.value.Len() {
						p.at = append(p.at, rng.NormFloat64())
					}
				}
				numbers := make([]float64, len(src)*given)
				for i := range numbers {
					numbers[i] = rng.NormFloat64()
				}
				e := Ends{Src: uints(src...), Dst: uints(dst...)}
				if given > 0 {
					e.Given = tensor(len(src), given)
					be.UploadF64(e.Given, numbers)
				}
				targets := tensor(len(src), out)
				be.Fill(targets, 1)
				compute := func(record bool) (logits []float64, loss float64) {
					for _, p := range points {
						be.UploadF64(p.value, p.at)
					}
					tp.Reset(record)
					x := tape.NewParam(points[0].value, points[0].grad)
					y := tape.NewParam(points[1].value, points[1].grad)
					if shared {
						y = x
					}
					l := m.Edges(tp, x, y, e)
					logits = make([]float64, l.Value.Len())
					be.DownloadF64(logits, l.Value)
					tp.SquaredError(l, targets, 1)
					for _, v := range logits {
						loss += (v - 1) * (v - 1)
					}
					if record {
						tp.Backward()
					}
					return logits, loss
				}
				got, _ := compute(true)
				other := points[1].at
				if shared {
					other = points[0].at
				}
				product := func(prefix string, i, o int) float64 {
					sum := named[prefix+"bias"].at[o]
					for k := range cols {
						sum += named[prefix+"src.weight"].at[o*cols+k]*points[0].at[int(src[i])*cols+k] + named[prefix+"dst.weight"].at[o*cols+k]*other[int(dst[i])*cols+k]
					}
					for k := range given {
						sum += named[prefix+"edge.weight"].at[o*given+k] * numbers[i*given+k]
					}
					return sum
				}
				for i := range src {
					for o := range out {
						want := 0.0
						if kind == Linear {
							want = product("lin.", i, o)
						} else {
							want = named["lins.1.bias"].at[o]
							for h := range cols {
								want += named["lins.1.weight"].at[o*cols+h] * max(product("lins.0.", i, h), 0)
							}
						}
						require.InDelta(t, want, got[i*out+o], 1e-9, "%s, edge %d", kind, i)
					}
				}
				for n, p := range points {
					if n == 1 && shared {
						continue
					}
					grad := make([]float64, p.value.Len())
					be.DownloadF64(grad, p.grad)
					for i, v := range p.at {
						const h = 1e-6
						p.at[i] = v + h
						_, above := compute(false)
						p.at[i] = v - h
						_, below := compute(false)
						p.at[i] = v
						require.InDelta(t, (above-below)/(2*h), grad[i], 1e-4*max(1, grad[i]), "%s, given %d, point %d, element %d", kind, given, n, i)
					}
				}
				tp.Close()
				m.Close()
			}
		}
	}
}
