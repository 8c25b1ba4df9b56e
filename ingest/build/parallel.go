package build

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// parallel calls work on [0, chunk), [chunk, 2·chunk), … of [0, n) on all processors, and stops
// handing out chunks when ctx ends. Callers write to disjoint places or add atomically, so that
// results do not depend on who did what.
func parallel(ctx context.Context, n, chunk int, work func(lo, hi int)) error {
	workers := min(runtime.GOMAXPROCS(0), (n+chunk-1)/chunk)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				lo := int(next.Add(1)-1) * chunk
				if lo >= n {
					return
				}
				work(lo, min(lo+chunk, n))
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}
