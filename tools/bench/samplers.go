package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
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
	path, err := c.arxiv(ctx)
	if err != nil {
		return err
	}
	ds, err := store.Open(path)
	if err != nil {
		return err
	}
	defer ds.Close()
	d, err := data.OpenToDraw(ds, data.Options{})
	if err != nil {
		return err
	}
	train := d.Train
	if len(train) < c.batches*batchSize {
		return fmt.Errorf("%s: %d training nodes, and %d batches of %d want more; lower -batches", path, len(train), c.batches, batchSize)
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
		filepath.Base(path), extent(d), batchSize, c.batches, processor, theirs.Versions, c.rounds)
	for _, s := range theirs.Skipped {
		fmt.Fprintf(c.out, "skipped: %s\n\n", strings.Join(strings.Fields(s), " "))
	}
	tableHead(c.out, "| fanouts | sampler | edges, M/s | batches/s | edges a batch | nodes a batch | ours / theirs, edges/s | batches/s |")
	all, samplers := samplerFanouts, ourSamplers
	if isTyped(d) {
		all, samplers = typedFanouts, ourSamplers[:1]
	}
	for _, fanouts := range all {
		for _, s := range samplers {
			s.config.Fanouts = fanouts
			if err := c.race(d, seeds, s, peer, theirs.Samplers); err != nil {
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

// race prints a row for each sampler, ours before theirs.
func (c *comparison) race(d *data.Data, seeds []uint32, s ourSampler, peer *python, theirs []peerSampler) error {
	fanouts := s.config.Fanouts
	ours := newDrawn(d, s.config, seeds)
	var rivals []*rival
	for i, t := range theirs {
		if t.Kind == s.name || slices.Contains(s.others, t.Kind) {
			rivals = append(rivals, &rival{peerSampler: t, number: i})
		}
	}
	var us rates
	for round := -1; round < c.rounds; round++ { // the first to warm up
		mine, err := ours.turn()
		if err != nil {
			return err
		}
		for _, r := range rivals {
			if err := r.turn(peer, fanouts); err != nil {
				return err
			}
			if err := r.same(s.name, ours); err != nil {
				return err
			}
			if round >= 0 {
				r.add(r.last, c.batches)
			}
		}
		if round >= 0 {
			us.add(mine, c.batches)
		}
	}
	n := float64(c.batches)
	row := func(sampler string, r rates, last drawnTurn, ratios string) {
		fmt.Fprintf(c.out, "| %s | %s | %s | %s | %.0f | %.0f | %s |\n", numbers(fanouts), sampler, r.edges.spread("%.1f"), r.batches.spread("%.1f"),
			last.Edges/n, last.Nodes/n, ratios)
	}
	row("gnnstore "+s.name, us, ours.last, "|")
	for _, r := range rivals {
		row(r.Name, r.rates, r.last, us.edges.over(r.edges).spread("%.2f")+" | "+us.batches.over(r.batches).spread("%.2f"))
	}
	return nil
}

func near(a, b float64) bool { return math.Abs(a-b) <= agreement*max(a, b) }

// rates has the rates of turns: million edges, and batches, a second.
type rates struct{ edges, batches series }

func (r *rates) add(t drawnTurn, batches int) {
	r.edges, r.batches = append(r.edges, t.Edges/t.Seconds/1e6), append(r.batches, float64(batches)/t.Seconds)
}

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

// rival is a peerSampler, by its number there, and what it did.
type rival struct {
	peerSampler
	rates
	number int
	last   drawnTurn
}

func (r *rival) turn(p *python, fanouts []int) error {
	ask, err := json.Marshal(map[string]any{"sampler": r.number, "fanouts": fanouts})
	if err != nil {
		return err
	}
	return p.ask(string(ask), &r.last)
}

// same returns an error if a rival's last turn was other work than ours. For the kind once it can
// tell for two hops only.
func (r *rival) same(kind string, ours *drawn) (err error) {
	want := ours.last
	switch {
	case r.Kind == once && len(ours.sampler.Fanouts) == 2:
		if want, err = ours.once(); err != nil {
			return err
		}
	case r.Kind != kind:
		return nil
	}
	if !near(want.Edges, r.last.Edges) || !near(want.Nodes, r.last.Nodes) {
		return fmt.Errorf("%s, fanouts %s: %.0f edges and %.0f nodes, and ours have %.0f and %.0f: that is other work", r.Name,
			numbers(ours.sampler.Fanouts), r.last.Edges, r.last.Nodes, want.Edges, want.Nodes)
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
	type section struct {
		Path   string `json:"path"`
		Offset int64  `json:"offset"`
	}
	type nodes struct {
		Name  string `json:"name"`
		Count int    `json:"count"`
	}
	type relation struct {
		Name      [3]string `json:"name"`
		Offsets   section   `json:"offsets"`
		Neighbors section   `json:"neighbors"`
		Nodes     int       `json:"nodes"` // that have lists
		Edges     int64     `json:"edges"`
	}
	var job struct {
		Types     []nodes    `json:"types"`
		Relations []relation `json:"relations"`
		Target    string     `json:"target"`
		Processor int        `json:"processor"`
	}
	for _, t := range d.Types {
		job.Types = append(job.Types, nodes{t.Name, t.Nodes})
	}
	for _, r := range d.Relations {
		offsets, neighbors := r.Sections()
		job.Relations = append(job.Relations, relation{[3]string{r.Relation.Src, r.Relation.Name, r.Relation.Dst},
			section{offsets.Path, store.PageSize}, section{neighbors.Path, store.PageSize}, r.Nodes(), r.Edges()})
	}
	job.Target, job.Processor = d.Types[d.Target].Name, processor
	var ready samplersReady
	text, err := json.Marshal(job)
	if err != nil {
		return nil, ready, err
	}
	w := npyWriter{dir: c.tmp}
	w.write("seeds", "<i4", []int{len(seeds) / batchSize, batchSize}, seeds)
	path := filepath.Join(c.tmp, "samplers.json")
	if w.err == nil {
		w.err = os.WriteFile(path, text, 0o666)
	}
	if w.err != nil {
		return nil, ready, w.err
	}
	p, err := c.startPython(ctx, &ready, "samplers.py", path)
	return p, ready, err
}
