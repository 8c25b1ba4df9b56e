package train

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/run"
)

// A run keeps its learnt rows in its directory, and a checkpoint names the files that hold them as
// of then. Only between two ranges of the pipeline have all rows been written back that belong to
// the weights, so a range ends where a checkpoint is due.

// learns reports whether the run has learnt rows.
func (t *trainer) learns() bool { return len(t.tiers.Learnt) > 0 }

// embeddingsKey is the key of embeddings in the metadata of a checkpoint.
const embeddingsKey = "gnnstore.embeddings"

// embeddings describes the learnt rows as of a checkpoint.
type embeddings struct {
	Tables map[string]mutable.Mark `json:"tables"` // by type
	// Kept has the checkpoints that existed then, the oldest first, this one included.
	Kept []kept `json:"kept"`
}

// kept is a checkpoint: the number of updates before it, and the number at the end of the epoch
// that was the best by then, 0 if there was none.
type kept struct {
	Updates int64 `json:"updates"`
	Best    int64 `json:"best"`
}

// keptNow returns the entry of a checkpoint that would be made now.
func (t *trainer) keptNow() kept {
	return kept{int64(t.optim.Steps()), int64(t.Result.Best.Epoch) * int64(t.task.Steps())}
}

// place puts the files of the tables and of the evaluator in the run directory.
func (t *trainer) place() {
	t.tiers.In(t.Dir.FS(), t.Dir.File(run.EmbeddingDir), fmt.Sprintf("dataset %s, seed %d", t.Result.Seal, t.Seed))
	t.eval.Dir, t.eval.FS = t.Dir.File(run.LayerDir), t.Dir.FS()
}

// Fresh implements run.Workload: it initialises learnt rows from the seed, or from the files of
// InitRows.
func (t *trainer) Fresh(ctx context.Context) error {
	files := t.Record.Options.InitRows // a resumed run has them only there
	for _, l := range t.tiers.Learnt {
		if err := l.Begin(ctx); err != nil {
			return err
		}
		if path := files[t.data.Types[l.Type].Name]; path != "" {
			if err := t.putRows(ctx, l, path); err != nil {
				return fmt.Errorf("{init_rows} %w", err)
			}
		}
	}
	return nil
}

// markRows makes the rows that steps have written durable, so that a checkpoint made now can go on
// record, and sets t.rows for it.
func (t *trainer) markRows() error {
	e := embeddings{Tables: map[string]mutable.Mark{}}
	now := t.keptNow()
	for _, l := range t.tiers.Learnt {
		mark, err := l.Checkpoint(now.Updates)
		if err != nil {
			return err
		}
		e.Tables[t.data.Types[l.Type].Name] = mark
	}
	for _, k := range t.rows.Kept {
		if k.Updates < now.Updates {
			e.Kept = append(e.Kept, k)
		}
	}
	e.Kept = append(e.Kept, now)
	t.rows = e
	return nil
}

// Retain implements run.Workload.
func (t *trainer) Retain(ctx context.Context) error {
	if !t.learns() {
		return nil
	}
	t.rows.Kept = t.rows.Kept[max(0, len(t.rows.Kept)-t.KeepCheckpoints):]
	var steps []int64
	for _, k := range t.rows.Kept {
		steps = append(steps, k.Updates)
		if k.Best > 0 {
			steps = append(steps, k.Best)
		}
	}
	return t.tiers.Retain(ctx, steps)
}

// Restore implements run.Workload. Learnt rows are restored by Resumed.
func (t *trainer) Restore(context.Context) error { return nil }

// Resumed implements run.Workload.
func (t *trainer) Resumed(ctx context.Context, names []string) error {
	if !t.learns() {
		return nil
	}
	t.rows.Kept = slices.DeleteFunc(t.rows.Kept, func(k kept) bool {
		return !slices.Contains(names, run.CheckpointName(int(k.Updates))) || t.checkBest(k.Best) != nil // a damaged one may say anything
	})
	for _, l := range t.tiers.Learnt {
		if err := l.Resume(ctx, t.rows.Tables[t.data.Types[l.Type].Name]); err != nil {
			return err
		}
	}
	return t.Retain(ctx)
}

// showBest makes reads return the rows as of the epoch that validation chose. back makes them
// return the current rows again.
func (t *trainer) showBest(ctx context.Context) (back func() error, err error) {
	back = func() (err error) {
		for _, l := range t.tiers.Learnt { // though ctx may have ended
			err = errors.Join(err, l.ShowNow(context.WithoutCancel(ctx)))
		}
		return err
	}
	for _, l := range t.tiers.Learnt {
		if err := l.Show(ctx, t.keptNow().Best); err != nil {
			return nil, errors.Join(err, back())
		}
	}
	return back, nil
}

// Hash implements run.Workload. If learnt rows cannot be read, it returns "", and that error unless
// failed is set. If a run with learnt rows failed or was cut short, Hash returns the hash as it
// was, since a new one would read all of these rows.
func (t *trainer) Hash(ctx context.Context, failed error) (string, error) {
	if t.learns() && (failed != nil || t.Result.Status == run.Interrupted) {
		return t.Result.ParamsXXH3, failed
	}
	h := xxh3.New()
	t.model.AddTo(h)
	for _, l := range t.tiers.Learnt {
		err := l.Each(ctx, func(row uint32, record []byte) error {
			h.Write(binary.LittleEndian.AppendUint32(nil, row))
			h.Write(record)
			return nil
		})
		if err != nil {
			return "", cmp.Or(failed, err)
		}
	}
	return fmt.Sprintf("%016x", h.Sum64()), failed
}

// learntRows is the part of a checkpoint that has the learnt rows.
type learntRows struct {
	t  *trainer
	at *run.Progress
}

func (p learntRows) Save(s *checkpoint.State) error {
	if !p.t.learns() {
		return nil
	}
	if err := p.t.markRows(); err != nil {
		return err
	}
	return s.Put(embeddingsKey, p.t.rows)
}

func (p learntRows) Check(s *checkpoint.State) error {
	if !p.t.learns() {
		return nil
	}
	e, err := p.read(s)
	if err != nil {
		return err
	}
	for _, l := range p.t.tiers.Learnt {
		mark, ok := e.Tables[p.t.data.Types[l.Type].Name]
		if !ok {
			return fmt.Errorf("it has no learnt rows of type %s: it is of another run", p.t.data.Types[l.Type].Name)
		}
		if mark.Step != int64(p.at.Updates) {
			return fmt.Errorf("its learnt rows are of step %d, and its weights of step %d; remove the file to resume from the one before it",
				mark.Step, p.at.Updates)
		}
		if err := l.Check(mark); err != nil {
			return fmt.Errorf("the learnt rows of type %s: %w", p.t.data.Types[l.Type].Name, err)
		}
	}
	last := e.Kept[len(e.Kept)-1]
	now := kept{int64(p.at.Updates), int64(p.at.SoFar.Best.Epoch) * int64(p.t.task.Steps())}
	if last != now || !slices.IsSortedFunc(e.Kept, func(a, b kept) int { return cmp.Compare(a.Updates, b.Updates) }) {
		return fmt.Errorf("its learnt rows are of the checkpoints %v, and it is %v; remove the file to resume from the one before it", e.Kept, now)
	}
	return p.t.checkBest(now.Best)
}

// checkBest returns an error if the learnt rows of the best epoch are not there. That epoch ended
// after this many updates; 0: there is none.
func (t *trainer) checkBest(updates int64) error {
	if updates == 0 {
		return nil
	}
	for _, l := range t.tiers.Learnt {
		n := &t.data.Types[l.Type]
		if err := l.Check(mutable.Mark{Step: updates, Rows: n.Nodes, RowBytes: l.RowBytes()}); err != nil {
			return fmt.Errorf("the learnt rows of type %s in the best epoch: %w", n.Name, err)
		}
	}
	return nil
}

func (p learntRows) read(s *checkpoint.State) (e embeddings, err error) {
	if err = json.Unmarshal([]byte(s.Meta[embeddingsKey]), &e); err == nil && len(e.Kept) == 0 {
		err = errors.New("no checkpoint in it")
	}
	if err != nil {
		err = fmt.Errorf("no learnt rows to go on with: %s: %w; remove the file to resume from the one before it", embeddingsKey, err)
	}
	return e, err
}

// Load reads the description of the rows. Resumed restores them, once newer checkpoints are
// removed.
func (p learntRows) Load(s *checkpoint.State) (err error) {
	if p.t.learns() {
		p.t.rows, err = p.read(s)
	}
	return err
}
