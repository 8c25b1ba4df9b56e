package device

import (
	"errors"
	"fmt"
	"math"
)

// Options says how a Ledger keeps embeddings. Steps are numbered as the run numbers them.
type Options struct {
	Layout Layout

	// Staleness is k: a step sees the embeddings written k steps before it and earlier, and none written later.
	// Default 1.
	Staleness int
	// MaxAge is the most steps between writing an embedding and using it. If it is less than Staleness, as by default, no
	// embedding can ever be used, and there are no slots.
	MaxAge int
	// MaxSlots bounds the ring, whatever SetLimit says, and so the feature rows that can be displaced. Default 0: as many as
	// fit in the region.
	MaxSlots int
	// FirstStep is the first step that is planned. Default 0.
	FirstStep int
}

func (o Options) withDefaults() Options {
	if o.Staleness == 0 {
		o.Staleness = 1
	}
	fit := o.Layout.Slots()
	if o.MaxSlots == 0 || o.MaxSlots > fit {
		o.MaxSlots = fit
	}
	if o.MaxAge < o.Staleness {
		o.MaxSlots = 0
	}
	return o
}

// Validate reports every option that cannot be followed.
func (o Options) Validate() error {
	errs := []error{o.Layout.Validate()}
	for _, n := range []struct {
		name  string
		value int
	}{{"staleness", o.Staleness}, {"age", o.MaxAge}, {"number of slots", o.MaxSlots}, {"first step", o.FirstStep}} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("%s of %d: use 0 or more", n.name, n.value))
		}
	}
	if o.FirstStep > maxStep {
		errs = append(errs, fmt.Errorf("first step %d: steps end at %d", o.FirstStep, maxStep))
	}
	return errors.Join(errs...)
}

// maxStep is the last step: stamps and leases have 32 bits, and the step after it must fit as well.
const maxStep = math.MaxUint32 - 1

// Version is an embedding as a step wrote it: the slot, and as its stamp the step.
type Version struct{ Slot, Stamp uint32 }

// Reservation is what a step does to the region once it has run and all of its reads are done.
type Reservation struct {
	Slots     []uint32 // where its embeddings go, the older slot first; the step writes their bytes
	Displaced Span     // feature rows that leave the region
	Restored  Span     // feature rows that the step copies in from the host
}

// Ledger is the bookkeeping of a region: see the package's comment for the order of calls. Its methods panic where that
// order is broken. It is used by one goroutine at a time, and its answers depend on nothing but the calls made before.
type Ledger struct {
	o     Options
	ring  ring
	index index
	limit int // of the ring, from the next Reserve on

	step    int  // that Begin was last called for; before that FirstStep-1
	open    bool // between Begin and Reserve of that step
	written int  // steps below this one have been written back

	unseen    run // slots in use that are not in the index yet: those of steps above step-k
	unwritten run // the younger part of unseen: slots that WriteBack has not come for

	vetoes vetoQueue

	features int   // feature rows that this step finds in the region
	rows     int   // feature rows in the region once all planned steps have run
	recent   []low // rows after each of the last k plans, less those that a later one undercuts or equals: steps and rows ascend

	stats Stats
}

// run is the last n slots of the queue of those in use, from first on.
type run struct {
	first uint32 // meaningless while n is 0
	n     int
}

// low is how many feature rows are in the region after a step.
type low struct{ step, rows int }

// NewLedger makes a ledger without embeddings. All feature rows that fit, [0, Features), count as in the region: the caller
// loads them.
func NewLedger(o Options) (*Ledger, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("device: %w", err)
	}
	o = o.withDefaults()
	slots := make([]slot, o.MaxSlots)
	l := &Ledger{
		o:       o,
		ring:    ring{slots: slots, limit: o.MaxSlots},
		index:   index{slots: slots, places: make([]uint32, placesPerSlot*o.MaxSlots)},
		limit:   o.MaxSlots,
		step:    o.FirstStep - 1,
		written: o.FirstStep,
		rows:    o.Layout.Features(0),
	}
	l.features = l.rows
	l.recent = append(l.recent, low{l.step, l.rows})
	return l, nil
}

// Features is how many feature rows the step of the last Begin finds in the region. They are the rows [0, Features).
func (l *Ledger) Features() int { return l.features }

// Displaceable is the feature rows that embeddings may ever displace. The host keeps them, so that they come back without the
// disk. The rows before them never leave the region.
func (l *Ledger) Displaceable() Span {
	return Span{l.o.Layout.Features(l.o.MaxSlots), l.o.Layout.Features(0)}
}

// Begin starts the plan of a step, which is the one after the last. It panics if the step Staleness steps before it has not
// been written back.
func (l *Ledger) Begin(step int) {
	seen := step - l.o.Staleness
	switch {
	case l.open:
		panic(fmt.Sprintf("device: Begin(%d) before Reserve for step %d", step, l.step))
	case step != l.step+1:
		panic(fmt.Sprintf("device: Begin(%d): step %d is next", step, l.step+1))
	case seen >= l.written:
		panic(fmt.Sprintf("device: Begin(%d) before WriteBack(%d)", step, seen))
	case step > maxStep:
		panic("device: Begin: a step beyond 32 bits")
	}
	l.step, l.open = step, true
	l.see(seen)
	n := 0
	for l.recent[n].step < seen {
		n++
	}
	l.recent = l.recent[:copy(l.recent, l.recent[n:])]
	l.features = l.recent[0].rows
}

// see enters what a step wrote into the index, and applies its vetoes. What earlier steps wrote is in the index already.
func (l *Ledger) see(step int) {
	for l.unseen.n > l.unwritten.n && int(l.ring.slots[l.unseen.first].stamp) <= step {
		s := l.unseen.first
		t := &l.ring.slots[s]
		l.unseen.first = t.next
		l.unseen.n--
		if t.layer == 0 {
			l.stats.Holes++
			continue
		}
		l.stats.Admitted++
		l.stats.Live++
		if l.index.put(s) {
			l.stats.Superseded++
			l.stats.Live--
		}
	}
	for {
		v, ok := l.vetoes.pop(step)
		if !ok {
			return
		}
		if t := &l.ring.slots[v.Slot]; t.live && t.stamp == v.Stamp {
			l.index.remove(v.Slot)
			l.stats.Vetoed++
			l.stats.Live--
		}
	}
}

// Find looks for the embedding that the step being planned may use: the youngest that was written at least Staleness and at
// most MaxAge steps before it, and was not evicted.
func (l *Ledger) Find(k Key) (v Version, ok bool) {
	if !l.open || k.Layer == 0 {
		panic("device: Find between Reserve and Begin, or of layer 0")
	}
	s, ok := l.index.find(k)
	if !ok || l.age(l.ring.slots[s].stamp) > l.o.MaxAge {
		return Version{}, false
	}
	return Version{s, l.ring.slots[s].stamp}, true
}

// Use is Find for a step that will read the embedding. It leases the slot, which stays as it is until the step has run.
func (l *Ledger) Use(k Key) (v Version, ok bool) {
	if v, ok = l.Find(k); ok {
		l.ring.slots[v.Slot].lease = uint32(l.step)
		l.stats.Used++
		l.stats.Ages += int64(l.age(v.Stamp))
	}
	return v, ok
}

// age is how many steps stamp lies before the step being planned.
func (l *Ledger) age(stamp uint32) int { return l.step - int(stamp) }

// SetLimit bounds the ring at slots, or at MaxSlots if that is less, from the next Reserve on. Slots beyond it leave the ring
// once they are free, and feature rows come back. Embeddings that may still be used stay.
func (l *Ledger) SetLimit(slots int) {
	if slots < 0 {
		panic("device: SetLimit below 0")
	}
	l.limit = min(slots, l.o.MaxSlots)
}

// Reserve ends the plan of a step that wants to keep n embeddings. It gives the step n slots, or as many as there are, in
// dst[:0], and moves the junction. WriteBack says later which embeddings went there. All steps that leased a slot run
// before the step that it is given to, and plans have seen what was in it.
func (l *Ledger) Reserve(dst []uint32, n int) Reservation {
	if !l.open || n < 0 {
		panic("device: Reserve without Begin, or of less than nothing")
	}
	l.open = false
	l.ring.setLimit(l.limit)
	l.releaseOld()
	r := Reservation{Slots: dst[:0]}
	for range n {
		s, ok := l.ring.take()
		if !ok {
			break
		}
		l.ring.slots[s].stamp = uint32(l.step)
		l.unseen.extend(s)
		l.unwritten.extend(s)
		r.Slots = append(r.Slots, s)
	}
	l.stats.Reserved += int64(len(r.Slots))
	l.stats.Refused += int64(n - len(r.Slots))
	r.Displaced, r.Restored = l.moveJunction()
	return r
}

// extend adds s, which was put into use last.
func (r *run) extend(s uint32) {
	if r.n == 0 {
		r.first = s
	}
	r.n++
}

// releaseOld frees slots from the oldest on. It stops at one that a later step may use, or that is leased by this step or by a
// later one, which might read it after this step has written.
func (l *Ledger) releaseOld() {
	for l.ring.used.n > l.unseen.n {
		s := l.ring.used.first
		t := &l.ring.slots[s]
		if t.live && l.age(t.stamp) < l.o.MaxAge || int(t.lease) >= l.step {
			return
		}
		if t.live {
			l.index.remove(s)
			l.stats.Expired++
			l.stats.Live--
		}
		l.ring.release()
	}
}

// moveJunction moves the junction to the end of the ring's slots, and returns the feature rows that leave or come back.
func (l *Ledger) moveJunction() (displaced, restored Span) {
	before, after := l.rows, l.o.Layout.Features(l.ring.top)
	l.rows = after
	if after < before {
		displaced = Span{after, before}
	} else {
		restored = Span{before, after}
	}
	l.stats.Displaced += int64(displaced.Len())
	l.stats.Restored += int64(restored.Len())
	n := len(l.recent)
	for n > 0 && l.recent[n-1].rows >= after {
		n--
	}
	l.recent = append(l.recent[:n], low{l.step, after})
	return displaced, restored
}

// WriteBack says what a step wrote. Steps are written back in order. keys[i] went to the i-th slot that was reserved for the
// step; the zero Key is a hole, left by a row that was NaN; no key comes twice. vetoes are versions that the step used and that
// are to be evicted. A version that has gone or was replaced by then is passed over. Plans see both from step + Staleness on:
// uses that were planned before stand.
func (l *Ledger) WriteBack(step int, keys []Key, vetoes []Version) {
	switch {
	case step != l.written:
		panic(fmt.Sprintf("device: WriteBack(%d): step %d is next", step, l.written))
	case step > l.step || step == l.step && l.open:
		panic(fmt.Sprintf("device: WriteBack(%d) before Reserve for that step", step))
	case len(vetoes) > len(l.ring.slots):
		panic("device: WriteBack: more vetoes than slots")
	}
	for _, v := range vetoes {
		if int(v.Slot) >= len(l.ring.slots) || int(v.Stamp)+l.o.Staleness > step {
			panic(fmt.Sprintf("device: WriteBack(%d): slot %d of step %d is none it used", step, v.Slot, v.Stamp))
		}
	}
	given := 0
	for ; l.unwritten.n > 0; given++ {
		t := &l.ring.slots[l.unwritten.first]
		if int(t.stamp) != step {
			break
		}
		if given == len(keys) {
			panic(fmt.Sprintf("device: WriteBack(%d): %d keys for more slots", step, len(keys)))
		}
		t.node, t.layer = keys[given].Node, keys[given].Layer
		l.unwritten.first = t.next
		l.unwritten.n--
	}
	if given != len(keys) {
		panic(fmt.Sprintf("device: WriteBack(%d): %d keys for %d slots", step, len(keys), given))
	}
	l.vetoes.push(step, vetoes)
	l.written++
}

// vetoQueue holds the vetoes of steps that plans do not see yet.
type vetoQueue struct {
	waiting []veto // the entries from first on; those before it have been popped
	first   int
}

// veto is a version that step evicts.
type veto struct {
	Version
	step uint32
}

// push adds the vetoes of a step.
func (q *vetoQueue) push(step int, versions []Version) {
	// Once half of the entries have been popped, moving the others costs no more than popping did.
	if 2*q.first >= len(q.waiting) {
		q.waiting = q.waiting[:copy(q.waiting, q.waiting[q.first:])]
		q.first = 0
	}
	for _, v := range versions {
		q.waiting = append(q.waiting, veto{v, uint32(step)})
	}
}

// pop takes out the oldest veto, if it is of step or of one before it.
func (q *vetoQueue) pop(step int) (v Version, ok bool) {
	if q.first == len(q.waiting) || int(q.waiting[q.first].step) > step {
		return Version{}, false
	}
	q.first++
	return q.waiting[q.first-1].Version, true
}
