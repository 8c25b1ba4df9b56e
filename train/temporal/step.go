package temporal

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Stepper takes steps with a network for streams. [Stepper.Launch] makes of a batch the new state
// of its nodes, then scores, a loss and gradients; [Stepper.Update] makes new weights of these;
// [Stepper.Wait] returns the scores and the loss. [Stepper.Compute] is Launch and Wait. Steps of a
// stream go in its order, whatever their state is: which updates it has is the caller's business.
//
// Memory: a Stepper owns buffers of the backend, and lists on the host, that grow to the largest
// batch and stay until Close: at steady state a step allocates nothing that grows with the batch.
// Inputs stay the caller's. One goroutine at a time.
type Stepper struct {
	Model  *model.Temporal
	Optim  *optim.Optimizer
	Tape   *tape.Tape
	Record Record // what State has of each node
	// Keep is the weight of its own in a memory that is blended: see Blend and Batch.Blended. 0 and
	// 1 leave memories as they are.
	Keep float64
	// Remember makes Blended return the memories from before blending.
	Remember bool

	grads    []kernels.Tensor // of the parameters, in their order
	feed     feed
	writer   writer
	void     kernels.Tensor // flag: the loss, or the norm of the gradients, is not finite
	embedded []float32      // of the last Embed

	// Fetched of the last batch: scores and losses of events and of negatives, and squares of
	// norms.
	there, others, lossThere, lossOthers, squares []float32
	updates                                       int // before it
}

// Input is a batch whose state and features are there.
type Input struct {
	*Batch
	// State has the Record of each of Batch.Nodes, F32. A network without state reads none.
	State kernels.Tensor
	// Times has the bytes of each record that Record.Times places, if the caller has them on the
	// host. Without them they are read from State, which waits for the backend where its memory is
	// its own.
	Times []byte
	// Features has the features of each of Batch.Events, F32 or F16, in the network's number of
	// columns. Without features it is the zero Tensor.
	Features kernels.Tensor
	// NodeFeatures has likewise the features of each of Batch.Nodes. A batch without roots may
	// leave them out.
	NodeFeatures kernels.Tensor
	// Key seeds dropout, another one each step. 0 is evaluation: nothing is dropped, and there are
	// no gradients.
	Key uint64
	// Publish, where it is not nil, gets the changes of the state as soon as they are known, before
	// the batch is scored: changes, one behind the other, of the records of nodes that are at these
	// places among Batch.Nodes. Record.Apply applies them to the newest records. They are lent
	// until the next Compute. Its error ends the step. Publish is not called without state, nor
	// with state that is not finite, which ends the step with a *StateError.
	Publish func(places []uint32, changes []byte) error
}

// Out is the result of a batch. The scores are lent until the next Launch.
type Out struct {
	Loss      float64   // the mean over events plus the mean over negatives, of -log σ(score) and -log(1-σ(score)) (arXiv 2203.14883, TGL)
	Positives []float32 // a score for each event
	Negatives []float32 // and Batch.Each for it, one behind the other
}

// StateError is new state of a node that is no number. None of the step's was published: later
// steps, and checkpoints, would have it for good.
type StateError struct {
	Node  int // its place among Batch.Nodes
	Value float32
}

func (e *StateError) Error() string { return fmt.Sprintf("the state of a node became %v", e.Value) }

// NewStepper makes a Stepper of m, which it owns from now on, though there be no memory for an
// optimizer.
func NewStepper(be kernels.Backend, m *model.Temporal, o optim.Options) *Stepper {
	s := newStepper(be, m)
	defer func() {
		if s.Optim == nil {
			s.Close()
		}
	}()
	var params []optim.Param
	for _, p := range m.Params {
		params = append(params, optim.Param{Name: p.Name, Shape: p.Shape, Value: p.Value, Grad: p.Grad})
		s.grads = append(s.grads, p.Grad)
	}
	s.Optim = optim.New(be, params, o)
	return s
}

// NewFixedStepper makes a Stepper of m, which it owns from now on, that evaluates and takes no
// steps: m needs no gradients, as model.NewFixedTemporal makes it.
func NewFixedStepper(be kernels.Backend, m *model.Temporal) *Stepper {
	s := newStepper(be, m)
	s.Optim = optim.New(be, nil, optim.Options{})
	return s
}

func newStepper(be kernels.Backend, m *model.Temporal) *Stepper {
	r, staging := RecordOf(m.TemporalConfig, m.TemporalShape), kernels.NewStaging(be)
	frugal := tape.New(be)
	frugal.Frugal = true // what is read of a batch is read before it is gone back through
	return &Stepper{
		Model: m, Tape: frugal, Record: r,
		feed:   feed{be: be, staging: staging, kind: m.Kind, record: r},
		writer: writer{be: be, record: r},
		void:   kernels.NewTensor(be, kernels.U32, 1, 1),
	}
}

// Compute is Launch and Wait.
func (s *Stepper) Compute(in Input) (Out, error) {
	if err := s.Launch(in); err != nil {
		return Out{}, err
	}
	return s.Wait()
}

// Launch adds the gradients of a batch's loss to the parameters' gradients, which are zero before
// the first step and after each Update. In evaluation it adds nothing. It waits for the backend
// only where state is published. A batch without roots ends there.
func (s *Stepper) Launch(in Input) error {
	s.updates = s.Optim.Steps()
	for _, x := range []*[]float32{&s.there, &s.others, &s.lossThere, &s.lossOthers, &s.squares} {
		*x = (*x)[:0]
	}
	z, err := s.embed(in)
	if z == nil || err != nil {
		return err
	}
	f := &s.feed
	there, others := s.Model.ScorePast(s.Tape, z, f.src, f.dst, f.past), s.Model.ScorePast(s.Tape, z, f.sources, f.negatives, f.negativesPast)
	lossThere, lossOthers := s.Tape.LinkLoss(there, others)
	f.be.CheckFinite(s.void, lossThere)
	f.be.CheckFinite(s.void, lossOthers)
	s.lossThere, s.lossOthers = s.fetch(s.lossThere, lossThere), s.fetch(s.lossOthers, lossOthers)
	s.there, s.others = s.fetch(s.there, there.Value), s.fetch(s.others, others.Value)
	if in.Key != 0 {
		s.Tape.Backward()
	}
	return nil
}

// Wait waits for what the last Launch began, with its Update if there was one, and returns its
// result. A loss that is not finite is a *step.LossError, and a norm of the gradients, which is
// known where they are clipped, a *step.NormError: the weights are as they were, and the state is
// published.
func (s *Stepper) Wait() (Out, error) {
	if len(s.lossThere)+len(s.lossOthers)+len(s.squares) == 0 {
		return Out{}, nil
	}
	s.feed.be.Mark()()
	out := Out{Loss: mean(s.lossThere) + mean(s.lossOthers), Positives: s.there, Negatives: s.others}
	var err error
	if !finite(out.Loss) {
		err = &step.LossError{Loss: out.Loss}
	} else if norm := kernels.ClipNorm(s.squares); !finite(norm) {
		err = &step.NormError{Norm: norm}
	}
	if err != nil {
		s.Optim.Rewind(s.updates)
		s.feed.be.UploadU32(s.void, []uint32{0})
	}
	return out, err
}

// Embed is Compute up to the embeddings of Batch.Roots: Hidden numbers each, lent until the next
// Embed.
func (s *Stepper) Embed(in Input) ([]float32, error) {
	z, err := s.embed(in)
	if z == nil || err != nil {
		return nil, err
	}
	s.embedded = s.fetch(s.embedded, z.Value)
	s.feed.be.Mark()()
	return s.embedded, nil
}

// embed publishes the new state, and embeds the roots; without roots it is nil.
func (s *Stepper) embed(in Input) (*tape.Var, error) {
	s.Tape.Reset(in.Key != 0)
	f := &s.feed
	f.keep, f.remember = s.Keep, s.Remember
	if err := f.take(in); err != nil {
		return nil, err
	}
	memory := s.Model.Update(s.Tape, &f.moments, in.Key)
	if memory != nil {
		s.writer.write(f, in, memory.Value)
		if in.Publish != nil {
			if err := s.finiteState(); err != nil {
				return nil, err
			}
			if err := in.Publish(s.Changes()); err != nil {
				return nil, err
			}
		}
	}
	if len(in.Roots) == 0 {
		return nil, nil
	}
	return s.Model.Embed(s.Tape, &f.moments, memory, in.Key), nil
}

// finiteState looks at what the step makes of the state.
func (s *Stepper) finiteState() error {
	places, changes := s.Changes()
	n, numbers := s.Record.ChangeBytes(), 4*s.Record.changedNumbers()
	for i, place := range places {
		change := changes[i*n:][:numbers]
		odd := uint32(0)
		for at := 0; at < len(change); at += 4 { // an exponent of ones, as NaN and infinities have it, carries into the sign
			odd |= binary.LittleEndian.Uint32(change[at:])&exponent + 1<<23
		}
		if odd>>31 == 0 {
			continue
		}
		for at := 0; at < len(change); at += 4 {
			if x := math.Float32frombits(binary.LittleEndian.Uint32(change[at:])); x-x != 0 {
				return &StateError{int(place), x}
			}
		}
	}
	return nil
}

// exponent is the bits of a float32's.
const exponent = 0xff << 23

// Changes returns the changes of the state by the last Compute or Embed: see Input.Publish. They
// are empty without state.
func (s *Stepper) Changes() (places []uint32, changes []byte) { return s.feed.places, s.writer.changes }

// Blended returns the memories of Batch.Blended in the last Compute or Embed: as in the state, and
// as used, one behind the other. It needs Remember, and is empty if nothing was blended. Both are
// lent until the next call.
func (s *Stepper) Blended() (were, are []float32) {
	if !s.Remember {
		return nil, nil
	}
	return s.feed.unblended, s.feed.blended
}

// Update makes new weights of the gradients at a learning rate, and clears these. If reduce is not
// nil, it is given the gradients before, in the order of the parameters, to add the gradients of
// other workers.
func (s *Stepper) Update(rate float64, reduce func(grads []kernels.Tensor) error) error {
	if reduce != nil {
		if err := reduce(s.grads); err != nil {
			return err
		}
	}
	s.updates = s.Optim.Steps()
	if squares := s.Optim.Step(rate, s.void); squares.Buf != nil {
		s.squares = s.fetch(s.squares, squares)
	}
	return nil
}

// Rehearse takes a batch, which has a Key, forwards and backwards, publishes nothing, and leaves
// the weights as they are and the gradients zero: so that the memory of a step is there, and known.
func (s *Stepper) Rehearse(in Input) error {
	in.Publish = nil
	_, err := s.Compute(in)
	for _, p := range s.Model.Params {
		if p.Grad.Buf != nil {
			s.feed.be.Fill(p.Grad, 0)
		}
	}
	s.Tape.Reset(false) // the next step uses its memory again
	return err
}

// TellApart gives the network identity columns in place of features: random numbers by node id, the
// same wherever the node appears. They are computed for each batch. Inputs then have no
// NodeFeatures.
func (s *Stepper) TellApart(ids IDs) { s.feed.ids, s.feed.columns = ids, s.Model.Node }

// Close frees the network, the optimizer and the memory of steps.
func (s *Stepper) Close() {
	s.writer.close()
	s.feed.close()
	kernels.FreeTensors(s.feed.be, s.void)
	s.Tape.Close()
	if s.Optim != nil {
		s.Optim.Close()
	}
	s.Model.Close()
}

// mean returns the mean of numbers, 0 of none.
func mean(of []float32) float64 { return step.Sum(of) / float64(max(1, len(of))) }

// fetch begins to copy a table to the host, in the memory of into where it is enough.
func (s *Stepper) fetch(into []float32, table kernels.Tensor) []float32 {
	into = append(into[:0], make([]float32, table.Len())...)
	s.feed.be.FetchF32(into, table)
	return into
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
