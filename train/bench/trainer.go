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

// NewTrainer makes a network of a shape, with weights drawn from seed.
func NewTrainer(be kernels.Backend, c model.Config, s model.Shape, seed uint64) *Trainer {
	labels := &classes{target: s.Target}
	return &Trainer{step.New(be, model.New(be, c, s, seed), labels, optim.Options{}), labels}
}

// Step makes one update from the feature rows of b's inputs, by type, and the classes of its
// seeds: blocks to the backend, forward, loss, backward, Adam. It returns the mean loss before
// the update. If the loss is no number, it makes no update. key seeds dropout.
func (t *Trainer) Step(b *sample.Batch, rows []kernels.Tensor, labels []uint32, rate float64, key uint64) (loss float64) {
	a, _ := t.Launch(b, rows, labels, rate, key).Wait()
	return a.Mean()
}

// Launch begins a Step. As in training, the next step may be launched before this one is waited
// for. Wait for this one before the step after that.
func (t *Trainer) Launch(
	b *sample.Batch, rows []kernels.Tensor, labels []uint32, rate float64, key uint64,
) step.Launched {
	t.labels.of = labels
	in := step.InputOf(b, rows...)
	in.Key = key | 1
	_ = t.Compute(in) // labels do not err
	_ = t.Update(rate, nil)
	return t.Launched()
}

// Restart forgets the optimizer's moments.
func (t *Trainer) Restart() { t.Stepper.Restart(optim.Options{}) }

// classes is a task whose targets are at hand: the classes of the seeds, which are of type target.
type classes struct {
	of     []uint32
	target int
}

// Loss returns the mean cross-entropy of the seeds.
func (c *classes) Loss(t *tape.Tape, f *step.Feed, out model.Rows, _ step.Input) (tally func() step.Tally, err error) {
	losses := f.FetchLoss(t.CrossEntropy(out[c.target], f.Upload(c.of), 1/float32(len(c.of))))
	return func() step.Tally { return step.Tally{Loss: step.Sum(losses), Weight: float64(len(losses))} }, nil
}
