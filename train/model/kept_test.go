package model

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/tape"
)

// keeping is every network with and without a norm, with dropout and without.
func keeping() (all []Config) {
	for _, c := range networks {
		c.Layers, c.Hidden, c.Heads, c.InputDropout = 3, 6, min(c.Heads, 2), 0.2
		for _, norm := range []string{"layer", "none"} {
			for _, dropout := range []float64{0, 0.4} {
				c.Norm, c.Dropout = norm, dropout
				all = append(all, c)
			}
		}
	}
	return all
}

// TestKeepingChangesNothing: logits and gradients are the same bits whether hidden rows are kept or
// not.
func TestKeepingChangesNothing(t *testing.T) {
	for _, be := range []kernels.Backend{kernels.NewReference(), kernels.NewCPU(kernels.CPUOptions{})} {
		for _, c := range keeping() {
			p := newProblem(be, c.Kind, 24, someSeeds, c.Layers, 3, 6)
			run := func(kept *Kept) (all [][]float64) {
				m, tp := New(be, c, shape(6, 3), 11), tape.New(be)
				defer m.Close()
				defer tp.Close()
				tp.Reset(true)
				y := m.Forward(tp, Rows{tp.Leaf(p.x)}, p.graphs, Pass{Key: 77, Kept: kept})
				all = append(all, wide(be, y[0].Value))
				tp.CrossEntropy(y[0], p.labels, 0.25)
				tp.Backward()
				for _, param := range m.Params {
					all = append(all, wide(be, param.Grad))
				}
				return all
			}
			var kept Kept
			require.Equal(t, run(nil), run(&kept), "%+v on %s", c, be.Name())
			require.Len(t, kept.Hidden, c.Layers-1)
		}
	}
}

// TestKeptRows: hidden rows equal Layer on the rows that the layer read, and their gradients equal
// finite differences, in float64.
func TestKeptRows(t *testing.T) {
	const key = 77
	be := kernels.NewReference()
	for _, c := range keeping() {
		c.AttnDropout = 0 // Layer has none
		p := newProblem(be, c.Kind, 24, someSeeds, c.Layers, 3, 6)
		m, tp := New(be, c, shape(6, 3), 11), tape.New(be)
		shake(be, m)
		total := func(losses kernels.Tensor) (sum float64) {
			for _, l := range wide(be, losses) {
				sum += l
			}
			return sum
		}
		var kept Kept
		tp.Reset(true)
		tp.CrossEntropy(m.Forward(tp, Rows{tp.Leaf(p.x)}, p.graphs, Pass{Key: key, Kept: &kept})[0], p.labels, 1)
		tp.Backward()
		type rows struct {
			kernels.Tensor
			value, gradient []float64
		}
		var hidden []rows
		for l, x := range kept.Hidden {
			n := p.graphs[l].Nodes[0].Dst
			require.Equal(t, n, x[0].Value.Rows)
			require.Equal(t, c.Hidden, x[0].Value.Cols)
			v := kernels.Tensor{Buf: be.Alloc(kernels.F32, n*c.Hidden), Rows: n, Cols: c.Hidden}
			r := rows{v, wide(be, x[0].Value), wide(be, x[0].Grad)}
			be.UploadF64(v, r.value)
			hidden = append(hidden, r)
		}
		// above is the loss of Forward from layer l on.
		above := func(l int) float64 {
			tp.Reset(false)
			x := Rows{tp.Leaf(hidden[l-1].Tensor)}
			for ; l < c.Layers; l++ {
				x = m.layers[l].forward(step{t: tp, key: key}, m.drop(tp, l, x, p.graphs[l], key), p.graphs[l])
			}
			return total(tp.CrossEntropy(x[0], p.labels, 1))
		}
		for l, r := range hidden {
			x := tp.Leaf(p.x)
			if l > 0 {
				x = tp.Leaf(hidden[l-1].Tensor)
			}
			tp.Reset(false)
			read := m.drop(tp, l, Rows{x}, p.graphs[l], key)
			require.Equal(t, wide(be, m.Layer(tp, l, read, p.graphs[l])[0].Value), r.value, "%+v, layer %d", c, l)
			const h = 1e-5
			at := slices.Clone(r.value)
			for i, v := range r.value {
				at[i] = v + h
				be.UploadF64(r.Tensor, at)
				up := above(l + 1)
				at[i] = v - h
				be.UploadF64(r.Tensor, at)
				down := above(l + 1)
				at[i] = v
				be.UploadF64(r.Tensor, at)
				require.InDelta(t, (up-down)/(2*h), r.gradient[i], 1e-6, "%+v, layer %d, element %d", c, l, i)
			}
		}
		m.Close()
		tp.Close()
	}
}
