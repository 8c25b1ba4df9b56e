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

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// samplerFanouts are what samplers are compared at, from the seeds outward.
var samplerFanouts = [][]int{{15, 10, 5}, {10, 10, 10}}

// agreement is how far apart the edges, and the different nodes, of the same sampler on both sides may be, over all batches:
// several times what chance does to twenty batches of 1,000 seeds: a vertex that many share makes LABOR keep or lack many edges.
const agreement = 0.02

// ourSamplers are those of ours that there is something to compare with: theirs of the same name, and others.
var ourSamplers = []struct {
	name   string
	config sample.Config
	others []string
}{
	{"ns", sample.Config{Kind: sample.NS}, []string{"biased", "once"}}, // once: of those that expand a node only where they first reach it
	{"labor0 --poisson", sample.Config{Kind: sample.Labor0, Poisson: true}, nil},
	{"labor0", sample.Config{Kind: sample.Labor0}, []string{"labor0 --poisson"}},
}

// compareSamplers alternates our samplers with the C++ ones of DGL and PyTorch Geometric on the same seeds, one thread each, on
// the same processor.
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
	g, train := ds.Graph(0), append([]uint32(nil), ds.Split(0).Train...)
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
	peer, theirs, err := c.startSamplers(ctx, g, seeds, processor)
	if err != nil {
		return err
	}
	defer peer.close() //nolint:errcheck // what matters was read
	fmt.Fprintf(c.out, "%s: %d nodes, %d edges; batches of %d seeds, %d a turn; one thread a side, on processor %d, timed by what it used of it. %s. %d turns, median (smallest–largest):\n\n",
		filepath.Base(path), g.Nodes(), g.Edges(), batchSize, c.batches, processor, theirs.Versions, c.rounds)
	for _, s := range theirs.Skipped {
		fmt.Fprintf(c.out, "skipped: %s\n\n", strings.Join(strings.Fields(s), " "))
	}
	tableHead(c.out, "| fanouts | sampler | edges, M/s | batches/s | edges a batch | nodes a batch | ours / theirs, edges/s | batches/s |")
	for _, fanouts := range samplerFanouts {
		if err := c.race(ds, seeds, fanouts, peer, theirs.Samplers); err != nil {
			return err
		}
	}
	return nil
}

// race prints a row for each sampler at some fanouts, ours of a kind before theirs.
func (c *comparison) race(ds *store.Dataset, seeds []uint32, fanouts []int, peer *python, theirs []peerSampler) error {
	name := numbers(fanouts)
	for _, s := range ourSamplers {
		s.config.Fanouts = fanouts
		ours := &drawn{sampler: sample.NewSampler(sample.AtHand(ds.Graph(0)), s.config, 1), seeds: seeds}
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
				if r.Kind == s.name && !(near(mine.Edges, r.last.Edges) && near(mine.Nodes, r.last.Nodes)) {
					return fmt.Errorf("%s, fanouts %s: %.0f edges and %.0f nodes, and ours have %.0f and %.0f: that is other work", r.Name, name,
						r.last.Edges, r.last.Nodes, mine.Edges, mine.Nodes)
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
			fmt.Fprintf(c.out, "| %s | %s | %s | %s | %.0f | %.0f | %s |\n", name, sampler, r.edges.spread("%.1f"), r.batches.spread("%.1f"),
				last.Edges/n, last.Nodes/n, ratios)
		}
		row("gnnstore "+s.name, us, ours.last, "|")
		for _, r := range rivals {
			row(r.Name, r.rates, r.last, us.edges.over(r.edges).spread("%.2f")+" | "+us.batches.over(r.batches).spread("%.2f"))
		}
	}
	return nil
}

func near(a, b float64) bool { return math.Abs(a-b) <= agreement*max(a, b) }

// rates are what turns came to.
type rates struct{ edges, batches series }

func (r *rates) add(t drawnTurn, batches int) {
	r.edges, r.batches = append(r.edges, t.Edges/t.Seconds/1e6), append(r.batches, float64(batches)/t.Seconds)
}

// drawnTurn is what all batches of a turn took of the processor, and have: edges of all blocks, and input nodes.
type drawnTurn struct {
	Seconds float64 `json:"seconds"`
	Edges   float64 `json:"edges"`
	Nodes   float64 `json:"nodes"`
}

// drawn draws the batches of a turn, into the same buffers.
type drawn struct {
	sampler *sample.Sampler
	seeds   []uint32
	batch   sample.Batch
	z       uint64
	last    drawnTurn
}

func (d *drawn) turn() (drawnTurn, error) {
	d.last = drawnTurn{}
	began := processorSeconds()
	for at := 0; at < len(d.seeds); at += batchSize {
		d.z++
		if err := d.sampler.SampleOne(context.Background(), &d.batch, sample.Z{First: sample.Hash(d.z)}, d.seeds[at:at+batchSize]); err != nil {
			return d.last, err
		}
		for l := range d.batch.Layers {
			d.last.Edges += float64(len(d.batch.Layers[l].Blocks[0].Nbr))
		}
		d.last.Nodes += float64(len(d.batch.Inputs()[0]))
	}
	d.last.Seconds = processorSeconds() - began
	return d.last, nil
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

// samplersReady is what samplers.py says when it has loaded all it wants.
type samplersReady struct {
	Versions string        `json:"versions"`
	Samplers []peerSampler `json:"samplers"`
	Skipped  []string      `json:"skipped"`
}

// startSamplers starts samplers.py on the topology and so many batches of seeds.
func (c *comparison) startSamplers(ctx context.Context, g *store.Graph, seeds []uint32, processor int) (*python, samplersReady, error) {
	type section struct {
		Path   string `json:"path"`
		Offset int64  `json:"offset"`
	}
	var ready samplersReady
	offsets, neighbors := g.Sections()
	job, err := json.Marshal(map[string]any{
		"offsets": section{offsets.Path, store.PageSize}, "neighbors": section{neighbors.Path, store.PageSize},
		"nodes": g.Nodes(), "edges": g.Edges(), "processor": processor,
	})
	if err != nil {
		return nil, ready, err
	}
	w := npyWriter{dir: c.tmp}
	w.write("seeds", "<i4", []int{len(seeds) / batchSize, batchSize}, seeds)
	path := filepath.Join(c.tmp, "samplers.json")
	if w.err == nil {
		w.err = os.WriteFile(path, job, 0o666)
	}
	if w.err != nil {
		return nil, ready, w.err
	}
	p, err := c.startPython(ctx, &ready, "samplers.py", path)
	return p, ready, err
}
