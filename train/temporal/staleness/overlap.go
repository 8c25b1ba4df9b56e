package staleness

// Overlap counts how much of the state that steps read was written just before. Node v is out of
// date for a step i that sees updates up to i-k when one of the steps i-k+1 to i-1 wrote it.
// Overlap takes 4 bytes a node, and 16 a step at most.
type Overlap struct {
	last   []uint32  // by node: the step that wrote it last, from 1; 0: none
	lags   []float64 // lags[l]: over all steps, the share of nodes read that were written l steps before
	before []float64 // by step: of the steps up to it, the share of nodes read that were written at all
}

// NewOverlap is for nodes of numbers below so many.
func NewOverlap(nodes int) *Overlap {
	return &Overlap{last: make([]uint32, nodes), before: []float64{0}}
}

func (o *Overlap) steps() int { return len(o.before) - 1 }

// Add counts the next step. It reads the state of the nodes in read, each named once, and then
// writes the state of the nodes in written.
func (o *Overlap) Add(read, written []uint32) {
	step, found := len(o.before), 0
	for _, v := range read {
		last := int(o.last[v])
		if last == 0 {
			continue
		}
		lag := step - last
		for lag >= len(o.lags) {
			o.lags = append(o.lags, 0)
		}
		o.lags[lag] += 1 / float64(len(read))
		found++
	}
	for _, v := range written {
		o.last[v] = uint32(step)
	}
	o.before = append(o.before, o.before[step-1]+float64(found)/float64(max(1, len(read))))
}

// Share is the share of the nodes read that staleness k leaves out of date: the mean over the steps
// from the k-th on, as those before see nothing in any case. It is 0 at k = 1, and where there are
// fewer steps than k.
func (o *Overlap) Share(k int) float64 {
	if k > o.steps() {
		return 0
	}
	written := 0.0
	for lag := 1; lag < min(k, len(o.lags)); lag++ {
		written += o.lags[lag]
	}
	return o.share(k, written)
}

// share is Share by how much was written fewer than k steps before.
func (o *Overlap) share(k int, written float64) float64 {
	return (written - o.before[k-1]) / float64(o.steps()-k+1)
}

// Most is the largest k up to which at most half of what a step reads is out of date: beyond that,
// accuracy suffers (MSPipe, section 4.2). It is at least 1, and at most the number of steps.
func (o *Overlap) Most() int {
	written, k := 0.0, 1
	for ; k < o.steps(); k++ {
		if k < len(o.lags) {
			written += o.lags[k]
		}
		if o.share(k+1, written) > 0.5 {
			break
		}
	}
	return k
}
