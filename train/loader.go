package train

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// batchesAhead is how many batches each worker may have finished and unused, which bounds memory.
const batchesAhead = 2

// loader samples the batches of an epoch ahead of the step: worker w draws steps w, w+workers, …, and the steps are
// used in order, so the number of workers changes no batch and no order.
type loader struct {
	data    *data
	workers []samplingWorker
}

type samplingWorker struct {
	sampler *sample.Sampler
	free    chan *sample.Batch // circulates batchesAhead batches, refilled in place
	ready   chan *sample.Batch
}

func newLoader(d *data, fanouts []int, workers int) *loader {
	l := &loader{data: d, workers: make([]samplingWorker, workers)}
	for w := range l.workers {
		l.workers[w].sampler = sample.NewSampler(d.graph, fanouts)
	}
	return l
}

// epoch calls use with each batch of seeds, in step order, from one goroutine inside store.Guard. Neither the batch nor
// its slices outlive the call.
func (l *loader) epoch(ctx context.Context, seeds []uint32, batch int, z func(step int) uint64,
	use func(step int, b *sample.Batch) error) error {
	steps := (len(seeds) + batch - 1) / batch
	g, ctx := errgroup.WithContext(ctx)
	for w := range l.workers {
		worker := &l.workers[w]
		worker.ready = make(chan *sample.Batch, batchesAhead)
		if worker.free == nil {
			worker.free = make(chan *sample.Batch, batchesAhead)
			for range batchesAhead {
				worker.free <- new(sample.Batch)
			}
		}
		g.Go(func() error {
			return store.Guard(func() error {
				for step := w; step < steps; step += len(l.workers) {
					select {
					case <-ctx.Done():
						return nil // the error is its own goroutine's
					case b := <-worker.free:
						if err := l.data.sample(worker.sampler, b, z(step), seeds[step*batch:min((step+1)*batch, len(seeds))]); err != nil {
							return err
						}
						worker.ready <- b // has room: only batchesAhead circulate
					}
				}
				return nil
			})
		})
	}
	g.Go(func() error {
		return store.Guard(func() error {
			for step := range steps {
				worker := &l.workers[step%len(l.workers)]
				select {
				case <-ctx.Done():
					return ctx.Err()
				case b := <-worker.ready:
					err := use(step, b)
					worker.free <- b
					if err != nil {
						return err
					}
				}
			}
			return nil
		})
	})
	err := g.Wait()
	for w := range l.workers { // what was drawn and not used
		for range len(l.workers[w].ready) {
			l.workers[w].free <- <-l.workers[w].ready
		}
	}
	return err
}
