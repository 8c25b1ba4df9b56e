package cachetier

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/kernels"
)

// Gather copies the rows of ids into dst, packed and in the order of ids: the row of ids[i] goes to
// dst[i*RowBytes:]. It is an unplanned window of one step, for evaluation and for callers who do
// not know what comes next. An id may repeat; one call reads its row from disk at most once. An id
// past the table is an error, and dst is then untouched. It panics if dst is too short, or if a
// window is not released.
//
// Which tier serves an id, and which rows stay, depends only on the options, on the calls made so
// far and on the expected steps. A Gather that fails counts nothing and leaves dst undefined. It
// leaves the cache as it was; under None the cache is then empty. If it cannot write evicted rows
// of Records, see [Stack.Write].
func (s *Stack) Gather(ctx context.Context, dst []byte, ids []uint32) error {
	return s.gather(ctx, "Gather", dst, ids, true)
}

// Peek copies rows as Gather does, but leaves the cache as it is. Use it for a pass over much of
// the table, which would wash out the cache.
func (s *Stack) Peek(ctx context.Context, dst []byte, ids []uint32) error {
	return s.gather(ctx, "Peek", dst, ids, false)
}

// Places is [Window.Places] for ids that are no step's. PeekBeyond then copies the n rows.
func (s *Stack) Places(ids, at []uint32) (n int) { return s.places(s.now(ids), at) }

// PeekBeyond copies rows as Peek does, but leaves out those that lie where the host cannot address
// them: see Places. No slots may be taken between the two calls.
func (s *Stack) PeekBeyond(ctx context.Context, dst []byte, ids []uint32) error {
	t, others := s.now(ids), make([]uint32, 0, len(ids))
	for _, v := range t.ids {
		if v >= t.device {
			others = append(others, v)
		}
	}
	if err := s.gather(ctx, "PeekBeyond", dst, others, false); err != nil {
		return err
	}
	s.stats.Lock()
	defer s.stats.Unlock()
	n := int64(len(ids) - len(others))
	s.stats.InputRows += n
	s.stats.Tiers.Device.served(n, 0, s.stats.RowBytes)
	return nil
}

// now returns a step with these ids. It has the rows that lie in the device region now, without the
// dynamic part.
func (s *Stack) now(ids []uint32) step { return s.stepsOf([][]uint32{ids}, nil)[0] }

func (s *Stack) gather(ctx context.Context, name string, dst []byte, ids []uint32, keep bool) error {
	s.check(name, dst, ids)
	rows := s.rows
	for i, v := range ids {
		if int(v) >= rows {
			return fmt.Errorf("cachetier: ids[%d] is %d, and the table has %d rows", i, v, rows)
		}
	}
	s.gathering.Lock()
	defer s.gathering.Unlock()
	ctx, done := s.begin(ctx, name)
	defer done()
	s.mu.Lock()
	planned := len(s.mu.windows)
	s.mu.Unlock()
	if planned > 0 {
		panic("cachetier: " + name + " while a window is not released")
	}
	if s.rewrites != nil {
		s.rewrites.copying.Lock()
		defer s.rewrites.copying.Unlock()
		if err := s.rewrites.failed(); err != nil {
			return err
		}
	}
	if !keep {
		return s.peekStep(ctx, dst, ids)
	}
	var future []policy.Rows
	if s.cache != nil {
		s.planning.Lock()
		defer s.planning.Unlock()
		s.foresee(s.lookahead)
		for _, g := range s.groups[:min(s.lookahead, len(s.groups))] {
			future = append(future, g.rows.Set)
		}
	}
	return s.gatherStep(ctx, dst, ids, nil, future)
}

// Places finds the rows of step i for kernels.Backend.RowsOf, if [Stack.Apart] has a table. It sets
// at[k] to the place of the k-th id's row: its number in that table or, with kernels.InSlot, its
// number among the n rows that Gather copies. It may be called whenever Gather may.
func (w *Window) Places(i int, at []uint32) (n int) { return w.s.places(w.steps[i], at) }

func (s *Stack) places(t step, at []uint32) (n int) {
	kept, last := uint32(s.layout.device), s.device.At(0)
	stays := 0
	for k, v := range t.ids {
		switch {
		case v < kept:
			at[k] = last - v
			continue
		case v < t.device: // behind the dynamic part
			at[k] = last - uint32(s.layout.dynamic.Slots) - v
			continue
		case t.stay.at(k):
			at[k] = last - kept - t.stay.slots[stays]
			stays++
			continue
		}
		at[k] = kernels.InSlot | uint32(n)
		n++
	}
	return n
}

// beyond lists the ids of step i whose rows the host gathers.
func (w *Window) beyond(i int) []uint32 {
	t, s := w.steps[i], w.s
	if _, ok := s.Apart(); !ok {
		return t.ids
	}
	p := &s.scratch
	p.beyond = p.beyond[:0]
	for k, v := range t.ids {
		if v >= t.device && !t.stay.at(k) {
			p.beyond = append(p.beyond, v)
		}
	}
	p.apart = tally{device: int64(len(t.ids) - len(p.beyond))}
	if t.stay != nil {
		p.apart.kept, p.apart.lost = int64(len(t.stay.keep)), int64(t.stay.evicted)
	}
	return p.beyond
}

// Gather copies the rows of step i of the window into dst, packed and in the order of the step's
// ids. Rows that lie where the host cannot address them are left out: see Places. The window must
// be loaded. A window of one step is read only now, and the windows before it
// must be released. Gather steps in order: steps before i can no longer be gathered, and the rows
// that only they wanted make room for the window that is being loaded. It panics if dst is too
// short.
//
// Over a Table only the Gather of a one-step window can fail. Over Records any can, since it waits
// for earlier steps to be written back: see [Stack.Write]. A Gather that fails counts nothing and
// leaves dst undefined. It leaves the cache as it was; for a one-step window under None the cache
// is then empty.
func (w *Window) Gather(ctx context.Context, i int, dst []byte) error {
	s := w.s
	s.gathering.Lock()
	defer s.gathering.Unlock()
	ids := w.beyond(i)
	s.check("Window.Gather", dst, ids)
	ctx, done := s.begin(ctx, "Window.Gather")
	defer done()
	w.enter(i)
	if s.rewrites != nil {
		if err := s.written(ctx, w, i); err != nil {
			return err
		}
		s.rewrites.copying.Lock()
		defer s.rewrites.copying.Unlock()
	}
	if w.single {
		err := s.gatherStep(ctx, dst, ids, w.need, sets(w.future))
		if err == nil {
			w.forget()
			s.rewrites.takeBack(dst, ids, w.first+i)
			s.mu.Lock()
			defer s.mu.Unlock()
			w.gather(i + 1)
		}
		return err
	}
	t, held := s.gatherWindow(dst, ids, w.index), 0
	t.add(s.scratch.takeApart())
	t.add(w.came)
	w.came = tally{}
	if w.index != nil {
		held = w.index.Len()
	}
	s.count(t, held)
	s.rewrites.takeBack(dst, ids, w.first+i)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.gather(i + 1)
	return nil
}

// gather records how many steps are gathered. The caller holds s.mu.
func (w *Window) gather(steps int) {
	w.gathered = steps
	if w.s.rewrites == nil {
		w.passed = steps
	}
	w.s.mu.changed.Broadcast()
}

func (s *Stack) check(name string, dst []byte, ids []uint32) {
	if len(dst)/s.rowBytes < len(ids) {
		panic("cachetier: " + name + ": dst is too short for ids")
	}
	if int64(len(ids)) > math.MaxUint32 {
		panic("cachetier: " + name + ": more ids than 32 bits can count")
	}
}

// gatherWindow copies the rows of ids to dst. All of these rows are in memory.
func (s *Stack) gatherWindow(dst []byte, ids []uint32, x *policy.Index) (sum tally) {
	device, static, cached := s.device.Lend(), s.static.Lend(), s.cached.Lend() // the goroutines of inChunks use them
	defer s.device.Return()
	defer s.static.Return()
	defer s.cached.Return()
	first, hot, size := uint32(s.layout.device), uint32(s.hot), s.rowBytes
	var mu sync.Mutex
	inChunks(len(ids), chunkRows(size), func(lo, hi int) {
		var t tally
		p := foundPool.Get().(*found) // find all first: look-ups overlap in the processor, but not across copies
		defer foundPool.Put(p)
		for ; lo < hi; lo += portionFound {
			var n [3]int
			for i, v := range ids[lo:min(lo+portionFound, hi)] {
				from, row := 2, v
				switch {
				case v < first:
					from = 0
				case v < hot:
					from, row = 1, v-first
				default:
					p.rows[n[2]] = v - hot
				}
				p.moves[from][n[from]] = move{From: row, To: uint32(lo + i)}
				n[from]++
			}
			read, ok := x.Use(p.rows[:n[2]], p.slots[:])
			if !ok {
				panic("cachetier: a row of a window has no slot")
			}
			t.read += int64(read)
			for i, slot := range p.slots[:n[2]] {
				p.moves[2][i].From = slot
			}
			for from, rows := range [...][]byte{device, static, cached} {
				kernels.CopyRows(dst, rows, size, p.moves[from][:n[from]])
			}
			t.device, t.static, t.cached = t.device+int64(n[0]), t.static+int64(n[1]), t.cached+int64(n[2])
		}
		t.cached -= t.read
		mu.Lock()
		defer mu.Unlock()
		sum.add(t)
	})
	return sum
}

// found locates some rows of a step: moves from the device region, the static region and the cache,
// and the numbers and slots of the cached rows.
type found struct {
	moves       [3][portionFound]move
	rows, slots [portionFound]uint32
}

// portionFound is the number of rows that are looked up at a time.
const portionFound = 256

// foundPool recycles the lists of gatherWindow. Allocated anew, they were a third of what a step of
// a stream allocated.
var foundPool = sync.Pool{New: func() any { return new(found) }}

// plan lists the copies and reads of a step that is gathered at once. The next step reuses its
// lists.
type plan struct {
	// Where the device region is apart: the ids of a step that the host gathers rows for, and the
	// counts of its other ids.
	beyond []uint32
	apart  tally

	fromRegion                        []uint32 // rows of the static region that a device reads
	fromDevice, fromStatic, fromCache []move

	wants   []want // from disk to dst, in file order, no row twice
	repeats []move // within dst: ids whose row is already in wants
	toCache []move // from dst to the cache
}

// takeApart returns, once, the counts of a device region that is apart for the step.
func (p *plan) takeApart() tally {
	t := p.apart
	p.apart = tally{}
	return t
}

// move is a row to copy: its numbers in the source and in the destination.
type move = kernels.Move

// gatherStep gathers a window of one step. Rows that no tier has are read straight to dst; then the
// policy chooses which of them the cache keeps. need holds the rows of ids that are not hot; nil
// means that they are not known.
func (s *Stack) gatherStep(ctx context.Context, dst []byte, ids []uint32, need *set, future []policy.Rows) error {
	if s.cache == nil {
		return s.peekStep(ctx, dst, ids)
	}
	evicted := 0
	if s.layout.cache.Kind == policy.None {
		if err := s.flush(s.hot); err != nil {
			return err
		}
		evicted = s.cache.Forget()
	}
	t, err := s.fetch(ctx, dst, ids)
	if err != nil {
		return err
	}
	if need == nil {
		need = s.newSet()
		defer s.drop(need)
		s.add(need, step{ids: ids})
	}
	change := s.cache.Step(need.Set, future)
	s.noteLeaving(change)
	if err := s.leaveAll(); err != nil {
		return err
	}
	p := &s.scratch
	p.toCache = p.toCache[:0]
	if x := s.cache.Now(); change.Admitted > 0 {
		for _, q := range p.wants {
			if q.row() < uint32(s.hot) {
				continue // of a device region that is apart
			}
			if slot, ok := x.Slot(q.row() - uint32(s.hot)); ok {
				p.toCache = append(p.toCache, move{From: q.place(), To: slot})
			}
		}
	}
	cached := s.cached.Lend() // the goroutines of copyRows use it
	defer s.cached.Return()
	copyRows(cached, dst, p.toCache, s.rowBytes)
	t.copied, t.bypassed = int64(change.Admitted), int64(len(p.wants)-change.Admitted)
	t.evicted = int64(evicted + change.Evicted)
	s.count(t, s.cache.Now().Len())
	return nil
}

// peekStep gathers a step without a policy: the cache stays as it is.
func (s *Stack) peekStep(ctx context.Context, dst []byte, ids []uint32) error {
	t, err := s.fetch(ctx, dst, ids)
	if err != nil {
		return err
	}
	t.bypassed = int64(len(s.scratch.wants))
	held := 0
	if s.cache != nil {
		held = s.cache.Now().Len()
	}
	s.count(t, held)
	return nil
}

// fetch copies the rows of ids to dst from wherever they are. Afterwards s.scratch.wants has the
// rows that were read.
func (s *Stack) fetch(ctx context.Context, dst []byte, ids []uint32) (t tally, err error) {
	device, static, cached := s.device.Lend(), s.static.Lend(), s.cached.Lend() // the goroutines of copyRows use them
	defer s.device.Return()
	defer s.static.Return()
	defer s.cached.Return()
	p := &s.scratch
	s.find(p, ids)
	t = p.takeApart()
	t.windows = 1
	t.device += int64(len(p.fromDevice))
	t.static, t.cached, t.read = int64(len(p.fromStatic)), int64(len(p.fromCache)), int64(len(p.wants))
	p.uniteWants()
	t.repeated = t.read - int64(len(p.wants))
	// Copy out of the cache before anything is copied in: a slot may serve a hit and then be given
	// away.
	copyRows(dst, device, p.fromDevice, s.rowBytes)
	copyRows(dst, static, p.fromStatic, s.rowBytes)
	copyRows(dst, cached, p.fromCache, s.rowBytes)
	if len(p.wants) > 0 {
		if t.traffic, err = s.source.wanted(ctx, dst, p.wants); err != nil {
			return t, fmt.Errorf("cachetier: %w", err)
		}
	}
	copyRows(dst, dst, p.repeats, s.rowBytes)
	return t, nil
}

// find fills p with the place of each row. The wants are unsorted and may repeat.
func (s *Stack) find(p *plan, ids []uint32) {
	p.fromDevice, p.fromStatic, p.fromCache = p.fromDevice[:0], p.fromStatic[:0], p.fromCache[:0]
	p.wants, p.repeats = p.wants[:0], p.repeats[:0]
	device, hot, apart := uint32(s.layout.device), uint32(s.hot), s.device != nil && s.device.Apart()
	for i, v := range ids {
		place := uint32(i)
		switch {
		case v < device && apart:
			p.wants = append(p.wants, newWant(v, place))
			continue
		case v < device:
			p.fromDevice = append(p.fromDevice, move{From: v, To: place})
			continue
		case v < hot:
			p.fromStatic = append(p.fromStatic, move{From: v - device, To: place})
			continue
		}
		if s.cache != nil {
			if slot, ok := s.cache.Now().Slot(v - hot); ok {
				p.fromCache = append(p.fromCache, move{From: slot, To: place})
				continue
			}
		}
		p.wants = append(p.wants, newWant(v, place))
	}
}

// uniteWants sorts the wants and keeps the first of each row; the others become repeats of it.
func (p *plan) uniteWants() {
	slices.Sort(p.wants)
	n := 0
	for _, q := range p.wants {
		if n > 0 && p.wants[n-1].row() == q.row() {
			p.repeats = append(p.repeats, move{From: p.wants[n-1].place(), To: q.place()})
			continue
		}
		p.wants[n] = q
		n++
	}
	p.wants = p.wants[:n]
}

// copyRows performs moves. Their destinations must differ from each other and from all sources.
func copyRows(dst, src []byte, moves []move, rowBytes int) {
	inChunks(len(moves), chunkRows(rowBytes), func(lo, hi int) {
		kernels.CopyRows(dst, src, rowBytes, moves[lo:hi])
	})
}

// copyChunkBytes is the amount that one goroutine copies at a time: some 10 µs of work, against the
// microsecond that starting a goroutine costs.
const copyChunkBytes = 128 << 10

func chunkRows(rowBytes int) int { return max(1, copyChunkBytes/rowBytes) }

// inChunks calls work on chunks of [0, n), perChunk things in each, several at once. It returns
// when all are done.
func inChunks(n, perChunk int, work func(lo, hi int)) {
	chunks := (n + perChunk - 1) / perChunk
	var taken atomic.Int64
	turn := func() {
		for {
			c := int(taken.Add(1)) - 1
			if c >= chunks {
				return
			}
			work(c*perChunk, min((c+1)*perChunk, n))
		}
	}
	var wg sync.WaitGroup
	for range min(chunks, runtime.GOMAXPROCS(0)) - 1 {
		wg.Go(turn)
	}
	turn()
	wg.Wait()
}

// tally counts what a piece of work did, in rows.
type tally struct {
	device, static, cached, read int64 // ids, by the place their rows came from
	kept, lost                   int64 // rows that stay on the device, and that give way there
	repeated                     int64 // ids of read whose row another id asked for too
	windows                      int64
	copied, evicted, bypassed    int64
	horizons                     int64
	spilled, forwarded, reread   int64        // rows: see Join
	scanned                      disk.Traffic // the part of traffic that scans caused
	traffic                      disk.Traffic
}

func (t *tally) add(u tally) {
	t.device += u.device
	t.static += u.static
	t.cached += u.cached
	t.read += u.read
	t.kept += u.kept
	t.lost += u.lost
	t.repeated += u.repeated
	t.windows += u.windows
	t.copied += u.copied
	t.evicted += u.evicted
	t.bypassed += u.bypassed
	t.horizons += u.horizons
	t.spilled += u.spilled
	t.forwarded += u.forwarded
	t.reread += u.reread
	t.scanned.Add(u.scanned)
	t.traffic.Add(u.traffic)
}
