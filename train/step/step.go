// Package step turns a batch into an update of the weights.
//
// A [Stepper] has the network, its optimizer and the memory of a step. [Stepper.Compute] takes a
// batch forwards to the loss of its [Task] and backwards to the gradients; [Stepper.Update] makes
// new weights of them. Between the two, workers that share a batch add up their gradients. Both
// return once the backend has its work, and [Launched.Wait] returns once that is done: in between,
// the next step may be launched. A [Feed] carries batches to the backend, for steps and for
// evaluation. A [Held] has rows of hidden layers that steps leave to later ones.
//
// Memory: a Stepper owns buffers of the backend that grow to the largest batch and stay, until
// Close; at steady state a step allocates nothing that grows with the batch. What a Feed and a Tape
// return is valid until their next use. One goroutine at a time.
package step

import (
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Task is the objective of training.
type Task interface {
	// Loss starts the backward pass from the mean loss of a batch. out has the rows that the
	// network made of its seeds, by type. It fetches the losses of rows with Feed.FetchLoss.
	// tally adds them up. The caller calls it once the step is done and before it launches the step
	// after next, or not at all.
	Loss(t *tape.Tape, f *Feed, out model.Rows, in Input) (tally func() Tally, err error)
}

// Stepper takes steps with a network.
type Stepper struct {
	Model *model.Model
	Optim *optim.Optimizer
	Task  Task
	Tape  *tape.Tape
	Feed  *Feed
	Shown Shown // nil: the network has no labels for input

	be     kernels.Backend
	lists  sample.Labels
	rows   model.Rows
	grads  []kernels.Tensor // of the parameters, in their order
	learnt []optim.Rows     // read by Compute, and to be changed by Update
	now    Launched         // the step that Compute began
	others cooperating

	history history
}

// New makes a Stepper of m, which it owns from now on, though there be no memory for an optimizer.
func New(be kernels.Backend, m *model.Model, task Task, o optim.Options) *Stepper {
	s := &Stepper{Model: m, Task: task, Tape: tape.New(be), Feed: newFeed(be), be: be}
	for _, p := range m.Params {
		s.grads = append(s.grads, p.Grad)
	}
	defer func() {
		if s.Optim == nil {
			s.Close()
		}
	}()
	s.Restart(o)
	return s
}

// NewFixed makes a Stepper of m, which it owns from now on, that predicts and takes no steps: m
// needs no gradients, as model.NewFixed makes it.
func NewFixed(be kernels.Backend, m *model.Model, task Task) *Stepper {
	return &Stepper{Model: m, Task: task, Tape: tape.New(be), Feed: newFeed(be), be: be, Optim: optim.New(be, nil, optim.Options{})}
}

// Restart begins with a new optimizer.
func (s *Stepper) Restart(o optim.Options) {
	s.closeOptim()
	var params []optim.Param
	for _, p := range s.Model.Params {
		params = append(params, optim.Param{Name: p.Name, Shape: p.Shape, Value: p.Value, Grad: p.Grad})
	}
	s.Optim = optim.New(s.be, params, o)
}

// Input is a batch whose rows are there.
type Input struct {
	Layers []sample.Layer
	Seeds  [][]uint32 // by type
	Step   int        // of the epoch
	// Rows are the input rows, by type: features, F16 or F32; records, F32, of types whose rows are
	// learnt, which Update changes; or without a buffer where the network has rows of its own. The
	// rows of the tables of edges follow.
	Rows []kernels.Tensor
	Key  uint64      // of dropout, another one each step; odd. 0: nothing is dropped
	Kept *model.Kept // what is kept of hidden rows until the next step; nil: nothing
	Held *Held       // nil: the batch has no history
	// Cooperation exchanges rows with the workers that compute other nodes of the batch. Default
	// nil: this worker computes all of them.
	*Cooperation
	// Hidden are the nodes whose labels are hidden where labels are input: the seeds of all
	// workers. Default nil: Seeds.
	Hidden []uint32
}

// InputOf returns the input of a step of b, with its rows by type. A batch with Halos gets a
// Cooperation without a Swap.
func InputOf(b *sample.Batch, rows ...kernels.Tensor) Input {
	in := Input{Layers: b.Layers, Seeds: b.Asked(), Rows: rows}
	if h := b.Halos(); h != nil {
		in.Cooperation = &Cooperation{Halos: h}
	}
	return in
}

// computes reports whether the step computes anything. A worker without a seed has nothing to
// compute, unless other workers may need its rows.
func (in *Input) computes() bool { return in.hasSeeds() || in.Cooperation != nil }

// hasSeeds reports whether the batch has a seed. In a small batch a worker may have none.
func (in *Input) hasSeeds() bool {
	return slices.ContainsFunc(in.Seeds, func(ids []uint32) bool { return len(ids) > 0 })
}

// LossError is a loss that is not finite. Neither its step nor the ones that were launched since
// have changed weights, learnt rows or slots.
type LossError struct{ Loss float64 }

func (e *LossError) Error() string { return fmt.Sprintf("the loss is %v", e.Loss) }

// NormError is a norm of the gradients that is not finite. Neither its step nor the ones that were
// launched since have changed weights or learnt rows.
type NormError struct{ Norm float64 }

func (e *NormError) Error() string { return fmt.Sprintf("the norm of the gradients is %v", e.Norm) }

// Launched is a step that the backend may still be computing.
type Launched struct {
	s       *Stepper
	tally   func() Tally
	held    *Held
	squares []float32 // of the norm of each gradient; empty where they are not clipped
	updates int       // before this step's
	wait    func()
}

// Compute adds the gradients of a batch's mean loss to the parameters' gradients, which are zero
// before the first step and after each Update. A batch without seeds adds nothing. A loss that is
// not finite is found by [Launched.Wait].
func (s *Stepper) Compute(in Input) (err error) {
	s.Feed.turn()
	s.learnt, s.now = s.learnt[:0], Launched{s: s, held: in.Held, updates: s.Optim.Steps()}
	s.now.tally = func() Tally { return Tally{} }
	if !in.computes() {
		return nil
	}
	if err := s.forward(in, &s.now.tally); err != nil {
		return err
	}
	s.store(in, true)
	s.Tape.Backward()
	if err := s.others.err; err != nil {
		return err
	}
	s.norms(in)
	for n, x := range in.Rows {
		if s.Model.LearntDim(n) > 0 && x.Buf != nil {
			s.learnt = append(s.learnt, optim.Rows{Records: x, Grad: s.Tape.Gradient(s.rows[n])})
		}
	}
	return nil
}

// forward computes the rows of in and, if it has seeds, the loss, and then sets tally.
func (s *Stepper) forward(in Input, tally *func() Tally) (err error) {
	graphs, pass := s.begin(in), s.pass(in)
	pass.Exchange = s.cooperate(in)
	out := s.Model.Forward(s.Tape, s.leaves(in.Rows), graphs, pass)
	if err := s.others.err; err != nil {
		return err
	}
	if in.hasSeeds() {
		*tally, err = s.Task.Loss(s.Tape, s.Feed, out, in)
	}
	return err
}

// LearntGradient returns the gradients of the learnt rows of type n that the last Compute read, or
// the zero Tensor if it read none. They are valid until the next Compute.
func (s *Stepper) LearntGradient(n int) kernels.Tensor {
	if len(s.learnt) == 0 || n >= len(s.rows) || s.rows[n] == nil {
		return kernels.Tensor{}
	}
	return s.Tape.Gradient(s.rows[n])
}

// SetLearnt replaces the learnt rows that Update changes. Workers that own rows call it in reduce,
// with their own rows and the sums of all workers' gradients.
func (s *Stepper) SetLearnt(rows []optim.Rows) { s.learnt = append(s.learnt[:0], rows...) }

// Computed waits until the last Compute is done, and returns its tally. Workers that share a batch
// call it before they add up gradients, so that a loss that is not finite spoils no other worker.
// The error is a *LossError; then there is no Update.
func (s *Stepper) Computed() (Tally, error) {
	s.be.Mark()()
	a := s.now.tally()
	s.now.tally = func() Tally { return a }
	if !finite(a.Loss) {
		s.be.UploadU32(s.Feed.void, []uint32{0})
		return a, &LossError{a.Loss}
	}
	return a, nil
}

// Launched returns the step of the last Compute, with its Update if there was one. Wait for it
// before the step after next is launched.
func (s *Stepper) Launched() Launched {
	l := s.now
	l.wait = s.be.Mark()
	return l
}

// Wait waits until the step is done, and returns its tally. The error is a *LossError or a
// *NormError. After an error the gradients are zero if there was an Update, and have no meaning
// otherwise.
func (l Launched) Wait() (a Tally, err error) {
	l.wait()
	a = l.tally()
	if !finite(a.Loss) {
		err = &LossError{a.Loss}
	} else if norm := kernels.ClipNorm(l.squares); !finite(norm) {
		err = &NormError{norm}
	}
	if err != nil {
		l.s.Optim.Rewind(l.updates)
		l.s.be.UploadU32(l.s.Feed.void, []uint32{0})
		return a, err
	}
	l.held.split()
	return a, nil
}

// begin has the tape record a step with in. Hidden rows that a step of history keeps take memory of
// their own, so that it is frugal with the rest, unless the caller is to find all of Kept; of other
// steps that would save a hundredth.
func (s *Stepper) begin(in Input) []model.Graph {
	graphs := s.graphs(in, true)
	s.Tape.Frugal = in.Held != nil && in.Kept == nil
	s.Tape.Reset(true)
	return graphs
}

// Update makes new weights of the gradients at a learning rate, and new records of the rows that
// the last Compute read, and clears the gradients. reduce, where it is not nil, first gets the
// gradients, in the order of the parameters, to add the gradients of other workers; after its error
// nothing has changed. A norm of the gradients that is not finite, which is known where they are
// clipped, is found by [Launched.Wait].
func (s *Stepper) Update(rate float64, reduce func(grads []kernels.Tensor) error) error {
	if reduce != nil {
		if err := reduce(s.grads); err != nil {
			return err
		}
	}
	if squares := s.Optim.Step(rate, s.Feed.void, s.learnt...); squares.Buf != nil {
		s.now.squares = s.Feed.Fetch(squares)
	}
	return nil
}

// Rehearse takes a batch forwards and backwards and leaves the weights and slots as they are and
// the gradients zero: so that the memory of a step is there, and known. A batch without seeds takes
// none.
func (s *Stepper) Rehearse(in Input) error {
	s.Feed.turn()
	if !in.computes() {
		return nil
	}
	var tally func() Tally
	if err := s.forward(in, &tally); err != nil {
		return err
	}
	s.store(in, false)
	s.Tape.Backward()
	s.norms(in)
	for _, g := range s.grads {
		s.be.Fill(g, 0)
	}
	s.be.Mark()()
	s.be.UploadU32(s.Feed.void, []uint32{0})
	s.Tape.Reset(false) // the next step uses its memory again
	return nil
}

// Predict computes the rows of a batch's seeds, by type, with dropout if in has a Key. A batch
// with fewer layers than the network goes through the first layers only.
func (s *Stepper) Predict(in Input) model.Rows {
	s.Tape.Reset(false)
	return s.Model.Forward(s.Tape, s.leaves(in.Rows), s.graphs(in, false), model.Pass{Key: in.Key})
}

func (s *Stepper) leaves(rows []kernels.Tensor) model.Rows {
	s.rows = s.rows[:0]
	for n, x := range rows[:min(len(rows), len(s.Model.In))] {
		var leaf *tape.Var
		if x.Buf != nil {
			leaf = s.Leaf(n, x)
		}
		s.rows = append(s.rows, leaf)
	}
	return s.rows
}

// Leaf has rows of type n's inputs be read by the network, until the tape's next Reset.
func (s *Stepper) Leaf(n int, rows kernels.Tensor) *tape.Var {
	if dim := s.Model.LearntDim(n); dim > 0 {
		return s.Tape.LearntLeaf(rows, dim)
	}
	return s.Tape.Leaf(rows)
}

// Close frees the network, the optimizer and the memory of steps.
func (s *Stepper) Close() {
	s.history.free(s.Feed)
	s.Feed.Close()
	s.Tape.Close()
	s.closeOptim()
	s.Model.Close()
}

func (s *Stepper) closeOptim() {
	if s.Optim != nil {
		s.Optim.Close()
		s.Optim = nil // before another one may fail
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
