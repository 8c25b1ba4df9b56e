package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// drawer draws batches in groups, as many batches as workers, and gives them out in order.
type drawer struct {
	graph  *store.Graph
	seeds  []uint32           // of an epoch, in the order of the split
	order  []uint32           // as an epoch meets them
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
	d.graph = ds.Graph(0)
	for range workers {
		for i := range d.groups {
			d.groups[i] = append(d.groups[i], new(sample.Batch))
		}
	}
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
		return "", fail("no split %q; without {split} all nodes are seeds", split)
	case len(all) > 0:
		return "", fail("no split %q; {split} takes one of: %s", split, strings.Join(all, ", "))
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
	sampler := sample.NewSampler(sample.AtHand(d.graph), s.config, len(d.groups[0]))
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
		copy(d.order, d.seeds)
		sample.Shuffle(d.order, s.seed, first/s.epochSteps+1)
	}
	z, seeds := make([]sample.Z, len(group)), make([][][]uint32, len(group))
	for i := range group {
		z[i] = s.z(first + i)
		seeds[i] = [][]uint32{d.order[(at+i)*s.batch : min((at+i+1)*s.batch, len(d.order))]}
	}
	err := sampler.Sample(ctx, group, z, seeds)
	var bad *sample.NeighborError
	if errors.As(err, &bad) {
		return d.graph.CorruptNeighbor(bad.Node, bad.Neighbor)
	}
	return err
}
