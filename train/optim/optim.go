// Package optim turns gradients into new weights: Adam and AdamW with PyTorch's semantics, clipping
// by the global norm, and learning rates that follow a [Schedule].
//
// An [Optimizer] updates parameters in place, on the backend that holds them, and keeps two moments
// for each there: 8 bytes a weight, from New to Close. State and Restore copy them out and in, so
// that a resumed run gives the same bits. Sums have a fixed order: the same gradients give the same
// weights with any number of threads. One goroutine uses an Optimizer.
//
// Start reading at [Optimizer.Step].
package optim

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/checkpoint"
)

// Kind names an optimizer.
type Kind string

const (
	// Adam is Kingma and Ba 2015, algorithm 1; weight decay is added to the gradient. It is the
	// default: an empty Kind means Adam.
	Adam Kind = "adam"
	// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter 2019): each step first takes
	// the fraction rate × WeightDecay off every weight.
	AdamW Kind = "adamw"
)

// Options configures an Optimizer. The zero value works. The rates of the moments and the epsilon
// are PyTorch's defaults, 0.9, 0.999 and 1e-8.
type Options struct {
	Kind Kind `json:"optimizer"`
	// WeightDecay is for all parameters, biases and normalisation among them, as in PyTorch.
	// Default 0: none.
	WeightDecay float64 `json:"weight_decay"`
	// ClipNorm is the largest norm of all gradients together; larger ones are scaled down to it.
	// Default 0: any norm.
	ClipNorm float64 `json:"clip_norm"`
	// Rows is the rule that updates the learnt rows that a step has read, by their part of the
	// gradients, without weight decay. Default RowAdam.
	Rows RowKind `json:"embed_optimizer"`
}

// RowKind names how learnt rows are updated.
type RowKind string

const (
	// RowAdam corrects the moments of a row for all steps of the run, as PyTorch's SparseAdam does:
	// a row that is first read late moves by up to (1-β₁)/√(1-β₂) = 3.2 times the rate.
	RowAdam RowKind = "adam"
	// RowAdamSteps corrects them for the steps that read the row.
	RowAdamSteps RowKind = "adam-row"
	// RowAdagrad is Adagrad (Duchi, Hazan and Singer 2011) with one sum a row, of the means of its
	// squared gradients: a number a row where Adam keeps two a value.
	RowAdagrad RowKind = "adagrad"
)

// Rule returns k's rule in package kernels.
func (k RowKind) Rule() kernels.RowRule {
	switch k {
	case RowAdamSteps:
		return kernels.RowAdamSteps
	case RowAdagrad:
		return kernels.RowAdagrad
	}
	return kernels.RowAdam
}

// Validate reports every problem.
func (o Options) Validate() error {
	var errs []error
	if o.Kind != "" && o.Kind != Adam && o.Kind != AdamW {
		errs = append(errs, fmt.Errorf("{optimizer} %s: there are adam and adamw", o.Kind))
	}
	if !(o.WeightDecay >= 0 && o.WeightDecay < 1e6) {
		errs = append(errs, fmt.Errorf("{weight_decay} %v: at least 0", o.WeightDecay))
	}
	if !(o.ClipNorm >= 0 && o.ClipNorm <= math.MaxFloat32) {
		errs = append(errs, fmt.Errorf("{clip_norm} %v: above 0, or 0 for no limit", o.ClipNorm))
	}
	switch o.Rows {
	case "", RowAdam, RowAdamSteps, RowAdagrad:
	default:
		errs = append(errs, fmt.Errorf("{embed_optimizer} %s: there are adam, adam-row and adagrad", o.Rows))
	}
	return errors.Join(errs...)
}

// Param is one parameter on the backend. Its tensors stay the caller's.
type Param struct {
	Name        string
	Shape       []int // as a checkpoint has it
	Value, Grad kernels.Tensor
}

// Rows are learnt rows that a step has read: their records, as kernels.Backend.UpdateRecords has
// them, and the gradients of their values. Clipping takes the norm of Norms in place of Grad's, if
// Norms is set: where workers own rows, it has the norm of each worker's gradients.
type Rows struct{ Records, Grad, Norms kernels.Tensor }

// Optimizer updates parameters. Close gives its memory back.
type Optimizer struct {
	Options
	be     kernels.Backend
	params []Param
	adam   []kernels.AdamParam // params with their moments
	grads  []kernels.Tensor    // of params, and learnt rows last; only with ClipNorm
	norms  kernels.Tensor      // only with ClipNorm: a factor, and the squared norm of each of grads
	steps  int
}

// momentsOf returns the first and the second moment of a parameter.
func momentsOf(p kernels.AdamParam) [2]kernels.Tensor { return [2]kernels.Tensor{p.M, p.V} }

// momentPrefix stands before a parameter's name in a checkpoint.
var momentPrefix = [2]string{"adam.exp_avg.", "adam.exp_avg_sq."}

// New makes an optimizer of params on be. It panics when o is not valid.
func New(be kernels.Backend, params []Param, o Options) *Optimizer {
	if err := o.Validate(); err != nil {
		panic("optim: New: " + err.Error())
	}
	opt := &Optimizer{Options: o, be: be}
	for _, p := range params {
		zeros := func() kernels.Tensor { return kernels.NewTensor(be, kernels.F32, p.Value.Rows, p.Value.Cols) }
		opt.params = append(opt.params, p)
		opt.adam = append(opt.adam, kernels.AdamParam{Value: p.Value, Grad: p.Grad, M: zeros(), V: zeros()})
	}
	if o.ClipNorm > 0 {
		opt.reserve(len(params))
	}
	return opt
}

// The rates of the moments and the epsilon, in float32 as the kernels use them. The bias
// corrections are powers of the rounded rates, since the moments are made with these:
// 1-float32(0.999) is 1.3e-5 of itself below 0.001.
const (
	beta1 = float32(0.9)
	beta2 = float32(0.999)
	eps   = float32(1e-8)

	adagradEps = float32(1e-10) // PyTorch's of Adagrad
)

// Step updates every parameter from its gradient at the learning rate given, and sets the gradients
// to 0. It updates rows likewise, but does not clear their gradients, which clipping may scale.
// With ClipNorm it returns the squares of each gradient's norm before clipping, until the next
// Step, and else the zero Tensor: [kernels.ClipNorm] makes the norm of all of them. void is the
// flag of a kernels.Guard, which a norm that is not finite sets. Without it such a norm makes the
// weights useless, as in PyTorch.
func (o *Optimizer) Step(rate float64, void kernels.Tensor, rows ...Rows) (squares kernels.Tensor) {
	guard := kernels.Guard{Void: void}
	if o.ClipNorm > 0 {
		guard.Scale, squares = o.clip(rows)
		if void.Buf != nil {
			o.be.CheckFinite(void, squares)
		}
	}
	o.steps++
	s := kernels.AdamStep{LR: float32(rate), Beta1: beta1, Beta2: beta2, Eps: eps, Correct1: correction(beta1, o.steps), Correct2: correction(beta2, o.steps)}
	decoupled := o.Kind == AdamW && o.WeightDecay > 0
	if !decoupled {
		s.WeightDecay = float32(o.WeightDecay)
	}
	keep := float32(1)
	if decoupled {
		keep = float32(1 - rate*o.WeightDecay)
	}
	o.be.Adam(o.adam, keep, s, guard)
	s.WeightDecay = 0
	if o.Options.Rows == RowAdagrad {
		s.Eps = adagradEps
	}
	for _, r := range rows {
		o.be.UpdateRecords(r.Records, r.Grad, kernels.RowStep{Rule: o.Options.Rows.Rule(), AdamStep: s}, guard)
	}
	return squares
}

// correction returns the divisor of a moment after so many steps: moments start at 0.
func correction(beta float32, steps int) float32 {
	return float32(1 - math.Pow(float64(beta), float64(steps)))
}

// reserve makes room for n norms.
func (o *Optimizer) reserve(n int) {
	if o.norms.Rows > n {
		return
	}
	more := kernels.NewTensor(o.be, kernels.F32, 1+n, 1)
	kernels.FreeTensors(o.be, o.norms)
	o.norms = more
}

// clip returns the factor that scales all gradients to the norm ClipNorm where they are above it,
// and the squares of their norms, in the order of the parameters and rows.
func (o *Optimizer) clip(rows []Rows) (factor, squares kernels.Tensor) {
	o.grads = o.grads[:0]
	for _, p := range o.params {
		o.grads = append(o.grads, p.Grad)
	}
	for _, r := range rows {
		if r.Norms.Buf != nil {
			o.grads = append(o.grads, r.Norms)
		} else {
			o.grads = append(o.grads, r.Grad)
		}
	}
	o.reserve(len(o.grads))
	factor, squares = o.norms.Slice(0, 1), o.norms.Slice(1, 1+len(o.grads))
	o.be.ClipFactor(factor, squares, o.grads, o.ClipNorm)
	return factor, squares
}

// Rewind sets the number of updates back to steps, where a flag kept the ones since from changing
// anything.
func (o *Optimizer) Rewind(steps int) { o.steps = steps }

// Steps is the number of updates so far, those before a Restore included.
func (o *Optimizer) Steps() int { return o.steps }

// State copies the moments out: for each parameter NAME, adam.exp_avg.NAME and
// adam.exp_avg_sq.NAME. Restore also needs Steps.
func (o *Optimizer) State() []checkpoint.Tensor {
	var state []checkpoint.Tensor
	for i, p := range o.params {
		for k, m := range momentsOf(o.adam[i]) {
			data := make([]float32, m.Len())
			o.be.DownloadF32(data, m)
			state = append(state, checkpoint.Tensor{Name: momentPrefix[k] + p.Name, Shape: slices.Clone(p.Shape), Data: data})
		}
	}
	return state
}

// Check returns an error if a moment is missing from state or has another shape. It ignores other
// tensors.
func (o *Optimizer) Check(state []checkpoint.Tensor) error {
	_, err := o.moments(state)
	return err
}

// Restore takes back what State gave after steps updates. It returns the error that Check would
// return, and then changes nothing.
func (o *Optimizer) Restore(steps int, state []checkpoint.Tensor) error {
	if steps < 0 {
		return fmt.Errorf("optimizer state after %d steps; the checkpoint is damaged", steps)
	}
	found, err := o.moments(state)
	if err != nil {
		return err
	}
	for i, p := range o.adam {
		for k, m := range momentsOf(p) {
			o.be.UploadF32(m, found[i][k])
		}
	}
	o.steps = steps
	return nil
}

// moments returns both moments of each parameter from state.
func (o *Optimizer) moments(state []checkpoint.Tensor) ([][2][]float32, error) {
	named := map[string]*checkpoint.Tensor{}
	for i := range state {
		named[state[i].Name] = &state[i]
	}
	found := make([][2][]float32, len(o.params))
	for i := range o.params {
		p := &o.params[i]
		for k, prefix := range momentPrefix {
			t := named[prefix+p.Name]
			if t == nil {
				return nil, fmt.Errorf("optimizer state: no tensor %s; the checkpoint is of another model, or of weights alone", prefix+p.Name)
			}
			if !slices.Equal(t.Shape, p.Shape) || len(t.Data) != p.Value.Len() {
				return nil, fmt.Errorf("optimizer state: %s has shape %v, and the model %v; the checkpoint is of another model", t.Name, t.Shape, p.Shape)
			}
			found[i][k] = t.Data
		}
	}
	return found, nil
}

// Close frees the moments.
func (o *Optimizer) Close() {
	for _, p := range o.adam {
		kernels.FreeTensors(o.be, p.M, p.V)
	}
	kernels.FreeTensors(o.be, o.norms)
	o.params, o.adam, o.norms = nil, nil, kernels.Tensor{}
}
