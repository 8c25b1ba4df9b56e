package generate

import (
	"context"
	"runtime"
	"sync"
)

// ordered makes chunks 0…n-1 on all processors, and takes them in order in the caller's goroutine.
// Two buffers a processor are under way; newBuffer makes each, and take is lent one for the call.
// It returns take's error as it is, or ctx's, which is looked at once a chunk, after every
// goroutine has ended.
func ordered[B any](ctx context.Context, n int64, newBuffer func() B, fill func(chunk int64, b B), take func(chunk int64, b B) error) error {
	workers := int(min(int64(2*runtime.GOMAXPROCS(0)), n))
	full, empty := make([]chan B, workers), make([]chan struct{}, workers)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	for w := range workers {
		full[w], empty[w] = make(chan B), make(chan struct{})
		wg.Go(func() {
			b := newBuffer()
			for chunk := int64(w); chunk < n; chunk += int64(workers) {
				fill(chunk, b)
				select {
				case full[w] <- b:
				case <-stop:
					return
				}
				select {
				case <-empty[w]:
				case <-stop:
					return
				}
			}
		})
	}
	for chunk := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		w := chunk % int64(workers)
		if err := take(chunk, <-full[w]); err != nil {
			return err
		}
		empty[w] <- struct{}{}
	}
	return ctx.Err()
}
