package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/dist"
)

// WorkersDir is the directory, in the directory of a run, with the directories of workers 1, 2 and
// so on, each named by its number.
const WorkersDir = "workers"

// WorkerDir returns the directory of a worker of the run in path.
func WorkerDir(path string, rank int) string {
	if rank == 0 {
		return path
	}
	return filepath.Join(path, WorkersDir, strconv.Itoa(rank))
}

// follows reports whether this worker is not worker 0. Worker 0 has the run's directory, and writes
// checkpoints and weights. Each other worker has a directory in it, for its record, metrics and
// result. On resuming it takes its state from worker 0.
func (d *Driver) follows() bool { return d.Hooks.Group.Rank() > 0 }

// placed is where worker 0 has the run, for the other workers.
type placed struct {
	Path   string `json:"path"`
	Record []byte `json:"record,omitempty"` // of a run that is resumed, as run.json has it
}

// openDirs opens the directory of this worker. open opens the run's, for worker 0.
func (d *Driver) openDirs(ctx context.Context, open func() (*Dir, error)) (dir *Dir, err error) {
	g := d.Hooks.Group
	if g.Size() == 1 {
		return open()
	}
	defer func() {
		if err != nil && dir != nil {
			err = errors.Join(err, dir.Close())
		}
	}()
	var text []byte
	if !d.follows() {
		if dir, err = open(); err != nil {
			return nil, err
		}
		first := placed{Path: Absolute(dir.Path())}
		if r := dir.Record(); r != nil {
			if first.Record, err = r.Encode(); err != nil {
				return dir, err
			}
		}
		if text, err = json.Marshal(first); err != nil {
			return dir, err
		}
	}
	if text, err = g.Broadcast(ctx, dist.At{}, text); err != nil || !d.follows() {
		return dir, err
	}
	var first placed
	if err := json.Unmarshal(text, &first); err != nil {
		return nil, fmt.Errorf("the run directory, as worker 0 names it: %w", err)
	}
	return openWorker(first, g.Rank())
}

// openWorker opens the directory of a worker that is not worker 0. It ignores files of an earlier
// part of the run.
func openWorker(first placed, rank int) (*Dir, error) {
	path := WorkerDir(first.Path, rank)
	if len(first.Record) == 0 {
		d, record, err := Open(path) // a run that was killed before its record may have left files
		if err == nil && record != nil {
			err = errors.Join(fmt.Errorf("run directory %s: it holds a run; choose another with {run}", path), d.Close())
		}
		if err != nil {
			return nil, err
		}
		d.of = first.Path
		return d, nil
	}
	record, err := DecodeRecord(first.Record)
	if err != nil {
		return nil, fmt.Errorf("the record of the run, as worker 0 has it: %w", err)
	}
	root, err := makeRoot(path)
	if err == nil {
		err = root.checkNames()
	}
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	d, err := lockRun(root, path)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	d.record, d.of = record, first.Path
	return d, nil
}

// introduction has what workers must have in common.
type introduction struct {
	Version, Seal, Kernels, Evaluation string
	Options                            Options
}

// meet refuses workers that would not compute the same. All workers get the same error.
func (d *Driver) meet(ctx context.Context, version string) error {
	g := d.Hooks.Group
	if g.Size() == 1 {
		return nil
	}
	own, err := json.Marshal(introduction{version, d.Result.Seal, d.Backend.Name(), d.about.Evaluation, d.Options})
	if err != nil {
		return err
	}
	all, err := g.Gather(ctx, dist.At{}, own)
	if err != nil {
		return err
	}
	var first introduction
	for p, text := range all {
		var other introduction
		if err := json.Unmarshal(text, &other); err != nil {
			return fmt.Errorf("%s: what it says of itself: %w", g.Name(p), err)
		}
		if p == 0 {
			first = other
			continue
		}
		if differs := other.differs(first); differs != "" {
			return fmt.Errorf("%s differs from worker 0: %s", g.Name(p), differs)
		}
	}
	return nil
}

// differs names the first thing that two workers do not have in common, and the remedy.
func (i introduction) differs(first introduction) string {
	switch {
	case i.Version != first.Version:
		return fmt.Sprintf("it is gnnstore %s, and worker 0 is %s; install one version", i.Version, first.Version)
	case i.Seal != first.Seal:
		return fmt.Sprintf("its dataset has seal %s, and worker 0's has %s; give both copies of one dataset",
			i.Seal, first.Seal)
	case i.Kernels != first.Kernels:
		return fmt.Sprintf("it computes with %s kernels, and worker 0 with %s, whose last bits differ; "+
			"name a set that both have by {kernels}", i.Kernels, first.Kernels)
	}
	var all []string
	add := func(key, now, then string) {
		if now != then {
			all = append(all, fmt.Sprintf("{%s} is %s there and %s at worker 0", key, now, then))
		}
	}
	for _, x := range Table.Diff(&i.Options, &first.Options) {
		add(x.Key, x.Now, x.Then)
	}
	a, b := i.Options, first.Options
	if add("parallel", a.Parallel, b.Parallel); a.ByOwners() {
		add("lookahead", strconv.Itoa(a.Lookahead), strconv.Itoa(b.Lookahead)) // all draw equally far ahead
	}
	add("epochs", strconv.Itoa(a.Epochs), strconv.Itoa(b.Epochs)) // a resumed run may change them
	add("checkpoint_every", strconv.Itoa(a.CheckpointEvery), strconv.Itoa(b.CheckpointEvery))
	if len(all) > 0 {
		return strings.Join(all, ", ") + "; start both with the same options"
	}
	if i.Evaluation != first.Evaluation {
		return fmt.Sprintf("its evaluation is %s, and worker 0's is %s, since their memory differs; choose one by {eval}",
			i.Evaluation, first.Evaluation)
	}
	return ""
}

// tellWorkers tells the other workers that the epochs of this one have failed with err, so that all
// end at the same step. It returns err. If ctx has ended, all know.
func (d *Driver) tellWorkers(ctx context.Context, err error) error {
	if Ended(ctx, err) {
		return err
	}
	return d.Hooks.Group.Leave(err)
}

// ofWorker is the key of the progress of a worker other than 0 in the metadata of a checkpoint.
func ofWorker(rank int) string { return fmt.Sprintf("gnnstore.worker.%d", rank) }

// ownKey returns the metadata key under which a worker other than 0 has its value of key, which is
// one of About.Own.
func ownKey(rank int, key string) string {
	return ofWorker(rank) + "." + strings.TrimPrefix(key, "gnnstore.")
}

// OwnMeta sets each of keys, which are of About.Own, to the value of a worker other than 0. A key
// for which the checkpoint has no such value stays worker 0's.
func OwnMeta(meta map[string]string, rank int, keys ...string) {
	for _, key := range keys {
		if own, ok := meta[ownKey(rank, key)]; ok {
			meta[key] = own
		}
	}
}

// apart reports whether the state of other workers cannot be saved any more. Then no checkpoint can
// be made.
func (d *Driver) apart() bool { return d.Hooks.Group.Ended() && len(d.about.Own) > 0 }

// join brings the progress of all workers, and About.Own, together for a checkpoint. It refuses
// weights that differ. If the workers can exchange no more, since one has failed, the checkpoint
// has worker 0's progress alone.
func (d *Driver) join(ctx context.Context, s *checkpoint.State) error {
	g := d.Hooks.Group
	if g.Ended() {
		return nil
	}
	type state struct {
		Weights, Progress string
		WaitSeconds       float64
		SentBytes         int64
		Own               map[string]string // by key
	}
	waited := d.waited + g.Waited().Seconds()
	keyed := map[string]string{}
	for _, key := range d.about.Own {
		keyed[key] = s.Meta[key]
	}
	own, err := json.Marshal(state{d.about.Weights.Hash(), s.Meta[d.about.Progress], waited, d.sent + g.Sent(), keyed})
	if err != nil {
		return err
	}
	all, err := g.Gather(ctx, dist.At{Epoch: len(d.Result.Epochs) + 1, Step: d.Partial.Steps}, own)
	if err != nil {
		return err
	}
	var first state
	w := &WorkersOf{Rank: g.Rank()}
	for p, text := range all {
		var other state
		var at Progress
		if err := json.Unmarshal(text, &other); err != nil {
			return fmt.Errorf("%s: its progress: %w", g.Name(p), err)
		}
		if err := json.Unmarshal([]byte(other.Progress), &at); err != nil {
			return fmt.Errorf("%s: its progress: %w", g.Name(p), err)
		}
		w.InputRows, w.DiskBytes = append(w.InputRows, at.SoFar.InputRows), append(w.DiskBytes, at.SoFar.Disk.BytesRead)
		w.WaitSeconds, w.SentBytes = append(w.WaitSeconds, other.WaitSeconds), append(w.SentBytes, other.SentBytes)
		if p == 0 {
			first = other
			continue
		}
		if other.Weights != first.Weights {
			return fmt.Errorf("%s has other weights than worker 0 after step %d: one of them computed wrongly; "+
				"its memory may be faulty. Resume from the checkpoint before, without that machine", g.Name(p), d.Updates())
		}
		s.Meta[ofWorker(p)] = other.Progress
		for key, text := range other.Own {
			s.Meta[ownKey(p, key)] = text
		}
	}
	d.Result.Workers = w
	return nil
}

// restored is the state of a run that is resumed, as worker 0 has it.
type restored struct {
	Checkpoint []byte   `json:"checkpoint"` // the file
	Epochs     []Epoch  `json:"epochs"`
	Left       []string `json:"left"` // the checkpoints that there are
}

// lead sends the last of left, the checkpoint that worker 0 has loaded, to the other workers. If
// left is empty, it tells them to start over.
func (d *Driver) lead(ctx context.Context, left []string) error {
	if d.Hooks.Group.Size() == 1 {
		return nil
	}
	r := restored{Epochs: d.Result.Epochs, Left: left}
	if len(left) > 0 {
		var err error
		if r.Checkpoint, err = readFile(d.Dir.fs, d.Dir.File(left[len(left)-1])); err != nil {
			return err
		}
	}
	text, err := json.Marshal(r)
	if err == nil {
		_, err = d.Hooks.Group.Broadcast(ctx, dist.At{}, text)
	}
	return err
}

// follow restores this worker from worker 0's checkpoint.
func (d *Driver) follow(ctx context.Context) error {
	text, err := d.Hooks.Group.Broadcast(ctx, dist.At{}, nil)
	if err != nil {
		return err
	}
	var r restored
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("the checkpoint, as worker 0 sends it: %w", err)
	}
	if len(r.Checkpoint) == 0 {
		if err := d.Dir.keepHistory(-1, 0); err != nil {
			return err
		}
		return d.startOver(ctx)
	}
	tensors, meta, err := checkpoint.Decode(r.Checkpoint)
	if err != nil {
		return fmt.Errorf("the checkpoint, as worker 0 sends it: %w", err)
	}
	if err := d.own(meta); err != nil {
		return err
	}
	if _, err := d.Dir.cutMetrics(0, ""); err != nil {
		return err
	}
	d.followed = r.Epochs
	if err := d.load(ctx, &checkpoint.State{Tensors: tensors, Meta: meta}); err != nil {
		return err
	}
	if err := d.work.Resumed(ctx, r.Left); err != nil {
		return err
	}
	return d.Dir.keepHistory(d.Updates(), d.KeepCheckpoints+1)
}

// own replaces worker 0's counters, and About.Own, by this worker's. Counters begin at 0 if the
// checkpoint has none, or is of another number of workers; About.Own is worker 0's then.
func (d *Driver) own(meta map[string]string) error {
	p := &Progress{}
	if err := json.Unmarshal([]byte(meta[d.about.Progress]), p); err != nil {
		return fmt.Errorf("no progress to resume from: %s: %w", d.about.Progress, err)
	}
	rank := d.Hooks.Group.Rank()
	OwnMeta(meta, rank, d.about.Own...)
	if own := meta[ofWorker(rank)]; own != "" && d.Record.Workers == d.Hooks.Group.Size() {
		meta[d.about.Progress] = own
		return nil
	}
	r := &p.SoFar
	p.SoFar = Result{
		Seal: r.Seal, Seed: r.Seed, Metric: r.Metric, Best: r.Best, AutoEpochs: r.AutoEpochs,
		Evaluation: Evaluation{Method: r.Evaluation.Method},
	}
	p.Partial = Partial{Tally: p.Partial.Tally, Steps: p.Partial.Steps}
	text, err := json.Marshal(p)
	meta[d.about.Progress] = string(text)
	return err
}

// resultFollowed does for followers what Dir.resultSoFar does. It takes worker 0's epochs, and
// writes them to this worker's metrics.
func (d *Driver) resultFollowed(at *Progress) (*Result, error) {
	r := at.result(d.Result, d.followed)
	for _, e := range d.followed {
		if err := d.Dir.Append(Line{Epoch: &e, SoFar: r.SoFar()}); err != nil {
			return nil, err
		}
	}
	return r, nil
}
