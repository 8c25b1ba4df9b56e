package plan

import (
	"math"

	"github.com/gnnstore/gnnstore/cachetier/disk"
)

// Way is the cost of one way to bring the rows and neighbour lists of an epoch. Its JSON keys are
// stable.
type Way struct {
	Seconds   float64 `json:"seconds"`           // the larger of Device, and of Processor ÷ Cores
	Device    float64 `json:"device_seconds"`    // of the device
	Processor float64 `json:"processor_seconds"` // for reading, checking and copying: drawing and computing are left out
	Read      float64 `json:"read_bytes"`
	Written   float64 `json:"written_bytes"`

	// Of Read, and of Device:
	RowBytes    float64 `json:"row_bytes"`  // of feature tables
	ListBytes   float64 `json:"list_bytes"` // of neighbour lists
	SpillBytes  float64 `json:"spill_bytes"`
	ListSeconds float64 `json:"list_seconds"`
}

// Ways are the three ways to bring the rows and lists of an epoch: row by row, for each step alone;
// by windows; and by horizons of windows (see cachetier.Horizon). They are an estimate before the
// first step, and a device is taken to write as fast as it reads.
type Ways struct {
	Rows    Way `json:"rows"`
	Windows Way `json:"windows"`
	Join    Way `json:"join"`

	WindowCount int   `json:"window_count"` // of an epoch
	FirstSteps  int   `json:"-"`            // of the first of these windows
	LastSteps   int   `json:"-"`            // of the last one
	WindowRows  []int `json:"-"`            // rows of each table that a window of a horizon wants
	Together    int   `json:"-"`            // windows of a horizon and of the one before, at most
	Ahead       int   `json:"-"`            // steps of a horizon and of the one before, at most
	Horizons    int   `json:"horizons"`     // of an epoch
	SpillBytes  int64 `json:"spill_bytes"`  // a spill with room for two successive horizons

	long bool // there are rows to read, and windows enough for horizons
}

// Moved returns the bytes that a way reads and writes.
func (w Way) Moved() float64 { return w.Read + w.Written }

// Space is the part of a spill that horizons may use.
type Space struct {
	Bytes   int64 // 0: as many as they want
	Segment int   // bytes
	Windows int   // of horizons at a time; 0: any number
}

// What the processors take, kernel included, beside drawing and computing: by BenchmarkHorizons of
// package cachetier (engine=uring), two cores of an Intel Xeon with AVX-512, beside other work,
// 2026-11-24. Windows took 480 ns a row for which 3175 bytes were read; rows of a horizon 360, and
// 143 bytes.
const (
	readProcessor  = 0.12e-9 // s for a byte that is read and checked
	placeProcessor = 50e-9   // for a row that is found, and copied to its slot
	spillProcessor = 1.1e-9  // for a byte that is written to a spill, read back, checked and placed
)

// Ways returns the ways of an epoch of so many steps. Budget b is for rows and windows, budget j
// and the spill are for horizons.
func (d Demand) Ways(b, j Budget, steps int, spill Space) (w Ways) {
	w.Rows = d.epoch(b, 1).byWindows(steps)
	windows := d.epoch(b, d.Batches.Groups)
	w.Windows = windows.byWindows(steps)
	w.FirstSteps, w.LastSteps = windows.first, windows.last
	w.WindowCount, w.long = windows.count, len(windows.tables) > 0 && float64(steps) >= horizonLeast*windows.group
	horizons := d.epoch(j, InFlight)
	horizons.byHorizons(steps, spill, &w)
	w.WindowRows = make([]int, len(d.Rows))
	for i := range horizons.tables {
		c := &horizons.tables[i]
		w.WindowRows[c.table] = int(c.of(horizons.group))
	}
	return w
}

// JoinPays reports whether the join takes so much less time than windows do that it is worth its
// memory and writes.
func (w Ways) JoinPays() bool {
	const least = 3 // seconds of an epoch
	return w.long && w.Windows.Seconds-w.Join.Seconds >= least && w.Join.Seconds <= 0.8*w.Windows.Seconds
}

// addRows adds rows of a table that are read and placed, times over.
func (w *Way) addRows(e *epoch, c *cold, rows, times float64) {
	t := scattered(e.Disk, rows, float64(c.Count), float64(c.Bytes), c.Runs, c.Apart)
	w.RowBytes += times * float64(t.Bytes)
	w.Device += times * e.busy(t)
	w.Processor += times * (float64(t.Bytes)*readProcessor + rows*placeProcessor)
}

// scattered is Costs.Scattered for items that may lie in runs, apart from each other.
func scattered(c disk.Costs, n, total, bytes float64, runs, apart int64) disk.Traffic {
	if runs == 0 || n <= 0 || total <= 0 {
		return c.Scattered(n, total, bytes)
	}
	if apart <= c.Gap() { // reading goes through what lies between
		return c.Scattered(n, total*(1+float64(apart)/(float64(runs)*bytes)), bytes)
	}
	t, wanted := c.Scattered(n, total, bytes), 1.0 // share of the runs with a wanted item
	if n < total {
		wanted = -math.Expm1(float64(runs) * math.Log1p(-n/total))
	}
	t.Reads = max(t.Reads, int64(math.Ceil(wanted*total/float64(runs))))
	return t
}

// addLists adds the lists that so many steps want, hop by hop, times over.
func (w *Way) addLists(e *epoch, steps, times float64) {
	for _, l := range e.Lists {
		nodes := float64(l.Nodes)
		for _, wanted := range l.Wanted {
			n := popularityOf(l.Nodes, float64(wanted)).of(steps)
			t := scattered(e.Disk, n*e.cold, nodes*e.cold, float64(l.Bytes)/nodes, l.Runs, l.Apart)
			w.ListBytes += times * float64(t.Bytes)
			w.ListSeconds += times * e.busy(t)
			w.Processor += times * (float64(t.Bytes)*readProcessor + n*e.cold*placeProcessor)
		}
	}
}

// addSpill adds bytes that are written to a spill and read again.
func (w *Way) addSpill(e *epoch, bytes float64) {
	w.SpillBytes += bytes
	w.Written += bytes
	w.Device += 2 * e.busy(disk.Traffic{Bytes: int64(bytes)})
	w.Processor += bytes * spillProcessor
}

// busy returns the time that the device takes for t.
func (e *epoch) busy(t disk.Traffic) float64 {
	if e.Timed != (disk.Costs{}) {
		return e.Timed.Seconds(t)
	}
	return e.Disk.Seconds(t)
}

// total returns w with its sums.
func (w Way) total(e *epoch) Way {
	w.Device += w.ListSeconds
	w.Read = w.RowBytes + w.ListBytes + w.SpillBytes
	w.Seconds = max(w.Device, w.Processor/float64(max(1, e.Cores)))
	return w
}

// byWindows returns the way by windows. The first windows may be shorter: see firstSteps.
func (e *epoch) byWindows(steps int) (w Way) {
	left, behind := float64(steps), 0.0
	for n := firstSteps(e.group, e.gap); left >= 1; n = min(2*n, e.group) {
		n, times := math.Floor(min(n, left)), 1.0
		if n == e.group && behind > 0 {
			times = math.Floor(left / n)
		}
		for i := range e.tables {
			w.addRows(e, &e.tables[i], e.tables[i].missed(behind, n), times)
		}
		w.addLists(e, n, times)
		if e.count == 0 {
			e.first = int(n)
		}
		e.last = int(n)
		e.count += int(times)
		left, behind = left-n*times, behind+n*times
	}
	return w.total(e)
}

// byHorizons fills in the way by horizons, with the limits of Planner.limits.
func (e *epoch) byHorizons(steps int, s Space, w *Ways) {
	const most = 1000 // those after them are like them
	var h horizonSize
	done, left := 0.0, float64(steps)
	for k := 0; left > 0 && k < most; k++ {
		before := h
		h = e.nextHorizon(k, left, s, before)
		w.Join.addHorizon(e, done, h)
		w.Horizons++
		w.Together = max(w.Together, int(before.windows+h.windows))
		w.Ahead = max(w.Ahead, int(before.steps+h.drawn))
		w.SpillBytes = max(w.SpillBytes, int64(max(before.left+h.bytes, before.bytes+h.blocks, h.bytes/spillShare)/e.spillPart()))
		done, left = done+h.steps, left-h.steps
	}
	if times := float64(steps) / done; left > 0 {
		w.Join.times(times)
		w.Horizons = int(times * float64(w.Horizons))
	}
	w.Join = w.Join.total(e)
}

// horizonSize is the size of a horizon, and the bytes that it takes of the spill. Some of the steps
// that are drawn for it may find no room; they are drawn again for the next.
type horizonSize struct {
	steps, drawn, windows float64
	blocks, bytes, left   float64 // for batches; in all; and for the windows that are not loaded when the next one is scanned for
}

// nextHorizon returns the size of the k-th horizon, which follows before, with so many steps left.
func (e *epoch) nextHorizon(k int, left float64, s Space, before horizonSize) (h horizonSize) {
	whole, windows := math.Inf(1), math.Inf(1)
	if s.Bytes > 0 {
		whole = float64(s.Bytes) * e.spillPart()
	}
	if s.Windows > 0 {
		windows = float64(s.Windows)
	}
	bytes, blocks := min(whole-before.left, whole*spillShare), whole-before.bytes
	windows -= before.windows
	switch k {
	case 0:
		windows, left = 1, min(left, firstSteps(e.group, e.gap))
	case 1:
		windows = min(windows, float64(rampOf(e.group)))
	default:
		windows = min(windows, before.windows*horizonGrowth)
	}
	windows = max(1, windows)
	if e.Batches.Far && before.steps > 0 && windows > 1 && s.Bytes > 0 { // see Planner.drawFar
		left = float64(e.growth(before).fitting(int(left), int64(bytes), int64(blocks)))
	}
	fits := func(steps float64) bool {
		h := e.horizonOf(steps, windows, s)
		return h.bytes <= bytes && h.blocks <= blocks
	}
	lo, hi := 1.0, min(left, windows*e.group)
	drawn := hi
	if fits(hi) {
		lo = hi
	}
	for hi-lo > 1 {
		if mid := math.Floor((lo + hi) / 2); fits(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	h = e.horizonOf(lo, windows, s)
	h.drawn = drawn
	return h
}

// horizonOf returns the size of a horizon of so many steps that may have most windows.
func (e *epoch) horizonOf(steps, most float64, s Space) horizonSize {
	segment, h := float64(max(1, s.Segment)), horizonSize{steps: steps, windows: math.Ceil(steps / e.group)}
	batch := math.Ceil(e.Batches.packed()/segment) * segment
	after := func(windows int) float64 { return max(0, steps-float64(windows)*e.group) }
	n := int(h.windows)
	h.blocks, h.left = steps*batch, after(drained(n))*batch
	h.bytes = h.blocks
	for i := range e.tables {
		c := &e.tables[i]
		if most > 1 {
			h.bytes += c.of(steps) * spilledBytes(c.Bytes)
		}
		if n > 1 {
			h.left += c.of(after(drained(n))) * spilledBytes(c.Bytes)
		}
	}
	return h
}

// growth estimates how horizons grow, from the size of h.
func (e *epoch) growth(h horizonSize) growth {
	g := growth{steps: h.steps, blocks: h.blocks}
	some := max(0, h.steps-math.Floor(h.windows/2)*e.group)
	for i := range e.tables {
		c := &e.tables[i]
		rows := c.of(h.steps)
		g.tables = append(g.tables, rowGrowthOf(c.count, rows*spilledBytes(c.Bytes), h.steps, rows, some, c.of(some)))
	}
	return g
}

// spillPart returns the share of a spill that is for horizons. The rest is room for steps that are
// drawn hop by hop.
func (e *epoch) spillPart() float64 {
	if e.Batches.Far {
		return 1 - 1.0/RoomPart
	}
	return 1
}

// RoomPart gives one part in RoomPart of a spill to steps that are drawn hop by hop.
const RoomPart = 12

// spillShare is the largest share of a spill that a horizon may take, so that batches of the next
// one find room: see Planner.limits.
const spillShare = 7.0 / 8

// spilledBytes returns the bytes that a row takes in a spill, with its number.
func spilledBytes(row int64) float64 { return float64(row + 4) }

// addHorizon adds the cost of a horizon that follows so many steps.
func (w *Way) addHorizon(e *epoch, behind float64, h horizonSize) {
	for i := range e.tables {
		c := &e.tables[i]
		if h.windows == 1 { // its rows need no spill
			w.addRows(e, c, c.missed(behind, h.steps), 1)
			continue
		}
		// All rows of the first window are sent to it, those that are held as well; then what is
		// missed goes through the spill.
		all := c.of(h.steps)
		moved := max(all, c.of(e.group)+c.missed(h.steps, e.group)*(h.steps/e.group-1))
		t := scattered(e.Disk, all, float64(c.Count), float64(c.Bytes), c.Runs, c.Apart)
		w.RowBytes += float64(t.Bytes)
		w.Device += e.busy(t)
		w.Processor += float64(t.Bytes) * readProcessor
		w.addSpill(e, moved*spilledBytes(c.Bytes))
	}
	waits := h.steps * e.Batches.packed()
	if e.Batches.Far {
		w.addLists(e, h.drawn, 1)
		waits *= 2 // between hops wait what was drawn, and blocks so far: about as much again
	} else {
		n := max(1, math.Floor(float64(e.batches)/InFlight/float64(max(1, e.Batches.Bytes)))) // see Planner.farGroup
		w.addLists(e, min(n, h.steps), h.steps/min(n, h.steps))
	}
	w.addSpill(e, waits)
}

// Of returns w divided by steps: the cost of one step.
func (w Way) Of(steps int) Way {
	n := 1 / float64(steps)
	w.times(n)
	w.Seconds, w.Read = n*w.Seconds, n*w.Read
	return w
}

// times multiplies the costs in w by n.
func (w *Way) times(n float64) {
	for _, v := range []*float64{&w.Device, &w.Processor, &w.Written, &w.RowBytes, &w.ListBytes, &w.SpillBytes, &w.ListSeconds} {
		*v *= n
	}
}
