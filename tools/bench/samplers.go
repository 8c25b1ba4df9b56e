package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/sample"
)

// samplerFanouts has the fanouts that samplers are compared at, from the seeds outward.
// typedFanouts is for a graph of several types, where each relation gets them. OGB's baselines on
// MAG240M have 25,15.
var (
	samplerFanouts = [][]int{{15, 10, 5}, {10, 10, 10}}
	typedFanouts   = [][]int{{15, 10}, {25, 15}}
)

// agreement is the largest relative difference of edges, and of different nodes, between the same
// sampler on both sides, over all batches. It is several times the chance of twenty batches of
// 1,000 seeds, where one vertex that many share makes LABOR keep or lack many edges.
const agreement = 0.02

// once is the kind of samplers that expand a node only at the hop that first reaches it.
const once = "once"

// ourSampler is one of ours that there is something to compare with: theirs of the same name, and
// of other kinds.
type ourSampler struct {
	name   string
	config sample.Config
	others []string
}

// ourSamplers are all of them; on a graph of several types it is the first alone.
var ourSamplers = []ourSampler{
	{"ns", sample.Config{Kind: sample.NS}, []string{"biased", once}},
	{"labor0 --poisson", sample.Config{Kind: sample.Labor0, Poisson: true}, nil},
	{"labor0", sample.Config{Kind: sample.Labor0}, []string{"labor0 --poisson"}},
}

// compareSamplers alternates our samplers with the C++ ones of DGL and PyTorch Geometric on the
// same seeds, one thread each, on the same processor.
func compareSamplers(ctx context.Context, c *comparison) error {
	d, err := data.OpenToDraw(c.ds, data.Options{})
	if err != nil {
		return err
	}
	train := d.Train
	if len(train) < c.batches*batchSize {
		return fmt.Errorf("%s: %d training nodes, and %d batches of %d want more; lower -batches", c.dataset, len(train), c.batches, batchSize)
	}
	sample.Shuffle(train, 1, 1)
	seeds := train[:c.batches*batchSize]
	c.threads = 1
	processor, free, err := pin()
	if err != nil {
		fmt.Fprintf(c.out, "note: %v; so the system moves both sides from processor to processor\n\n", err)
	}
	defer free()
	peer, theirs, err := c.startSamplers(ctx, d, seeds, processor)
	if err != nil {
		return err
	}
	defer peer.close() //nolint:errcheck // what matters was read
	fmt.Fprintf(c.out, "%s: %s; batches of %d seeds, %d a turn; one thread a side, on processor %d, timed by what it used of it. %s. %d turns, median (smallest–largest):\n\n",
		c.base(), extent(d), batchSize, c.batches, processor, theirs.Versions, c.rounds)
	c.printSkipped(theirs.Skipped)
	t := turns[drawnTurn]{columns: samplerColumns(c.batches)}
	t.head(c.out, "fanouts | sampler")
	all, samplers := samplerFanouts, ourSamplers
	if isTyped(d) {
		all, samplers = typedFanouts, ourSamplers[:1]
	}
	for _, fanouts := range all {
		for _, s := range samplers {
			s.config.Fanouts = fanouts
			if err := c.race(ctx, d, seeds, s, peer, theirs.Samplers); err != nil {
				return err
			}
		}
	}
	return nil
}

// isTyped reports whether there are several types or relations.
func isTyped(d *data.Data) bool { return len(d.Types) > 1 || len(d.Relations) > 1 }

// extent describes the size of a graph.
func extent(d *data.Data) string {
	nodes, edges := 0, int64(0)
	for _, t := range d.Types {
		nodes += t.Nodes
	}
	for _, r := range d.Relations {
		edges += r.Edges()
	}
	s := fmt.Sprintf("%d nodes, %d edges", nodes, edges)
	if isTyped(d) {
		s += fmt.Sprintf(", %d types, %d relations, seeds are of type %s", len(d.Types), len(d.Relations), d.Types[d.Target].Name)
	}
	return s
}

// samplerColumns are of turns of so many batches.
func samplerColumns(batches int) []column[drawnTurn] {
	n := float64(batches)
	edges := func(t drawnTurn) float64 { return t.Edges / t.Seconds / 1e6 }
	rate := func(t drawnTurn) float64 { return n / t.Seconds }
	return []column[drawnTurn]{
		{name: "edges, M/s", format: "%.1f", of: edges},
		{name: "batches/s", format: "%.1f", of: rate},
		{name: "edges a batch", format: "%.0f", show: last, of: func(t drawnTurn) float64 { return t.Edges / n }},
		{name: "nodes a batch", format: "%.0f", show: last, of: func(t drawnTurn) float64 { return t.Nodes / n }},
		{name: "ours / theirs, edges/s", format: "%.2f", show: inverse, of: edges},
		{name: "batches/s", format: "%.2f", show: inverse, of: rate},
	}
}

// race prints a row for each sampler, ours before theirs.
func (c *comparison) race(ctx context.Context, d *data.Data, seeds []uint32, s ourSampler, peer *python, theirs []peerSampler) error {
	ours := newDrawn(d, s.config, seeds)
	name := setting.FormatInts(s.config.Fanouts) + " | "
	us := &side[drawnTurn]{name: name + "gnnstore " + s.name, turn: func(context.Context) (drawnTurn, error) { return ours.turn() }}
	t := turns[drawnTurn]{sides: []*side[drawnTurn]{us}, columns: samplerColumns(c.batches)}
	for i, r := range theirs {
		if r.Kind != s.name && !slices.Contains(s.others, r.Kind) {
			continue
		}
		ask, err := json.Marshal(map[string]any{"sampler": i, "fanouts": s.config.Fanouts})
		if err != nil {
			return err
		}
		asked := asks[drawnTurn](peer, string(ask))
		t.sides = append(t.sides, &side[drawnTurn]{name: name + r.Name, base: us, turn: func(ctx context.Context) (drawnTurn, error) {
			turn, err := asked(ctx)
			if err == nil {
				err = r.same(turn, s.name, ours)
			}
			return turn, err
		}})
	}
	if err := t.run(ctx, 1+c.rounds); err != nil {
		return err
	}
	for _, s := range t.sides {
		s.turns = s.turns[1:] // the first warmed up
		t.row(c.out, s)
	}
	return nil
}

func near(a, b float64) bool { return math.Abs(a-b) <= agreement*max(a, b) }

// drawnTurn has the processor seconds of all batches of a turn, and their edges of all blocks and
// input nodes.
type drawnTurn struct {
	Seconds float64 `json:"seconds"`
	Edges   float64 `json:"edges"`
	Nodes   float64 `json:"nodes"`
}

// drawn draws the batches of a turn, into the same buffers.
type drawn struct {
	data    *data.Data
	sampler *sample.Sampler
	seeds   []uint32 // of the target
	batch   sample.Batch
	z       uint64
	last    drawnTurn
	single  *drawnTurn // of once, when it was asked for
}

func newDrawn(d *data.Data, config sample.Config, seeds []uint32) *drawn {
	var topo []sample.Topology
	for _, r := range d.Relations {
		topo = append(topo, r.AtHand(false))
	}
	return &drawn{data: d, sampler: sample.NewTyped(d.Schema(), topo, config, 1), seeds: seeds}
}

func (d *drawn) turn() (drawnTurn, error) {
	var turn drawnTurn
	began := kernels.ProcessorSeconds()
	err := d.each(func(b *sample.Batch) {
		for l := range b.Layers {
			for r := range b.Layers[l].Blocks {
				turn.Edges += float64(len(b.Layers[l].Blocks[r].Nbr))
			}
		}
		for _, nodes := range b.Inputs() {
			turn.Nodes += float64(len(nodes))
		}
	})
	turn.Seconds = kernels.ProcessorSeconds() - began
	d.last = turn
	return turn, err
}

// each draws every batch of a turn, and shows it.
func (d *drawn) each(show func(b *sample.Batch)) error {
	for at := 0; at < len(d.seeds); at += batchSize {
		d.z++
		if err := d.sampler.SampleOne(context.Background(), &d.batch, sample.BatchSeed{First: sample.Hash(d.z)}, d.data.Seeds(d.seeds[at:at+batchSize])...); err != nil {
			return err
		}
		show(&d.batch)
	}
	return nil
}

// once counts the batches of two hops without the draws of the second hop for seeds, which the
// first hop has drawn for. A sampler that expands a node only at the hop that first reaches it
// draws as much. It draws one turn to count that.
func (d *drawn) once() (drawnTurn, error) {
	if d.single != nil {
		return *d.single, nil
	}
	var turn drawnTurn
	err := d.each(func(b *sample.Batch) {
		first, second := &b.Layers[1], &b.Layers[0]
		reached := make([][]bool, len(second.Nodes))
		for t, nodes := range second.Nodes {
			reached[t] = make([]bool, len(nodes.Src))
			for i := range nodes.Dst {
				reached[t][i] = true
			}
		}
		for r, relation := range d.data.Relations {
			turn.Edges += float64(len(first.Blocks[r].Nbr))
			k := &second.Blocks[r]
			for v := first.Nodes[relation.Dst].Dst; v < len(k.Start); v++ {
				for _, u := range k.Nbr[k.Start[v]:k.End[v]] {
					reached[relation.Src][u] = true
				}
				turn.Edges += float64(k.End[v] - k.Start[v])
			}
		}
		for _, nodes := range reached {
			for _, is := range nodes {
				if is {
					turn.Nodes++
				}
			}
		}
	})
	d.single = &turn
	return turn, err
}

// peerSampler is a sampler of samplers.py. Kind is one of ourSamplers, or of their others.
type peerSampler struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// same returns an error if a turn of theirs was other work than the last of ours, of a kind. For
// the kind once it can tell for two hops only.
func (p peerSampler) same(turn drawnTurn, kind string, ours *drawn) (err error) {
	want := ours.last
	switch {
	case p.Kind == once && len(ours.sampler.Fanouts) == 2:
		if want, err = ours.once(); err != nil {
			return err
		}
	case p.Kind != kind:
		return nil
	}
	if !near(want.Edges, turn.Edges) || !near(want.Nodes, turn.Nodes) {
		return fmt.Errorf("%.0f edges and %.0f nodes, and ours have %.0f and %.0f: that is other work", turn.Edges, turn.Nodes, want.Edges, want.Nodes)
	}
	return nil
}

// samplersReady is the message of samplers.py when it has loaded everything.
type samplersReady struct {
	Versions string        `json:"versions"`
	Samplers []peerSampler `json:"samplers"`
	Skipped  []string      `json:"skipped"`
}

// startSamplers starts samplers.py on the topology and so many batches of seeds.
func (c *comparison) startSamplers(ctx context.Context, d *data.Data, seeds []uint32, processor int) (*python, samplersReady, error) {
	var types, relations []map[string]any
	for _, t := range d.Types {
		types = append(types, map[string]any{"name": t.Name, "count": t.Nodes})
	}
	for _, r := range d.Relations {
		offsets, neighbors, err := listsOf(r.Graph, c.tmp)
		if err != nil {
			return nil, samplersReady{}, err
		}
		relations = append(relations, map[string]any{"name": [3]string{r.Relation.Src, r.Relation.Name, r.Relation.Dst},
			"offsets": offsets, "neighbors": neighbors, "nodes": r.Nodes(), "edges": r.Edges()})
	}
	var ready samplersReady
	w := npyWriter{dir: c.tmp}
	w.write("seeds", "<i4", []int{len(seeds) / batchSize, batchSize}, seeds)
	path, err := w.job(map[string]any{"types": types, "relations": relations, "target": d.Types[d.Target].Name, "processor": processor})
	if err != nil {
		return nil, ready, err
	}
	p, err := c.startPython(ctx, &ready, "samplers.py", path)
	return p, ready, err
}
