package history

// ages finds the slots that a step wrote. All embeddings of a step expire in the same plan, and
// plans expire one step after the other. So ages sorts the slots by step, for span steps at a time,
// and sorts again when a plan asks for a later step. A slot that is freed later stays in its list,
// and its bit in gone is then set. Expiry reads these bits to find the slots. Bits lie together in
// memory, and slots lie apart.
type ages struct {
	span   int      // steps of a list; at most t_stale, so that their writes are over
	first  int      // the first of these steps, or notSorted
	plan   int      // the plan that sorted
	ends   []uint32 // where the slots of each step end in sorted
	sorted []uint32 // slots, by step and then ascending
	// gone has a bit for each slot, set if the slot was free when ages sorted or was freed since.
	gone []uint64
}

const notSorted = -1 << 62

// mostSpan bounds the counters of a sort, so that the processor's nearest cache has them all.
const mostSpan = 1024

func newAges(stale, slots int) ages {
	span := min(stale, mostSpan)
	return ages{span: span, first: notSorted, ends: make([]uint32, span), gone: make([]uint64, (slots+63)/64)}
}

// of returns the slots that a step wrote, and some that are gone. plan is the first plan that may
// not use them, and free has the bits of the free slots.
func (a *ages) of(step, plan int, slots []slot, free []uint64) []uint32 {
	if step < 0 {
		return nil
	}
	if step < a.first || step >= a.first+a.span {
		a.first, a.plan = step, plan
		copy(a.gone, free)
		a.sort(slots)
	}
	i, lo := step-a.first, uint32(0)
	if i > 0 {
		lo = a.ends[i-1]
	}
	return a.sorted[lo:a.ends[i]]
}

// sort sorts by counting.
func (a *ages) sort(slots []slot) {
	if a.sorted == nil {
		a.sorted = make([]uint32, len(slots))
	}
	clear(a.ends)
	for _, x := range slots {
		if i := int(x.stamp) - a.first; uint(i) < uint(len(a.ends)) {
			a.ends[i]++
		}
	}
	at := uint32(0)
	for i, n := range a.ends { // from counts to starts
		a.ends[i] = at
		at += n
	}
	for s, x := range slots { // from starts to ends
		if i := int(x.stamp) - a.first; uint(i) < uint(len(a.ends)) {
			a.sorted[a.ends[i]] = uint32(s)
			a.ends[i]++
		}
	}
}

// freed says that slot s is free now.
func (a *ages) freed(s uint32) { a.gone[s/64] |= 1 << (s % 64) }

// left reports whether slot s still has the embedding that it had when ages sorted.
func (a *ages) left(s uint32) bool { return a.gone[s/64]>>(s%64)&1 == 0 }

// back says that slot s is in use again, by an embedding of the step stamp.
func (a *ages) back(s, stamp uint32) {
	if int(stamp) < a.first+a.span {
		a.gone[s/64] &^= 1 << (s % 64)
	}
}

// undone drops a list that plan, or a later one, sorted: it lacks the slots that those plans gave
// away.
func (a *ages) undone(plan int) {
	if a.plan >= plan {
		a.first = notSorted
	}
}
