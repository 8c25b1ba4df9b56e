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

// Options sets the memory of the tiers, the policy of the host cache, and how the disk is read. The
// zero value works and caches nothing. No option changes the rows that are delivered. Any budget is
// fine: one that is too small for a row holds none, and one larger than the table is cut down to
// it.
type Options struct {
	// DeviceBytes is the budget of the device region, which holds as many rows as fit from the
	// start of the table. Default 0: no region.
	DeviceBytes int64 `json:"device_bytes"`

	// Region is device memory that others may share. Open takes a part of it for the device region,
	// so it must have room for DeviceBytes. It stays the caller's, who closes it after the Stack.
	// If the host cannot address it, a step's rows that lie there are not gathered: see
	// [Window.Places] and PeekBeyond. Peek and Stack.Gather then read them from disk. A Stack over
	// Records takes host memory instead. Default: memory of the Stack's own.
	Region *device.Buffer `json:"-"`

	// SharedBytes is room in the Region that slots take bit by bit. Until then more rows lie there:
	// see device.Rings. The host tier has these rows as well, as the first of its static region.
	// Default 0. It has no effect where the host addresses the Region.
	SharedBytes int64 `json:"-"`

	// DevicePolicy makes a dynamic part in a Region that the host cannot address: rows that came
	// for a step stay there for later steps. The policy chooses which. It is LRU, or Belady, which
	// foresees up to 16 expected steps, or None: no dynamic part. The bookkeeping is in HostBytes.
	// If it would take more than a quarter of HostBytes, there is no dynamic part. Default None.
	DevicePolicy Policy `json:"device_policy,omitempty"`

	// DynamicBytes is the part of DeviceBytes, at most all of it, for DevicePolicy. Default 0: a
	// fifth.
	DynamicBytes int64 `json:"-"`

	// HostBytes is the budget of the host tier: its static region, the cache, and the bookkeeping.
	// If it has room for the rest of the table, the static region holds all of that, except under
	// None. Default 0: no host tier.
	HostBytes int64 `json:"host_bytes"`

	// StaticBytes is the part of HostBytes, at most all of it, for the static region: the rows that
	// follow the device region's, read once. Default 0. If the bookkeeping of a cache would take
	// more than half of what is left, the static region gets all of HostBytes, except under None.
	StaticBytes int64 `json:"static_bytes,omitempty"`

	// Policy of the cache. Default Belady.
	Policy Policy `json:"policy"`

	// Lookahead is the number of groups after the current one that Belady foresees, at most
	// MaxLookahead. Each takes a bit per row of the table; together they take at most a quarter of
	// the memory left for the cache. Default 0: only the rest of the current group.
	Lookahead int `json:"lookahead,omitempty"`

	// Prewarm fills the cache in Open with the rows that follow the static region's, in one
	// sequential pass. It saves the first windows their random reads. It is not worth it for a run
	// that reads less than the cache holds. Under None it does nothing. Default false.
	Prewarm bool `json:"prewarm,omitempty"`

	// Engine reads the disk. Default disk.Auto.
	Engine disk.Kind `json:"engine"`

	// Direct, Probe, Costs and Faults are passed to disk.Options.
	Direct bool        `json:"-"`
	Probe  bool        `json:"-"`
	Costs  disk.Costs  `json:"-"`
	Faults disk.Faults `json:"-"`

	// Readers is the largest number of disk reads in flight, at most disk.MaxDepth. Default 0: the
	// default of the engine.
	Readers int `json:"readers"`
}

// bookkeeping is the additional bookkeeping for Records, in bytes: once, and for each slot.
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
	if o.SharedBytes < 0 {
		errs = append(errs, fmt.Errorf("shared room of %d bytes: use 0 for none", o.SharedBytes))
	}
	if o.DynamicBytes < 0 {
		errs = append(errs, fmt.Errorf("dynamic part of %d bytes: use 0 for none", o.DynamicBytes))
	}
	if p := o.DevicePolicy; p != "" && p != None && p != LRU && p != Belady {
		errs = append(errs, fmt.Errorf("device policy %q: use none, lru or belady", string(p)))
	}
	if o.Lookahead < 0 || o.Lookahead > MaxLookahead {
		errs = append(errs, fmt.Errorf("a look-ahead of %d groups: use 0 to %d", o.Lookahead, MaxLookahead))
	}
	errs = append(errs, o.Disk().Validate())
	return errors.Join(errs...)
}

// Disk returns the part of o that configures the disk reader.
func (o Options) Disk() disk.Options {
	return disk.Options{
		Kind: o.Engine, Depth: o.Readers, Direct: o.Direct, Probe: o.Probe, Costs: o.Costs, Faults: o.Faults,
	}
}

// layout holds the sizes that the budgets allow, in rows.
type layout struct {
	device    int // rows [0, device) are in the device region
	shared    int // more rows that are there until slots displace them
	dynamic   policy.Config
	hot       int // rows [device, hot) are in the static region
	slots     int // of the cache; 0: no bookkeeping either
	lookahead int // groups
	cache     policy.Config
	noted     bookkeeping
}

// layout divides the budgets for a table of rows rows. Policy must be set.
func (o Options) layout(rows, rowBytes int, noted bookkeeping) layout {
	size := int64(rowBytes)
	l := layout{device: int(min(o.DeviceBytes/size, int64(rows))), noted: noted}
	if o.Region.Apart() {
		l.dynamic = o.dynamic(rows, l.device, size)
		o.HostBytes -= dynamicBytes(l.dynamic)
		l.device -= l.dynamic.Slots
		l.shared = int(min((o.DeviceBytes+o.SharedBytes)/size, int64(rows))) - l.device - l.dynamic.Slots
	}
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
	fixed := l.cache.FixedBytes() + int64(l.lookahead+l.spare())*set
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

// dynamic returns the size of the dynamic part among device rows of the region, and its policy.
func (o Options) dynamic(rows, device int, size int64) (c policy.Config) {
	if o.DevicePolicy == "" || o.DevicePolicy == None || device == rows || size%2 != 0 {
		return c
	}
	bytes := o.DynamicBytes
	if bytes == 0 {
		bytes = o.DeviceBytes / 5
	}
	slots := int(min(bytes/size, int64(device)))
	c = policy.Config{Kind: o.DevicePolicy, Rows: rows - device + slots, Slots: slots}
	if slots == 0 || dynamicBytes(c) > o.HostBytes/4 {
		return policy.Config{}
	}
	return c
}

// CacheBytes returns the bookkeeping, in bytes, that a cache over rows rows takes from its host
// budget whatever it holds. A Stack has a cache only if that is at most half of the budget.
// Otherwise the budget holds the first rows instead, and windows have one step.
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

// indexBytes returns the bytes of bookkeeping: for the cache, and for the set of rewritten rows.
func (l layout) indexBytes() int64 {
	n := dynamicBytes(l.dynamic)
	if l.hot > l.device || l.slots > 0 {
		n += l.noted.fixed
	}
	if l.slots == 0 {
		return n
	}
	sets := int64(l.lookahead + l.spare())
	return n + int64(l.slots)*l.noted.slot + l.cache.Bytes() + sets*int64(8*policy.SetWords(l.cache.Rows))
}
