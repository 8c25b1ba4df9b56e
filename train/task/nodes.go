// Package task holds the tasks that a network can learn. A task gives the seeds of a step, their
// targets, the loss of a batch, and the metric of an evaluation. [Nodes] learns classes or numbers
// of nodes, [Links] which pairs are linked, [Edges] classes or numbers of edges.
//
// # Why not
//
//   - A shuffled list of edges: 8 bytes an edge. A permutation that is computed takes none, and a step needs no other's.
//   - Remembering the examples of the steps that are drawn ahead: they are made a second time for the loss instead, so that nothing
//     grows with how far is drawn ahead.
//   - Filtering negatives of training: a few that are links do little, and looking each of them up reads its list.
//   - Products of matrices for uniform and in-batch negatives, as shared ones and all have them:
//     kernels.EdgeDot reads the same rows from the cache, and serves both ways to draw.
package task

import (
	"context"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Part is a part of a split that is measured.
type Part int

const (
	Valid Part = iota
	Test
	Train // of links, once they are learnt
)

func (p Part) String() string { return [...]string{"valid", "test", "train"}[p] }

// Options configures a task: its metric, its loss, and the seeds of its steps.
type Options struct {
	Metric       metric.Kind // empty: accuracy, or micro-F1 where a node has several classes
	ClassWeights string      // of the loss: NoWeights, BalancedWeights, or a number for each class with commas between
	Batch        int         // seeds a step
	EpochSteps   int         // steps of an epoch at most; 0: as many as the training nodes take
	Seed         uint64      // of the order of the training nodes in an epoch
	MemoryBytes  int64       // what the run may take in all; 0: not known
	Width        int         // columns of rows that links are scored by
	// Share returns this worker's part of n examples of a step: lo to hi-1. The losses of all
	// workers add up to the mean loss of the step. Default nil: one worker has all.
	Share func(n int) (lo, hi int)
	// Workers is set where this worker has only a part of the edges. Default nil: it has all.
	Workers *Workers
	// Deal puts the nodes of a step in the order in which Share cuts them; nil: they stay. It does
	// the same for all workers.
	Deal func(nodes []uint32)
	// NoLayers says that rows are scored as they are. NoMessages says that no messages pass along
	// edges, as without layers and in an MLP.
	NoLayers, NoMessages bool
	// Fixed says that no step is taken, and Unmeasured that nothing is measured either. Data that
	// only these need may then be missing.
	Fixed, Unmeasured bool
}

// steps returns the number of steps of an epoch of so many examples.
func (o *Options) steps(examples int64) int {
	n := int((examples + int64(o.Batch) - 1) / int64(o.Batch))
	if o.EpochSteps > 0 {
		n = min(n, o.EpochSteps)
	}
	return n
}

// share returns this worker's part of n examples of a step: lo to hi-1. Each group of examples
// stays on one worker.
func (o *Options) share(n, group int) (lo, hi int) {
	if o.Share == nil {
		return 0, n
	}
	lo, hi = o.Share((n + group - 1) / group)
	return min(lo*group, n), min(hi*group, n)
}

// hasShare reports whether this worker has some of n examples that are dealt out by groups.
func (o *Options) hasShare(n, group int) bool {
	lo, hi := o.share(n, group)
	return lo < hi
}

// edges returns the edges of a step, of all workers. order has all edges.
func (o *Options) edges(order *permutation, step int, all int64) (edges []int64) {
	lo, hi := o.batch(step, all)
	for i := lo; i < hi; i++ {
		edges = append(edges, int64(order.at(uint64(i))))
	}
	return edges
}

// batch returns the examples of a step among so many: lo to hi-1.
func (o *Options) batch(step int, examples int64) (lo, hi int64) {
	lo = int64(step) * int64(o.Batch)
	return lo, min(lo+int64(o.Batch), examples)
}

// Nodes is the task of nodes that have one class or several, or a number: the loss of a batch and
// the metric of an evaluation. It has scratch of its own: one goroutine at a time.
type Nodes struct {
	options      Options
	data         *data.Data
	multi        bool
	kind         metric.Kind
	classWeights []float32 // nil: all the same
	single       metric.Single
	several      metric.Multi
	numbers      *metric.Numbers // instead, where numbers are learnt
	order        []uint32        // of the training nodes, in this epoch
	all          answersOf       // of the seeds of all workers, in the newest step
	answers      sameness        // of the measurement under way
	reporter     *metric.Reporter
	constant     string // see Constant

	answersOf           // of the newest step, or of a measurement
	before    answersOf // of the step before, which the backend may still be computing
}

// answersOf has the right answers of some nodes.
type answersOf struct {
	labels  []uint32
	targets []float32
	weights []float32 // of labels
}

// NewNodes finds the metric and the class weights that o asks for and d allows.
func NewNodes(d *data.Data, o Options) (_ *Nodes, err error) {
	k := &Nodes{options: o, data: d, multi: d.Labels.Label.Multi, kind: o.Metric}
	classes := d.Labels.Classes()
	if d.Labels.Label.Numbers {
		return k, k.openNumbers()
	}
	if k.multi {
		if k.kind == "" {
			k.kind = metric.MicroF1
		}
		k.several, err = metric.NewMulti(k.kind, classes)
	} else {
		if k.kind == "" {
			k.kind = metric.Accuracy
		}
		k.single, err = metric.NewSingle(k.kind, classes)
	}
	if err != nil {
		return nil, d.Set.About(err)
	}
	k.classWeights, err = k.parseClassWeights(o.ClassWeights)
	if err != nil {
		return nil, fmt.Errorf("{class_weights} %s: %w", o.ClassWeights, err)
	}
	return k, nil
}

// openNumbers is the end of NewNodes where numbers are learnt.
func (k *Nodes) openNumbers() (err error) {
	if k.kind == "" {
		k.kind = metric.RMSE
	}
	if w := k.options.ClassWeights; w != "" && w != NoWeights {
		return fmt.Errorf("{class_weights} %s: numbers are learnt, which have no classes; leave it out", w)
	}
	if k.numbers, err = metric.NewNumbers(k.kind); err != nil {
		return fmt.Errorf("%s: label %s is a number of each node, and no class: %w", k.data.Set.Path(), k.data.Labels.Label.Name, err)
	}
	return nil
}

// Kind returns the metric of the task.
func (k *Nodes) Kind() metric.Kind { return k.kind }

// Steps returns the number of steps of an epoch. If a network is only used, and no node is trained
// on, there is one step to measure.
func (k *Nodes) Steps() int {
	if len(k.data.Train) == 0 {
		return 1
	}
	return k.options.steps(int64(len(k.data.Train)))
}

// Begin puts the training nodes in the order in which an epoch has them; the first epoch is 1.
func (k *Nodes) Begin(epoch int) {
	k.order = append(k.order[:0], k.data.Train...)
	for v := range min(k.options.Batch, k.data.Types[k.data.Target].Nodes) {
		if len(k.data.Train) == 0 {
			k.order = append(k.order, uint32(v))
		}
	}
	sample.Shuffle(k.order, k.options.Seed, epoch)
	if k.options.Deal == nil {
		return
	}
	for nodes := range slices.Chunk(k.order, k.options.Batch) {
		k.options.Deal(nodes)
	}
}

// Prepare does nothing: each worker has all training nodes.
func (k *Nodes) Prepare(context.Context, int, int) error { return nil }

// KeptBytes returns 0: Prepare keeps nothing.
func (k *Nodes) KeptBytes() int64 { return 0 }

// Seeds returns the seeds of a step of the epoch that began, by type: this worker's share of them.
// They are valid until the next Begin.
func (k *Nodes) Seeds(step int) [][]uint32 {
	seeds := k.Whole(step)
	lo, hi := k.options.share(len(seeds), 1)
	return k.data.Seeds(seeds[lo:hi])
}

// Whole returns the seeds of all workers in a step of the epoch that began. They are valid until
// the next Begin.
func (k *Nodes) Whole(step int) []uint32 {
	lo, hi := k.options.batch(step, int64(len(k.order)))
	return k.order[lo:hi]
}

// seedCount returns the number of seeds of all workers in a step. own has the seeds of this worker.
func (k *Nodes) seedCount(in step.Input, own []uint32) int {
	if k.options.Share == nil {
		return len(own)
	}
	return len(k.Whole(in.Step))
}

// ofBatches reports whether the metric of training is a mean over batches. Only accuracy and
// micro-F1 follow from sums over rows.
func (k *Nodes) ofBatches() bool { return k.kind == metric.MacroF1 || k.kind == metric.ROCAUC }

// Trained returns the metric of the batches in a; NaN where none of them has one.
func (k *Nodes) Trained(a step.Tally) float64 {
	if k.numbers != nil {
		return k.numbers.Mean(a.Measured, a.Rows)
	}
	if k.ofBatches() {
		return a.Measured / float64(a.Rows)
	}
	if a.Of == 0 {
		return 0
	}
	return float64(a.Hits) / float64(a.Of)
}

// measureBatch adds the metric of a batch of so many rows to a, if it has one.
func (k *Nodes) measureBatch(logits []float32, of answersOf, rows int, a *step.Tally) {
	if !k.ofBatches() {
		return
	}
	if k.multi {
		k.several.Add(logits, of.targets)
	} else {
		k.single.Add(logits, of.labels)
	}
	if v, err := k.Value(); err == nil {
		a.Measured, a.Rows = v*float64(rows), int64(rows)
	}
}

// Loss starts the backward pass from the mean loss of the batch, in the logits of its seeds, which
// are of the target type.
func (k *Nodes) Loss(t *tape.Tape, f *step.Feed, out model.Rows, in step.Input) (tally func() step.Tally, err error) {
	logits, seeds := out[k.data.Target], in.Seeds[k.data.Target]
	k.answersOf, k.before = k.before, k.answersOf
	if len(k.data.Train) == 0 {
		return k.noLoss(t, f, logits), nil
	}
	if k.numbers != nil {
		return k.squaredLoss(t, f, logits, seeds, k.seedCount(in, seeds))
	}
	if k.multi {
		return k.sigmoidLoss(t, f, logits, seeds, in.Step)
	}
	if k.labels, err = k.data.Classes(k.labels[:0], seeds); err != nil {
		return nil, err
	}
	labels := f.Upload(k.labels)
	var rows kernels.Tensor
	weight := float64(len(seeds))
	if k.classWeights == nil {
		rows = t.CrossEntropy(logits, labels, 1/float32(k.seedCount(in, seeds)))
	} else {
		k.weights, weight = rowWeights(k.weights[:0], k.labels, k.classWeights)
		all := weight
		if k.options.Share != nil {
			if k.all.labels, err = k.data.Classes(k.all.labels[:0], k.Whole(in.Step)); err != nil {
				return nil, err
			}
			k.all.weights, all = rowWeights(k.all.weights[:0], k.all.labels, k.classWeights)
		}
		scale := float32(0) // of a batch whose classes all weigh nothing
		if all > 0 {
			scale = float32(1 / all)
		}
		rows = t.WeightedCrossEntropy(logits, labels, f.UploadFloats(k.weights, 1), scale)
	}
	losses, largest, of := f.FetchLoss(rows), f.FetchLargest(logits.Value), k.answersOf
	var scores []float32
	if k.ofBatches() {
		scores = f.Fetch(logits.Value)
	}
	return func() step.Tally {
		a := step.Tally{Loss: step.Sum(losses), Weight: weight, Hits: equal(largest, of.labels), Of: int64(len(largest))}
		k.measureBatch(scores, of, len(largest), &a)
		return a
	}, nil
}

// equal counts the places at which a and b, which are as long, have the same.
func equal(a, b []uint32) (n int64) {
	for i, x := range a {
		if x == b[i] {
			n++
		}
	}
	return n
}

// noLoss returns the loss of a batch in which no node has a label.
func (k *Nodes) noLoss(t *tape.Tape, f *step.Feed, logits *tape.Var) (tally func() step.Tally) {
	k.labels = k.labels[:0]
	for range logits.Value.Rows {
		k.labels = append(k.labels, kernels.NoLabel)
	}
	losses := f.FetchLoss(t.CrossEntropy(logits, f.Upload(k.labels), 1))
	return func() step.Tally { return step.Tally{Loss: step.Sum(losses)} }
}

func (k *Nodes) squaredLoss(
	t *tape.Tape, f *step.Feed, logits *tape.Var, seeds []uint32, of int,
) (tally func() step.Tally, err error) {
	if k.targets, err = k.data.Numbers(k.targets[:0], seeds); err != nil {
		return nil, err
	}
	losses := f.FetchLoss(t.SquaredError(logits, f.UploadFloats(k.targets, 1), 1/float32(of)))
	predictions, targets := f.Fetch(logits.Value), k.targets
	return func() step.Tally {
		a := step.Tally{Loss: step.Sum(losses), Weight: float64(len(targets))}
		k.numbers.Add(predictions, targets)
		a.Measured, a.Rows = k.numbers.Total()
		k.numbers.Reset()
		return a
	}, nil
}

func (k *Nodes) sigmoidLoss(
	t *tape.Tape, f *step.Feed, logits *tape.Var, seeds []uint32, number int,
) (tally func() step.Tally, err error) {
	var known int
	if k.targets, known, err = k.data.Targets(k.targets[:0], seeds); err != nil {
		return nil, err
	}
	all := known
	if k.options.Share != nil {
		if k.all.targets, all, err = k.data.Targets(k.all.targets[:0], k.Whole(number)); err != nil {
			return nil, err
		}
	}
	targets := f.UploadFloats(k.targets, logits.Value.Cols)
	losses := f.FetchLoss(t.SigmoidCrossEntropy(logits, targets, 1/float32(max(all, 1))))
	scores, of := f.Fetch(logits.Value), k.answersOf
	return func() step.Tally {
		var tp, wrong int64
		for i, x := range scores {
			switch target, positive := of.targets[i], x > 0; {
			case target == 1 && positive:
				tp++
			case target == 1, target == 0 && positive:
				wrong++
			}
		}
		a := step.Tally{Loss: step.Sum(losses), Weight: float64(known), Hits: 2 * tp, Of: 2*tp + wrong}
		k.measureBatch(scores, of, len(seeds), &a)
		return a
	}, nil
}

// Attach does nothing: a node's row is its answer.
func (k *Nodes) Attach(*step.Stepper) {}

// Examples returns "nodes".
func (k *Nodes) Examples() string { return "nodes" }

// Limit does nothing: the evaluator limits nodes.
func (k *Nodes) Limit(int) error { return nil }

// Bytes returns the memory of the metric and of a report: nodes are measured as their rows are
// computed.
func (k *Nodes) Bytes(memory int64) int64 {
	most := max(len(k.data.Valid), len(k.data.Test))
	return k.metricBytes(most) + k.reportBytes(most, memory)
}

// FixedBytes returns the memory of the metric and of a report if measures is set. Any labelled node
// may be measured, so a report, which has a bound, is counted for all nodes. A metric has none. It
// is counted for the split, since few graphs have a label for each of their nodes.
func (k *Nodes) FixedBytes(memory int64, measures bool) int64 {
	if !measures {
		return 0
	}
	split := len(k.data.Train) + len(k.data.Valid) + len(k.data.Test)
	return k.metricBytes(split) + k.reportBytes(k.data.Types[k.data.Target].Nodes, memory)
}

func (k *Nodes) metricBytes(nodes int) int64 {
	return k.kind.Bytes(int64(nodes), k.data.Labels.Classes(), k.multi)
}

func (k *Nodes) reportBytes(nodes int, memory int64) int64 {
	if !k.reports() {
		return 0
	}
	return metric.ReportBytes(int64(nodes), k.data.Labels.Classes(), k.multi, memory)
}

// reports reports whether measurements can make a report: not of numbers, and not where workers
// share the nodes.
func (k *Nodes) reports() bool { return k.numbers == nil && k.options.Share == nil }

// Without is nil: batches are drawn from all edges.
func (k *Nodes) Without(int) []sample.Without { return nil }

// Part returns the nodes of a part of the split.
func (k *Nodes) Part(_ context.Context, p Part) ([][]uint32, error) {
	if p == Valid {
		return k.data.Seeds(k.data.Valid), nil
	}
	return k.data.Seeds(k.data.Test), nil
}

// Measure adds the predictions for nodes to the metric.
func (k *Nodes) Measure(f *step.Feed, _ int, logits kernels.Tensor, nodes []uint32) (err error) {
	rows := f.Download(logits)
	k.answers.add(rows, logits.Cols, k.answersBy())
	if err := k.count(rows, nodes); err != nil || k.reporter == nil {
		return err
	}
	if k.multi {
		k.reporter.AddMulti(rows, k.targets)
	} else {
		k.reporter.Add(rows, k.labels)
	}
	return nil
}

// StartReport has the measurements that follow make a report, until TakeReport takes it. The
// process may take memory bytes.
func (k *Nodes) StartReport(memory int64) {
	if k.reports() {
		k.reporter = metric.NewReporter(k.data.Labels.Classes(), k.multi, memory)
	}
}

// TakeReport returns the report of what was measured since StartReport, or nil if there is none.
func (k *Nodes) TakeReport() *metric.Report {
	defer func() { k.reporter = nil }()
	return k.reporter.Report(k.data.Labels.Label.ClassNames)
}

// count adds logits of nodes to the metric.
func (k *Nodes) count(logits []float32, nodes []uint32) (err error) {
	if k.numbers != nil {
		if k.targets, err = k.data.Numbers(k.targets[:0], nodes); err == nil {
			k.numbers.Add(logits, k.targets)
		}
		return err
	}
	if k.multi {
		if k.targets, _, err = k.data.Targets(k.targets[:0], nodes); err == nil {
			k.several.Add(logits, k.targets)
		}
		return err
	}
	if k.labels, err = k.data.Classes(k.labels[:0], nodes); err == nil {
		k.single.Add(logits, k.labels)
	}
	return err
}

// answersBy returns the way in which the metric reads a row of logits. ROC-AUC reads the order of
// nodes, not a class.
func (k *Nodes) answersBy() answerKind {
	switch {
	case k.numbers != nil:
		return byNumber
	case k.multi && k.kind == metric.ROCAUC:
		return byScores
	case k.multi:
		return bySign
	case k.kind == metric.ROCAUC:
		return byMargin
	}
	return byLargest
}

// Constant returns the answer that all nodes of the last measurement share, or "" if they differ.
func (k *Nodes) Constant() string { return k.constant }

// Value returns the metric of all nodes measured since the last call. For some sets it is
// undefined, such as ROC-AUC where all are positive: errors.Is(err, metric.ErrUndefined).
func (k *Nodes) Value() (float64, error) {
	if k.answers.rows > 0 {
		k.constant = k.answers.take(k.data.Labels.Label.ClassNames, k.answersBy())
	}
	if k.numbers != nil {
		defer k.numbers.Reset()
		return k.numbers.Value()
	}
	if k.multi {
		defer k.several.Reset()
		return k.several.Value()
	}
	defer k.single.Reset()
	return k.single.Value()
}
