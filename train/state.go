package train

import (
	"context"
	"fmt"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/step"
)

// parts are all that a checkpoint holds. What a run is comes first, so that a checkpoint of another one is refused for that; soFar
// stands before those that share its progress.
func (t *trainer) parts() checkpoint.Parts {
	at := new(run.Progress)
	return checkpoint.Parts{identity{t}, recorded{t}, soFar{t, at}, schedule{t, at}, weights{t}, moments{t, at}, chosen{t, at}, learntRows{t, at}, reused{t, at}}
}

// saveCheckpoint writes all that resuming needs, and forgets the oldest checkpoint. Steps on a dataset that changed under
// them are not worth resuming from: the rows may have been neither the old ones nor the new.
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

// lastGood is a remedy, if there is one.
func (t *trainer) lastGood() string {
	if path := t.dir.Newest(); path != "" {
		return "; the state before it is in " + path
	}
	return ""
}

// resume continues where the newest checkpoint that can be read left off: see run.Dir.Resume. Where there is no checkpoint, the run starts at
// step 0.
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

// startOver is for a run that was cut short before its first checkpoint.
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

// startFrom reads the weights that a run begins with: a safetensors file under this model's names, other tensors in it
// ignored.
func (t *trainer) startFrom(path string) error {
	tensors, _, err := checkpoint.Load(vfs.Default, path)
	if err != nil {
		return err
	}
	weights, err := t.model.Find(tensors, "")
	if err != nil {
		return fmt.Errorf("{init} %s: %w", path, err)
	}
	for _, w := range weights {
		if i := step.NotFinite(w.Data); i >= 0 {
			return fmt.Errorf("{init} %s: weight %s[%d] is %v: it is no network that works", path, w.Name, i, w.Data[i])
		}
	}
	t.model.Upload(weights)
	return nil
}

// meta says what a file of weights belongs to.
func (t *trainer) meta() map[string]string {
	return map[string]string{
		epochsKey: strconv.Itoa(len(t.result.Epochs)), stepsKey: strconv.Itoa(t.optim.Steps()), sealKey: t.result.Seal,
		modelKey: string(t.Kind), seedKey: strconv.FormatUint(t.Seed, 10),
	}
}
