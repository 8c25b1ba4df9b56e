package train

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

// What a checkpoint's metadata holds. The first ones are for people and other programs; progressKey is what resuming
// needs beside the tensors: batches, dropout and shuffles are functions of (seed, epoch, step), so nothing else has state.
const (
	epochsKey   = "gnnstore.epochs" // whole ones
	stepsKey    = "gnnstore.steps"  // updates in all; those beyond the whole epochs are of the one under way
	sealKey     = "gnnstore.dataset_seal"
	modelKey    = "gnnstore.model"
	seedKey     = "gnnstore.seed"
	scheduleKey = "gnnstore.schedule" // drawing
	progressKey = "gnnstore.progress"
)

// bestPrefix stands before the weights that validation has chosen so far.
const bestPrefix = "best."

// progress is where a run stands between two steps.
type progress struct {
	Updates int     `json:"updates"`
	Partial partial `json:"partial"`
	Worse   int     `json:"worse"`
	HasBest bool    `json:"has_best"`
	// MetricsBytes of metrics.jsonl were written by then; what follows belongs to steps that resuming runs again.
	MetricsBytes int64      `json:"metrics_bytes"`
	MetricsXXH3  string     `json:"metrics_xxh3"` // of these; empty in checkpoints of earlier versions
	Epochs       int        `json:"epochs"`       // whole ones, which metrics.jsonl has
	SoFar        run.Result `json:"so_far"`
}

// drawing is the schedule of the seeds that batches are drawn from, and how far it has come: step i of all epochs has that of
// i div κ, and smoothed has gone (i mod κ)/κ of the way to the next.
type drawing struct {
	Seed      uint64 `json:"seed"`
	Kappa     int    `json:"kappa"` // sample.Forever: all steps
	Dependent string `json:"dependent"`
	Step      int    `json:"step"`
}

func (t *trainer) drawingAt(step int) drawing { return drawing{t.Seed, t.Kappa, t.Dependent, step} }

// goesOn refuses a schedule that is not now, which is where the run is.
func (d drawing) goesOn(now drawing) error {
	switch {
	case d.Seed != now.Seed:
		return fmt.Errorf("it draws from --seed %d, and the run from %d", d.Seed, now.Seed)
	case d.Kappa != now.Kappa:
		return fmt.Errorf("it draws with --kappa %s, and the run with %s", sample.KappaText(d.Kappa), sample.KappaText(now.Kappa))
	case d.Dependent != now.Dependent:
		return fmt.Errorf("it draws with --dependent %s, and the run with %s", d.Dependent, now.Dependent)
	case d.Step != now.Step:
		return fmt.Errorf("it has drawn %d steps and made %d updates; remove the file to resume from the one before it",
			d.Step, now.Step)
	}
	return nil
}

// partial is the epoch under way.
type partial struct {
	tally
	Steps     int     `json:"steps"`
	Seconds   float64 `json:"seconds"`
	InputRows int64   `json:"input_rows"`
	DiskRows  int64   `json:"disk_rows"`
	DiskBytes int64   `json:"disk_bytes"`
}

// count adds a step that read what the tiers did since before.
func (p *partial) count(a tally, read cachetier.Stats) {
	p.Steps++
	p.add(a)
	p.InputRows += read.InputRows
	p.DiskRows += read.Disk.Rows
	p.DiskBytes += read.Disk.BytesRead
}

// saveCheckpoint writes all that resuming needs, and forgets the oldest checkpoint. Steps on a dataset that changed under
// them are not worth resuming from: the rows may have been neither the old ones nor the new.
func (t *trainer) saveCheckpoint() error {
	if err := t.data.Set.Unchanged(); err != nil {
		return err
	}
	t.snapshot()
	metrics, sum, err := t.dir.SyncMetrics()
	if err != nil {
		return err
	}
	tensors := t.weights()
	for _, w := range tensors {
		if i := notFinite(w.Data); i >= 0 {
			return fmt.Errorf("step %d: weight %s[%d] is %v; lower --lr%s", t.optim.Steps(), w.Name, i, w.Data[i], t.lastGood())
		}
	}
	tensors = append(tensors, t.optim.State()...)
	for _, w := range t.best {
		w.Name = bestPrefix + w.Name
		tensors = append(tensors, w)
	}
	at := progress{
		Updates: t.optim.Steps(), Partial: t.partial, Worse: t.worse, HasBest: t.best != nil, MetricsBytes: metrics,
		MetricsXXH3: sum, Epochs: len(t.result.Epochs), SoFar: t.result.SoFar(),
	}
	text, err := json.Marshal(at)
	if err != nil {
		return err
	}
	schedule, err := json.Marshal(t.drawingAt(t.optim.Steps()))
	if err != nil {
		return err
	}
	record, err := json.Marshal(t.record)
	if err != nil {
		return err
	}
	meta := t.meta()
	meta[progressKey], meta[scheduleKey], meta[run.RecordKey] = string(text), string(schedule), string(record)
	t.saved = t.optim.Steps()
	return t.dir.AddCheckpoint(t.optim.Steps(), tensors, meta, t.KeepCheckpoints)
}

// notFinite is the place of the first element that is NaN or infinite, or -1.
func notFinite(v []float32) int { return slices.IndexFunc(v, func(x float32) bool { return x-x != 0 }) }

// lastGood is a remedy, if there is one.
func (t *trainer) lastGood() string {
	if path := t.dir.Newest(); path != "" {
		return "; the state before it is in " + path
	}
	return ""
}

// resume continues where the newest checkpoint that can be read left off, and removes what is newer, what is older than
// those to keep, and what was half written. Where there is no checkpoint, the run starts at step 0.
func (t *trainer) resume() error {
	if t.dir.Found() != "" {
		t.note("%s", t.dir.Found())
	}
	if err := t.dir.RemoveHalves(); err != nil {
		return err
	}
	names, err := t.dir.Checkpoints()
	if err != nil {
		return err
	}
	for i, name := range slices.Backward(names) {
		tensors, meta, err := t.dir.LoadCheckpoint(name)
		if errors.Is(err, fs.ErrPermission) {
			return err // the file may be whole, and going on would remove it
		}
		if err != nil {
			t.note("%v; passing it over", err)
			continue
		}
		at, err := t.fits(tensors, meta)
		if err != nil {
			return fmt.Errorf("resume %s: %w", t.dir.File(name), err)
		}
		epochs, err := t.dir.CutMetrics(at.MetricsBytes, at.MetricsXXH3)
		if err == nil && len(epochs) != at.Epochs {
			err = fmt.Errorf("%s has %d epochs where the checkpoint has %d; restore it, or begin another run with --run",
				t.dir.File(run.MetricsFile), len(epochs), at.Epochs)
		}
		if err == nil {
			err = t.optim.Restore(at.Updates, tensors)
		}
		if err != nil {
			return fmt.Errorf("resume %s: %w", t.dir.File(name), err)
		}
		t.adopt(tensors, at, epochs)
		if err := t.dir.RemoveCheckpoints(names[i+1:]); err != nil {
			return err
		}
		return t.dir.RemoveCheckpoints(names[:max(0, i+1-t.KeepCheckpoints)]) // the kill may have come before their removal
	}
	if len(names) > 0 {
		return fmt.Errorf("resume %s: none of its checkpoints can be read; remove %s to start at step 0",
			t.dir.Path(), t.dir.File(run.CheckpointDir))
	}
	t.note("no checkpoint to resume from: starting at step 0")
	if init := t.record.Options.Init; init != "" {
		if err := t.startFrom(init); err != nil {
			return err
		}
	}
	_, err = t.dir.CutMetrics(0, "")
	return err
}

// fits refuses a checkpoint of another dataset, another model or other draws, and reads its progress.
func (t *trainer) fits(tensors []checkpoint.Tensor, meta map[string]string) (at progress, err error) {
	if seal := meta[sealKey]; seal != t.result.Seal {
		return at, fmt.Errorf("it is of a dataset with seal %q, and %s has %s", seal, t.data.Set.Path(), t.result.Seal)
	}
	if kind := meta[modelKey]; kind != string(t.Kind) {
		return at, fmt.Errorf("it is of a %q model, and --model is %s", kind, t.Kind)
	}
	if seed := meta[seedKey]; seed != strconv.FormatUint(t.Seed, 10) {
		return at, fmt.Errorf("it is of a run with seed %s, and --seed is %d", seed, t.Seed)
	}
	if err := t.fitsRecord(meta); err != nil {
		return at, err
	}
	if err := json.Unmarshal([]byte(meta[progressKey]), &at); err != nil {
		return at, fmt.Errorf("no progress to resume from: %s: %w", progressKey, err)
	}
	if err := at.valid(t.steps()); err != nil {
		return at, fmt.Errorf("no progress to resume from: %s: %w; remove the file to resume from the one before it",
			progressKey, err)
	}
	if err := t.fitsDraws(meta, at.Updates); err != nil {
		return at, err
	}
	if _, err = t.pick(tensors, ""); err == nil && at.HasBest {
		_, err = t.pick(tensors, bestPrefix)
	}
	return at, err
}

// fitsRecord refuses a checkpoint of a run with other options.
func (t *trainer) fitsRecord(meta map[string]string) error {
	saved, err := run.RecordIn(meta)
	if err != nil {
		return err
	}
	if saved == nil {
		t.note("the checkpoint is of an earlier version, which kept no options in it: those of %s are taken as they are", run.RecordFile)
		return nil
	}
	if differs := t.record.Options.Differs(saved.Options); differs != "" {
		return fmt.Errorf("%s; remove whichever is not of this run", differs)
	}
	return nil
}

// fitsDraws refuses a checkpoint whose batches are not those of the run, or stand elsewhere in them.
func (t *trainer) fitsDraws(meta map[string]string, updates int) error {
	text, ok := meta[scheduleKey]
	if !ok { // independent batches were all there was
		err := drawing{t.Seed, 1, t.Dependent, updates}.goesOn(t.drawingAt(updates))
		if err == nil && t.Kind.All() != 0 {
			t.note("the checkpoint is of an earlier version, which drew other batches: " +
				"the run does not end as it would have there")
		}
		return err
	}
	var d drawing
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return fmt.Errorf("no schedule to draw by: %s: %w; remove the file to resume from the one before it",
			scheduleKey, err)
	}
	return d.goesOn(t.drawingAt(updates))
}

// valid refuses counts that no run of steps an epoch comes to. Earlier versions had no checksum on them, so they may be anything.
func (p progress) valid(steps int) error {
	if p.Epochs < 0 || p.Epochs > p.Updates || p.Partial.Steps < 0 || p.Partial.Steps > steps ||
		p.Updates != p.Epochs*steps+p.Partial.Steps {
		return fmt.Errorf("%d updates cannot be %d epochs of %d and %d more", p.Updates, p.Epochs, steps, p.Partial.Steps)
	}
	if p.Worse < 0 || p.MetricsBytes < 0 {
		return fmt.Errorf("%d evaluations since the best, and %d bytes of metrics", p.Worse, p.MetricsBytes)
	}
	if best := p.SoFar.Best.Epoch; best < 0 || best > p.Epochs || p.HasBest != (best > 0) {
		return fmt.Errorf("the best epoch is %d of %d", best, p.Epochs)
	}
	return nil
}

// pick finds a tensor for each parameter, by name behind prefix, and checks its shape.
func (t *trainer) pick(tensors []checkpoint.Tensor, prefix string) ([]checkpoint.Tensor, error) {
	byName := map[string]checkpoint.Tensor{}
	for _, x := range tensors {
		byName[x.Name] = x
	}
	var picked []checkpoint.Tensor
	for _, p := range t.model.Params {
		x, ok := byName[prefix+p.Name]
		if !ok {
			return nil, fmt.Errorf("it has no tensor %s: it is of another model", prefix+p.Name)
		}
		if !slices.Equal(x.Shape, p.Shape) {
			return nil, fmt.Errorf("tensor %s is %v and the model's is %v: it is of another model", x.Name, x.Shape, p.Shape)
		}
		x.Name = p.Name
		picked = append(picked, x)
	}
	return picked, nil
}

// adopt takes over a state that fits.
func (t *trainer) adopt(tensors []checkpoint.Tensor, at progress, epochs []run.Epoch) {
	picked := func(prefix string) []checkpoint.Tensor {
		found, err := t.pick(tensors, prefix)
		if err != nil {
			panic("train: adopt before fits: " + err.Error())
		}
		return found
	}
	t.restore(picked(""))
	if at.HasBest {
		t.best = picked(bestPrefix)
	}
	t.saved = at.Updates
	t.partial, t.worse = at.Partial, at.Worse
	now := t.result
	t.result = &at.SoFar
	t.result.Run, t.result.Dataset, t.result.Options = now.Run, now.Dataset, now.Options
	t.result.Kernels, t.result.DiskEngine, t.result.Memory = now.Kernels, now.DiskEngine, now.Memory
	t.result.Status, t.result.Error = run.Running, ""
	t.result.Best.Metric = t.task.kind // which an earlier version called accuracy
	t.result.Epochs, t.result.Losses = epochs, []float64{}
	for _, e := range epochs {
		t.result.Losses = append(t.result.Losses, e.Loss)
	}
	t.before = before{stats: at.SoFar.Stats, stages: at.SoFar.Stages, evaluated: at.SoFar.Evaluation.Disk}
	t.peak.rss, t.peak.file = at.SoFar.PeakRSSBytes, at.SoFar.PeakFileBytes
}

// startFrom reads the weights that a run begins with: a safetensors file under this model's names, other tensors in it
// ignored.
func (t *trainer) startFrom(path string) error {
	tensors, _, err := checkpoint.Load(vfs.Default, path)
	if err != nil {
		return err
	}
	weights, err := t.pick(tensors, "")
	if err != nil {
		return fmt.Errorf("--init %s: %w", path, err)
	}
	for _, w := range weights {
		if i := notFinite(w.Data); i >= 0 {
			return fmt.Errorf("--init %s: weight %s[%d] is %v: it is no network that works", path, w.Name, i, w.Data[i])
		}
	}
	t.restore(weights)
	return nil
}

// meta says what a file of weights belongs to.
func (t *trainer) meta() map[string]string {
	return map[string]string{
		epochsKey: strconv.Itoa(len(t.result.Epochs)), stepsKey: strconv.Itoa(t.optim.Steps()), sealKey: t.result.Seal,
		modelKey: string(t.Kind), seedKey: strconv.FormatUint(t.Seed, 10),
	}
}

func (t *trainer) weights() []checkpoint.Tensor {
	var ts []checkpoint.Tensor
	for _, p := range t.model.Params {
		ts = append(ts, t.download(p.Name, p.Shape, p.Value))
	}
	return ts
}

func (t *trainer) restore(weights []checkpoint.Tensor) {
	for i, p := range t.model.Params {
		t.be.UploadF32(p.Value, weights[i].Data)
	}
}

func (t *trainer) download(name string, shape []int, v kernels.Tensor) checkpoint.Tensor {
	host := make([]float32, v.Len())
	t.be.DownloadF32(host, v)
	return checkpoint.Tensor{Name: name, Shape: shape, Data: host}
}

// paramsHash is XXH3-64 over the weights as they are.
func (t *trainer) paramsHash() string {
	var b []byte
	for _, w := range t.weights() {
		for _, x := range w.Data {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return fmt.Sprintf("%016x", xxh3.Hash(b))
}
