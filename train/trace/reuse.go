package trace

import (
	"math/bits"

	"github.com/gnnstore/gnnstore/kernels"
)

// reuse finds out how many different rows windows of batches want, as batches come.
type reuse struct {
	buf   *kernels.HostBuf
	last  []uint32 // batch of a row's last request, plus 1; 0 where there was none
	fresh []int64  // by batch, the first requests for their rows
	// rows[k] is a sum over whole windows of 2ᵏ batches, each counting a row once.
	rows  []int64
	steps int
}

func newReuse(nodes, steps int) (*reuse, error) {
	buf, err := kernels.NewHostBuf(4 * nodes)
	if err != nil {
		return nil, err
	}
	return &reuse{
		buf: buf, last: buf.Uint32s(), fresh: make([]int64, steps), rows: make([]int64, bits.Len(uint(steps))), steps: steps,
	}, nil
}

func (u *reuse) close() { u.buf.Close() }

// add takes note of rows of a batch, after all those of batches before. A request is the first of its window of 2ᵏ batches if the
// one before lies in another: if their numbers differ in bit k or above.
func (u *reuse) add(batch int, rows []uint32) {
	step := uint32(batch)
	var apart [33]int64 // by the length of the difference of the two numbers
	fresh := int64(0)
	for _, v := range rows {
		if last := u.last[v]; last == 0 {
			fresh++
		} else {
			apart[bits.Len32((last-1)^step)]++
		}
		u.last[v] = step + 1
	}
	u.fresh[batch] += fresh
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
