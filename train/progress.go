package train

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
)

const (
	showEvery = 250 * time.Millisecond // a step of a small graph takes less than a millisecond
	markEvery = 2 * time.Minute        // several read windows of the largest graphs
)

// view is what others see of a run while it goes on. The trainer stores a snapshot at a step boundary; whoever looks
// adds the counters of the stages, which are safe to read at any time. So a run that nobody looks at copies a Result a
// few times a second, and one that somebody looks at does nothing more.
type view struct {
	snapshot atomic.Pointer[snapshot]
	began    time.Time
	marks    [2]mark // the older one first
}

// snapshot is the run at a step boundary. What it points to is never written again.
type snapshot struct {
	run.Result
	live  run.Live
	began time.Time
	total int               // updates that all epochs have
	done  []cachetier.Stats // of each table, by this process, in training
	other pipeline.Stats    // of the stages, for evaluation
	since mark              // where Recent begins
}

// mark is a time, and the counters by then.
type mark struct {
	at      time.Time
	updates int
	stats   cachetier.Stats // of all tables
	stages  pipeline.Stats
}

// serve lets hooks.Live look at the run until the function that it returns has been called.
func (t *trainer) serve() (stop func()) {
	if t.hooks.Live == nil {
		return func() {}
	}
	now := time.Now()
	m := mark{now, t.optim.Steps(), cachetier.Sum(t.trained), t.tiers.Pipe.Stats().Sub(t.other)}
	t.shown.began, t.shown.marks = now, [2]mark{m, m}
	t.show(run.Live{})
	hooked := t.hooks.Live(t.now)
	return func() {
		t.showEpoch() // how it ended
		hooked()
	}
}

// showStep brings what others see up to a step, unless that was done just now.
func (t *trainer) showStep(epoch, step int, loss float64) {
	if t.hooks.Live == nil || time.Since(t.shown.snapshot.Load().live.At) < showEvery && step < t.task.Steps() {
		return
	}
	shared := loss // a parameter whose address is taken is allocated, shown or not
	t.show(run.Live{Epoch: epoch, Step: step, Loss: &shared})
}

// showEpoch brings it up to the end of an epoch, or of the run.
func (t *trainer) showEpoch() {
	if t.hooks.Live != nil {
		t.show(t.shown.snapshot.Load().live)
	}
}

// show has others see the run as it is, at this step.
func (t *trainer) show(at run.Live) {
	now := time.Now()
	m := &snapshot{Result: *t.result, live: at, began: t.shown.began, total: t.expectedEpochs() * t.task.Steps()}
	m.live.At, m.live.Steps, m.live.Updates = now, t.task.Steps(), t.optim.Steps()
	if before := t.shown.snapshot.Load(); before != nil && m.Status == run.Running && len(before.Epochs) == len(m.Epochs) {
		m.Epochs, m.Losses = before.Epochs, before.Losses
	} else {
		m.Epochs, m.Losses = slices.Clone(m.Epochs), slices.Clone(m.Losses) // testBest will write to the last one
	}
	marks := &t.shown.marks
	if now.Sub(marks[1].at) > markEvery {
		marks[0], marks[1] = marks[1], mark{now, t.optim.Steps(), cachetier.Sum(t.trained), t.tiers.Pipe.Stats().Sub(t.other)}
	}
	m.since, m.done, m.other = marks[0], slices.Clone(t.trained), t.other
	m.PeakRSSBytes, m.PeakFileBytes, m.History = t.peak.RSS, t.peak.File, t.reuseReport()
	t.shown.snapshot.Store(m)
}

// now is the result so far, and the caller's own; of a run that has ended, its result. It may be called at any time
// from serve on.
func (t *trainer) now() *run.Result {
	m := t.shown.snapshot.Load()
	r := m.Result
	if r.Status != run.Running {
		return &r
	}
	stages := t.tiers.Pipe.Stats().Sub(m.other)
	r.SetTables(t.tiers, each(nil, m.done, t.before.tables, cachetier.Stats.Add))
	r.Embeddings = run.EmbeddingsOf(t.tiers, t.before.learnt)
	r.Spill = run.SpillOf(t.tiers, t.before.spill)
	r.Stages = stages.Add(t.before.stages)
	r.LimitingStage = r.Stages.Limiting()
	r.Topology, r.Window = run.TopologyOf(t.tiers), run.WindowOf(t.tiers.Planner)

	l := m.live
	var underWay int
	r.Latency, underWay = run.LatencyOf(t.tiers.Stacks)
	l.ReadsUnderWay = &underWay
	l.At = time.Now()
	l.Seconds = l.At.Sub(m.began).Seconds()
	l.ResidentBytes, l.FileBytes = kernels.ResidentBytes()
	r.PeakRSSBytes, r.PeakFileBytes = max(r.PeakRSSBytes, l.ResidentBytes), max(r.PeakFileBytes, l.FileBytes)
	recent := &l.Recent
	*recent = run.Recent{Wall: l.At.Sub(m.since.at).Seconds(), Updates: l.Updates - m.since.updates,
		Stats: cachetier.Sum(m.done).Sub(m.since.stats), Stages: stages.Sub(m.since.stages)}
	recent.LimitingStage = recent.Stages.Limiting()
	if trained := recent.Stages.Step + recent.Stages.Wait; trained > 0 {
		l.RowsPerSecond = float64(recent.InputRows) / trained
	}
	if recent.Updates > 0 {
		left := float64(max(m.total-l.Updates, 0)) * recent.Wall / float64(recent.Updates)
		l.ETASeconds = &left
	}
	r.Live = &l
	return &r
}
