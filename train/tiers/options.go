package tiers

import (
	"errors"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Options are the budgets of a run, and how far it works ahead. None changes what a run computes.
type Options struct {
	Workers int `json:"workers"` // goroutines that sample ahead
	// BatchBytes bounds the blocks that are drawn ahead; one batch is always let through. Auto is a
	// part of MemoryBytes.
	BatchBytes int64 `json:"batch_bytes"`
	// TopologyBytes is for offsets and for the neighbour lists that stay in memory. Auto is a part
	// of MemoryBytes.
	TopologyBytes int64 `json:"topology_bytes"`
	// Window is the number of steps that are drawn and read together, where the budgets allow; 0:
	// as many as they allow.
	Window int `json:"window"`
	// Lookahead is the number of groups of such steps that are drawn beyond the one whose reads are
	// planned. They are the future that the policy of the host cache knows.
	Lookahead int `json:"lookahead"`
	// MemoryBytes bounds the memory of the process: see plan.Budget. The Go heap is kept below it
	// less what lies outside the heap. 0: half of the machine's memory, or of what its control
	// group allows.
	MemoryBytes int64 `json:"memory_bytes"`
	// SpillBytes is the disk space that an epoch may use for rows that later windows want: see
	// cachetier.Horizon. 0: none. Auto: as much as the cost model finds worth it, and half of the
	// free space at most.
	SpillBytes int64 `json:"spill_bytes"`
	// Tmp is the directory of the spill. Default: the run's.
	Tmp string `json:"tmp,omitempty"`
	// DiskRate slows the reads of lists and rows and the spill to the rate of a slower disk, for
	// measurements: bytes and transfers a second, as disk.ParseRate reads them. Default: nothing is
	// slowed.
	DiskRate string `json:"disk_rate,omitempty"`
	// Hosted is the number of workers in this process, which share the budgets here; 0 means 1. It
	// is not recorded.
	Hosted int `json:"-"`
	// Parts connects workers that own nodes. Default nil: this worker reads for itself. It is not
	// recorded.
	Parts *Parts `json:"-"`
	// Cache is the budgets and policies of feature rows. HostBytes may be Auto: a part of
	// MemoryBytes.
	Cache cachetier.Options `json:"cache"`
}

// DefaultOptions leaves all to MemoryBytes, and that to the machine.
func DefaultOptions() Options {
	return Options{
		Workers: 2, BatchBytes: Auto, TopologyBytes: Auto, Lookahead: 1, SpillBytes: Auto,
		Cache: cachetier.Options{HostBytes: Auto, Policy: cachetier.Belady, Engine: disk.Auto},
	}
}

// hosted is Hosted, at least 1.
func (o Options) hosted() int64 { return int64(max(o.Hosted, 1)) }

// Part returns the budgets of one of the workers that share the process.
func (o Options) Part() (Options, error) {
	if o.Hosted <= 1 {
		return o, nil
	}
	memory, err := Memory(o.MemoryBytes)
	o.MemoryBytes = memory
	for _, b := range []*int64{
		&o.MemoryBytes, &o.BatchBytes, &o.TopologyBytes, &o.SpillBytes,
		&o.Cache.DeviceBytes, &o.Cache.DynamicBytes, &o.Cache.HostBytes,
	} {
		if *b > 0 { // other values have a meaning of their own
			*b = max(1, *b/o.hosted())
		}
	}
	return o, err
}

// maxLookahead is far beyond what is of use.
const maxLookahead = 1 << 10

// Validate reports every problem.
func (o Options) Validate() error {
	var errs sample.Problems
	fail := errs.If
	fail(o.Workers < 1 || o.Workers > 1024, "{workers} %d: from 1 to 1024", o.Workers)
	fail(o.MemoryBytes < 0, "{memory_bytes} %d: at least 0", o.MemoryBytes)
	fail(o.BatchBytes < Auto, "{batch_bytes} %d: at least 0", o.BatchBytes)
	fail(o.TopologyBytes < Auto, "{topology_bytes} %d: at least 0", o.TopologyBytes)
	fail(o.SpillBytes < Auto, "{spill_bytes} %d: at least 0", o.SpillBytes)
	fail(o.Window < 0 || o.Window > plan.MaxWindow, "{window} %d: from 1 to %d, or 0 for as many as fit", o.Window, plan.MaxWindow)
	fail(o.Lookahead < 0 || o.Lookahead > maxLookahead, "{lookahead} %d: from 0 to %d", o.Lookahead, maxLookahead)
	cache := o.Cache
	if cache.HostBytes == Auto {
		cache.HostBytes = 0
	}
	if cache.DeviceBytes == NoDevice {
		cache.DeviceBytes = 0
	}
	if err := cache.Engine.Validate(); err != nil {
		fail(true, "{engine}: %w", err)
		cache.Engine = disk.Auto
	}
	_, err := disk.ParseRate(o.DiskRate)
	fail(o.DiskRate != "" && err != nil, "{disk_rate} %w", err)
	return errors.Join(append(errs, cache.Validate())...)
}
