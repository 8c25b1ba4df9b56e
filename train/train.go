package train

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

// Hooks tell the caller how a run goes; nil ones are not called. They run between steps, so they should be quick.
type Hooks struct {
	Start func(*RunRecord)
	Step  func(epoch, step, steps int, loss float64)
	Epoch func(Epoch)
	Note  func(string) // something that the user should know, once
}

// Status of a run.
const (
	Running      = "running"
	Done         = "done"
	StoppedEarly = "stopped early"
	Interrupted  = "interrupted"
	Failed       = "failed"
	Died         = "died" // what ReadRun says of a run that says Running and is not
)

// Run trains on ds and evaluates, in the run directory that newDir makes once the options are known to fit the dataset;
// version is recorded. When ctx ends, the run stops at the next step boundary, writes a checkpoint and returns its result
// so far, Status Interrupted, without an error. On an error the directory holds what finished before, and the error.
func Run(ctx context.Context, ds *store.Dataset, newDir func() (*RunDir, error), o Options, version string, h Hooks) (_ *Result, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t, err := newTrainer(ds, o, h)
	if err != nil {
		return nil, err
	}
	defer t.close()
	if t.dir, err = newDir(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.dir.Close()) }()
	t.result.Run = t.dir.Path()
	record := &RunRecord{
		Dataset: ds.Path(), Seal: ds.Manifest().Seal, Options: o, Kernels: t.be.Name(), DiskEngine: t.result.DiskEngine,
		Evaluation: t.eval.method(), Version: version, Host: thisHost(), Started: time.Now().UTC().Truncate(time.Second),
	}
	if err := t.dir.writeJSON(recordFile, record); err != nil {
		return nil, err
	}
	if h.Start != nil {
		h.Start(record)
	}
	t.notes()
	if err := t.run(ctx); err != nil {
		t.result.Status, t.result.Error = Failed, err.Error()
		t.snapshot()
		return nil, errors.Join(err, t.dir.writeJSON(resultFile, t.result))
	}
	return t.result, t.dir.writeJSON(resultFile, t.result)
}

// trainer is the state of a run.
type trainer struct {
	Options
	dir   *RunDir
	hooks Hooks
	data  *data
	be    kernels.Backend
	stack *cachetier.Stack // for training
	plain *cachetier.Stack // for evaluation: no caches
	model *model.Model
	adam  *adam
	tape  *tape.Tape
	feed  *feed
	eval  *evaluator

	losses []float32 // of the rows of a step
	labels []uint32
	peak   memoryPeak
	best   []checkpoint.Tensor // weights of the best epoch
	worse  int                 // evaluations since then
	result *Result
}

func newTrainer(ds *store.Dataset, o Options, h Hooks) (_ *trainer, err error) {
	t := &trainer{Options: o, hooks: h, be: kernels.NewCPU(kernels.CPUOptions{Set: kernels.Set(o.Kernels)})}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.data, err = selectData(ds, o.Split); err != nil {
		return nil, err
	}
	if t.stack, err = cachetier.Open(t.data.features, o.Cache); err != nil {
		return nil, err
	}
	if t.plain, err = cachetier.Open(t.data.features, cachetier.Options{Engine: o.Cache.Engine, Readers: o.Cache.Readers}); err != nil {
		return nil, err
	}
	t.model = model.New(t.be, o.Config, t.data.features.Dim(), t.data.labels.Classes(), o.Seed)
	t.adam = newAdam(t.be, t.model, o.LR, o.WeightDecay)
	t.tape = tape.New(t.be)
	t.feed = &feed{be: t.be}
	t.eval = newEvaluator(t.data, t.model, t.be, t.plain, &t.peak, o)
	engine, why := t.stack.Engine()
	t.result = &Result{
		Dataset: ds.Path(), Seal: ds.Manifest().Seal, Options: o, Kernels: t.be.Name(), Seed: o.Seed,
		Status: Running, Epochs: []Epoch{}, Losses: []float64{}, DiskEngine: fmt.Sprintf("%s (%s)", engine, why),
		Evaluation: Evaluation{Method: t.eval.method()},
	}
	return t, nil
}

func (t *trainer) close() {
	if t.eval != nil {
		t.eval.close()
	}
	if t.feed != nil {
		t.feed.close()
	}
	if t.tape != nil {
		t.tape.Close()
	}
	if t.adam != nil {
		t.adam.close()
	}
	if t.model != nil {
		t.model.Close()
	}
	for _, s := range []*cachetier.Stack{t.plain, t.stack} {
		if s != nil {
			s.Close()
		}
	}
}

func (t *trainer) notes() {
	note := func(format string, args ...any) {
		if t.hooks.Note != nil {
			t.hooks.Note(fmt.Sprintf(format, args...))
		}
	}
	if t.data.unlabelled > 0 {
		note("%d nodes of the split have no label and are left out", t.data.unlabelled)
	}
	if t.Batch > len(t.data.train) {
		note("the batch of %d holds all %d training nodes: an epoch is one step", t.Batch, len(t.data.train))
	}
	if len(t.data.valid) == 0 {
		note("the split has no validation nodes: no model is chosen, and the last one is tested")
	}
	if t.eval.method() == "sampled" {
		note("full-neighbour evaluation could need more than %d bytes: evaluating on sampled blocks of up to %d nodes a part",
			t.EvalBytes, t.EvalNodes)
	}
}

// run is the loop over epochs, and the test of the model they chose.
func (t *trainer) run(ctx context.Context) error {
	err := t.epochs(ctx)
	if err == nil {
		err = t.testBest(ctx)
	}
	if ended(ctx, err) {
		t.result.Status = Interrupted
		err = t.saveLast()
	}
	t.result.ParamsXXH3 = t.paramsHash()
	t.snapshot()
	return err
}

// ended tells an error that is the end of ctx, which is no failure.
func ended(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err())
}

func (t *trainer) epochs(ctx context.Context) error {
	loader := newLoader(t.data, t.samplerFanouts(), t.Workers)
	seeds := make([]uint32, len(t.data.train))
	for n := 1; n <= t.Epochs; n++ {
		copy(seeds, t.data.train)
		sample.Shuffle(seeds, t.Seed, n)
		epoch, err := t.epoch(ctx, loader, seeds, n)
		if err != nil {
			return err
		}
		if n%t.EvalEvery == 0 || n == t.Epochs {
			err = t.validate(ctx, &epoch)
		}
		if err != nil && !ended(ctx, err) {
			return err
		}
		if err := errors.Join(err, t.finish(epoch)); err != nil {
			return err // an epoch counts though its evaluation was interrupted
		}
		if t.Patience > 0 && t.worse >= t.Patience && n < t.Epochs {
			t.result.Status = StoppedEarly
			return nil
		}
	}
	t.result.Status = Done
	return nil
}

// epoch trains on all seeds once.
func (t *trainer) epoch(ctx context.Context, loader *loader, seeds []uint32, n int) (Epoch, error) {
	e := Epoch{Epoch: n, Steps: (len(seeds) + t.Batch - 1) / t.Batch}
	before := t.stack.Stats()
	start := time.Now()
	var loss float64
	var right int
	waiting := start
	z := func(step int) uint64 { return sample.StepSeed(t.Seed, n, step) }
	err := loader.epoch(ctx, seeds, t.Batch, z, func(step int, b *sample.Batch) error {
		t.result.Seconds.Wait += time.Since(waiting).Seconds()
		sum, ok, err := t.step(b, z(step))
		if err != nil {
			return err
		}
		if math.IsNaN(sum) || math.IsInf(sum, 0) {
			return fmt.Errorf("epoch %d, step %d: the loss is %v; lower --lr, or look at the features", n, step+1, sum)
		}
		loss += sum
		right += ok
		t.peak.look()
		if t.hooks.Step != nil {
			t.hooks.Step(n, step+1, e.Steps, sum/float64(len(b.Seeds)))
		}
		waiting = time.Now()
		if step == e.Steps-1 {
			return nil // the epoch is whole
		}
		return ctx.Err()
	})
	e.Seconds = time.Since(start).Seconds()
	e.Loss = loss / float64(len(seeds))
	e.TrainAcc = float64(right) / float64(len(seeds))
	read := t.stack.Stats().Sub(before)
	e.InputRows, e.DiskBytes = read.InputRows, read.Disk.BytesRead
	if read.InputRows > 0 {
		e.HitRate = 1 - float64(read.Disk.Rows)/float64(read.InputRows)
	}
	return e, err
}

// step is one update: gather, forward, backward, Adam. It returns the sum of the seeds' losses and how many were right.
func (t *trainer) step(b *sample.Batch, key uint64) (loss float64, right int, err error) {
	start := time.Now()
	x, err := t.feed.gather(t.stack, t.data, b.Inputs())
	if err != nil {
		return 0, 0, err
	}
	gathered := time.Now()
	t.result.Seconds.Gather += gathered.Sub(start).Seconds()

	graphs := t.feed.blocks(b.Blocks)
	if t.labels, err = t.data.classes(t.labels[:0], b.Seeds); err != nil {
		return 0, 0, err
	}
	labels := t.feed.upload(t.labels)
	t.tape.Reset(true)
	logits := t.model.Forward(t.tape, t.tape.Leaf(x), graphs, key|1)
	rows := t.tape.CrossEntropy(logits, labels, 1/float32(len(b.Seeds)))
	t.losses = append(t.losses[:0], make([]float32, rows.Rows)...)
	t.be.DownloadF32(t.losses, rows)
	for _, l := range t.losses {
		loss += float64(l)
	}
	right = t.feed.correct(logits.Value, t.labels)
	t.tape.Backward()
	t.adam.step(t.model)
	t.result.Seconds.Step += time.Since(gathered).Seconds()
	return loss, right, nil
}

// validate measures the epoch and remembers its weights when they are the best so far.
func (t *trainer) validate(ctx context.Context, e *Epoch) error {
	start := time.Now()
	defer func() { t.result.Evaluation.Seconds += time.Since(start).Seconds() }()
	if t.EvalTest == "epoch" {
		acc, ok, err := t.eval.accuracy(ctx, t.data.test)
		if err != nil {
			return err
		}
		if ok {
			e.TestAcc = &acc
		}
	}
	acc, ok, err := t.eval.accuracy(ctx, t.data.valid)
	if err != nil || !ok {
		return err
	}
	e.ValidAcc = &acc
	if best := t.result.Best.ValidAcc; best != nil && acc <= *best {
		t.worse++
		return nil
	}
	t.worse = 0
	t.result.Best = Best{Epoch: e.Epoch, ValidAcc: &acc, TestAcc: e.TestAcc}
	t.best = t.weights()
	return nil
}

// testBest measures the test set with the weights that validation chose, or with the last ones, which it leaves in place.
func (t *trainer) testBest(ctx context.Context) error {
	if len(t.result.Epochs) == 0 || t.result.Best.TestAcc != nil {
		return nil
	}
	start := time.Now()
	last := t.weights()
	if t.best != nil {
		t.restore(t.best)
		defer t.restore(last)
	}
	acc, ok, err := t.eval.accuracy(ctx, t.data.test)
	if err != nil || !ok {
		return err
	}
	t.result.Best.TestAcc = &acc
	if n := t.result.Best.Epoch; n > 0 {
		t.result.Epochs[n-1].TestAcc = &acc
	}
	t.result.Evaluation.Seconds += time.Since(start).Seconds()
	return nil
}

// finish adds the epoch to the result and to the run directory.
func (t *trainer) finish(e Epoch) error {
	t.result.Epochs = append(t.result.Epochs, e)
	t.result.Losses = append(t.result.Losses, e.Loss)
	t.snapshot()
	if err := t.saveLast(); err != nil {
		return err
	}
	if t.result.Best.Epoch == e.Epoch {
		if err := t.dir.saveCheckpoint(bestFile, t.best, t.meta()); err != nil {
			return err
		}
	}
	soFar := *t.result
	soFar.Epochs, soFar.Losses = nil, nil
	if err := t.dir.appendMetrics(metricsLine{e, soFar}); err != nil {
		return err
	}
	if t.hooks.Epoch != nil { // last: who is told of an epoch may rely on its record
		t.hooks.Epoch(e)
	}
	return nil
}

// snapshot brings the result's counters up to now.
func (t *trainer) snapshot() {
	t.result.Stats = t.stack.Stats()
	t.result.Evaluation.Disk = t.plain.Stats().Disk
	t.peak.look()
	t.result.PeakRSSBytes, t.result.PeakFileBytes = t.peak.rss, t.peak.file
}

// saveLast writes weights and optimizer as they are.
func (t *trainer) saveLast() error {
	state := t.weights()
	for i, p := range t.model.Params {
		state = append(state, t.download("adam.exp_avg."+p.Name, p.Shape, t.adam.first[i]),
			t.download("adam.exp_avg_sq."+p.Name, p.Shape, t.adam.sec[i]))
	}
	return t.dir.saveCheckpoint(lastFile, state, t.meta())
}

// meta says what a checkpoint belongs to. Steps beyond the whole epochs are those of an interrupted one.
func (t *trainer) meta() map[string]string {
	return map[string]string{
		"gnnstore.epochs": strconv.Itoa(len(t.result.Epochs)), "gnnstore.steps": strconv.Itoa(t.adam.steps),
		"gnnstore.dataset_seal": t.result.Seal, "gnnstore.model": string(t.Kind), "gnnstore.seed": strconv.FormatUint(t.Seed, 10),
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
