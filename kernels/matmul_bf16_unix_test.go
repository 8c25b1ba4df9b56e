//go:build unix

package kernels

import (
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestProductsSurviveSignals multiplies on several goroutines while signals arrive all the time:
// the profiler's, and those by which Go stops a goroutine for another one or for the garbage
// collector. What the registers hold, tiles too, must be there again after each.
func TestProductsSurviveSignals(t *testing.T) {
	const m, n, k = 130, 70, 1100 // of many calls to a routine, and several pieces
	lasts := time.Second
	if testing.Short() {
		lasts /= 10
	}
	if pprof.StartCPUProfile(io.Discard) == nil { // else go test has one running
		defer pprof.StopCPUProfile()
	}
	a, b := floatsFrom(1, m*k), floatsFrom(2, k*n)
	for _, c := range allCPUs(1) {
		if c.set == Portable {
			continue
		}
		products := func(c *CPU) (results [][]float32) {
			for kind := range 4 {
				dst := make([]float32, m*n)
				c.product(dst, a, b, m, n, k, kind&1 != 0, kind&2 != 0, false)
				results = append(results, dst)
			}
			return results
		}
		want := products(c)
		end := make(chan struct{})
		var disturbing, multiplying sync.WaitGroup
		for _, disturb := range []func(){runtime.GC, func() {
			assert.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGURG))
			runtime.Gosched()
		}} {
			disturbing.Go(func() {
				for {
					select {
					case <-end:
						return
					default:
						disturb()
					}
				}
			})
		}
		differ := make([]int, 4)
		until := time.Now().Add(lasts / 4)
		for i := range differ {
			multiplying.Go(func() {
				own := NewCPU(CPUOptions{Threads: 1 + i%2, Set: c.set, Products: productsOf(c)})
				for time.Now().Before(until) {
					for kind, got := range products(own) {
						for j := range got {
							if got[j] != want[kind][j] {
								differ[i]++
							}
						}
					}
				}
			})
		}
		multiplying.Wait()
		close(end)
		disturbing.Wait()
		require.Equal(t, make([]int, 4), differ, "%s: elements of each goroutine that are not as they were", called(c))
	}
}
