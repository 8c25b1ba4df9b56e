package step

import (
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Held connects a step to historical embeddings. The step reads rows of hidden layers that earlier
// steps computed, measures the gradient of each row, and stores rows for later steps. The
// sample.Frontier.Origin of a batch names the rows that it reads from slots.
//
// Layer l computes rows, from 0 to the last but one, and layer l+1 reads them.
type Held struct {
	// Slots[l][t] is the table of rows of type t: F16, of as many columns as a hidden layer or
	// more. Origins name its rows. It is the caller's.
	Slots [][]kernels.Tensor
	// Store lists the rows that Compute stores, after the step has read the slots.
	Store []Store

	// Norms is set by the step. Norms[l][t] has, for each node of sample.Batch.Live(l+1, t), the
	// Euclidean norm of the gradient of the batch's loss, a mean, in the row that layer l+1 reads.
	// It is there once [Launched.Wait] has returned, valid until the step after next, and after an
	// error has no meaning.
	Norms [][][]float32

	lost []uint32 // of all of Store, one behind the other
}

// Store names rows of one layer and type that go to slots.
type Store struct {
	Layer, Type int
	Rows        []uint32 // of those that the layer computed: the n-th of its sample.Frontier.Src
	To          []uint32 // the slot of each; they differ from each other
	// Lost is set by the step, as Norms is: 1 for each row that float16 cannot hold, else 0. A
	// value was NaN, or beyond 65504 and clamped to it.
	Lost []uint32
}

// history is the memory of steps that have a Held.
type history struct {
	kept   model.Kept
	norms  kernels.Buffer // F32
	stored kernels.Buffer // U32: Rows, To and Lost of what is stored, one behind the other
	lists  [][]uint32
}

// kept returns where Forward keeps hidden rows for in; nil: it keeps none.
func (s *Stepper) kept(in Input) *model.Kept {
	if in.Held != nil && in.Kept == nil {
		return &s.history.kept
	}
	return in.Kept
}

// pass returns the options of Forward for in.
func (s *Stepper) pass(in Input) model.Pass {
	p := model.Pass{Key: in.Key, Kept: s.kept(in)}
	if in.Held != nil {
		p.Slots = in.Held.Slots
	}
	return p
}

// norms fetches the norms of the gradients of in's hidden rows, once Backward has run.
func (s *Stepper) norms(in Input) {
	h := in.Held
	if h == nil {
		return
	}
	hidden := s.kept(in).Hidden
	n := 0
	for _, rows := range hidden {
		for _, v := range rows {
			if v != nil {
				n += v.Value.Rows
			}
		}
	}
	m := &s.history
	s.Feed.grow(&m.norms, kernels.F32, n)
	all := kernels.Tensor{Buf: m.norms, Type: kernels.F32, Rows: n, Cols: 1}
	n = 0
	for _, rows := range hidden {
		for _, v := range rows {
			if v != nil {
				end := n + v.Value.Rows
				s.be.RowNorms(all.Slice(n, end), s.Tape.Gradient(v))
				n = end
			}
		}
	}
	host := s.Feed.Fetch(all)
	n = 0
	h.Norms = resize(h.Norms, len(hidden))
	for l, rows := range hidden {
		h.Norms[l] = resize(h.Norms[l], len(rows))
		for t, v := range rows {
			h.Norms[l][t] = nil
			if v != nil {
				end := n + v.Value.Rows
				h.Norms[l][t] = host[n:end:end]
				n = end
			}
		}
	}
}

// store makes room for the rows of in to store and, if write, stores them: before Backward, which
// uses the rows' memory for gradients, and after the step has read the slots.
func (s *Stepper) store(in Input, write bool) {
	h := in.Held
	if h == nil {
		return
	}
	computed := s.kept(in).Computed
	m, n := &s.history, 0
	m.lists = m.lists[:0]
	for i := range h.Store {
		m.lists = append(m.lists, h.Store[i].Rows)
		n += len(h.Store[i].Rows)
	}
	for i := range h.Store {
		m.lists = append(m.lists, h.Store[i].To)
	}
	s.Feed.grow(&m.stored, kernels.U32, 3*n)
	if !write {
		return
	}
	all := kernels.Tensor{Buf: m.stored, Type: kernels.U32, Rows: 3 * n, Cols: 1}
	rows, to, lost := all.Slice(0, n), all.Slice(n, 2*n), all.Slice(2*n, 3*n)
	s.Feed.staging.JoinU32(all.Slice(0, 2*n), m.lists...)
	n = 0
	for i := range h.Store {
		c := &h.Store[i]
		end := n + len(c.Rows)
		if end > n {
			x, slots := computed[c.Layer][c.Type].Value, h.Slots[c.Layer][c.Type]
			s.be.StoreRows(slots, lost.Slice(n, end), x, rows.Slice(n, end), to.Slice(n, end), s.Feed.void)
		}
		n = end
	}
	h.lost = s.Feed.fetchInts(lost)
}

// split sets Lost of each of h.Store.
func (h *Held) split() {
	if h == nil {
		return
	}
	n := 0
	for i := range h.Store {
		c := &h.Store[i]
		c.Lost = append(c.Lost[:0], h.lost[n:n+len(c.Rows)]...)
		n += len(c.Rows)
	}
}

func (m *history) free(f *Feed) {
	kernels.FreeBuffers(f.be, &m.norms, &m.stored)
}

// resize returns s with n elements. Elements that s had stay.
func resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	return append(s[:cap(s)], make([]T, n-cap(s))...)
}

// origins lists the places of the rows of a frontier's sources, as model.Frontier has them.
// computed is the number of rows that the layer below computes. Both lists are empty where the
// sources are these rows, in their order. They are valid until the next Blocks.
func (f *Feed) origins(nodes *sample.Frontier, computed int) (at, back []uint32) {
	if inOrder(nodes.Origin, computed) {
		return nil, nil
	}
	n := len(f.places)
	f.places = resize(f.places, n+len(nodes.Origin)+computed)
	at, back = f.places[n:n+len(nodes.Origin)], f.places[n+len(nodes.Origin):]
	const none = ^uint32(0)
	for i := range back {
		back[i] = none
	}
	asked := 0
	for i, o := range nodes.Origin {
		at[i] = o.Index
		switch o.From {
		case sample.Slot:
			if o.Index >= kernels.InSlot {
				panic("step: a source has its row from a slot beyond those that tables may have")
			}
			at[i] |= kernels.InSlot
		case sample.Below:
			if back[o.Index] != none {
				panic("step: two sources have their row from the same destination of the layer below")
			}
			back[o.Index] = uint32(i)
			asked++
		default:
			panic("step: a source has its row from a worker, and there is one process")
		}
	}
	if asked < computed {
		panic("step: a destination of the layer below is no source's row")
	}
	return at, back
}

// inOrder reports whether source n has row n of rows, for all n. It is true without origins.
func inOrder(origins []sample.Origin, rows int) bool {
	for i, o := range origins {
		if o.From != sample.Below || int(o.Index) != i {
			return false
		}
	}
	return len(origins) == 0 || len(origins) == rows
}
