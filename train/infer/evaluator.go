package infer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
)

// Task defines the metric of an evaluation.
type Task interface {
	// Measure adds what the network made of nodes of type t, a row each, to the metric.
	Measure(f *step.Feed, t int, out kernels.Tensor, nodes []uint32) error
	// Value returns the metric over all measured since the last call.
	Value() (float64, error)
}

// Options configures an Evaluator.
type Options struct {
	Draws sample.Config // of training
	// Bytes bounds the hidden rows of layer-wise evaluation. Way chooses what Measure does where a
	// graph needs more; default Auto.
	Bytes int64
	Way   Way
	// Dir is the directory in which a pass over hidden rows beyond Bytes keeps the rows of each
	// layer while the next one reads them. The pass makes it if it is missing, and leaves nothing
	// of its own there at its end. Default: hidden rows are in memory, whatever they take.
	Dir string
	// Of makes a pass that was cut short, by an error or a crash, leave its finished rows in Dir. A
	// later pass goes on from them if all that decides the rows is the same: dataset, network,
	// weights, nodes, and Of. Of names what this package does not know, such as the checkpoint of
	// learnt rows. Default: nothing stays.
	Of string
	// Hold chooses what a layer holds in memory, for networks that have both ways. Default: the way
	// that reads for less time.
	Hold Hold
	// LayerDtype is the type of rows in Dir: store.F16 takes half of the space, and rounds them.
	// Default store.F32.
	LayerDtype store.Elem
	// Workers evaluate together; nil: one worker does. Each worker makes passes with hidden rows on
	// disk alone.
	Workers *Workers
	// Owned describes this worker's nodes, where each worker has the rows of its own nodes alone.
	// Default nil: the part that the dataset is, or all nodes of a whole dataset.
	Owned *store.Part
	// Tables configures the reading of Dir. Its budgets are ignored: they are parts of Bytes.
	Tables cachetier.Options
	FS     vfs.FS // where Dir is written; default the disk
	// ChunkBytes bounds the float32 rows that are computed at a time. A chunk takes eight times as
	// much, and 128 an edge at most. Rows are the same whatever it is. Default 32 MiB.
	ChunkBytes int64
	Nodes      int // at most, on sampled blocks
	Batch      int // seeds of such a block
	Seed       uint64
	// Look is called now and then, between pieces of work; nil: nobody is.
	Look func()
	// Progress is called after each chunk of nodes of a layer-wise pass; nil: nobody is.
	Progress func(p Progress)
	// Reported is called when a layer is there for all nodes of a type; nil: nobody is.
	Reported func(r Report)
	// Space is called before anything of a pass is written to Dir, with what that takes at most
	// there, and what is free, or -1 where nobody knows; nil: nobody is.
	Space func(bytes, free int64)
	// SpaceBeside is the number of bytes that others will write to the file system of Dir
	// meanwhile.
	SpaceBeside int64
}

// Way is the way in which Measure computes.
type Way string

const (
	// Auto computes layer by layer where the hidden rows of all nodes fit Options.Bytes, and else
	// on sampled blocks.
	Auto Way = ""
	// Full computes layer by layer on any graph; hidden rows beyond Options.Bytes are on disk, in
	// Options.Dir.
	Full Way = "full"
	// Sampled computes on sampled blocks.
	Sampled Way = "sampled"
)

// Progress is the progress of a layer-wise pass: Done of the nodes of a type have their rows of a
// layer.
type Progress struct {
	Layer, Layers int // from 1 on
	Type          string
	Done, Nodes   int
}

// Evaluator takes the task's metric on fixed sets of nodes. It does so exactly, layer by layer over
// every neighbour, whose sums are the expected sums of training, or on blocks sampled once and for
// all: where [Way] chooses that, or the network knows random walks.
//
// Sampled blocks come by the pipeline of the training, between its runs. The layer-wise pass reads
// neighbour lists through the map of the graph, in their order, and feature rows without changing
// what the host cache holds. What either reads is counted apart.
type Evaluator struct {
	Options
	data *data.Data
	step *step.Stepper
	task Task

	// Of the training, from Attach on.
	tables []*cachetier.Stack // by type, and behind them by table of edges; of those that are not attached a pass opens its own
	edges  []*cachetier.Stack // by table of edges, of the pass under way; nil where no layer reads it
	pipe   *pipeline.Pipeline

	reach      sample.Reach
	full       []*sample.Sampler // by layer: every neighbour that it looks at; they draw on the goroutine that calls them. Use draw
	none       *sample.Sampler   // no neighbour. Use drawNone
	partHidden int64             // hidden of the nodes of the largest part
	hidden     int64             // bytes of hidden rows: the widest pair of layers, if every node were needed
	block      sample.Batch
	ahead      [2]drawnChunk // drawn while another is computed
	draws      sync.Mutex    // one at a time draws from full
	place      [][]uint32    // by type: row of a node in the layer below the one at hand

	owners *owners // of the pass under way, where each worker has the rows of its own nodes

	most bounds
	read cachetier.Disk // of layers on disk

	shardBytes int64 // of a layer on disk
	left       bool  // see Left
}

// New makes an Evaluator of the network of s. It has no memory before the first Measure.
func New(d *data.Data, s *step.Stepper, task Task, o Options) *Evaluator {
	schema := d.Schema()
	e := &Evaluator{Options: o, data: d, step: s, task: task, reach: o.Draws.Reach(schema, d.SeedTypes()...), place: make([][]uint32, len(d.Types)), shardBytes: shardBytes}
	if e.Owned == nil {
		e.Owned = d.OwnPart()
	}
	if e.ChunkBytes == 0 {
		e.ChunkBytes = chunkBytes
		if e.Owned != nil {
			e.ChunkBytes /= ownersCopies
		}
	}
	chunk := e.ChunkBytes
	e.most = bounds{int(chunk), int(chunk / chunkEdge), 2 * chunk, hubEdges, hubPart}
	e.most.hub = min(hubEdges, e.most.edges)
	e.most.part = max(1, e.most.hub*hubPart/hubEdges)
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
		if full.Bring(values); e.Owned != nil {
			full.Later() // owners tell the degrees
		}
		d.BringRows(full, func(r int) sample.Rows { return d.Relations[r].Rows() })
		e.full = append(e.full, full)
	}
	e.none = sample.NewTyped(schema, lists, sample.Config{Fanouts: []int{0}, Options: sample.Options{NoBlocks: o.Draws.NoBlocks}}, 1)
	all := func(t int) int64 { return int64(d.Types[t].Nodes) }
	for l := range s.Model.Layers - 1 {
		e.hidden = max(e.hidden, e.rowBytes(l, all)+e.rowBytes(l-1, all))
		e.partHidden = max(e.partHidden, e.rowBytes(l, e.mostOwned)+e.rowBytes(l-1, e.mostOwned))
	}
	return e
}

// rowBytes returns the bytes of the rows that layer l makes of so many nodes of each type, 0 where
// there is no such layer.
func (e *Evaluator) rowBytes(l int, nodes func(t int) int64) (bytes int64) {
	if l < 0 {
		return 0
	}
	for t, made := range e.reach.Types[l+1] {
		if made {
			bytes += 4 * nodes(t) * int64(e.step.Model.Width(l))
		}
	}
	return bytes
}

// Attach has the Evaluator read rows by tables, one a type or nil, and behind them one a table of
// edges or nil, and sampled blocks by pipe, which is not running while it measures.
func (e *Evaluator) Attach(tables []*cachetier.Stack, pipe *pipeline.Pipeline) {
	e.tables, e.pipe = tables, pipe
}

// Walks reports whether the network is one of random walks. It has weights for the nodes that walks
// visit, and none for all neighbours.
func (e *Evaluator) Walks() bool { return e.Draws.Kind.Walks() }

// HiddenBytes returns the bytes that the hidden rows of layer-wise evaluation could take.
func (e *Evaluator) HiddenBytes() int64 { return e.hidden }

// PartBytes is HiddenBytes of the largest part, where each worker has a part of the dataset.
func (e *Evaluator) PartBytes() int64 { return e.partHidden }

// MemoryBytes returns the bytes that evaluation takes beside the memory of training.
func (e *Evaluator) MemoryBytes() int64 {
	if e.Sampled() {
		return 0
	}
	var places, widest, learnt, readers int64
	columns := 0
	for t, read := range e.reach.Types[0] {
		if read {
			nodes := int64(e.data.Types[t].Nodes)
			places += 4 * nodes
			rows := 4 * nodes * int64(max(e.step.Model.Hidden, e.data.Types[t].Dim()))
			widest = max(widest, rows)
			learnt += nodes * e.learntRow(t)
			readers += disk.ReaderBytes(rows, e.Tables.Readers)
		}
	}
	drawn := e.reach.Drawn()
	for i, r := range e.data.Relations {
		if columns = max(columns, len(r.Inputs)); drawn[i] {
			learnt += r.Edges() * e.edgeRow(i)
		}
	}
	ofEdges := int64(0) // the buffers that read tables of edges, of those that a pass opens
	for k, read := range e.data.DrawnTables(drawn) {
		if read && e.tables != nil && e.edgesAttached(k) == nil {
			t := &e.data.EdgeTables[k]
			ofEdges += disk.ReaderBytes(int64(t.Nodes)*int64(t.Features.RowBytes()), e.Tables.Readers)
		}
	}
	hidden := e.hidden + places
	chunks := int64(evalChunks)
	if e.Owned != nil {
		hidden, chunks = e.partHidden+4*e.setBytes(), evalChunks*(1+ownersCopies)
		if e.Workers != nil {
			hidden += 4 * e.pieceBytes() // own rows, those that come, joined ones, and their tensor
		}
	} else if e.mayOverflow() {
		hidden = min(hidden, e.Bytes) + e.setBytes() + readers + writerBytes
	} else if !e.attached() { // for the features
		hidden += readers
	}
	if e.Workers != nil {
		hidden += 2 * e.ChunkBytes // of rows that workers exchange
	}
	return hidden + ofEdges + min(e.ChunkBytes, widest)*chunks + 2*4*int64(e.most.edges*columns) + 2*min(e.most.learnt, learnt)
}

// InMemoryBytes returns the hidden rows' part of MemoryBytes where all of them are in memory.
func (e *Evaluator) InMemoryBytes() int64 {
	bytes := e.hidden
	for t, read := range e.reach.Types[0] {
		if read {
			bytes += 4 * int64(e.data.Types[t].Nodes)
		}
	}
	return bytes
}

// attached reports whether all tables of features that the first layer reads are attached.
func (e *Evaluator) attached() bool {
	if e.tables == nil { // they are not open yet
		return true
	}
	for t, read := range e.reach.Types[0] {
		if d := &e.data.Types[t]; read && d.Features != nil && d.Nodes > 0 && e.tables[t] == nil {
			return false
		}
	}
	return true
}

// Sampled reports whether Measure evaluates on sampled blocks.
func (e *Evaluator) Sampled() bool {
	return e.Walks() || e.Way == Sampled || e.Way == Auto && e.hidden > e.Bytes
}

// mayOverflow reports whether the hidden rows of a pass over all nodes exceed Bytes.
func (e *Evaluator) mayOverflow() bool { return e.hidden > e.Bytes }

// setBytes returns the bytes that a pass over hidden rows on disk takes for its nodes: a bit a node
// and layer, and the index of places of two layers.
func (e *Evaluator) setBytes() (bytes int64) {
	for t, read := range e.reach.Types[0] {
		if read {
			nodes := int64(e.data.Types[t].Nodes)
			bytes += nodes/8*int64(e.step.Model.Layers) + nodes/16
		}
	}
	return bytes
}

// Method returns how accuracy is measured: "full" or "sampled".
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

// sampled evaluates at most Nodes of the nodes of each type, the same ones with the same blocks
// each time.
func (e *Evaluator) sampled(ctx context.Context, nodes [][]uint32) error {
	for t, ids := range nodes {
		if len(ids) == 0 {
			continue
		}
		used := slices.Clone(ids)
		sample.Shuffle(used, e.Seed, -1)
		if err := e.sampledSteps(ctx, t, used[:min(len(used), e.Nodes)]); err != nil {
			return err
		}
	}
	return nil
}

// Each calls do with the rows that layer makes of nodes of the target type over all their
// neighbours: logits for the last layer, activations for the others. Nodes come in ascending order,
// a chunk at a time; chunk and y are lent for the length of the call. It takes the memory of a
// layer-wise evaluation.
func (e *Evaluator) Each(ctx context.Context, layer int, nodes []uint32, do func(chunk []uint32, y kernels.Tensor) error) error {
	return e.EachOf(ctx, layer, e.data.Target, nodes, do)
}

// EachOf is Each for nodes of type t. The layer Makes rows of this type.
func (e *Evaluator) EachOf(ctx context.Context, layer, t int, nodes []uint32, do func(chunk []uint32, y kernels.Tensor) error) error {
	seeds := make([][]uint32, len(e.data.Types))
	seeds[t] = nodes
	return store.Guard(func() error {
		return e.layerwise(ctx, layer, seeds, func(_ int, chunk []uint32, y kernels.Tensor) error { return do(chunk, y) })
	})
}

// Makes reports whether a layer makes rows of nodes of type t: rows that seeds, or the layer above,
// read.
func (e *Evaluator) Makes(layer, t int) bool { return e.reach.Types[layer+1][t] }

// Reads reports whether the first layer reads input rows of nodes of type t.
func (e *Evaluator) Reads(t int) bool {
	return e.reach.Types[0][t] && (e.tables[t] != nil || e.data.Types[t].Features != nil)
}

// Inputs is EachOf with what nodes of type t, which the network Reads, have for input: features, or
// learnt rows.
func (e *Evaluator) Inputs(ctx context.Context, t int, nodes []uint32, do func(chunk []uint32, y kernels.Tensor) error) (err error) {
	if e.Owned != nil {
		return store.Guard(func() error { return e.inputsByOwners(ctx, t, nodes, do) })
	}
	n, table := &e.data.Types[t], e.tables[t]
	if table == nil {
		o := e.Tables
		o.DeviceBytes, o.StaticBytes, o.HostBytes, o.Prewarm = 0, 0, 0, false
		if table, err = cachetier.Open(ctx, n.Features, o); err != nil {
			return fmt.Errorf("the rows of type %s: %w", n.Name, err)
		}
		defer func() { err = errors.Join(err, table.Close()) }()
	}
	rows := max(1, e.ChunkBytes/max(4*int64(n.Dim()), e.learntRow(t)))
	return store.Guard(func() error {
		done := 0
		for chunk := range slices.Chunk(nodes, int(rows)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			e.step.Tape.Reset(false)
			x, err := e.step.Feed.Gather(ctx, t, table, n.DType(), chunk)
			if err != nil {
				return err
			}
			if err := do(chunk, e.step.Tape.Convert(e.step.Leaf(t, x)).Value); err != nil {
				return err
			}
			done += len(chunk)
			e.came(0, 0, t, done, len(nodes))
		}
		return nil
	})
}

// layerwise computes layer after layer for the nodes that the next one needs, a chunk at a time:
// what every neighbour at every hop says, at the cost of each node once a layer. The labels of
// nodes are no input of it. do gets the rows of the layer top, type after type.
func (e *Evaluator) layerwise(ctx context.Context, top int, nodes [][]uint32, do func(t int, chunk []uint32, y kernels.Tensor) error) error {
	if shown := e.step.Shown; shown != nil {
		shown.Hide(nodes[e.data.Target])
		defer shown.Show()
	}
	closeEdges, err := e.openEdges(ctx)
	if err != nil {
		return err
	}
	defer closeEdges()
	if e.Owned != nil {
		return e.byOwners(ctx, top, nodes, do)
	}
	need, err := e.plan(top, nodes)
	if err != nil {
		return err
	}
	p := e.pass(need)
	shared, err := e.shareBytes(ctx, !p.toDisk && e.attached())
	if err != nil {
		return err
	}
	if p.toDisk {
		return e.onDisk(ctx, p, do)
	}
	be := e.step.Tape.Backend()
	var below, out []kernels.Tensor // rows of the layer below, and of the one at hand, by type
	defer func() { e.freeAll(below); e.freeAll(out) }()
	for l, wanted := range need {
		e.freeAll(below)
		below, out = out, make([]kernels.Tensor, len(wanted))
		for t, nodes := range wanted {
			if nodes == nil {
				continue
			}
			count := nodes.count()
			if l < top {
				width := e.step.Model.Width(l)
				out[t] = kernels.NewTensor(be, kernels.F32, count, width)
			}
			done := 0
			if l == 0 && !e.attached() {
				err := e.typeOverDisk(ctx, p, l, t, 0, nil, func(t int, chunk []uint32, y kernels.Tensor) error {
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
				continue
			}
			began := startClock()
			compute := func(nodes nodeSet, use func(chunk []uint32, y kernels.Tensor) error) error {
				return e.drawn(ctx, nodes, t, l, func(c *drawnChunk) error {
					if err := ctx.Err(); err != nil {
						return err
					}
					y, err := e.layer(ctx, l, below, t, c)
					if err != nil {
						return err
					}
					return use(c.nodes, y)
				})
			}
			use := func(chunk []uint32, y kernels.Tensor) error {
				if l < top {
					be.Convert(out[t].Slice(done, done+len(chunk)), y)
				} else if err := do(t, chunk, y); err != nil {
					return err
				}
				done += len(chunk)
				e.came(l, top, t, done, count)
				return nil
			}
			if shared > 0 {
				piece := max(e.Workers.Of, int(shared/int64(4*e.step.Model.Width(l))))
				err = e.inShares(ctx, t, nodes, piece, compute, use)
			} else {
				err = compute(nodes, use)
			}
			if err != nil {
				return err
			}
			planned, _ := e.decide(p, l, t, nodes)
			e.report(planned, 1, cachetier.Disk{}, began)
		}
		for t, nodes := range wanted {
			if nodes != nil && e.place[t] == nil {
				e.place[t] = make([]uint32, e.data.Types[t].Nodes)
			}
			nodes.rank(e.place[t])
		}
	}
	return nil
}

// came reports that done of count nodes of type t have their rows of layer l.
func (e *Evaluator) came(l, top, t, done, count int) {
	e.look()
	if e.Progress != nil {
		e.Progress(Progress{Layer: l + 1, Layers: top + 1, Type: e.data.Types[t].Name, Done: done, Nodes: count})
	}
}

// held returns the most bytes that a pass over need has in memory at a time: the hidden rows of two
// layers, and their places.
func (e *Evaluator) held(need [][]nodeSet) (most int64) {
	below, places := int64(0), int64(0)
	for t := range e.data.Types {
		if e.reach.Types[0][t] {
			places += 4 * int64(e.data.Types[t].Nodes)
		}
	}
	for l, wanted := range need[:len(need)-1] {
		bytes := int64(0)
		for _, nodes := range wanted {
			bytes += 4 * int64(nodes.count()) * int64(e.step.Model.Width(l))
		}
		most, below = max(most, below+bytes), bytes
	}
	return most + places
}

// DiskRead returns the reads of hidden rows on disk so far.
func (e *Evaluator) DiskRead() cachetier.Disk { return e.read }

// layer computes layer l for a chunk of nodes of type t from the features, or from the rows of the
// layer below.
func (e *Evaluator) layer(ctx context.Context, l int, below []kernels.Tensor, t int, c *drawnChunk) (kernels.Tensor, error) {
	hidden := func(from int, ids []uint32) (kernels.Tensor, error) {
		if l == 0 {
			return kernels.Tensor{}, nil
		}
		return e.step.Feed.RowsOf(from, below[from], ids, e.place[from]), nil
	}
	if e.hub(l, t, c.nodes) {
		return e.inParts(ctx, l, t, c.nodes[0], hidden)
	}
	return e.compute(ctx, &c.batch, l, t, hidden)
}

// hiddenRows brings rows of the layer below, for ids of type from: none where those are in an
// attached table, or there are none.
type hiddenRows func(from int, ids []uint32) (kernels.Tensor, error)

// compute is layer l for the nodes of type t that b was drawn for, from the features, or from the
// rows of the layer below.
func (e *Evaluator) compute(ctx context.Context, b *sample.Batch, l, t int, hidden hiddenRows) (kernels.Tensor, error) {
	e.step.Tape.Reset(false)
	inputs := b.Inputs()[:len(e.data.Types)]
	x := make(model.Rows, len(inputs))
	for from, ids := range inputs {
		if len(ids) == 0 {
			continue
		}
		if err := e.bring(ctx, l, from, ids, x, hidden); err != nil {
			return kernels.Tensor{}, err
		}
	}
	g, err := e.graph(ctx, b)
	if err != nil {
		return kernels.Tensor{}, err
	}
	if l == 0 {
		e.step.Label(&g, &b.Layers[0])
	}
	return e.step.Model.Layer(e.step.Tape, l, x, g)[t].Value, nil
}

// graph brings the blocks of b, which is of one layer, to the backend, with the rows of its edges.
func (e *Evaluator) graph(ctx context.Context, b *sample.Batch) (model.Graph, error) {
	var rows []kernels.Tensor
	types := len(e.data.Types)
	for k, ids := range b.Inputs()[types:] {
		x := kernels.Tensor{}
		if len(ids) > 0 {
			var err error
			if x, err = e.edgeRows(ctx, k, ids); err != nil {
				return model.Graph{}, err
			}
		}
		rows = append(rows, x)
	}
	return e.step.Feed.Blocks(b.Layers, rows...)[0], nil
}

// graphWithoutRows is graph where somebody else brings what rows of edges come to.
func (e *Evaluator) graphWithoutRows(b *sample.Batch) model.Graph {
	return e.step.Feed.Blocks(b.Layers, make([]kernels.Tensor, len(e.data.EdgeTables))...)[0]
}

// bring sets x's rows of type from to the rows of ids, which layer l reads. It sets none where the
// network has one row for all nodes of the type.
func (e *Evaluator) bring(ctx context.Context, l, from int, ids []uint32, x model.Rows, hidden hiddenRows) error {
	rows, err := hidden(from, ids)
	if err != nil {
		return err
	}
	return e.leaf(ctx, l, from, ids, rows, x)
}

// leaf is bring for rows that hidden has brought.
func (e *Evaluator) leaf(ctx context.Context, l, from int, ids []uint32, rows kernels.Tensor, x model.Rows) error {
	switch {
	case l > 0:
		x[from] = e.step.Tape.Convert(e.step.Tape.Leaf(rows))
	case rows.Buf != nil:
		x[from] = e.step.Leaf(from, rows)
	case e.tables[from] != nil:
		rows, err := e.step.Feed.Gather(ctx, from, e.tables[from], e.data.Types[from].DType(), ids)
		if err != nil {
			return err
		}
		x[from] = e.step.Leaf(from, rows)
	}
	return nil
}

// Bounds of layer-wise evaluation. None of them changes a bit.
const (
	chunkBytes = 32 << 20
	chunkEdge  = 128 // of a chunk, an edge of it at most
	evalChunks = 8   // computing a chunk takes 8 times its bytes: for rows, results and blocks
	// The rows that a chunk reads are copied so many times on their way from owners: as they are
	// read, sent, received and joined, and for other workers.
	ownersCopies = 6
	hubEdges     = 1 << 18 // of a node, which has more
	hubPart      = 1 << 16 // neighbours of a hub that are added up together
	// Hidden rows on disk take writerBytes for the buffers of a store.Writer, beside the buffers of
	// readers.
	writerBytes = 8 << 20
)

// bounds are the limits of a chunk, which exceeds them by its last node at most. A node of more
// edges than hub is a chunk of its own, and is computed in parts of part edges.
type bounds struct {
	bytes  int
	edges  int
	learnt int64 // of the records of learnt sources, and of their values, which are copied out of them; and of the rows of edges
	hub    int
	part   int
}

// chunks calls do with the nodes of type t of layer l in ascending order, at least one and as many
// as the bounds allow at a time.
func (e *Evaluator) chunks(nodes nodeSet, t, l int, do func(chunk []uint32) error) error {
	width := e.chunkWidth(t, l)
	var chunk []uint32
	edges, learnt, into := 0, int64(0), e.into(l, t)
	for v := range nodes.all {
		n, bytes := e.degree(into, l, t, v)
		hub := e.many(n, bytes)
		if hub && len(chunk) > 0 {
			if err := do(chunk); err != nil {
				return err
			}
			chunk, edges, learnt = chunk[:0], 0, 0
		}
		chunk = append(chunk, v)
		edges, learnt = edges+n, learnt+bytes
		if len(chunk)*width*4 >= e.most.bytes || edges >= e.most.edges || learnt >= e.most.learnt || hub {
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

// chunkWidth is the columns of rows of type t in layer l, for the size of chunks.
func (e *Evaluator) chunkWidth(t, l int) int {
	if l == 0 && e.data.Types[t].HasRows() {
		return e.data.Types[t].Dim()
	}
	return e.step.Model.Hidden
}

// into lists the relations that layer l reads into nodes of type t.
func (e *Evaluator) into(l, t int) (relations []int) {
	for i := range e.data.Relations {
		if e.data.Relations[i].Dst == t && e.reach.Relations[l][i] {
			relations = append(relations, i)
		}
	}
	return relations
}

// degree returns the number of neighbours that layer l reads for v of type t by the relations into,
// and the most bytes that their learnt rows and the rows of their edges take.
func (e *Evaluator) degree(into []int, l, t int, v uint32) (n int, bytes int64) {
	for _, i := range into {
		r := &e.data.Relations[i]
		n += r.Degree(v)
		bytes += int64(r.Degree(v)) * e.edgeRow(i)
		if l == 0 {
			bytes += int64(r.Degree(v)) * e.learntRow(r.Src)
		}
	}
	if l == 0 {
		bytes += e.learntRow(t)
	}
	return n, bytes
}

// edgeRow returns the bytes of an edge's row of relation r and of its numbers in float32; 0 where
// edges have none.
func (e *Evaluator) edgeRow(r int) int64 {
	rel := &e.data.Relations[r]
	if rel.RowIDs == nil {
		return 0
	}
	f := e.data.EdgeTables[rel.Table].Features
	return int64(f.RowBytes() + 4*f.Dim())
}

// learntRow returns the bytes of a learnt row of type t and of the values that are copied out of
// it, 0 where rows are not learnt.
func (e *Evaluator) learntRow(t int) int64 {
	if d := &e.data.Types[t]; d.Features == nil {
		return 16*int64(d.Embed) + 4*min(1, int64(d.Embed))
	}
	return 0
}

// plan returns the nodes that each layer up to top computes, by type. Layer top computes the given
// nodes, and each layer below computes the nodes that the next one reads. A type has nil if the
// layer computes none of its rows.
func (e *Evaluator) plan(top int, nodes [][]uint32) ([][]nodeSet, error) {
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
			if !e.reach.Relations[l+1][i] || need[l][r.Src].count() == e.data.Types[r.Src].Nodes {
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
