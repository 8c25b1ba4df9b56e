package graph

import (
	"context"
	"errors"
	"io/fs"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/train/run"
)

// warm fills the host cache before the first step, if its rows stay there. A resumed run loads the
// rows that it had. Otherwise warm loads the hottest rows, if the run reads more rows than those.
// Either takes one pass in file order. Results do not depend on it, so a missing or damaged file
// only gives a note.
func (t *trainer) warm(ctx context.Context) error {
	if !t.tiers.Lasting() {
		return nil
	}
	if t.Dir.Record() != nil { // resumed
		switch found, err := restoreResident(ctx, t.Dir, t.tiers.Stacks); {
		case err == nil && found:
			return nil
		case err != nil && !errors.Is(err, cachetier.ErrResident):
			return err
		case err != nil:
			t.Note("%s: %v; the host cache starts with the first rows instead", t.Dir.File(run.ResidentFile), err)
		default:
			t.Note("no %s from before: the host cache starts with the first rows", run.ResidentFile)
		}
	}
	return t.tiers.Prewarm(ctx, t.Ends.Expected(t.Result)*t.task.Steps()-t.optim.Steps())
}

// restoreResident reads the files of saveResident.
func restoreResident(ctx context.Context, dir *run.Dir, stacks []*cachetier.Stack) (found bool, err error) {
	for i, s := range stacks {
		f, err := dir.OpenResident(i)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, errors.Join(cachetier.ErrResident, err)
		}
		err = s.Restore(ctx, f)
		f.Close()
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// saveResident saves the list of rows in the host cache. The stages are at rest.
func saveResident(dir *run.Dir, stacks []*cachetier.Stack) error {
	for i, s := range stacks {
		if err := dir.WriteResident(i, s.Resident); err != nil {
			return err
		}
	}
	return nil
}
