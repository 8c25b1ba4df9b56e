package plan

import "math"

// cold is a table that is not in memory as a whole.
type cold struct {
	Rows
	popularity
	table int // index in Demand.Rows
	slots float64
	held  float64 // steps whose rows fill the slots
	ratio float64 // known misses of a window ÷ misses by the popularity
}

// of returns the number of different rows that so many steps want.
func (c *cold) of(steps float64) float64 {
	n := c.popularity.of(steps)
	if n > c.slots {
		n = min(c.slots+c.ratio*(n-c.slots), c.count)
	}
	return n
}

// missed returns the number of rows that a window of n steps misses after behind other steps.
// The slots hold rows of the last of these steps.
func (c *cold) missed(behind, n float64) float64 {
	held := min(behind, c.held)
	return c.of(held+n) - c.of(held)
}

// know takes note of what a step of a window misses, once the slots are full.
func (c *cold) know(group float64) {
	c.ratio = 1
	if thought := c.missed(c.held, group); c.Cold > 0 && thought > 0 {
		c.ratio = c.Cold * group / thought
	}
}

// epoch holds the sizes that the ways of one budget share.
type epoch struct {
	Demand
	tables []cold
	cold   float64 // the share of the lists that is on disk
	group  float64 // steps of a window
	count  int     // of windows
	first  int     // steps of the first window
	last   int     // steps of the last window
	// batches counts the bytes that drawn batches may take.
	batches int64
}

// epoch sizes the windows of budget b, with so many groups of batches in flight. With one group, a
// window has one step.
func (d Demand) epoch(b Budget, groups int) *epoch {
	e := &epoch{Demand: d, group: float64(max(1, d.Batches.Window)), batches: b.Batches}
	_, allRows := d.rows()
	for i, r := range d.Rows {
		_, useful := r.Need()
		part := share(useful, allRows)
		if part*float64(b.Device+b.Host) >= float64(r.Count*r.Bytes) {
			continue
		}
		host := part * float64(b.Host) / float64(r.Bytes+r.Index)
		c := cold{Rows: r, table: i, popularity: popularityOf(r.Count, float64(r.Inputs)), slots: host + part*float64(b.Device)/float64(r.Bytes)}
		c.held = c.uses(c.slots) / max(c.each, 1)
		e.group = min(e.group, c.uses(host)/max(c.each, 1))
		e.tables = append(e.tables, c)
	}
	if offsets, lists := d.lists(); lists > offsets {
		e.cold = max(0, 1-float64(b.Topology-offsets)/float64(lists-offsets))
	}
	if len(e.tables) == 0 {
		e.group = float64(b.Group)
	}
	if d.Batches.Bytes > 0 {
		e.group = min(e.group, float64(b.Batches)/float64(groups)/float64(d.Batches.Bytes))
	}
	if e.group = max(1, math.Floor(e.group)); groups == 1 {
		e.group = 1
	}
	for i := range e.tables {
		e.tables[i].know(e.group)
	}
	return e
}

// gap is Planner.gap, by the popularity.
func (e *epoch) gap(steps float64) (bytes float64) {
	for i := range e.tables {
		if c := &e.tables[i]; c.each > 0 {
			bytes = max(bytes, c.count*float64(c.Bytes)/c.of(steps))
		}
	}
	return bytes
}

// popularity estimates how many different nodes several steps want, if each wants as many.
//
// How often nodes are wanted follows a power law of exponent 2.5: P(more than x) = (x₀/x)^1.5 from
// some x₀ on, as in scale-free graphs (Barabási and Albert, Science 286, 1999, find 2.1 to 3).
// Measured are the different rows of 24, 180 and 909 steps of 100 seeds of a generated graph of 10
// M nodes, in thousands: 970, 4,528 and 8,824; by this 963, 4,559 and 9,109. Of 36 and 180 steps of
// 20 seeds of ogbn-arxiv: 70.1 and 133.1; by this 74.4 and 152.1. If all were wanted alike, 24
// steps would want 1,107.
type popularity struct {
	count float64
	each  float64 // uses of a step
}

func popularityOf(count int64, wanted float64) popularity {
	p := popularity{count: float64(count)}
	p.each = p.uses(wanted)
	return p
}

// distinct returns the expected number of different nodes in so many uses.
func (p popularity) distinct(uses float64) float64 {
	x := uses / p.count / 3 // x₀
	missed := math.Exp(-x)*(1-2*x) + 2*math.Sqrt(math.Pi)*math.Pow(x, 1.5)*math.Erfc(math.Sqrt(x))
	return p.count * min(1, max(0, 1-missed))
}

// uses returns the uses in which so many different nodes are expected: the inverse of distinct.
func (p popularity) uses(distinct float64) float64 {
	if distinct >= p.count {
		return 1000 * p.count
	}
	lo, hi := 0.0, 2*p.count
	for ; p.distinct(hi) < distinct; hi *= 2 {
		lo = hi
	}
	for range 50 {
		if mid := (lo + hi) / 2; p.distinct(mid) < distinct {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// of returns the number of different nodes that so many steps want.
func (p popularity) of(steps float64) float64 {
	if steps <= 0 || p.each == 0 {
		return 0
	}
	return p.distinct(steps * p.each)
}
