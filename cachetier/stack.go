// Package cachetier answers one question: given node ids, put their feature rows in this buffer,
// touching the disk as little as possible.
//
// A [Stack] has three tiers. The device region holds the first rows of the table. Ingest has made
// these the hottest, so that "is row v there" is v < H. The host tier has a static region with the
// rows that follow, and a cache. In the cache rows wait for their step, and stay as long as a
// [Policy] finds them worth it. All other rows are read from disk by package disk, in file order.
// [Options] gives each tier its budget; [Stats] counts what each did.
//
// Batches are known before they run, so rows are read by the [Window]: the union of what several
// steps need, in one sorted and merged pass. The planner announces the batches of a group of steps
// ([Stack.Expect]) and takes windows of it ([Stack.Next]). For each window the policy decides which
// rows stay ([Window.Keep]); then the window is loaded, gathered from step by step, and released.
// Rows that were not planned can be had at once ([Stack.Gather]), as a window of one step. Windows,
// hits and evictions are decided in step order. They depend only on the batches and the options,
// not on time or the number of workers.
//
// If more windows are known at once than memory has room for, they form a [Horizon]: one scan of
// the table serves them all, through a spill on disk.
//
// A Stack over [Records] has rows that steps rewrite. Windows read them ahead like any others, and
// what a step sees does not depend on when: see [Stack.Write].
//
// Memory: a Stack allocates its tiers and their bookkeeping in Open and Join, outside the Go heap
// (kernels.HostBuf), and releases them only in Close. Its device region may be a part of a buffer
// that others share: Options.Region. A window of one step also keeps scratch lists, some 40 bytes
// per id of the largest: they grow with the batch and not with the table. Rows are copied into the
// caller's buffer. Nothing is lent, but to a backend that reads the static region itself:
// [Window.GatherTo].
//
// Start reading at [Stack.Next], then [Window.Load].
//
// # Why not
//
// Why not a lock per shard of the cache: decisions would depend on timing, and so would the
// counters and the disk traffic. One goroutine decides at a time, at some 20 ns a row; the slow
// work, copying and reading, is done by many.
//
// Why not hold back rows that are read for a step until there is room: with a budget that is too
// small that would wait for ever. A step whose rows do not fit is read to where it is used.
package cachetier

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/gnnstore/gnnstore/cachetier/device"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/kernels"
)

// Stack holds the tiers over one table. Stats and Engine may be called at any time. Of the others
// one goroutine at a time plans (Expect, Room, Fit, Next, Simulate, Forecast), one loads
// (Window.Ready, Keep, Load), one gathers (Window.Gather, Window.Release, Gather, Peek) and one
// writes back (Write, Passed). These may be four goroutines, and each takes the windows in the
// order of Next. Reset, Settle, Flush, Resident, Restore and Prewarm need all of them to be idle.
//
// Calls that read or wait take a context. When it ends, a call starts no more reads and stops
// waiting. It returns the context's error once the reads in flight have ended.
type Stack struct {
	rows, rowBytes int
	source         source
	layout
	region         *device.Buffer
	device         *device.Part     // rows [0, device)
	static, cached *kernels.HostBuf // rows [device, hot), slots
	sets           *kernels.HostBuf
	reader         kernels.HostGatherer // reads static itself; nil: the host copies

	// cache decides which rows are in the slots of cached; it is nil if there are none. It belongs
	// to whoever brings in the next window: Keep and Load, or Gather for a window of one step. Each
	// waits for the windows before it, so only one uses the cache at a time.
	cache   *policy.Cache
	scratch plan
	dynamic *dynamic // nil without a dynamic part of the device region
	keeps   struct{ from, to []uint32 }
	portion []uint32

	planning sync.Mutex // held while planning
	groups   []*group

	loading, gathering sync.Mutex // held while loading, and while gathering

	rewrites *rewrites // nil over a Table, whose rows never change
	join     *join     // nil without a spill

	mu struct {
		sync.Mutex
		windows []*Window // planned and not released
		changed *sync.Cond
		calls   map[*call]struct{} // in progress; Close ends them
		closing bool               // Close was called
		closed  bool               // the memory is released
		unused  []*set
		made    int              // sets, with those in more
		added   int              // sets in more
		more    *kernels.HostBuf // memory of sets for horizons; nil without a spill

		planned, passed int // steps since Open or Reset: planned in windows, and written back (only over Records)
	}

	stats struct {
		sync.Mutex
		Stats
	}
}

// Open allocates the tiers over t and loads the device and static regions. The table stays the
// caller's and must stay open until Close has returned. ctx applies to Open only.
func Open(ctx context.Context, t Table, o Options) (*Stack, error) {
	o, err := o.fitting(t)
	if err != nil {
		return nil, fmt.Errorf("cachetier: %w", err)
	}
	reader, err := openRows(ctx, t, o.Disk())
	if err != nil {
		return nil, fmt.Errorf("cachetier: %w", err)
	}
	s := newStack(t.Rows(), t.RowBytes(), reader, o.layout(t.Rows(), t.RowBytes(), bookkeeping{}))
	s.region = o.Region
	if err = s.open(ctx, o.Prewarm); err != nil {
		s.free()
		return nil, fmt.Errorf("cachetier: %w", err)
	}
	return s, nil
}

// fitting returns o with defaults, or an error if o or t is invalid.
func (o Options) fitting(t Table) (Options, error) {
	if err := o.Validate(); err != nil {
		return o, err
	}
	if int64(t.Rows()) > math.MaxUint32 {
		return o, fmt.Errorf("a table of %d rows: ids are 32 bits", t.Rows())
	}
	if t.RowBytes() < 1 {
		return o, errors.New("the table has no columns")
	}
	if o.Policy == "" {
		o.Policy = Belady
	}
	return o, nil
}

func newStack(rows, rowBytes int, from source, l layout) *Stack {
	s := &Stack{rows: rows, rowBytes: rowBytes, source: from, layout: l}
	s.mu.changed, s.mu.calls = sync.NewCond(&s.mu), map[*call]struct{}{}
	return s
}

func (s *Stack) open(ctx context.Context, prewarm bool) error {
	l := s.layout
	var err error
	if s.device, err = s.region.Rows(l.device+l.dynamic.Slots, l.shared, s.rowBytes); err != nil {
		return fmt.Errorf("the device region of %d rows: %w", l.device, err)
	}
	if s.device.Apart() {
		s.layout.shared = s.device.Table().Rows - l.device - l.dynamic.Slots
	} else {
		s.layout.shared, s.layout.dynamic = 0, policy.Config{}
	}
	l = s.layout
	if s.dynamic, err = newDynamic(l.dynamic); err != nil {
		return err
	}
	for _, m := range []struct {
		buf  **kernels.HostBuf
		what string
		rows int
	}{
		{&s.static, "static region", l.hot - l.device},
		{&s.cached, "host cache", l.slots},
	} {
		if *m.buf, err = kernels.NewHostBuf(m.rows * s.rowBytes); err != nil {
			return fmt.Errorf("the %s of %d rows: %w", m.what, m.rows, err)
		}
	}
	if err := s.openCache(); err != nil {
		return err
	}
	hot, err := s.loadHot(ctx)
	if err != nil {
		return err
	}
	s.stats.Stats = newStats(s.rows, s.rowBytes, l, hot)
	if prewarm {
		return s.Prewarm(ctx)
	}
	return nil
}

// loadHot fills the device and static regions.
func (s *Stack) loadHot(ctx context.Context) (disk.Traffic, error) {
	l := s.layout
	load := s.loadDevice
	if s.device.Apart() {
		load = s.putDevice
	}
	device, err := load(ctx)
	if err != nil {
		return device, fmt.Errorf("load the first %d rows: %w", l.device, err)
	}
	static, err := s.source.run(ctx, s.static.Bytes(), l.device)
	if err != nil {
		return static, fmt.Errorf("load rows %d to %d: %w", l.device, l.hot, err)
	}
	device.Add(static)
	return device, nil
}

func (s *Stack) loadDevice(ctx context.Context) (disk.Traffic, error) {
	return s.source.run(ctx, s.device.Bytes(), 0)
}

// putDevice is loadDevice for a device region that is apart.
func (s *Stack) putDevice(ctx context.Context) (all disk.Traffic, err error) {
	l := s.layout
	most := max(1, putBytes/s.rowBytes)
	some, err := kernels.NewHostBuf(min(l.device+l.shared, most) * s.rowBytes)
	if err != nil {
		return all, err
	}
	defer some.Close()
	put := func(first, end, at int) error {
		for n := 0; first < end; first, at = first+n, at+n {
			n = min(most, end-first)
			t, err := s.source.run(ctx, some.Bytes()[:n*s.rowBytes], first)
			all.Add(t)
			if err != nil {
				return err
			}
			s.device.Put(at, some.Uint16s()[:n*s.rowBytes/2])
		}
		return nil
	}
	if err = put(0, l.device, 0); err == nil {
		err = put(l.device, l.device+l.shared, l.device+l.dynamic.Slots)
	}
	return all, err
}

// putBytes is the size of the buffer through which rows go to a device region that is apart.
const putBytes = 4 << 20

// Apart returns the table of the device region's rows, for kernels.Backend.RowsOf, if the host
// cannot address them: see [Window.Places]. ok is false where the host can, or there are none.
func (s *Stack) Apart() (hot kernels.Tensor, ok bool) {
	if s.device == nil || !s.device.Apart() || s.device.Table().Rows == 0 {
		return hot, false
	}
	return s.device.Table(), true
}

// left returns how many rows of the device region are there for a step, if slots have taken so many
// bytes of the region before it.
func (s *Stack) left(taken int64) uint32 {
	if _, apart := s.Apart(); !apart {
		return uint32(s.layout.device)
	}
	return uint32(max(s.layout.device, s.device.Left(taken)-s.layout.dynamic.Slots))
}

// Prewarm fills the cache as Open does with Options.Prewarm, for a caller who decides later. It
// forgets the rows that were in the cache. An error of reading leaves the cache empty.
func (s *Stack) Prewarm(ctx context.Context) error {
	s.alive("Prewarm")
	if s.cache == nil || s.layout.cache.Kind == policy.None {
		return nil
	}
	rows := s.newSet()
	defer s.drop(rows)
	for v := range uint32(s.slots) {
		rows.Add(v)
	}
	return s.fill(ctx, rows.Set)
}

func (s *Stack) openCache() (err error) {
	if s.slots == 0 {
		return nil
	}
	n := (s.lookahead + s.layout.spare()) * policy.SetWords(s.layout.cache.Rows)
	if s.sets, err = kernels.NewHostBuf(8 * n); err == nil {
		s.cache, err = policy.New(s.layout.cache)
	}
	if err != nil {
		return fmt.Errorf("the index of the host cache of %d rows: %w", s.slots, err)
	}
	return nil
}

// fill reads the lowest of rows, as many as fit, into the cache. rows are numbered from the end of
// the static region.
func (s *Stack) fill(ctx context.Context, rows policy.Set) error {
	if err := s.flush(s.hot); err != nil {
		return err
	}
	x := s.cache.Fill(rows)
	t, err := s.readNew(ctx, nil, x)
	if err != nil {
		s.cache.DropNew()
		return fmt.Errorf("fill the host cache with %d rows: %w", x.Len(), err)
	}
	s.cache.Settle()
	s.stats.Lock()
	defer s.stats.Unlock()
	s.stats.Warmup.Count(int64(x.Len()), 0, int64(x.Len()*s.rowBytes), t)
	s.stats.Tiers.Host.BytesRead += int64(x.Len() * s.rowBytes)
	s.stats.Tiers.Host.setUsed(int64(s.hot-s.layout.device+x.Len()), int64(s.rowBytes))
	return nil
}

// Engine returns the engine that reads the disk, and a sentence with the reason for it.
func (s *Stack) Engine() (kind disk.Kind, why string) { return s.source.Kind(), s.source.Why() }

// Live returns counters of the disk reads, now and since Open.
func (s *Stack) Live() disk.Live { return s.source.Live() }

// RowBytes returns the size of a row of the table.
func (s *Stack) RowBytes() int { return s.rowBytes }

// WindowRows returns how many different rows a window of several steps can need beyond the device
// and static regions. It is 0 if there is no cache.
func (s *Stack) WindowRows() int { return s.slots }

// ColdBytes returns the bytes of the rows outside the device and static regions.
func (s *Stack) ColdBytes() int64 { return int64(s.rows-s.hot) * int64(s.rowBytes) }

// call is a call in progress that reads or waits; end ends its context.
type call struct{ end context.CancelFunc }

// begin registers a call, and panics with its name if the stack is closed. The returned context
// ends with ctx, with Close, or with done, which the call must run when it returns.
func (s *Stack) begin(ctx context.Context, name string) (_ context.Context, done func()) {
	ctx, end := context.WithCancel(ctx)
	c := &call{end}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aliveLocked(name)
	s.mu.calls[c] = struct{}{}
	if s.mu.closing {
		end()
	}
	return ctx, func() {
		end()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.mu.calls, c)
	}
}

// alive panics if the stack is closed.
func (s *Stack) alive(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aliveLocked(name)
}

func (s *Stack) aliveLocked(name string) {
	if s.mu.closed {
		panic("cachetier: " + name + " after Close")
	}
}

// wait returns nil once ready holds, or the error of ctx when that ends first. ready is called
// under s.mu.
func (s *Stack) wait(ctx context.Context, ready func() bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil && ready() { // usually, and then nobody need be woken
		return nil
	}
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock() // so that the waiter is not between checking ctx and waiting
		defer s.mu.Unlock()
		s.mu.changed.Broadcast()
	})()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if ready() {
			return nil
		}
		s.mu.changed.Wait()
	}
}

// Reset forgets what was expected and planned. Call it after a run that was cut short or failed:
// otherwise the next run would get windows of steps that it does not take. Cached rows stay;
// windows from before are useless. Nobody may plan, load or gather meanwhile.
func (s *Stack) Reset() {
	s.planning.Lock()
	defer s.planning.Unlock()
	for _, g := range s.groups {
		s.drop(g.rows)
	}
	s.groups = nil
	s.mu.Lock()
	windows, passed := s.mu.windows, s.mu.passed
	s.mu.windows = nil
	s.mu.planned, s.mu.passed = 0, 0
	s.mu.Unlock()
	s.leaveAll()
	s.rewrites.renumber(passed)
	for _, w := range windows {
		w.abandon()
	}
	s.dynamic.forget()
	s.stats.Lock()
	defer s.stats.Unlock()
	s.stats.Tiers.Device.setUsed(int64(s.layout.device), int64(s.rowBytes))
}

// Close ends every Next, Load, Gather or Scan in progress as if its context had ended, waits for
// them, and releases the memory of the tiers. The table stays open. Stats stays valid; everything
// else panics from here on. A second Close does nothing.
func (s *Stack) Close() error {
	s.mu.Lock()
	s.mu.closing = true
	for c := range s.mu.calls {
		c.end()
	}
	s.mu.Unlock()
	for _, m := range []*sync.Mutex{&s.gathering, &s.loading, &s.planning} { // in the order in which Gather locks them
		m.Lock()
		defer m.Unlock()
	}
	if s.rewrites != nil {
		s.rewrites.copying.Lock()
		defer s.rewrites.copying.Unlock()
	}
	if s.join != nil {
		s.join.scanning.Lock()
		defer s.join.scanning.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil
	}
	s.mu.closed = true
	s.free()
	return nil
}

// free releases all that was allocated.
func (s *Stack) free() {
	s.source.Close()
	s.join.close()
	if s.device != nil {
		s.device.Close()
	}
	for _, b := range []*kernels.HostBuf{s.static, s.cached} {
		if b != nil {
			b.Close()
		}
	}
	s.freeIndex()
	s.dynamic.close()
	s.rewrites.free()
	s.scratch, s.portion = plan{}, nil
}

// freeIndex releases the bookkeeping of the cache.
func (s *Stack) freeIndex() {
	if s.sets != nil {
		s.sets.Close()
	}
	if s.cache != nil {
		s.cache.Close()
	}
	if s.mu.more != nil {
		s.mu.more.Close()
	}
	s.mu.unused = nil
}
