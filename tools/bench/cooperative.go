package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/sample"
)

// cooperation has the counts of workers that draw, read and compute together, by column of
// coopColumns: the mean over workers, and the count of the worker with most.
type cooperation struct {
	mean, largest []float64
	cold          float64 // rows of all workers
}

// coopColumns names the counts of a worker. S^l counts its own nodes l edges from the seeds; of the
// last hop they are the rows that it reads. S̃^l counts the different nodes that it finds, and
// c·S̃^l the nodes among them that other workers own. E^l counts the edges that it draws from S^l.
var coopColumns = []string{
	"S³", "cS̃³", "S̃³", "E²", "S²", "cS̃²", "S̃²", "E¹", "S¹", "cS̃¹", "lists", "neighbours",
}

// countTogether counts the work of workers that draw together, by SampleCooperative. It returns an
// error if the workers draw other edges than one worker that draws for all seeds.
func countTogether(
	ctx context.Context, d *data.Data, c sample.Config, deal *dealing, seedCount, stepCount int,
) (n cooperation, err error) {
	host, err := dist.Open(dist.Options{Way: dist.Local, Workers: deal.workers})
	if err != nil {
		return n, err
	}
	defer host.Close()
	owner := func(_ int, v uint32) int { return deal.owner[v] }
	topology := func() []sample.Topology { return []sample.Topology{d.Relations[0].AtHand(false)} }
	steps := make([][]*sample.Batch, deal.workers)
	err = host.Run(ctx, func(ctx context.Context, g *dist.Group) error {
		p := &sample.Parts{Rank: g.Rank(), Workers: g.Size(), Owner: owner, Reads: []bool{true}}
		p.Exchange = func(_ context.Context, send [][]byte) ([][]byte, error) { return send, nil }
		if drawing := g.Drawing(); drawing != nil {
			defer drawing.Leave(nil)
			p.Exchange = func(ctx context.Context, send [][]byte) ([][]byte, error) {
				return drawing.Exchange(ctx, dist.At{}, send)
			}
		}
		var batches []*sample.Batch
		var batchSeeds []sample.BatchSeed
		var seeds [][][]uint32
		for step := range stepCount {
			lo, hi := g.Share(seedCount)
			batches = append(batches, new(sample.Batch))
			batchSeeds = append(batchSeeds, sample.Alone(1, 1, step))
			seeds = append(seeds, [][]uint32{d.Train[step*seedCount+lo : step*seedCount+hi]})
		}
		s := sample.NewTyped(d.Schema(), topology(), c, 1)
		s.Guard = store.Guard
		steps[g.Rank()] = batches
		return s.SampleCooperative(ctx, p, nil, batches, batchSeeds, seeds)
	})
	if err != nil {
		return n, err
	}
	n = cooperation{make([]float64, len(coopColumns)), make([]float64, len(coopColumns)), 0}
	one, s := new(sample.Batch), sample.NewTyped(d.Schema(), topology(), c, 1)
	for step := range stepCount {
		seeds := d.Train[step*seedCount : (step+1)*seedCount]
		if err := s.SampleOne(ctx, one, sample.Alone(1, 1, step), seeds); err != nil {
			return n, err
		}
		var batches []*sample.Batch
		for p := range steps {
			batches = append(batches, steps[p][step])
		}
		if err := sameLists(batches, one); err != nil {
			return n, fmt.Errorf("step %d of %d workers: %w", step, deal.workers, err)
		}
		n.add(d, deal, batches)
	}
	for i := range coopColumns {
		n.mean[i] /= 1000 * float64(stepCount*deal.workers)
		n.largest[i] /= 1000 * float64(stepCount)
	}
	n.cold /= 1000 * float64(stepCount)
	return n, nil
}

// add adds the counts of a step; batches has the batch of each worker.
func (n *cooperation) add(d *data.Data, deal *dealing, batches []*sample.Batch) {
	hot := uint32(coopHot * float64(d.Types[0].Nodes))
	largest := make([]float64, len(coopColumns))
	for p, b := range batches {
		others := func(layer int) (found int) {
			for _, v := range b.Layers[layer].Nodes[0].Src {
				if deal.owner[v] != p {
					found++
				}
			}
			return found
		}
		lists, neighbors := 0, 0
		for l := range b.Layers {
			nodes := &b.Layers[l].Nodes[0]
			for _, v := range nodes.Src[:nodes.Dst] {
				lists++
				neighbors += d.Relations[0].Degree(v)
			}
		}
		inputs, middle := &b.Layers[0], &b.Layers[1]
		rows := b.Reads()[0]
		for i, x := range []int{
			len(rows), others(0), len(inputs.Nodes[0].Src), len(inputs.Blocks[0].Nbr),
			inputs.Nodes[0].Dst, others(1), len(middle.Nodes[0].Src), len(middle.Blocks[0].Nbr),
			middle.Nodes[0].Dst, others(2), lists, neighbors,
		} {
			n.mean[i] += float64(x)
			largest[i] = max(largest[i], float64(x))
		}
		for _, v := range rows {
			if deal.row[v] >= hot {
				n.cold++
			}
		}
	}
	for i := range largest {
		n.largest[i] += largest[i]
	}
}

// sameLists returns an error unless batches together have the lists of one, each list once, and
// read as many rows as one does.
func sameLists(batches []*sample.Batch, one *sample.Batch) error {
	rows := 0
	for _, b := range batches {
		rows += len(b.Reads()[0])
	}
	if rows != len(one.Inputs()[0]) {
		return fmt.Errorf("they read %d rows; the batch of all seeds has %d", rows, len(one.Inputs()[0]))
	}
	list := func(l *sample.Layer, i int) (ids []uint32) {
		for _, n := range l.Blocks[0].Nbr[l.Blocks[0].Start[i]:l.Blocks[0].End[i]] {
			ids = append(ids, l.Nodes[0].Src[n])
		}
		return ids
	}
	for l := range one.Layers {
		drawn := map[uint32][]uint32{}
		for _, b := range batches {
			for i, v := range b.Layers[l].Nodes[0].Src[:b.Layers[l].Nodes[0].Dst] {
				if _, twice := drawn[v]; twice {
					return fmt.Errorf("two of them draw from node %d in layer %d", v, l)
				}
				drawn[v] = list(&b.Layers[l], i)
			}
		}
		nodes := &one.Layers[l].Nodes[0]
		if len(drawn) != nodes.Dst {
			return fmt.Errorf("they draw from %d nodes in layer %d, and the batch of all from %d", len(drawn), l, nodes.Dst)
		}
		for i, v := range nodes.Src[:nodes.Dst] {
			if !slices.Equal(drawn[v], list(&one.Layers[l], i)) {
				return fmt.Errorf("node %d has other neighbours in layer %d", v, l)
			}
		}
	}
	return nil
}

// knownCoop has the counts of the worker with most, in thousands by column, and the cold rows of
// all workers, on ogbn-arxiv, undirected and ordered by degree. A trial counted them before there
// was SampleCooperative.
var knownCoop = []struct {
	kind    sample.Kind
	workers int
	counts  map[string]float64
	cold    float64
}{
	{sample.NS, 1, map[string]float64{"S³": 84.1, "S̃³": 84.1, "E²": 241, "S²": 29.9}, 76},
	{sample.NS, 4, map[string]float64{
		"S³": 21.1, "cS̃³": 27.2, "S̃³": 39.8, "E²": 61, "S²": 7.6, "cS̃²": 7.6,
	}, 56},
	{sample.NS, 8, map[string]float64{
		"S³": 10.6, "cS̃³": 19.2, "S̃³": 24.4, "E²": 31, "S²": 3.8, "cS̃²": 4.9,
	}, 34},
	{sample.Labor0, 1, map[string]float64{"S³": 70.3}, 64},
	{sample.Labor0, 4, map[string]float64{"S³": 17.7}, 49},
	{sample.Labor0, 8, map[string]float64{"S³": 8.9}, 31},
}

// coopTolerance is the share by which a count may differ from the known one.
const coopTolerance = 0.02

// check returns an error if a count differs from the known one. The counts are of ogbn-arxiv, with
// owners by the rule.
func (n *cooperation) check(kind sample.Kind, workers int) error {
	for _, known := range knownCoop {
		if known.kind != kind || known.workers != workers {
			continue
		}
		off := func(name string, got, want float64) error {
			if math.Abs(got-want) > coopTolerance*want {
				return fmt.Errorf("%s, %d workers: %s is %.2f thousand; %.2f is known", kind, workers, name, got, want)
			}
			return nil
		}
		for i, name := range coopColumns {
			if want, ok := known.counts[name]; ok {
				if err := off(name, n.largest[i], want); err != nil {
					return err
				}
			}
		}
		if err := off("cold", n.cold, known.cold); err != nil {
			return err
		}
	}
	return nil
}

// printTogether counts workers that draw together, and prints the counts by sampler and dealing.
// alone has the cold rows of workers that each read for themselves, by sampler and number of
// workers.
func printTogether(
	ctx context.Context, c *comparison, d *data.Data, deals []*dealing, alone map[sample.Kind]map[int]float64,
) error {
	arxiv := d.Types[0].Nodes == 169_343 && d.Relations[0].Edges() == 2_315_598
	fmt.Fprintf(c.out, "\nWorkers that draw together: what each draws, finds, reads and computes, of its own nodes; mean "+
		"and largest. Then the rows past the first %.0f %% of the rows, as many at each owner, and of workers that read for "+
		"themselves:\n\n", 100*coopHot)
	fmt.Fprintf(c.out, "| sampler | owners | V | %s | cold | cold, alone | ÷ |\n|%s\n",
		strings.Join(coopColumns, " | "), strings.Repeat("---|", len(coopColumns)+6))
	for _, kind := range coopSamplers {
		for _, deal := range deals {
			config := sample.Config{Kind: kind, Fanouts: coopFanouts}
			n, err := countTogether(ctx, d, config, deal, coopSeeds, coopSteps)
			if err != nil {
				return err
			}
			var cells []string
			for i := range coopColumns {
				cells = append(cells, fmt.Sprintf("%.2f, %.2f", n.mean[i], n.largest[i]))
			}
			cold := alone[kind][deal.workers]
			fmt.Fprintf(c.out, "| %s | %s | %d | %s | %.1f | %.1f | %.2f |\n",
				kind, deal.name, deal.workers, strings.Join(cells, " | "), n.cold, cold, cold/n.cold)
			if c.check && arxiv && deal.name == byRule {
				if err := n.check(kind, deal.workers); err != nil {
					return err
				}
			}
		}
	}
	if c.check {
		fmt.Fprintln(c.out, "\nAll workers together have the lists of the batch of all seeds, each once.")
		if arxiv {
			fmt.Fprintf(c.out, "Counts by the rule are the known ones, within %.0f %%.\n", 100*coopTolerance)
		}
	}
	return nil
}
