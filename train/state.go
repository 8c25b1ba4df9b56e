package train

import (
	"context"

	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/run"
)

// parts returns all parts of a checkpoint. identity comes first, so that a checkpoint of another
// run is refused for that reason; soFar comes before the parts that share its progress.
func (t *trainer) parts() checkpoint.Parts {
	at := new(run.Progress)
	return checkpoint.Parts{identity{t}, recorded{t}, soFar{t, at}, schedule{t, at}, weights{t}, moments{t, at}, chosen{t, at}, learntRows{t, at}, reused{t, at}}
}

// saveCheckpoint writes all that resuming needs, and forgets the oldest checkpoint. Steps on a
// dataset that changed under them are not worth resuming from: the rows may have been neither the
// old ones nor the new.
func (t *trainer) saveCheckpoint(ctx context.Context) error {
	if err := t.data.Set.Unchanged(); err != nil {
		return err
	}
	t.collect()
	s, err := t.parts().Save()
	if err != nil {
		return err
	}
	t.saved = t.optim.Steps()
	if err := t.dir.AddCheckpoint(t.optim.Steps(), s.Tensors, s.Meta, t.KeepCheckpoints); err != nil || !t.learns() {
		return err
	}
	return t.retainRows(ctx)
}

// resume continues where the newest checkpoint that can be read left off: see run.Dir.Resume. Where
// there is no checkpoint, the run starts at step 0.
func (t *trainer) resume(ctx context.Context) error {
	left, err := t.dir.Resume(t.KeepCheckpoints, t.note, func(s *checkpoint.State) error {
		parts := t.parts()
		if err := parts.Check(s); err != nil {
			return err
		}
		return parts.Load(s)
	})
	switch {
	case err != nil:
		return err
	case len(left) == 0:
		return t.startOver(ctx)
	case t.learns():
		return t.resumeRows(ctx, left)
	}
	return nil
}

// startOver begins a run anew that was cut short before its first checkpoint.
func (t *trainer) startOver(ctx context.Context) error {
	if init := t.record.Options.Init; init != "" {
		if err := t.startFrom(init); err != nil {
			return err
		}
	}
	if _, err := t.dir.CutMetrics(0, ""); err != nil {
		return err
	}
	return t.beginRows(ctx)
}

// startFrom sets the weights from a file.
func (t *trainer) startFrom(path string) error {
	weights, err := run.InitialWeights(path, t.model.Find)
	if err == nil {
		t.model.Upload(weights)
	}
	return err
}
