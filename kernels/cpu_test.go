package kernels

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// floatsFrom draws n values from a generator of its own, about half of them negative.
func floatsFrom(seed uint64, n int) []float32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(rng.NormFloat64())
	}
	return s
}

func tensorOf(b Backend, rows, cols int, values []float32) Tensor {
	t := Tensor{Buf: b.Alloc(F32, rows*cols), Rows: rows, Cols: cols}
	b.UploadF32(t, values)
	return t
}

func valuesOf(b Backend, t Tensor) []float32 {
	s := make([]float32, t.Len())
	b.DownloadF32(s, t)
	return s
}

// TestThreadsGiveTheSameBits runs the operations whose work is split in some other way than by
// element, on shapes of many chunks, for several numbers of threads.
func TestThreadsGiveTheSameBits(t *testing.T) {
	want := map[string]map[string][]float32{}
	for _, threads := range []int{1, 2, 3, 8} {
		for _, c := range allCPUs(threads) {
			got, set := manyChunks(c), called(c)
			if want[set] == nil {
				want[set] = got
			}
			for name := range want[set] {
				require.Equal(t, want[set][name], got[name], "%s: %s with %d threads", set, name, threads)
			}
		}
	}
}

func manyChunks(c *CPU) map[string][]float32 {
	const rows, cols, out = 3001, 65, 130
	results := map[string][]float32{}
	x := tensorOf(c, rows, cols, floatsFrom(1, rows*cols))
	dy := tensorOf(c, rows, out, floatsFrom(2, rows*out))
	w := tensorOf(c, cols, out, floatsFrom(3, cols*out))
	zeros := func(r, n int) Tensor { return tensorOf(c, r, n, make([]float32, r*n)) }

	y, dw, dwT, dx, wide := zeros(rows, out), zeros(cols, out), zeros(out, cols), zeros(rows, cols), zeros(20, 30)
	c.MatMul(y, x, w, false, false, false)
	c.MatMul(dw, x, dy, true, false, false)
	c.MatMul(dwT, dy, x, true, false, true)
	c.MatMul(dx, dy, w, false, true, false)
	// What was x is read as 20×3003 and 30×3003 to have a long inner dimension and a transposed b.
	long := Tensor{Buf: x.Buf, Rows: 20, Cols: 3003}
	longer := Tensor{Buf: x.Buf, Rows: 30, Cols: 3003}
	c.MatMul(wide, long, longer, false, true, false)
	for name, product := range map[string]Tensor{"x·w": y, "xᵀ·dy": dw, "dyᵀ·x": dwT, "dy·wᵀ": dx, "long": wide} {
		results[name] = valuesOf(c, product)
	}

	db := zeros(1, out)
	c.ColumnSumGrad(db, dy)
	results["ColumnSumGrad"] = valuesOf(c, db)

	gain, bias := tensorOf(c, 1, cols, floatsFrom(4, cols)), tensorOf(c, 1, cols, floatsFrom(5, cols))
	normed, stats, dgain, dbias := zeros(rows, cols), zeros(rows, 2), zeros(1, cols), zeros(1, cols)
	c.LayerNorm(normed, stats, x, gain, bias, 1e-5)
	c.LayerNormGrad(dx, dgain, dbias, normed, x, stats, gain, false)
	for name, tensor := range map[string]Tensor{"normed": normed, "stats": stats, "dx": dx, "dgain": dgain, "dbias": dbias} {
		results["LayerNorm "+name] = valuesOf(c, tensor)
	}

	times, dw := tensorOf(c, rows, 2, floatsFrom(6, 2*rows)), zeros(1, cols)
	db = zeros(1, cols)
	c.TimeEncodeGrad(dw, db, x, times, gain, bias)
	results["TimeEncode dw"], results["TimeEncode db"] = valuesOf(c, dw), valuesOf(c, db)
	return results
}

func TestParallelForCoversEveryIndexOnce(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 11, 100} {
		for _, threads := range []int{1, 2, 7} {
			counts := make([]int, n)
			parallelFor(threads, n, 10, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					counts[i]++
				}
			})
			for i := range counts {
				require.Equal(t, 1, counts[i], "n=%d threads=%d i=%d", n, threads, i)
			}
		}
	}
}

func TestParallelForRaisesAWorkersPanic(t *testing.T) {
	cause := fmt.Errorf("row 70")
	for _, threads := range []int{1, 4} {
		err := func() (err error) {
			defer func() { err, _ = recover().(error) }()
			parallelFor(threads, 100, 10, func(lo, _ int) {
				if lo == 70 {
					panic(cause)
				}
			})
			return nil
		}()
		require.ErrorIs(t, err, cause, "threads=%d", threads)
	}
}

// TestCPUWork: a product counts two operations for each multiplication, and its operands once.
func TestCPUWork(t *testing.T) {
	const n, o, i = 5, 7, 3
	for _, p := range []Precision{Float32, BF16} {
		for _, set := range SetsOf(p) {
			c := NewCPU(CPUOptions{Threads: 1, Set: set, Products: p})
			x, w := tensorOf(c, n, i, floatsFrom(1, n*i)), tensorOf(c, o, i, floatsFrom(2, o*i))
			y := tensorOf(c, n, o, floatsFrom(3, n*o))
			counted := func(products int64, f func()) {
				before, _ := WorkOf(c)
				f()
				after, _ := WorkOf(c)
				want := Work{ProductFlops: 2 * products * n * o * i, OperandBytes: products * 4 * (n*i + o*i + n*o)}
				require.Equal(t, want, after.Sub(before), set)
			}
			counted(1, func() { c.MatMul(y, x, w, false, true, false) })
			counted(1, func() { c.Affine(y, Tensor{}, false, Term{X: x, W: w}) })
			counted(2, func() {
				c.MatMul(w, y, x, true, false, false)
				c.MatMul(x, y, w, false, false, false)
			})
		}
	}
}
