package history

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
)

// Snapshot is the state of a Cache as of the last step that was written back, whatever is planned beyond it. Its memory, eight bytes
// and a bit a slot, is used again by the next Take.
type Snapshot struct {
	o        Options
	step     int // the next
	rings    []ringState
	verdicts []verdict
}

// ringState is a ring as of a step.
type ringState struct {
	freed, taken uint64
	counts       Counts
	slots        []slot
	live         slotSet
}

// Step is the first step that is not in s: where a run goes on from it.
func (s *Snapshot) Step() int { return s.step }

// Take sets s to the state of c. It may be called while steps are planned.
func (s *Snapshot) Take(c *Cache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.o, s.step = c.o, c.mu.written
	if len(s.rings) != len(c.mu.rings) {
		s.rings = make([]ringState, len(c.mu.rings))
	}
	for k, r := range c.mu.rings {
		state := &s.rings[k]
		state.take(r)
		state.counts = c.mu.counts[k]
		for i := len(c.mu.planned) - 1; i >= 0; i-- {
			if p := &c.mu.planned[i].Parts[k]; p.planned {
				state.unplan(p)
			}
		}
	}
	for len(s.verdicts) < len(c.mu.verdicts) {
		s.verdicts = append(s.verdicts, make(verdict, len(c.mu.rings)))
	}
	s.verdicts = s.verdicts[:len(c.mu.verdicts)]
	for i, v := range c.mu.verdicts {
		if len(s.verdicts[i]) != len(v) {
			s.verdicts[i] = make(verdict, len(v))
		}
		for k := range v {
			s.verdicts[i][k].versions = append(s.verdicts[i][k].versions[:0], v[k].versions...)
			s.verdicts[i][k].own = v[k].own
		}
	}
}

// take sets s to r with all that is planned.
func (s *ringState) take(r *ring) {
	s.freed, s.taken = r.freed, r.taken
	if len(s.slots) != len(r.slots) {
		s.slots, s.live = make([]slot, len(r.slots)), newSlotSet(len(r.slots))
	}
	copy(s.slots, r.slots)
	copy(s.live, r.live)
}

// unplan is that of a ring.
func (s *ringState) unplan(p *Part) {
	s.freed, s.taken = p.undo.freed, p.undo.taken
	for i, n := range p.Slots {
		s.slots[n] = p.undo.old[i]
		s.live.remove(n)
	}
	for _, n := range p.undo.killed {
		s.live.add(n)
	}
}

// slot is where the n-th that was ever taken lies.
func (s *ringState) slot(n uint64) uint32 { return uint32(n % uint64(len(s.slots))) }

// The binary form is little-endian:
//
//	magic     8 bytes
//	version   u32
//	length    u64, of all that follows
//	settings  layers, types u32; seed, p_grad (as float64), t_stale, lag, start u64; of the options
//	step      u64; rings, steps with verdicts u32
//	rings     each: layer, type u32; slots, freed, taken u64; 12 counts u64; of each slot in use, the oldest first, node and stamp
//	          u32; a bit for each that is live, in words u64, the rest of the last 0
//	verdicts  each, of the oldest step first, for each ring: how many u32, and of each its slot and stamp u32
//
// There is one form of a state, so that equal states have equal bytes.
const (
	magic         = "gnnhist\n"
	formatVersion = 1
)

// bytes is the length that the binary form says.
func (s *Snapshot) bytes() int64 {
	n := int64(2*4 + 5*8 + 8 + 2*4)
	for i := range s.rings {
		used := int64(s.rings[i].taken - s.rings[i].freed)
		n += 2*4 + 3*8 + int64(len((&Counts{}).all()))*8 + used*8 + (used+63)/64*8
	}
	for _, v := range s.verdicts {
		for k := range v {
			n += 4 + int64(len(v[k].versions))*8
		}
	}
	return n
}

// WriteTo writes s in its binary form, which has no checksum: whoever keeps it puts it behind one.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	e := encoder{w: bufio.NewWriterSize(w, 1<<16)}
	n, err := e.w.WriteString(magic)
	e.n, e.err = int64(n), err
	e.u32(formatVersion)
	e.u64(uint64(s.bytes()))
	s.settings(&e)
	e.u64(uint64(s.step))
	e.u32(uint32(len(s.rings)))
	e.u32(uint32(len(s.verdicts)))
	for k := range s.rings {
		s.rings[k].write(&e, s.o.Kept[k])
	}
	for _, v := range s.verdicts {
		for k := range v {
			e.u32(uint32(len(v[k].versions)))
			for _, x := range v[k].versions {
				e.u32(x.Slot)
				e.u32(x.Stamp)
			}
		}
	}
	if e.err == nil {
		e.err = e.w.Flush()
	}
	if e.err != nil {
		return e.n - int64(e.w.Buffered()), fmt.Errorf("history: write a snapshot: %w", e.err)
	}
	return e.n, nil
}

func (s *Snapshot) settings(e *encoder) {
	e.u32(uint32(s.o.Layers))
	e.u32(uint32(s.o.Types))
	for _, n := range []uint64{s.o.Seed, math.Float64bits(s.o.PGrad), uint64(s.o.TStale), uint64(s.o.Lag), uint64(s.o.Start)} {
		e.u64(n)
	}
}

func (s *ringState) write(e *encoder, k Kept) {
	e.u32(uint32(k.Layer))
	e.u32(uint32(k.Type))
	e.u64(uint64(k.Slots))
	e.u64(s.freed)
	e.u64(s.taken)
	for _, n := range s.counts.all() {
		e.u64(uint64(*n))
	}
	for n := s.freed; n < s.taken; n++ {
		x := s.slots[s.slot(n)]
		e.u32(x.node)
		e.u32(x.stamp)
	}
	for n := s.freed; n < s.taken; n += 64 {
		word := uint64(0)
		for i := n; i < min(n+64, s.taken); i++ {
			if s.live.has(s.slot(i)) {
				word |= 1 << (i - n)
			}
		}
		e.u64(word)
	}
}

// encoder writes numbers, until an error.
type encoder struct {
	w   *bufio.Writer
	n   int64
	err error
}

func (e *encoder) u32(x uint32) { e.bytes(binary.LittleEndian.AppendUint32(e.w.AvailableBuffer(), x)) }

func (e *encoder) u64(x uint64) { e.bytes(binary.LittleEndian.AppendUint64(e.w.AvailableBuffer(), x)) }

func (e *encoder) bytes(b []byte) {
	if e.err == nil {
		n, err := e.w.Write(b)
		e.n, e.err = e.n+int64(n), err
	}
}

// Restore makes a cache in the state that a snapshot has, in its binary form. The options are those of the run that wrote it, but for
// First, which is the snapshot's step. Whatever the bytes are, it takes no more memory than New and what it reads.
func Restore(o Options, r io.Reader) (*Cache, error) {
	c, err := New(o)
	if err != nil {
		return nil, err
	}
	if err := c.read(r); err != nil {
		return nil, fmt.Errorf("history: read a snapshot: %w", err)
	}
	return c, nil
}

func (c *Cache) read(r io.Reader) error {
	var head [len(magic) + 4 + 8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return ends(err)
	}
	if string(head[:len(magic)]) != magic {
		return errors.New("it is none: it begins with other bytes")
	}
	if v := binary.LittleEndian.Uint32(head[len(magic):]); v != formatVersion {
		return fmt.Errorf("it has version %d, and this program knows %d", v, formatVersion)
	}
	length := binary.LittleEndian.Uint64(head[len(magic)+4:])
	if length > math.MaxInt64 {
		return fmt.Errorf("damaged: it says that it has %d bytes", length)
	}
	d := decoder{r: bufio.NewReaderSize(io.LimitReader(r, int64(length)), 1<<16), left: int64(length)}
	if err := c.readSettings(&d); err != nil {
		return err
	}
	step, rings, steps := d.u64(), d.u32(), d.u32()
	switch {
	case d.err != nil:
		return d.err
	case step > maxStep:
		return fmt.Errorf("damaged: it goes on at step %d", step)
	case rings != uint32(len(c.mu.rings)):
		return fmt.Errorf("it has %d rings, and the run %d", rings, len(c.mu.rings))
	case uint64(steps) > min(uint64(c.o.Lag), step) || rings == 0 && steps > 0:
		return fmt.Errorf("damaged: verdicts of %d steps before step %d, and {history_lag} is %d", steps, step, c.o.Lag)
	}
	c.mu.written = int(step)
	for k := range c.mu.rings {
		if err := c.readRing(&d, k, int(steps)); err != nil {
			return fmt.Errorf("layer %d, type %d: %w", c.o.Kept[k].Layer, c.o.Kept[k].Type, err)
		}
	}
	for i := range int(steps) {
		v := make(verdict, len(c.mu.rings))
		for k := range v {
			if err := v[k].read(&d, uint64(c.mu.written-int(steps)+i), c.o.Kept[k].Slots); err != nil {
				return fmt.Errorf("layer %d, type %d: %w", c.o.Kept[k].Layer, c.o.Kept[k].Type, err)
			}
		}
		c.mu.verdicts = append(c.mu.verdicts, v)
	}
	if d.left > 0 {
		return fmt.Errorf("damaged: %d bytes too many", d.left)
	}
	return nil
}

// readSettings refuses what another run wrote.
func (c *Cache) readSettings(d *decoder) error {
	layers, types := d.u32(), d.u32()
	seed, grad, stale, lag, start := d.u64(), d.u64(), d.u64(), d.u64(), d.u64()
	if d.err != nil {
		return d.err
	}
	var errs []error
	same := func(what string, was, is any) {
		if was != is {
			errs = append(errs, fmt.Errorf("%s was %v, and is %v now", what, was, is))
		}
	}
	same("the number of layers", layers, uint32(c.o.Layers))
	same("the number of types", types, uint32(c.o.Types))
	same("{seed}", seed, c.o.Seed)
	if grad != math.Float64bits(c.o.PGrad) {
		same("{p_grad}", math.Float64frombits(grad), c.o.PGrad)
	}
	same("{t_stale}", stale, uint64(c.o.TStale))
	same("{history_lag}", lag, uint64(c.o.Lag))
	same("{history_start}", start, uint64(c.o.Start))
	return errors.Join(errs...)
}

// readRing fills the k-th ring. There are verdicts of so many steps.
func (c *Cache) readRing(d *decoder, k, verdicts int) error {
	kept, r, n := c.o.Kept[k], c.mu.rings[k], &c.mu.counts[k]
	layer, typ, slots := d.u32(), d.u32(), d.u64()
	r.freed, r.taken = d.u64(), d.u64()
	bad := false
	for _, x := range n.all() {
		*x = int64(d.u64())
		bad = bad || *x < 0
	}
	switch {
	case d.err != nil:
		return d.err
	case int64(layer) != int64(kept.Layer) || int64(typ) != int64(kept.Type) || slots != uint64(kept.Slots):
		return fmt.Errorf("it had %d slots for layer %d and type %d, and there are %d", slots, layer, typ, kept.Slots)
	case bad || r.taken > math.MaxInt64 || r.freed > r.taken || r.taken-r.freed > slots:
		return fmt.Errorf("damaged: slots %d to %d of %d, counts %+v", r.freed, r.taken, slots, *n)
	}
	// Each verdict is there on an embedding that waits for one.
	oldest := c.o.Start
	if verdicts < c.o.Lag {
		oldest = max(oldest, c.mu.written-verdicts)
	}
	for i := r.freed; i < r.taken; i++ {
		node, stamp := d.u32(), d.u32()
		switch {
		case d.err != nil:
			return d.err
		case int(stamp) < oldest || int(stamp) >= c.mu.written:
			return fmt.Errorf("damaged: an embedding of step %d among those of steps %d to %d", stamp, oldest, c.mu.written-1)
		case kept.Nodes > 0 && int64(node) >= int64(kept.Nodes):
			return fmt.Errorf("damaged: an embedding of node %d, and there are %d", node, kept.Nodes)
		}
		r.slots[i%slots] = slot{node, stamp}
		oldest = int(stamp)
	}
	live := int64(0)
	for i := r.freed; i < r.taken; i += 64 {
		word := d.u64()
		for ; word != 0 && d.err == nil; word &= word - 1 {
			at := i + uint64(bits.TrailingZeros64(word))
			if at >= r.taken {
				return errors.New("damaged: live slots that are not in use")
			}
			t := r.slots[at%slots]
			if _, twice := r.index.put(t.node, Version{uint32(at % slots), t.stamp}); twice {
				return fmt.Errorf("damaged: node %d has two embeddings", t.node)
			}
			r.live.add(uint32(at % slots))
			live++
		}
	}
	if d.err == nil && (n.live() != live || n.Admitted != int64(r.taken)) {
		return fmt.Errorf("damaged: %d embeddings are live, and counts are %+v", live, *n)
	}
	return d.err
}

// read reads what a step rejects in a ring of so many slots.
func (r *rejections) read(d *decoder, step uint64, slots int) error {
	n := d.u32()
	if uint64(n) > uint64(slots) {
		return fmt.Errorf("damaged: step %d rejects %d of %d embeddings", step, n, slots)
	}
	for range n {
		v := Version{d.u32(), d.u32()}
		if d.err != nil {
			return d.err
		}
		own := uint64(v.Stamp) == step
		bad := int64(v.Slot) >= int64(slots) || uint64(v.Stamp) > step
		if own {
			bad = bad || r.own != len(r.versions)
			bad = bad || r.own > 0 && around(r.versions[0].Slot, v.Slot, slots) <= around(r.versions[0].Slot, r.versions[r.own-1].Slot, slots)
		}
		switch {
		case bad:
			return fmt.Errorf("damaged: step %d rejects the embedding of step %d in slot %d", step, v.Stamp, v.Slot)
		case own:
			r.addOwn(v, slots)
		default:
			r.versions = append(r.versions, v)
		}
	}
	return d.err
}

// decoder reads numbers, until an error, of so many bytes that are left.
type decoder struct {
	r    *bufio.Reader
	left int64
	err  error
}

func (d *decoder) u32() uint32 {
	if b := d.next(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if b := d.next(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// next lends the next n bytes, or nothing after an error.
func (d *decoder) next(n int) []byte {
	if d.err != nil {
		return nil
	}
	b, err := d.r.Peek(n)
	if err != nil {
		d.err = ends(err)
		return nil
	}
	d.left -= int64(n)
	_, d.err = d.r.Discard(n)
	return b
}

// ends says that bytes are missing, where that is what err is.
func ends(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it ends early: %w", io.ErrUnexpectedEOF)
	}
	return err
}
