package plan

import "github.com/gnnstore/gnnstore/cachetier/disk"

// Part is something that has a part of a run's memory.
type Part interface {
	// Need is the least bytes that work, and the most that are of use.
	Need() (least, useful int64)
}

// Batches is the part of blocks that are drawn ahead of their step.
type Batches struct {
	Bytes    int64 // of a batch's blocks
	Scratch  int64 // of drawing, for a step of the group that is drawn
	Groups   int   // in flight at a time
	Parallel int   // batches that are drawn at once
	Window   int   // steps of a group at most
	// Packed is the bytes of a batch that waits in a spill. Default: what is usual.
	Packed int64
	// Kept is the bytes of a step that stay in memory from its draw to its use, also while its
	// batch waits in a spill.
	Kept int64
	// Far says that any number of steps can be drawn together, reading each list once a hop.
	Far bool
}

// packed returns Packed, or about the bytes of a batch without its reverses.
func (b Batches) packed() float64 {
	if b.Packed > 0 {
		return float64(b.Packed)
	}
	return 0.6 * float64(b.Bytes)
}

// Need returns the bytes of one batch, and of 4 × Parallel steps in each group that is in flight.
func (b Batches) Need() (least, useful int64) { return b.Bytes, 4 * int64(b.Parallel) * b.step() }

// step returns the bytes that one more step in each group takes, in all groups together.
func (b Batches) step() int64 { return b.Bytes*int64(b.Groups) + b.Scratch }

// Rows is the part of one feature table.
type Rows struct {
	Count, Bytes int64 // rows of the table, bytes of one
	Index        int64 // bookkeeping of a row in the host cache
	Inputs       int   // rows that a batch reads
	// Fixed counts the bytes that the host cache needs to exist, beside the rows of a group.
	// Default 0: it is little beside them.
	Fixed int64
	// Rewritten says that steps change the rows that they read. Noted counts the bytes that the
	// host cache takes to know which rows it has changed.
	Rewritten bool
	// Cold is the measured number of rows that a step of a window reads. Default 0: not known.
	Cold  float64
	Noted int64
	// Runs is the number of rows in a run. Apart bytes of other rows follow each run. Default 0:
	// the rows follow each other.
	Runs  int64
	Apart int64
}

// Need returns 0, since any row can be read for its step, and the bytes of the whole table.
func (r Rows) Need() (least, useful int64) { return 0, r.Count*r.Bytes + r.Noted }

// marginal is the share of a batch's rows that the other batches of its window do not want as well,
// for sizing: towards 1 windows are smaller than they could be, towards 0 they are cut.
const marginal = 0.9

// window returns the bytes of host cache that one more step of a window takes.
func (r Rows) window() float64 { return marginal * float64(r.Inputs) * float64(r.Bytes+r.Index) }

// Seconds returns the time that the device reads rows for group steps, and writes them back where
// they change, when bytes of the table are in memory.
func (r Rows) Seconds(d disk.Costs, bytes, group float64) float64 {
	inMemory := bytes / float64(r.Bytes)
	if inMemory >= float64(r.Count) {
		return 0
	}
	union := min(marginal*float64(r.Inputs)*group, float64(r.Count))
	kept := max(0, inMemory-union) / float64(r.Count) // of all rows; the hot ones are wanted more often than that
	seconds := d.Spread(union*(1-kept), float64(r.Count), float64(r.Bytes))
	if r.Rewritten {
		seconds *= 2
	}
	return seconds
}

// Lists is the part of the neighbour lists of one relation.
type Lists struct {
	Nodes   int64
	Offsets int64   // bytes of compact offsets
	Bytes   int64   // of all lists, with their weights where they count
	Wanted  []int64 // lists that a batch reads at each hop
	// Runs and Apart are as of Rows.
	Runs, Apart int64
}

// Need returns the bytes of the offsets, and of the offsets with all lists.
func (l Lists) Need() (least, useful int64) { return l.Offsets, l.Offsets + l.Bytes }

// Seconds returns the time that the device reads lists for group steps, when bytes of them are in
// memory.
func (l Lists) Seconds(d disk.Costs, bytes, group float64) (seconds float64) {
	cold := float64(l.Bytes) - bytes
	if cold <= 0 {
		return 0
	}
	share := cold / float64(l.Bytes)
	for _, wanted := range l.Wanted {
		n := min(float64(wanted)*group, float64(l.Nodes)) * share
		seconds += d.Spread(n, float64(l.Nodes)*share, cold/(float64(l.Nodes)*share))
	}
	return seconds
}
