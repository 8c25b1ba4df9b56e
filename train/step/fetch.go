package step

import "github.com/gnnstore/gnnstore/kernels"

// fetched is host memory for what a step fetches. Its slices are used again by the step after next.
type fetched struct {
	floats lender[float32]
	ints   lender[uint32]
}

// lender lends slices, and lends them again after reset.
type lender[T any] struct {
	all  [][]T
	lent int
}

func (s *lender[T]) reset() { s.lent = 0 }

// get lends a slice of n elements.
func (s *lender[T]) get(n int) []T {
	if s.lent == len(s.all) {
		s.all = append(s.all, nil)
	}
	s.lent++
	x := &s.all[s.lent-1]
	*x = resize(*x, n)
	return *x
}

// turn begins another step. What the step before has fetched and uploaded stays.
func (f *Feed) turn() {
	if f.before != nil {
		f.now, *f.before = *f.before, f.now
	}
	f.came[0], f.came[1] = f.came[1], f.came[0]
	f.came[0].floats.reset()
	f.came[0].ints.reset()
}

// Fetch begins to copy t to the host. The numbers are there once [Launched.Wait] has returned, or
// while the function runs that [Task].Loss returns, and valid until the step after next.
func (f *Feed) Fetch(t kernels.Tensor) []float32 {
	dst := f.came[0].floats.get(t.Len())
	f.be.FetchF32(dst, t)
	return dst
}

// FetchLoss is Fetch of losses of rows. If one of them is not finite, the step will change nothing:
// see [LossError].
func (f *Feed) FetchLoss(rows kernels.Tensor) []float32 {
	f.be.CheckFinite(f.void, rows)
	return f.Fetch(rows)
}

// FetchLargest is Fetch of the column of each row's largest logit.
func (f *Feed) FetchLargest(logits kernels.Tensor) []uint32 {
	out := kernels.Tensor{Buf: f.room(largest, kernels.U32, logits.Rows), Type: kernels.U32, Rows: logits.Rows, Cols: 1}
	f.be.ArgMax(out, logits)
	return f.fetchInts(out)
}

func (f *Feed) fetchInts(t kernels.Tensor) []uint32 {
	dst := f.came[0].ints.get(t.Len())
	f.be.FetchU32(dst, t)
	return dst
}

// Sum adds up numbers in their order.
func Sum(numbers []float32) (sum float64) {
	for _, x := range numbers {
		sum += float64(x)
	}
	return sum
}
