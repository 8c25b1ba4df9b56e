package graph

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
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// learntRows are the learnt rows of a run. They are in its directory, and a checkpoint names the
// files that hold them as of then. Only between two ranges of the pipeline are all rows written
// back that belong to the weights. So a range ends where a checkpoint is due.
type learntRows struct {
	run   *run.Driver
	data  *data.Data
	tiers *tiers.Tiers
	steps int         // of an epoch
	part  *store.Part // the nodes whose rows are here; nil: all
	saved embeddings  // of the newest checkpoint
}

// any reports whether the run has learnt rows.
func (r *learntRows) any() bool { return len(r.tiers.Learnt) > 0 }

// typeOf returns the type of nodes that l has rows for.
func (r *learntRows) typeOf(l tiers.Learnt) *data.Type { return &r.data.Types[l.Type] }

// embeddingsKey is the key of embeddings in the metadata of a checkpoint.
const embeddingsKey = "gnnstore.embeddings"

// embeddings describes the learnt rows as of a checkpoint.
type embeddings struct {
	Tables map[string]mutable.Mark `json:"tables"` // by type
	// Kept has the checkpoints that existed then, the oldest first, this one included.
	Kept []kept `json:"kept"`
	// Workers is the number of workers among which the rows are dealt out; 0: one has all.
	Workers int `json:"workers,omitempty"`
}

// kept is a checkpoint: the number of updates before it, and the number at the end of the epoch
// that was the best by then, 0 if there was none.
type kept struct {
	Updates int64 `json:"updates"`
	Best    int64 `json:"best"`
}

// kept returns the entry of a checkpoint after this many updates, when the epoch best was the best.
func (r *learntRows) kept(updates, best int) kept {
	return kept{int64(updates), int64(best) * int64(r.steps)}
}

// now returns the entry of a checkpoint that would be made now.
func (r *learntRows) now() kept { return r.kept(r.run.Updates(), r.run.Result.Best.Epoch) }

// begin initialises the rows from the seed, or from files, each named by its type.
func (r *learntRows) begin(ctx context.Context, files map[string]string) error {
	for _, l := range r.tiers.Learnt {
		if err := l.Begin(ctx); err != nil {
			return err
		}
		if path := files[r.typeOf(l).Name]; path != "" {
			if err := r.put(ctx, l, path); err != nil {
				return fmt.Errorf("{init_rows} %w", err)
			}
		}
	}
	return nil
}

// mark makes the rows that steps have written durable, so that a checkpoint made now can go on
// record, and sets r.saved for it.
func (r *learntRows) mark() error {
	e := embeddings{Tables: map[string]mutable.Mark{}}
	if n := r.run.Hooks.Group.Size(); n > 1 {
		e.Workers = n
	}
	now := r.now()
	for _, l := range r.tiers.Learnt {
		mark, err := l.Checkpoint(now.Updates)
		if err != nil {
			return err
		}
		e.Tables[r.typeOf(l).Name] = mark
	}
	for _, k := range r.saved.Kept {
		if k.Updates < now.Updates {
			e.Kept = append(e.Kept, k)
		}
	}
	e.Kept = append(e.Kept, now)
	r.saved = e
	return nil
}

// retain gives up the rows that no kept checkpoint needs.
func (r *learntRows) retain(ctx context.Context) error {
	keep := r.run.KeepCheckpoints
	if r.run.Hooks.Group.Rank() > 0 { // worker 0 may not have the newest one yet, and need one more
		keep++
	}
	r.saved.Kept = r.saved.Kept[max(0, len(r.saved.Kept)-keep):]
	var steps []int64
	for _, k := range r.saved.Kept {
		steps = append(steps, k.Updates)
		if k.Best > 0 {
			steps = append(steps, k.Best)
		}
	}
	return r.tiers.Retain(ctx, steps)
}

// resume restores the rows of the checkpoint that was loaded. names are the checkpoints that there
// are.
func (r *learntRows) resume(ctx context.Context, names []string) error {
	r.saved.Kept = slices.DeleteFunc(r.saved.Kept, func(k kept) bool {
		return !slices.Contains(names, run.CheckpointName(int(k.Updates))) || r.checkBest(k.Best) != nil // a damaged one may say anything
	})
	for _, l := range r.tiers.Learnt {
		if err := l.Resume(ctx, r.saved.Tables[r.typeOf(l).Name]); err != nil {
			return err
		}
	}
	return r.retain(ctx)
}

// look opens the rows of the checkpoint that was loaded, to read them.
func (r *learntRows) look(ctx context.Context) error {
	for _, l := range r.tiers.Learnt {
		if err := l.Look(ctx, r.saved.Tables[r.typeOf(l).Name]); err != nil {
			return err
		}
	}
	return nil
}

// showBest makes reads return the rows as of the epoch that validation chose. back makes them
// return the current rows again.
func (r *learntRows) showBest(ctx context.Context) (back func() error, err error) {
	back = func() (err error) {
		for _, l := range r.tiers.Learnt { // though ctx may have ended
			err = errors.Join(err, l.ShowNow(context.WithoutCancel(ctx)))
		}
		return err
	}
	for _, l := range r.tiers.Learnt {
		if err := l.Show(ctx, r.now().Best); err != nil {
			return nil, errors.Join(err, back())
		}
	}
	return back, nil
}

// addTo adds the rows to a hash.
func (r *learntRows) addTo(ctx context.Context, h *xxh3.Hasher) error {
	for _, l := range r.tiers.Learnt {
		err := l.Each(ctx, func(row uint32, record []byte) error {
			h.Write(binary.LittleEndian.AppendUint32(nil, row))
			h.Write(record)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// checkBest returns an error if the rows of the best epoch are not there. That epoch ended after
// this many updates; 0: there is none.
func (r *learntRows) checkBest(updates int64) error {
	if updates == 0 {
		return nil
	}
	for _, l := range r.tiers.Learnt {
		n := r.typeOf(l)
		if err := l.Check(mutable.Mark{Step: updates, Rows: n.Nodes, RowBytes: l.RowBytes()}); err != nil {
			return fmt.Errorf("the learnt rows of type %s in the best epoch: %w", n.Name, err)
		}
	}
	return nil
}

// learntState is the part of a checkpoint that has the learnt rows.
type learntState struct {
	*learntRows
	at *run.Progress
}

func (p learntState) Save(s *checkpoint.State) error {
	if !p.any() {
		return nil
	}
	if err := p.mark(); err != nil {
		return err
	}
	return s.Put(embeddingsKey, p.saved)
}

func (p learntState) Check(s *checkpoint.State) error {
	if !p.any() {
		return nil
	}
	e, err := p.read(s)
	if err != nil {
		return err
	}
	if before, now := max(e.Workers, 1), p.run.Hooks.Group.Size(); before != now {
		return fmt.Errorf("learnt rows of %d workers, and there are %d now; "+
			"go on with {dist} local:%d, or mpi:%d", before, now, before, before)
	}
	for _, l := range p.tiers.Learnt {
		name := p.typeOf(l).Name
		mark, ok := e.Tables[name]
		if !ok {
			return fmt.Errorf("it has no learnt rows of type %s: it is of another run", name)
		}
		if mark.Step != int64(p.at.Updates) {
			return fmt.Errorf("its learnt rows are of step %d, and its weights of step %d; remove the file to resume from the one before it",
				mark.Step, p.at.Updates)
		}
		if err := l.Check(mark); err != nil {
			return fmt.Errorf("the learnt rows of type %s: %w", name, err)
		}
	}
	last, now := e.Kept[len(e.Kept)-1], p.kept(p.at.Updates, p.at.SoFar.Best.Epoch)
	if last != now || !slices.IsSortedFunc(e.Kept, func(a, b kept) int { return cmp.Compare(a.Updates, b.Updates) }) {
		return fmt.Errorf("its learnt rows are of the checkpoints %v, and it is %v; remove the file to resume from the one before it", e.Kept, now)
	}
	return p.checkBest(now.Best)
}

func (p learntState) read(s *checkpoint.State) (e embeddings, err error) {
	if err = json.Unmarshal([]byte(s.Meta[embeddingsKey]), &e); err == nil && len(e.Kept) == 0 {
		err = errors.New("no checkpoint in it")
	}
	if err != nil {
		err = fmt.Errorf("no learnt rows to go on with: %s: %w; remove the file to resume from the one before it", embeddingsKey, err)
	}
	return e, err
}

// Load reads the description of the rows. resume restores them, once newer checkpoints are removed.
func (p learntState) Load(s *checkpoint.State) (err error) {
	if p.any() {
		p.saved, err = p.read(s)
	}
	return err
}
