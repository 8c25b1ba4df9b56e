package train

import (
	"context"
	"errors"
	"io/fs"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/train/run"
)

// lasting reports whether rows in the host cache are of use to later windows. A window that takes more than half of the cache brings
// most of its rows by a scan of the file and leaves little room for those of others.
func (t *trainer) lasting() bool {
	rows := t.stack.WindowRows()
	return rows > 0 && t.Cache.Policy != cachetier.None && int64(rows) >= 2*int64(t.budget.Group)*int64(t.inputs)
}

// warm fills the host cache before the first step, where that lasts: in a run that is resumed with the rows that it had, else
// with the hottest, if the run reads more rows than that. Either is one pass in file order. No row that is delivered depends
// on it, so a file that is missing or damaged is no more than worth a note.
func (t *trainer) warm(ctx context.Context) error {
	if !t.lasting() {
		return nil
	}
	if t.dir.Record() != nil { // resumed
		switch found, err := t.restoreResident(ctx); {
		case err == nil && found:
			return nil
		case err != nil && !errors.Is(err, cachetier.ErrResident):
			return err
		case err != nil:
			t.note("%s: %v; the host cache starts with the first rows instead", t.dir.File(run.ResidentFile), err)
		default:
			t.note("no %s from before: the host cache starts with the first rows", run.ResidentFile)
		}
	}
	if steps := t.expectedEpochs()*t.task.Steps() - t.optim.Steps(); int64(steps)*int64(t.inputs) < int64(t.stack.WindowRows()) {
		return nil
	}
	return t.stack.Prewarm(ctx)
}

// restoreResident reads the file of saveResident.
func (t *trainer) restoreResident(ctx context.Context) (found bool, err error) {
	f, err := t.dir.OpenResident()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, errors.Join(cachetier.ErrResident, err)
	}
	defer f.Close()
	return true, t.stack.Restore(ctx, f)
}

// saveResident puts on record which rows are in the host cache. The stages are at rest.
func (t *trainer) saveResident() {
	if !t.lasting() || t.trained.InputRows == 0 { // the file from before is as good
		return
	}
	if err := t.dir.WriteResident(t.stack.Resident); err != nil {
		t.note("%v; a run that is resumed begins with a cold host cache", err)
	}
}
