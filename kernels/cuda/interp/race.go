package interp

// A shadow remembers who accessed each granule of some memory: of a block's shared memory, or of an
// allocation. A granule is as large as the smallest access that the kernel makes to such memory.
type shadow struct {
	pages   []*[pageCells]cell // nil where nothing was accessed
	granule int
	global  bool
}

const pageCells = 256 // 12 KiB: a row or two of a matrix

// A cell remembers the accesses to a granule.
type cell struct{ writes, reads, atomics trace }

// A trace stands for accesses of one kind. It names the thread that made them, or several.
type trace struct {
	phase  uint32 // run.phase at the last of them; 0: there were none
	sync   uint32 // w.met(kind) at the last of them
	thread int32  // or one of the three below
	warp   int32
}

// A trace of several threads.
const (
	lanesOfWarp   = -1
	severalWarps  = -2 // of one block
	severalBlocks = -3
)

func newShadow(bytes, granule int, global bool) *shadow {
	return &shadow{make([]*[pageCells]cell, bytes/granule/pageCells+1), granule, global}
}

// before reports whether everything that t stands for comes before an access of w's thread that is
// made now. A barrier puts what its block did before it first, bar.warp.sync what its warp did.
// Nothing orders two blocks. Shared memory is new in each. kind is of the accesses of t.
func (t *trace) before(w *warp, thread int32, kind accessKind, global bool) bool {
	switch {
	case t.phase < w.run.blockPhase:
		return t.phase == 0 || !global
	case t.thread == severalBlocks:
		return false
	}
	return t.phase != w.run.phase || t.thread == thread || t.ofWarp(w) && t.sync != w.met(kind)
}

// met counts how often all lanes of the warp have met such that accesses of a kind are done. A
// shuffle does that for reads: a lane that takes part has the values that it read, as long as they
// go into the shuffle. That they do is not looked at. It orders no writes (CUDA C++ Programming
// Guide, "Warp Shuffle Functions").
func (w *warp) met(kind accessKind) uint32 {
	if kind == reading {
		return w.meetings
	}
	return w.syncs
}

// ofWarp reports whether t stands for accesses of w alone.
func (t *trace) ofWarp(w *warp) bool { return t.warp == int32(w.index) && t.thread >= lanesOfWarp }

// add makes t stand for an access of w's thread as well.
func (t *trace) add(w *warp, thread int32, kind accessKind, global bool) {
	switch {
	case t.before(w, thread, kind, global):
		*t = trace{w.run.phase, w.met(kind), thread, int32(w.index)}
	case t.phase < w.run.blockPhase || t.thread == severalBlocks:
		t.phase, t.thread = w.run.phase, severalBlocks
	case t.ofWarp(w):
		t.thread = lanesOfWarp
	default:
		t.thread = severalWarps
	}
}

// describe names the threads of a trace.
func (t *trace) describe(w *warp) string {
	switch {
	case t.thread == severalBlocks:
		return "threads of several blocks"
	case t.phase < w.run.blockPhase:
		return "a thread of another block"
	case t.thread == lanesOfWarp:
		return "several threads of warp " + itoa(int(t.warp))
	case t.thread == severalWarps:
		return "threads of several warps"
	}
	return "thread " + coordinates(w.run.threadAt(int(t.thread)))
}

type accessKind uint8

const (
	reading accessKind = iota
	writing
	updating // atomically
)

// check looks for a race of an access of n bytes at offset, and records the access.
func (s *shadow) check(w *warp, lane int, kind accessKind, offset, n int) {
	thread, phase := int32(w.index*warpLanes+lane), w.run.phase
	for i := uint(offset) / uint(s.granule); i*uint(s.granule) < uint(offset+n); i++ {
		page := s.pages[i/pageCells]
		if page == nil {
			page = new([pageCells]cell)
			s.pages[i/pageCells] = page
		}
		c := &page[i%pageCells]
		// The frequent case first: a read of what was not written, or was before the last barrier.
		if kind == reading && (c.writes.phase|c.atomics.phase == 0 ||
			!s.global && c.writes.phase != phase && c.atomics.phase != phase) {
			if c.reads.phase != phase || c.reads.thread > severalWarps {
				c.reads.add(w, thread, reading, s.global)
			}
			continue
		}
		var other *trace
		var what string
		switch {
		case !c.writes.before(w, thread, writing, s.global):
			other, what = &c.writes, "written"
		case kind != updating && !c.atomics.before(w, thread, updating, s.global):
			other, what = &c.atomics, "updated"
		case kind != reading && !c.reads.before(w, thread, reading, s.global):
			other, what = &c.reads, "read"
		}
		if other != nil {
			did := [...]string{reading: "reads", writing: "writes", updating: "updates"}[kind]
			w.fail(ErrRace, lane, "it %s byte %d, %s by %s, and nothing orders the two",
				did, i*uint(s.granule), what, other.describe(w))
			return
		}
		switch kind {
		case reading:
			c.reads.add(w, thread, reading, s.global)
		case writing:
			c.writes.add(w, thread, writing, s.global)
		case updating:
			c.atomics.add(w, thread, updating, s.global)
		}
	}
}
