// Package infer evaluates a network on the nodes of a graph: layer by layer over all neighbours, or on sampled blocks.
//
// Memory: an [Evaluator] takes what MemoryBytes says beside that of training. One goroutine at a time. Start at
// [Evaluator.Measure].
package infer

import (
	"context"
	"math/bits"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
)

// Task is what an evaluation measures.
type Task interface {
	// Measure adds what the network made of nodes, a row each, to the metric.
	Measure(f *step.Feed, out kernels.Tensor, nodes []uint32) error
	// Value is the metric of what was measured since the last call.
	Value() (float64, error)
}

// Options says how to evaluate.
type Options struct {
	Draws sample.Config // of training
	// Bytes bounds the hidden rows of layer-wise evaluation; a graph that needs more is evaluated on sampled blocks.
	Bytes int64
	Nodes int // that are evaluated at most on sampled blocks
	Batch int // seeds of such a block
	Seed  uint64
	// Look is called now and then, between pieces of work; nil: nobody is.
	Look func()
}

// Evaluator takes the task's metric on fixed sets of nodes: exactly, layer by layer over every neighbour, whose sums are what
// those of training come to on average, or, where the hidden rows would not fit its budget or the network knows random walks,
// on blocks sampled once and for all.
//
// Sampled blocks come by the pipeline of the training, between its runs. The layer-wise pass reads neighbour lists through
// the map of the graph, in their order, and feature rows without changing what the host cache holds. What either reads
// is counted apart.
type Evaluator struct {
	Options
	data *data.Data
	step *step.Stepper
	task Task

	// Of the training, from Attach on.
	stack *cachetier.Stack
	pipe  *pipeline.Pipeline

	full   *sample.Sampler // every neighbour, one layer; draws on the goroutine that calls it
	hidden int64           // bytes of hidden rows: the widest pair of layers, if every node were needed
	block  sample.Batch
	place  []uint32 // row of a node in the layer below the one at hand
}

// New makes an Evaluator of the network of s. It has no memory before the first Measure.
func New(d *data.Data, s *step.Stepper, task Task, o Options) *Evaluator {
	kind := s.Model.Kind
	c := sample.Config{Fanouts: []int{kind.All()}, Weighted: o.Draws.Weighted, Options: o.Draws.Options}
	e := &Evaluator{Options: o, data: d, step: s, task: task, full: sample.NewSampler(sample.AtHand(d.Lists()), c, 1)}
	if layers := s.Model.Layers; layers > 1 {
		e.hidden = int64(d.Graph.Nodes()) * int64(s.Model.Hidden) * 4 * int64(min(layers-1, 2))
	}
	return e
}

// Attach has the Evaluator read rows by stack and sampled blocks by pipe, which is not running while it measures.
func (e *Evaluator) Attach(stack *cachetier.Stack, pipe *pipeline.Pipeline) {
	e.stack, e.pipe = stack, pipe
}

// Walks tells whether a network of random walks is evaluated, which has weights for the nodes that they visit, and none for all
// neighbours.
func (e *Evaluator) Walks() bool { return e.Draws.Kind == sample.RW }

// HiddenBytes is what the hidden rows of layer-wise evaluation could take.
func (e *Evaluator) HiddenBytes() int64 { return e.hidden }

// MemoryBytes is the memory that it takes beside what training has.
func (e *Evaluator) MemoryBytes() int64 {
	if e.Sampled() {
		return 0
	}
	rows := int64(e.data.Graph.Nodes()) * int64(max(e.step.Model.Hidden, e.data.Features.Dim())) * 4
	return e.hidden + 4*int64(e.data.Graph.Nodes()) + min(chunkBytes, rows)*evalChunks
}

// Sampled tells whether it evaluates on sampled blocks.
func (e *Evaluator) Sampled() bool { return e.Walks() || e.hidden > e.Bytes }

// Method says how accuracy is measured: "full" or "sampled".
func (e *Evaluator) Method() string {
	if e.Sampled() {
		return "sampled"
	}
	return "full"
}

// Measure is the metric over nodes; ok is false for an empty set.
func (e *Evaluator) Measure(ctx context.Context, nodes []uint32) (v float64, ok bool, err error) {
	if len(nodes) == 0 {
		return 0, false, nil
	}
	err = store.Guard(func() error {
		if e.Sampled() {
			return e.sampled(ctx, nodes)
		}
		return e.layerwise(ctx, nodes)
	})
	v, undefined := e.task.Value() // an evaluation that was cut short leaves nothing for the next
	if err == nil {
		err = undefined
	}
	return v, err == nil, err
}

func (e *Evaluator) look() {
	if e.Look != nil {
		e.Look()
	}
}

// sampled evaluates at most Nodes of nodes, the same ones with the same blocks each time.
func (e *Evaluator) sampled(ctx context.Context, nodes []uint32) error {
	used := slices.Clone(nodes)
	sample.Shuffle(used, e.Seed, -1)
	used = used[:min(len(used), e.Nodes)]
	steps := pipeline.Steps{
		To: (len(used) + e.Batch - 1) / e.Batch,
		Seeds: func(step int) [][]uint32 {
			return [][]uint32{used[step*e.Batch : min((step+1)*e.Batch, len(used))]}
		},
		Z: func(step int) sample.Z { return sample.Alone(e.Seed, -1, step) },
	}
	return e.pipe.Run(ctx, steps, func(b *pipeline.Gathered) error {
		logits := e.step.Predict(step.InputOf(b.Batch, b.Rows...))[0]
		e.look()
		return e.task.Measure(e.step.Feed, logits.Value, b.Batch.Seeds[0])
	})
}

// layerwise computes layer after layer for the nodes that the next one needs, a chunk at a time: what every neighbour at
// every hop says, at the cost of each node once a layer.
func (e *Evaluator) layerwise(ctx context.Context, nodes []uint32) error {
	need, err := e.plan(nodes)
	if err != nil {
		return err
	}
	be := e.step.Tape.Backend()
	var below, out kernels.Tensor // rows of the layer below, and of the one at hand
	defer func() {
		for _, t := range []kernels.Tensor{below, out} {
			if t.Buf != nil {
				be.Free(t.Buf)
			}
		}
	}()
	for l, wanted := range need {
		if l > 0 {
			if below.Buf != nil {
				be.Free(below.Buf)
			}
			below, out = out, kernels.Tensor{}
			need[l-1].rank(e.place)
		}
		if last := l == len(need)-1; !last {
			rows, width := wanted.count(), e.step.Model.Width(l)
			out = kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*width), Type: kernels.F32, Rows: rows, Cols: width}
		}
		done := 0
		err := e.chunks(wanted, l, func(chunk []uint32) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			y, err := e.layer(ctx, l, below, chunk)
			if err != nil {
				return err
			}
			e.look()
			if out.Buf != nil {
				be.Convert(out.Slice(done, done+len(chunk)), y)
				done += len(chunk)
				return nil
			}
			return e.task.Measure(e.step.Feed, y, chunk)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// layer computes layer l for nodes from the features, or from the rows of the layer below.
func (e *Evaluator) layer(ctx context.Context, l int, below kernels.Tensor, nodes []uint32) (kernels.Tensor, error) {
	b := &e.block
	if err := e.full.SampleOne(ctx, b, sample.Z{}, nodes); err != nil {
		return kernels.Tensor{}, e.data.Place(err)
	}
	var x kernels.Tensor
	if l == 0 {
		var err error
		if x, err = e.step.Feed.Gather(ctx, e.stack, e.data.DType(), e.data.Features.Dim(), b.Inputs()[0]); err != nil {
			return x, err
		}
	} else {
		x = e.step.Feed.RowsOf(below, b.Inputs()[0], e.place)
	}
	e.step.Tape.Reset(false)
	return e.step.Model.Layer(e.step.Tape, l, model.Rows{e.step.Tape.Leaf(x)}, e.step.Feed.Blocks(b.Layers)[0])[0].Value, nil
}

// Bounds of a chunk of layer-wise evaluation.
const (
	chunkBytes = 32 << 20 // of float32 destination rows
	chunkEdges = 1 << 18
	evalChunks = 8 // that the memory of a chunk comes to: its rows, what is computed of them, its blocks
)

// chunks calls do with the nodes of layer l in ascending order, at least one and as many as the bounds allow at a time.
func (e *Evaluator) chunks(nodes nodeSet, layer int, do func(chunk []uint32) error) error {
	width := e.step.Model.Hidden
	if layer == 0 {
		width = e.data.Features.Dim()
	}
	var chunk []uint32
	edges := 0
	for v := range nodes.all {
		chunk = append(chunk, v)
		edges += e.edges(v)
		if len(chunk)*width*4 >= chunkBytes || edges >= chunkEdges {
			if err := do(chunk); err != nil {
				return err
			}
			chunk, edges = chunk[:0], 0
		}
	}
	if len(chunk) == 0 {
		return nil
	}
	return do(chunk)
}

// edges is the number of neighbours that the network reads for v.
func (e *Evaluator) edges(v uint32) int {
	if e.step.Model.Kind.All() == 0 {
		return 0
	}
	return e.data.Graph.Degree(v)
}

// plan is the nodes that each layer computes: the last one nodes, each one below those that the next reads.
func (e *Evaluator) plan(nodes []uint32) ([]nodeSet, error) {
	n := e.data.Graph.Nodes()
	if e.place == nil {
		e.place = make([]uint32, n)
	}
	need := make([]nodeSet, e.step.Model.Layers)
	last := len(need) - 1
	need[last] = newNodeSet(n)
	for _, v := range nodes {
		need[last].add(v)
	}
	for l := last - 1; l >= 0; l-- {
		need[l] = slices.Clone(need[l+1])
		if e.step.Model.Kind.All() == 0 {
			continue
		}
		for v := range need[l+1].all {
			for _, u := range e.data.Graph.Neighbors(v) {
				if int(u) >= n {
					return nil, e.data.Graph.CorruptNeighbor(v, u)
				}
				need[l].add(u)
			}
		}
	}
	return need, nil
}

// nodeSet has a bit a node.
type nodeSet []uint64

func newNodeSet(nodes int) nodeSet { return make(nodeSet, (nodes+63)/64) }

func (s nodeSet) add(v uint32) { s[v/64] |= 1 << (v % 64) }

func (s nodeSet) count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// all yields the nodes in ascending order.
func (s nodeSet) all(yield func(uint32) bool) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			if !yield(uint32(i*64 + bits.TrailingZeros64(w))) {
				return
			}
		}
	}
}

// rank writes each node's number within the set.
func (s nodeSet) rank(place []uint32) {
	n := uint32(0)
	for v := range s.all {
		place[v] = n
		n++
	}
}
