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

// Snapshot is the state of a Cache as of the last step that was written back, whatever is planned
// beyond it. Its memory, eight bytes and a bit a slot, is used again by the next Take.
type Snapshot struct {
	o        Options
	step     int // the next
	pools    []poolState
	verdicts []verdict
}

// poolState is the state of a pool after a step.
type poolState struct {
	counts Counts
	slots  []slot
	used   []uint64 // a bit for each slot in use
}

// Step is the first step that is not in s: where a run goes on from it.
func (s *Snapshot) Step() int { return s.step }

// Take sets s to the state of c. It may be called while steps are planned.
func (s *Snapshot) Take(c *Cache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.o, s.step = c.o, c.mu.written
	if len(s.pools) != len(c.mu.pools) {
		s.pools = make([]poolState, len(c.mu.pools))
	}
	for k, r := range c.mu.pools {
		state := &s.pools[k]
		state.take(r)
		state.counts = c.mu.counts[k]
		for i := len(c.mu.planned) - 1; i >= 0; i-- {
			if p := &c.mu.planned[i].Parts[k]; p.planned {
				state.unplan(p)
			}
		}
	}
	for len(s.verdicts) < len(c.mu.verdicts) {
		s.verdicts = append(s.verdicts, make(verdict, len(c.mu.pools)))
	}
	s.verdicts = s.verdicts[:len(c.mu.verdicts)]
	for i, v := range c.mu.verdicts {
		if len(s.verdicts[i]) != len(v) {
			s.verdicts[i] = make(verdict, len(v))
		}
		for k := range v {
			s.verdicts[i][k] = append(s.verdicts[i][k][:0], v[k]...)
		}
	}
}

// take sets s to r with all that is planned.
func (s *poolState) take(r *pool) {
	if len(s.slots) != len(r.slots) {
		s.slots, s.used = make([]slot, len(r.slots)), make([]uint64, len(r.free.words))
	}
	copy(s.slots, r.slots)
	for i, free := range r.free.words {
		s.used[i] = lowBits(len(r.slots)-64*i) &^ free
	}
}

// unplan undoes the plan p of a step, as pool.unplan does.
func (s *poolState) unplan(p *Part) {
	for _, n := range p.Slots {
		s.used[n/64] &^= 1 << (n % 64)
	}
	for _, f := range p.undo.freed {
		s.slots[f.slot] = f.held
		s.used[f.slot/64] |= 1 << (f.slot % 64)
	}
}

// The binary form is little-endian:
//
//	magic     8 bytes
//	version   u32
//	length    u64, of all that follows
//	settings  layers, types u32; seed, p_grad (as float64), t_stale, lag, start u64; of the options
//	step      u64; pools, steps with verdicts u32
//	pools     each: layer, type u32; slots u64; 12 counts u64; a bit for each slot that is in use, in words u64, the rest of the last 0;
//	          of each of these, in the order of slots, node and stamp u32
//	verdicts  each, of the oldest step first, for each pool: how many u32, and of each its slot and stamp u32
//
// There is one form of a state, so that equal states have equal bytes. Version 1 described slots
// that were freed in the order in which they were taken. It has slots that wait for others, which
// this version cannot express.
const (
	magic         = "gnnhist\n"
	formatVersion = 2
)

// ErrVersion says that a snapshot has a version that this program does not read.
var ErrVersion = errors.New("another version")

// bytes is the length that the binary form says.
func (s *Snapshot) bytes() int64 {
	n := int64(2*4 + 5*8 + 8 + 2*4)
	for i := range s.pools {
		n += 2*4 + 8 + int64(len((&Counts{}).all()))*8 + int64(len(s.pools[i].used))*8
		for _, word := range s.pools[i].used {
			n += 8 * int64(bits.OnesCount64(word))
		}
	}
	for _, v := range s.verdicts {
		for k := range v {
			n += 4 + int64(len(v[k]))*8
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
	e.u32(uint32(len(s.pools)))
	e.u32(uint32(len(s.verdicts)))
	for k := range s.pools {
		s.pools[k].write(&e, s.o.Kept[k])
	}
	for _, v := range s.verdicts {
		for k := range v {
			e.u32(uint32(len(v[k])))
			for _, x := range v[k] {
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

func (s *poolState) write(e *encoder, k Kept) {
	e.u32(uint32(k.Layer))
	e.u32(uint32(k.Type))
	e.u64(uint64(k.Slots))
	for _, n := range s.counts.all() {
		e.u64(uint64(*n))
	}
	for _, word := range s.used {
		e.u64(word)
	}
	for i, word := range s.used {
		for ; word != 0; word &= word - 1 {
			x := s.slots[64*i+bits.TrailingZeros64(word)]
			e.u32(x.node)
			e.u32(x.stamp)
		}
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

// Restore makes a cache in the state that a snapshot has, in its binary form. o is the options of
// the run that wrote it, except for First, which is the snapshot's step. Whatever the bytes are, it
// takes no more memory than New and the bytes that it reads.
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

// The first HeadBytes bytes of a snapshot tell its version.
const HeadBytes = len(magic) + 4

// CheckVersion returns ErrVersion, in an error that names both versions, if head begins a snapshot
// of another version.
func CheckVersion(head []byte) error {
	if len(head) < HeadBytes || string(head[:len(magic)]) != magic {
		return nil
	}
	if v := binary.LittleEndian.Uint32(head[len(magic):]); v != formatVersion {
		return fmt.Errorf("%w: it has %d, and this program reads %d", ErrVersion, v, formatVersion)
	}
	return nil
}

func (c *Cache) read(r io.Reader) error {
	var head [HeadBytes + 8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return ends(err)
	}
	if string(head[:len(magic)]) != magic {
		return errors.New("it is none: it begins with other bytes")
	}
	if err := CheckVersion(head[:]); err != nil {
		return err
	}
	length := binary.LittleEndian.Uint64(head[len(magic)+4:])
	if length > math.MaxInt64 {
		return fmt.Errorf("damaged: it says that it has %d bytes", length)
	}
	d := decoder{r: bufio.NewReaderSize(io.LimitReader(r, int64(length)), 1<<16), left: int64(length)}
	if err := c.readSettings(&d); err != nil {
		return err
	}
	step, pools, steps := d.u64(), d.u32(), d.u32()
	switch {
	case d.err != nil:
		return d.err
	case step > maxStep:
		return fmt.Errorf("damaged: it goes on at step %d", step)
	case pools != uint32(len(c.mu.pools)):
		return fmt.Errorf("it has slots of %d layers and types, and the run of %d", pools, len(c.mu.pools))
	case uint64(steps) > min(uint64(c.o.Lag), step) || pools == 0 && steps > 0:
		return fmt.Errorf("damaged: verdicts of %d steps before step %d, and {history_lag} is %d", steps, step, c.o.Lag)
	}
	c.mu.written = int(step)
	for k := range c.mu.pools {
		if err := c.readPool(&d, k, int(steps)); err != nil {
			return fmt.Errorf("layer %d, type %d: %w", c.o.Kept[k].Layer, c.o.Kept[k].Type, err)
		}
	}
	for i := range int(steps) {
		v := make(verdict, len(c.mu.pools))
		for k := range v {
			var err error
			if v[k], err = c.mu.pools[k].readVerdict(&d, c.mu.written-int(steps)+i); err != nil {
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

// readPool fills the k-th pool. verdicts is the number of steps that have verdicts.
func (c *Cache) readPool(d *decoder, k, verdicts int) error {
	kept, r, n := c.o.Kept[k], c.mu.pools[k], &c.mu.counts[k]
	layer, typ, slots := d.u32(), d.u32(), d.u64()
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
	case bad:
		return fmt.Errorf("damaged: counts %+v", *n)
	}
	// An embedding that waits for its verdict has that verdict here, and none is past use.
	oldest := max(c.o.Start, c.mu.written-c.o.TStale)
	if verdicts < c.o.Lag {
		oldest = max(oldest, c.mu.written-verdicts)
	}
	live := int64(0)
	for i, free := range r.free.words {
		word := d.u64()
		if word&^free != 0 {
			return errors.New("damaged: more slots in use than there are")
		}
		for ; word != 0; word &= word - 1 {
			r.free.remove(uint32(64*i + bits.TrailingZeros64(word)))
			live++
		}
	}
	if d.err == nil && n.live() != live {
		return fmt.Errorf("damaged: %d embeddings are live, and counts are %+v", live, *n)
	}
	for s := range r.slots {
		if r.free.has(uint32(s)) {
			continue
		}
		node, stamp := d.u32(), d.u32()
		switch {
		case d.err != nil:
			return d.err
		case int(stamp) < oldest || int(stamp) >= c.mu.written:
			return fmt.Errorf("damaged: an embedding of step %d among those of steps %d to %d", stamp, oldest, c.mu.written-1)
		case kept.Nodes > 0 && int64(node) >= int64(kept.Nodes):
			return fmt.Errorf("damaged: an embedding of node %d, and there are %d", node, kept.Nodes)
		}
		if _, twice := r.index.find(node, r.slots); twice {
			return fmt.Errorf("damaged: node %d has two embeddings", node)
		}
		r.slots[s] = slot{node, stamp}
		r.index.put(node, Version{uint32(s), stamp})
		if c.o.Takes != nil {
			c.o.Takes(k, int(stamp), []uint32{uint32(s)})
		}
	}
	return d.err
}

// readVerdict reads the versions that a step rejects.
func (r *pool) readVerdict(d *decoder, step int) (rejected []Version, err error) {
	n := d.u32()
	if 8*int64(n) > d.left {
		return nil, fmt.Errorf("damaged: step %d rejects %d embeddings", step, n)
	}
	for range n {
		v := Version{d.u32(), d.u32()}
		if d.err == nil && (int64(v.Slot) >= int64(len(r.slots)) || int64(v.Stamp) > int64(step)) {
			return nil, fmt.Errorf("damaged: step %d rejects the embedding of step %d in slot %d", step, v.Stamp, v.Slot)
		}
		if d.err != nil {
			return nil, d.err
		}
		if int(v.Stamp) == step && r.slots[v.Slot].stamp == v.Stamp {
			r.rejected[v.Slot/64] |= 1 << (v.Slot % 64)
		}
		rejected = append(rejected, v)
	}
	return rejected, d.err
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

// ends returns an error that bytes are missing if err is the end of the input, else err.
func ends(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it ends early: %w", io.ErrUnexpectedEOF)
	}
	return err
}
