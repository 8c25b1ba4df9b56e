package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// drawer draws batches on several goroutines, and gives them out in order.
type drawer struct {
	graph *store.Graph
	seeds []uint32 // of an epoch, in the order of the split
	order []uint32 // as an epoch meets them
	lanes []lane
	topo  *stoppable
}

// lane is what one goroutine draws with: two batches, of which one is in use while the other is drawn.
type lane struct{ batches [2]sample.Batch }

// stream is batches one after another, over as many epochs as it takes.
type stream struct {
	config     sample.Config
	batch      int // seeds of each; the last of an epoch may have fewer
	epochSteps int
	steps      int // of all epochs
	seed       uint64
	z          func(step int) sample.Z
}

// open finds the seeds: as in training the training nodes of the split that have a label, where there are labels.
// Without a split they are all nodes. It returns the name of the split.
func (d *drawer) open(ds *store.Dataset, split string, workers int) (string, error) {
	m := ds.Manifest()
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: %s", ds.Path(), fmt.Sprintf(format, args...))
	}
	if len(m.NodeTypes) != 1 || len(m.Relations) != 1 {
		return "", fail("%d node types and %d relations; samplers draw from one of each", len(m.NodeTypes), len(m.Relations))
	}
	d.graph, d.lanes = ds.Graph(0), make([]lane, workers)
	d.topo = &stoppable{Graph: d.graph}
	var all []string
	chosen := -1
	for i, s := range m.Splits {
		all = append(all, s.Name)
		if s.Name == split || split == "" && len(m.Splits) == 1 {
			chosen = i
		}
	}
	switch {
	case d.graph.Nodes() == 0:
		return "", fail("no nodes, so nothing to draw")
	case chosen >= 0:
		split = m.Splits[chosen].Name
		var labels *store.Labels
		if len(m.Labels) > 0 {
			labels = ds.Labels(0)
		}
		err := store.Guard(func() (err error) {
			d.seeds, err = ds.Labelled(ds.Split(chosen).Train, d.graph.Nodes(), labels)
			return err
		})
		if err == nil && len(d.seeds) == 0 {
			err = fail("split %s has no training node with a label", split)
		}
		if err != nil {
			return "", err
		}
	case split != "" && len(all) == 0:
		return "", fail("no split %q; without --split all nodes are seeds", split)
	case len(all) > 0:
		return "", fail("no split %q; --split takes one of: %s", split, strings.Join(all, ", "))
	default:
		d.seeds = make([]uint32, d.graph.Nodes())
		for v := range d.seeds {
			d.seeds[v] = uint32(v)
		}
	}
	d.order = make([]uint32, len(d.seeds))
	return split, nil
}

// taker has a batch until it returns.
type taker func(step int, b *sample.Batch) error

// draw gives the batches of s to take, one by one and in order.
func (d *drawer) draw(ctx context.Context, s stream, take taker) error {
	samplers := make([]*sample.Sampler, min(len(d.lanes), s.steps))
	for i := range samplers {
		samplers[i] = sample.NewSampler(d.topo, s.config)
	}
	for first := 0; first < s.steps; first += s.epochSteps {
		copy(d.order, d.seeds)
		sample.Shuffle(d.order, s.seed, first/s.epochSteps+1)
		if err := d.epoch(ctx, s, samplers, first, take); err != nil {
			return err
		}
	}
	return nil
}

// epoch draws the batches of an epoch from step first on. Each goroutine has every so-manieth of them.
func (d *drawer) epoch(ctx context.Context, s stream, samplers []*sample.Sampler, first int, take taker) error {
	outer := ctx
	g, ctx := errgroup.WithContext(ctx)
	steps := min(s.epochSteps, s.steps-first)
	drawn := make([]chan *sample.Batch, len(samplers))
	for w, sampler := range samplers {
		drawn[w] = make(chan *sample.Batch) // without room: who has sent one batch is free to draw into the one before
		g.Go(func() error {
			defer close(drawn[w])
			for i, n := w, 0; i < steps; i, n = i+len(samplers), n+1 {
				b := &d.lanes[w].batches[n%2]
				seeds := d.order[i*s.batch : min((i+1)*s.batch, len(d.order))]
				if err := d.sample(outer, sampler, b, s.z(first+i), seeds); err != nil {
					return err
				}
				select {
				case drawn[w] <- b:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		for i := range steps {
			b, ok := <-drawn[i%len(drawn)]
			if !ok {
				return nil // the goroutine that closed it has the error
			}
			if err := take(first+i, b); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

// sample draws b, and names the place of a neighbour that does not exist. It ends when ctx does.
func (d *drawer) sample(ctx context.Context, s *sample.Sampler, b *sample.Batch, z sample.Z, seeds []uint32) error {
	return store.Guard(func() (err error) {
		defer func() {
			if r := recover(); r == any(errStopped) {
				err = ctx.Err()
			} else if r != nil {
				panic(r)
			}
		}()
		err = s.Sample(b, z, seeds)
		var bad *sample.NeighborError
		if errors.As(err, &bad) {
			return d.graph.CorruptNeighbor(bad.Node, bad.Neighbor)
		}
		return err
	})
}

// stoppable is a graph from which drawing ends, in the middle of a batch: of a graph that is not in memory one batch
// takes seconds.
type stoppable struct {
	*store.Graph
	stopped atomic.Bool
}

// errStopped is the panic of a draw that is to end. It leaves a sampler through no return of its own, since a topology
// has no way to fail, and the sampler is not used again.
var errStopped = errors.New("stopped")

// Neighbors is that of the graph, until it is stopped.
func (s *stoppable) Neighbors(v uint32) []uint32 {
	if s.stopped.Load() {
		panic(errStopped)
	}
	return s.Graph.Neighbors(v)
}
