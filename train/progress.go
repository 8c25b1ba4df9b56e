package train

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
)

// Live is what a run that goes on adds to its result so far.
type Live struct {
	At      time.Time `json:"at"`      // when the counters were looked at
	Epoch   int       `json:"epoch"`   // under way, from 1; 0 before the first step of this process
	Step    int       `json:"step"`    // the last one done, from 1
	Steps   int       `json:"steps"`   // of an epoch
	Updates int       `json:"updates"` // of the run
	Loss    *float64  `json:"loss"`    // of that step; null before it
	Seconds float64   `json:"seconds"` // since this process began to train
	// ETASeconds is how long all epochs still take at the rate of Recent, evaluation included; absent before a first
	// step. Of AutoEpochs they are those of a run in which no evaluation is better than those so far.
	ETASeconds *float64 `json:"eta_seconds,omitempty"`
	// RowsPerSecond is how many feature rows the steps of Recent took for a second of training.
	RowsPerSecond float64 `json:"rows_per_second"`
	// ResidentBytes and FileBytes are RssAnon + RssShmem and RssFile now, as Result's peaks are.
	ResidentBytes int64 `json:"resident_bytes"`
	FileBytes     int64 `json:"file_bytes"`
	// ReadsUnderWay is how many reads the disk has before it; absent where the engine does not say.
	ReadsUnderWay *int   `json:"reads_under_way,omitempty"`
	Recent        Recent `json:"recent"`
}

// Recent counts what was done of late: for two to four minutes, or since this process began to train.
type Recent struct {
	Wall    float64 `json:"wall_seconds"`
	Updates int     `json:"updates"`
	cachetier.Stats
	Stages        pipeline.Stats `json:"stage_seconds"`
	LimitingStage string         `json:"limiting_stage"`
}

// Topology is the tier of neighbour lists, and what it reads. The rows of its counters are lists; IndexBytes is that of
// offsets.
type Topology struct {
	cachetier.Tier
	Lists int64          `json:"lists"` // that there are
	Disk  cachetier.Disk `json:"disk"`
}

// Latency is what single reads of the disk took, in seconds.
type Latency struct {
	Reads   int64   `json:"reads"`   // measured
	Seconds float64 `json:"seconds"` // of all of them together
	P50     float64 `json:"p50"`
	P90     float64 `json:"p90"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
}

// Memory is how a budget for the whole process is split.
type Memory struct {
	BudgetBytes int64        `json:"budget_bytes"`
	Parts       []MemoryPart `json:"parts"`
}

// MemoryPart is a part of a budget.
type MemoryPart struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Window is how far ahead of the step rows are read.
type Window struct {
	Steps int   `json:"steps"`
	Rows  int64 `json:"rows"`  // that the newest window holds, none twice
	Bytes int64 `json:"bytes"` // that rows may take while they wait for their step
}

const (
	showEvery = 250 * time.Millisecond // a step of a small graph takes less than a millisecond
	markEvery = 2 * time.Minute        // several read windows of the largest graphs
)

// showcase is what others see of a run while it goes on. The trainer puts a moment in at a step boundary; whoever looks
// adds the counters of the stages, which are safe to read at any time. So a run that nobody looks at copies a Result a
// few times a second, and one that somebody looks at does nothing more.
type showcase struct {
	moment atomic.Pointer[moment]
	began  time.Time
	marks  [2]mark // the older one first
}

// moment is the run at a step boundary. What it points to is never written again.
type moment struct {
	Result
	live  Live
	began time.Time
	total int             // updates that all epochs have
	done  cachetier.Stats // by this process, in training
	other pipeline.Stats  // of the stages, for evaluation
	since mark            // where Recent begins
}

// mark is a time, and the counters by then.
type mark struct {
	at      time.Time
	updates int
	stats   cachetier.Stats
	stages  pipeline.Stats
}

// serve lets hooks.Live look at the run until the function that it returns has been called.
func (t *trainer) serve() (stop func()) {
	if t.hooks.Live == nil {
		return func() {}
	}
	now := time.Now()
	m := mark{now, t.optim.Steps(), t.trained, t.pipe.Stats().Sub(t.other)}
	t.shown.began, t.shown.marks = now, [2]mark{m, m}
	t.show(Live{})
	hooked := t.hooks.Live(t.now)
	return func() {
		t.showEpoch() // how it ended
		hooked()
	}
}

// showStep brings what others see up to a step, unless that was done just now.
func (t *trainer) showStep(epoch, step int, loss float64) {
	if t.hooks.Live == nil || time.Since(t.shown.moment.Load().live.At) < showEvery && step < t.steps() {
		return
	}
	shared := loss // a parameter whose address is taken is allocated, shown or not
	t.show(Live{Epoch: epoch, Step: step, Loss: &shared})
}

// showEpoch brings it up to the end of an epoch, or of the run.
func (t *trainer) showEpoch() {
	if t.hooks.Live != nil {
		t.show(t.shown.moment.Load().live)
	}
}

// show has others see the run as it is, at this step.
func (t *trainer) show(at Live) {
	now := time.Now()
	m := &moment{Result: *t.result, live: at, began: t.shown.began, total: t.expectedEpochs() * t.steps()}
	m.live.At, m.live.Steps, m.live.Updates = now, t.steps(), t.optim.Steps()
	if before := t.shown.moment.Load(); before != nil && m.Status == Running && len(before.Epochs) == len(m.Epochs) {
		m.Epochs, m.Losses = before.Epochs, before.Losses
	} else {
		m.Epochs, m.Losses = slices.Clone(m.Epochs), slices.Clone(m.Losses) // testBest will write to the last one
	}
	marks := &t.shown.marks
	if now.Sub(marks[1].at) > markEvery {
		marks[0], marks[1] = marks[1], mark{now, t.optim.Steps(), t.trained, t.pipe.Stats().Sub(t.other)}
	}
	m.since, m.done, m.other = marks[0], t.trained, t.other
	m.PeakRSSBytes, m.PeakFileBytes = t.peak.rss, t.peak.file
	t.shown.moment.Store(m)
}

// now is the result so far, and the caller's own; of a run that has ended, its result. It may be called at any time
// from serve on.
func (t *trainer) now() *Result {
	m := t.shown.moment.Load()
	r := m.Result
	if r.Status != Running {
		return &r
	}
	stages := t.pipe.Stats().Sub(m.other)
	r.Stats, r.Stages = m.done.Add(t.before.stats), stages.Add(t.before.stages)
	r.LimitingStage = r.Stages.Limiting()
	r.Topology, r.Window = t.topology(), t.window()

	l := m.live
	var underWay int
	r.Latency, underWay = t.latency()
	l.ReadsUnderWay = &underWay
	l.At = time.Now()
	l.Seconds = l.At.Sub(m.began).Seconds()
	l.ResidentBytes, l.FileBytes = kernels.ResidentBytes()
	r.PeakRSSBytes, r.PeakFileBytes = max(r.PeakRSSBytes, l.ResidentBytes), max(r.PeakFileBytes, l.FileBytes)
	recent := &l.Recent
	*recent = Recent{Wall: l.At.Sub(m.since.at).Seconds(), Updates: l.Updates - m.since.updates,
		Stats: m.done.Sub(m.since.stats), Stages: stages.Sub(m.since.stages)}
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

// topology is what its tier holds and did.
func (t *trainer) topology() *Topology {
	s := t.topo.Stats()
	return &Topology{
		Tier: cachetier.Tier{
			CapacityBytes: s.ResidentBytes, UsedBytes: s.ResidentBytes, CapacityRows: s.ResidentLists, UsedRows: s.ResidentLists,
			IndexBytes: s.OffsetBytes, RowsHit: s.Hits, RowsMissed: s.Misses, BytesRead: s.Warmup.BytesRead,
		},
		Lists: s.TotalLists,
		Disk:  s.Cold,
	}
}

// latency is that of reading rows; nil where nothing was read.
func (t *trainer) latency() (*Latency, int) {
	l := t.stack.Live()
	if l.Reads == 0 {
		return nil, int(l.UnderWay)
	}
	return &Latency{
		Reads: l.Reads, Seconds: l.Waited.Seconds(),
		P50: l.P50.Seconds(), P90: l.P90.Seconds(), P99: l.P99.Seconds(), Max: l.Max.Seconds(),
	}, int(l.UnderWay)
}

// window is the newest one; nil where rows are not read by windows.
func (t *trainer) window() *Window {
	steps, rows := t.pipe.Window()
	if rows == 0 {
		return nil
	}
	return &Window{Steps: steps, Rows: int64(rows), Bytes: int64(t.stack.WindowRows()) * int64(t.data.features.RowBytes())}
}

// shown is the split as others see it.
func shown(b plan.Budget) *Memory {
	m := &Memory{BudgetBytes: b.Total}
	for _, p := range []MemoryPart{
		{"topology", b.Topology}, {"device", b.Device}, {"host", b.Host}, {"batches", b.Batches}, {"step", b.Step}, {"fixed", b.Fixed},
	} {
		if p.Bytes > 0 {
			m.Parts = append(m.Parts, p)
		}
	}
	return m
}
