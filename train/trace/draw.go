package trace

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/sample"
)

// drawer draws batches in groups, as many batches as workers, and gives them out in order.
type drawer struct {
	data   *data.Data         // its relations, and as Train the seeds of an epoch
	order  []uint32           // of the seeds, as an epoch meets them
	groups [2][]*sample.Batch // one is in use while the other is drawn
}

// stream is batches one after another, over as many epochs as it takes.
type stream struct {
	config     sample.Config
	batch      int // seeds of each; the last of an epoch may have fewer
	epochSteps int
	steps      int // of all epochs
	seed       uint64
	z          func(step int) sample.Z
}

// open finds the relations and the seeds.
func (d *drawer) open(ds *store.Dataset, o data.Options, workers int) (err error) {
	if d.data, err = data.OpenToDraw(ds, o); err != nil {
		return err
	}
	for range workers {
		for i := range d.groups {
			d.groups[i] = append(d.groups[i], new(sample.Batch))
		}
	}
	d.order = make([]uint32, len(d.data.Train))
	return nil
}

// taker has a batch until it returns.
type taker func(step int, b *sample.Batch) error

// draw gives the batches of s to take, one by one and in order.
func (d *drawer) draw(ctx context.Context, s stream, take taker) error {
	lists := make([]sample.Topology, len(d.data.Relations))
	for i, r := range d.data.Relations {
		lists[i] = r.AtHand(false)
	}
	sampler := sample.NewTyped(d.data.Schema(), lists, s.config, len(d.groups[0]))
	d.data.BringRows(sampler, func(r int) sample.Rows { return d.data.Relations[r].Rows() })
	sampler.Guard = store.Guard
	g, ctx := errgroup.WithContext(ctx)
	drawn := make(chan []*sample.Batch) // without room: once a group is received, the one before it is free
	g.Go(func() error {
		defer close(drawn)
		for first, n := 0, 0; first < s.steps; n++ {
			group := d.groups[n%2]
			group = group[:min(len(group), s.epochSteps-first%s.epochSteps, s.steps-first)]
			if err := d.sample(ctx, sampler, s, first, group); err != nil {
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

// sample draws the steps of s from first on, all of one epoch, and names the place of a neighbour that does not exist.
func (d *drawer) sample(ctx context.Context, sampler *sample.Sampler, s stream, first int, group []*sample.Batch) error {
	at := first % s.epochSteps
	if at == 0 {
		copy(d.order, d.data.Train)
		sample.Shuffle(d.order, s.seed, first/s.epochSteps+1)
	}
	z, seeds := make([]sample.Z, len(group)), make([][][]uint32, len(group))
	for i := range group {
		z[i] = s.z(first + i)
		seeds[i] = d.data.Seeds(d.order[(at+i)*s.batch : min((at+i+1)*s.batch, len(d.order))])
	}
	return d.data.Place(sampler.Sample(ctx, group, z, seeds))
}
