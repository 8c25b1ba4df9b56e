package bench

import (
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Trainer takes the steps of training with batches that are there.
type Trainer struct {
	*step.Stepper
	labels *classes
}

// NewTrainer makes a network for feature rows of in columns and out classes, with weights drawn from seed.
func NewTrainer(be kernels.Backend, c model.Config, in, out int, seed uint64) *Trainer {
	labels := new(classes)
	return &Trainer{step.New(be, model.New(be, c, model.Shape{In: []int{in}, Out: out}, seed), labels, optim.Options{}), labels}
}

// Step is one update from the feature rows of b's inputs and the classes of its seeds: blocks to the backend, forward,
// loss, backward, Adam. It returns the mean loss before the update, of which there is none where the loss is no number. key seeds
// dropout.
func (t *Trainer) Step(b *sample.Batch, rows kernels.Tensor, labels []uint32, rate float64, key uint64) (loss float64) {
	*t.labels = labels
	in := step.InputOf(b, rows)
	in.Key = key | 1
	a, err := t.Compute(in)
	if err == nil {
		_ = t.Update(rate, nil) // gradients are not clipped, so that their norm is not looked at
	}
	return a.Mean()
}

// Restart forgets the optimizer's moments.
func (t *Trainer) Restart() { t.Stepper.Restart(optim.Options{}) }

// classes is a task whose targets are at hand.
type classes []uint32

// Loss is the mean cross-entropy of the seeds.
func (c *classes) Loss(t *tape.Tape, f *step.Feed, out model.Rows, _ [][]uint32) (a step.Tally, err error) {
	a.Weight = float64(len(*c))
	for _, l := range f.Download(t.CrossEntropy(out[0], f.Upload(*c), 1/float32(len(*c)))) {
		a.Loss += float64(l)
	}
	return a, nil
}
