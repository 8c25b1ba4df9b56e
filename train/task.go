package train

import (
	"errors"
	"fmt"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/tape"
)

// task is what is learnt: the loss of a batch and the metric of an evaluation, where a node has one class or several.
type task struct {
	data         *data.Data
	multi        bool
	kind         metric.Kind
	classWeights []float32 // nil: all the same
	single       metric.Single
	several      metric.Multi

	// Scratch.
	labels  []uint32
	targets []float32
	weights []float32
	host    []float32 // logits or losses
	floats  kernels.Buffer
}

// newTask finds the metric and the class weights that o asks for and d allows.
func newTask(d *data.Data, o Options) (_ *task, err error) {
	k := &task{data: d, multi: d.Labels.Label.Multi, kind: o.Metric}
	classes := d.Labels.Classes()
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
		return nil, fmt.Errorf("%s: %w", d.Set.Path(), err)
	}
	k.classWeights, err = k.parseClassWeights(o.ClassWeights)
	if err != nil {
		return nil, fmt.Errorf("--class-weights %s: %w", o.ClassWeights, err)
	}
	return k, nil
}

// parseClassWeights reads a number a class, or makes them: under balanced, seeds ÷ (classes × seeds of the class), so that
// every class weighs the same in an epoch.
func (k *task) parseClassWeights(s string) ([]float32, error) {
	classes := k.data.Labels.Classes()
	switch {
	case s == "" || s == run.NoWeights:
		return nil, nil
	case k.multi:
		return nil, errors.New("the label has several classes a node; weights are for one")
	case s == run.BalancedWeights:
		var err error
		if k.labels, err = k.data.Classes(k.labels[:0], k.data.Train); err != nil {
			return nil, err
		}
		count := make([]int, classes)
		for _, c := range k.labels {
			count[c]++
		}
		w := make([]float32, classes)
		for c, n := range count {
			if n > 0 {
				w[c] = float32(float64(len(k.labels)) / (float64(classes) * float64(n)))
			}
		}
		return w, nil
	}
	w, err := run.ClassWeightList(s)
	if err == nil && len(w) != classes {
		err = fmt.Errorf("%d numbers for %d classes", len(w), classes)
	}
	return w, err
}

// tally is the loss and the hits of a batch, or of several: sums, so that an epoch can be cut anywhere.
type tally struct {
	Loss   float64 `json:"loss"`   // sum over rows, or over the classes whose target is known
	Weight float64 `json:"weight"` // of what Loss sums: Loss/Weight is the mean
	// Hits/Of is the training accuracy: right rows of all, and with several classes a node 2·tp of 2·tp+fp+fn, the micro-F1.
	Hits int64 `json:"hits"`
	Of   int64 `json:"of"`
	// Measured/Rows is the mean of a metric that batches have apart: see ofBatches.
	Measured float64 `json:"measured,omitempty"`
	Rows     int64   `json:"rows,omitempty"`
}

func (a *tally) add(b tally) {
	a.Loss += b.Loss
	a.Weight += b.Weight
	a.Hits += b.Hits
	a.Of += b.Of
	a.Measured += b.Measured
	a.Rows += b.Rows
}

// mean is the loss, 0 of nothing.
func (a tally) mean() float64 {
	if a.Weight == 0 {
		return 0
	}
	return a.Loss / a.Weight
}

// ofBatches tells whether the metric of training is a mean over batches: sums over rows give accuracy and micro-F1 alone.
func (k *task) ofBatches() bool { return k.kind == metric.MacroF1 || k.kind == metric.ROCAUC }

// trained is the metric of the batches in a; NaN where none of them has one.
func (k *task) trained(a tally) float64 {
	if k.ofBatches() {
		return a.Measured / float64(a.Rows)
	}
	if a.Of == 0 {
		return 0
	}
	return float64(a.Hits) / float64(a.Of)
}

// measureBatch adds the metric of a batch to a, if it has one.
func (k *task) measureBatch(f *feed, logits kernels.Tensor, a *tally) {
	if !k.ofBatches() {
		return
	}
	if k.multi {
		k.several.Add(k.download(f, logits), k.targets)
	} else {
		k.single.Add(k.download(f, logits), k.labels)
	}
	if v, err := k.value(); err == nil {
		a.Measured, a.Rows = v*float64(logits.Rows), int64(logits.Rows)
	}
}

// loss starts the backward pass from the mean loss of the batch, in its logits.
func (k *task) loss(t *tape.Tape, f *feed, logits *tape.Var, seeds []uint32) (a tally, err error) {
	if k.multi {
		return k.sigmoidLoss(t, f, logits, seeds)
	}
	if k.labels, err = k.data.Classes(k.labels[:0], seeds); err != nil {
		return a, err
	}
	labels := f.upload(k.labels)
	var rows kernels.Tensor
	if k.classWeights == nil {
		a.Weight = float64(len(seeds))
		rows = t.CrossEntropy(logits, labels, 1/float32(len(seeds)))
	} else {
		k.weights, a.Weight = rowWeights(k.weights[:0], k.labels, k.classWeights)
		scale := float32(0) // of a batch whose classes all weigh nothing
		if a.Weight > 0 {
			scale = float32(1 / a.Weight)
		}
		rows = t.WeightedCrossEntropy(logits, labels, k.uploadFloats(f, k.weights, 1), scale)
	}
	k.sum(f, rows, &a)
	a.Hits, a.Of = int64(f.correct(logits.Value, k.labels)), int64(len(seeds))
	k.measureBatch(f, logits.Value, &a)
	return a, nil
}

func (k *task) sigmoidLoss(t *tape.Tape, f *feed, logits *tape.Var, seeds []uint32) (a tally, err error) {
	var known int
	if k.targets, known, err = k.data.Targets(k.targets[:0], seeds); err != nil {
		return a, err
	}
	a.Weight = float64(known)
	rows := t.SigmoidCrossEntropy(logits, k.uploadFloats(f, k.targets, logits.Value.Cols), 1/float32(max(known, 1)))
	k.sum(f, rows, &a)
	var tp, wrong int64
	for i, x := range k.download(f, logits.Value) {
		switch target, positive := k.targets[i], x > 0; {
		case target == 1 && positive:
			tp++
		case target == 1, target == 0 && positive:
			wrong++
		}
	}
	a.Hits, a.Of = 2*tp, 2*tp+wrong
	k.measureBatch(f, logits.Value, &a)
	return a, nil
}

// sum adds up the losses of rows, in their order.
func (k *task) sum(f *feed, rows kernels.Tensor, a *tally) {
	for _, l := range k.download(f, rows) {
		a.Loss += float64(l)
	}
}

// download copies t into scratch.
func (k *task) download(f *feed, t kernels.Tensor) []float32 {
	k.host = append(k.host[:0], make([]float32, t.Len())...)
	f.be.DownloadF32(k.host, t)
	return k.host
}

func (k *task) uploadFloats(f *feed, v []float32, cols int) kernels.Tensor {
	k.floats = grow(f.be, k.floats, kernels.F32, len(v))
	t := kernels.Tensor{Buf: k.floats, Type: kernels.F32, Rows: len(v) / cols, Cols: cols}
	f.be.UploadF32(t, v)
	return t
}

// measure adds the predictions for nodes to the metric.
func (k *task) measure(f *feed, logits kernels.Tensor, nodes []uint32) (err error) {
	if k.multi {
		if k.targets, _, err = k.data.Targets(k.targets[:0], nodes); err == nil {
			k.several.Add(k.download(f, logits), k.targets)
		}
		return err
	}
	if k.labels, err = k.data.Classes(k.labels[:0], nodes); err == nil {
		k.single.Add(k.download(f, logits), k.labels)
	}
	return err
}

// value is the metric of what was measured since the last call. It is undefined for some sets, as ROC-AUC where all are
// positive: errors.Is(err, metric.ErrUndefined).
func (k *task) value() (float64, error) {
	if k.multi {
		defer k.several.Reset()
		return k.several.Value()
	}
	defer k.single.Reset()
	return k.single.Value()
}

func (k *task) close(be kernels.Backend) {
	if k.floats != nil {
		be.Free(k.floats)
	}
}

// rowWeights appends to dst the weight of each row's class, 0 for kernels.NoLabel, and adds them up in order: what
// tape.WeightedCrossEntropy takes, and what its mean divides by. class has a weight for every class.
func rowWeights(dst []float32, labels []uint32, class []float32) (_ []float32, sum float64) {
	for _, label := range labels {
		w := float32(0)
		if label != kernels.NoLabel {
			w = class[label]
		}
		dst = append(dst, w)
		sum += float64(w)
	}
	return dst, sum
}
