//go:build cuda && linux

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/kernels/cuda/ptx"
)

// buffer is a kernels.Buffer.
type buffer struct {
	typ   kernels.DType
	n     int
	block *block // nil once freed
}

// Len implements [kernels.Buffer].
func (b *buffer) Len() int { return b.n }

// block is memory of the device, with the tickets of what touched it last. A freed block keeps
// them: whoever gets its memory next waits for what came before.
type block struct {
	at   driver.Ptr
	size uint64

	used    int64        // the span of operations in which one touched it last; 0: none
	filled  driver.Event // of the last upload to it; 0: there was none
	pending bool         // no operation waits for filled yet
	waits   uint8        // what waits on the block: see deferred, whose lock guards it
}

// allocator keeps the memory of freed buffers.
type allocator struct {
	spare []*block
	held  uint64 // bytes of the device
	all   map[*block]bool
}

const (
	// grain is the multiple of bytes that blocks have.
	grain = 512
	// looseness bounds the waste of reuse: a spare block may be larger than the request by
	// 1/looseness of the request, and a grain.
	looseness = 4
)

// take returns a spare block of at least size bytes, or nil.
func (a *allocator) take(size uint64) *block {
	best := -1
	for i, s := range a.spare {
		if s.size >= size && s.size <= size+size/looseness+grain && (best < 0 || s.size < a.spare[best].size) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	found := a.spare[best]
	a.spare = slices.Delete(a.spare, best, best+1)
	return found
}

func (a *allocator) close(c *driver.Calls) error {
	var errs []error
	for of := range a.all {
		errs = append(errs, c.MemFree(of.at))
		if of.filled != 0 {
			errs = append(errs, c.EventDestroy(of.filled))
		}
	}
	a.spare, a.all, a.held = nil, nil, 0
	return errors.Join(errs...)
}

// allocate returns a block, which is not zeroed. It panics as Alloc does.
func (b *Backend) allocate(op string, bytes uint64) *block {
	size := (max(bytes, 1) + grain - 1) / grain * grain
	b.mu.Lock()
	defer b.mu.Unlock()
	if of := b.take(size); of != nil {
		return of
	}
	of := &block{size: size}
	err := b.gpu.Do(func(c *driver.Calls) (err error) {
		of.at, err = c.MemAlloc(size)
		if errors.Is(err, driver.ErrOutOfMemory) && len(b.spare) > 0 {
			if err := b.trim(c); err != nil {
				return err
			}
			of.at, err = c.MemAlloc(size)
		}
		return err
	})
	if errors.Is(err, driver.ErrOutOfMemory) {
		panic(&kernels.MemoryError{Bytes: int(bytes), Err: fmt.Errorf("%s: %w", b.name, err)})
	}
	if err != nil {
		panic(&kernels.DeviceError{Device: b.name, Operation: op, Err: err})
	}
	if b.all == nil {
		b.all = map[*block]bool{}
	}
	b.all[of] = true
	b.held += size
	return of
}

// trim gives spare blocks back to the driver, which waits for the device.
func (b *Backend) trim(c *driver.Calls) error {
	for len(b.spare) > 0 {
		of := b.spare[len(b.spare)-1]
		if err := c.MemFree(of.at); err != nil {
			return err
		}
		if of.filled != 0 {
			if err := c.EventDestroy(of.filled); err != nil {
				return err
			}
		}
		b.spare = b.spare[:len(b.spare)-1]
		b.held -= of.size
		delete(b.all, of)
	}
	return nil
}

func (b *Backend) release(of *block) {
	if of == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spare = append(b.spare, of)
}

// Bytes implements [kernels.Backend].
func (b *Backend) Bytes() kernels.Use {
	b.mu.Lock()
	defer b.mu.Unlock()
	spare := uint64(0)
	for _, of := range b.spare {
		spare += of.size
	}
	return kernels.Use{Host: kernels.HostBytes(), Device: int64(b.held - spare)}
}

// Room implements [kernels.Roomy]. Other processes may take some of it meanwhile.
func (b *Backend) Room() (bytes int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	err = b.gpu.Do(func(c *driver.Calls) error {
		free, _, err := c.MemGetInfo()
		bytes = int64(free + b.held)
		return err
	})
	return bytes, err
}

// Alloc implements [kernels.Backend].
func (b *Backend) Alloc(t kernels.DType, n int) kernels.Buffer {
	if n < 0 {
		panic(fmt.Sprintf("kernels: Alloc of %d elements", n))
	}
	buf := &buffer{t, n, b.allocate("Alloc", uint64(n)*uint64(t.Size()))}
	b.clear(buf.block)
	return buf
}

// clear zeroes a block, after whatever has touched it.
func (b *Backend) clear(of *block) {
	b.awaitUpload(of)
	b.do("Alloc", func(c *driver.Calls) error { return c.MemsetD8Async(of.at, 0, of.size, b.compute) })
	b.after([]any{operand{block: of}})
}

// Free implements [kernels.Backend].
func (b *Backend) Free(buf kernels.Buffer) {
	of := buf.(*buffer)
	if of.block == nil {
		panic("kernels: Free of a buffer that is freed")
	}
	if !b.lost.Load() { // else a launch panics, and hides the error of the step that lost the context
		b.settle(of.block.whole())
	}
	b.release(of.block)
	of.block = nil
}

// tickets order the two streams. Operations are counted in spans, and an event ends each: at a
// Mark, or when an upload has to wait for an operation of the span. So an upload waits for the
// operations of earlier steps and not for the step under way, unless it has to.
type tickets struct {
	span   int64          // of operations to come, from 1
	ended  []driver.Event // of the last spans, up to span - 1; at most endedKept
	spares []driver.Event
	waited int64 // the last span that the copy stream waits for

	marks, unused []driver.Event // of Mark: all, and those that nobody waits for
}

const endedKept = 8

func (t *tickets) close(c *driver.Calls) error {
	var errs []error
	for _, e := range slices.Concat(t.ended, t.spares, t.marks) {
		errs = append(errs, c.EventDestroy(e))
	}
	t.ended, t.spares, t.marks, t.unused = nil, nil, nil, nil
	return errors.Join(errs...)
}

// endSpan ends the span. b.mu is held.
func (b *Backend) endSpan(c *driver.Calls) error {
	var e driver.Event
	var err error
	switch n := len(b.spares); {
	case n > 0:
		e, b.spares = b.spares[n-1], b.spares[:n-1]
	case len(b.ended) == endedKept: // a wait that is queued keeps to the record before
		e = b.ended[0]
		b.ended = slices.Delete(b.ended, 0, 1)
	default:
		if e, err = c.EventCreate(driver.EventDisableTiming); err != nil {
			return err
		}
	}
	if err := c.EventRecord(e, b.compute); err != nil {
		b.spares = append(b.spares, e)
		return err
	}
	b.ended = append(b.ended, e)
	b.span++
	return nil
}

// awaitOperations has the copy stream wait for the operations that touch a block. b.mu is held.
func (b *Backend) awaitOperations(c *driver.Calls, of *block) error {
	if of.used <= b.waited {
		return nil
	}
	if of.used == b.span {
		if err := b.endSpan(c); err != nil {
			return err
		}
	}
	first := b.span - int64(len(b.ended)) // of ended
	at := max(of.used, first)             // a later one has all earlier ones
	if err := c.StreamWaitEvent(b.copies, b.ended[at-first]); err != nil {
		return err
	}
	b.waited = at
	return nil
}

// awaitUpload has the compute stream wait for the last upload to a block.
func (b *Backend) awaitUpload(of *block) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !of.pending {
		return
	}
	b.do("upload", func(c *driver.Calls) error { return c.StreamWaitEvent(b.compute, of.filled) })
	of.pending = false
}

// upload copies n bytes at src to dst.
func (b *Backend) upload(op string, dst operand, src unsafe.Pointer, n int) {
	if n == 0 {
		return
	}
	s := b.slot(op, n)
	copy(s.memory, unsafe.Slice((*byte)(src), n))
	b.send(op, dst, s, n)
}

// slot returns page-locked memory of at least n bytes, which send or pinned.done takes back.
func (b *Backend) slot(op string, n int) (s *slot) {
	b.do(op, func(c *driver.Calls) (err error) {
		s, err = b.pinned.take(c, n)
		return err
	})
	return s
}

// send begins the upload of the first n bytes of a slot.
func (b *Backend) send(op string, dst operand, s *slot, n int) {
	b.fill(op, dst, s, func(c *driver.Calls) error {
		return c.MemcpyHtoDAsync(dst.at, s.pointer(), uint64(n), b.copies)
	})
}

// fill has work, on the stream of copies, write to dst, after the operations that use dst. It gives
// back the slot that work reads. work is called with b.mu held.
func (b *Backend) fill(op string, dst operand, s *slot, work func(c *driver.Calls) error) {
	b.settle(dst)
	b.do(op, func(c *driver.Calls) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if err := b.awaitOperations(c, dst.block); err != nil {
			return err
		}
		var err error
		if dst.block.filled == 0 {
			if dst.block.filled, err = c.EventCreate(driver.EventDisableTiming); err != nil {
				return err
			}
		}
		if err := work(c); err != nil {
			return err
		}
		if err := c.EventRecord(dst.block.filled, b.copies); err != nil {
			return err
		}
		dst.block.pending = true
		return b.pinned.give(c, s, b.copies)
	})
}

// Stage implements [kernels.Stager].
func (b *Backend) Stage(t kernels.Tensor) (memory []byte, send func(ok bool)) {
	dst := b.operand("Stage", "t", t, kernels.F32, kernels.F16, kernels.U32)
	n := t.Len() * t.Type.Size()
	if n == 0 {
		return nil, func(bool) {}
	}
	s := b.slot("Stage", n)
	return s.memory[:n:n], func(ok bool) {
		if ok {
			b.send("Stage", dst, s, n)
		} else {
			b.pinned.done(s)
		}
	}
}

// table is words on the device, for the kernel of an operation.
type table struct {
	words []uint64
	at    operand
}

// table returns words on the device. They stay from call to call of the operation, and go up again
// where they differ.
func (b *Backend) table(op string, words []uint64) operand {
	if b.tables == nil {
		b.tables = map[string]*table{}
	}
	of := b.tables[op]
	if of == nil {
		of = &table{}
		b.tables[op] = of
	}
	if len(words) == 0 || slices.Equal(of.words, words) {
		return of.at
	}
	n := 8 * len(words)
	if of.at.block == nil || int(of.at.block.size) < n {
		b.release(of.at.block)
		of.at = operand{}
		block := b.allocate(op, uint64(2*n))
		of.at = block.whole()
	}
	of.words = nil
	b.before([]any{of.at})
	b.do(op, func(c *driver.Calls) error {
		s, err := b.pinned.take(c, n)
		if err != nil {
			return err
		}
		copy(s.memory, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n))
		if err := c.MemcpyHtoDAsync(of.at.at, s.pointer(), uint64(n), b.compute); err != nil {
			return err
		}
		return b.pinned.give(c, s, b.compute)
	})
	b.after([]any{of.at})
	of.words = words
	return of.at
}

func checkLen(op string, t kernels.Tensor, n int) {
	if t.Len() != n {
		panic(fmt.Sprintf("kernels: %s: tensor %d×%d, slice of %d", op, t.Rows, t.Cols, n))
	}
}

// UploadF32 implements [kernels.Backend].
func (b *Backend) UploadF32(dst kernels.Tensor, src []float32) {
	checkLen("UploadF32", dst, len(src))
	b.upload("UploadF32", b.f32("UploadF32", "dst", dst), unsafe.Pointer(unsafe.SliceData(src)), 4*len(src))
}

// UploadU32 implements [kernels.Backend].
func (b *Backend) UploadU32(dst kernels.Tensor, src []uint32) {
	checkLen("UploadU32", dst, len(src))
	b.upload("UploadU32", b.u32("UploadU32", "dst", dst), unsafe.Pointer(unsafe.SliceData(src)), 4*len(src))
}

// UploadHalf implements [kernels.Backend].
func (b *Backend) UploadHalf(dst kernels.Tensor, src []uint16) {
	checkLen("UploadHalf", dst, len(src))
	b.upload("UploadHalf", b.halves("UploadHalf", "dst", dst), unsafe.Pointer(unsafe.SliceData(src)), 2*len(src))
}

// fetch is a copy to the host that is under way.
type fetch struct {
	from *slot
	to   []byte
}

// fetch begins a copy of src to the len(to) bytes of to, which may lie in the Go heap.
func (b *Backend) fetch(op string, to []byte, src operand) {
	if len(to) == 0 {
		return
	}
	b.settle(src)
	b.before([]any{src})
	b.do(op, func(c *driver.Calls) error {
		s, err := b.pinned.take(c, len(to))
		if err != nil {
			return err
		}
		if err := c.MemcpyDtoHAsync(s.pointer(), src.at, uint64(len(to)), b.compute); err != nil {
			return err
		}
		b.fetched = append(b.fetched, fetch{s, to})
		return nil
	})
	b.after([]any{src})
}

func bytesOf[T float32 | uint32](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// FetchF32 implements [kernels.Backend].
func (b *Backend) FetchF32(dst []float32, src kernels.Tensor) {
	checkLen("FetchF32", src, len(dst))
	b.fetch("FetchF32", bytesOf(dst), b.f32("FetchF32", "src", src))
}

// FetchU32 implements [kernels.Backend].
func (b *Backend) FetchU32(dst []uint32, src kernels.Tensor) {
	checkLen("FetchU32", src, len(dst))
	b.fetch("FetchU32", bytesOf(dst), b.u32("FetchU32", "src", src))
}

// Mark implements [kernels.Backend].
func (b *Backend) Mark() (wait func()) {
	var word [8]byte
	b.settleAll()
	b.fetch("Mark", word[:], b.failures)
	fetched := b.fetched
	b.fetched = nil
	var e driver.Event
	b.do("Mark", func(c *driver.Calls) (err error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if e, err = b.markEvent(c); err != nil {
			return err
		}
		if err := c.EventRecord(e, b.compute); err != nil {
			return err
		}
		return b.endSpan(c)
	})
	return func() {
		if e == 0 {
			return
		}
		b.do("Mark", func(c *driver.Calls) error { return c.EventSynchronize(e) })
		b.mu.Lock()
		b.unused = append(b.unused, e)
		b.mu.Unlock()
		e = 0
		for _, f := range fetched {
			copy(f.to, f.from.memory)
			b.pinned.done(f.from)
		}
		b.check(word)
	}
}

// markEvent returns an event that nobody waits for. b.mu is held.
func (b *Backend) markEvent(c *driver.Calls) (driver.Event, error) {
	if n := len(b.unused); n > 0 {
		e := b.unused[n-1]
		b.unused = b.unused[:n-1]
		return e, nil
	}
	e, err := c.EventCreate(driver.EventDisableTiming | driver.EventBlockingSync)
	if err == nil {
		b.marks = append(b.marks, e)
	}
	return e, err
}

// check panics if a kernel has found an id or a label out of range, and forgets it.
func (b *Backend) check(word [8]byte) {
	operation, place, failed := ptx.Failure(*(*uint64)(unsafe.Pointer(&word)))
	if !failed {
		return
	}
	b.clear(b.failures.block)
	panic(refusal(operation, place))
}

// DownloadF32 implements [kernels.Backend].
func (b *Backend) DownloadF32(dst []float32, src kernels.Tensor) {
	checkLen("DownloadF32", src, len(dst))
	b.download("DownloadF32", bytesOf(dst), b.f32("DownloadF32", "src", src))
}

// DownloadU32 implements [kernels.Backend].
func (b *Backend) DownloadU32(dst []uint32, src kernels.Tensor) {
	checkLen("DownloadU32", src, len(dst))
	b.download("DownloadU32", bytesOf(dst), b.u32("DownloadU32", "src", src))
}

// download is fetch and a Mark of that alone.
func (b *Backend) download(op string, to []byte, src operand) {
	others := b.fetched
	b.fetched = nil
	b.fetch(op, to, src)
	wait := b.Mark()
	b.fetched = others
	wait()
}
