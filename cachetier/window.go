package cachetier

import (
	"context"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier/policy"
)

// maxWindows bounds the windows that are planned and not released: one in use, one loading.
const maxWindows = 2

// group is steps of which windows are made.
type group struct {
	steps [][]uint32 // those in no window yet
	rows  *set       // theirs, nil until it is wanted
	count int        // of rows
	fit   int        // steps that fit in the cache together; 0 until that is wanted
}

// Window is one or more steps whose rows are read together. See [Stack.Next].
type Window struct {
	s      *Stack
	steps  [][]uint32
	single bool // of one step: read to where it is used

	rows   int  // that it needs beyond the hot ones, each once; 0 without a cache
	need   *set // nil without a cache
	future []*set

	kept   bool          // Keep has decided
	index  *policy.Index // as of this window, once that is so; nil for a single one, and without a cache
	change policy.Change // what Keep decided

	horizon *Horizon // that it is the window number at of, or nil
	at      int
	alone   bool  // of no horizon any more
	came    tally // what loading it did; counted with its first Gather
	loaded  bool
	err     error // of Load

	// Under s.mu: steps that are gathered, and steps whose rows may give way to others. A step
	// passes when it is gathered, or over Records when it is written back.
	gathered, passed int
	first            int  // number of the first step since Open or Reset, over Records
	left             bool // by who gathers: released, once all its steps have passed
}

// Expect tells the next group of steps: of each the ids whose rows it will need, none twice. They
// are borrowed until their steps are released. An id past the table panics.
func (s *Stack) Expect(steps [][]uint32) {
	s.planning.Lock()
	defer s.planning.Unlock()
	s.alive("Expect")
	rows := s.rows
	for i, ids := range steps {
		for _, v := range ids {
			if int(v) >= rows {
				panic(fmt.Sprintf("cachetier: Expect: step %d has row %d, and the table has %d", i, v, rows))
			}
		}
	}
	if len(steps) > 0 {
		s.groups = append(s.groups, &group{steps: steps})
	}
}

// Room waits until fewer than two windows are not released, so that whoever plans is not ahead
// without bounds. An error is the end of ctx.
func (s *Stack) Room(ctx context.Context) error {
	if err := s.waitRoom(ctx, "Room"); err != nil {
		return fmt.Errorf("cachetier: %w", err)
	}
	return nil
}

// waitRoom is Room for a call of that name. Mostly there is room, and nothing that Close would have
// to end.
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

// Fit is how many steps the next window can have: as many of the oldest group as have their rows
// fit in the cache together, but one at least. It is 0 when nothing is expected, and 1 where there
// is no cache.
func (s *Stack) Fit() int {
	s.planning.Lock()
	defer s.planning.Unlock()
	s.alive("Fit")
	return s.fit()
}

// fit is Fit for who holds s.planning. It makes the sets of the groups that the next window looks
// at.
func (s *Stack) fit() int {
	if len(s.groups) == 0 {
		return 0
	}
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

// measure is how many steps of g, whose set is made, fit in the cache together.
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

// Next plans the next window: so many steps of the oldest group, at most Fit. The rest of the group
// is for the windows that follow. It is nil when nothing is expected and steps is 0. It reads
// nothing, but waits as Room does. An error is the end of ctx, and plans nothing. A number of steps
// that is out of range panics.
//
// What is known of the future is what was expected by then, up to Options.Lookahead groups. So the
// order of calls to Expect and Next has a part in what the tiers keep; time has none.
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

// notClosing is an error once Close has been called: for who has waited and holds s.planning.
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

// enter numbers the steps of w, which is planned, and counts it among those that are not released.
func (s *Stack) enter(w *Window) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.first = s.mu.planned
	s.mu.planned += len(w.steps)
	s.mu.windows = append(s.mu.windows, w)
}

// take makes w, in which rows are read for the first n steps of g together, and lists what w
// foresees.
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

// Steps is how many steps the window has.
func (w *Window) Steps() int { return len(w.steps) }

// Rows is how many different rows of the cache the window needs, 0 if there is no cache.
func (w *Window) Rows() int { return w.rows }

// ReadSeconds is how long Load read, its waiting left out, and the scan of its horizon. It is valid
// between Load and the first Gather.
func (w *Window) ReadSeconds() float64 { return w.came.traffic.Seconds - w.came.scanned.Seconds }

// Release ends the use of the window: from now on its rows stay only while the policy finds them
// worth it. Windows are released in order. A second Release does nothing. Over Records it waits for
// nothing, and takes effect when the steps of the window have passed.
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

// releaseLocked forgets the windows that are of no use any more. The caller holds s.mu.
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

// at is the place of w among the windows that are not released, or -1. The caller holds s.mu.
func (s *Stack) at(w *Window) int {
	for i, v := range s.mu.windows {
		if v == w {
			return i
		}
	}
	return -1
}

// forget lets go of the sets of w.
func (w *Window) forget() {
	for _, f := range w.future {
		w.s.drop(f)
	}
	w.s.drop(w.need)
	w.need, w.future = nil, nil
}

// abandon lets go of what w has and does not need once it is released or of no use. Slots of rows
// that never came are free again.
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
