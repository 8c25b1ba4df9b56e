package interp

// A sharedMemory is the shared memory of a block, with who touched each granule of it since the
// last barrier. A granule is as large as the smallest access of the kernel.
type sharedMemory struct {
	data    []byte
	cells   []cell
	granule int
	phase   uint32 // counts the barriers of all blocks of a launch; starts at 1
}

// A cell remembers the accesses to a granule.
type cell struct{ writes, reads, atomics trace }

// A trace stands for all accesses of one kind in a phase. It names a thread, or several.
type trace struct {
	phase  uint32 // of the accesses; a trace of another phase is void
	sync   uint32 // how many times the warp had met at bar.warp.sync
	thread int32  // or one of the two below
	warp   int32
}

const (
	lanesOfWarp  = -1 // several threads of one warp
	severalWarps = -2
)

// orders reports whether everything that t stands for comes before an access of w's thread: it was
// in another phase, by that thread itself, or by its warp before the warp last met.
func (t *trace) orders(w *warp, phase uint32, thread int32) bool {
	if t.phase != phase || t.thread == thread {
		return true
	}
	return t.ofWarp(w) && t.sync != w.syncs
}

// ofWarp reports whether t stands for accesses of w alone.
func (t *trace) ofWarp(w *warp) bool { return t.warp == int32(w.index) && t.thread != severalWarps }

// add makes t stand for an access of w's thread as well.
func (t *trace) add(w *warp, phase uint32, thread int32) {
	own := trace{phase, w.syncs, thread, int32(w.index)}
	switch {
	case t.orders(w, phase, thread):
		*t = own
	case t.ofWarp(w):
		t.thread = lanesOfWarp
	default:
		t.thread = severalWarps
	}
}

// describe names the thread of a trace.
func (t *trace) describe(w *warp) string {
	switch t.thread {
	case lanesOfWarp:
		return "several threads of warp " + itoa(int(t.warp))
	case severalWarps:
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
func (s *sharedMemory) check(w *warp, lane int, kind accessKind, offset, n int) {
	thread := int32(w.index*warpLanes + lane)
	for i := offset / s.granule; i*s.granule < offset+n; i++ {
		c := &s.cells[i]
		var other *trace
		var what string
		switch {
		case !c.writes.orders(w, s.phase, thread):
			other, what = &c.writes, "written"
		case kind != updating && !c.atomics.orders(w, s.phase, thread):
			other, what = &c.atomics, "updated"
		case kind != reading && !c.reads.orders(w, s.phase, thread):
			other, what = &c.reads, "read"
		}
		if other != nil {
			did := [...]string{reading: "reads", writing: "writes", updating: "updates"}[kind]
			w.fail(ErrRace, lane, "it %s offset %d, %s by %s since the last barrier",
				did, i*s.granule, what, other.describe(w))
			return
		}
		switch kind {
		case reading:
			c.reads.add(w, s.phase, thread)
		case writing:
			c.writes.add(w, s.phase, thread)
		case updating:
			c.atomics.add(w, s.phase, thread)
		}
	}
}
