package kernels

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMatMulFunction covers what the conformance suite cannot reach: the plain function, which looks for NaN on its own.
func TestMatMulFunction(t *testing.T) {
	const m, n, k = 70, 200, 300
	a, b := floatsFrom(1, m*k), floatsFrom(2, k*n)
	for i := range a {
		a[i] = max(a[i], 0)
	}
	for _, special := range []float64{1, math.NaN(), math.Inf(1)} {
		b[0] = float32(special)
		for kind := range 4 {
			got, want := make([]float32, m*n), make([]float32, m*n)
			MatMul(got, a, b, m, n, k, kind&1 != 0, kind&2 != 0, false)
			matMulRef(want, a, b, m, n, k, kind&1 != 0, kind&2 != 0, false)
			for i := range want {
				if want[i] != want[i] {
					require.True(t, got[i] != got[i], "transposes %d, element %d: %v, want NaN", kind, i, got[i])
				} else if got[i] != want[i] {
					require.InDelta(t, want[i], got[i], 1e-3, "transposes %d, element %d", kind, i)
				}
			}
		}
	}
}

// TestMatMulStartsNoGoroutines holds gonum to what tileRows and tileCols count on: a tile is below its parallel size.
// AllocsPerRun would see the channel and the goroutines.
func TestMatMulStartsNoGoroutines(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	const m, n, k = 130, 400, 300
	a, b, dst := floatsFrom(1, m*k), floatsFrom(2, k*n), make([]float32, m*n)
	require.Zero(t, testing.AllocsPerRun(3, func() { MatMul(dst, a, b, m, n, k, false, false, false) }))
}

// TestOperationsAllocateLittle: at steady state nothing that grows with the data.
func TestOperationsAllocateLittle(t *testing.T) {
	c := NewCPU(2)
	x, w, y := tensorOf(c, 2000, 64, floatsFrom(1, 2000*64)), tensorOf(c, 64, 64, floatsFrom(2, 64*64)), tensorOf(c, 2000, 64, floatsFrom(3, 2000*64))
	sum := tensorOf(c, 1, 64, make([]float32, 64))
	step := func() {
		c.MatMul(y, x, w, false, false, false)
		c.Add(y, x)
		c.ColumnSumGrad(sum, y)
	}
	step()
	require.Less(t, testing.AllocsPerRun(5, step), 40.0)
}
