package run

import (
	"cmp"
	"errors"
	"runtime"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/task"
)

// usualFanouts are the default fanouts of the first layers. Further layers have the last.
var usualFanouts = []int{15, 10, 5}

// usualTask returns the task of a run of this network, if none is given.
func (o *Options) usualTask() string {
	if o.Streams() {
		return LinkTask
	}
	return NodeTask
}

// defaults returns the options of a run of this network that was given nothing else.
func (o *Options) defaults() Options {
	if o.Streams() {
		return DefaultStreamOptions(o.Kind)
	}
	d := DefaultOptions()
	d.Kind = o.Kind
	return d
}

// ForFlags returns o with the defaults of history and of several workers, which options without
// them do not record, so that flags show them. Normalize removes them again.
func (o Options) ForFlags() Options {
	if !o.Spread() && o.WorkerOptions == (WorkerOptions{}) {
		o.Parallel, o.DistTimeout = Independent, DefaultDistTimeout
	}
	if !o.History && o.Settings == (history.Settings{}) {
		o.Settings = history.Defaults()
	}
	return o
}

// Complete finishes options that flags were read into, and validates them. An option that was not
// given gets the default of the network and the task.
func (o *Options) Complete(flags *setting.Bound[Options]) error {
	given := flags.Given
	if o.Streams() {
		d := o.defaults().ForFlags()
		if err := Table.Fill(o, &d, given); err != nil {
			return err
		}
	} else {
		o.Fanouts = FitFanouts(o.Fanouts, o.Layers, given)
		if !given("layers") {
			o.Layers = len(o.Fanouts)
		}
		if !given("lr") {
			o.LR = o.DefaultLR()
		}
		if !kernels.IsCPU(o.Device) && !given("workers") && !given("memory_bytes") {
			o.Workers = workersBesideGPU(runtime.GOMAXPROCS(0))
		}
	}
	o.Left = Table.Left(given)
	// An option whose flag could not be read keeps its value.
	return errors.Join(flags.Err(), o.refuseZeros(given), o.Normalize())
}

// refuseZeros refuses a 0 that is given for an option where 0 stands for the default.
func (o *Options) refuseZeros(given func(key string) bool) error {
	var errs sample.Problems
	errs.If(o.Margin == 0 && given("margin"), "{margin} 0: above 0; leave it out for %v", DefaultMargin)
	errs.If(o.Chunk == 0 && given("chunk"), "{chunk} 0: at least 1; leave it out for %d", task.DefaultChunk)
	return errors.Join(errs...)
}

// workersBesideGPU returns how many goroutines draw batches beside a GPU, on so many threads. An
// H100 makes a step in a twentieth of the time in which one thread draws its batch. Two threads are
// left, one to gather rows and one to launch.
func workersBesideGPU(threads int) int { return min(max(threads-2, 2), 64) }

// FitFanouts returns a default fanout for each layer, up to 64, if only the layers were given. Else
// it returns fanouts.
func FitFanouts(fanouts []int, layers int, given func(key string) bool) []int {
	if !given("layers") || given("fanout") {
		return fanouts
	}
	fanouts = nil
	for l := range min(max(layers, 0), 64) {
		fanouts = append(fanouts, usualFanouts[min(l, len(usualFanouts)-1)])
	}
	return fanouts
}

// Normalize brings options that flags were read into to the form of records, and validates them.
func (o *Options) Normalize() error {
	if o.Task == o.usualTask() {
		o.Task = "" // as in the records of the first versions, which had no other task
	}
	d := o.defaults().ForFlags()
	err := Table.Check(o, &d)
	if !o.History {
		o.Settings = history.Settings{}
	}
	if !o.Spread() {
		o.WorkerOptions = WorkerOptions{}
	}
	return errors.Join(err, o.validateTogether())
}

// Again returns the options that flags must give to repeat r.
func (r *Record) Again() []setting.Choice {
	o := r.Options.ForFlags()
	d := o.defaults().ForFlags()
	if r.AutoStaleness != nil && o.Staleness == Auto {
		o.Staleness = r.AutoStaleness.K // another rehearsal may choose another
	}
	// The model is given even if it is the default, since the data may choose another.
	again := []setting.Choice{{Key: "model", Flag: "model", Text: string(o.Kind)}}
	cut := r.AutoEpochs != nil && r.AutoEpochs.Whole > 0
	for _, c := range Table.Choices(&o, &d) {
		if cut && (c.Key == "epoch_steps" || c.Key == "eval_every") {
			continue // an epoch is cut only if they are not given
		}
		again = append(again, c)
	}
	return again
}

// ResumeOptions returns the options of a run that continues saved, with those that flags give anew.
// It does not check whether a resumed run may change them: see Resumes.
func ResumeOptions(saved *Record, given *setting.Bound[Options]) (Options, error) {
	o := saved.Options.ForFlags()
	o.Init, o.InitRows = "", nil
	o.Device, o.Kernels = cmp.Or(saved.Device, o.Device), saved.Kernels // what auto meant then
	if !kernels.IsCPU(saved.Device) {
		o.Kernels = "auto"
	}
	if err := given.Apply(&o); err != nil {
		return o, err
	}
	if !kernels.IsCPU(o.Device) && !given.Given("kernels") {
		o.Kernels = "auto"
	}
	if o.HistoryBytes == history.Rest { // the run replaced rest by a number
		o.HistoryBytes = saved.Options.HistoryBytes
	}
	if !o.Spread() && !given.Given("parallel") { // one worker goes on
		o.Parallel = Options{}.ForFlags().Parallel
	}
	if o.Parallel == AutoParallel && o.Spread() && saved.Options.Parallel != "" { // likewise
		o.Parallel = saved.Options.Parallel
	}
	return o, errors.Join(o.refuseZeros(given.Given), o.Normalize())
}
