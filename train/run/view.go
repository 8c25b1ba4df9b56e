package run

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/pipeline"
)

const (
	showEvery = 250 * time.Millisecond // a step of a small graph takes less than a millisecond
	markEvery = 2 * time.Minute        // several read windows of the largest graphs
)

// View shows others a run while it goes on. The run stores a snapshot at a step boundary; whoever
// looks adds the counters of the stages, which are safe to read at any time. So the run copies a
// Result a few times a second, and does nothing more when somebody looks. The zero View shows
// nothing.
type View struct {
	look     func() Point
	snapshot atomic.Pointer[snapshot]
	began    time.Time
	marks    [2]mark // the older one first
}

// Point is a run at a step boundary.
type Point struct {
	Result  Result // so far. What it points to is never written again; Epochs and Losses, which the View copies, may be
	Steps   int    // of an epoch
	Updates int    // so far
	Total   int    // updates that all epochs have
	// Count sets the counters of a Result: the counters of training as of this boundary, and the
	// counters of stages as of now. It returns the stage times of this process, and the number of
	// reads under way. It may be called at any time, by several.
	Count func(r *Result) (stages pipeline.Stats, underWay int)
}

// snapshot is a Point with what is shown beside it.
type snapshot struct {
	Point
	live  Live
	since mark // where Recent begins
}

// mark is a time, and the counters by then.
type mark struct {
	at      time.Time
	updates int
	stats   cachetier.Stats
	stages  pipeline.Stats
}

// Serve calls live with a function that returns the result so far, or the final one, until stop is
// called; live may be nil. look is called at step boundaries.
func (v *View) Serve(live func(now func() *Result) (stop func()), look func() Point) (stop func()) {
	if live == nil {
		return func() {}
	}
	v.look, v.began = look, time.Now()
	v.show(Live{})
	hooked := live(v.now)
	return func() {
		v.refresh() // how it ended
		hooked()
	}
}

// Step shows others the run as of a step, unless the last showing was less than showEvery ago.
func (v *View) Step(epoch, step int, loss float64) {
	if v.look == nil {
		return
	}
	if s := v.snapshot.Load(); time.Since(s.live.At) < showEvery && step < s.Steps {
		return
	}
	shared := loss // a parameter whose address is taken is allocated, shown or not
	v.show(Live{Epoch: epoch, Step: step, Loss: &shared})
}

// refresh shows others the run as of the end of an epoch, or of the run.
func (v *View) refresh() {
	if v.look != nil {
		v.show(v.snapshot.Load().live)
	}
}

// show stores a snapshot of the run at this step.
func (v *View) show(at Live) {
	now := time.Now()
	s := &snapshot{Point: v.look(), live: at}
	s.live.At, s.live.Steps, s.live.Updates = now, s.Steps, s.Updates
	r := &s.Result
	if before := v.snapshot.Load(); before != nil && r.Status == Running && len(before.Result.Epochs) == len(r.Epochs) {
		r.Epochs, r.Losses = before.Result.Epochs, before.Result.Losses
	} else {
		r.Epochs, r.Losses = slices.Clone(r.Epochs), slices.Clone(r.Losses) // the last test will write to one
	}
	switch first := v.marks[1].at.IsZero(); {
	case first:
		v.marks[1] = s.mark(now)
		v.marks[0] = v.marks[1]
	case now.Sub(v.marks[1].at) > markEvery:
		v.marks[0], v.marks[1] = v.marks[1], s.mark(now)
	}
	s.since = v.marks[0]
	v.snapshot.Store(s)
}

// mark returns the mark of s at time now.
func (s *snapshot) mark(now time.Time) mark {
	var r Result
	stages, _ := s.Count(&r)
	return mark{now, s.Updates, r.Stats, stages}
}

// now returns the result so far, or the final result of a run that has ended. The result is the
// caller's own. now may be called at any time from Serve on.
func (v *View) now() *Result {
	s := v.snapshot.Load()
	r := s.Result
	if r.Status != Running {
		return &r
	}
	stages, underWay := s.Count(&r)
	l := s.live
	l.ReadsUnderWay = &underWay
	l.At = time.Now()
	l.Seconds = l.At.Sub(v.began).Seconds()
	l.ResidentBytes, l.FileBytes = kernels.ResidentBytes()
	r.PeakRSSBytes, r.PeakFileBytes = max(r.PeakRSSBytes, l.ResidentBytes), max(r.PeakFileBytes, l.FileBytes)
	recent := &l.Recent
	*recent = Recent{
		Wall: l.At.Sub(s.since.at).Seconds(), Updates: s.Updates - s.since.updates, Stats: r.Stats.Sub(s.since.stats), Stages: stages.Sub(s.since.stages),
	}
	recent.LimitingStage = recent.Stages.Limiting()
	if trained := recent.Stages.Step + recent.Stages.Wait; trained > 0 {
		l.RowsPerSecond = float64(recent.InputRows) / trained
	}
	if recent.Updates > 0 {
		left := float64(max(s.Total-s.Updates, 0)) * recent.Wall / float64(recent.Updates)
		l.ETASeconds = &left
	}
	r.Live = &l
	return &r
}
