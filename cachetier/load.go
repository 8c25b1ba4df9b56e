package cachetier

import (
	"context"
	"fmt"
	"sort"
	"sync"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
)

// Ready waits until Keep may be called for the window. The window before may still be in use then,
// unless it has a single step. It fails only if ctx ends.
func (w *Window) Ready(ctx context.Context) error {
	w.s.alive("Ready")
	w.mustBePlanned("Ready")
	if !w.undecided() {
		return nil
	}
	ctx, done := w.s.begin(ctx, "Ready")
	defer done()
	if err := w.s.await(ctx, w, w.mayKeep); err != nil {
		return fmt.Errorf("cachetier: %w", err)
	}
	return nil
}

// undecided reports whether Keep has yet to decide for the window.
func (w *Window) undecided() bool { return !w.kept && !w.single && w.need != nil }

// mayKeep reports whether Keep may run, given the unreleased windows before w. One may be in use,
// unless it has a single step, which changes the cache until it is released. Two may not: Keep
// would overwrite the index of the first.
func (w *Window) mayKeep(before []*Window) bool {
	return len(before) == 0 || len(before) == 1 && !before[0].single
}

// Keep lets the policy decide which rows the cache has from now on: all rows of the window, and as
// many others as stay. The window must be Ready, and the one before loaded. A window of one step
// decides in Gather, after its rows are read. A second Keep does nothing.
func (w *Window) Keep() {
	s := w.s
	s.loading.Lock()
	defer s.loading.Unlock()
	s.alive("Keep")
	w.keep()
}

func (w *Window) keep() {
	w.mustBePlanned("Keep")
	if w.kept || w.single || w.need == nil {
		w.kept = true
		return
	}
	s := w.s
	s.mu.Lock()
	may := w.mayKeep(s.mu.windows[:s.at(w)])
	s.mu.Unlock()
	if !may {
		panic("cachetier: Keep of a window that is not Ready")
	}
	w.index, w.change = s.cache.Window(w.need.Set, sets(w.future))
	s.noteLeaving(w.change)
	w.kept = true
	if w.horizon != nil {
		w.horizon.kept(w)
	}
	w.forget()
}

// mustBePlanned panics when w was released, or forgotten by Reset.
func (w *Window) mustBePlanned(name string) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.s.at(w) < 0 {
		panic("cachetier: " + name + " after Release or Reset")
	}
}

// Load reads the missing rows of the window into the cache, in file order. It does Ready and Keep
// first if that was not done. It waits for slots itself: the first are free at once, and more
// become free as the steps of the window before are gathered. Under None all become free when that
// window is released. For a window of one step it loads nothing: Gather reads the rows. After an
// error, of a file or of ctx, the window is useless, and the rows that were not read are not in the
// cache.
func (w *Window) Load(ctx context.Context) error {
	s := w.s
	s.loading.Lock()
	defer s.loading.Unlock()
	ctx, done := s.begin(ctx, "Load")
	defer done()
	if w.loaded || w.err != nil {
		return w.err
	}
	w.mustBePlanned("Load")
	if err := w.load(ctx); err != nil {
		w.err = fmt.Errorf("cachetier: %w", err)
	}
	w.leaveHorizon()
	w.loaded = w.err == nil
	return w.err
}

func (w *Window) load(ctx context.Context) (err error) {
	s := w.s
	if w.undecided() {
		if err := s.await(ctx, w, w.mayKeep); err != nil {
			return err
		}
	}
	if !w.kept {
		w.keep()
	}
	if w.index == nil {
		return nil
	}
	if w.horizon != nil && w.horizon.windows[w.at].run != nil {
		if err := s.loadRun(ctx, w); err != nil {
			s.join.arrivals.Restore()
			s.cache.DropNew()
			return err
		}
		w.came.copied, w.came.evicted = int64(w.change.Admitted), int64(w.change.Evicted)
		return nil
	}
	if s.layout.cache.Kind == policy.None && w.change.Evicted > 0 {
		err = s.await(ctx, w, func(before []*Window) bool { return len(before) == 0 })
	}
	var marked sync.WaitGroup
	marked.Go(func() { s.mark(w.steps) })
	if err == nil {
		w.came.traffic, err = s.readNew(ctx, w, w.index)
	}
	marked.Wait()
	if err != nil {
		s.cache.DropNew()
		return err
	}
	w.came.copied, w.came.evicted = int64(w.change.Admitted), int64(w.change.Evicted)
	return nil
}

// mark tells the cache when each row of the newest window, which has these steps, is used last.
func (s *Stack) mark(steps []step) {
	if !s.cache.Marks() {
		return
	}
	s.cache.BeginMarks()
	for i, t := range steps {
		part, hot := 1+i*policy.Parts/len(steps), max(uint32(s.hot), t.device)
		inChunks(len(t.ids), markChunk, func(lo, hi int) {
			var room [markChunk]uint32
			rows := room[:0]
			for _, v := range t.ids[lo:hi] {
				if v >= hot {
					rows = append(rows, v-uint32(s.hot))
				}
			}
			s.cache.Mark(rows, part)
		})
	}
}

// markChunk is the number of rows that one goroutine marks at a time.
const markChunk = 4096

// over reports whether w, which is not released, is past this part and all parts before it.
func (w *Window) over(part int) bool {
	steps := (part*len(w.steps) + policy.Parts - 1) / policy.Parts // in these parts: see mark
	return w.passed >= steps
}

// await waits until ready holds for the unreleased windows before w.
func (s *Stack) await(ctx context.Context, w *Window, ready func(before []*Window) bool) error {
	return s.wait(ctx, func() bool { return ready(s.mu.windows[:s.at(w)]) })
}

// portionRows is the number of rows to read that are listed at a time: 256 KiB of row numbers.
const portionRows = 64 << 10

// reading walks through the new rows of an index.
type reading struct {
	s       *Stack
	x       *policy.Index
	walk    policy.Walk
	portion []uint32 // listed and not given out yet
}

// newRows begins at the first new row of x.
func (s *Stack) newRows(x *policy.Index) *reading {
	if s.portion == nil {
		s.portion = make([]uint32, portionRows)
	}
	return &reading{s: s, x: x}
}

// begin reports whether any rows are left whose slots are free after this part of the window
// before.
func (r *reading) begin(part int) bool {
	if len(r.portion) == 0 {
		r.portion = r.s.portion[:r.walk.Next(r.x, r.s.portion)]
	}
	return len(r.portion) > 0 && int(r.portion[0]) < r.x.End(part)
}

// rows returns some of the rows whose slots are free after this part, or none if none are left.
// They are valid until the next call.
func (r *reading) rows(part int) []uint32 {
	if !r.begin(part) {
		return nil
	}
	n := sort.Search(len(r.portion), func(i int) bool { return int(r.portion[i]) >= r.x.End(part) })
	rows := r.portion[:n]
	r.portion = r.portion[n:]
	return rows
}

// readNew reads the new rows of x into their slots, part by part as the slots become free. x is the
// index of w; w is nil if x belongs to no window.
func (s *Stack) readNew(ctx context.Context, w *Window, x *policy.Index) (total disk.Traffic, err error) {
	cached := s.cached.Lend() // the goroutines of Read use it
	defer s.cached.Return()
	rows := s.newRows(x)
	for part := range 1 + policy.Parts {
		some := rows.begin(part)
		if !some && !s.leaving(part) {
			continue
		}
		if part > 0 {
			err := s.await(ctx, w, func(before []*Window) bool { return len(before) == 0 || before[0].over(part) })
			if err != nil {
				return total, err
			}
		}
		if err := s.leave(part); err != nil {
			return total, err
		}
		if !some {
			continue
		}
		traffic, err := s.source.fresh(ctx, func() []uint32 { return rows.rows(part) }, uint32(s.hot), x, cached)
		total.Add(traffic)
		if err != nil {
			return total, err
		}
	}
	return total, nil
}
