package cachetier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"sync"

	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/kernels"
)

// MaxLag bounds the lag of OpenRecords: what a step wrote is held that long.
const MaxLag = 1024

// rewrites is what a Stack over Records has beside one over a Table.
type rewrites struct {
	records Records
	lag     int

	// copying is held by who copies rows out for a step, and by who writes the rows of one, so that
	// no step sees half of a write. What was undone, below, is under it as well.
	copying sync.Mutex
	undone  []undone // of the newest steps, in order
	spare   []undone // whose memory the next ones take
	last    located  // of the last Write or Update, whose memory the next one takes

	room []byte // of Update, under copying

	mu struct {
		sync.Mutex
		dirty policy.Set // rows of which memory has what the disk has not
		lost  error      // a Write has failed: a step is neither written back nor not
		stuck error      // rows could not leave: all are there still, but the cache counts on their slots
	}
	bits *kernels.HostBuf // of dirty

	// out is the rows that have lost their slot, by the part of the window before that has to be
	// over. Their bytes lie there still. It belongs to whoever brings the next window, as the cache
	// does.
	out [1 + policy.Parts][]move
}

// undone is what the rows that a step wrote were before it.
type undone struct {
	step int
	at   map[uint32]int // place among rows
	rows []byte
}

// OpenRecords makes the tiers over r, of which a step sees what was written lag steps before it:
// see [Stack.Write]. r stays the caller's, who uses it no more before Close has returned, but
// between two ranges of steps. A lag of 0 is one of 1.
func OpenRecords(ctx context.Context, r Records, lag int, o Options) (*Stack, error) {
	if err := errors.Join(o.Validate(), validLag(lag)); err != nil {
		return nil, fmt.Errorf("cachetier: %w", err)
	}
	if o.Policy == "" {
		o.Policy = Belady
	}
	var noted bookkeeping
	noted.fixed, noted.slot = NotedBytes(r.Rows())
	s := newStack(r.Rows(), r.RowBytes(), recordReader{r}, o.layout(r.Rows(), r.RowBytes(), noted))
	s.region, s.rewrites = o.Region, &rewrites{records: r, lag: max(lag, 1)}
	var err error
	if s.rewrites.bits, err = kernels.NewHostBuf(int(noted.fixed)); err == nil {
		s.rewrites.mu.dirty = s.rewrites.bits.Uint64s()
		err = s.open(ctx, o.Prewarm)
	}
	if err != nil {
		s.free()
		return nil, fmt.Errorf("cachetier: %w", err)
	}
	return s, nil
}

// NotedBytes is the bookkeeping that a Stack over so many rows of Records has from its host budget
// beside that of others: for the table, and for a row in the cache.
func NotedBytes(rows int) (table, row int64) { return 8 * int64(policy.SetWords(rows)), 8 }

func validLag(lag int) error {
	if lag < 0 || lag > MaxLag {
		return fmt.Errorf("a lag of %d steps: use 1 to %d", lag, MaxLag)
	}
	return nil
}

func (r *rewrites) free() {
	if r == nil || r.bits == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bits.Close()
	r.mu.dirty, r.undone, r.spare, r.last = nil, nil, nil, located{}
}

// failed is what keeps rows from being brought and copied.
func (r *rewrites) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.mu.lost, r.mu.stuck)
}

func (r *rewrites) lost() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.lost
}

// lose keeps the first error of a Write. From then on nothing is copied, written or flushed.
func (r *rewrites) lose(err error) error {
	if err == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.lost == nil {
		r.mu.lost = fmt.Errorf("cachetier: %w", err)
	}
	return r.mu.lost
}

// Write replaces rows of the next step to be written back: the oldest that has not Passed, which
// must be gathered. places are those of the rows in the step's list of ids, and src has their bytes
// in that order. A step writes no other rows than those of its list, none twice.
//
// With a lag of k, step i sees what steps up to i-k wrote and nothing of those after: its Gather
// waits until i-k has passed, and takes back what later ones wrote. So what a step sees depends on
// the lag, and neither on time, budgets, policies nor windows.
//
// A row in memory is replaced there, and is written to disk before it loses its place; others are
// written at once. A Write that fails leaves the Stack of no use: this error and all that follow
// are the same. Where it is Load or Gather that cannot write the rows that lose their place, these
// stay, and nothing is brought or copied any more until a Flush has written them.
func (s *Stack) Write(places []uint32, src []byte) error {
	return s.write(src, func([]uint32) []uint32 { return places })
}

// WriteAll is a Write of all rows of the step, in the order of its list.
func (s *Stack) WriteAll(src []byte) error {
	return s.write(src, func(ids []uint32) []uint32 {
		places := make([]uint32, len(ids))
		for i := range places {
			places[i] = uint32(i)
		}
		return places
	})
}

// Update is a Write of rows that change makes what they are to be. It calls change once with each
// place, i among places, and the bytes of the newest version of its row, which may have what later
// steps wrote than those that this one has seen. change has them for the length of the call. Of a
// row that is not in memory these bytes are read first.
func (s *Stack) Update(places []uint32, change func(i int, row []byte)) error {
	return s.rewrite("Update", func([]uint32) []uint32 { return places }, func(p located, were []byte) error {
		size := s.rowBytes
		each := func(moves []move, rows []byte) {
			for _, m := range moves {
				change(int(m.From), rows[int(m.To)*size:][:size])
			}
		}
		each(p.device, s.device.Bytes())
		each(p.static, s.static.Bytes())
		each(p.cached, s.cached.Bytes())
		for wants := range slices.Chunk(p.disk, max(1, updateBytes/size)) {
			if err := s.updateOnDisk(wants, were, change); err != nil {
				return err
			}
		}
		return nil
	})
}

// updateBytes is how much of rows that are not in memory an Update holds at a time.
const updateBytes = 4 << 20

// updateOnDisk is Update of rows that are on disk. were has all rows of the Update by their place,
// or is nil where they have to be read.
func (s *Stack) updateOnDisk(wants []want, were []byte, change func(i int, row []byte)) error {
	r, size := s.rewrites, s.rowBytes
	r.room = slices.Grow(r.room[:0], len(wants)*size)[:len(wants)*size]
	at := func(i int) []byte { return r.room[i*size:][:size] }
	if were == nil {
		here := make([]want, len(wants))
		for i, q := range wants {
			here[i] = newWant(q.row(), uint32(i))
		}
		if _, err := s.source.wanted(context.Background(), r.room, here); err != nil {
			return err
		}
	}
	for i, q := range wants {
		if were != nil {
			copy(at(i), were[int(q.place())*size:])
		}
		change(int(q.place()), at(i))
	}
	return r.records.Write(len(wants), func(i int) (uint32, []byte) { return wants[i].row(), at(i) })
}

func (s *Stack) write(src []byte, of func(ids []uint32) (places []uint32)) error {
	size := s.rowBytes
	return s.rewrite("Write", func(ids []uint32) []uint32 {
		places := of(ids)
		if len(src) != len(places)*size {
			panic("cachetier: Write: src has other rows than places")
		}
		return places
	}, func(p located, _ []byte) error {
		copyRows(s.device.Bytes(), src, p.device, size)
		copyRows(s.static.Bytes(), src, p.static, size)
		copyRows(s.cached.Bytes(), src, p.cached, size)
		return s.rewrites.records.Write(len(p.disk), func(i int) (uint32, []byte) {
			q := p.disk[i]
			return q.row(), src[int(q.place())*size:][:size]
		})
	})
}

// rewrite finds rows of the next step to be written back, and has put make them what they are to
// be. were is what they are, where a lag wants that remembered, by their place among places; or
// nil.
func (s *Stack) rewrite(name string, of func(ids []uint32) (places []uint32), put func(p located, were []byte) error) error {
	r := s.rewrites
	if r == nil {
		panic("cachetier: " + name + " to a table that stays as it is")
	}
	r.copying.Lock()
	defer r.copying.Unlock()
	s.alive(name)
	if err := r.lost(); err != nil {
		return err
	}
	w, step := s.unpassed(name)
	ids := w.steps[step]
	places := of(ids)
	x := w.index
	if x == nil && s.cache != nil {
		x = s.cache.Now()
	}
	p := s.place(ids, places, x)
	var were []byte
	if r.lag > 1 {
		now := w.first + step
		var err error
		if were, err = s.remember(now, ids, places, p); err != nil {
			return r.lose(err)
		}
		// What the next step to be written has seen, and not what steps gathered ahead of it have,
		// which may never be used.
		for len(r.undone) > 0 && r.undone[0].step <= now+1-r.lag {
			r.forget(1)
		}
	}
	r.mu.Lock()
	for i, at := range places {
		if !p.away(i) {
			r.mu.dirty.Add(ids[at])
		}
	}
	r.mu.Unlock()
	return r.lose(put(p, were))
}

// located is where the rows of a Write or an Update lie: moves from their place in it.
type located struct {
	device, static, cached []move
	disk                   []want
	onDisk                 policy.Set // of those in disk the places
}

func (p located) away(i int) bool { return p.onDisk.Has(uint32(i)) }

// place finds the rows of a Write or an Update, by x where they have slots.
func (s *Stack) place(ids, at []uint32, x *policy.Index) (p located) {
	p = s.rewrites.last.emptied(len(at))
	device, hot := uint32(s.layout.device), uint32(s.hot)
	for i, q := range at {
		v, from := ids[q], uint32(i)
		switch {
		case v < device:
			p.device = append(p.device, move{From: from, To: v})
			continue
		case v < hot:
			p.static = append(p.static, move{From: from, To: v - device})
			continue
		}
		if x != nil {
			if slot, ok := x.Slot(v - hot); ok {
				p.cached = append(p.cached, move{From: from, To: slot})
				continue
			}
		}
		p.onDisk.Add(from)
		p.disk = append(p.disk, newWant(v, from))
	}
	slices.Sort(p.disk)
	s.rewrites.last = p
	return p
}

// emptied is p without rows, for so many.
func (p located) emptied(rows int) located {
	words := policy.SetWords(rows)
	p.device, p.static, p.cached, p.disk = p.device[:0], p.static[:0], p.cached[:0], p.disk[:0]
	p.onDisk = slices.Grow(p.onDisk[:0], words)[:words]
	p.onDisk.Clear()
	return p
}

// unpassed is the oldest step that has not passed, and its place in its window.
func (s *Stack) unpassed(name string) (w *Window, step int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.mu.windows {
		if w.passed < len(w.steps) {
			if w.passed == w.gathered {
				break
			}
			return w, w.passed
		}
	}
	panic("cachetier: " + name + " of a step that is not gathered")
}

// remember keeps what rows are that a step is about to write, for the steps that must not see that.
// It lends these bytes.
func (s *Stack) remember(step int, ids, at []uint32, p located) (were []byte, err error) {
	size := s.rowBytes
	u := s.rewrites.undo(step, len(at)*size)
	for i, q := range at {
		u.at[ids[q]] = i
	}
	back := func(moves []move, from []byte) {
		for _, m := range moves {
			copy(u.rows[int(m.From)*size:][:size], from[int(m.To)*size:])
		}
	}
	back(p.device, s.device.Bytes())
	back(p.static, s.static.Bytes())
	back(p.cached, s.cached.Bytes())
	s.rewrites.undone = append(s.rewrites.undone, u)
	if len(p.disk) > 0 {
		_, err = s.source.wanted(context.Background(), u.rows, p.disk)
	}
	return u.rows, err
}

// undo is an undone of a step, with room for some bytes of rows.
func (r *rewrites) undo(step, bytes int) (u undone) {
	if n := len(r.spare); n > 0 {
		u, r.spare = r.spare[n-1], r.spare[:n-1]
		clear(u.at)
	} else {
		u.at = map[uint32]int{}
	}
	u.step, u.rows = step, slices.Grow(u.rows[:0], bytes)[:bytes]
	return u
}

// forget forgets what the oldest n steps have undone.
func (r *rewrites) forget(n int) {
	r.spare = append(r.spare, r.undone[:n]...)
	r.undone = slices.Delete(r.undone, 0, n)
}

// takeBack replaces rows that were gathered for a step by what they were when that step's lag
// began.
func (r *rewrites) takeBack(dst []byte, ids []uint32, step int) {
	if r == nil {
		return
	}
	for _, u := range slices.Backward(r.undone) { // the oldest has the last word
		if u.step <= step-r.lag {
			break
		}
		size := len(u.rows) / max(len(u.at), 1)
		for i, v := range ids {
			if at, ok := u.at[v]; ok {
				copy(dst[i*size:(i+1)*size], u.rows[at*size:])
			}
		}
	}
}

// written waits until step i of w may be gathered: until what it sees is written, and for one that
// is read on its own until the windows before it are released.
func (s *Stack) written(ctx context.Context, w *Window, i int) error {
	err := s.wait(ctx, func() bool {
		return w.first+i-s.rewrites.lag < s.mu.passed && !(w.single && s.at(w) > 0)
	})
	if err != nil {
		return fmt.Errorf("cachetier: %w", err)
	}
	return s.rewrites.failed()
}

// Passed takes note that the next step is written back: that there is no more Write of it. Over a
// Table, whose steps pass when they are gathered, it does nothing.
func (s *Stack) Passed() {
	if s.rewrites == nil {
		return
	}
	s.alive("Passed")
	w, _ := s.unpassed("Passed")
	s.mu.Lock()
	defer s.mu.Unlock()
	w.passed++
	s.mu.passed++
	s.releaseLocked()
}

// Reload takes the rows of Records anew, which are others now than what was written: it forgets all
// that is in memory. An error leaves anything there.
func (s *Stack) Reload(ctx context.Context) error {
	s.alive("Reload")
	s.Settle()
	r := s.rewrites
	for part := range r.out {
		r.out[part] = r.out[part][:0]
	}
	r.mu.Lock()
	r.mu.dirty.Clear()
	r.mu.Unlock()
	if s.cache != nil {
		s.cache.Forget()
	}
	t, err := s.loadHot(ctx)
	if err != nil {
		return fmt.Errorf("cachetier: %w", err)
	}
	s.stats.Lock()
	defer s.stats.Unlock()
	s.stats.Warmup.Count(int64(s.hot), 0, int64(s.hot*s.rowBytes), t)
	s.stats.Tiers.Host.setUsed(int64(s.hot-s.layout.device), int64(s.rowBytes))
	return nil
}

// Settle has steps to come see all that was written, whatever the lag: between two ranges of steps.
func (s *Stack) Settle() {
	if r := s.rewrites; r != nil {
		r.copying.Lock()
		defer r.copying.Unlock()
		r.forget(len(r.undone))
	}
}

// SetLag is the lag from now on: between two ranges of steps. It panics where OpenRecords would
// refuse it, and over a Table.
func (s *Stack) SetLag(lag int) {
	if err := validLag(lag); err != nil || s.rewrites == nil {
		panic(fmt.Sprintf("cachetier: SetLag: %v", err))
	}
	s.rewrites.copying.Lock()
	defer s.rewrites.copying.Unlock()
	s.rewrites.lag = max(lag, 1)
}

// Undo is what rows were before a step wrote them. Steps within its lag still see them so.
type Undo struct {
	Ago  int      // how many steps ago they were written: 1 is the last step
	Rows []uint32 // ascending
	Were []byte   // in the order of Rows
}

// Undos is what steps to come would not see yet of the last steps, the oldest first: between two
// ranges of steps. With a lag of 1 it is empty.
func (s *Stack) Undos() (all []Undo) {
	if s.rewrites == nil {
		return nil
	}
	s.rewrites.copying.Lock()
	defer s.rewrites.copying.Unlock()
	for _, u := range s.rewrites.undone {
		undo := Undo{Ago: s.passed() - u.step, Rows: slices.Sorted(maps.Keys(u.at))}
		for _, v := range undo.Rows {
			at := u.at[v] * s.rowBytes
			undo.Were = append(undo.Were, u.rows[at:at+s.rowBytes]...)
		}
		all = append(all, undo)
	}
	return all
}

// Undone takes over the Undos of a Stack whose rows are as they are here, and whose last steps come
// before the first one here. It panics where a list of rows and their bytes do not fit each other.
func (s *Stack) Undone(all []Undo) {
	s.rewrites.copying.Lock()
	defer s.rewrites.copying.Unlock()
	s.rewrites.forget(len(s.rewrites.undone))
	for _, undo := range all {
		if len(undo.Were) != len(undo.Rows)*s.rowBytes {
			panic("cachetier: Undone: rows of another size")
		}
		u := s.rewrites.undo(s.passed()-undo.Ago, len(undo.Were))
		copy(u.rows, undo.Were)
		for i, v := range undo.Rows {
			u.at[v] = i
		}
		s.rewrites.undone = append(s.rewrites.undone, u)
	}
}

// passed is how many steps are written back since Open or Reset.
func (s *Stack) passed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.passed
}

// renumber has the steps so far come before one that is number 0.
func (r *rewrites) renumber(passed int) {
	if r == nil {
		return
	}
	r.copying.Lock()
	defer r.copying.Unlock()
	for i := range r.undone {
		r.undone[i].step -= passed
	}
}

// noteLeaving lists the rows that have lost their slot in a change of the cache.
func (s *Stack) noteLeaving(change policy.Change) {
	r := s.rewrites
	if r == nil || change.Evicted == 0 {
		return
	}
	s.cache.EachEvicted(func(v, slot uint32, part int) {
		r.out[part] = append(r.out[part], move{From: v, To: slot})
	})
}

// leaving says whether rows have to be written before slots are given out that can be had after
// this part.
func (s *Stack) leaving(part int) bool { return s.rewrites != nil && len(s.rewrites.out[part]) > 0 }

// leave writes them, as far as the disk does not have them. The part is over.
func (s *Stack) leave(part int) error {
	if !s.leaving(part) {
		return nil
	}
	r, hot, size := s.rewrites, uint32(s.hot), s.rowBytes
	if err := r.lost(); err != nil {
		return err
	}
	r.mu.Lock()
	r.out[part] = slices.DeleteFunc(r.out[part], func(m move) bool { return !r.mu.dirty.Has(m.From + hot) })
	r.mu.Unlock()
	out, cached := r.out[part], s.cached.Bytes()
	err := r.records.Write(len(out), func(i int) (uint32, []byte) {
		return out[i].From + hot, cached[int(out[i].To)*size:][:size]
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.mu.stuck = fmt.Errorf("cachetier: %w", err)
		return r.mu.stuck
	}
	for _, m := range out {
		r.mu.dirty[(m.From+hot)>>6] &^= 1 << ((m.From + hot) & 63)
	}
	r.out[part] = out[:0]
	return nil
}

// leaveAll is leave of every part. All steps so far have passed.
func (s *Stack) leaveAll() (err error) {
	for part := range 1 + policy.Parts {
		err = cmp.Or(err, s.leave(part))
	}
	return err
}

// Flush writes the rows to disk that only memory has, in ascending order. Over a Table it does
// nothing.
func (s *Stack) Flush() error { return s.flush(0) }

// flush is Flush of the rows from first on.
func (s *Stack) flush(first int) error {
	r := s.rewrites
	if r == nil {
		return nil
	}
	if err := cmp.Or(s.leaveAll(), r.lost()); err != nil {
		return err
	}
	var rows []uint32
	s.EachUnflushed(func(v uint32) {
		if int(v) >= first {
			rows = append(rows, v)
		}
	})
	err := r.records.Write(len(rows), func(i int) (uint32, []byte) {
		return rows[i], s.inMemory(rows[i])
	})
	if err != nil {
		return fmt.Errorf("cachetier: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range rows {
		r.mu.dirty[v>>6] &^= 1 << (v & 63)
	}
	if r.mu.stuck != nil { // the cache may have rows that were never brought
		r.mu.stuck = nil
		s.cache.Forget()
	}
	return nil
}

// inMemory lends the bytes of a row that is there.
func (s *Stack) inMemory(v uint32) []byte {
	var from []byte
	row := int(v)
	switch {
	case row < s.layout.device:
		from = s.device.Bytes()
	case row < s.hot:
		from, row = s.static.Bytes(), row-s.layout.device
	default:
		slot, ok := s.cache.Now().Slot(v - uint32(s.hot))
		if !ok {
			panic("cachetier: a row that was written has no slot")
		}
		from, row = s.cached.Bytes(), int(slot)
	}
	return from[row*s.rowBytes:][:s.rowBytes]
}

// EachUnflushed calls do with each row that Flush would write, in ascending order.
func (s *Stack) EachUnflushed(do func(v uint32)) {
	r := s.rewrites
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for w, dirty := range r.mu.dirty {
		for ; dirty != 0; dirty &= dirty - 1 {
			do(uint32(w<<6 + bits.TrailingZeros64(dirty)))
		}
	}
}
