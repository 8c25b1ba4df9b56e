package cachetier

import (
	"cmp"
	"context"
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
)

// maxWindows bounds the windows that are planned and not released: one in use, one loading.
const maxWindows = 2

// spareSets is how many sets there are at most beside those that Lookahead counts: of the group at hand, of two windows, of
// the one before them, of what the group's rest was when the first of them was planned, and one for a step without a plan.
const spareSets = 6

// group is steps of which windows are made.
type group struct {
	steps [][]uint32 // those in no window yet
	rows  *set       // theirs, nil until it is wanted
	count int        // of rows
}

// set is rows that are not hot, counted from the first such. Several may refer to it.
type set struct {
	policy.Set
	users int
}

// Window is one or more steps whose rows are read together. See [Stack.Next].
type Window struct {
	s      *Stack
	steps  [][]uint32
	single bool // of one step: read to where it is used

	took   time.Duration // for Next to plan it
	rows   int           // that it needs beyond the hot ones, each once; 0 without a cache
	need   *set          // nil without a cache
	future []*set

	index  *policy.Index // as of this window, once it is planned; nil for a single one, and without a cache
	came   tally         // what loading it did; counted with its first Gather
	loaded bool
	err    error // of Load
	passed int   // steps that are not gathered from any more; under s.mu
}

// Expect tells the next group of steps: of each the ids whose rows it will need, none twice. They are borrowed until their
// steps are released. An id past the table panics.
func (s *Stack) Expect(steps [][]uint32) {
	s.planning.Lock()
	defer s.planning.Unlock()
	s.alive("Expect")
	rows := s.table.Rows()
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

// Next plans the next window: as many steps of the oldest group as have their rows fit in the cache together, but one at
// least. The rest of the group is for the windows that follow. It is nil when nothing is expected. It reads nothing, but waits
// while two windows are not released: so that whoever plans is not ahead without bounds. An error is the end of ctx, and plans
// nothing.
//
// What is known of the future is what was expected by then, up to Options.Lookahead groups. So the order of calls to Expect
// and Next has a part in what the tiers keep; time has none.
func (s *Stack) Next(ctx context.Context) (*Window, error) {
	ctx, done := s.begin(ctx, "Next")
	defer done()
	err := s.wait(ctx, func() bool { return len(s.mu.windows) < maxWindows })
	s.planning.Lock()
	defer s.planning.Unlock()
	if err = cmp.Or(err, ctx.Err()); err != nil { // Close may have ended ctx meanwhile
		return nil, fmt.Errorf("cachetier: %w", err)
	}
	return s.planNext(), nil
}

// planNext is Next without its waiting.
func (s *Stack) planNext() *Window {
	began := time.Now()
	if len(s.groups) == 0 {
		return nil
	}
	g := s.groups[0]
	w := &Window{s: s, came: tally{windows: 1}}
	switch {
	case s.hot == s.table.Rows(): // nothing is ever read
		w.steps = g.steps
	case s.cache == nil:
		w.steps, w.single = g.steps[:1], true
	default:
		s.foresee(1 + s.lookahead)
		s.take(w, g)
	}
	if g.steps = g.steps[len(w.steps):]; len(g.steps) == 0 {
		s.groups = s.groups[1:]
	}
	s.mu.Lock()
	s.mu.windows = append(s.mu.windows, w)
	s.mu.Unlock()
	w.took = time.Since(began)
	return w
}

// foresee makes the sets of the next n groups.
func (s *Stack) foresee(n int) {
	for _, g := range s.groups[:min(n, len(s.groups))] {
		if g.rows == nil {
			g.rows, g.count = s.unite(g.steps)
		}
	}
}

// unite is the set of the rows of steps that are not hot, and its size.
func (s *Stack) unite(steps [][]uint32) (u *set, count int) {
	u = s.newSet()
	for _, ids := range steps {
		count += s.add(u, ids)
	}
	return u, count
}

// add puts the rows of ids that are not hot into u, and says how many were not there.
func (s *Stack) add(u *set, ids []uint32) (count int) {
	hot := uint32(s.hot)
	for _, v := range ids {
		if v >= hot && u.Add(v-hot) {
			count++
		}
	}
	return count
}

// take decides which steps of g, whose set is made, become w.
func (s *Stack) take(w *Window, g *group) {
	most := s.slots
	n := len(g.steps)
	if n > 1 && g.count > most { // the group is split
		w.need = s.newSet()
		count := 0
		for n = 0; count <= most; n++ {
			count += s.add(w.need, g.steps[n])
		}
		n = max(n-1, 1)
		w.need.Clear() // the step that was too much is in it
		for _, ids := range g.steps[:n] {
			w.rows += s.add(w.need, ids)
		}
		s.drop(g.rows)
		g.rows, g.count = s.unite(g.steps[n:])
	} else {
		w.need, w.rows, g.rows = g.rows, g.count, nil
	}
	w.steps, w.single = g.steps[:n], n == 1
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

// PlanSeconds is how long Next planned, its waiting left out.
func (w *Window) PlanSeconds() float64 { return w.took.Seconds() }

// ReadSeconds is how long Load read, its waiting left out. It is valid between Load and the first Gather.
func (w *Window) ReadSeconds() float64 { return w.came.traffic.Seconds }

// Load reads the rows of the window that are not there, in file order, into the cache. It waits by itself for their slots: the
// first ones are free at once, and the others become so as the steps of the window before are gathered; under None all of
// them when it is released. For a window of one step there is nothing to load: its rows are read when it is gathered. After
// an error, of a file or of ctx, the window is of no use, and the rows that did not come are not there.
func (w *Window) Load(ctx context.Context) error {
	s := w.s
	s.loading.Lock()
	defer s.loading.Unlock()
	ctx, done := s.begin(ctx, "Load")
	defer done()
	if w.loaded || w.err != nil {
		return w.err
	}
	s.mu.Lock()
	at := s.at(w)
	s.mu.Unlock()
	if at < 0 {
		panic("cachetier: Load after Release or Reset")
	}
	if err := w.load(ctx); err != nil {
		w.err = fmt.Errorf("cachetier: %w", err)
	}
	w.loaded = w.err == nil
	return w.err
}

func (w *Window) load(ctx context.Context) error {
	s := w.s
	if w.single || w.need == nil {
		return nil
	}
	// The window before may be in use, unless it has a single step, which changes the cache until it is released. The one
	// before that may not: its index is overwritten.
	err := s.await(ctx, w, func(before []*Window) bool { return len(before) == 0 || len(before) == 1 && !before[0].single })
	if err != nil {
		return err
	}
	x, change := s.admit(w)
	if s.layout.cache.Kind == policy.None && change.Evicted > 0 {
		err = s.await(ctx, w, func(before []*Window) bool { return len(before) == 0 })
	}
	var marked sync.WaitGroup
	marked.Go(func() { s.mark(w.steps) })
	if err == nil {
		w.came.traffic, err = s.readNew(ctx, w, x)
	}
	marked.Wait()
	if err != nil {
		s.cache.DropNew()
		return err
	}
	w.came.copied, w.came.evicted, w.index = int64(change.Admitted), int64(change.Evicted), x
	return nil
}

// admit has the cache make room for w, and lets go of the sets that this took.
func (s *Stack) admit(w *Window) (*policy.Index, policy.Change) {
	x, change := s.cache.Window(w.need.Set, sets(w.future))
	w.forget()
	return x, change
}

// mark tells the cache when the rows of the newest window, whose steps these are, are used last.
func (s *Stack) mark(steps [][]uint32) {
	if !s.cache.Marks() {
		return
	}
	s.cache.BeginMarks()
	for i, ids := range steps {
		part := 1 + i*policy.Parts/len(steps)
		inChunks(len(ids), markChunk, func(lo, hi int) {
			for _, v := range ids[lo:hi] {
				if v >= uint32(s.hot) {
					s.cache.Mark(v-uint32(s.hot), part)
				}
			}
		})
	}
}

// markChunk is how many rows one goroutine marks at a time.
const markChunk = 4096

// over says whether the parts up to this one of w, which is not released, are over.
func (w *Window) over(part int) bool {
	steps := (part*len(w.steps) + policy.Parts - 1) / policy.Parts // that fall into them: see mark
	return w.passed >= steps
}

// forget lets go of the sets of w.
func (w *Window) forget() {
	for _, f := range w.future {
		w.s.drop(f)
	}
	w.s.drop(w.need)
	w.need, w.future = nil, nil
}

// await waits until ready holds for the windows before w that are not released.
func (s *Stack) await(ctx context.Context, w *Window, ready func(before []*Window) bool) error {
	return s.wait(ctx, func() bool { return ready(s.mu.windows[:s.at(w)]) })
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

// portionRows is how many of the rows to read are listed at a time: 256 KiB of numbers.
const portionRows = 64 << 10

// reading is the way through the new rows of an index.
type reading struct {
	s       *Stack
	x       *policy.Index
	walk    policy.Walk
	portion []uint32 // listed and not given out yet
	next    func() (disk.Extent, bool)
}

// newRows begins at the first new row of x.
func (s *Stack) newRows(x *policy.Index) *reading {
	if s.portion == nil {
		s.portion = make([]uint32, portionRows)
	}
	return &reading{s: s, x: x}
}

// begin says whether there are rows whose slots can be had after this part of the window before, and are not given out.
func (r *reading) begin(part int) bool {
	if len(r.portion) == 0 {
		r.portion = r.s.portion[:r.walk.Next(r.x, r.s.portion)]
	}
	return len(r.portion) > 0 && int(r.portion[0]) < r.x.End(part)
}

// extent gives out the next extent of these rows.
func (r *reading) extent(part int) (disk.Extent, bool) {
	for {
		if r.next != nil {
			if t, ok := r.next(); ok {
				return t, true
			}
			r.next = nil
		}
		if !r.begin(part) {
			return disk.Extent{}, false
		}
		n := sort.Search(len(r.portion), func(i int) bool { return int(r.portion[i]) >= r.x.End(part) })
		rows := r.portion[:n]
		r.portion = r.portion[n:]
		r.next = r.s.reader.Merge(n, func(i int) disk.Request { return r.s.reader.request(rows[i] + uint32(r.s.hot)) })
	}
}

// readNew reads the new rows of x into their slots, each part when its slots can be had. x is the index of w, or of no window.
func (s *Stack) readNew(ctx context.Context, w *Window, x *policy.Index) (total disk.Traffic, err error) {
	cached := s.cached.Lend() // to the goroutines of Read
	defer s.cached.Return()
	rows, size, hot := s.newRows(x), s.rowBytes, uint32(s.hot)
	for part := range 1 + policy.Parts {
		if !rows.begin(part) {
			continue
		}
		if part > 0 {
			err := s.await(ctx, w, func(before []*Window) bool { return len(before) == 0 || before[0].over(part) })
			if err != nil {
				return total, err
			}
		}
		next := func() (disk.Extent, bool) { return rows.extent(part) }
		traffic, err := s.reader.Read(ctx, next, func(t disk.Extent, b []byte) error {
			first, last := s.reader.span(t)
			// By the time that an extent is there the portion that it was made of may be gone, so its rows are found anew.
			x.EachNew(first-hot, last-hot, func(v, slot uint32) {
				from := int(s.reader.request(v+hot).Offset - t.Offset)
				copy(cached[int(slot)*size:(int(slot)+1)*size], b[from:])
			})
			return nil
		})
		total.Add(traffic)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// Release ends the use of the window: from now on its rows stay only while the policy finds them worth it. Windows are
// released in order. A second Release does nothing.
func (w *Window) Release() {
	s := w.s
	w.forget() // if it was never loaded
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.at(w)
	if at < 0 {
		return
	}
	if at > 0 {
		panic("cachetier: Release of a window before the release of the one before it")
	}
	s.mu.windows = append(s.mu.windows[:0], s.mu.windows[1:]...)
	s.mu.changed.Broadcast()
}

// newSet is an empty set, with one user.
func (s *Stack) newSet() *set {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.mu.unused); n > 0 {
		u := s.mu.unused[n-1]
		s.mu.unused, u.users = s.mu.unused[:n-1], 1
		u.Clear()
		return u
	}
	n := policy.SetWords(s.layout.cache.Rows)
	at := s.mu.made * n
	s.mu.made++
	return &set{s.sets.Uint64s()[at : at+n : at+n], 1} // past the end: more than are accounted for
}

func (s *Stack) share(u *set) *set {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.users++
	return u
}

// drop ends a use of u, which may be nil.
func (s *Stack) drop(u *set) {
	if u == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.users--; u.users == 0 {
		s.mu.unused = append(s.mu.unused, u)
	}
}

func sets(of []*set) []policy.Set {
	list := make([]policy.Set, len(of))
	for i, u := range of {
		list[i] = u.Set
	}
	return list
}
