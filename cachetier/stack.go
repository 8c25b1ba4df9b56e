// Package cachetier answers one question: given node ids, put their feature rows in this buffer,
// touching the disk as little as possible.
//
// A [Stack] has three tiers. The device region holds the first rows of the table, which ingest has
// made the hottest, so that "is row v there" is v < H. The host tier has a static region with the
// rows that follow, and a cache: rows wait there for their step, and stay as long as a [Policy]
// finds them worth it. What neither has is read from disk by package disk, in file order. [Options]
// gives each tier its budget; [Stats] says what each did.
//
// Batches are known before they run, so rows are read by the [Window]: the union of what several
// steps need, in one sorted and merged pass. Whoever plans tells the batches of a group of steps
// ([Stack.Expect]) and takes windows of it ([Stack.Next]). For each of them the policy decides what
// stays ([Window.Keep]); then it is loaded, gathered from step by step, and released. What is not
// planned can be had at once ([Stack.Gather]), and is a window of one step. Windows, hits and
// evictions are decided in step order and depend on the batches and the options alone: not on time,
// nor on workers.
//
// Where more windows are known at once than memory holds rows for, they are a [Horizon]: one scan
// of the table serves them all, by a spill on disk.
//
// A Stack over [Records] is one whose rows steps rewrite. Windows bring them ahead like any others,
// and what a step sees does not depend on when: see [Stack.Write].
//
// Memory: a Stack allocates its tiers and their bookkeeping in Open, outside the Go heap
// (kernels.HostBuf), and gives them up in Close alone. Its rows in the device region may be a part
// of one that others share: Options.Region. A window of one step also keeps scratch lists, some 40
// bytes per id of the largest: they grow with the batch and not with the table. Rows are copied
// into the caller's buffer; nothing is lent.
//
// Start reading at [Stack.Next], then [Window.Load].
//
// # Why not
//
// Why not a lock per shard of the cache: the decisions then depend on timing, and with them the
// counters and the disk traffic. One goroutine decides at a time, at some 20 ns a row, and what
// takes long, copying and reading, is done by many.
//
// Why not hold back rows that are read for a step until there is room: a budget that is too small
// would wait for ever. A step whose rows do not fit is read to where it is used.
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

// Stack is the tiers over one table. Stats and Engine may be called at any time. Of the others one
// goroutine at a time plans (Expect, Room, Fit, Next, Simulate, Forecast), one loads (Window.Ready,
// Keep, Load), one gathers (Window.Gather, Window.Release, Gather, Peek) and one writes back
// (Write, Passed); these may be four, and each takes the windows in the order of Next. Reset,
// Settle, Flush, Resident, Restore and Prewarm want them all to be idle.
//
// What reads or waits takes a context. When that ends, nothing more is read or waited for: the call
// returns the context's error once the reads under way have come.
type Stack struct {
	rows, rowBytes int
	source         source
	layout
	region         *device.Buffer
	device         *device.Part     // rows [0, device)
	static, cached *kernels.HostBuf // rows [device, hot), slots
	sets           *kernels.HostBuf

	// cache decides what is in the slots of cached, and is nil if there are none. It belongs to
	// whoever brings the next window: Keep and Load, or Gather where that has one step. Each waits
	// for the windows before it, so there is only one.
	cache   *policy.Cache
	scratch plan
	portion []uint32

	planning sync.Mutex // held by who plans
	groups   []*group

	loading, gathering sync.Mutex // held by who loads, and who gathers

	rewrites *rewrites // nil over a Table, whose rows stay as they are
	join     *join     // nil without a spill

	mu struct {
		sync.Mutex
		windows []*Window // not released
		changed *sync.Cond
		calls   map[*call]struct{} // under way, which Close ends
		closing bool               // Close has been called,
		closed  bool               // and the memory is given up
		unused  []*set
		made    int // sets, and how many of them are in more
		added   int
		more    *kernels.HostBuf // of sets for horizons; nil without a spill

		planned, passed int // steps since Open or Reset: in windows, and written back; of Records alone
	}

	stats struct {
		sync.Mutex
		Stats
	}
}

// Open makes the tiers over t and loads the device region and the static one. The table stays the
// caller's and must stay open until Close has returned. ctx is for Open alone.
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

// fitting is o with defaults, or says why it cannot be followed over t.
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
	if s.device, err = s.region.Rows(l.device * s.rowBytes); err != nil {
		return fmt.Errorf("the device region of %d rows: %w", l.device, err)
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

// loadHot fills the device region and the static one.
func (s *Stack) loadHot(ctx context.Context) (disk.Traffic, error) {
	l := s.layout
	device, err := s.source.run(ctx, s.device.Bytes(), 0)
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

// Prewarm does what Options.Prewarm has Open do, for a caller who learns later that it is worth it.
// What was in the cache is forgotten; an error leaves it empty.
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
	n := (s.lookahead + spareSets) * policy.SetWords(s.layout.cache.Rows)
	if s.sets, err = kernels.NewHostBuf(8 * n); err == nil {
		s.cache, err = policy.New(s.layout.cache)
	}
	if err != nil {
		return fmt.Errorf("the index of the host cache of %d rows: %w", s.slots, err)
	}
	return nil
}

// fill brings the lowest of rows, which are counted from the end of the static region, into the
// cache.
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

// Engine is the way the disk is read, and in a sentence why.
func (s *Stack) Engine() (kind disk.Kind, why string) { return s.source.Kind(), s.source.Why() }

// Live is what reading the disk is like, now and since Open.
func (s *Stack) Live() disk.Live { return s.source.Live() }

// RowBytes is what a row of the table takes.
func (s *Stack) RowBytes() int { return s.rowBytes }

// WindowRows is how many different rows, beyond those of the device region and the static one, a
// window of several steps can have. It is 0 if there is no cache.
func (s *Stack) WindowRows() int { return s.slots }

// call is one that reads or waits; end ends its context.
type call struct{ end context.CancelFunc }

// begin registers a call, which panics by name if the stack is closed. Its context ends with ctx,
// with Close, or by done, which the call must run when it returns.
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
	if ctx.Err() == nil && ready() { // mostly, and then nobody need be woken
		return nil
	}
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock() // so that nobody is between looking at ctx and waiting
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

// Reset forgets what was expected and planned. It is for after a run that was cut short or failed:
// the next one would get windows of steps that it does not take. Rows that are there stay; windows
// from before are of no use any more. Nobody may plan, load or gather meanwhile.
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
}

// Close ends a Next, Load, Gather or Scan that is under way, as the end of its context would, waits
// for it and gives up the memory of the tiers. The table stays open. Stats stays valid, everything
// else panics from here on, and a second Close does nothing.
func (s *Stack) Close() error {
	s.mu.Lock()
	s.mu.closing = true
	for c := range s.mu.calls {
		c.end()
	}
	s.mu.Unlock()
	for _, m := range []*sync.Mutex{&s.gathering, &s.loading, &s.planning} { // in the order of Gather
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

// free gives up what there is.
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
	s.rewrites.free()
	s.scratch, s.portion = plan{}, nil
}

// freeIndex gives up the bookkeeping of the cache.
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
