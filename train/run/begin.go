package run

import (
	"cmp"
	"fmt"

	"github.com/gnnstore/gnnstore/kernels"
)

// beginning has what begin needs to start or resume a run, before the first step.
type beginning struct {
	// Now is the record of a new run. A resumed run goes on with the options, kernels, costs and
	// memory of Now.
	Now *Record
	// Options returns the recorded options of a resumed run, as far as they decide whether it may
	// go on.
	Options func(onRecord Options) Options
	// Room returns an error if the disk has too little room for a new run.
	Room func() error
	// Resume restores the run of the record, which is not changed yet, and returns the number of
	// updates that it goes on after.
	Resume func(r *Record) (updates int, err error)
	Note   func(format string, args ...any)
	// Encodings returns the encodings of the dataset, as store.Dataset.EncodingsText does.
	Encodings func() ([]byte, error)
	TrainedOn func() ([]byte, error) // returns the contents of TrainedOnFile; nil: no such file
}

// begin puts the start of a run on record, and removes the result that it had up to now: it is a
// new one, or one more part of the run in d.
func (d *Dir) begin(b beginning) (r *Record, err error) {
	if r = d.record; r == nil {
		r = b.Now
		r.Options.Init, r.Options.InitRows = Absolute(r.Options.Init), AllAbsolute(r.Options.InitRows)
		err = b.Room()
	} else {
		err = d.goOn(b, r)
	}
	if err != nil {
		return nil, err
	}
	r.Dataset, r.Options.HistoryCold = Absolute(b.Now.Dataset), false // it holds for this process alone
	r.Options.Topology = Absolute(r.Options.Topology)
	text, err := b.Encodings()
	if err != nil {
		return nil, err
	}
	if err := d.WriteRecord(r); err != nil {
		return nil, err
	}
	if err := d.keep(EncodingsFile, text); err != nil {
		return nil, err
	}
	if b.TrainedOn != nil {
		if text, err = b.TrainedOn(); err == nil {
			err = d.keep(TrainedOnFile, text)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, d.RemoveResult()
}

// goOn is begin for a run that is resumed.
func (d *Dir) goOn(b beginning, r *Record) error {
	now := b.Now
	if err := now.Options.Resumes(b.Options(r.Options)); err != nil {
		return fmt.Errorf("resume %s: %w", d.path, err)
	}
	if r.Seal != now.Seal {
		return fmt.Errorf("resume %s: it trained on a dataset with seal %s, and %s has %s", d.path, r.Seal, now.Dataset, now.Seal)
	}
	if r.BlendRule != now.BlendRule {
		return fmt.Errorf("resume %s: {mitigate} %v: it blends memories by rule %d, and this version by rule %d, so that its results would differ; "+
			"begin another run with {run}, or go on with gnnstore %s", d.path, now.Options.Mitigate, max(r.BlendRule, 1), now.BlendRule, r.Version)
	}
	if now.AutoEpochs == nil || r.AutoEpochs == nil {
		r.AutoEpochs = now.AutoEpochs
	}
	updates, err := b.Resume(r)
	if err != nil {
		return err
	}
	r.Resumed = append(r.Resumed, Resumption{
		Updates: updates, Device: now.Device, DeviceName: now.DeviceName, Kernels: now.Kernels,
		Version: now.Version, Host: now.Host, Started: now.Started,
	})
	switch before := cmp.Or(r.Device, kernels.CPUDevice); {
	case before != now.Device:
		b.Note("the run began on {device} %s and goes on on %s: results will differ in their last bits", before, now.Device)
	case r.DeviceName != now.DeviceName:
		b.Note("the run began on a %s and goes on on a %s: results may differ in their last bits", r.DeviceName, now.DeviceName)
	case r.Kernels != now.Kernels:
		b.Note("the run began with %s kernels and goes on with %s: results will differ in their last bits", r.Kernels, now.Kernels)
	}
	if before, workers := max(r.Workers, 1), max(now.Workers, 1); before != workers {
		b.Note("the run began with %d workers and goes on with %d: results will differ in their last bits", before, workers)
	}
	before, way := cmp.Or(r.Options.Parallel, Independent), cmp.Or(now.Options.Parallel, Independent)
	if r.Workers > 1 && now.Workers > 1 && before != way && (before == Cooperative || way == Cooperative) {
		b.Note("the run began with {parallel} %s and goes on with %s: results will differ", before, way)
	}
	r.Workers, r.Peers = now.Workers, now.Peers
	// The next resumption starts from what this one changed.
	init, rows := r.Options.Init, r.Options.InitRows
	r.Options, r.Costs, r.Memory = now.Options, now.Costs, now.Memory
	r.Device, r.DeviceName, r.Kernels, r.Locked = now.Device, now.DeviceName, now.Kernels, now.Locked
	r.Options.Init, r.Options.InitRows = init, rows
	return nil
}
