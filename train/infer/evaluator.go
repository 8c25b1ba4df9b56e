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
	// Measure adds what the network made of nodes of type t, a row each, to the metric.
	Measure(f *step.Feed, t int, out kernels.Tensor, nodes []uint32) error
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
	tables []*cachetier.Stack // by type
	pipe   *pipeline.Pipeline

	reach  sample.Reach
	full   []*sample.Sampler // by layer: every neighbour that it looks at; they draw on the goroutine that calls them
	hidden int64             // bytes of hidden rows: the widest pair of layers, if every node were needed
	block  sample.Batch
	place  [][]uint32 // by type: row of a node in the layer below the one at hand
}

// New makes an Evaluator of the network of s. It has no memory before the first Measure.
func New(d *data.Data, s *step.Stepper, task Task, o Options) *Evaluator {
	schema := d.Schema()
	e := &Evaluator{Options: o, data: d, step: s, task: task, reach: o.Draws.Reach(schema, d.SeedTypes()...), place: make([][]uint32, len(d.Types))}
	var lists []sample.Topology
	var values []sample.Values
	for _, r := range d.Relations {
		lists, values = append(lists, r.AtHand(o.Draws.Weighted)), append(values, r.Values())
	}
	for l, drawn := range e.reach.Relations {
		if l > 0 && slices.Equal(drawn, e.reach.Relations[l-1]) {
			e.full = append(e.full, e.full[l-1])
			continue
		}
		c := sample.Config{Fanouts: []int{0}, OfRelation: make([][]int, len(drawn)), Weighted: o.Draws.Weighted, Options: o.Draws.Options}
		for r := range drawn {
			if drawn[r] {
				c.OfRelation[r] = []int{sample.All}
			}
		}
		full := sample.NewTyped(schema, lists, c, 1)
		full.Bring(values)
		e.full = append(e.full, full)
	}
	for l := range s.Model.Layers - 1 {
		e.hidden = max(e.hidden, e.rowBytes(l)+e.rowBytes(l-1))
	}
	return e
}

// rowBytes is what the rows take that layer l makes of every node; none where there is no such layer.
func (e *Evaluator) rowBytes(l int) (bytes int64) {
	if l < 0 {
		return 0
	}
	for t, made := range e.reach.Types[l+1] {
		if made {
			bytes += 4 * int64(e.data.Types[t].Nodes) * int64(e.step.Model.Width(l))
		}
	}
	return bytes
}

// Attach has the Evaluator read rows by tables, one a type or nil, and sampled blocks by pipe, which is not running while it
// measures.
func (e *Evaluator) Attach(tables []*cachetier.Stack, pipe *pipeline.Pipeline) {
	e.tables, e.pipe = tables, pipe
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
	var places, widest, learnt int64
	columns := 0
	for t, read := range e.reach.Types[0] {
		if read {
			nodes := int64(e.data.Types[t].Nodes)
			places += 4 * nodes
			widest = max(widest, 4*nodes*int64(max(e.step.Model.Hidden, e.data.Types[t].Dim())))
			learnt += nodes * e.learntRow(t)
		}
	}
	for _, r := range e.data.Relations {
		columns = max(columns, len(r.Inputs))
	}
	return e.hidden + places + min(chunkBytes, widest)*evalChunks + 2*4*chunkEdges*int64(columns) + 2*min(learntBytes, learnt)
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

// Measure is the metric over nodes, by type; ok is false for an empty set.
func (e *Evaluator) Measure(ctx context.Context, nodes [][]uint32) (v float64, ok bool, err error) {
	if !slices.ContainsFunc(nodes, func(ids []uint32) bool { return len(ids) > 0 }) {
		return 0, false, nil
	}
	err = store.Guard(func() error {
		if e.Sampled() {
			return e.sampled(ctx, nodes)
		}
		return e.layerwise(ctx, e.step.Model.Layers-1, nodes, func(t int, chunk []uint32, y kernels.Tensor) error {
			return e.task.Measure(e.step.Feed, t, y, chunk)
		})
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

// sampled evaluates at most Nodes of the nodes of each type, the same ones with the same blocks each time.
func (e *Evaluator) sampled(ctx context.Context, nodes [][]uint32) error {
	for t, ids := range nodes {
		if len(ids) == 0 {
			continue
		}
		used := slices.Clone(ids)
		sample.Shuffle(used, e.Seed, -1)
		used = used[:min(len(used), e.Nodes)]
		steps := pipeline.Steps{
			To: (len(used) + e.Batch - 1) / e.Batch,
			Seeds: func(step int) [][]uint32 {
				seeds := make([][]uint32, len(nodes))
				seeds[t] = used[step*e.Batch : min((step+1)*e.Batch, len(used))]
				return seeds
			},
			Z: func(step int) sample.Z { return sample.Alone(e.Seed, -1, step) },
		}
		err := e.pipe.Run(ctx, steps, func(b *pipeline.Gathered) error {
			out := e.step.Predict(step.InputOf(b.Batch, b.Rows...))[t]
			e.look()
			return e.task.Measure(e.step.Feed, t, out.Value, b.Batch.Seeds[t])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Each calls do with what the network makes of nodes of the target type over all their neighbours: a row a node of layer, the last of
// which has the logits and the others activations. Nodes come in ascending order, a chunk at a time; chunk and y are lent for the length of
// the call. Memory is as of a layer-wise evaluation.
func (e *Evaluator) Each(ctx context.Context, layer int, nodes []uint32, do func(chunk []uint32, y kernels.Tensor) error) error {
	return store.Guard(func() error {
		return e.layerwise(ctx, layer, e.data.Seeds(nodes), func(_ int, chunk []uint32, y kernels.Tensor) error { return do(chunk, y) })
	})
}

// layerwise computes layer after layer for the nodes that the next one needs, a chunk at a time: what every neighbour at
// every hop says, at the cost of each node once a layer. The labels of nodes are no input of it. do gets the rows of the layer top,
// type after type.
func (e *Evaluator) layerwise(ctx context.Context, top int, nodes [][]uint32, do func(t int, chunk []uint32, y kernels.Tensor) error) error {
	if shown := e.step.Shown; shown != nil {
		shown.Hide(nodes[e.data.Target])
		defer shown.Show()
	}
	need, err := e.plan(top, nodes)
	if err != nil {
		return err
	}
	be := e.step.Tape.Backend()
	var below, out []kernels.Tensor // rows of the layer below, and of the one at hand, by type
	free := func(rows []kernels.Tensor) {
		for _, t := range rows {
			if t.Buf != nil {
				be.Free(t.Buf)
			}
		}
	}
	defer func() { free(below); free(out) }()
	for l, wanted := range need {
		free(below)
		below, out = out, make([]kernels.Tensor, len(wanted))
		for t, nodes := range wanted {
			if nodes == nil {
				continue
			}
			if l < top {
				rows, width := nodes.count(), e.step.Model.Width(l)
				out[t] = kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*width), Type: kernels.F32, Rows: rows, Cols: width}
			}
			done := 0
			err := e.chunks(nodes, t, l, func(chunk []uint32) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				y, err := e.layer(ctx, l, below, t, chunk)
				if err != nil {
					return err
				}
				e.look()
				if l == top {
					return do(t, chunk, y)
				}
				be.Convert(out[t].Slice(done, done+len(chunk)), y)
				done += len(chunk)
				return nil
			})
			if err != nil {
				return err
			}
		}
		for t, nodes := range wanted {
			nodes.rank(e.place[t])
		}
	}
	return nil
}

// layer computes layer l for nodes of type t from the features, or from the rows of the layer below.
func (e *Evaluator) layer(ctx context.Context, l int, below []kernels.Tensor, t int, nodes []uint32) (kernels.Tensor, error) {
	b, seeds := &e.block, make([][]uint32, len(e.data.Types))
	seeds[t] = nodes
	if err := e.full[l].SampleOne(ctx, b, sample.Z{}, seeds...); err != nil {
		return kernels.Tensor{}, e.data.Place(err)
	}
	e.step.Tape.Reset(false)
	x := make(model.Rows, len(seeds))
	for from, ids := range b.Inputs() {
		var rows kernels.Tensor
		switch {
		case len(ids) == 0:
			continue
		case l > 0:
			rows = e.step.Feed.RowsOf(from, below[from], ids, e.place[from])
		case e.tables[from] == nil: // the network has a row for it
			continue
		default:
			var err error
			if rows, err = e.step.Feed.Gather(ctx, from, e.tables[from], e.data.Types[from].DType(), ids); err != nil {
				return rows, err
			}
			x[from] = e.step.Leaf(from, rows)
			continue
		}
		x[from] = e.step.Tape.Leaf(rows)
	}
	g := e.step.Feed.Blocks(b.Layers)[0]
	if l == 0 {
		e.step.Label(&g, &b.Layers[0])
	}
	return e.step.Model.Layer(e.step.Tape, l, x, g)[t].Value, nil
}

// Bounds of a chunk of layer-wise evaluation.
const (
	chunkBytes = 32 << 20 // of float32 destination rows
	chunkEdges = 1 << 18
	// learntBytes is of the records of learnt sources, and of their values, which are copied out of them.
	learntBytes = 64 << 20
	evalChunks  = 8 // that the memory of a chunk comes to: its rows, what is computed of them, its blocks
)

// chunks calls do with the nodes of type t of layer l in ascending order, at least one and as many as the bounds allow at a time.
func (e *Evaluator) chunks(nodes nodeSet, t, l int, do func(chunk []uint32) error) error {
	width := e.step.Model.Hidden
	if l == 0 && e.data.Types[t].HasRows() {
		width = e.data.Types[t].Dim()
	}
	var chunk []uint32
	edges, learnt := 0, int64(0)
	for v := range nodes.all {
		chunk = append(chunk, v)
		n, bytes := e.edges(l, t, v)
		edges, learnt = edges+n, learnt+bytes
		if len(chunk)*width*4 >= chunkBytes || edges >= chunkEdges || learnt >= learntBytes {
			if err := do(chunk); err != nil {
				return err
			}
			chunk, edges, learnt = chunk[:0], 0, 0
		}
	}
	if len(chunk) == 0 {
		return nil
	}
	return do(chunk)
}

// edges is the number of neighbours that layer l reads for v of type t, and the bytes that learnt rows take for it at most.
func (e *Evaluator) edges(l, t int, v uint32) (n int, learnt int64) {
	for i, r := range e.data.Relations {
		if r.Dst == t && e.reach.Relations[l][i] {
			n += r.Degree(v)
			learnt += int64(r.Degree(v)) * e.learntRow(r.Src)
		}
	}
	if l > 0 {
		return n, 0
	}
	return n, learnt + e.learntRow(t)
}

// learntRow is what a learnt row of type t takes with the values that are copied out of it, 0 where rows are not learnt.
func (e *Evaluator) learntRow(t int) int64 {
	if d := &e.data.Types[t]; d.Features == nil {
		return 16*int64(d.Embed) + 4*min(1, int64(d.Embed))
	}
	return 0
}

// plan is the nodes that each layer up to top computes, by type, nil for types of which it computes none: top nodes, each one below
// those that the next reads.
func (e *Evaluator) plan(top int, nodes [][]uint32) ([][]nodeSet, error) {
	for t, read := range e.reach.Types[0] {
		if n := e.data.Types[t].Nodes; read && e.place[t] == nil {
			e.place[t] = make([]uint32, n)
		}
	}
	need := make([][]nodeSet, top+1)
	need[top] = make([]nodeSet, len(e.data.Types))
	for t, ids := range nodes {
		if len(ids) > 0 {
			need[top][t] = newNodeSet(e.data.Types[t].Nodes)
		}
		for _, v := range ids {
			need[top][t].add(v)
		}
	}
	for l := top - 1; l >= 0; l-- {
		need[l] = make([]nodeSet, len(e.data.Types))
		for t, made := range e.reach.Types[l+1] {
			switch {
			case !made:
			case need[l+1][t] != nil:
				need[l][t] = slices.Clone(need[l+1][t])
			default:
				need[l][t] = newNodeSet(e.data.Types[t].Nodes)
			}
		}
		for i, r := range e.data.Relations {
			if !e.reach.Relations[l+1][i] {
				continue
			}
			for v := range need[l+1][r.Dst].all {
				for _, u := range r.Neighbors(v) {
					if int(u) >= e.data.Types[r.Src].Nodes {
						return nil, r.CorruptNeighbor(v, u)
					}
					need[l][r.Src].add(u)
				}
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
