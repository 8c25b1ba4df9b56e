package task

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Columns gives a Probe the columns of nodes. Rows writes Cols numbers for each node to dst.
type Columns struct {
	Cols int
	Rows func(ctx context.Context, dst []float32, nodes []uint32) error
}

// A Probe is a linear model of the columns of a node. If nodes have one class, it is a multinomial
// logistic regression; if they have several, a logistic regression for each class; if they have
// numbers, a ridge regression. Columns are scaled to mean 0 and deviation 1 on the training nodes.
// Adam trains the model, with a rate that falls to 0 along a cosine. [Nodes.NewProbe] fits a model
// for each of Strengths in the same passes over the training nodes, and keeps the one with the best
// metric on the validation nodes.
//
// A step takes a batch of training nodes, so memory holds one batch. Short runs of nodes are
// shuffled. The same seed and data give the same bits.
//
// # Why not
//
// Why not the exact optimum, by Newton's method or L-BFGS: each step of these is a pass over all
// training rows, and on graphs larger than memory a pass is a read of the disk. Ten passes of
// shuffled batches come close.
type Probe struct {
	// L2 is the strength that validation chose. Without a validation metric, Validated is false and
	// L2 is the middle strength.
	L2        float64
	Validated bool
	Steps     int // of the fit, each with a batch

	nodes        *Nodes
	be           kernels.Backend
	from         Columns
	mean, scale  []float64 // of columns, on the training nodes
	centre, unit float64   // of numbers; a prediction is centre + unit·output
	batch, out   int

	// The models of all strengths lie in one matrix, so that a step reads its rows once: the
	// outputs of a node are a row of out numbers for each model.
	w, b, dw, db kernels.Tensor
	optims       []*optim.Optimizer
	chosen       int

	host, logits []float32
	x            kernels.Tensor // rows of a batch
	labels       kernels.Tensor // classes of the rows, for each model
	targets      kernels.Tensor // or numbers to learn
	y, dy, loss  kernels.Tensor
	repeated     []uint32
	copies       []float32
}

// Strengths are the L2 strengths: the loss adds strength/2 times the squared norm of the weights.
var Strengths = []float64{10, 1, 1e-1, 1e-2, 1e-3, 1e-4}

const (
	// A batch has at most probeRows rows of at most probeValues numbers in all, 64 rows at least.
	probeRows, probeValues, leastProbeRows = 4096, 4 << 20, 64
	// A fit takes probeSteps steps, and probePasses over the training nodes at least.
	probeSteps, probePasses = 500, 10
	// probeRun is the number of training nodes that a shuffle keeps together. Their rows are close
	// on disk, and a batch has rows from 128 places.
	probeRun = 32
)

// probeBatch returns the rows of a batch.
func probeBatch(cols, out int) int {
	return max(leastProbeRows, min(probeRows, probeValues/max(cols, out*len(Strengths), 1)))
}

// probeRate returns the first learning rate. Adam moves each weight by about the rate. If columns
// are independent, a step then changes an output by about the rate times the root of their number.
func probeRate(cols int) float64 { return 0.2 / math.Sqrt(float64(max(cols, 4))) }

// outputs returns how many numbers a network gives for a node.
func (k *Nodes) outputs() int {
	if k.numbers != nil {
		return 1
	}
	return k.data.Labels.Classes()
}

// ProbeBytes returns the memory of a Probe of so many columns.
func (k *Nodes) ProbeBytes(cols int) int64 {
	out := k.outputs()
	weights := int64(cols+1) * int64(out) * 4 * 4 * int64(len(Strengths))
	outputs := int64(len(Strengths)) * int64(out+2) // with a label and a loss
	return weights + int64(probeBatch(cols, out))*4*(2*int64(cols)+4*outputs) + 24*int64(cols) +
		(4+4)*int64(len(k.data.Train)) + 4*int64(len(k.data.Train)/probeRun)
}

// ProbeBatch returns the most rows that a Probe of so many columns asks for at once.
func (k *Nodes) ProbeBatch(cols int) int { return probeBatch(cols, k.outputs()) }

// NewProbe fits a Probe on be. show is called after each step. Close gives the memory back.
func (k *Nodes) NewProbe(ctx context.Context, be kernels.Backend, from Columns, show func(done, all int)) (*Probe, error) {
	p, err := k.fitAll(ctx, be, from, show)
	if err != nil {
		return nil, err
	}
	if err := store.Guard(func() error { return p.choose(ctx) }); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// fitAll returns a Probe with the models of all strengths.
func (k *Nodes) fitAll(ctx context.Context, be kernels.Backend, from Columns, show func(done, all int)) (_ *Probe, err error) {
	if len(k.data.Train) == 0 {
		return nil, errors.New("there is no training node with a label")
	}
	p := &Probe{nodes: k, be: be, from: from, unit: 1, out: k.outputs(), mean: make([]float64, from.Cols), scale: make([]float64, from.Cols)}
	p.batch = probeBatch(from.Cols, p.out)
	fitted := false
	defer func() {
		if !fitted {
			p.Close()
		}
	}()
	err = store.Guard(func() error {
		if err := p.measureColumns(ctx); err != nil {
			return err
		}
		p.open()
		return p.fit(ctx, show)
	})
	fitted = err == nil
	return p, err
}

// open allocates the tensors.
func (p *Probe) open() {
	of := func(t kernels.DType, rows, cols int) kernels.Tensor { return kernels.NewTensor(p.be, t, rows, cols) }
	p.host, p.logits = make([]float32, p.batch*p.from.Cols), make([]float32, p.batch*p.out)
	all := len(Strengths)
	p.x, p.y, p.dy = of(kernels.F32, p.batch, p.from.Cols), of(kernels.F32, p.batch, all*p.out), of(kernels.F32, p.batch, all*p.out)
	p.loss, p.labels, p.targets = of(kernels.F32, p.batch*all, 1), of(kernels.U32, p.batch*all, 1), of(kernels.F32, p.batch*all, p.out)
	p.w, p.dw = of(kernels.F32, all*p.out, p.from.Cols), of(kernels.F32, all*p.out, p.from.Cols)
	p.b, p.db = of(kernels.F32, 1, all*p.out), of(kernels.F32, 1, all*p.out)
	add := func(value, grad kernels.Tensor, decay float64) {
		param := optim.Param{Name: "probe", Shape: []int{value.Rows, value.Cols}, Value: value, Grad: grad}
		p.optims = append(p.optims, optim.New(p.be, []optim.Param{param}, optim.Options{WeightDecay: decay}))
	}
	add(p.b, p.db, 0)
	for i, strength := range Strengths {
		add(p.w.Slice(i*p.out, (i+1)*p.out), p.dw.Slice(i*p.out, (i+1)*p.out), strength)
	}
}

// model returns the weights and biases of one strength.
func (p *Probe) model(i int) (w, b kernels.Tensor) {
	b = p.b
	b.Off, b.Cols = b.Off+i*p.out, p.out
	return p.w.Slice(i*p.out, (i+1)*p.out), b
}

// Close gives the memory back.
func (p *Probe) Close() {
	for _, o := range p.optims {
		o.Close()
	}
	kernels.FreeTensors(p.be, p.x, p.y, p.dy, p.loss, p.labels, p.targets, p.w, p.b, p.dw, p.db)
}

// moments adds up numbers, less the first of them, and their squares.
type moments struct{ first, sum, squares float64 }

func (m *moments) add(x float32, first bool) {
	if first {
		m.first = float64(x)
	}
	d := float64(x) - m.first
	m.sum += d
	m.squares += d * d
}

// of returns the mean of n numbers and the inverse of their deviation. The inverse is 0 if all
// numbers are equal within the rounding of float32.
func (m *moments) of(n int) (mean, inverse float64) {
	shift := m.sum / float64(n)
	mean = m.first + shift
	if deviation := math.Sqrt(max(0, m.squares/float64(n)-shift*shift)); deviation > 1e-7*math.Abs(mean) {
		inverse = 1 / deviation
	}
	return mean, inverse
}

// measureColumns finds the mean and the deviation of each column on the training nodes, and of the
// numbers to learn.
func (p *Probe) measureColumns(ctx context.Context) (err error) {
	k, train := p.nodes, p.nodes.data.Train
	cols, numbers := make([]moments, p.from.Cols), moments{}
	rows := make([]float32, p.batch*p.from.Cols)
	for lo := 0; lo < len(train); lo += p.batch {
		some := train[lo:min(lo+p.batch, len(train))]
		if err := p.read(ctx, rows, some); err != nil {
			return err
		}
		for i := range some {
			for c, x := range rows[i*p.from.Cols : (i+1)*p.from.Cols] {
				cols[c].add(x, lo+i == 0)
			}
		}
		if k.numbers == nil {
			continue
		}
		if k.targets, err = k.data.Numbers(k.targets[:0], some); err != nil {
			return err
		}
		for i, y := range k.targets {
			numbers.add(y, lo+i == 0)
		}
	}
	for c := range cols {
		mean, inverse := cols[c].of(len(train))
		if p.mean[c], p.scale[c] = mean, inverse; mean-mean != 0 || inverse-inverse != 0 {
			return fmt.Errorf("column %d of the rows of the training nodes has a value that is not finite", c)
		}
	}
	if k.numbers != nil {
		mean, inverse := numbers.of(len(train))
		if p.centre = mean; inverse > 0 {
			p.unit = 1 / inverse
		}
	}
	return nil
}

// read reads the columns of nodes.
func (p *Probe) read(ctx context.Context, dst []float32, nodes []uint32) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.from.Rows(ctx, dst[:len(nodes)*p.from.Cols], nodes)
}

// bring uploads the rows of nodes, at most a batch.
func (p *Probe) bring(ctx context.Context, nodes []uint32) (x kernels.Tensor, err error) {
	host := p.host[:len(nodes)*p.from.Cols]
	if err := p.read(ctx, host, nodes); err != nil {
		return x, err
	}
	for i := range host {
		c := i % p.from.Cols
		host[i] = float32((float64(host[i]) - p.mean[c]) * p.scale[c])
	}
	x = p.x.Slice(0, len(nodes))
	p.be.UploadF32(x, host)
	return x, nil
}

// fit takes the steps.
func (p *Probe) fit(ctx context.Context, show func(done, all int)) error {
	train := slices.Sorted(slices.Values(p.nodes.data.Train))
	var runs, order []uint32
	for lo := 0; lo < len(train); lo += probeRun {
		runs = append(runs, uint32(lo))
	}
	each := (len(train) + p.batch - 1) / p.batch
	p.Steps = max(probeSteps, probePasses*each)
	rate, schedule := probeRate(p.from.Cols), optim.Schedule{Kind: optim.Cosine}
	var at probeBatchAt
	for step := range p.Steps {
		if step%each == 0 && each > 1 || step == 0 {
			sample.Shuffle(runs, p.nodes.options.Seed, step/each+1)
			order = order[:0]
			for _, lo := range runs {
				order = append(order, train[lo:min(int(lo)+probeRun, len(train))]...)
			}
		}
		if each > 1 || step == 0 { // a single batch stays
			lo := step % each * p.batch
			if err := p.load(ctx, &at, order[lo:min(lo+p.batch, len(order))]); err != nil {
				return err
			}
		}
		p.step(&at, schedule.Rate(rate, step, p.Steps, each))
		if err := ctx.Err(); err != nil {
			return err
		}
		show(step+1, p.Steps)
	}
	return nil
}

// probeBatchAt is a batch on the backend.
type probeBatchAt struct {
	x, answers kernels.Tensor
	scale      float32 // of the sum of losses, to their mean
}

// load uploads a batch of training nodes with their answers.
func (p *Probe) load(ctx context.Context, at *probeBatchAt, nodes []uint32) (err error) {
	if at.x, err = p.bring(ctx, nodes); err != nil {
		return err
	}
	k, known := p.nodes, len(nodes)
	switch {
	case k.numbers != nil:
		if k.targets, err = k.data.Numbers(k.targets[:0], nodes); err != nil {
			return err
		}
		for i, y := range k.targets {
			k.targets[i] = float32((float64(y) - p.centre) / p.unit)
		}
	case k.multi:
		if k.targets, known, err = k.data.Targets(k.targets[:0], nodes); err != nil {
			return err
		}
	default:
		if k.labels, err = k.data.Classes(k.labels[:0], nodes); err != nil {
			return err
		}
		p.repeated = p.repeated[:0]
		for _, label := range k.labels {
			for range Strengths {
				p.repeated = append(p.repeated, label)
			}
		}
		at.answers = p.labels.Slice(0, len(p.repeated))
		p.be.UploadU32(at.answers, p.repeated)
	}
	if k.numbers != nil || k.multi {
		p.copies = p.copies[:0]
		for row := range slices.Chunk(k.targets, p.out) {
			for range Strengths {
				p.copies = append(p.copies, row...)
			}
		}
		at.answers = p.targets.Slice(0, len(nodes)*len(Strengths))
		p.be.UploadF32(at.answers, p.copies)
	}
	at.scale = 1 / float32(max(known, 1))
	return nil
}

// step makes an update of all models by the batch that was loaded.
func (p *Probe) step(at *probeBatchAt, rate float64) {
	n := at.x.Rows
	y, dy := p.y.Slice(0, n), p.dy.Slice(0, n)
	p.be.Affine(y, p.b, false, kernels.Term{X: at.x, W: p.w})
	rows, drows := y, dy // a row for each node and model
	rows.Rows, rows.Cols = n*len(Strengths), p.out
	drows.Rows, drows.Cols = rows.Rows, rows.Cols
	loss := p.loss.Slice(0, rows.Rows)
	switch {
	case p.nodes.numbers != nil:
		p.be.SquaredError(loss, drows, rows, at.answers, at.scale)
	case p.nodes.multi:
		p.be.SigmoidCrossEntropy(loss, drows, rows, at.answers, at.scale)
	default:
		p.be.SoftmaxCrossEntropy(loss, drows, rows, at.answers, at.scale)
	}
	p.be.AffineGrad(dy, kernels.Tensor{}, p.db, kernels.TermGrad{Term: kernels.Term{X: at.x, W: p.w}, DW: p.dw})
	for _, o := range p.optims {
		o.Step(rate, kernels.Tensor{})
	}
}

// choose takes the model with the best metric on the validation nodes. Of equally good ones it
// takes the strongest L2.
func (p *Probe) choose(ctx context.Context) error {
	best := 0.0
	for i := range Strengths {
		v, err := p.measure(ctx, i, p.nodes.data.Valid)
		if errors.Is(err, metric.ErrUndefined) {
			continue
		}
		if err != nil {
			return err
		}
		if !p.Validated || p.nodes.kind.Better(v, best) {
			p.chosen, p.Validated, best = i, true, v
		}
	}
	if !p.Validated {
		p.chosen = len(Strengths) / 2
	}
	p.L2 = Strengths[p.chosen]
	return nil
}

// Measure returns the metric of nodes. It may be undefined: errors.Is(err, metric.ErrUndefined).
func (p *Probe) Measure(ctx context.Context, nodes []uint32) (v float64, err error) {
	err = store.Guard(func() error {
		v, err = p.measure(ctx, p.chosen, nodes)
		return err
	})
	return v, err
}

func (p *Probe) measure(ctx context.Context, model int, nodes []uint32) (float64, error) {
	w, b := p.model(model)
	_, _ = p.nodes.Value() // drops rows that an interrupted evaluation left
	for lo := 0; lo < len(nodes); lo += p.batch {
		some := nodes[lo:min(lo+p.batch, len(nodes))]
		x, err := p.bring(ctx, some)
		if err != nil {
			return 0, err
		}
		y, logits := p.y, p.logits[:len(some)*p.out]
		y.Rows, y.Cols = len(some), p.out
		p.be.Affine(y, b, false, kernels.Term{X: x, W: w})
		p.be.DownloadF32(logits, y)
		if p.nodes.numbers != nil {
			for i, v := range logits {
				logits[i] = float32(p.centre + p.unit*float64(v))
			}
		}
		if err := p.nodes.count(logits, some); err != nil {
			return 0, err
		}
	}
	return p.nodes.Value()
}
