package staleness

// Realised counts, while training at one staleness, which share of the nodes read had state that
// steps changed which must not be seen yet: what Overlap.Share says of all k at once. It remembers
// what that many steps wrote, and nothing of other nodes.
type Realised struct {
	Counted
	step  int
	last  map[uint32]int // by node: the step that wrote it last, of those remembered
	wrote [][]uint32     // by step, again and again
}

// Counted is the steps that a Realised has counted, and the sum of their shares. Its JSON keys are
// stable.
type Counted struct {
	Steps int     `json:"steps"`
	Sum   float64 `json:"sum"`
}

// Mean is the mean share.
func (c Counted) Mean() float64 { return c.Sum / float64(max(1, c.Steps)) }

// NewRealised is for a staleness of k.
func NewRealised(k int) *Realised {
	return &Realised{last: map[uint32]int{}, wrote: make([][]uint32, max(1, k)-1)}
}

// Begin forgets the steps before, as a range of steps does that begins with all state up to date.
// What was counted stays.
func (r *Realised) Begin() {
	r.step = 0
	clear(r.last)
	for i := range r.wrote {
		r.wrote[i] = r.wrote[i][:0]
	}
}

// Add is Overlap.Add. As there, the first k-1 steps are not counted.
func (r *Realised) Add(read, written []uint32) {
	if r.step++; r.step > len(r.wrote) {
		stale := 0
		for _, v := range read {
			if _, ok := r.last[v]; ok {
				stale++
			}
		}
		r.Steps++
		r.Sum += float64(stale) / float64(max(1, len(read)))
	}
	if len(r.wrote) == 0 {
		return
	}
	w := &r.wrote[r.step%len(r.wrote)]
	for _, v := range *w {
		if r.last[v] <= r.step-len(r.wrote) {
			delete(r.last, v)
		}
	}
	*w = append((*w)[:0], written...)
	for _, v := range written {
		r.last[v] = r.step
	}
}
