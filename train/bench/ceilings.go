package bench

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
)

// Ceilings has the best rates of the machine on this many threads, to compare kernels with.
type Ceilings struct {
	Set      kernels.Set       `json:"kernels"`
	Products kernels.Precision `json:"matmul"`
	Threads  int               `json:"threads"`
	Flops    float64           `json:"flops"` // a second: multiplications and additions in registers
	How      string            `json:"how"`   // Flops were measured
	Bytes    float64           `json:"bytes"` // a second: memory read from one end to the other
}

// Bound has the seconds that work takes at the ceilings of a machine: its products at the peak, and
// its bytes at the rate of reading memory. Work takes at least the longer of the two, unless its
// bytes stay in a cache.
type Bound struct{ Products, Bytes float64 }

// Seconds is the longer of the two.
func (b Bound) Seconds() float64 { return max(b.Products, b.Bytes) }

// Bound returns the bound of so many operations of products, and bytes of operands. It is 0 where
// the ceiling is not known.
func (c Ceilings) Bound(flops, bytes float64) (b Bound) {
	if c.Flops > 0 {
		b.Products = flops / c.Flops
	}
	if c.Bytes > 0 {
		b.Bytes = bytes / c.Bytes
	}
	return b
}

// readBytes is more than a last-level cache holds for one of many tenants.
const readBytes = 256 << 20

// MeasureCeilings takes the best of five pieces of d altogether: other work on the machine can only
// make one slower.
func MeasureCeilings(set kernels.Set, products kernels.Precision, threads int, d time.Duration) Ceilings {
	const pieces = 5
	top := Ceilings{Set: set, Products: cmp.Or(products, kernels.Float32), Threads: threads, How: "multiply-adds in registers"}
	run := func() float64 { return float64(kernels.Peak(set)) }
	if run() == 0 {
		// No assembly: the best that the set's own product does in cache.
		top.How = "product of 96×96 matrices"
		run = smallProduct(set, products)
	}
	for range pieces {
		top.Flops = max(top.Flops, onThreads(threads, d/pieces, run))
	}
	be := open(kernels.Options{Threads: threads}) // of the fastest set: memory is the same for all
	const cols = 256
	big, sum := newMatrix(be, readBytes/4/cols, cols), newMatrix(be, 1, cols)
	defer be.Free(big.Buf)
	defer be.Free(sum.Buf)
	be.Fill(big, 1)
	for range pieces {
		_, each := Time(func() { be.ColumnSumGrad(sum, big) }, d/pieces)
		top.Bytes = max(top.Bytes, readBytes/each.Seconds())
	}
	return top
}

// smallProduct returns a product whose operands stay in the first two levels of cache; a run
// returns its operations.
func smallProduct(set kernels.Set, products kernels.Precision) func() float64 {
	const n = 96
	return func() float64 {
		be := open(kernels.Options{Threads: 1, Set: set, Products: products})
		x, y, z := newMatrix(be, n, n), newMatrix(be, n, n), newMatrix(be, n, n)
		for _, t := range []kernels.Tensor{x, y, z} {
			defer be.Free(t.Buf)
		}
		for range 64 {
			be.MatMul(z, x, y, false, true, false)
		}
		return 64 * 2 * n * n * n
	}
}

// onThreads runs run again and again for d, on so many goroutines at once, and returns the sum of
// what it returned in a second.
func onThreads(threads int, d time.Duration, run func() float64) float64 {
	var all sync.WaitGroup
	done := make([]float64, threads)
	start := time.Now()
	for i := range threads {
		all.Go(func() {
			for done[i] = run(); time.Since(start) < d; {
				done[i] += run()
			}
		})
	}
	all.Wait()
	spent, total := time.Since(start).Seconds(), 0.0
	for _, n := range done {
		total += n
	}
	return total / spent
}

// String is the ceilings as lines of a benchmark's head, key: value.
func (c Ceilings) String() string {
	return fmt.Sprintf("kernels: %s\nmatmul: %s\nthreads: %d\npeak: %.1f GFLOP/s (%s)\nread: %.1f GB/s (of %d MiB)",
		c.Set, c.Products, c.Threads, c.Flops/1e9, c.How, c.Bytes/1e9, readBytes>>20)
}
