package history

// ages finds the slots that a step wrote. All embeddings of a step expire in the same plan, and
// plans expire one step after the other. So ages sorts the slots by step, for span steps at a time,
// and sorts again when a plan asks for a later step. A slot that was freed or rewritten since stays
// in the list; readers compare stamps. So removing an embedding costs nothing here, and undo need
// not repair the list.
type ages struct {
	span   int      // steps of a list; at most t_stale, so that their writes are over
	first  int      // the first of these steps, or notSorted
	plan   int      // the plan that sorted
	ends   []uint32 // where the slots of each step end in sorted
	sorted []uint32 // slots, by step and then ascending
}

const notSorted = -1 << 62

// mostSpan bounds the counters of a sort, so that the processor's nearest cache has them all.
const mostSpan = 1024

func newAges(stale int) ages {
	span := min(stale, mostSpan)
	return ages{span: span, first: notSorted, ends: make([]uint32, span)}
}

// of returns the slots that a step wrote. plan is the first plan that may not use them.
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

// undone drops a list that plan, or a later one, sorted: it lacks the slots that those plans gave
// away.
func (a *ages) undone(plan int) {
	if a.plan >= plan {
		a.first = notSorted
	}
}
