package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/step"
)

// Hooks connects a run to its caller: the backend to compute on, and optional callbacks. A nil
// callback is skipped. Callbacks run between steps, so they should be quick.
type Hooks struct {
	// Backend computes, and stays the caller's. Default: the run opens a backend of Options.Device,
	// on the CPU with the kernels that Options.Kernels names, and closes it.
	Backend kernels.Backend

	Start func(*Record)
	Step  func(epoch, step, steps int, loss float64)
	Epoch func(Epoch)
	Note  func(string) // something that the user should know, once
	// Pass gets the progress of a pass over events without learning: done of all events. what is
	// the name of the pass, one of the constants below.
	Pass func(what string, done, all int64)
	// Text replaces the option keys in a text, which this package's comment describes, by the
	// user's names for them. It is applied to recorded texts: Result.Error and the texts of
	// AutoEpochs. nil leaves texts as they are.
	Text func(string) string
	// Live is called once the run is on record. now returns the result so far, or the final result.
	// Several goroutines may call now at any time until stop returns, and it costs the run nothing.
	// stop is called when the run has ended and before its directory is given up.
	Live func(now func() *Result) (stop func())
	// OpenRows opens a file of Options.InitRows. ids finds the nodes of its rows.
	OpenRows func(path string, ids store.IDs) (RowFile, error)
	// Group has the workers that train the run together; nil: one worker does. Each of them makes
	// a run of its own of the same options, and the caller ends it with Group.Leave.
	Group *dist.Group
	// RandomPartners, if not 0, makes Options.Mitigate blend with nodes drawn by this key, and not
	// with similar ones. It is a control for studies, and does not go on record.
	RandomPartners uint64
}

// Names of passes in Hooks.Pass.
const (
	WarmUpPass = "warm-up" // before the first step of an epoch
	JudgePass  = "validation"
	ReplayPass = "replay" // after the last epoch
)

// RowFile is a file of rows for nodes of one type. It names the nodes by their original ids.
type RowFile interface {
	Cols() int
	// Each calls use with rows, some at a time in the order of the file, and with the stored
	// numbers of their nodes. Both slices are lent for the length of the call.
	Each(ctx context.Context, use func(nodes []store.NodeID, rows []float32) error) error
	Close() error
}

// Workload is the training of a network on a graph or on a stream of events. A Driver calls its
// methods one at a time, in about the order below, but not all on one goroutine: Train may call
// done on another.
//
// An error before Started ends the run, and does not go on record. Later errors end the run, too:
// they may lead to a checkpoint, if the state allows one, and the result has them, unless it was
// only that ctx ended.
type Workload interface {
	AsDriver() *Driver // the one that the workload embeds

	// Place has the workload keep its files in the run directory, Driver.Dir. The run is not on
	// record yet. Room is called for a new run alone. It returns an error if the disk has too
	// little room for those files.
	Place(ctx context.Context) error
	Room() error
	// Complete takes the recorded options of a run that is resumed, and fills in the ones that the
	// data decides.
	Complete(o Options) Options
	// Describe sets the fields of r that only the workload knows. It is called before Room and
	// Complete. A run that is resumed takes over some of these fields.
	Describe(r *Record)
	// Fresh initialises all state but the weights, for step 1 of a run that has no checkpoint.
	Fresh(ctx context.Context) error
	// Started gives the notes about the run, once it is on record and Hooks.Start has returned.
	// Ready prepares for the steps of this process.
	Started()
	Ready(ctx context.Context) error

	// Begin prepares for the remaining steps of an epoch, from Driver.Partial.Steps on. In a run
	// that is resumed there may be none.
	//
	// Train takes the steps of s in order. It calls done after each, once the weights have changed;
	// read counts what the step read. An error of done ends Train, which returns it. While Train
	// runs, done may call Counter and Report, and unless About.Pauses is set it may make a
	// checkpoint, and so call Parts and Retain.
	Begin(ctx context.Context, epoch int) error
	Train(ctx context.Context, s Span, done func(a step.Tally, read cachetier.Stats) error) error
	// Trained returns the metric of an epoch's training batches. a is the tally of all its steps.
	Trained(a step.Tally) float64
	// Validate is called after the last step of an epoch, if that epoch is evaluated. It sets the
	// figures of e, and keeps the weights in Driver.Best if they are the best so far. It may call
	// Driver.Checkpoint before it changes other state.
	//
	// Test is called after the last epoch, unless Options.EvalTest is TestNone. It measures the
	// weights that validation chose, or else the last ones. Afterwards the last ones are in place.
	Validate(ctx context.Context, e *Epoch) error
	Test(ctx context.Context) error
	// Remark gives the notes about an epoch, before its metrics go on record. AtRest is called
	// while no stage runs: after the checkpoint at the end of an epoch, and before the checkpoint
	// of a run that is cut short.
	Remark(e Epoch)
	AtRest()

	// Parts returns the workload's parts of a checkpoint, which come after the Driver's. progress
	// is at, or a pointer to a struct that embeds at; the checkpoint has it as JSON. A part's Save
	// may set fields of that struct, but at itself is still empty then: the Driver sets it after
	// all parts are saved. On resuming, progress is read before any part is checked.
	Parts(at *Progress) (parts checkpoint.Parts, progress any)
	// Retain follows each new checkpoint. It frees the state of checkpoints that were removed.
	Retain(ctx context.Context) error
	// Restore is called after the parts of a checkpoint were loaded. It restores state that lies in
	// files beside the checkpoint. If it fails, no other checkpoint is removed. Otherwise newer and
	// surplus ones are removed, and then Resumed gets the names of those that are left.
	Restore(ctx context.Context) error
	Resumed(ctx context.Context, names []string) error
	// Hash returns the hash of the last weights, for Result.ParamsXXH3. failed is the error of the
	// run, or nil. Hash returns failed, or if that is nil its own error. It is called in every run
	// that has started.
	Hash(ctx context.Context, failed error) (string, error)

	// Stages returns the times of the pipeline's stages in this process. The Driver takes the
	// difference over the steps of an epoch, so times of other work need not be in it.
	Stages() pipeline.Stats
	// Counter copies the counters of training. The function that it returns sets them in r, and
	// the counters of the stages as of its own call. It returns the times of the stages in
	// training, and the number of reads under way. Several goroutines may call that function at any
	// time, also during steps.
	Counter() func(r *Result) (stages pipeline.Stats, underWay int)
	// Report sets the other fields of r that change with each step. Where such a field is a
	// pointer, Report replaces it: other goroutines may be reading the old value.
	Report(r *Result)

	// Close gives up all that the workload has opened.
	Close()
}

// Span is a range of steps of an epoch: From to To-1. Epochs count from 1, steps from 0.
type Span struct{ Epoch, From, To int }

// About describes a workload. It does not change during a run.
type About struct {
	Dataset *store.Dataset
	// TrainedOn returns the contents of TrainedOnFile; nil: the run has no such file.
	TrainedOn func() ([]byte, error)
	Weights   *model.Parameters
	Optim     *optim.Optimizer
	Steps     int // in an epoch
	Pass      int // steps through all examples, where Round cut the epoch; else 0 or Steps
	Metric    metric.Kind
	Validates bool   // there are examples to choose a model by
	Pauses    bool   // a checkpoint within an epoch is made between two calls of Train
	Progress  string // key of the progress in a checkpoint's metadata
	// Own has further keys of the metadata: of state that each of several workers has in files of
	// its own.
	Own        []string
	Evaluation string // method of evaluation
	Engine     string // disk engine
	Costs      disk.Costs
	Memory     plan.Budget
}

// Driver runs a Workload in a run directory. It puts the run on record, trains epoch by epoch,
// writes metrics and checkpoints, resumes from them, and ends with a result. A workload embeds one.
type Driver struct {
	Options
	Hooks   Hooks
	Backend *kernels.Sizing // set by OpenBackend, until CloseBackend
	Dir     *Dir            // nil in a plan
	Record  *Record         // each checkpoint has it
	Result  *Result
	Ends    Ending
	Partial Partial // the epoch under way
	Peak    Peak
	Best    []checkpoint.Tensor // weights of the best epoch
	// Torn is set while a step has changed only some of the state. No checkpoint can be made then.
	Torn bool

	device string        // as the record has it
	opened bool          // Backend was opened by OpenBackend
	locked *LockedMemory // nil where the backend locks nothing; Slots is asked for anew
	bus    busMeter
	about  About
	work   Workload
	saved  int  // updates in the newest checkpoint, -1 before
	blown  bool // a note said that the loss is far too large
	shown  View

	waited   float64 // seconds in exchanges, before this process
	sent     int64   // bytes, likewise
	followed []Epoch // of worker 0, where this one follows and is resumed
}

// OpenBackend sets d.Backend: the caller's, or the one of Options.Device.
func (d *Driver) OpenBackend() (err error) {
	if err := errors.Join(validateDevice(d.Device), validateMatMul(d.MatMul, d.Device)); err != nil {
		return err
	}
	d.device, _ = kernels.ParseDevice(d.Device)
	be := d.Hooks.Backend
	if d.opened = be == nil; d.opened {
		be, err = kernels.Open(kernels.Options{Device: d.device, Set: kernels.Set(d.Kernels), Products: d.MatMul})
		switch {
		case err != nil && d.device == kernels.CPUDevice:
			return fmt.Errorf("{kernels}: %w", err)
		case errors.Is(err, kernels.ErrNoTF32):
			return fmt.Errorf("{matmul} %s: %w; or take {matmul} f32", d.MatMul, err)
		case err != nil:
			return fmt.Errorf("{device} %s: %w; compute on the CPU with {device} cpu", d.device, err)
		}
	}
	d.Backend = kernels.NewSizing(be)
	return nil
}

// CloseBackend closes the backend that OpenBackend opened, once its buffers are freed.
func (d *Driver) CloseBackend() {
	if d.Backend == nil || !d.opened {
		return
	}
	_ = d.Backend.Close() // a device that has failed cannot be closed; the end of the process gives all back
	d.opened = false
}

// CheckMemory refuses a network whose weights do not fit in memory. weights returns their number
// for a hidden width. If choose is set, the error names a width that fits. Without this check the
// allocation would succeed, and the system would kill the process once it writes to the pages.
func (d *Driver) CheckMemory(weights func(hidden int) int64, choose bool) error {
	// Four numbers of four bytes a weight: its value, its gradient, its two moments.
	need := func(hidden int) int64 { return 16 * weights(hidden) * int64(d.Hooks.Group.Hosted()) }
	available, err := kernels.AvailableMemory()
	if err != nil || need(d.Hidden) <= available {
		return nil // it fits; or the memory is not known, and the system decides
	}
	remedy := "use a machine with more memory"
	if choose {
		remedy = "use fewer layers"
		width := d.Hidden / 2
		for width > 0 && need(width) > available {
			width /= 2
		}
		if width > 0 {
			remedy = fmt.Sprintf("{hidden} %d fits, or %s", width, remedy)
		}
	}
	return fmt.Errorf("{model} %s, {hidden} %d: its weights take %d MiB with their gradients and moments, and %d MiB of memory are available; %s",
		d.Kind, d.Hidden, need(d.Hidden)>>20, available>>20, remedy)
}

// Prepare describes the workload, which is open, and makes d.Result. Call it before all other
// methods but OpenBackend and CheckMemory.
func (d *Driver) Prepare(a About) {
	d.about, d.saved = a, -1
	validated := ""
	if a.Validates {
		validated = string(a.Metric)
	}
	d.Ends = d.Options.Ending(a.Steps, a.Pass, validated, d.Text)
	d.Result = &Result{
		Dataset: a.Dataset.Place(), Seal: a.Dataset.Manifest().Whole(), Options: d.Options, Seed: d.Seed,
		Device: d.device, DeviceName: kernels.DeviceName(d.Backend), Kernels: d.Backend.Name(), DiskEngine: a.Engine,
		Memory: MemoryOf(a.Memory),
		Status: Running, Epochs: []Epoch{}, Losses: []float64{},
		Metric: a.Metric, Best: Best{Metric: a.Metric}, Evaluation: Evaluation{Method: a.Evaluation},
	}
}

// Note tells the user something, once.
func (d *Driver) Note(format string, args ...any) {
	if d.Hooks.Note != nil {
		d.Hooks.Note(fmt.Sprintf(format, args...))
	}
}

// Text returns s for the record: see Hooks.Text.
func (d *Driver) Text(s string) string {
	if d.Hooks.Text != nil {
		return d.Hooks.Text(s)
	}
	return s
}

// Updates returns the number of steps since the run began.
func (d *Driver) Updates() int { return d.about.Optim.Steps() }

// Rate returns the learning rate of the next step.
func (d *Driver) Rate() float64 {
	return d.Schedule.Rate(d.LR, d.Updates(), d.Ends.Most()*d.about.Steps, d.about.Steps)
}

// Start opens a workload of o, trains it in the run directory that openDir gives, and closes both.
// If the directory holds a run, Start resumes it. version goes on record.
func Start(
	ctx context.Context, o Options, open func() (Workload, error), openDir func() (*Dir, error), version string,
) (_ *Result, err error) {
	defer kernels.RecoverMemory(&err)
	if err := o.Validate(); err != nil {
		return nil, err
	}
	w, err := open()
	if Ended(ctx, err) {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	defer w.Close()
	d := w.AsDriver()
	d.work = w
	return d.run(ctx, openDir, version)
}

// AsDriver returns d. A Workload that embeds d has this method, too.
func (d *Driver) AsDriver() *Driver { return d }

// run trains the workload, which Prepare described, in the run directory that openDir gives.
func (d *Driver) run(
	ctx context.Context, openDir func() (*Dir, error), version string,
) (_ *Result, err error) {
	if d.Init != "" {
		if err := d.startFrom(d.Init); err != nil {
			return nil, err
		}
	}
	if d.Dir, err = d.openDirs(ctx, openDir); err != nil {
		return nil, err
	}
	defer func() { err = d.Dir.Explain(errors.Join(err, d.Dir.Close())) }()
	defer d.Peak.Watch()()
	d.Result.Run = d.Dir.Path()
	if err := d.begin(ctx, version); Ended(ctx, err) {
		return nil, ctx.Err()
	} else if err != nil {
		return nil, err
	}
	defer d.shown.Serve(d.Hooks.Live, d.look)()
	if err := d.train(ctx); err != nil {
		return nil, d.Dir.Fail(d.Result, err, d.Text(err.Error()))
	}
	return d.Result, d.Dir.WriteResult(d.Result)
}

// begin puts the start of a new run on record and initialises its state, or restores the state of a
// run that is resumed and puts the resumption on record.
func (d *Driver) begin(ctx context.Context, version string) error {
	if err := d.work.Place(ctx); err != nil {
		return err
	}
	if err := d.meet(ctx, version); err != nil {
		return err
	}
	a := &d.about
	now := &Record{
		Dataset: d.Result.Dataset, Seal: d.Result.Seal, Options: d.Options, AutoEpochs: d.Ends.Auto,
		Device: d.device, DeviceName: d.Result.DeviceName, Kernels: d.Backend.Name(), DiskEngine: a.Engine,
		Costs: a.Costs, Memory: a.Memory, Evaluation: a.Evaluation,
		Version: version, Host: thisHost(), Started: time.Now().UTC().Truncate(time.Second),
	}
	if g := d.Hooks.Group; g.Size() > 1 {
		now.Workers, now.Peers = g.Size(), g.Peers()
	}
	now.Locked = d.lockedSoFar()
	d.Result.Locked = now.Locked
	d.work.Describe(now)
	record, err := d.Dir.begin(beginning{
		Now:     now,
		Options: d.work.Complete,
		Room:    d.work.Room,
		Resume: func(r *Record) (int, error) {
			d.Record = r
			err := d.resume(ctx)
			return d.Updates(), err
		},
		Note:      d.Note,
		Encodings: d.about.Dataset.EncodingsText,
		TrainedOn: d.about.TrainedOn,
	})
	if err != nil {
		return err
	}
	d.Record, d.Ends.Auto = record, record.AutoEpochs
	d.Result.Options, d.Result.AutoEpochs = record.Options, record.AutoEpochs
	if d.Dir.Record() == nil { // else resume has set the state
		if err := d.work.Fresh(ctx); err != nil {
			return err
		}
	}
	if d.Hooks.Start != nil {
		d.Hooks.Start(record)
	}
	d.work.Started()
	d.noteLocked()
	return nil
}

// train trains all epochs, tests, and saves the last weights.
func (d *Driver) train(ctx context.Context) error {
	err := d.epochs(ctx)
	if err != nil {
		err = d.tellWorkers(ctx, err)
	}
	err = d.Dir.cutShort(ctx, d.Result, err, d.Torn || d.apart(), func() (err error) {
		defer kernels.RecoverMemory(&err)
		return d.checkpointNow(ctx)
	})
	if !lostDevice(err) {
		err = d.last(ctx, err)
	}
	d.Collect()
	return err
}

// last hashes the last weights and, unless the run has failed, writes them to a file.
func (d *Driver) last(ctx context.Context, failed error) (err error) {
	defer kernels.RecoverMemory(&err)
	if d.Result.ParamsXXH3, err = d.work.Hash(context.WithoutCancel(ctx), failed); err != nil {
		return err
	}
	if d.follows() {
		return nil
	}
	return d.Dir.saveWeights(LastFile, d.about.Weights.Download(), d.Result.Meta(d.Updates()))
}

// epochs trains the epochs that are left, and tests.
func (d *Driver) epochs(ctx context.Context) (err error) {
	defer kernels.RecoverMemory(&err)
	if err := d.work.Ready(ctx); err != nil {
		return err
	}
	for n := len(d.Result.Epochs) + 1; n <= d.Ends.Most() && !d.Ends.enough(d.Result); n++ {
		e, err := d.epoch(ctx, n)
		if err == nil && d.Ends.evaluates(n) {
			err = d.work.Validate(ctx, &e) // if it is cut short, resuming evaluates the epoch
		}
		if err == nil {
			err = d.finish(ctx, e)
		}
		if err != nil {
			return err
		}
	}
	d.Ends.End(d.Result, d.Updates())
	if d.EvalTest != TestNone {
		if err := d.work.Test(ctx); err != nil {
			return err
		}
	}
	return d.about.Dataset.Unchanged()
}

// epoch takes the steps of epoch n, or the ones that were left when the run was cut short.
func (d *Driver) epoch(ctx context.Context, n int) (e Epoch, err error) {
	if err := d.work.Begin(ctx, n); err != nil {
		return e, err
	}
	before, started, seconds := d.work.Stages(), time.Now(), d.Partial.Seconds
	for err == nil && d.Partial.Steps < d.about.Steps {
		to := d.about.Steps
		if d.about.Pauses {
			to = d.Partial.Rest(d.about.Steps, d.Updates(), d.CheckpointEvery)
		}
		d.bus.from(d.Backend)
		err = d.work.Train(ctx, Span{n, d.Partial.Steps, to}, func(a step.Tally, read cachetier.Stats) error {
			d.Partial.Count(a, read)
			d.Partial.Seconds = seconds + time.Since(started).Seconds()
			d.bus.step(d.Backend)
			err := d.tell(ctx, n, a.Mean())
			d.bus.from(d.Backend) // a checkpoint is no part of a step
			return err
		})
		if err == nil && d.about.Pauses && d.checkpointDue() {
			err = d.Checkpoint(ctx)
		}
	}
	limiting := d.work.Stages().Sub(before).Limiting()
	return d.Partial.Epoch(n, d.about.Metric, d.work.Trained(d.Partial.Tally), limiting), err
}

// checkpointDue reports whether it is time for a checkpoint within an epoch.
func (d *Driver) checkpointDue() bool {
	return d.Partial.checkpointDue(d.about.Steps, d.done(), d.CheckpointEvery)
}

// done returns the number of steps that Train has called its done for, in all epochs.
func (d *Driver) done() int { return len(d.Result.Epochs)*d.about.Steps + d.Partial.Steps }

// CheckpointAfter reports whether done, which Train calls, makes a checkpoint after this step of an
// epoch. The next step cannot be launched before.
func (d *Driver) CheckpointAfter(epoch, step int) bool {
	after := Partial{Steps: step + 1}
	return after.checkpointDue(d.about.Steps, (epoch-1)*d.about.Steps+after.Steps, d.CheckpointEvery)
}

// tell records a step. If a checkpoint is due, and the stages need not pause for it, tell makes it.
func (d *Driver) tell(ctx context.Context, epoch int, loss float64) error {
	d.Peak.Look()
	step := d.Partial.Steps
	if d.LogEvery > 0 && d.done()%d.LogEvery == 0 {
		d.Collect()
		m := &StepMetric{Epoch: epoch, Step: step, Updates: d.done(), Loss: loss, Seconds: d.Partial.Seconds}
		if err := d.Dir.Append(Line{Step: m, SoFar: d.Result.SoFar()}); err != nil {
			return err
		}
	}
	if !d.about.Pauses && d.checkpointDue() {
		if err := d.Checkpoint(ctx); err != nil {
			return err
		}
	}
	if d.Hooks.Step != nil {
		d.Hooks.Step(epoch, step, d.about.Steps, loss)
	}
	d.shown.Step(epoch, step, loss)
	return nil
}

// finish adds an epoch to the result and to the run directory. The metrics are written first, since
// the checkpoint relies on them.
func (d *Driver) finish(ctx context.Context, e Epoch) error {
	d.Result.Epochs, d.Result.Losses = append(d.Result.Epochs, e), append(d.Result.Losses, e.Loss)
	d.Partial = Partial{}
	d.Collect()
	d.shown.refresh()
	d.work.Remark(e)
	if err := d.Dir.Append(Line{Epoch: &e, SoFar: d.Result.SoFar()}); err != nil {
		return err
	}
	if d.Result.Best.Epoch == e.Epoch && !d.follows() {
		if err := d.Dir.saveWeights(BestFile, d.Best, d.Result.Meta(d.Updates())); err != nil {
			return err
		}
	}
	if err := d.Checkpoint(ctx); err != nil {
		return err
	}
	d.work.AtRest()
	if d.Hooks.Epoch != nil { // last: the callback may rely on the epoch's record
		d.Hooks.Epoch(e)
	}
	return nil
}

// NoteLarge gives a note, once, if the loss of an epoch is far too large. scale returns about the
// loss of a network that has learnt nothing. It is not called after the note.
func (d *Driver) NoteLarge(e Epoch, scale func() (float64, error)) {
	if d.blown {
		return
	}
	untrained, err := scale()
	if err != nil {
		return // the next step reads the same labels, and fails
	}
	if note := e.TooLarge(untrained); note != "" {
		d.blown = true
		d.Note("%s", note)
	}
}

// look returns the run as others see it.
func (d *Driver) look() Point {
	p := Point{
		Result: *d.Result, Steps: d.about.Steps, Updates: d.Updates(), Total: d.Ends.Expected(d.Result) * d.about.Steps,
		Count: d.work.Counter(),
	}
	if d.Result.Status == Running { // the end shows what the result has
		p.Result.PeakRSSBytes, p.Result.PeakFileBytes = d.Peak.Bytes()
	}
	d.work.Report(&p.Result)
	d.bus.report(&p.Result)
	p.Result.Locked = d.lockedSoFar()
	return p
}

// Collect sets the result's counters as of the last step.
func (d *Driver) Collect() {
	d.work.Counter()(d.Result)
	d.work.Report(d.Result)
	d.bus.report(d.Result)
	d.Result.Locked = d.lockedSoFar()
	d.Peak.Look()
	d.Result.PeakRSSBytes, d.Result.PeakFileBytes = d.Peak.Bytes()
}
