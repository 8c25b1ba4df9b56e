package train

import (
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
)

// Auto stands for a budget that is a part of --memory, and for epochs that a run decides on.
const Auto = -1

// Budget is how the memory of a run is split. Its JSON keys are stable.
type Budget struct {
	Total int64 `json:"total_bytes"` // --memory, or its default
	// Fixed is what no option changes: the program, the split, page checksums, buffers of the disk engine, weights and moments.
	Fixed    int64 `json:"fixed_bytes"`
	Step     int64 `json:"step_bytes"`     // activations and gradients of a batch, and its feature rows twice
	Batches  int64 `json:"batch_bytes"`    // blocks that are drawn ahead
	Topology int64 `json:"topology_bytes"` // offsets, and neighbour lists from the first node on
	Device   int64 `json:"device_bytes"`   // feature rows from the first on
	Host     int64 `json:"host_bytes"`     // feature rows: static, or waiting for their step, or kept for a later one
	Group    int   `json:"group"`          // steps that are drawn and read together, as far as the first batch tells
}

func (b Budget) String() string {
	size := kernels.FormatBytes
	return fmt.Sprintf("memory %s: topology %s, features %s, %s of batches drawn ahead, %s a step, %s the rest",
		size(b.Total), size(b.Topology), size(b.Host+b.Device), size(b.Batches), size(b.Step), size(b.Fixed))
}

// demand is what a run could use, and what a batch takes: the first of its first epoch, which the others are like.
type demand struct {
	fixed, step int64
	batch       int64   // bytes of its blocks
	scratch     int64   // of drawing, for a step of the group that is drawn
	inputs      int     // feature rows that it reads
	lists       []int64 // neighbour lists that each hop reads
	groups      int     // that are in flight at a time
	parallel    int     // batches that are drawn at once
	window      int     // steps of a group at most

	rows, rowBytes int64 // of the feature table
	rowIndex       int64 // bookkeeping of a row in the slab
	offsets        int64 // bytes of compact offsets
	listBytes      int64 // of all neighbour lists, with their weights where they count
	nodes          int64
	costs          disk.Costs
}

// marginal is the share of a batch's rows that the other batches of its window do not want as well, for sizing: towards 1
// windows are smaller than they could be, towards 0 they are cut.
const marginal = 0.9

// split divides total bytes among the tiers. Parts of given that are not Auto are as they are. The error names the least total
// that works.
func (d demand) split(total int64, given Budget) (Budget, error) {
	given = d.useful(given)
	b := Budget{Total: total, Fixed: d.fixed + d.scratch, Step: d.step, Device: max(given.Device, 0)}
	one := d.batch*int64(d.groups) + d.scratch // a step a group
	least := b.Fixed + d.step + orElse(given.Batches, d.batch) + orElse(given.Topology, d.offsets) + b.Device + max(given.Host, 0)
	if total < least { // in whole MiB, since what is said is tried
		return b, fmt.Errorf("--memory %s is not enough: with this dataset, batch and fanout the least that works is %d MiB (%s)",
			kernels.FormatBytes(total), roundMiB(least)>>20, Budget{Total: least, Fixed: b.Fixed, Step: d.step, Batches: orElse(given.Batches, d.batch),
				Topology: orElse(given.Topology, d.offsets), Device: b.Device, Host: max(given.Host, 0)})
	}
	room := total - b.Fixed - d.step - b.Device
	table := max(0, d.rows*d.rowBytes-b.Device)
	best := math.Inf(1)
	// What is left is for neighbour lists, for rows, and for the blocks of as many steps as the rows allow. How much of it
	// the lists get is tried in eighths of them.
	for part := int64(0); part <= 8; part++ {
		c := b
		c.Topology = orElse(given.Topology, d.offsets+(d.listBytes*part+7)/8)
		left := room - c.Topology
		if left < orElse(given.Batches, d.batch)+max(given.Host, 0) {
			break
		}
		ahead := int64(d.parallel) * one // to keep all who draw at work
		switch {
		case given.Host == Auto && given.Batches == Auto && left >= table+ahead:
			c.Host, c.Group = table, min(d.parallel, d.window)
			c.Batches = min(left-table, 4*ahead)
		default:
			rows := marginal * float64(d.inputs) * float64(d.rowBytes+d.rowIndex)
			group := float64(left) / (rows + float64(one))
			if given.Host != Auto {
				group = min(float64(given.Host)/rows, float64(left-given.Host)/float64(one))
			}
			switch {
			case given.Batches != Auto && given.Host != Auto:
				group = min(float64(given.Host)/rows, float64(given.Batches)/float64(one))
			case given.Batches != Auto:
				group = min(float64(left-given.Batches)/rows, float64(given.Batches)/float64(one))
			}
			c.Group = max(1, int(min(group, float64(d.window))))
			c.Batches = orElse(given.Batches, min(left-max(given.Host, 0), max((one-d.scratch)*int64(c.Group), d.batch)))
			c.Host = orElse(given.Host, min(left-c.Batches, table+table/16))
		}
		if cost := d.seconds(c); cost < best {
			best, b = cost, c
		}
	}
	return b, nil
}

// useful is given without what no tier has a use for: budgets may be larger than the data.
func (d demand) useful(given Budget) Budget {
	table := d.rows * d.rowBytes
	given.Topology = min(given.Topology, d.offsets+d.listBytes)
	given.Device = min(given.Device, table)
	given.Host = min(given.Host, 2*table+1<<20) // with the bookkeeping of rows of any width
	given.Batches = min(given.Batches, math.MaxInt64/8)
	return given
}

// seconds is what the device is busy for, for a step.
func (d demand) seconds(b Budget) float64 {
	group := float64(b.Group)
	inMemory := float64(b.Device+b.Host) / float64(d.rowBytes)
	seconds := 0.0
	if inMemory < float64(d.rows) {
		union := min(marginal*float64(d.inputs)*group, float64(d.rows))
		kept := max(0, inMemory-union) / float64(d.rows) // of all rows; the hot ones are wanted more often than that
		seconds += spread(d.costs, union*(1-kept), float64(d.rows), float64(d.rowBytes))
	}
	if cold := float64(d.listBytes) - float64(b.Topology-d.offsets); cold > 0 {
		share := cold / float64(d.listBytes)
		for _, lists := range d.lists {
			n := min(float64(lists)*group, float64(d.nodes)) * share
			seconds += spread(d.costs, n, float64(d.nodes)*share, cold/(float64(d.nodes)*share))
		}
	}
	return seconds / group
}

// spread is the seconds that reading n of total things takes, of bytes each and spread evenly over a file: piece by piece,
// or through the gaps between them, whichever is less.
func spread(c disk.Costs, n, total, bytes float64) float64 {
	if n <= 0 {
		return 0
	}
	each := c.SecondsPerRead + max(bytes, 4096)/c.BytesPerSecond
	through := bytes * max(total/n, 1) / c.BytesPerSecond
	return n * min(each, through)
}

func orElse(given, otherwise int64) int64 {
	if given != Auto {
		return given
	}
	return otherwise
}

func roundMiB(n int64) int64 { return (n + 1<<20 - 1) &^ (1<<20 - 1) }
