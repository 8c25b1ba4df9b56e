package kernels

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// chunkElements is about how many elements one chunk of an elementwise operation holds: 10 µs of
// work in assembly or more on arrays that lie in memory, three times that in Go, against the 1 µs
// that starting a goroutine costs.
const chunkElements = 1 << 16

// chunkRows is the number of rows in a chunk. It depends on the shape alone, never on the number of
// threads.
func chunkRows(cols int) int {
	return max(1, chunkElements/max(1, cols))
}

// parallelFor calls work on the chunks [0, chunk), [chunk, 2·chunk) … of [0, n), on up to threads
// goroutines. It returns when all are done. A panic in one of them stops the handing out of chunks
// and is raised again here.
func parallelFor(threads, n, chunk int, work func(lo, hi int)) {
	workers := min(threads, (n+chunk-1)/chunk)
	if workers <= 1 {
		for lo := 0; lo < n; lo += chunk {
			work(lo, min(lo+chunk, n))
		}
		return
	}
	f := fork{n: n, chunk: chunk, work: work}
	var others sync.WaitGroup
	for range workers - 1 {
		others.Go(f.run)
	}
	f.run()
	others.Wait()
	if p := f.failed.Load(); p != nil {
		panic(p)
	}
}

// forTasks calls work for each of count tasks. So many workers take them in turn, and work learns
// which worker calls it.
func forTasks(threads, workers, count int, work func(worker, task int)) {
	var next atomic.Int64
	parallelFor(threads, workers, 1, func(worker, _ int) {
		for {
			task := int(next.Add(1) - 1)
			if task >= count {
				return
			}
			work(worker, task)
		}
	})
}

// fork is one parallelFor in progress.
type fork struct {
	n, chunk int
	work     func(lo, hi int)
	next     atomic.Int64 // the next chunk to hand out
	failed   atomic.Pointer[workerPanic]
}

func (f *fork) run() {
	defer func() {
		if v := recover(); v != nil {
			f.failed.CompareAndSwap(nil, &workerPanic{value: v, stack: debug.Stack()})
		}
	}()
	for f.failed.Load() == nil {
		lo := int(f.next.Add(1)-1) * f.chunk
		if lo >= f.n {
			return
		}
		f.work(lo, min(lo+f.chunk, f.n))
	}
}

// workerPanic carries a panic to the goroutine that called, with the stack it would lose on the
// way.
type workerPanic struct {
	value any
	stack []byte
}

func (p *workerPanic) Error() string { return fmt.Sprintf("%v\n\nin a worker:\n%s", p.value, p.stack) }

// Unwrap gives the error that was panicked with, if it was one.
func (p *workerPanic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}
