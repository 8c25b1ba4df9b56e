package train

import (
	"context"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// evaluator measures accuracy on fixed sets of nodes: exactly, layer by layer over every neighbour, or, where the hidden
// rows would not fit its budget, on blocks sampled once and for all.
//
// Its reads go past the host cache, so that a pass over the graph does not throw the training's hot rows out, and they
// are counted apart.
type evaluator struct {
	data    *data
	model   *model.Model
	stack   *cachetier.Stack
	tape    *tape.Tape
	feed    *feed
	full    *sample.Sampler // every neighbour, one layer
	labels  []uint32
	sampler *sample.Sampler // nil: evaluate in full
	seed    uint64
	nodes   int
	batch   int
	place   []uint32 // row of a node in the layer at hand; 4 bytes a node
	plans   map[*uint32][][]uint32
}

// Method says how accuracy is measured: "full" or "sampled".
func (e *evaluator) method() string {
	if e.sampler != nil {
		return "sampled"
	}
	return "full"
}

func newEvaluator(d *data, m *model.Model, be kernels.Backend, stack *cachetier.Stack, o Options) *evaluator {
	e := &evaluator{data: d, model: m, stack: stack, tape: tape.New(be), feed: &feed{be: be},
		full: sample.NewSampler(d.graph, []int{o.Kind.All()}), seed: o.Seed, nodes: o.EvalNodes, batch: o.Batch, plans: map[*uint32][][]uint32{}}
	// The widest pair of layers of hidden rows, if every node were needed.
	if rows := int64(d.graph.Nodes()); o.Layers > 1 && rows*int64(o.Hidden)*4*int64(min(o.Layers-1, 2)) > o.EvalBytes {
		e.sampler = sample.NewSampler(d.graph, o.samplerFanouts())
	}
	return e
}

// accuracy is the share of nodes whose largest logit is their class; ok is false for an empty set.
func (e *evaluator) accuracy(ctx context.Context, nodes []uint32) (acc float64, ok bool, err error) {
	if len(nodes) == 0 {
		return 0, false, nil
	}
	var right int
	err = store.Guard(func() (err error) {
		if e.sampler != nil {
			nodes, right, err = e.sampled(ctx, nodes)
		} else {
			right, err = e.layerwise(ctx, nodes)
		}
		return err
	})
	return float64(right) / float64(len(nodes)), err == nil, err
}

// sampled evaluates at most e.nodes of nodes, the same ones with the same blocks each time.
func (e *evaluator) sampled(ctx context.Context, nodes []uint32) (used []uint32, right int, err error) {
	used = slices.Clone(nodes)
	sample.Shuffle(used, e.seed, -1)
	used = used[:min(len(used), e.nodes)]
	var b sample.Batch
	for i := 0; i*e.batch < len(used); i++ {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		seeds := used[i*e.batch : min((i+1)*e.batch, len(used))]
		e.sampler.Sample(&b, sample.StepSeed(e.seed, -1, i), seeds)
		x, err := e.feed.gather(e.stack, e.data, b.Inputs())
		if err != nil {
			return nil, 0, err
		}
		e.tape.Reset(false)
		right += e.count(e.model.Forward(e.tape, e.tape.Leaf(x), e.feed.blocks(b.Blocks), 0).Value, seeds)
	}
	return used, right, nil
}

// layerwise computes layer after layer for the nodes that the next one needs, a chunk at a time: what every neighbour at
// every hop says, at the cost of each node once a layer.
func (e *evaluator) layerwise(ctx context.Context, nodes []uint32) (right int, err error) {
	need := e.plan(nodes)
	be := e.tape.Backend()
	var below kernels.Tensor // rows of the layer below, for the nodes of need[l]
	free := func() {
		if below.Buf != nil {
			be.Free(below.Buf)
		}
	}
	defer func() { free() }()
	var b sample.Batch
	for l := range e.model.Layers {
		last := l == e.model.Layers-1
		var out kernels.Tensor
		if !last {
			rows := len(need[l+1])
			out = kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*e.model.Width(l)), Type: kernels.F32, Rows: rows, Cols: e.model.Width(l)}
		}
		for i, v := range need[l] {
			e.place[v] = uint32(i)
		}
		for at := 0; at < len(need[l+1]); {
			if err = ctx.Err(); err != nil {
				break
			}
			chunk := e.chunk(need[l+1][at:], l)
			e.full.Sample(&b, 0, chunk)
			var x kernels.Tensor
			if l == 0 {
				x, err = e.feed.gather(e.stack, e.data, b.Inputs())
				if err != nil {
					break
				}
			} else {
				x = e.feed.rowsOf(below, b.Inputs(), e.place)
			}
			e.tape.Reset(false)
			y := e.model.Layer(e.tape, l, e.tape.Leaf(x), e.feed.blocks(b.Blocks)[0]).Value
			if last {
				right += e.count(y, chunk)
			} else {
				be.Convert(out.Slice(at, at+len(chunk)), y)
			}
			at += len(chunk)
		}
		free()
		below = out
		if err != nil {
			return 0, err
		}
	}
	return right, nil
}

// Bounds of a chunk of layer-wise evaluation.
const (
	chunkBytes = 32 << 20 // of float32 destination rows
	chunkEdges = 1 << 18
)

// chunk is the first of nodes that fit the bounds, at least one.
func (e *evaluator) chunk(nodes []uint32, layer int) []uint32 {
	width := e.model.Hidden
	if layer == 0 {
		width = e.data.features.Dim()
	}
	n, edges := 0, 0
	for n < len(nodes) && (n == 0 || n*width*4 < chunkBytes && edges < chunkEdges) {
		if e.model.Kind.All() != 0 {
			edges += e.data.graph.Degree(nodes[n])
		}
		n++
	}
	return nodes[:n]
}

// plan lists the nodes that each layer needs: need[l] are those whose rows layer l reads, need[layers] is nodes. Plans are
// kept: the sets of a run do not change.
func (e *evaluator) plan(nodes []uint32) [][]uint32 {
	if need, ok := e.plans[&nodes[0]]; ok {
		return need
	}
	if e.place == nil {
		e.place = make([]uint32, e.data.graph.Nodes())
	}
	need := make([][]uint32, e.model.Layers+1)
	need[e.model.Layers] = nodes
	for l := e.model.Layers - 1; l >= 0; l-- {
		seen := make([]uint64, (e.data.graph.Nodes()+63)/64)
		n := 0
		mark := func(v uint32) {
			if bit := uint64(1) << (v % 64); seen[v/64]&bit == 0 {
				seen[v/64] |= bit
				n++
			}
		}
		for _, v := range need[l+1] {
			mark(v)
			if e.model.Kind.All() != 0 {
				for _, u := range e.data.graph.Neighbors(v) {
					mark(u)
				}
			}
		}
		need[l] = make([]uint32, 0, n)
		for w, bits := range seen {
			for v := uint32(w * 64); bits != 0; v, bits = v+1, bits>>1 {
				if bits&1 != 0 {
					need[l] = append(need[l], v)
				}
			}
		}
	}
	e.plans[&nodes[0]] = need
	return need
}

// count compares predictions with labels.
func (e *evaluator) count(logits kernels.Tensor, nodes []uint32) int {
	e.labels = e.data.classes(e.labels[:0], nodes)
	return e.feed.correct(logits, e.labels)
}

func (e *evaluator) close() {
	e.tape.Close()
	e.feed.close()
}
