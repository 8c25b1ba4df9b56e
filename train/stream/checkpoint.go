package stream

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
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

// A checkpoint after a whole epoch has no state, since the next one begins without. One within an
// epoch, and the one before its validation, names the files of records as of then, and has what
// later steps must not see yet of the last ones.

// What a checkpoint holds beside run.Result.Meta.
const (
	progressKey = "gnnstore.stream_progress"
	bestPrefix  = "best."
	undoPrefix  = "state.undo."
)

// progress is where a run stands between two steps.
type progress struct {
	run.Progress
	State marks             `json:"state"`
	Stale staleness.Counted `json:"stale"` // what was read out of date
	// Audited sums up the audits of blended memories so far.
	Audited run.MitigationSums `json:"audited,omitzero"`
}

// marks are the state of nodes in checkpoints.
type marks struct {
	Kept []mutable.Mark `json:"kept"` // of those that have state, the oldest first
	Has  bool           `json:"has"`  // the last one is of this checkpoint
	Ago  []int          `json:"ago"`  // of each Undo
}

// saveCheckpoint writes all that resuming needs, with the state of nodes where the epoch is under
// way.
func (t *trainer) saveCheckpoint(state bool) error {
	if err := t.set.Unchanged(); err != nil {
		return err
	}
	t.collect()
	updates := t.step.Optim.Steps()
	s := &checkpoint.State{Tensors: t.step.Model.Download(), Meta: t.result.Meta(updates)}
	if err := t.dir.CheckWeights(s.Tensors, updates); err != nil {
		return err
	}
	s.Tensors = append(s.Tensors, t.step.Optim.State()...)
	for _, w := range t.best {
		w.Name = bestPrefix + w.Name
		s.Tensors = append(s.Tensors, w)
	}
	t.mark.Has, t.mark.Ago = false, nil
	t.mark.Kept = slices.DeleteFunc(t.mark.Kept, func(m mutable.Mark) bool { return m.Step == int64(updates) })
	if state && t.tables.state != nil {
		undos := t.tables.state.Undos()
		for i, u := range undos {
			t.mark.Ago = append(t.mark.Ago, u.Ago)
			s.Tensors = append(s.Tensors, undoTensor(undoPrefix+strconv.Itoa(i), u))
		}
		mark, err := t.tables.state.Checkpoint(int64(updates))
		if err != nil {
			return err
		}
		t.mark.Has, t.mark.Kept = true, append(t.mark.Kept, mark)
		s.Tensors = append(s.Tensors, t.audit.tensors()...)
	}
	at, err := t.dir.SyncProgress(updates, t.partial, t.ends.Worse, t.best != nil, t.result)
	if err != nil {
		return err
	}
	for key, v := range map[string]any{progressKey: progress{at, t.mark, t.stale.Counted, t.audited}, run.RecordKey: t.record} {
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		s.Meta[key] = string(text)
	}
	t.saved = updates
	if err := t.dir.AddCheckpoint(updates, s.Tensors, s.Meta, t.KeepCheckpoints); err != nil || t.tables.state == nil {
		return err
	}
	return t.retain()
}

// retain lets go of the state of checkpoints that are not on record any more.
func (t *trainer) retain() error {
	names, err := t.dir.Checkpoints()
	if err != nil {
		return err
	}
	t.mark.Kept = slices.DeleteFunc(t.mark.Kept, func(m mutable.Mark) bool { return !slices.Contains(names, run.CheckpointName(int(m.Step))) })
	var steps []int64
	for _, m := range t.mark.Kept {
		steps = append(steps, m.Step)
	}
	return t.tables.state.Retain(context.Background(), steps...)
}

// checkpointNow writes a checkpoint unless the newest one is of this very step, or a step has
// changed the state and not the weights.
func (t *trainer) checkpointNow() error {
	switch {
	case t.torn:
		return errors.New("a step is half done")
	case t.saved == t.step.Optim.Steps():
		return nil
	}
	return t.saveCheckpoint(t.partial.Steps > 0)
}

// undoTensor has an Undo in a file of tensors: a row each, its number and then its record, as bits.
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

// undoOf is the other way round.
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

// resume continues where the newest checkpoint that can be read left off: see run.Dir.Resume. Where
// there is no checkpoint, the run starts at step 0.
func (t *trainer) resume(ctx context.Context) error {
	left, err := t.dir.Resume(t.KeepCheckpoints, t.note, func(s *checkpoint.State) error { return t.load(ctx, s.Tensors, s.Meta) })
	switch {
	case err != nil:
		return err
	case len(left) == 0:
		return t.startOver(ctx)
	case t.tables.state != nil:
		return t.retain()
	}
	return nil
}

// startOver is for a run that was cut short before its first checkpoint.
func (t *trainer) startOver(ctx context.Context) error {
	if init := t.record.Options.Init; init != "" {
		if err := t.startFrom(init); err != nil {
			return err
		}
	}
	if _, err := t.dir.CutMetrics(0, ""); err != nil || t.tables.state == nil {
		return err
	}
	return t.tables.state.Begin(ctx)
}

// load goes on from a checkpoint. Nothing is changed on disk where it does not fit the run.
func (t *trainer) load(ctx context.Context, tensors []checkpoint.Tensor, meta map[string]string) error {
	var at progress
	if err := json.Unmarshal([]byte(meta[progressKey]), &at); err != nil {
		return fmt.Errorf("no progress to resume from: %s: %w", progressKey, err)
	}
	saved, err := run.RecordIn(meta)
	if err == nil && saved == nil {
		err = fmt.Errorf("it has no options of the run")
	}
	if err != nil {
		return err
	}
	if err := t.result.CheckMeta(meta); err != nil {
		return err
	}
	switch differs := t.record.Options.Differs(saved.Options); {
	case differs != "":
		return fmt.Errorf("%s; remove whichever is not of this run", differs)
	case t.tables.state != nil && at.Partial.Steps > 0 && (!at.State.Has || len(at.State.Kept) == 0):
		return fmt.Errorf("it is of step %d of an epoch, and has no state of nodes", at.Partial.Steps)
	}
	if err := at.Valid(t.steps()); err != nil {
		return fmt.Errorf("no progress to resume from: %s: %w; remove the file to resume from the one before it", progressKey, err)
	}
	weights, err := t.step.Model.Find(tensors, "")
	if err != nil {
		return err
	}
	if at.HasBest {
		if t.best, err = t.step.Model.Find(tensors, bestPrefix); err != nil {
			return err
		}
	}
	undos, err := t.undos(tensors, at.State.Ago)
	if err == nil && t.MitigateAudit > 0 {
		err = t.audit.goOn(tensors, at.Partial.Steps, t.lag, t.Hidden, int(t.events.Places()))
	}
	if err == nil {
		err = t.step.Optim.Restore(at.Updates, tensors)
	}
	if err != nil {
		return err
	}
	t.step.Model.Upload(weights)
	result, err := t.dir.GoOn(&at.Progress, t.result)
	if err != nil {
		return err
	}
	if t.tables.state != nil {
		if n := len(at.State.Kept); n == 0 {
			err = t.tables.state.Begin(ctx)
		} else { // or an older checkpoint could not be gone on from any more
			err = t.tables.state.Resume(ctx, at.State.Kept[n-1])
		}
		if err != nil {
			return err
		}
		t.tables.state.Undone(undos)
	}
	t.result, t.saved, t.partial, t.ends.Worse, t.mark = result, at.Updates, at.Partial, at.Worse, at.State
	t.stale.Counted, t.audited = at.Stale, at.Audited
	t.before = counted{tables: at.SoFar.TableStats(), stages: at.SoFar.Stages, evaluated: at.SoFar.Evaluation.Disk}
	if s := at.SoFar.Stream.State; s != nil {
		t.before.written = s.BytesWritten
	}
	t.peak.Raise(at.SoFar.PeakRSSBytes, at.SoFar.PeakFileBytes)
	return nil
}

// undos reads the undos of a checkpoint from its tensors.
func (t *trainer) undos(tensors []checkpoint.Tensor, ago []int) (all []cachetier.Undo, err error) {
	for i, n := range ago {
		name := undoPrefix + strconv.Itoa(i)
		at := slices.IndexFunc(tensors, func(x checkpoint.Tensor) bool { return x.Name == name })
		if at < 0 || t.tables.state == nil {
			return nil, fmt.Errorf("it has no %s: damaged", name)
		}
		u, err := undoOf(tensors[at], n, t.step.Record.Cols(), int(t.events.Places()))
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// startFrom sets the weights from a file.
func (t *trainer) startFrom(path string) error {
	weights, err := run.InitialWeights(path, t.step.Model.Find)
	if err == nil {
		t.step.Model.Upload(weights)
	}
	return err
}
