package plan

import (
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
)

// Auto stands for a budget that is a part of the whole.
const Auto = -1

// Budget splits the memory of a run. Its JSON keys are stable.
type Budget struct {
	Total int64 `json:"total_bytes"` // bytes that the process may take in all
	// Fixed counts the bytes that no option changes: the program, the split, page checksums,
	// buffers of the disk engine, weights and moments.
	Fixed    int64 `json:"fixed_bytes"`
	Step     int64 `json:"step_bytes"`              // activations and gradients of a batch, and its feature rows twice
	Batches  int64 `json:"batch_bytes"`             // blocks that are drawn ahead
	Topology int64 `json:"topology_bytes"`          // offsets, and neighbour lists from the first node on
	Device   int64 `json:"device_bytes"`            // feature rows from the first on
	Host     int64 `json:"host_bytes"`              // feature rows: static, or waiting for their step, or kept for a later one
	History  int64 `json:"history_bytes,omitempty"` // hidden rows of earlier steps
	Join     int64 `json:"join_bytes,omitempty"`    // the windows' wants of rows, and segments of a spill while they fill
	// OnDevice is memory of a device, beside Total: weights, a step, slots of hidden rows, and the
	// rows of Device if they are apart.
	OnDevice int64 `json:"on_device_bytes,omitempty"`
	Apart    bool  `json:"-"`     // the rows of Device are no part of Total
	Group    int   `json:"group"` // steps that are drawn and read together, as far as the first batch tells
}

// DeviceInTotal returns the part of Total that Device takes.
func (b Budget) DeviceInTotal() int64 {
	if b.Apart {
		return 0
	}
	return b.Device
}

func (b Budget) String() string {
	size := kernels.FormatBytes
	history := ""
	if b.History > 0 {
		history = fmt.Sprintf("hidden rows of earlier steps %s, ", size(b.History))
	}
	if b.Join > 0 {
		history += fmt.Sprintf("the join of windows %s, ", size(b.Join))
	}
	beside := ""
	if b.OnDevice > 0 {
		beside = fmt.Sprintf("; beside it on the device %s", size(b.OnDevice))
	}
	return fmt.Sprintf("memory %s: topology %s, features %s, %s%s of batches drawn ahead, %s a step, %s the rest%s",
		size(b.Total), size(b.Topology), size(b.Host+b.DeviceInTotal()), history, size(b.Batches), size(b.Step), size(b.Fixed),
		beside)
}

// Demand holds the parts of a run that share its memory. The sizes of a batch are measured on the
// first batch of the first epoch; the others are like it.
type Demand struct {
	Fixed, Step int64
	OnDevice    int64 // of a device with memory of its own: Budget.OnDevice
	Apart       bool  // Budget.Apart
	History     int64 // hidden rows of earlier steps, with their index
	Join        int64 // memory of horizons, beside the spill
	Batches     Batches
	Rows        []Rows     // of each feature table
	Lists       []Lists    // of each relation
	Disk        disk.Costs // by which reads are merged
	// Timed has the costs of the device, if they are known to differ from Disk.
	Timed disk.Costs
	Cores int // processors
}

// MaxWindow bounds the steps of a group, far beyond what is of use.
const MaxWindow = 1 << 16

// NotEnough says that a total is less than the parts need.
type NotEnough struct {
	Total int64
	Least Budget // the least that works, and its parts
	// Workers is the number of workers that share the process. Total and Least are for one of them.
	// 0 means 1.
	Workers int64
}

// MiB returns the least memory that works for all workers together, in MiB, as users enter it. The
// share of each worker is rounded up.
func (e *NotEnough) MiB() int64 { return max(e.Workers, 1) * ((e.Least.Total + 1<<20 - 1) >> 20) }

func (e *NotEnough) Error() string {
	n, of, each := max(e.Workers, 1), "", ""
	if n > 1 {
		of, each = fmt.Sprintf(" for %d workers", n), "each: "
	}
	return fmt.Sprintf("{memory_bytes} %s%s is not enough: with this dataset, batch and fanout the least that works is %d MiB (%s%s)",
		kernels.FormatBytes(n*e.Total), of, e.MiB(), each, e.Least)
}

// Split divides total bytes among the parts. Parts of given that are not Auto stay as given. The
// error is a *NotEnough.
func (d Demand) Split(total int64, given Budget) (Budget, error) {
	given = d.useful(given)
	_, table := d.rows()
	offsets, allLists := d.lists()
	batch, ahead := d.Batches.Need()
	lists, scratch := allLists-offsets, d.Batches.Scratch
	b := Budget{
		Total: total, Fixed: d.Fixed + scratch, Step: d.Step, Device: max(given.Device, 0), History: d.History,
		Join: d.Join, OnDevice: d.OnDevice, Apart: d.Apart,
	}
	if b.Apart {
		b.OnDevice += b.Device
	}
	one := d.Batches.step()
	least := b.Fixed + d.Step + d.History + d.Join + orElse(given.Batches, batch) + orElse(given.Topology, offsets) + b.DeviceInTotal() + max(given.Host, 0)
	if total < least {
		return b, &NotEnough{Total: total, Least: Budget{Total: least, Fixed: b.Fixed, Step: d.Step, History: d.History, Batches: orElse(given.Batches, batch),
			Topology: orElse(given.Topology, offsets), Device: b.Device, Apart: b.Apart, Host: max(given.Host, 0)}}
	}
	room := total - b.Fixed - d.Step - d.History - d.Join - b.DeviceInTotal()
	table = max(0, table-b.Device)
	best := math.Inf(1)
	// The rest is for neighbour lists, for rows, and for the blocks of as many steps as the rows
	// allow. The loop tries 0 to 8 eighths of the lists.
	for part := int64(0); part <= 8; part++ {
		c := b
		c.Topology = orElse(given.Topology, offsets+(lists*part+7)/8)
		left := room - c.Topology
		if left < orElse(given.Batches, batch)+max(given.Host, 0) {
			break
		}
		switch {
		case given.Host == Auto && given.Batches == Auto && left >= table+int64(d.Batches.Parallel)*one: // all workers are busy
			c.Host, c.Group = table, min(d.Batches.Parallel, d.Batches.Window)
			c.Batches = min(left-table, ahead)
		default:
			rows := d.window()
			group := float64(max(0, left-d.fixed())) / (rows + float64(one))
			if given.Host != Auto {
				group = min(float64(given.Host)/rows, float64(left-given.Host)/float64(one))
			}
			switch {
			case given.Batches != Auto && given.Host != Auto:
				group = min(float64(given.Host)/rows, float64(given.Batches)/float64(one))
			case given.Batches != Auto:
				group = min(float64(left-given.Batches)/rows, float64(given.Batches)/float64(one))
			}
			c.Group = max(1, int(min(group, float64(d.Batches.Window))))
			c.Batches = orElse(given.Batches, min(left-max(given.Host, 0), max((one-scratch)*int64(c.Group), batch)))
			c.Host = orElse(given.Host, min(left-c.Batches, table+table/16))
		}
		if cost := d.seconds(c); cost < best {
			best, b = cost, c
		}
	}
	return b, nil
}

// useful returns given, cut to what each part can use: budgets may be larger than the data.
func (d Demand) useful(given Budget) Budget {
	_, rows := d.rows()
	_, lists := d.lists()
	given.Topology = min(given.Topology, lists)
	given.Device = min(given.Device, rows)
	given.Host = min(given.Host, 2*rows+1<<20) // with the bookkeeping of rows of any width
	given.Batches = min(given.Batches, math.MaxInt64/8)
	return given
}

// rows and lists return the Need of all tables, and of all relations.
func (d Demand) rows() (least, useful int64)  { return needs(d.Rows) }
func (d Demand) lists() (least, useful int64) { return needs(d.Lists) }

// needs returns the sums over parts of what Need returns.
func needs[P Part](parts []P) (least, useful int64) {
	for _, p := range parts {
		l, u := p.Need()
		least, useful = least+l, useful+u
	}
	return least, useful
}

// fixed returns the bytes that the host cache has beside the rows of steps.
func (d Demand) fixed() (bytes int64) {
	for _, r := range d.Rows {
		bytes += r.Fixed
	}
	return bytes
}

// window returns the bytes of the host cache that one more step takes.
func (d Demand) window() (bytes float64) {
	for _, r := range d.Rows {
		bytes += r.window()
	}
	return bytes
}

// seconds returns the time that the device is busy for a step. Tables and relations share their
// memory by size.
func (d Demand) seconds(b Budget) float64 {
	group, seconds := float64(b.Group), 0.0
	_, allRows := d.rows()
	for _, r := range d.Rows {
		_, useful := r.Need()
		seconds += r.Seconds(d.Disk, share(useful, allRows)*float64(b.Device+b.Host), group)
	}
	offsets, allLists := d.lists()
	for _, l := range d.Lists {
		seconds += l.Seconds(d.Disk, share(l.Bytes, allLists-offsets)*float64(b.Topology-offsets), group)
	}
	return seconds / group
}

// share returns n / all, and 1 if all is 0.
func share(n, all int64) float64 {
	if all == 0 {
		return 1
	}
	return float64(n) / float64(all)
}

func orElse(given, otherwise int64) int64 {
	if given != Auto {
		return given
	}
	return otherwise
}
