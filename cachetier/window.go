package cachetier

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/cachetier/policy"
)

// maxWindows bounds the windows that are planned and not released: one in use, one loading.
const maxWindows = 2

// group is a group of expected steps, from which windows are made.
type group struct {
	steps  []step // in no window yet
	rows   *set   // the rows of steps; nil until needed
	count  int    // size of rows
	placed bool   // planDynamic has been here
	fit    int    // steps that fit in the cache together; 0 until needed
}

// step has the ids whose rows a step needs. The device region has rows [0, device) for it; the host
// does not bring these.
type step struct {
	ids    []uint32
	device uint32
	stay   *stay // other rows that the device has; nil without a dynamic part
}

// Window is one or more steps whose rows are read together. See [Stack.Next].
type Window struct {
	s      *Stack
	steps  []step
	single bool // of one step, whose rows are read straight to dst

	rows   int  // different rows that it needs beyond the hot ones; 0 without a cache
	need   *set // nil without a cache
	future []*set

	kept   bool          // Keep has decided
	index  *policy.Index // set by Keep; nil for a single one, and without a cache
	change policy.Change // what Keep decided

	horizon *Horizon // nil, or the horizon that has this window at index at
	at      int
	alone   bool  // has left its horizon
	came    tally // counts of its loading, for its first Gather
	loaded  bool
	err     error // of Load

	// Under s.mu: the number of steps gathered, and of steps passed. The rows of a passed step may
	// make room for others. A step passes when it is gathered; over Records, when it is written
	// back.
	gathered, passed int
	first            int  // number of its first step since Open or Reset, over Records
	left             bool // Release was called; it takes effect once all steps have passed
}

// Expect announces the next group of steps. Each step has the ids whose rows it will need, none
// twice. The ids are borrowed until their steps are released. It panics on an id past the table.
func (s *Stack) Expect(steps [][]uint32) { s.ExpectBeside(steps, nil) }

// ExpectBeside is Expect for steps that share a device region with slots. taken has, for each step,
// the bytes that slots have taken when its rows are put together: see device.Rings.Taken. If taken
// is nil, every step has the rows that slots leave now.
func (s *Stack) ExpectBeside(steps [][]uint32, taken []int64) {
	s.planning.Lock()
	defer s.planning.Unlock()
	s.alive("Expect")
	for i, ids := range steps {
		if v, bad := pastTable(ids, s.rows); bad {
			panic(fmt.Sprintf("cachetier: Expect: step %d has row %d, and the table has %d", i, v, s.rows))
		}
	}
	if len(steps) > 0 {
		s.groups = append(s.groups, &group{steps: s.stepsOf(steps, taken)})
	}
}

// pastTable returns an id that is not below rows, if there is one. Several goroutines look: another
// one drew the ids, so reading them is mostly cache misses.
func pastTable(ids []uint32, rows int) (id uint32, bad bool) {
	const perChunk = 1 << 16
	var found atomic.Int64
	found.Store(-1)
	inChunks(len(ids), perChunk, func(lo, hi int) {
		for _, v := range ids[lo:hi] {
			if int(v) >= rows {
				found.Store(int64(v))
			}
		}
	})
	v := found.Load()
	return uint32(v), v >= 0
}

// stepsOf adds to the ids of steps what the device region has for them: see ExpectBeside.
func (s *Stack) stepsOf(steps [][]uint32, taken []int64) []step {
	all, now := make([]step, len(steps)), s.left(s.region.Taken())
	for i, ids := range steps {
		all[i] = step{ids: ids, device: now}
		if taken != nil {
			all[i].device = s.left(taken[i])
		}
	}
	return all
}

// Room waits until fewer than two windows are unreleased, which bounds how far planning gets ahead.
// It fails only if ctx ends.
func (s *Stack) Room(ctx context.Context) error {
	if err := s.waitRoom(ctx, "Room"); err != nil {
		return fmt.Errorf("cachetier: %w", err)
	}
	return nil
}

// waitRoom is Room for the method called name. Usually there is room at once, and no call is
// registered for Close to end.
func (s *Stack) waitRoom(ctx context.Context, name string) error {
	room := func() bool { return len(s.mu.windows) < maxWindows }
	s.mu.Lock()
	s.aliveLocked(name)
	now := !s.mu.closing && room()
	s.mu.Unlock()
	if now {
		return ctx.Err()
	}
	ctx, done := s.begin(ctx, name)
	defer done()
	return s.wait(ctx, room)
}

// Fit returns how many steps the next window can have: as many steps of the oldest group as have
// rows that fit in the cache together, but at least one. It is 0 when nothing is expected. Without
// a cache it is 1, or the whole group if all rows are in the device and static regions.
func (s *Stack) Fit() int {
	s.planning.Lock()
	defer s.planning.Unlock()
	s.alive("Fit")
	return s.fit()
}

// fit is Fit for a caller that holds s.planning. It makes the sets of the groups that the next
// window looks at.
func (s *Stack) fit() int {
	if len(s.groups) == 0 {
		return 0
	}
	s.planDynamic()
	g := s.groups[0]
	switch {
	case s.hot == s.rows: // nothing is ever read
		return len(g.steps)
	case s.cache == nil:
		return 1
	}
	s.foresee(1 + s.lookahead)
	if g.fit == 0 {
		g.fit = s.measure(g)
	}
	return g.fit
}

// measure returns how many steps of g fit in the cache together, at least 1. The set of g must be
// made.
func (s *Stack) measure(g *group) int {
	n := len(g.steps)
	if n == 1 || g.count <= s.slots {
		return n
	}
	u := s.newSet()
	defer s.drop(u)
	count := 0
	for n = 0; count <= s.slots; n++ {
		count += s.add(u, g.steps[n])
	}
	return max(n-1, 1)
}

// Next plans the next window from the first steps of the oldest group, at most Fit of them. The
// rest of the group is for the windows that follow. It returns nil if nothing is expected and steps
// is 0. It reads nothing, but waits as Room does. It fails only if ctx ends, and then plans
// nothing. It panics if steps is out of range.
//
// The policy knows as much of the future as was expected by then, up to Options.Lookahead groups.
// So the order of calls to Expect and Next affects what the tiers keep; time does not.
func (s *Stack) Next(ctx context.Context, steps int) (*Window, error) {
	err := s.waitRoom(ctx, "Next")
	s.planning.Lock()
	defer s.planning.Unlock()
	if err == nil {
		err = s.notClosing()
	}
	if err != nil {
		return nil, fmt.Errorf("cachetier: %w", err)
	}
	return s.planNext(steps), nil
}

// notClosing returns an error once Close has been called. The caller has waited and holds
// s.planning.
func (s *Stack) notClosing() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closing {
		return context.Canceled
	}
	return nil
}

// planNext is Next without its waiting.
func (s *Stack) planNext(steps int) *Window {
	if most := s.fit(); steps > most || steps < min(most, 1) {
		panic(fmt.Sprintf("cachetier: Next: a window of %d steps, and %d fit", steps, most))
	}
	if steps == 0 {
		return nil
	}
	g := s.groups[0]
	w := &Window{s: s, came: tally{windows: 1}}
	switch {
	case s.hot == s.rows:
	case s.cache == nil:
		w.single = true
	default:
		s.take(w, g, steps)
	}
	w.steps, g.steps, g.fit = g.steps[:steps], g.steps[steps:], 0
	if len(g.steps) == 0 {
		s.groups = slices.Delete(s.groups, 0, 1)
	}
	s.enter(w)
	return w
}

// enter numbers the steps of w, which is planned, and adds it to the unreleased windows.
func (s *Stack) enter(w *Window) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.first = s.mu.planned
	s.mu.planned += len(w.steps)
	s.mu.windows = append(s.mu.windows, w)
}

// take gives w the rows of the first n steps of g, which are read together, and the rows of later
// steps that w foresees.
func (s *Stack) take(w *Window, g *group, n int) {
	w.single = n == 1
	if n < len(g.steps) {
		w.need, w.rows = s.unite(g.steps[:n])
		s.drop(g.rows)
		g.rows, g.count = s.unite(g.steps[n:])
	} else {
		w.need, w.rows, g.rows = g.rows, g.count, nil
	}
	if s.layout.cache.Kind == Belady {
		if g.rows != nil {
			w.future = append(w.future, s.share(g.rows))
		}
		for _, later := range s.groups[1:min(1+s.lookahead, len(s.groups))] {
			w.future = append(w.future, s.share(later.rows))
		}
	}
}

// Steps returns how many steps the window has.
func (w *Window) Steps() int { return len(w.steps) }

// Rows returns how many different rows the window needs beyond the device and static regions. It is
// 0 if there is no cache.
func (w *Window) Rows() int { return w.rows }

// ReadSeconds returns how long Load read, without its waiting and without the scan of its horizon.
// It is valid between Load and the first Gather.
func (w *Window) ReadSeconds() float64 { return w.came.traffic.Seconds - w.came.scanned.Seconds }

// Release ends the use of the window: from now on its rows stay only while the policy finds them
// worth it. Windows are released in order. A second Release does nothing. Over Records it takes
// effect when the steps of the window have passed, and does not wait for that.
func (w *Window) Release() {
	s := w.s
	w.abandon()
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.at(w)
	if at < 0 {
		return
	}
	if at > 0 && !s.mu.windows[at-1].left {
		panic("cachetier: Release of a window before the release of the one before it")
	}
	w.left = true
	s.releaseLocked()
}

// releaseLocked removes the oldest windows if they are no longer in use. The caller holds s.mu.
func (s *Stack) releaseLocked() {
	for len(s.mu.windows) > 0 {
		w := s.mu.windows[0]
		if !w.left || s.rewrites != nil && w.passed < len(w.steps) {
			break
		}
		s.mu.windows = slices.Delete(s.mu.windows, 0, 1)
	}
	s.mu.changed.Broadcast()
}

// at returns the index of w among the unreleased windows, or -1. The caller holds s.mu.
func (s *Stack) at(w *Window) int {
	for i, v := range s.mu.windows {
		if v == w {
			return i
		}
	}
	return -1
}

// forget drops the sets of w.
func (w *Window) forget() {
	for _, f := range w.future {
		w.s.drop(f)
	}
	w.s.drop(w.need)
	w.need, w.future = nil, nil
}

// abandon drops what w does not need once it is released or useless. Slots of rows that were never
// read are free again.
func (w *Window) abandon() {
	w.forget()
	if !w.loaded {
		w.leaveHorizon()
	}
	if w.index != nil && !w.loaded && w.err == nil {
		w.s.cache.DropNew()
		w.index = nil
	}
}
