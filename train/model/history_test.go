package model

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// finding is an Expander that finds a hashed share of the nodes of hidden layers in slots, each in
// another one.
type finding struct {
	layers int
	share  float64
}

func (f finding) Expand(_ context.Context, hop int, found [][][]uint32) (next [][][]uint32, origins [][][]sample.Origin, err error) {
	for i, types := range found {
		next, origins = append(next, make([][]uint32, len(types))), append(origins, make([][]sample.Origin, len(types)))
		for t, ids := range types {
			for k, v := range ids {
				if hop < f.layers-1 && float64(sample.Hash(3, uint64(hop), uint64(t), uint64(v))) < f.share*0x1p64 {
					origins[i][t] = append(origins[i][t], sample.Origin{From: sample.Slot, Index: uint32(k*7+3) % slotCount})
					continue
				}
				origins[i][t] = append(origins[i][t], sample.Origin{From: sample.Below, Index: uint32(len(next[i][t]))})
				next[i][t] = append(next[i][t], v)
			}
		}
	}
	return next, origins, nil
}

// slotCount is the number of slots of a table, more than a batch has nodes. Their rows are
// slotSpare columns wider than a layer's.
const slotCount, slotSpare = 257, 3

// slotRows returns the rows of slots for rows of type t that layer l computes.
func slotRows(l, t, hidden int, slots ...uint32) []float32 {
	return features(100+10*l+t, slots, hidden+slotSpare)
}

// slotTables are the tables on a backend.
func slotTables(be kernels.Backend, c Config, types int) (all [][]kernels.Tensor) {
	slots := make([]uint32, slotCount)
	for i := range slots {
		slots[i] = uint32(i)
	}
	for l := range c.Layers - 1 {
		var tables []kernels.Tensor
		for t := range types {
			half := make([]uint16, slotCount*(c.Hidden+slotSpare))
			kernels.Float32ToHalf(half, slotRows(l, t, c.Hidden, slots...))
			x := kernels.Tensor{Buf: be.Alloc(kernels.F16, len(half)), Type: kernels.F16, Rows: slotCount, Cols: c.Hidden + slotSpare}
			be.UploadHalf(x, half)
			tables = append(tables, x)
		}
		all = append(all, tables)
	}
	return all
}

// uploadOrigins adds to graphs where the rows of hidden layers come from, where the batch says so.
func uploadOrigins(be kernels.Backend, layers []sample.Layer, graphs []Graph) {
	for l := 1; l < len(layers); l++ {
		for t := range layers[l].Nodes {
			origins := layers[l].Nodes[t].Origin
			if len(origins) == 0 {
				continue
			}
			at, back := make([]uint32, len(origins)), make([]uint32, layers[l-1].Nodes[t].Dst)
			for i, o := range origins {
				at[i] = o.Index
				if o.From == sample.Slot {
					at[i] += kernels.InSlot
				} else {
					back[o.Index] = uint32(i)
				}
			}
			graphs[l].Nodes[t].At, graphs[l].Nodes[t].Back = u32(be, at), u32(be, back)
		}
	}
}

// held is the history that the formulas read: rows of the tables, which are constants. by is added
// to one element of the rows put together.
type held struct {
	hidden             int
	layer, t, row, col int
	by                 float64
}

// assemble is the rows that f reads, those that layer l computed being y.
func (h *held) assemble(l, t int, f *sample.Frontier, y [][]float64) (x [][]float64) {
	if h == nil {
		return y
	}
	for i := range f.Src {
		var row []float64
		switch o := f.Origin[i]; o.From {
		case sample.Slot:
			for _, v := range slotRows(l, t, h.hidden, o.Index)[:h.hidden] {
				row = append(row, float64(v))
			}
		default:
			row = slices.Clone(y[o.Index])
		}
		if h.layer == l && h.t == t && h.row == i {
			row[h.col] += h.by
		}
		x = append(x, row)
	}
	return x
}

// pruning is a network, how its batches are drawn, and how many values the edges of each relation
// have.
type pruning struct {
	Config
	sampler sample.Kind
	edges   []int
}

// prunings are networks of every kind that reads neighbours, with two hidden layers: with edges
// that count the same, with weights, and with values.
var prunings = []pruning{
	{Config{Kind: SAGE, Layers: 3, Hidden: 4, Norm: "none"}, sample.NS, nil},
	{Config{Kind: SAGE, Layers: 3, Hidden: 4, Norm: "none"}, sample.LaborStar, nil},
	{Config{Kind: GCN, Layers: 3, Hidden: 5, Norm: "none"}, sample.NS, nil},
	{Config{Kind: GAT, Layers: 3, Hidden: 6, Norm: "none", Heads: 2}, sample.NS, nil},
	{Config{Kind: GAT, Layers: 3, Hidden: 6, Norm: "none", Heads: 2}, sample.RW, nil},
	{Config{Kind: RSAGE, Layers: 3, Hidden: 4, Norm: "layer"}, sample.NS, nil},
	{Config{Kind: RSAGE, Layers: 3, Hidden: 4, Norm: "layer"}, sample.LaborStar, []int{2, 1, 0, 5, 1, 3, 0}},
	{Config{Kind: RGCN, Layers: 3, Hidden: 5, Norm: "none"}, sample.NS, nil},
	{Config{Kind: RGCN, Layers: 3, Hidden: 5, Norm: "layer", Bases: 2}, sample.NS, []int{2, 1, 2, 0, 1, 0, 1}},
	{Config{Kind: RGAT, Layers: 3, Hidden: 6, Norm: "layer", Heads: 2}, sample.NS, []int{2, 1, 0, 0, 1, 3, 0}},
	{Config{Kind: HGT, Layers: 3, Hidden: 8, Norm: "layer", Heads: 2}, sample.NS, nil}, // a score is scaled by 1/2, which float32 has
}

// prunedCase is a batch, some of whose rows are in slots, for a network of any kind.
type prunedCase struct {
	Config
	Shape
	batch   *sample.Batch
	graphs  []Graph
	inputs  func(tp *tape.Tape) Rows
	classes []uint32
	formula func(params map[string][]float64, h *held) []float64 // the logits
}

// newPruned draws the batch through e, or where that is nil as it is.
func newPruned(be kernels.Backend, e sample.Expander, of pruning) *prunedCase {
	c := of.Config
	if c.Kind.Typed() {
		p := typedProblemThrough(e, be, c, some, of.sampler, 1, 3, of.edges...)
		n := &prunedCase{Config: c, Shape: p.Shape, batch: &p.batch, graphs: p.graphs, inputs: p.inputs}
		n.formula = func(params map[string][]float64, h *held) []float64 {
			return slices.Concat(formulas{c, p, params, h}.logits()...)
		}
		return n.classify()
	}
	const nodes, in, out = 24, 6, 3
	b := drawnThrough(e, sample.Config{Kind: of.sampler, Walk: sample.DefaultWalk, Fanouts: slices.Repeat([]int{3}, c.Layers), Options: c.Kind.Sampling()}, nodes, someSeeds)
	p := problemOf(be, b, nodes, in)
	n := &prunedCase{Config: c, Shape: shape(in, out), batch: b, graphs: p.graphs}
	n.inputs = func(tp *tape.Tape) Rows { return Rows{tp.Leaf(p.x)} }
	rows := make([]float32, p.x.Len())
	be.DownloadF32(rows, p.x)
	n.formula = func(params map[string][]float64, h *held) []float64 { return byFormula(c, b, rows, in, out, params, h) }
	return n.classify()
}

func (p *prunedCase) classify() *prunedCase {
	for i := range p.batch.Seeds[0] {
		p.classes = append(p.classes, uint32(2*i%p.Out))
	}
	return p
}

// crossEntropy is the sum of the losses of logits, in float64.
func (p *prunedCase) crossEntropy(logits []float64) (sum float64) {
	for i, class := range p.classes {
		row, below := logits[i*p.Out:][:p.Out], 0.0
		for _, v := range row {
			below += math.Exp(v - row[class])
		}
		sum += math.Log(below)
	}
	return sum
}

// origins counts the sources of hidden layers that are computed, and that are in slots.
func (p *prunedCase) origins() (computed, used int) {
	for _, layer := range p.batch.Layers[1:] {
		for _, nodes := range layer.Nodes {
			for _, o := range nodes.Origin {
				if o.From == sample.Slot {
					used++
				} else {
					computed++
				}
			}
		}
	}
	return computed, used
}

// TestPrunedGradients compares the logits of pruned batches with sums over edges, one by one in
// float64, in which rows of slots are constants, and all gradients with finite differences of those
// sums: of the parameters, and of the rows put together, whether computed or from slots.
func TestPrunedGradients(t *testing.T) {
	storetest.Long(t)
	for _, c := range prunings {
		for _, share := range []float64{0.4, 1} {
			note := fmt.Sprintf("%+v, %v in slots", c, share)
			be := kernels.NewReference()
			p := newPruned(be, finding{c.Layers, share}, c)
			computed, used := p.origins()
			require.Equal(t, share < 1, computed > 0, note)
			require.Positive(t, used, note)
			m, tp := New(be, c.Config, p.Shape, 11), tape.New(be)
			shake(be, m)
			params := map[string][]float64{}
			for _, param := range m.Params {
				params[param.Name] = wide(be, param.Value)
			}
			var kept Kept
			tp.Reset(true)
			out := m.Forward(tp, p.inputs(tp), p.graphs, Pass{Kept: &kept, Slots: slotTables(be, c.Config, len(p.In))})[0]
			tp.CrossEntropy(out, u32(be, p.classes), 1)
			tp.Backward()
			require.InDeltaSlice(t, p.formula(params, &held{hidden: c.Hidden, layer: -1}), wide(be, out.Value), 1e-11, note)
			const h = 1e-5
			near := func(want, got float64, format string, args ...any) {
				require.InDelta(t, want, got, 2e-6*max(1, math.Abs(got)), note+": "+fmt.Sprintf(format, args...))
			}
			for _, param := range m.Params {
				value, grad := params[param.Name], wide(be, param.Grad)
				for i, x := range value {
					if i%(1+len(value)/2) != 0 {
						continue // of large matrices some elements
					}
					loss := func(v float64) float64 {
						value[i] = v
						defer func() { value[i] = x }()
						return p.crossEntropy(p.formula(params, &held{hidden: c.Hidden, layer: -1}))
					}
					near((loss(x+h)-loss(x-h))/(2*h), grad[i], "%s[%d]", param.Name, i)
				}
			}
			moved := 0.0
			for l, hidden := range kept.Hidden {
				for typ, rows := range hidden {
					src := p.batch.Layers[l+1].Nodes[typ].Src
					if rows == nil {
						require.Empty(t, src, note)
						continue
					}
					require.Equal(t, len(src), rows.Value.Rows, note)
					grad := wide(be, tp.Gradient(rows))
					for i := range src {
						col := (i + l) % c.Hidden
						loss := func(by float64) float64 {
							return p.crossEntropy(p.formula(params, &held{c.Hidden, l, typ, i, col, by}))
						}
						got := grad[i*c.Hidden+col]
						near((loss(h)-loss(-h))/(2*h), got, "layer %d, type %d, row %d", l, typ, i)
						if p.batch.Layers[l+1].Nodes[typ].Origin[i].From == sample.Slot {
							moved += math.Abs(got)
						}
					}
				}
			}
			require.Positive(t, moved, note)
			m.Close()
			tp.Close()
		}
	}
}

// TestPrunedDropout compares the gradients of parameters with finite differences of the network
// itself, where rows and attention are dropped: the same nodes lose the same elements, from a slot
// too.
func TestPrunedDropout(t *testing.T) {
	storetest.Long(t)
	for _, c := range prunings {
		c.Dropout, c.InputDropout, c.AttnDropout = 0.4, 0.2, 0.3
		be := kernels.NewReference()
		p := newPruned(be, finding{c.Layers, 0.4}, c)
		m, tp, slots, labels := New(be, c.Config, p.Shape, 11), tape.New(be), slotTables(be, c.Config, len(p.In)), u32(be, p.classes)
		shake(be, m)
		var kept Kept
		loss := func(record bool) (sum float64) {
			tp.Reset(record)
			for _, l := range wide(be, tp.CrossEntropy(m.Forward(tp, p.inputs(tp), p.graphs, Pass{Key: 77, Slots: slots, Kept: &kept})[0], labels, 1)) {
				sum += l
			}
			return sum
		}
		loss(true)
		tp.Backward()
		for l, hidden := range kept.Hidden { // what is kept is not dropped
			for typ, rows := range hidden {
				for i, o := range p.batch.Layers[l+1].Nodes[typ].Origin {
					want := slotRows(l, typ, c.Hidden, o.Index)
					for j, v := range wide(be, rows.Value.Slice(i, i+1)) {
						if o.From == sample.Slot {
							require.Equal(t, float64(want[j]), v)
						} else {
							require.Equal(t, wide(be, kept.Computed[l][typ].Value.Slice(int(o.Index), int(o.Index)+1))[j], v)
						}
					}
				}
			}
		}
		for _, param := range m.Params {
			value, grad := wide(be, param.Value), wide(be, param.Grad)
			for i := 0; i < len(value); i += 1 + len(value)/4 {
				const h = 1e-5
				x := value[i]
				at := func(v float64) float64 {
					value[i] = v
					be.UploadF64(param.Value, value)
					return loss(false)
				}
				up, down := at(x+h), at(x-h)
				at(x)
				require.InDelta(t, (up-down)/(2*h), grad[i], 2e-6*max(1, math.Abs(grad[i])), "%+v: %s[%d]", c, param.Name, i)
			}
		}
		m.Close()
		tp.Close()
	}
}

// TestNothingFoundChangesNothing: a batch that was drawn past slots, and found none, gives the bits
// of one that was drawn without: of logits, of the parameters' gradients, and of hidden rows and
// theirs.
func TestNothingFoundChangesNothing(t *testing.T) {
	for _, set := range kernels.Sets() {
		for _, c := range prunings {
			c.Dropout, c.InputDropout, c.AttnDropout = 0.4, 0.2, 0.3
			run := func(e sample.Expander) (all [][]float64) {
				be := kernels.NewCPU(kernels.CPUOptions{Threads: 2, Set: set})
				p := newPruned(be, e, c)
				m, tp := New(be, c.Config, p.Shape, 11), tape.New(be)
				defer m.Close()
				defer tp.Close()
				var kept Kept
				tp.Reset(true)
				y := m.Forward(tp, p.inputs(tp), p.graphs, Pass{Key: 77, Kept: &kept, Slots: slotTables(be, c.Config, len(p.In))})[0]
				all = append(all, wide(be, y.Value))
				tp.CrossEntropy(y, u32(be, p.classes), 0.25)
				tp.Backward()
				for _, param := range m.Params {
					all = append(all, wide(be, param.Grad))
				}
				for _, hidden := range kept.Hidden {
					for _, rows := range hidden {
						if rows != nil {
							all = append(all, wide(be, rows.Value), wide(be, tp.Gradient(rows)))
						}
					}
				}
				return all
			}
			require.Equal(t, run(nil), run(finding{c.Layers, 0}), "%+v with %s", c, set)
		}
	}
}

// TestPrunedBackendsAgree: what the sets of the CPU make of pruned batches is near what the
// Reference makes.
func TestPrunedBackendsAgree(t *testing.T) {
	for _, c := range prunings {
		c.Dropout = 0.4
		run := func(be kernels.Backend) (all []float64) {
			p := newPruned(be, finding{c.Layers, 0.4}, c)
			m, tp := New(be, c.Config, p.Shape, 11), tape.New(be)
			defer m.Close()
			defer tp.Close()
			var kept Kept
			tp.Reset(true)
			y := m.Forward(tp, p.inputs(tp), p.graphs, Pass{Key: 77, Kept: &kept, Slots: slotTables(be, c.Config, len(p.In))})[0]
			tp.CrossEntropy(y, u32(be, p.classes), 0.25)
			tp.Backward()
			for _, param := range m.Params {
				all = append(all, wide(be, param.Grad)...)
			}
			for _, hidden := range kept.Hidden {
				for _, rows := range hidden {
					if rows != nil {
						all = append(all, wide(be, tp.Gradient(rows))...)
					}
				}
			}
			return all
		}
		want := run(kernels.NewReference())
		for _, set := range kernels.Sets() {
			require.InDeltaSlice(t, want, run(kernels.NewCPU(kernels.CPUOptions{Set: set})), 1e-4, "%+v with %s", c, set)
		}
	}
}
