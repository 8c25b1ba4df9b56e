package tiers

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/plan"
)

// joining holds the sizes that Open has found for the horizons of a run.
type joining struct {
	options spill.Options
	windows int
	wanted  []int         // rows of a window, by table, about
	why     string        // why a spill that was asked for is not used, or of little use
	room    spill.Options // of steps between two hops; no bytes where they are drawn in groups
	file    *spill.File
	waiting *spill.File
}

// close gives up the files, whose counters stay. A second close does nothing.
func (j *joining) close() {
	for _, f := range []*spill.File{j.file, j.waiting} {
		if f != nil {
			f.Close()
		}
	}
}

// maxWindows bounds the windows that horizons have together.
const maxWindows = 160

// leastWindows is the least number of windows of all horizons together: two of the next horizon,
// while one of the current horizon is used and one is left.
const leastWindows = 4

// planJoin returns the memory that horizons take, if an epoch should go by them; else 0. b is the
// budget without them.
func (t *Tiers) planJoin(d plan.Demand, b plan.Budget) (bytes int64) {
	t.join, t.demanded, t.without = joining{}, d, b
	switch {
	case t.SpillBytes == 0 || t.EpochSteps == 0 || len(t.Types) == 0:
		return 0
	case t.learnsRows():
		t.join.why = "rows that are learnt change with every step: they are read by windows, without a spill"
		return 0
	}
	w := d.Ways(b, b, t.EpochSteps, plan.Space{Bytes: max(t.SpillBytes, 0), Windows: maxWindows})
	size := t.SpillBytes
	if size == Auto {
		if !t.Disk.Direct || !w.JoinPays() {
			return 0
		}
		size = int64(float64(w.SpillBytes) * autoSpill)
	}
	bytes = t.sizeJoin(d, b, w, size)
	if with := b; bytes < b.Host { // its memory makes windows shorter, so there are more of them
		with.Host -= bytes
		bytes = t.sizeJoin(d, b, d.Ways(b, with, t.EpochSteps, plan.Space{Bytes: size, Windows: maxWindows}), size)
	}
	return bytes
}

// takeJoin decides whether an epoch goes by horizons, where b is the budget without them. It sets
// d.Join, and returns the budget.
func (t *Tiers) takeJoin(d *plan.Demand, b plan.Budget) plan.Budget {
	if d.Join = t.planJoin(*d, b); d.Join == 0 {
		return b
	}
	with, err := d.Split(t.total, plan.Budget{
		Topology: t.TopologyBytes, Device: t.Cache.DeviceBytes, Host: t.Cache.HostBytes, Batches: t.BatchBytes,
	})
	switch {
	case err == nil && t.judgeJoin(*d, with):
		return with
	case err == nil:
		d.Join, t.join = 0, joining{}
	default: // there is no room for it
		why := fmt.Sprintf("a spill of %s takes %s of memory, and there is no room for that: rows are read by windows",
			kernels.FormatBytes(t.join.options.Bytes), kernels.FormatBytes(d.Join))
		d.Join, t.join = 0, joining{why: why}
	}
	return b
}

// sizeJoin sets the sizes of horizons for w, with a spill of size bytes, and returns the memory
// that they take.
func (t *Tiers) sizeJoin(d plan.Demand, b plan.Budget, w plan.Ways, size int64) (bytes int64) {
	j := &t.join
	j.windows = min(maxWindows, max(leastWindows, w.Together+w.Together/8+4))
	j.wanted = j.wanted[:0]
	for i, n := range w.WindowRows {
		j.wanted = append(j.wanted, min(int(d.Rows[i].Count), max(n+n/8, d.Rows[i].Inputs)))
	}
	tables := len(t.Types)
	// Each window that is being filled has a segment in memory. Together segments take a twentieth
	// of the memory at most.
	sets := func() (bytes int64) {
		for i, n := range t.Types { // a bit for each row, also of other owners: d counts this worker's alone
			rows := int(t.data.Input(n).Rows())
			bytes += cachetier.HorizonBytes(rows, int(b.Host/d.Rows[i].Bytes), j.windows, j.wanted[i])
		}
		return bytes
	}
	for j.windows > leastWindows && sets() > t.total/setsPart {
		j.windows--
	}
	o := spill.Options{Bytes: size, Depth: spillDepth}
	o.Buffers = (j.windows+o.Depth)*tables + 4
	largest := int64(0)
	for _, r := range d.Rows {
		largest = max(largest, r.Bytes)
	}
	least := max(spill.LeastSegment, 1<<bits.Len64(uint64(largest+127)))
	within := func(bytes int64) int { return 1 << (bits.Len64(uint64(max(bytes, 1))) - 1) } // a power of two
	o.Segment = max(least, min(spill.UsualSegment, within(t.total/buffersPart/int64(o.Buffers)), within(size/int64(8*j.windows))))
	j.options = o
	memory := o.MemoryBytes() + int64(w.Ahead)*d.Batches.Kept
	if d.Batches.Far {
		j.room = spill.Options{Segment: max(store.PageSize, min(roomSegment, within(size/plan.RoomPart/roomBuffers))), Buffers: roomBuffers, Depth: spillDepth}
		memory += j.room.MemoryBytes()
	}
	if t.Tmp != "" && spill.InMemory(t.Tmp) {
		memory += size
	}
	return memory + sets() + readerBytes(plan.Demand{Rows: d.Rows}, t.Disk.Depth) // scans read rows
}

const (
	autoSpill   = 1.05 // of what horizons take by the model
	setsPart    = 4    // of the memory, for the rows that windows want: more of them a horizon are worth more than longer ones
	buffersPart = 20   // of the memory, for segments
	spillDepth  = 8
	roomSegment = 64 << 10 // since many of its runs grow at a time
	roomBuffers = 160      // 2 runs for each of 60 parts of an epoch, and some ranges of nodes
)

// judgeJoin reports whether to take the join that planJoin has planned. with is the budget that is
// left beside it. A spill that was asked for is taken; join.why notes it if windows would move
// fewer bytes.
func (t *Tiers) judgeJoin(d plan.Demand, with plan.Budget) bool {
	t.demanded = d
	w := d.Ways(t.without, with, t.EpochSteps, t.space())
	if t.SpillBytes == Auto {
		return w.JoinPays()
	}
	if join, windows := w.Join.Moved(), w.Windows.Moved(); join > windows {
		size := func(bytes float64) string { return kernels.FormatBytes(int64(bytes)) }
		enough := d.Ways(t.without, with, t.EpochSteps, plan.Space{Segment: t.join.options.Segment, Windows: maxWindows})
		remedy := "{spill_bytes} 0 goes by windows"
		if most := enough.Join.Moved(); most < windows {
			remedy = fmt.Sprintf("with {spill_bytes} %s it would be %s; 0 goes by windows", size(float64(enough.SpillBytes)), size(most))
		}
		t.join.why = fmt.Sprintf("a spill of %s is too small to be worth it: an epoch moves about %s by the join, and %s by windows; %s",
			size(float64(t.SpillBytes)), size(join), size(windows), remedy)
	}
	return true
}

// space returns the part of the planned spill that horizons have.
func (t *Tiers) space() plan.Space {
	j := &t.join
	return plan.Space{Bytes: j.options.Bytes, Segment: j.options.Segment, Windows: j.windows}
}

// learnsRows reports whether a table's rows change: they are read by windows.
func (t *Tiers) learnsRows() bool {
	for i := range t.Types {
		if t.IsLearnt(i) {
			return true
		}
	}
	return false
}

// Spill makes the spill that Open has planned, in a directory that exists. If there is no space for
// it, or the directory cannot be written to, the run goes by windows, and note says so. Otherwise
// note is SpillNote. Call AgreeSpill next.
func (t *Tiers) Spill(ctx context.Context, dir string) (note string, err error) {
	j := &t.join
	if j.windows == 0 {
		if t.SpillBytes == Auto {
			return "", nil
		}
		return j.why, nil
	}
	o := j.options
	if o.Dir = t.Tmp; o.Dir == "" {
		o.Dir = dir
	}
	auto := t.SpillBytes == Auto
	if free, err := spill.Free(o.Dir); err == nil && auto && free/2/t.hosted() < o.Bytes {
		o.Bytes = free / 2 / t.hosted()
		j.options.Bytes = o.Bytes
		if w := t.demanded.Ways(t.without, t.Budget, t.EpochSteps, t.space()); !w.JoinPays() {
			return fmt.Sprintf("half of what is free in %s, %s, is too small a spill to be worth it: rows are read by windows; {tmp} names another directory",
				o.Dir, kernels.FormatBytes(o.Bytes)), nil
		}
	}
	switch {
	case spill.InMemory(o.Dir) && auto:
		return fmt.Sprintf("%s lies in memory: no spill there, rows are read by windows; {tmp} names another directory", o.Dir), nil
	case o.Bytes < int64(4*o.Segment*j.windows+j.room.Segment*roomBuffers):
		return fmt.Sprintf("a spill of %s is too small for %d windows of segments of %s: rows are read by windows",
			kernels.FormatBytes(o.Bytes), j.windows, kernels.FormatBytes(int64(o.Segment))), nil
	}
	if o.Faults = t.SpillFaults; t.rate != nil {
		o.Faults = func(_ bool, _ int64, size int) error {
			time.Sleep(t.rate.Delay(size))
			return nil
		}
	}
	room := j.room
	room.Faults = o.Faults
	if room.Dir = o.Dir; room.Segment > 0 {
		room.Bytes = max(o.Bytes/plan.RoomPart, int64(room.Segment*roomBuffers))
		o.Bytes -= room.Bytes
		j.waiting, err = spill.Create(room)
	}
	if err == nil {
		j.file, err = spill.Create(o)
	}
	if err != nil {
		j.close()
		j.file, j.waiting = nil, nil
		return fmt.Sprintf("%v: rows are read by windows; {tmp} names another directory, {spill_bytes} a smaller spill", errors.Unwrap(err)), nil
	}
	for i, s := range t.Stacks {
		cache := t.caches[i]
		if _, err := s.Join(ctx, j.file, j.windows, j.wanted[i], t.data.Input(t.Types[i]).Features, cache); err != nil {
			return "", err
		}
		if !s.Joined() && !auto {
			note = "a cache that keeps no rows, or rows that are wider than a segment: rows are read by windows, without a spill"
		}
	}
	t.Planner.Join = plan.Join{File: j.file, Windows: j.windows, Room: j.waiting}
	if note == "" {
		note = j.why
	}
	return note, nil
}

// AgreeSpill gives up this worker's spill if another worker has none; note then names that worker.
// Workers that own rows go by horizons together, or not at all. All of them call it after Spill and
// before the first step. For a worker that reads for itself it does nothing.
func (t *Tiers) AgreeSpill(ctx context.Context) (note string, err error) {
	p := t.Parts
	if p == nil {
		return "", nil
	}
	has := t.join.file != nil
	for _, s := range t.Stacks {
		has = has && s.Joined()
	}
	own := p.Rank
	if has {
		own = p.Workers
	}
	without, err := p.Agree(ctx, own)
	if err != nil || without == p.Workers || !has {
		return "", err
	}
	t.Planner.Join = plan.Join{}
	t.join.close()
	t.join.file = nil
	return fmt.Sprintf("worker %d has no spill: rows are read by windows", without), nil
}

// SpillNote says why a spill that was asked for is not used, or of little use, as far as Open
// knows; empty otherwise.
func (t *Tiers) SpillNote() string { return t.join.why }

// SpillStats returns the counters of the spill, and whether there is one.
func (t *Tiers) SpillStats() (s spill.Stats, ok bool) {
	if t.join.file == nil {
		return s, false
	}
	s = t.join.file.Stats()
	if f := t.join.waiting; f != nil {
		s = s.With(f.Stats())
	}
	return s, true
}

// Joins reports whether epochs go by horizons, as far as Open knows: where Spill finds no space
// they do not.
func (t *Tiers) Joins() bool { return t.join.windows > 0 }

// Ways estimates the ways to bring the rows and lists of an epoch of so many steps. cold has the
// rows that a step of a window reads from each table.
func (t *Tiers) Ways(steps int, cold []float64) plan.Ways {
	d := t.demanded
	for i, n := range cold {
		d.Rows[i].Cold = n
	}
	return d.Ways(t.without, t.Budget, steps, t.space())
}
