package trace

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/sample"
)

// drawer draws batches in groups of one batch a thread, and passes them on in order.
type drawer struct {
	data   *data.Data         // relations, and in Train the seeds of an epoch
	order  []uint32           // the seeds in the order of the epoch
	groups [2][]*sample.Batch // one is in use while the other is drawn
}

// stream is a sequence of batches, over as many epochs as it takes.
type stream struct {
	config     sample.Config
	batch      int // seeds of each; the last of an epoch may have fewer
	epochSteps int
	steps      int // of all epochs
	seed       uint64
	batchSeed  func(step int) sample.BatchSeed

	// expand returns the Expander for n steps, starting with step first; nil: all is drawn. With
	// expand at most most steps are drawn together, none on both sides of the beginning of step
	// cut, and they are passed on before the next are drawn.
	expand    func(first, n int) sample.Expander
	most, cut int
}

// open finds the relations and the seeds.
func (d *drawer) open(ds *store.Dataset, o data.Options, threads int) (err error) {
	if d.data, err = data.OpenToDraw(ds, o); err != nil {
		return err
	}
	for range threads {
		for i := range d.groups {
			d.groups[i] = append(d.groups[i], new(sample.Batch))
		}
	}
	d.order = make([]uint32, len(d.data.Train))
	return nil
}

// sampler makes a sampler.
func (d *drawer) sampler(c sample.Config) *sample.Sampler {
	lists := make([]sample.Topology, len(d.data.Relations))
	for i, r := range d.data.Relations {
		lists[i] = r.AtHand(false)
	}
	s := sample.NewTyped(d.data.Schema(), lists, c, len(d.groups[0]))
	d.data.BringRows(s, func(r int) sample.Rows { return d.data.Relations[r].Rows() })
	s.Guard = store.Guard
	return s
}

// taker has a batch until it returns.
type taker func(step int, b *sample.Batch) error

// draw calls take with the batches of s, one by one and in order.
func (d *drawer) draw(ctx context.Context, s stream, take taker) error {
	sampler := d.sampler(s.config)
	if s.expand != nil {
		return d.drawThrough(ctx, sampler, s, take)
	}
	g, ctx := errgroup.WithContext(ctx)
	drawn := make(chan []*sample.Batch) // without room: once a group is received, the one before it is free
	g.Go(func() error {
		defer close(drawn)
		for first, n := 0, 0; first < s.steps; n++ {
			group := d.groups[n%2]
			group = group[:min(len(group), s.epochSteps-first%s.epochSteps, s.steps-first)]
			if err := d.sample(ctx, sampler, nil, s, first, group); err != nil {
				return err
			}
			select {
			case drawn <- group:
			case <-ctx.Done():
				return ctx.Err()
			}
			first += len(group)
		}
		return nil
	})
	g.Go(func() error {
		step := 0
		for group := range drawn {
			for _, b := range group {
				if err := take(step, b); err != nil {
					return err
				}
				step++
			}
		}
		return nil
	})
	return g.Wait()
}

// drawThrough is draw with s.expand: draws depend on the use of earlier steps.
func (d *drawer) drawThrough(ctx context.Context, sampler *sample.Sampler, s stream, take taker) error {
	for first := 0; first < s.steps; {
		n := min(len(d.groups[0]), s.most, s.epochSteps-first%s.epochSteps, s.steps-first)
		if first < s.cut {
			n = min(n, s.cut-first)
		}
		group := d.groups[0][:n]
		if err := d.sample(ctx, sampler, s.expand(first, n), s, first, group); err != nil {
			return err
		}
		for i, b := range group {
			if err := take(first+i, b); err != nil {
				return err
			}
		}
		first += n
	}
	return nil
}

// seeds returns the seeds of a step. Steps come in order.
func (d *drawer) seeds(s stream, step int) []uint32 {
	at := step % s.epochSteps
	if at == 0 {
		copy(d.order, d.data.Train)
		sample.Shuffle(d.order, s.seed, step/s.epochSteps+1)
	}
	return d.order[at*s.batch : min((at+1)*s.batch, len(d.order))]
}

// sample draws the steps of s from first on, all of one epoch, and names the place of a neighbour
// that does not exist.
func (d *drawer) sample(ctx context.Context, sampler *sample.Sampler, e sample.Expander, s stream, first int, group []*sample.Batch) error {
	batchSeeds, seeds := make([]sample.BatchSeed, len(group)), make([][][]uint32, len(group))
	for i := range group {
		batchSeeds[i] = s.batchSeed(first + i)
		seeds[i] = d.data.Seeds(d.seeds(s, first+i))
	}
	return d.data.Place(sampler.SampleThrough(ctx, e, group, batchSeeds, seeds))
}
