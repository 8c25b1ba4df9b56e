package stream

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// audit compares the memories that steps blend with fresh ones, which the step would read if it saw
// the state after all earlier steps. It keeps the memories that the last steps wrote, as many steps
// as the staleness hides. So it reads no table and changes no count of the run.
type audit struct {
	recent []recent // the oldest first
	spare  []recent
	// blind counts the next steps whose hidden writes are unknown, after a resume from a checkpoint
	// without them.
	blind int
	sums  run.MitigationSums // of all that was compared
}

// recent is the memories that one step wrote.
type recent struct {
	places   []uint32
	memories []byte // in the order of places, encoded as in records
}

// begin starts an epoch, whose first step sees everything.
func (a *audit) begin() {
	a.spare, a.recent, a.blind = append(a.spare, a.recent...), nil, 0
}

// look compares up to most of the memories that a step blended, and adds them to a.sums. Call it
// once for each step, in order. It notes the memories that the step wrote, for the next lag-1
// steps.
func (a *audit) look(in temporal.Input, s *temporal.Stepper, lag, most int) {
	were, are := s.Blended()
	if a.blind > 0 {
		a.blind--
	} else if n := len(in.Blended); n > 0 && len(were) > 0 {
		cols, fresh := len(were)/n, []float32(nil)
		for j := range min(most, n) {
			i := j * n / min(most, n) // spread evenly over all n
			was, is := were[i*cols:][:cols], are[i*cols:][:cols]
			newer := a.newest(in.Nodes[in.RowNode[in.Blended[i]]], 4*cols)
			if newer == nil {
				a.sums.Add(is, was, was, false)
				continue
			}
			fresh = fresh[:0]
			for at := 0; at < len(newer); at += 4 {
				fresh = append(fresh, math.Float32frombits(binary.LittleEndian.Uint32(newer[at:])))
			}
			a.sums.Add(is, was, fresh, true)
		}
	}
	if lag == 1 {
		return
	}
	a.note(in, s)
	for len(a.recent) > lag-1 {
		a.spare, a.recent = append(a.spare, a.recent[0]), slices.Delete(a.recent, 0, 1)
	}
}

// newest returns the newest memory that recent steps wrote of the node at place, or nil.
func (a *audit) newest(place uint32, bytes int) []byte {
	for _, r := range slices.Backward(a.recent) {
		if i := slices.Index(r.places, place); i >= 0 {
			return r.memories[i*bytes:][:bytes]
		}
	}
	return nil
}

// note keeps the memories that a step wrote.
func (a *audit) note(in temporal.Input, s *temporal.Stepper) {
	var r recent
	if n := len(a.spare); n > 0 {
		r, a.spare = a.spare[n-1], a.spare[:n-1]
	}
	r.places, r.memories = r.places[:0], r.memories[:0]
	places, changes := s.Changes()
	n := s.Record.ChangeBytes()
	for i, place := range places {
		if memory, ok := s.Record.ChangedMemory(changes[i*n:][:n]); ok {
			r.places, r.memories = append(r.places, in.Nodes[place]), append(r.memories, memory...)
		}
	}
	a.recent = append(a.recent, r)
}

// auditBytes is the memory of an audit for this many steps, with writes changed records each.
func auditBytes(steps, writes, hidden int) int64 {
	return int64(steps) * int64(writes) * int64(4*hidden+4)
}

// recentPrefix begins the names of an audit's tensors in checkpoints.
const recentPrefix = "mitigate.recent."

// tensors returns what a checkpoint needs for a run that goes on in the middle of an epoch.
func (a *audit) tensors() (all []checkpoint.Tensor) {
	for i, r := range a.recent {
		all = append(all, undoTensor(recentPrefix+strconv.Itoa(i), cachetier.Undo{Rows: r.places, Were: r.memories}))
	}
	return all
}

// goOn takes over the steps that a checkpoint has, made after steps steps of an epoch. If it has
// fewer than lag-1 steps hide, nothing is compared until enough steps are known again.
func (a *audit) goOn(tensors []checkpoint.Tensor, steps, lag, hidden, places int) error {
	a.begin()
	want := min(steps, lag-1)
	for i := range want {
		name := recentPrefix + strconv.Itoa(i)
		at := slices.IndexFunc(tensors, func(x checkpoint.Tensor) bool { return x.Name == name })
		if at < 0 {
			a.recent, a.blind = nil, want
			return nil
		}
		u, err := undoOf(tensors[at], 1, hidden, places)
		if err != nil {
			return fmt.Errorf("audit of blended memories: %w", err)
		}
		a.recent = append(a.recent, recent{u.Rows, u.Were})
	}
	return nil
}
