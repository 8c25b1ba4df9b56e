package cachetier

import (
	"errors"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
)

// Policy names how the host cache chooses the rows that it keeps.
type Policy string

const (
	// LRU admits every row read from disk and throws out the row unused for longest. It is the default: an empty Policy
	// means LRU.
	LRU Policy = "lru"
	// None keeps nothing: the host cache takes no memory, whatever its budget.
	None Policy = "none"
)

// Options says how much memory the tiers may take and how the disk is read. The zero value caches nothing and works;
// no option changes the rows that Gather delivers. Any budget is fine: one that is too small for a row buys no row, and
// one larger than the table is cut down to it.
type Options struct {
	// DeviceBytes is the budget of the device region, which holds as many rows as fit from the start of the table.
	// Default 0: no region.
	DeviceBytes int64 `json:"device_bytes"`

	// HostBytes is the budget of the host cache: rows, and the bookkeeping that finds them. Default 0: no cache.
	HostBytes int64 `json:"host_bytes"`

	// Policy of the host cache. Default LRU.
	Policy Policy `json:"policy"`

	// Engine reads the disk. Default disk.Auto.
	Engine disk.Kind `json:"engine"`

	// Readers is how many reads of the disk are under way, at most disk.MaxDepth. Default 0: what suits the engine.
	Readers int `json:"readers"`
}

// Validate reports every option that cannot be followed.
func (o Options) Validate() error {
	var errs []error
	if o.DeviceBytes < 0 {
		errs = append(errs, fmt.Errorf("device budget of %d bytes: use 0 for none", o.DeviceBytes))
	}
	if o.HostBytes < 0 {
		errs = append(errs, fmt.Errorf("host budget of %d bytes: use 0 for none", o.HostBytes))
	}
	if o.Policy != "" && o.Policy != LRU && o.Policy != None {
		errs = append(errs, fmt.Errorf("unknown cache policy %q: use lru or none", string(o.Policy)))
	}
	errs = append(errs, disk.Options{Kind: o.Engine, Depth: o.Readers}.Validate())
	return errors.Join(errs...)
}

// hotRows is how many rows the device region holds.
func (o Options) hotRows(rows, rowBytes int) int {
	return int(min(o.DeviceBytes/int64(rowBytes), int64(rows)))
}

// hostIndexBytes is the bookkeeping of the host cache per row: the policy's, and a mark in Stack.fresh.
const hostIndexBytes = policy.LRUBytesPerRow + 1

// hostRows is how many rows the host cache holds, of a table of rows rows of which hot are in the device region.
func (o Options) hostRows(rows, hot, rowBytes int) int {
	if o.Policy == None {
		return 0
	}
	fit := o.HostBytes / int64(rowBytes+hostIndexBytes)
	return int(min(fit, int64(rows-hot), math.MaxUint32-1)) // a policy's slots are 32 bits
}
