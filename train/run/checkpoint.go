package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/gnnstore/gnnstore/train/checkpoint"
)

// Checkpoint writes a checkpoint, and removes all but the newest KeepCheckpoints. It returns an
// error if the dataset has changed during the run: then the last steps may have read rows that are
// in neither version. All workers call it, and worker 0 writes.
func (d *Driver) Checkpoint(ctx context.Context) error {
	if err := d.about.Dataset.Unchanged(); err != nil {
		return err
	}
	d.Collect()
	at := new(Progress)
	parts, progress := d.work.Parts(at)
	s, err := append(d.parts(at), parts...).Save()
	if err != nil {
		return err
	}
	if *at, err = d.Dir.syncProgress(d.Updates(), d.Partial, d.Ends.Worse, d.Best != nil, d.Result); err != nil {
		return err
	}
	if err := s.Put(d.about.Progress, progress); err != nil {
		return err
	}
	if d.Hooks.Group.Size() > 1 {
		if err := d.join(ctx, s); err != nil {
			return err
		}
		at.SoFar.Workers = d.Result.Workers // which join has set
		if err := s.Put(d.about.Progress, progress); err != nil {
			return err
		}
	}
	if d.follows() {
		// Worker 0 may not have this checkpoint yet, but it has the one before.
		err = d.Dir.keepHistory(d.Updates(), d.KeepCheckpoints+1)
	} else {
		err = d.Dir.AddCheckpoint(d.Updates(), s.Tensors, s.Meta, d.KeepCheckpoints)
	}
	if err != nil {
		return err
	}
	d.saved = d.Updates()
	return d.work.Retain(ctx)
}

// checkpointNow writes a checkpoint, unless the newest one is of the last step already.
func (d *Driver) checkpointNow(ctx context.Context) error {
	switch {
	case d.Torn:
		return errors.New("a step is half done")
	case d.saved == d.Updates():
		return nil
	case d.apart():
		return errors.New("a worker has failed, so its rows cannot be saved; resume from the newest checkpoint before")
	}
	d.work.AtRest()
	return d.Checkpoint(context.WithoutCancel(ctx))
}

// resume restores the run from the newest checkpoint that can be read: see Dir.Resume. If the run
// has no checkpoint, it starts at step 0.
func (d *Driver) resume(ctx context.Context) error {
	if d.follows() {
		return d.follow(ctx)
	}
	left, err := d.Dir.Resume(d.KeepCheckpoints, d.Note, func(s *checkpoint.State) error { return d.load(ctx, s) })
	switch {
	case err != nil:
		return err
	case len(left) == 0:
		if err := d.startOver(ctx); err != nil {
			return err
		}
		return d.lead(ctx, nil)
	}
	if err := d.work.Resumed(ctx, left); err != nil {
		return err
	}
	return d.lead(ctx, left)
}

// load restores the run from a checkpoint. If CheckProgress or a part refuses the checkpoint, load
// has changed nothing.
func (d *Driver) load(ctx context.Context, s *checkpoint.State) error {
	at := new(Progress)
	own := d.parts(at)
	parts, progress := d.work.Parts(at)
	if err := d.CheckProgress(s, progress, at); err != nil {
		return err
	}
	all := append(own, parts...)
	if err := all.Check(s); err != nil {
		return err
	}
	var r *Result
	var err error
	if d.follows() {
		r, err = d.resultFollowed(at)
	} else {
		r, err = d.Dir.resultSoFar(at, d.Result)
	}
	if err != nil {
		return err
	}
	d.Result, d.saved = r, at.Updates
	switch w := r.Workers; {
	case d.Hooks.Group.Size() == 1:
		r.Workers = nil // of an earlier part of the run
	case w != nil && w.Rank < len(w.WaitSeconds):
		d.waited = w.WaitSeconds[w.Rank]
		if w.Rank < len(w.SentBytes) {
			d.sent = w.SentBytes[w.Rank]
		}
	}
	d.bus.restore(r)
	d.Partial, d.Ends.Worse = at.Partial, at.Worse
	d.Peak.raise(at.SoFar.PeakRSSBytes, at.SoFar.PeakFileBytes)
	if err := all.Load(s); err != nil {
		return err
	}
	return d.work.Restore(ctx)
}

// CheckProgress reads the progress of a checkpoint into progress, which is at or embeds it. It
// refuses a checkpoint of another run, and impossible counts.
func (d *Driver) CheckProgress(s *checkpoint.State, progress any, at *Progress) error {
	if err := d.Result.checkMeta(s.Meta); err != nil {
		return err
	}
	key := d.about.Progress
	if err := json.Unmarshal([]byte(s.Meta[key]), progress); err != nil {
		return fmt.Errorf("no progress to resume from: %s: %w", key, err)
	}
	if err := at.Valid(d.about.Steps); err != nil {
		return fmt.Errorf("no progress to resume from: %s: %w; remove the file to resume from the one before it", key, err)
	}
	return nil
}

// startOver resumes a run that was cut short before its first checkpoint, at step 0.
func (d *Driver) startOver(ctx context.Context) error {
	if init := d.Record.Options.Init; init != "" {
		if err := d.startFrom(init); err != nil {
			return err
		}
	}
	if _, err := d.Dir.cutMetrics(0, ""); err != nil {
		return err
	}
	return d.work.Fresh(ctx)
}

// startFrom sets the weights from a file.
func (d *Driver) startFrom(path string) error {
	weights, err := InitialWeights(path, d.about.Weights.Find)
	if err == nil {
		d.about.Weights.Upload(weights)
	}
	return err
}

// parts returns the parts of a checkpoint that every run has. Its progress is no part.
func (d *Driver) parts(at *Progress) checkpoint.Parts {
	return checkpoint.Parts{recorded{d}, weights{d}, moments{d, at}, chosen{d, at}}
}

// NetworkParts returns the parts that a Network needs: the last weights, and the best ones.
func (d *Driver) NetworkParts(at *Progress) checkpoint.Parts {
	return checkpoint.Parts{weights{d}, chosen{d, at}}
}

// recorded is the part of a checkpoint that has the run's record, and names the run: Result.Meta.
type recorded struct{ d *Driver }

func (p recorded) Save(s *checkpoint.State) error {
	maps.Copy(s.Meta, p.d.Result.Meta(p.d.Updates()))
	return s.Put(RecordKey, p.d.Record)
}

func (p recorded) Check(s *checkpoint.State) error {
	saved, err := recordIn(s.Meta)
	if err != nil {
		return err
	}
	if saved == nil {
		p.d.Note("the checkpoint is of an earlier version, which kept no options in it: those of %s are taken as they are", RecordFile)
		return nil
	}
	if differs := p.d.Record.Options.differs(saved.Options); differs != "" {
		return fmt.Errorf("%s; remove whichever is not of this run", differs)
	}
	return nil
}

func (p recorded) Load(*checkpoint.State) error { return nil }

// weights is the part of a checkpoint that has the weights of the network.
type weights struct{ d *Driver }

func (p weights) Save(s *checkpoint.State) error {
	before := len(s.Tensors)
	if err := p.d.about.Weights.Save(s); err != nil {
		return err
	}
	return p.d.Dir.CheckWeights(s.Tensors[before:], p.d.Updates())
}

func (p weights) Check(s *checkpoint.State) error { return p.d.about.Weights.Check(s) }

func (p weights) Load(s *checkpoint.State) error { return p.d.about.Weights.Load(s) }

// moments is the part of a checkpoint that has the optimizer's moments.
type moments struct {
	d  *Driver
	at *Progress
}

func (p moments) Save(s *checkpoint.State) error {
	s.Tensors = append(s.Tensors, p.d.about.Optim.State()...)
	return nil
}

func (p moments) Check(s *checkpoint.State) error { return p.d.about.Optim.Check(s.Tensors) }

func (p moments) Load(s *checkpoint.State) error {
	return p.d.about.Optim.Restore(p.at.Updates, s.Tensors)
}

// chosen is the part of a checkpoint that has the best weights so far by validation.
type chosen struct {
	d  *Driver
	at *Progress
}

// BestPrefix begins the tensor names of the best weights.
const BestPrefix = "best."

func (p chosen) Save(s *checkpoint.State) error {
	for _, w := range p.d.Best {
		w.Name = BestPrefix + w.Name
		s.Tensors = append(s.Tensors, w)
	}
	return nil
}

func (p chosen) Check(s *checkpoint.State) (err error) {
	if p.at.HasBest {
		_, err = p.d.about.Weights.Find(s.Tensors, BestPrefix)
	}
	return err
}

func (p chosen) Load(s *checkpoint.State) (err error) {
	if p.at.HasBest {
		p.d.Best, err = p.d.about.Weights.Find(s.Tensors, BestPrefix)
	}
	return err
}
