package graph

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
)

// Run is train.Run for a graph.
func Run(
	ctx context.Context, ds *store.Dataset, openDir func() (*run.Dir, error), o run.Options, version string, h run.Hooks,
) (*run.Result, error) {
	return runWith(ctx, ds, openDir, o, version, h, internal{})
}

func runWith(
	ctx context.Context, ds *store.Dataset, openDir func() (*run.Dir, error), o run.Options, version string, h run.Hooks, in internal,
) (*run.Result, error) {
	if h.Group == nil && o.Spread() {
		return nil, fmt.Errorf("{dist} %s: Hooks.Group has no workers: see dist.Host.Run", o.Dist)
	}
	open := func() (run.Workload, error) {
		t, err := newTrainer(ctx, ds, o, h, in)
		if err != nil {
			return nil, err
		}
		if err := t.learnt.checkFiles(t.InitRows); err != nil {
			t.Close()
			return nil, err
		}
		return t, nil
	}
	return run.Start(ctx, o, open, openDir, version)
}

// trainer is the run.Workload of a graph.
type trainer struct {
	*core
	read      []cachetier.Stats // counters of each table's tiers when last looked at
	trained   []cachetier.Stats // the part of them that training steps caused
	did       []cachetier.Stats // the part that the newest step caused
	other     pipeline.Stats    // what the stages did for evaluation
	evaluated cachetier.Disk    // reading for evaluation
	before    before
	sums      sums

	learntSums learntSums
}

// before has the counters that a resumed run goes on from.
type before struct {
	tables    []cachetier.Stats
	stages    pipeline.Stats
	evaluated cachetier.Disk
	learnt    []run.EmbeddingOf
	spill     *spill.Stats
}

// newTrainer opens a run. ctx cuts it short, and later cuts short what it opened.
func newTrainer(ctx context.Context, ds *store.Dataset, o run.Options, h run.Hooks, in internal) (*trainer, error) {
	c, err := newCore(ctx, ds, o, h, in)
	if err != nil {
		return nil, err
	}
	t := &trainer{core: c, read: c.tiers.Stats(), trained: make([]cachetier.Stats, len(c.tiers.Stacks))}
	t.sums = sums{group: h.Group, be: c.Backend}
	return t, nil
}

// Place implements run.Workload: it puts the files of the tables and of the evaluator in the run
// directory, and makes the disk space for rows of later windows.
func (t *trainer) Place(ctx context.Context) error {
	t.place(t.Dir.Path())
	t.LockMemory(t.tiers.Stacks)
	return t.spill(ctx)
}

// Room implements run.Workload.
func (t *trainer) Room() error { return t.tiers.Room() }

// Complete implements run.Workload.
func (t *trainer) Complete(o run.Options) run.Options { return o }

// Describe implements run.Workload.
func (t *trainer) Describe(r *run.Record) { r.AutoSettings, r.AutoParallel = t.settled, t.choice }

// Started implements run.Workload.
func (t *trainer) Started() { t.notes() }

// Fresh implements run.Workload: it initialises the learnt rows.
func (t *trainer) Fresh(ctx context.Context) error {
	return t.learnt.begin(ctx, t.Record.Options.InitRows) // a resumed run has the files only there
}

// Ready implements run.Workload.
func (t *trainer) Ready(ctx context.Context) error {
	note, err := t.tiers.AgreeSpill(ctx)
	if err != nil {
		return err
	}
	if note != "" {
		t.Note("%s", note)
	}
	return t.warm(ctx)
}

// Retain implements run.Workload.
func (t *trainer) Retain(ctx context.Context) error {
	if !t.learnt.any() {
		return nil
	}
	return t.learnt.retain(ctx)
}

// Restore implements run.Workload. Learnt rows are restored by Resumed.
func (t *trainer) Restore(context.Context) error { return nil }

// Resumed implements run.Workload.
func (t *trainer) Resumed(ctx context.Context, names []string) error {
	if !t.learnt.any() {
		return nil
	}
	return t.learnt.resume(ctx, names)
}

// Hash implements run.Workload. If learnt rows cannot be read, it returns "", and that error unless
// failed is set. If a run with learnt rows failed or was cut short, Hash returns the hash as it
// was, since a new one would read all of these rows.
func (t *trainer) Hash(ctx context.Context, failed error) (string, error) {
	if t.learnt.any() && (failed != nil || t.Result.Status == run.Interrupted) {
		return t.Result.ParamsXXH3, failed
	}
	h := xxh3.New()
	t.model.AddTo(h)
	add := func(h *xxh3.Hasher) error { return t.learnt.addTo(ctx, h) }
	if t.learnt.any() && t.Hooks.Group.Size() > 1 {
		add = func(h *xxh3.Hasher) error { return t.addOwned(ctx, h) }
	}
	if err := add(h); err != nil {
		return "", cmp.Or(failed, err)
	}
	return fmt.Sprintf("%016x", h.Sum64()), failed
}

// Close implements run.Workload.
func (t *trainer) Close() {
	t.learntSums.close(t.Backend)
	t.core.Close()
}

// addOwned adds the rows of all workers to h: a hash of each worker's.
func (t *trainer) addOwned(ctx context.Context, h *xxh3.Hasher) error {
	rows := xxh3.New()
	if err := t.learnt.addTo(ctx, rows); err != nil {
		return err
	}
	own, g := binary.LittleEndian.AppendUint64(nil, rows.Sum64()), t.Hooks.Group
	all, err := g.Gather(ctx, dist.At{}, own)
	if errors.Is(err, dist.ErrStopped) && !g.Ended() { // the run is over, and the next exchange goes on
		all, err = g.Gather(ctx, dist.At{}, own)
	}
	for _, text := range all {
		h.Write(text)
	}
	return err
}

// spill makes the disk space for rows of later windows. If there is none, a note says why.
func (t *trainer) spill(ctx context.Context) error {
	if t.reuse.any() && t.SpillBytes > 0 {
		t.Note("what is drawn depends on hidden rows of earlier steps: rows are read by windows, without a spill")
	}
	why, err := t.tiers.Spill(ctx, t.Dir.Path())
	if why != "" {
		t.Note("%s", why)
	}
	return err
}
