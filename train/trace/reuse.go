package trace

import (
	"math/bits"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
)

// reuse counts, as batches come, the different rows that windows of batches want, and the rows of a
// batch that the one before it wanted too.
type reuse struct {
	buf   *kernels.HostBuf
	last  []uint32 // batch of a row's last request, plus 1; 0 where there was none
	fresh []int64  // by batch, the first requests for their rows
	// rows[k] is a sum over whole windows of 2ᵏ batches, each counting a row once.
	rows    []int64
	steps   int
	every   int // batches of a group, each compared with the one before it; 0: one group
	compare Overlap
	wanted  int64 // rows of the compared batches
}

func newReuse(nodes, steps, every int) (*reuse, error) {
	buf, err := kernels.NewHostBuf(4 * nodes)
	if err != nil {
		return nil, err
	}
	return &reuse{
		buf: buf, last: buf.Uint32s(), fresh: make([]int64, steps), rows: make([]int64, bits.Len(uint(steps))), steps: steps, every: every,
	}, nil
}

func (u *reuse) close() { u.buf.Close() }

// add counts rows of a batch, after all rows of earlier batches. A request is the first of its
// window of 2ᵏ batches if the one before lies in another: if their numbers differ in bit k or
// above.
func (u *reuse) add(batch int, rows []uint32) {
	step := uint32(batch)
	var apart [33]int64 // by the length of the difference of the two numbers
	fresh, before := int64(0), int64(0)
	for _, v := range rows {
		if last := u.last[v]; last == 0 {
			fresh++
		} else {
			if last == step {
				before++
			}
			apart[bits.Len32((last-1)^step)]++
		}
		u.last[v] = step + 1
	}
	u.fresh[batch] += fresh
	if batch > 0 && (u.every == 0 || batch%u.every > 0) {
		u.compare.Rows, u.wanted = u.compare.Rows+before, u.wanted+int64(len(rows))
	}
	firsts := fresh
	for k := len(apart) - 1; k >= 0; k-- {
		if k < len(u.rows) && int(step) < u.steps>>k<<k { // in a whole window
			u.rows[k] += firsts
		}
		firsts += apart[k]
	}
}

func (u *reuse) windows() (w []Window) {
	for k, rows := range u.rows {
		n := u.steps >> k
		mean := float64(rows) / float64(n)
		w = append(w, Window{1 << k, n, mean, mean / float64(int(1)<<k)})
	}
	return w
}

// overlap returns the overlap of the batches so far.
func (u *reuse) overlap() Overlap {
	o := u.compare
	o.Share = float64(o.Rows) / float64(max(u.wanted, 1))
	return o
}

// groupOf returns how many batches share their draws, for reuse.every; 0 means all.
func groupOf(kappa int, smoothed bool) int {
	if kappa == 1 || kappa == sample.Forever || smoothed {
		return 0
	}
	return kappa
}
