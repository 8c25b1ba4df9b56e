package history

// ages finds the slots that a step wrote. All embeddings of a step grow too old at the same plan, and plans ask for one step after the
// other. So ages sorts the slots by step, for some steps at a time, and again once a plan asks for a step beyond. Slots that are freed
// or written since then stay in its list: whoever reads it compares stamps. So removing an embedding costs nothing here, and no undo
// mends the list.
type ages struct {
	span   int      // steps of a list: at most t_stale, so that each of them is past the last of its writes
	first  int      // the first of these steps, or notSorted
	plan   int      // the plan that sorted
	ends   []uint32 // of each step, where its slots end in sorted
	sorted []uint32 // slots, by step and then ascending
}

const notSorted = -1 << 62

// mostSpan bounds the counters of a sort, so that the processor's nearest cache has them all.
const mostSpan = 1024

func newAges(stale int) ages {
	span := min(stale, mostSpan)
	return ages{span: span, first: notSorted, ends: make([]uint32, span)}
}

// of returns the slots that a step wrote, at the plan that is the first which may not use them.
func (a *ages) of(step, plan int, slots []slot) []uint32 {
	if step < 0 {
		return nil
	}
	if step < a.first || step >= a.first+a.span {
		a.first, a.plan = step, plan
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

// undone tells that the plans from one on are undone. A list that one of them sorted lacks the slots which it gave to others.
func (a *ages) undone(plan int) {
	if a.plan >= plan {
		a.first = notSorted
	}
}
