package stream

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal/staleness"
)

// A checkpoint at the end of an epoch has no state of nodes, since the next epoch begins with none.
// A checkpoint within an epoch, or before its validation, names the files that hold the records as
// of then. It also holds a cachetier.Undo for each of the last steps whose writes are not to be
// seen yet.

// Keys and names in a checkpoint. Package run has others.
const (
	progressKey = "gnnstore.stream_progress"
	undoPrefix  = "state.undo."
)

// progress is the progress of a run between two steps.
type progress struct {
	*run.Progress
	State marks             `json:"state"`
	Stale staleness.Counted `json:"stale"` // counts of reads that were out of date
	// Audited sums up the audits of blended memories so far.
	Audited run.MitigationSums `json:"audited,omitzero"`
}

// marks describes the state of nodes in this checkpoint and in the ones before it.
type marks struct {
	Kept []mutable.Mark `json:"kept"` // of the checkpoints that have state, the oldest first
	Has  bool           `json:"has"`  // this checkpoint has state: the last of Kept
	Ago  []int          `json:"ago"`  // Undo.Ago of each Undo
}

// Parts implements run.Workload.
func (t *trainer) Parts(at *run.Progress) (checkpoint.Parts, any) {
	p := &progress{Progress: at}
	return checkpoint.Parts{state{t, p}}, p
}

// state is the part of a checkpoint that has the state of nodes, if an epoch is under way.
type state struct {
	t  *trainer
	at *progress
}

func (p state) Save(s *checkpoint.State) error {
	if err := p.t.save(s); err != nil {
		return err
	}
	if p.t.mark.Has {
		s.Tensors = append(s.Tensors, p.t.audit.tensors()...)
	}
	p.at.State, p.at.Stale, p.at.Audited = p.t.mark, p.t.stale.Counted, p.t.audit.sums
	return nil
}

func (p state) Check(s *checkpoint.State) error {
	if p.t.tables.state != nil && p.at.Partial.Steps > 0 && (!p.at.State.Has || len(p.at.State.Kept) == 0) {
		return fmt.Errorf("it is of step %d of an epoch, and has no state of nodes", p.at.Partial.Steps)
	}
	if _, err := p.t.undos(s.Tensors, p.at.State.Ago); err != nil || p.t.MitigateAudit == 0 {
		return err
	}
	return p.goOn(new(audit), s)
}

// goOn has an audit take over what the checkpoint has of it.
func (p state) goOn(a *audit, s *checkpoint.State) error {
	return a.goOn(s.Tensors, p.at.Partial.Steps, p.t.lag, p.t.Hidden, int(p.t.events.Places()))
}

// Load takes over the description of the state, and Restore applies it to the table.
func (p state) Load(s *checkpoint.State) (err error) {
	at := p.at
	if p.t.undone, err = p.t.undos(s.Tensors, at.State.Ago); err == nil && p.t.MitigateAudit > 0 {
		err = p.goOn(&p.t.audit, s)
	}
	p.t.mark, p.t.stale.Counted, p.t.audit.sums = at.State, at.Stale, at.Audited
	p.t.before = before{tables: at.SoFar.TableStats(), stages: at.SoFar.Stages, evaluated: at.SoFar.Evaluation.Disk}
	if s := at.SoFar.Stream.State; s != nil {
		p.t.before.written = s.BytesWritten
	}
	return err
}

// savedState is the state of nodes in the checkpoints of a run. It implements the methods of
// run.Workload that follow a checkpoint.
type savedState struct {
	*core
	mark   marks            // of the newest checkpoint
	undone []cachetier.Undo // of the checkpoint that was loaded; Restore takes them
}

// save makes the state of an epoch under way durable, and sets p.mark for a checkpoint made now.
func (p *savedState) save(s *checkpoint.State) error {
	updates := int64(p.Updates())
	p.mark.Has, p.mark.Ago = false, nil
	p.mark.Kept = slices.DeleteFunc(p.mark.Kept, func(m mutable.Mark) bool { return m.Step == updates })
	if p.Partial.Steps == 0 || p.tables.state == nil {
		return nil
	}
	for i, u := range p.tables.state.Undos() {
		p.mark.Ago = append(p.mark.Ago, u.Ago)
		s.Tensors = append(s.Tensors, undoTensor(undoPrefix+strconv.Itoa(i), u))
	}
	mark, err := p.tables.state.Checkpoint(updates)
	if err == nil {
		p.mark.Has, p.mark.Kept = true, append(p.mark.Kept, mark)
	}
	return err
}

// Retain implements run.Workload.
func (p *savedState) Retain(ctx context.Context) error {
	if p.tables.state == nil {
		return nil
	}
	names, err := p.Dir.Checkpoints()
	if err != nil {
		return err
	}
	p.mark.Kept = slices.DeleteFunc(p.mark.Kept, func(m mutable.Mark) bool { return !slices.Contains(names, run.CheckpointName(int(m.Step))) })
	var steps []int64
	for _, m := range p.mark.Kept {
		steps = append(steps, m.Step)
	}
	return p.tables.state.Retain(context.WithoutCancel(ctx), steps...) // the checkpoint is on record already
}

// Resumed implements run.Workload.
func (p *savedState) Resumed(ctx context.Context, _ []string) error { return p.Retain(ctx) }

// Restore implements run.Workload.
func (p *savedState) Restore(ctx context.Context) (err error) {
	table := p.tables.state
	if table == nil {
		return nil
	}
	if n := len(p.mark.Kept); n == 0 {
		err = table.Begin(ctx)
	} else { // even if !Has: Begin would remove the state of older checkpoints
		err = table.Resume(ctx, p.mark.Kept[n-1])
	}
	if err != nil {
		return err
	}
	table.Undone(p.undone)
	p.undone = nil
	return nil
}

// Hash implements run.Workload.
func (t *trainer) Hash(_ context.Context, failed error) (string, error) {
	return t.step.Model.Hash(), failed
}

// undoTensor encodes an Undo as a tensor. Each row has the number of a record and the record's
// bytes, as the bits of float32.
func undoTensor(name string, u cachetier.Undo) checkpoint.Tensor {
	cols := len(u.Were) / 4 / max(len(u.Rows), 1)
	x := checkpoint.Tensor{Name: name, Shape: []int{len(u.Rows), 1 + cols}}
	for i, v := range u.Rows {
		x.Data = append(x.Data, math.Float32frombits(v))
		for c := range cols {
			x.Data = append(x.Data, math.Float32frombits(binary.LittleEndian.Uint32(u.Were[4*(i*cols+c):])))
		}
	}
	return x
}

// undoOf decodes a tensor of undoTensor. It returns an error if the tensor does not fit the table.
func undoOf(x checkpoint.Tensor, ago, cols, places int) (u cachetier.Undo, err error) {
	if len(x.Shape) != 2 || x.Shape[1] != 1+cols && x.Shape[0] > 0 || ago < 1 {
		return u, fmt.Errorf("%s is no state of nodes with records of %d columns", x.Name, cols)
	}
	u.Ago = ago
	for i := range x.Shape[0] {
		row := x.Data[i*(1+cols):][:1+cols]
		v := math.Float32bits(row[0])
		if int64(v) >= int64(places) {
			return u, fmt.Errorf("%s has node %d of %d", x.Name, v, places)
		}
		u.Rows = append(u.Rows, v)
		for _, f := range row[1:] {
			u.Were = binary.LittleEndian.AppendUint32(u.Were, math.Float32bits(f))
		}
	}
	return u, nil
}

// undos reads the undos of a checkpoint from its tensors.
func (p *savedState) undos(tensors []checkpoint.Tensor, ago []int) (all []cachetier.Undo, err error) {
	for i, n := range ago {
		name := undoPrefix + strconv.Itoa(i)
		at := slices.IndexFunc(tensors, func(x checkpoint.Tensor) bool { return x.Name == name })
		if at < 0 || p.tables.state == nil {
			return nil, fmt.Errorf("it has no %s: damaged", name)
		}
		u, err := undoOf(tensors[at], n, p.step.Record.Cols(), int(p.events.Places()))
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}
