package stream

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
	showEvery = 250 * time.Millisecond
	markEvery = 2 * time.Minute
)

// view is what others see of a run while it goes on: a snapshot at a step boundary, with the counters of the stages as they are.
type view struct {
	snapshot atomic.Pointer[snapshot]
	began    time.Time
	since    [2]mark // the older one first
}

// snapshot is the run at a step boundary. What it points to is never written again.
type snapshot struct {
	run.Result
	live  run.Live
	began time.Time
	total int // updates that all epochs have
	done  []cachetier.Stats
	since mark
}

// mark is a time, and the counters by then.
type mark struct {
	at      time.Time
	updates int
	stats   cachetier.Stats
	stages  pipeline.Stats
}

func (t *trainer) markNow(now time.Time) mark {
	return mark{now, t.step.Optim.Steps(), cachetier.Sum(t.counted.tables), t.pipe.Stats()}
}

// serve lets hooks.Live look at the run until the function that it returns has been called.
func (t *trainer) serve() (stop func()) {
	if t.hooks.Live == nil {
		return func() {}
	}
	now := time.Now()
	t.shown.began, t.shown.since = now, [2]mark{t.markNow(now), t.markNow(now)}
	t.show(run.Live{})
	hooked := t.hooks.Live(t.now)
	return func() {
		t.showEpoch() // how it ended
		hooked()
	}
}

// showStep brings what others see up to a step, unless that was done just now.
func (t *trainer) showStep(epoch, step int, loss float64) {
	if t.hooks.Live == nil || time.Since(t.shown.snapshot.Load().live.At) < showEvery && step < t.steps() {
		return
	}
	shared := loss
	t.show(run.Live{Epoch: epoch, Step: step, Loss: &shared})
}

func (t *trainer) showEpoch() {
	if t.hooks.Live != nil {
		t.show(t.shown.snapshot.Load().live)
	}
}

// show has others see the run as it is, at this step.
func (t *trainer) show(at run.Live) {
	now := time.Now()
	m := &snapshot{Result: *t.result, live: at, began: t.shown.began, total: t.mostEpochs() * t.steps()}
	m.live.At, m.live.Steps, m.live.Updates = now, t.steps(), t.step.Optim.Steps()
	m.Epochs, m.Losses = slices.Clone(m.Epochs), slices.Clone(m.Losses)
	stream := *m.Stream
	m.Stream = &stream
	stream.Staleness.Realised = t.stale.Mean()
	since := &t.shown.since
	if now.Sub(since[1].at) > markEvery {
		since[0], since[1] = since[1], t.markNow(now)
	}
	m.since, m.done = since[0], slices.Clone(t.counted.tables)
	m.PeakRSSBytes, m.PeakFileBytes = t.peak.RSS, t.peak.File
	t.shown.snapshot.Store(m)
}

// now is the result so far; of a run that has ended, its result. It may be called at any time from serve on.
func (t *trainer) now() *run.Result {
	m := t.shown.snapshot.Load()
	r := m.Result
	if r.Status != run.Running {
		return &r
	}
	stages := t.pipe.Stats()
	t.setTables(&r, m.done)
	r.Stages = stages.Add(t.before.stages)
	r.LimitingStage = r.Stages.Limiting()
	r.Topology, r.Window = t.lists(), run.WindowOf(t.pipe.Planner)
	l := m.live
	var underWay int
	r.Latency, underWay = run.LatencyOf(t.tables.stacks)
	l.ReadsUnderWay = &underWay
	l.At = time.Now()
	l.Seconds = l.At.Sub(m.began).Seconds()
	l.ResidentBytes, l.FileBytes = kernels.ResidentBytes()
	r.PeakRSSBytes, r.PeakFileBytes = max(r.PeakRSSBytes, l.ResidentBytes), max(r.PeakFileBytes, l.FileBytes)
	l.Recent = run.Recent{
		Wall: l.At.Sub(m.since.at).Seconds(), Updates: l.Updates - m.since.updates, Stats: cachetier.Sum(m.done).Sub(m.since.stats),
		Stages: stages.Sub(m.since.stages),
	}
	l.Recent.LimitingStage = l.Recent.Stages.Limiting()
	if trained := l.Recent.Stages.Step + l.Recent.Stages.Wait; trained > 0 {
		l.RowsPerSecond = float64(l.Recent.InputRows) / trained
	}
	if l.Recent.Updates > 0 {
		left := float64(max(m.total-l.Updates, 0)) * l.Recent.Wall / float64(l.Recent.Updates)
		l.ETASeconds = &left
	}
	r.Live = &l
	return &r
}

// collect brings the result's counters up to the last step.
func (t *trainer) collect() {
	t.setTables(t.result, t.counted.tables)
	t.result.Stages = t.pipe.Stats().Add(t.before.stages)
	t.result.LimitingStage = t.result.Stages.Limiting()
	t.result.Evaluation.Disk = t.counted.evaluated.Add(t.before.evaluated)
	t.result.Topology, t.result.Window = t.lists(), run.WindowOf(t.pipe.Planner)
	t.result.Latency, _ = run.LatencyOf(t.tables.stacks)
	t.result.Stream.Staleness.Realised = t.stale.Mean()
	if s := t.tables.state; s != nil {
		c := s.Counts()
		t.result.Stream.State = &run.StateOf{
			Nodes: t.events.Places(), RecordBytes: t.step.Record.Bytes(), Touched: c.RowsTouched, BytesWritten: c.BytesWritten + t.before.written,
		}
	}
	t.peak.Look()
	t.result.PeakRSSBytes, t.result.PeakFileBytes = t.peak.RSS, t.peak.File
}

// lists is what neighbour lists were read, none of which is held; nil of a network that reads none.
func (t *trainer) lists() *run.Topology {
	if t.Fanouts[0] == 0 {
		return nil
	}
	a := t.draw.read()
	return &run.Topology{Tier: cachetier.Tier{RowsMissed: a.Rows}, Lists: t.events.Places(), Disk: a}
}

// setTables sets the counters of rows: together, and of each table.
func (t *trainer) setTables(r *run.Result, done []cachetier.Stats) {
	if len(done) == 0 { // no step was taken
		done = t.tables.stats()
		for i := range done {
			done[i] = done[i].Sub(done[i])
		}
	}
	all := each(done, t.before.tables, cachetier.Stats.Add)
	r.Stats, r.Tables = cachetier.Sum(all), nil
	if len(all) < 2 {
		return
	}
	for i := range all {
		name, kind := t.tableName(i)
		r.Tables = append(r.Tables, run.TableOf{Type: name, Kind: kind, Stats: all[i]})
	}
}

// What tables have.
const (
	stateKind = "state"
	eventKind = "events"
)

// tableName is what the i-th table is called, and what it has.
func (t *trainer) tableName(i int) (name, kind string) {
	if i == 0 && t.step.Record.Bytes() > 0 {
		return "state of nodes", stateKind
	}
	return t.Stream + "/" + featureTable, eventKind
}
