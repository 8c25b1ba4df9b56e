package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/stream"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// newestGroup is the number of events that we draw together, 16 batches of our size, and
// newestCompared the number that are compared one by one.
const (
	newestGroup    = 16 * 600
	newestCompared = 2000
)

// newestBatches has the batch sizes: 200 of PyTorch Geometric's example, 600 of ours, and a larger
// one.
var newestBatches = []int{200, 600, 4000}

// newestTurn has the figures of drawing all events of training once.
type newestTurn struct {
	Seconds   float64 `json:"seconds"`
	Processor float64 `json:"processor"`
	Roots     int64   `json:"roots"`
	Neighbors int64   `json:"neighbors"`
}

// compareNewest alternates drawing all events' newest neighbours, one thread each, with PyTorch
// Geometric's LastNeighborLoader. The loader looks up each node once, as of before the batch. Ours
// finds the neighbours before each event, in the batch or not, and lays out times, events and rows
// besides. Drawn one event at a time, both are the same.
func compareNewest(ctx context.Context, c *comparison) error {
	events, err := stream.Find(c.ds, "")
	if err != nil {
		return err
	}
	n, err := newNewest(ctx, events)
	if err != nil {
		return err
	}
	defer n.sampler.Close()
	if err := n.export(c.tmp); err != nil {
		return err
	}
	var ready struct {
		Versions string     `json:"versions"`
		Lists    [][]uint32 `json:"lists"`
	}
	c.threads = 1
	torch, err := c.startPython(ctx, &ready, "newest.py", c.tmp)
	if err != nil {
		return err
	}
	defer torch.close() //nolint:errcheck // what matters was read
	same, err := n.sameLists(ctx, ready.Lists)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s: the %d events of training in their order, %d newest neighbours of sources, destinations and one negative each, one thread each side; %s. "+
		"Of the first %d events, one at a time, %.2f %% of the lists are the same. %d turns; median (smallest–largest):\n\n",
		c.base(), n.events, streamFanout, ready.Versions, len(ready.Lists)/2, 100*same, c.rounds)
	tableHead(c.out, "| batch | thousand events a second: gnnstore, LastNeighborLoader | of theirs | million neighbours a second | of theirs | neighbours: ours, theirs |")
	for _, batch := range newestBatches {
		us := &side[newestTurn]{name: "gnnstore", turn: func(ctx context.Context) (newestTurn, error) { return n.turn(ctx, batch) }}
		them := &side[newestTurn]{name: "LastNeighborLoader", turn: asks[newestTurn](torch, strconv.Itoa(batch))}
		t := turns[newestTurn]{sides: []*side[newestTurn]{us, them}, columns: []column[newestTurn]{
			{format: "%.0f", of: func(t newestTurn) float64 { return float64(n.events) / t.Seconds / 1e3 }},
			{format: "%.1f", of: func(t newestTurn) float64 { return float64(t.Neighbors) / t.Seconds / 1e6 }},
		}}
		if err := t.run(ctx, c.rounds); err != nil {
			return err
		}
		fmt.Fprintf(c.out, "| %d |", batch)
		for i, column := range t.columns {
			ours, theirs := t.figures(us, i), t.figures(them, i)
			fmt.Fprintf(c.out, " %s, %s | %s |", ours.spread(column.format), theirs.spread(column.format), ours.over(theirs).spread("%.2f"))
		}
		fmt.Fprintf(c.out, " %d, %d |\n", us.turns[0].Neighbors, them.turns[0].Neighbors)
	}
	return nil
}

// newest draws the part of a stream that trains.
type newest struct {
	of         *store.Events
	sampler    *temporal.Sampler
	population []uint32
	events     int64
	into       []*temporal.Batch
}

func newNewest(ctx context.Context, of *store.Events) (n *newest, err error) {
	n = &newest{of: of, events: of.Stream.Split.Train}
	if n.population, err = temporal.Destinations(of, 0, n.events); err != nil {
		return nil, err
	}
	n.sampler, err = temporal.NewSampler(ctx, of, temporal.SamplerOptions{Fanout: streamFanout, Workers: 1})
	return n, err
}

func (n *newest) negatives() temporal.Negatives {
	return temporal.Negatives{Population: n.population, Each: 1, Key: 1}
}

// draw draws the first events, batch by batch, and hands each batch to use.
func (n *newest) draw(ctx context.Context, events int64, batch int, use func(*temporal.Batch)) error {
	if err := n.sampler.Seek(ctx, 0); err != nil {
		return err
	}
	var steps []temporal.Step
	for from := int64(0); from < events; {
		steps = steps[:0]
		for ; from < events && len(steps) < max(1, newestGroup/batch); from += int64(batch) {
			steps = append(steps, temporal.Step{From: from, To: min(from+int64(batch), events), Negatives: n.negatives()})
			if len(n.into) < len(steps) {
				n.into = append(n.into, new(temporal.Batch))
			}
		}
		into := n.into[:len(steps)]
		if err := n.sampler.Draw(ctx, steps, into); err != nil {
			return err
		}
		for _, b := range into {
			use(b)
		}
	}
	return nil
}

func (n *newest) turn(ctx context.Context, batch int) (t newestTurn, err error) {
	start, before := time.Now(), kernels.ProcessorSeconds()
	err = n.draw(ctx, n.events, batch, func(b *temporal.Batch) {
		t.Roots, t.Neighbors = t.Roots+int64(len(b.Roots)), t.Neighbors+int64(len(b.NearRow))
	})
	t.Seconds, t.Processor = time.Since(start).Seconds(), kernels.ProcessorSeconds()-before
	return t, err
}

// sameLists is the share of lists, of an event's source and of its destination in turns, that are
// ours when it is drawn by itself.
func (n *newest) sameLists(ctx context.Context, lists [][]uint32) (float64, error) {
	same, at := 0, 0
	err := n.draw(ctx, int64(len(lists)/2), 1, func(b *temporal.Batch) {
		for _, root := range []uint32{b.Src[0], b.Dst[0]} {
			var ours []uint32
			for _, e := range b.NearEvent[b.NearStart[root]:b.NearEnd[root]] {
				ours = append(ours, b.Events[e])
			}
			slices.Sort(ours)
			slices.Reverse(ours)
			if slices.Equal(ours, lists[at]) {
				same++
			}
			at++
		}
	})
	return float64(same) / float64(max(1, len(lists))), err
}

// export writes the events as newest.py reads them.
func (n *newest) export(dir string) error {
	w := npyWriter{dir: dir}
	var src, dst, negative []uint32
	err := store.Guard(func() error {
		sources, destinations := n.of.Ends(0, n.events)
		of := n.negatives()
		for e := range n.events {
			src, dst = append(src, uint32(sources[e])), append(dst, uint32(n.of.Place(destinations[e])))
			negative = append(negative, of.Of(e, 0))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name, v := range map[string][]uint32{"src": src, "dst": dst, "negative": negative} {
		w.write(name, "<i4", []int{len(v)}, v)
	}
	_, err = w.job(map[string]any{"nodes": n.of.Places(), "fanout": streamFanout, "compared": min(n.events, newestCompared)})
	return err
}
