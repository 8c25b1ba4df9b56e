package cachetier

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// Horizon is a series of windows whose rows are all known before the first window is loaded, so
// that the table is read once for all of them. It is a partitioned join of batches with the table,
// by time-forward processing (Chiang et al., External-memory graph algorithms, SODA 1995).
//
//	Add, Cut   add the steps of windows, in order
//	Scan       reads the table once; a row goes to the run of the first window that wants it
//	Next       plans the windows, which load their rows from their runs
//
// An evicted row goes to the run of the next window of the horizon that wants it. So no row is in
// the spill twice, and a row that stays in the cache from one window to the next that wants it is
// not spilled again. Under Belady all windows of the horizon decide which rows stay.
//
// A horizon of one window has no run: its rows are read from the table, as for any window. Rows
// that a damaged run has lost are read from the table, too.
//
// Concurrency: a horizon belongs to its planner until Next. It may be planned and scanned while the
// windows of the horizon before it are loaded and used. Scan reads the table through a reader of
// its own.
type Horizon struct {
	s       *Stack
	windows []*planned
	pages   int      // of packed sets, that it may still take
	last    []uint32 // rows that the last Add added to the last window
	fresh   int      // rows of the last window that no earlier window wants
	union   *set     // rows of all windows, of the last only from Done on; the scan reads them
	rows    int      // size of union
	next    int      // the next window to plan
	seen    *set     // rows wanted by the windows that have their slots
	closed  bool
	users   atomic.Int64 // the planner, and planned windows that are not loaded
	scan    tally        // counts of the scan, until the first window takes them over

	// For each window, from Done on:
	left []int           // different rows that it and later windows want
	gone []chan struct{} // closed when it has nothing left in the spill
}

// planned is a window of a horizon.
type planned struct {
	need  *set // packed when the next window begins
	count int  // rows in need
	steps int
	run   *rowRun // nil if the horizon has one window
}

// join is the state of a Stack for its horizons.
type join struct {
	file     *spill.File
	reader   source // of the table, for scans
	arrivals *policy.Arrivals
	pages    *policy.Pages // memory for the rows that windows want
	held     int           // pages that the last planned horizon holds
	perBuf   int           // rows per segment
	rowsAt   int           // offset of the rows in a segment
	scanning sync.Mutex    // held while scanning
}

// recordBytes returns the bytes of a row and its id in a spill.
func recordBytes(rowBytes int) int { return 4 + rowBytes }

// HorizonBytes returns the memory that Join takes for a table of so many rows and a cache of so
// many slots. It covers the rows that the windows of all horizons want together, wanted rows for
// each window, and the slots for arriving rows.
func HorizonBytes(rows, slots, windows, wanted int) int64 {
	return horizonSets*int64(8*policy.SetWords(rows)) + policy.PackedBytes(rows, wanted, windows) + policy.ArrivalBytes(slots)
}

// horizonSets is the number of bitmaps that horizons take beside the spareSets of groups, which are
// not in use meanwhile. Two horizons each have a union, a seen and a last window. The horizon
// before them may still have a seen and two windows.
const horizonSets = 9 - spareSets

// SpillBytes returns the bytes that so many rows take in the spill of Join, in whole segments.
// Segments that a run has only partly filled come on top.
func (s *Stack) SpillBytes(rows int) int64 {
	return int64((rows+s.join.perBuf-1)/s.join.perBuf) * int64(s.join.file.Segment())
}

// Join makes the stack's horizons spill to f, which stays the caller's and must stay open until
// Close has returned. Scans read t with the disk options of o. f needs a buffer for each of the
// windows that all horizons have together, and twice its Depth more. Join reserves memory for the
// rows that so many windows want, wanted rows each on average; there must not be more of them
// together.
//
// It returns false if the stack is over Records, if it has no cache that keeps rows, if a row does
// not fit in a segment, or if windows is below 2.
func (s *Stack) Join(ctx context.Context, f *spill.File, windows, wanted int, t Table, o Options) (ok bool, err error) {
	if s.rewrites != nil || s.cache == nil || s.layout.cache.Kind == policy.None || recordBytes(s.rowBytes)+rowAlign > f.Segment() || windows < 2 {
		return false, nil
	}
	reader, err := openRows(ctx, t, o.Disk())
	if err != nil {
		return false, fmt.Errorf("cachetier: %w", err)
	}
	j := &join{file: f, reader: reader}
	j.perBuf = (f.Segment() - rowAlign) / recordBytes(s.rowBytes)
	j.rowsAt = (4*j.perBuf + rowAlign - 1) / rowAlign * rowAlign
	words := policy.SetWords(s.layout.cache.Rows)
	if j.arrivals, err = policy.NewArrivals(s.slots); err == nil {
		j.pages, err = policy.NewPages(s.layout.cache.Rows, wanted, windows)
	}
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		err = s.moreSets(horizonSets*words, words)
	}
	if err != nil {
		j.close()
		return false, fmt.Errorf("cachetier: the sets of %d windows: %w", windows, err)
	}
	s.join = j
	return true, nil
}

// Joined reports whether horizons may plan the windows of the stack: Join returned true, or nothing
// is ever read.
func (s *Stack) Joined() bool { return s.join != nil || s.hot == s.rows && s.rewrites == nil }

// rowAlign is the alignment of the rows in a segment, in bytes.
const rowAlign = 64

// moreSets allocates words 64-bit words and adds them as unused sets of each words. The caller
// holds s.mu.
func (s *Stack) moreSets(words, each int) error {
	b, err := kernels.NewHostBuf(8 * words)
	if err != nil {
		return err
	}
	s.mu.more = b
	for all := b.Uint64s(); len(all) >= each; all = all[each:] {
		s.mu.unused = append(s.mu.unused, &set{Set: all[:each:each]})
		s.mu.made++
		s.mu.added++
	}
	return nil
}

// close releases what j holds. j may be nil.
func (j *join) close() {
	if j == nil {
		return
	}
	j.reader.Close()
	if j.arrivals != nil {
		j.arrivals.Close()
	}
	if j.pages != nil {
		j.pages.Close()
	}
}

// NewHorizon begins a horizon of no windows. It panics unless Join returned true. It may take all
// the memory for sets that the previous horizon leaves, however many windows of that one are loaded
// by now: so its length does not depend on timing. Before it gets a second window, the windows of
// all horizons before the previous one must be loaded.
func (s *Stack) NewHorizon() *Horizon {
	s.alive("NewHorizon")
	if s.join == nil {
		panic("cachetier: NewHorizon of a stack without a spill")
	}
	h := &Horizon{s: s, union: s.newSet(), seen: s.newSet(), pages: s.join.pages.All() - s.join.held}
	h.users.Store(1)
	h.windows = append(h.windows, &planned{need: s.newSet()})
	return h
}

// Add adds a step to the last window, with the ids whose rows it needs, none twice. It reports
// whether the window has room for them; if not, the step is not added. It panics on an id past the
// table.
func (h *Horizon) Add(ids []uint32) (fits bool) {
	s, w := h.s, h.windows[len(h.windows)-1]
	s.alive("Horizon.Add")
	if v, bad := pastTable(ids, s.rows); bad {
		panic(fmt.Sprintf("cachetier: Add: row %d, and the table has %d", v, s.rows))
	}
	h.last = slices.Grow(h.last[:0], len(ids))[:len(ids)]
	n := 0
	for _, v := range ids { // without a branch that waits for memory
		if v >= uint32(s.hot) {
			h.last[n] = v - uint32(s.hot)
			n += w.need.Lacks(h.last[n])
		}
	}
	h.last = h.last[:n]
	for _, v := range h.last {
		w.need.Add(v)
		h.fresh += h.union.Lacks(v)
	}
	w.count += len(h.last)
	w.steps++
	if w.count > s.slots {
		h.Undo()
		return false
	}
	return true
}

// Undo takes back the last Add, which must have returned true. It may not be called twice in a row.
func (h *Horizon) Undo() {
	w := h.windows[len(h.windows)-1]
	for _, v := range h.last {
		w.need.Set[v>>6] &^= 1 << (v & 63)
		if !h.union.Has(v) {
			h.fresh--
		}
	}
	w.count -= len(h.last)
	w.steps--
	h.last = h.last[:0]
}

// Cut begins the next window. It returns false if the horizon is full: no memory is left for the
// rows of one more window, or there are 256 windows.
func (h *Horizon) Cut() (ok bool) {
	if len(h.windows) > policy.MaxLater {
		return false
	}
	w := h.windows[len(h.windows)-1]
	packed, ok := h.s.join.pages.Pack(w.need.Set, h.pages)
	if !ok {
		return false
	}
	h.unite(w)
	h.pages -= packed.Pages()
	next := w.need
	next.Clear()
	w.need = &set{packed: packed, users: 1}
	h.windows = append(h.windows, &planned{need: next})
	return true
}

// unite adds the rows of the last window to the union.
func (h *Horizon) unite(last *planned) {
	for i, need := range last.need.Set {
		h.union.Set[i] |= need
	}
	h.rows, h.fresh = h.rows+h.fresh, 0
}

// Rows returns how many different rows the windows want. The spill never holds more of their rows
// than that.
func (h *Horizon) Rows() int { return h.rows + h.fresh }

// Done ends the planning. A last window without steps is dropped.
func (h *Horizon) Done() {
	if n := len(h.windows) - 1; h.windows[n].steps == 0 {
		h.s.drop(h.windows[n].need)
		h.windows = h.windows[:n]
	} else {
		h.unite(h.windows[n])
	}
	for _, w := range h.windows {
		h.gone = append(h.gone, make(chan struct{}))
		if len(h.windows) > 1 {
			w.run = &rowRun{j: h.s.join, size: h.s.rowBytes, run: h.s.join.file.NewRun()}
		}
	}
	h.s.join.held = 0
	for _, w := range h.windows {
		if w.need.packed != nil {
			h.s.join.held += w.need.packed.Pages()
		}
	}
	h.countLeft()
}

// countLeft computes h.left. It borrows h.seen, which has no other use before the first window.
func (h *Horizon) countLeft() {
	h.left = make([]int, len(h.windows)+1)
	for k := len(h.windows) - 1; k >= 0; k-- {
		more := 0
		h.windows[k].each(h.seen.Set, func(seen, need []uint64) {
			for i, need := range need {
				more += bits.OnesCount64(need &^ seen[i])
				seen[i] |= need
			}
		})
		h.left[k] = h.left[k+1] + more
	}
	h.seen.Clear()
}

// each calls do with one part of s after another, and the same part of the rows that the window
// wants.
func (w *planned) each(s policy.Set, do func(part, need []uint64)) {
	const words = 1 << 10
	rows, room := w.need.rows(), make([]uint64, policy.WordsRoom(words))
	for lo := 0; lo < len(s); lo += words {
		hi := min(lo+words, len(s))
		do(s[lo:hi], rows.Words(room, lo, hi))
	}
}

// Left returns how many different rows the windows from the k-th on want. Once the windows before
// it are loaded, the spill holds no more rows of the horizon than that. Call it after Done.
func (h *Horizon) Left(k int) int { return h.left[k] }

// Table returns how many rows windows can want: all rows outside the device and static regions.
func (h *Horizon) Table() int { return h.s.layout.cache.Rows }

// Drained waits until the windows before the k-th are loaded or given up, so that they have nothing
// left in the spill. Once the horizon is Done, others may use it meanwhile. It fails only if ctx
// ends.
func (h *Horizon) Drained(ctx context.Context, k int) error {
	for _, gone := range h.gone[:k] {
		select {
		case <-gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Scan reads the rows of all windows, in file order, and sends them to their runs. For a horizon of
// one window it does nothing. If the spill fails, the scan goes on, and the windows later read the
// lost rows from the table.
func (h *Horizon) Scan(ctx context.Context) error {
	if len(h.windows) < 2 {
		return nil
	}
	s := h.s
	s.join.scanning.Lock()
	defer s.join.scanning.Unlock()
	ctx, done := s.begin(ctx, "Scan")
	defer done()
	r, ok := s.join.reader.(*rowReader)
	if !ok {
		panic("cachetier: Scan of a stack that reads no table")
	}
	list := lister{rows: h.union.Set, portion: make([]uint32, portionRows)}
	hot := uint32(s.hot)
	var sent atomic.Int64
	pool := sync.Pool{New: func() any { return new(sorted) }}
	traffic, err := r.Read(ctx, r.extents(list.next, hot), func(e disk.Extent, b []byte) error {
		o := pool.Get().(*sorted)
		defer pool.Put(o)
		first, last := r.span(e)
		from := func(v uint32) []byte {
			at := int(r.request(v+hot).Offset - e.Offset)
			return b[at : at+s.rowBytes]
		}
		o.begin(h.union.Set, first-hot, last-hot)
		for _, w := range h.windows {
			rows := o.of(w.need.rows())
			w.run.append(ctx, len(rows), func(i int) (uint32, []byte) { return rows[i], from(rows[i]) })
			sent.Add(int64(len(rows)))
		}
		return ctx.Err()
	})
	if err != nil {
		return fmt.Errorf("cachetier: scan for %d windows: %w", len(h.windows), err)
	}
	h.scan.traffic, h.scan.scanned, h.scan.spilled = traffic, traffic, sent.Load()
	return nil
}

// lister lists the rows of a set in ascending order, some at a time.
type lister struct {
	rows    policy.Set
	portion []uint32
	word    int
}

func (l *lister) next() []uint32 {
	n := 0
	for ; l.word < len(l.rows) && n+64 <= len(l.portion); l.word++ {
		for w := l.rows[l.word]; w != 0; w &= w - 1 {
			l.portion[n] = uint32(l.word<<6 + bits.TrailingZeros64(w))
			n++
		}
	}
	return l.portion[:n]
}

// sorted divides the rows of an extent by the first window that wants them.
type sorted struct {
	left []uint64 // rows that no window has taken yet
	word int      // word of the set where left begins
	room []uint64 // scratch space for words of a set
	rows []uint32
}

// begin starts with the rows of union from first to last, both included.
func (o *sorted) begin(union policy.Set, first, last uint32) {
	o.word = int(first >> 6)
	o.left = append(o.left[:0], union[o.word:last>>6+1]...)
	o.left[0] &= ^uint64(0) << (first & 63)
	o.left[len(o.left)-1] &= ^uint64(0) >> (63 - last&63)
	if n := policy.WordsRoom(len(o.left)); cap(o.room) < n {
		o.room = make([]uint64, n)
	}
}

// of returns the rows of need that are left, and removes them from left. The result is valid until
// the next call.
func (o *sorted) of(need policy.Rows) []uint32 {
	o.rows = o.rows[:0]
	for i, w := range need.Words(o.room[:cap(o.room)], o.word, o.word+len(o.left)) {
		take := o.left[i] & w
		if take == 0 {
			continue
		}
		o.left[i] &^= take
		for base := (o.word + i) << 6; take != 0; take &= take - 1 {
			o.rows = append(o.rows, uint32(base+bits.TrailingZeros64(take)))
		}
	}
	return o.rows
}

// Next plans the next window of the horizon. steps must be the steps that were added to it. It
// waits as [Stack.Next] does, and returns nil after the last window. The windows of two horizons
// must not be mixed.
func (h *Horizon) Next(ctx context.Context, steps [][]uint32) (*Window, error) {
	s := h.s
	if h.next == len(h.windows) {
		return nil, nil
	}
	err := s.waitRoom(ctx, "Next")
	s.planning.Lock()
	defer s.planning.Unlock()
	if err == nil {
		err = s.notClosing()
	}
	if err != nil {
		return nil, fmt.Errorf("cachetier: %w", err)
	}
	p := h.windows[h.next]
	if len(steps) != p.steps {
		panic(fmt.Sprintf("cachetier: Next: %d steps for a window of %d", len(steps), p.steps))
	}
	w := &Window{s: s, steps: s.stepsOf(steps, nil), need: s.bitmap(p), rows: p.count, horizon: h, at: h.next}
	w.came = tally{windows: 1}
	h.users.Add(1)
	if h.next++; h.next == 1 {
		w.came.add(h.scan)
		w.came.horizons = 1
		h.scan = tally{}
	}
	if s.layout.cache.Kind == Belady {
		for _, later := range h.windows[h.next:] {
			w.future = append(w.future, s.share(later.need))
		}
	}
	s.enter(w)
	return w, nil
}

// bitmap returns the rows that w wants as a bitmap, with one user more.
func (s *Stack) bitmap(w *planned) *set {
	if w.need.packed == nil {
		return s.share(w.need)
	}
	b := s.newSet()
	w.each(b.Set, func(part, need []uint64) { copy(part, need) })
	return b
}

// Close releases the windows that were not planned. If there are any, no window of the horizon may
// be loading. Planned windows can still be used. A second Close does nothing.
func (h *Horizon) Close() {
	if h.closed {
		return
	}
	h.closed = true
	for i, w := range h.windows[h.next:] {
		if w.run != nil {
			w.run.drop()
		}
		h.s.drop(w.need)
		if h.gone != nil {
			close(h.gone[h.next+i])
		}
	}
	if h.next < len(h.windows) {
		h.windows = h.windows[:h.next] // the others get no rows forwarded
	}
	h.s.drop(h.union)
	h.union = nil
	h.leave()
}

// leave ends a use of h, by its planner or by a window.
func (h *Horizon) leave() {
	if h.users.Add(-1) == 0 {
		h.s.drop(h.seen)
		h.seen = nil
	}
}

// leaveHorizon records that w needs nothing from its horizon any more.
func (w *Window) leaveHorizon() {
	if h := w.horizon; h != nil && !w.alone {
		w.alone = true
		p := h.windows[w.at]
		if p.run != nil {
			p.run.drop()
		}
		h.s.drop(p.need)
		close(h.gone[w.at])
		h.leave()
	}
}

// kept records that w, a window of h, has its slots. It must run before w drops its rows.
func (h *Horizon) kept(w *Window) {
	for i, need := range w.need.Set {
		h.seen.Set[i] |= need
	}
}

// loadRun copies the rows of w from its run into their slots. Rows that were evicted for them are
// forwarded to the windows that want them next, after each part of the window before w.
func (s *Stack) loadRun(ctx context.Context, w *Window) error {
	h, a := w.horizon, s.join.arrivals
	a.Begin(w.index)
	leaves := w.at > 0 && w.at+1 < len(h.windows) && w.change.Evicted > 0 && a.Leave(s.cache, h.seen.Set, h.later(w))
	avail, waited, began := newLevel(), time.Duration(0), time.Now()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var parts, marked sync.WaitGroup
	defer marked.Wait()
	marked.Go(func() { s.mark(w.steps) }) // after Leave: marking invalidates the list of evicted rows
	parts.Go(func() {
		defer avail.close()
		for part := range 1 + policy.Parts {
			now := time.Now()
			err := s.await(ctx, w, func(before []*Window) bool {
				return len(before) == 0 || before[0].over(part)
			})
			waited += time.Since(now)
			if err == nil && leaves {
				err = h.forward(ctx, w, part)
			}
			if err != nil {
				end(err)
				return
			}
			avail.raise(a.End(part))
		}
	})
	cached := s.cached.Lend()
	defer s.cached.Return()
	run := h.windows[w.at].run
	err := run.each(ctx, func(ids []uint32, rows []byte) error { return s.arrive(ctx, a, avail, cached, ids, rows) })
	if err != nil && !errors.Is(err, spill.ErrDamaged) {
		end(err)
	}
	parts.Wait()
	w.came.traffic.Seconds += max(0, time.Since(began)-waited).Seconds()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if w.came.reread = int64(a.Missing()); w.came.reread > 0 {
		list := a.Rest(make([]uint32, portionRows))
		traffic, err := s.source.fresh(ctx, list, uint32(s.hot), w.index, cached)
		if err != nil {
			return err
		}
		w.came.traffic.Add(traffic)
	}
	return nil
}

// arrive copies rows into their slots, and waits for slots that are still in use.
func (s *Stack) arrive(ctx context.Context, a *policy.Arrivals, avail *level, cached []byte, ids []uint32, rows []byte) error {
	moves, ranks := make([]move, 0, len(ids)), make([]uint32, 0, len(ids))
	for i, v := range ids {
		if rank, ok := a.Find(v); ok {
			moves, ranks = append(moves, move{From: uint32(i)}), append(ranks, rank)
		}
	}
	first := a.Take(len(ranks))
	for at := 0; at < len(ranks); {
		n, ok := avail.wait(first + at)
		if !ok {
			return context.Cause(ctx)
		}
		n = min(n-first, len(ranks))
		for i := at; i < n; i++ {
			moves[i].To = a.Place(ranks[i], first+i)
		}
		kernels.CopyRows(cached, rows, s.rowBytes, moves[at:n])
		at = n
	}
	return nil
}

// later returns the rows that each window after w wants.
func (h *Horizon) later(w *Window) (later []policy.Rows) {
	for _, p := range h.windows[w.at+1:] {
		later = append(later, p.need.rows())
	}
	return later
}

// forward sends rows that were evicted for w to the next windows of the horizon that want them. It
// sends those that the window before w uses last in this part. Rows that no window of the horizon
// has wanted yet are in their run already.
func (h *Horizon) forward(ctx context.Context, w *Window, part int) error {
	s, later := h.s, h.windows[w.at+1:]
	cached, size := s.cached.Bytes(), s.rowBytes
	moves := make([][]move, len(later))
	flush := func(i int) {
		m := moves[i]
		later[i].run.append(ctx, len(m), func(k int) (uint32, []byte) { return m[k].From, cached[int(m[k].To)*size:][:size] })
		w.came.forwarded += int64(len(m))
		moves[i] = m[:0]
	}
	rows, windows := s.join.arrivals.Left(part)
	for k, v := range rows {
		i := windows[k]
		if moves[i] = append(moves[i], move{From: v, To: s.cache.EvictedFrom(v)}); len(moves[i]) == forwardRows {
			flush(int(i))
		}
	}
	for i := range moves {
		flush(i)
	}
	return ctx.Err()
}

// forwardRows is the number of rows that forward sends at a time.
const forwardRows = 1024

// rowRun holds the rows of one window in a spill.
type rowRun struct {
	j    *join
	size int
	run  *spill.Run

	mu   sync.Mutex
	open *spill.Buffer // being filled, or nil
	lost error         // why no more rows can be appended
}

// append adds n rows, in any order. If the spill fails, they are lost, and are read from the table
// later.
func (r *rowRun) append(ctx context.Context, n int, row func(i int) (uint32, []byte)) {
	if n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := 0; i < n && r.lost == nil; {
		if r.open == nil {
			if r.open, r.lost = r.j.file.Buffer(ctx); r.lost != nil {
				return
			}
		}
		b := r.open
		ids, rows := r.j.part(b.Bytes, r.j.perBuf, r.size)
		for ; i < n && b.Count < r.j.perBuf; i++ {
			v, from := row(i)
			ids[b.Count] = v
			copy(rows[b.Count*r.size:], from)
			b.Count++
		}
		if b.Used = r.j.rowsAt + b.Count*r.size; b.Count == r.j.perBuf {
			r.open = nil
			r.lost = r.run.Append(b)
		}
	}
}

// part returns the ids and the rows of a segment that has room for, or holds, count rows.
func (j *join) part(b []byte, count, size int) (ids []uint32, rows []byte) {
	ids, ok := store.NodeIDs(b[:4*count])
	if !ok {
		panic("cachetier: a segment that is not aligned")
	}
	return ids, b[j.rowsAt : j.rowsAt+count*size]
}

// each passes all rows to serve, from several goroutines at once. The rows of a segment that fails
// are lost, and each returns an ErrDamaged at the end.
func (r *rowRun) each(ctx context.Context, serve func(ids []uint32, rows []byte) error) error {
	r.mu.Lock()
	b, lost := r.open, r.lost
	r.open, r.lost = nil, nil
	r.mu.Unlock()
	err := r.run.Each(ctx, func(b []byte, count int) error {
		ids, rows := r.j.part(b, count, r.size)
		return serve(ids, rows)
	})
	if b != nil {
		if err == nil || errors.Is(err, spill.ErrDamaged) {
			ids, rows := r.j.part(b.Bytes, b.Count, r.size)
			err = errors.Join(err, serve(ids, rows))
		}
		r.j.file.Return(b)
	}
	if lost != nil && err == nil {
		err = fmt.Errorf("%w: %w", lost, spill.ErrDamaged)
	}
	return err
}

// drop returns the open buffer and frees the run.
func (r *rowRun) drop() {
	r.mu.Lock()
	b := r.open
	r.open = nil
	r.mu.Unlock()
	if b != nil {
		r.j.file.Return(b)
	}
	r.run.Drop()
}

// level is a rising number that goroutines can wait for.
type level struct {
	mu      sync.Mutex
	changed *sync.Cond
	n       int
	closed  bool
}

func newLevel() *level {
	l := new(level)
	l.changed = sync.NewCond(&l.mu)
	return l
}

func (l *level) raise(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n = n
	l.changed.Broadcast()
}

// close ends all waiting, now and later.
func (l *level) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.changed.Broadcast()
}

// wait returns the level once it is above n. ok is false if it was closed before that.
func (l *level) wait(n int) (_ int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.n <= n && !l.closed {
		l.changed.Wait()
	}
	return l.n, l.n > n
}
