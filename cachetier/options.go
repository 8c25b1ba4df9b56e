package cachetier

import (
	"errors"
	"fmt"

	"github.com/gnnstore/gnnstore/cachetier/device"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
)

// Policy names how the host cache chooses the rows that it keeps: see policy.Kind.
type Policy = policy.Kind

// The policies. Belady is the default: an empty Policy means Belady.
const (
	Belady = policy.Belady
	LRU    = policy.LRU
	Sieve  = policy.Sieve
	Static = policy.Static
	None   = policy.None
)

// MaxLookahead bounds Options.Lookahead.
const MaxLookahead = 1024

// Options says how much memory the tiers may take, how the host cache is used, and how the disk is
// read. The zero value caches nothing and works; no option changes the rows that are delivered. Any
// budget is fine: one that is too small for a row buys no row, and one larger than the table is cut
// down to it.
type Options struct {
	// DeviceBytes is the budget of the device region, which holds as many rows as fit from the
	// start of the table. Default 0: no region.
	DeviceBytes int64 `json:"device_bytes"`

	// Region is where the rows of the device region lie, as a part of it that Open takes; it must
	// have room for DeviceBytes. It stays the caller's, who closes it once the Stack is closed.
	// Default: memory of the Stack's own.
	Region *device.Buffer `json:"-"`

	// HostBytes is the budget of the host tier: its static region, the cache, and the bookkeeping.
	// Where the rest of the table fits in it, the static region has it whole, except under None.
	// Default 0: no host tier.
	HostBytes int64 `json:"host_bytes"`

	// StaticBytes is the part of HostBytes, at most all of it, for the static region: the rows that
	// follow the device region's, read once. Default 0. Where the bookkeeping of a cache would take
	// more than half of the rest, the static region gets all of HostBytes, except under None.
	StaticBytes int64 `json:"static_bytes,omitempty"`

	// Policy of the cache. Default Belady.
	Policy Policy `json:"policy"`

	// Lookahead is how many groups after the one at hand Belady foresees, at most MaxLookahead:
	// each takes a bit per row of the table, and together at most a quarter of what the cache has.
	// Default 0: only the rest of the group at hand.
	Lookahead int `json:"lookahead,omitempty"`

	// Prewarm fills the cache in Open with the rows that follow the static region's, in one
	// sequential pass. It saves the first windows their random reads, and is not worth it for a run
	// that reads less than the cache holds. Under None it does nothing. Default false.
	Prewarm bool `json:"prewarm,omitempty"`

	// Engine reads the disk. Default disk.Auto.
	Engine disk.Kind `json:"engine"`

	// Direct, Probe, Costs and Faults are those of disk.Options.
	Direct bool        `json:"-"`
	Probe  bool        `json:"-"`
	Costs  disk.Costs  `json:"-"`
	Faults disk.Faults `json:"-"`

	// Readers is how many reads of the disk are under way, at most disk.MaxDepth. Default 0: what
	// suits the engine.
	Readers int `json:"readers"`
}

// bookkeeping is what the rows of Records take beside that of others.
type bookkeeping struct{ fixed, slot int64 }

// Validate reports every option that cannot be followed.
func (o Options) Validate() error {
	var errs []error
	if o.DeviceBytes < 0 {
		errs = append(errs, fmt.Errorf("device budget of %d bytes: use 0 for none", o.DeviceBytes))
	}
	if o.HostBytes < 0 {
		errs = append(errs, fmt.Errorf("host budget of %d bytes: use 0 for none", o.HostBytes))
	}
	if o.StaticBytes < 0 {
		errs = append(errs, fmt.Errorf("static region of %d bytes: use 0 for none", o.StaticBytes))
	}
	if o.Policy != "" {
		errs = append(errs, o.Policy.Validate())
	}
	if o.Lookahead < 0 || o.Lookahead > MaxLookahead {
		errs = append(errs, fmt.Errorf("a look-ahead of %d groups: use 0 to %d", o.Lookahead, MaxLookahead))
	}
	errs = append(errs, o.Disk().Validate())
	return errors.Join(errs...)
}

// Disk is the part of o that says how the disk is read.
func (o Options) Disk() disk.Options {
	return disk.Options{
		Kind: o.Engine, Depth: o.Readers, Direct: o.Direct, Probe: o.Probe, Costs: o.Costs, Faults: o.Faults,
	}
}

// layout is what the budgets buy, in rows.
type layout struct {
	device    int // rows [0, device) are in the device region
	hot       int // rows [device, hot) are in the static region
	slots     int // of the cache; 0: no bookkeeping either
	lookahead int // groups
	cache     policy.Config
	noted     bookkeeping
}

// layout makes the plan of memory for a table of rows rows. Policy is filled in.
func (o Options) layout(rows, rowBytes int, noted bookkeeping) layout {
	size := int64(rowBytes)
	l := layout{device: int(min(o.DeviceBytes/size, int64(rows))), noted: noted}
	o.HostBytes = max(0, o.HostBytes-noted.fixed)
	static := min(o.StaticBytes, o.HostBytes) / size
	if all := o.HostBytes / size; o.Policy != None && all >= int64(rows-l.device) {
		static = all
	}
	l.hot = l.device + int(min(static, int64(rows-l.device)))
	left := o.HostBytes - int64(l.hot-l.device)*size
	if l.hot == rows {
		return l
	}
	l.cache = policy.Config{Kind: o.Policy, Rows: rows - l.hot}
	set := int64(8 * policy.SetWords(l.cache.Rows))
	if o.Policy == Belady {
		l.lookahead = int(min(int64(o.Lookahead), left/4/set))
	}
	fixed := l.cache.FixedBytes() + int64(l.lookahead+spareSets)*set
	if fixed > left/2 {
		if o.Policy != None {
			l.hot = l.device + int(min(o.HostBytes/size, int64(rows-l.device)))
		}
		return l
	}
	l.slots = int(min((left-fixed)/(size+l.cache.SlotBytes()+noted.slot), int64(l.cache.Rows)))
	l.cache.Slots = l.slots
	if l.slots == 0 {
		l.lookahead = 0
	}
	return l
}

// CacheBytes is what the cache of a table takes of its host budget for bookkeeping whatever it
// holds. A Stack has one where that is half of the budget at most: else the first rows are held in
// its place, and windows have one step.
func (o Options) CacheBytes(rows int) int64 {
	if o.Policy == "" {
		o.Policy = Belady
	}
	c, lookahead := policy.Config{Kind: o.Policy, Rows: rows}, 0
	if o.Policy == Belady {
		lookahead = o.Lookahead
	}
	return c.FixedBytes() + int64(lookahead+spareSets)*int64(8*policy.SetWords(rows))
}

// indexBytes is the bookkeeping of the cache, and of which rows were rewritten.
func (l layout) indexBytes() int64 {
	n := int64(0)
	if l.hot > l.device || l.slots > 0 {
		n = l.noted.fixed
	}
	if l.slots == 0 {
		return n
	}
	return n + int64(l.slots)*l.noted.slot + l.cache.Bytes() + int64(l.lookahead+spareSets)*int64(8*policy.SetWords(l.cache.Rows))
}
