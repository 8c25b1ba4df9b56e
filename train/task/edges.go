package task

import (
	"context"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Edges is the task of edges: each edge of a relation has one class, or one number. It is predicted
// from the rows of its ends and the numbers given with it. An epoch has each edge once, in an order
// that takes no memory; (seed, epoch, step) determines the edges of a step.
//
// One goroutine at a time calls Seeds and Without, and another one all other methods. Both read the
// dataset inside store.Guard.
type Edges struct {
	options  Options
	owned    owned
	links    LinkOptions // only KeepTargets and EvalEdges count
	data     *data.Data
	relation data.Relation
	label    *data.EdgeLabel
	given    []*store.EdgeColumn // numbers of an edge that the decoder reads: see data.Data.AppendGiven
	kind     metric.Kind
	single   metric.Single
	reporter *metric.Reporter
	numbers  *metric.Numbers // instead, where numbers are learnt
	weights  []float32       // of classes; nil: all the same
	epoch    int
	order    permutation

	ahead   examples // of the goroutine that draws
	aheadOf [2]int   // their epoch and step
	now     edges    // of the goroutine that computes
	before  edges    // of the step before, which the backend may still be computing
	net     *step.Stepper

	// Of the evaluation.
	most int // edges of a part; 0: all
	held [2]store.HeldEdges
	part Part
	used []int // edges of the part
	rows measuredRows

	answers  sameness // of the measurement under way
	constant string   // see Constant
}

// edges are the edges of one computation.
type edges struct {
	examples
	classes []uint32
	targets []float32 // instead, where numbers are learnt
	floats  []float32 // numbers given with the first edge, with the second and so on; then a weight or a target for each
	weight  float64   // the sum of weights, 1 each where there are none
}

// NewEdges makes the task of d's edge label. o.Metric is a metric of nodes, by default accuracy, or
// RMSE for numbers. It reads KeepTargets and EvalEdges of l.
func NewEdges(d *data.Data, o Options, l LinkOptions) (_ *Edges, err error) {
	k := &Edges{
		options: o, links: l, data: d, relation: d.Relations[d.Links.Relation], label: d.EdgeLabel, given: d.Given(), kind: o.Metric,
		held: [2]store.HeldEdges{d.Links.Valid, d.Links.Test}, most: l.EvalEdges,
	}
	k.owned = owned{
		relations: []data.Relation{k.relation}, begins: []int64{0, d.AllEdges(d.Links.Relation)},
		columns: append([]*store.EdgeColumn{k.label.Column}, k.given...),
	}
	switch {
	case k.label.Numbers() && k.kind == "":
		k.kind = metric.RMSE
	case k.kind == "":
		k.kind = metric.Accuracy
	}
	if k.label.Numbers() {
		k.numbers, err = metric.NewNumbers(k.kind)
	} else {
		k.single, err = metric.NewSingle(k.kind, len(k.label.Classes))
	}
	if err != nil {
		return nil, d.Set.About(err)
	}
	if k.label.Numbers() && o.ClassWeights != "" && o.ClassWeights != NoWeights {
		return nil, fmt.Errorf("{class_weights} %s: numbers are learnt, which have no classes; leave it out", o.ClassWeights)
	}
	if k.weights, err = classWeights(o.ClassWeights, len(k.label.Classes), func() ([]int64, error) { return k.label.Train, nil }); err != nil {
		return nil, fmt.Errorf("{class_weights} %s: %w", o.ClassWeights, err)
	}
	if l.KeepTargets {
		name := k.label.Name
		for i, r := range d.Relations {
			reads := slices.ContainsFunc(r.Inputs, func(c *store.EdgeColumn) bool { return c.Column.Name == name })
			if reads && (i == d.Links.Relation || i == d.Links.Mirror) {
				return nil, fmt.Errorf("%s: {keep_targets}: {edge_input} %s=%s is what is learnt, and messages along a step's own edges would tell it; leave one of "+
					"the two out", d.Set.Path(), r.Relation.Key(), name)
			}
		}
	}
	for p, h := range k.held {
		for _, c := range k.given {
			if _, err := d.HeldValues(h, store.HeldPart(p), c); err != nil {
				return nil, err
			}
		}
	}
	return k, nil
}

// Kind returns the metric of the task.
func (k *Edges) Kind() metric.Kind { return k.kind }

// Steps returns the number of steps of an epoch.
func (k *Edges) Steps() int { return k.options.steps(k.edges()) }

// Begin puts the edges in the order in which an epoch has them; the first epoch is 1.
func (k *Edges) Begin(epoch int) {
	k.epoch, k.aheadOf = epoch, [2]int{}
	k.owned.forget()
	k.order = newPermutation(uint64(k.edges()), sample.Hash(k.options.Seed, phaseOrder, uint64(epoch)))
}

// of sets x to the edges of a step.
func (k *Edges) of(x *examples, step int) {
	lo, hi := k.options.batch(step, k.edges())
	first, last := k.options.share(int(hi-lo), 1)
	x.edges = x.edges[:0]
	for i := first; i < last; i++ {
		x.edges = append(x.edges, int64(k.order.at(uint64(lo)+uint64(i))))
	}
	x.begin(len(k.data.Types))
	if x.first = first; k.options.Workers == nil {
		x.read(k.owned.relations, k.owned.begins, x.edges)
	} else if s := k.owned.of(step); first < last {
		x.links = append(x.links, s.links[first:last]...)
	}
	for _, l := range x.links {
		x.src, x.dst = append(x.src, x.row(k.relation.Src, l[0])), append(x.dst, x.row(k.relation.Dst, l[1]))
	}
}

// edges returns the number of edges to train on.
func (k *Edges) edges() int64 { return k.owned.begins[1] }

// all returns the edges of a step, of all workers.
func (k *Edges) all(step int) []int64 { return k.options.edges(&k.order, step, k.edges()) }

// Prepare reads the edges of n steps from the workers that own them, as [Links.Prepare] does.
func (k *Edges) Prepare(ctx context.Context, from, n int) error {
	w := k.options.Workers
	if w == nil {
		return nil
	}
	steps, err := k.owned.prepare(ctx, w.Ahead, from, n, k.all)
	if err == nil {
		k.owned.keep(from, steps, func(edges int) bool { return k.options.hasShare(edges, 1) })
	}
	return err
}

// KeptBytes returns the bytes that Prepare keeps for a step until the step is computed.
func (k *Edges) KeptBytes() int64 {
	if k.options.Workers == nil {
		return 0
	}
	return int64(k.options.Batch) * int64(8+8*len(k.owned.columns))
}

// Seeds returns the seeds of a step of the epoch that began: the ends of its edges, by type.
func (k *Edges) Seeds(step int) [][]uint32 {
	k.of(&k.ahead, step)
	k.aheadOf = [2]int{k.epoch, step}
	return k.ahead.seeds
}

// Without returns the edges that no message of a step passes along, as [Links.Without] does: their
// own columns may give the answer away.
func (k *Edges) Without(step int) []sample.Without {
	if k.links.KeepTargets || k.options.NoMessages {
		return nil
	}
	if k.aheadOf != [2]int{k.epoch, step} {
		k.Seeds(step)
	}
	return k.ahead.without(k.data)
}

// add appends the next edge to x, from the values of its columns.
func (k *Edges) add(x *edges, value func(c *store.EdgeColumn) float64) {
	if y := value(k.label.Column); k.numbers != nil {
		x.targets = append(x.targets, float32(y))
	} else {
		x.classes = append(x.classes, k.label.Class(y))
	}
	x.floats = k.data.AppendGiven(x.floats, k.given, value)
}

// reset forgets classes and numbers.
func (x *edges) reset() { x.classes, x.targets, x.floats = x.classes[:0], x.targets[:0], x.floats[:0] }

// logits returns the logits of x, whose ends are rows of from and to. labels has the classes, and
// each the weights of classes or the numbers that are learnt. These two are valid until the feed's
// next use.
func (k *Edges) logits(t *tape.Tape, x *edges, from, to *tape.Var) (logits *tape.Var, labels, each kernels.Tensor) {
	n, f := len(x.src), k.net.Feed
	given := len(x.floats)
	x.weight = float64(n)
	switch {
	case k.numbers != nil:
		x.floats = append(x.floats, x.targets...)
	case k.weights != nil:
		x.floats, x.weight = rowWeights(x.floats, x.classes, k.weights)
	}
	e := model.Ends{}
	if len(x.floats) > 0 {
		all := f.UploadFloats(x.floats, 1)
		e.Given = kernels.Tensor{Buf: all.Buf, Type: all.Type, Rows: n, Cols: k.data.GivenDim()}
		each = all.Slice(given, len(x.floats))
	}
	ints := f.Ints(x.src, x.dst, x.classes)
	e.Src, e.Dst = ints[0], ints[1]
	return k.net.Model.Edges(t, from, to, e), ints[2], each
}

// Constant returns the answer that all edges of the last measurement share, or "" if they differ.
func (k *Edges) Constant() string { return k.constant }

// StartReport has the measurements that follow make a report, until TakeReport takes it. The
// process may take memory bytes.
func (k *Edges) StartReport(memory int64) {
	if k.reports() {
		k.reporter = metric.NewReporter(len(k.label.Classes), false, memory)
	}
}

// TakeReport returns the report of what was measured since StartReport, or nil if there is none.
func (k *Edges) TakeReport() *metric.Report {
	defer func() { k.reporter = nil }()
	return k.reporter.Report(k.label.Classes)
}

// measure adds the predictions for x to the metric.
func (k *Edges) measure(logits []float32, x *edges) {
	if k.numbers != nil {
		k.numbers.Add(logits, x.targets)
	} else {
		k.single.Add(logits, x.classes)
	}
}

// value returns the metric of all edges counted since the last call.
func (k *Edges) value() (float64, error) {
	if k.numbers != nil {
		defer k.numbers.Reset()
		return k.numbers.Value()
	}
	defer k.single.Reset()
	return k.single.Value()
}

// Loss starts the backward pass from the mean loss of a batch, in the rows of its seeds.
func (k *Edges) Loss(t *tape.Tape, f *step.Feed, out model.Rows, in step.Input) (tally func() step.Tally, err error) {
	k.now, k.before = k.before, k.now
	x := &k.now
	k.owned.computes(in.Step)
	k.of(&x.examples, in.Step)
	x.reset()
	for i := range x.edges {
		k.add(x, func(c *store.EdgeColumn) float64 { return k.valueOf(in.Step, x.first+i, c) })
	}
	logits, labels, each := k.logits(t, x, out[k.relation.Src], out[k.relation.Dst])
	scale := float32(0) // of a batch whose classes all weigh nothing
	if weight := k.weight(in.Step, x.weight); weight > 0 {
		scale = float32(1 / weight)
	}
	var losses kernels.Tensor
	switch {
	case k.numbers != nil:
		losses = t.SquaredError(logits, each, scale)
	case k.weights != nil:
		losses = t.WeightedCrossEntropy(logits, labels, each, scale)
	default:
		losses = t.CrossEntropy(logits, labels, scale)
	}
	ofRows, predictions := f.FetchLoss(losses), f.Fetch(logits.Value)
	of := *x // its memory stays until the step after next
	return func() step.Tally {
		a := step.Tally{Loss: step.Sum(ofRows), Weight: of.weight}
		k.measure(predictions, &of)
		if k.numbers != nil {
			a.Measured, a.Rows = k.numbers.Total()
		}
		if v, err := k.value(); err == nil && k.numbers == nil {
			a.Measured, a.Rows = v*float64(len(of.classes)), int64(len(of.classes))
		}
		return a
	}, nil
}

// valueOf returns the value of edge i of a step.
func (k *Edges) valueOf(step, i int, c *store.EdgeColumn) float64 {
	if k.options.Workers == nil {
		lo, _ := k.options.batch(step, k.edges())
		return c.At(int64(k.order.at(uint64(lo) + uint64(i))))
	}
	columns := k.owned.columns
	return k.owned.of(step).values[i*len(columns)+slices.Index(columns, c)]
}

// weight returns the sum of the weights of a step's edges, of all workers. own is this worker's.
func (k *Edges) weight(step int, own float64) (sum float64) {
	if k.options.Share == nil {
		return own
	}
	lo, hi := k.options.batch(step, k.edges())
	if k.weights == nil || k.numbers != nil {
		return float64(hi - lo)
	}
	for i := range int(hi - lo) {
		sum += float64(k.weights[k.label.Class(k.valueOf(step, i, k.label.Column))])
	}
	return sum
}

// Trained returns the metric of the batches in a. For numbers and for accuracy it is over all their
// edges, else the mean over batches; NaN where none of them has one.
func (k *Edges) Trained(a step.Tally) float64 {
	if k.numbers != nil {
		return k.numbers.Mean(a.Measured, a.Rows)
	}
	return a.Measured / float64(a.Rows)
}
