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

// MaxLag bounds the lag of OpenRecords. The bytes that a step has overwritten are held for that
// many steps.
const MaxLag = 1024

// rewrites is the additional state of a Stack over Records.
type rewrites struct {
	records Records
	lag     int

	// copying is held while rows are copied out for a step, and while the rows of a step are
	// written, so that no step sees half of a write. It also guards undone, spare, last and room.
	copying sync.Mutex
	undone  []undone // by the newest steps, oldest first
	spare   []undone // memory for the next ones
	last    located  // of the last Write or Update; the next one reuses the memory

	room []byte // scratch space of Update

	mu struct {
		sync.Mutex
		dirty policy.Set // rows that are newer in memory than on disk
		lost  error      // a Write has failed: a step may be half written
		stuck error      // evicted rows could not be written: memory still has them, but their slots are given away
	}
	bits *kernels.HostBuf // memory of dirty

	// out lists the rows that have lost their slot, by the part of the window before that has to be
	// over. Their bytes are in the slots until then. It belongs to whoever brings in the next
	// window, as the cache does.
	out [1 + policy.Parts][]move
}

// undone holds the bytes that rows had before a step wrote them.
type undone struct {
	step int
	at   map[uint32]int // index in rows, by row number
	rows []byte
}

// OpenRecords allocates the tiers over r. A step sees what was written lag steps before it: see
// [Stack.Write]. r stays the caller's, who may use it only between two ranges of steps until Close
// has returned. A lag of 0 means 1.
func OpenRecords(ctx context.Context, r Records, lag int, o Options) (*Stack, error) {
	if err := errors.Join(o.Validate(), validLag(lag)); err != nil {
		return nil, fmt.Errorf("cachetier: %w", err)
	}
	if o.Policy == "" {
		o.Policy = Belady
	}
	if o.Region.Apart() {
		o.Region = nil // the host reads and writes the rows
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

// NotedBytes returns the additional bookkeeping that a Stack over so many rows of Records takes
// from its host budget: for the table, and for a row in the cache.
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

// failed returns the error that forbids reading and copying rows, or nil.
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

// lose keeps the first error of a Write, and returns it. From then on nothing is copied, written or
// flushed.
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
// must be gathered. places are the rows' indices in the step's list of ids, and src has their bytes
// in that order. A step writes only rows of its list, none twice.
//
// With a lag of k, step i sees what steps up to i-k wrote, and nothing that later ones wrote. Its
// Gather waits until i-k has passed, and takes back what later ones wrote. So what a step sees
// depends on the lag, but not on time, budgets, policies or windows.
//
// A row in memory is replaced there, and is written to disk before it loses its slot; other rows
// are written to disk at once. A Write that fails makes the Stack useless: later calls return the
// same error. If Load or Gather cannot write the rows that lose their slots, these rows stay in
// memory, and nothing is read or copied until a Flush has written them.
func (s *Stack) Write(places []uint32, src []byte) error {
	return s.write(src, func([]uint32) []uint32 { return places })
}

// WriteAll writes all rows of the step, in the order of its list, as Write does.
func (s *Stack) WriteAll(src []byte) error {
	return s.write(src, func(ids []uint32) []uint32 {
		places := make([]uint32, len(ids))
		for i := range places {
			places[i] = uint32(i)
		}
		return places
	})
}

// Update is a Write whose new bytes come from change. It calls change once for each i, with the
// bytes of the row at places[i]; change overwrites them in place, and may use them only during the
// call. They are the newest version of the row, and may contain writes that this step has not seen.
// The bytes of rows that are not in memory are read first.
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

// updateBytes bounds the rows outside memory that an Update holds at a time.
const updateBytes = 4 << 20

// updateOnDisk updates rows that are on disk. were has the bytes of all rows of the Update, by
// their place; if it is nil, the rows are read.
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

// rewrite finds rows of the next step to be written back, and calls put to change them. of returns
// the places of the rows in the step's list of ids. were has the old bytes of the rows in that
// order if the lag requires that they are remembered; otherwise it is nil.
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
	ids := w.steps[step].ids
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
		// Forget what the next step to be written back has seen. Steps that were gathered ahead of
		// it have seen more, but may never be used.
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

// located lists where the rows of a Write or an Update lie. Moves start at the places of the rows
// in that call.
type located struct {
	device, static, cached []move
	disk                   []want
	onDisk                 policy.Set // places of the rows in disk
}

func (p located) away(i int) bool { return p.onDisk.Has(uint32(i)) }

// place finds the rows of a Write or an Update. x has the slots of cached rows.
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

// emptied returns p without rows, with room for rows rows in onDisk.
func (p located) emptied(rows int) located {
	words := policy.SetWords(rows)
	p.device, p.static, p.cached, p.disk = p.device[:0], p.static[:0], p.cached[:0], p.disk[:0]
	p.onDisk = slices.Grow(p.onDisk[:0], words)[:words]
	p.onDisk.Clear()
	return p
}

// unpassed returns the oldest step that has not passed: its window, and its index there. It panics
// if that step is not gathered.
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

// remember saves the bytes of rows that a step is about to write, for the steps that must not see
// the write. It lends these bytes.
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

// undo returns an undone for a step, with room for so many bytes of rows.
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

// forget discards the undone of the oldest n steps.
func (r *rewrites) forget(n int) {
	r.spare = append(r.spare, r.undone[:n]...)
	r.undone = slices.Delete(r.undone, 0, n)
}

// takeBack undoes in dst, which has the rows of ids, the writes that step must not see: those
// within its lag.
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

// written waits until step i of w may be gathered: until all that it sees is written back. A window
// of one step also waits until the windows before it are released.
func (s *Stack) written(ctx context.Context, w *Window, i int) error {
	err := s.wait(ctx, func() bool {
		return w.first+i-s.rewrites.lag < s.mu.passed && !(w.single && s.at(w) > 0)
	})
	if err != nil {
		return fmt.Errorf("cachetier: %w", err)
	}
	return s.rewrites.failed()
}

// Passed records that the next step is written back: no Write of it follows. Over a Table, whose
// steps pass when they are gathered, it does nothing.
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

// Reload forgets everything in memory and reads it again, for a caller who has changed the rows of
// Records. After an error the contents of memory are undefined.
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

// Settle lets later steps see everything that was written, whatever the lag. Call it between two
// ranges of steps.
func (s *Stack) Settle() {
	if r := s.rewrites; r != nil {
		r.copying.Lock()
		defer r.copying.Unlock()
		r.forget(len(r.undone))
	}
}

// SetLag sets the lag from now on. Call it between two ranges of steps. It panics over a Table, and
// where OpenRecords would refuse the lag.
func (s *Stack) SetLag(lag int) {
	if err := validLag(lag); err != nil || s.rewrites == nil {
		panic(fmt.Sprintf("cachetier: SetLag: %v", err))
	}
	s.rewrites.copying.Lock()
	defer s.rewrites.copying.Unlock()
	s.rewrites.lag = max(lag, 1)
}

// Undo holds the bytes that rows had before a step wrote them. Steps within its lag still see
// these.
type Undo struct {
	Ago  int      // how many steps ago they were written: 1 is the last step
	Rows []uint32 // ascending
	Were []byte   // in the order of Rows
}

// Undos returns the writes of the last steps that later steps would not see yet, oldest first. Call
// it between two ranges of steps. With a lag of 1 it is empty.
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

// Undone takes over the Undos of a Stack with the same rows, whose last steps come before the first
// step here. It panics if the bytes of an Undo do not have the size of its rows.
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

// passed returns how many steps are written back since Open or Reset.
func (s *Stack) passed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.passed
}

// renumber shifts the numbers of the steps so far, so that the next step is number 0.
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

// noteLeaving lists the rows that lost their slot in a change of the cache.
func (s *Stack) noteLeaving(change policy.Change) {
	r := s.rewrites
	if r == nil || change.Evicted == 0 {
		return
	}
	s.cache.EachEvicted(func(v, slot uint32, part int) {
		r.out[part] = append(r.out[part], move{From: v, To: slot})
	})
}

// leaving reports whether rows must be written before the slots that become free after this part
// are given out.
func (s *Stack) leaving(part int) bool { return s.rewrites != nil && len(s.rewrites.out[part]) > 0 }

// leave writes the rows that lose their slots after this part, if the disk does not have them. The
// part must be over.
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

// leaveAll calls leave for every part. All steps so far must have passed.
func (s *Stack) leaveAll() (err error) {
	for part := range 1 + policy.Parts {
		err = cmp.Or(err, s.leave(part))
	}
	return err
}

// Flush writes to disk the rows that are newer in memory, in ascending order. Over a Table it does
// nothing.
func (s *Stack) Flush() error { return s.flush(0) }

// flush flushes the rows from first on.
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
	if r.mu.stuck != nil { // the cache may have rows that were never read
		r.mu.stuck = nil
		s.cache.Forget()
	}
	return nil
}

// inMemory lends the bytes of row v, which must be in memory.
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
