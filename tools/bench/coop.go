package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Sizes of what coop draws: seeds of a step, of all workers, and steps.
const (
	coopSeeds = 1024
	coopSteps = 16
)

// coopSamplers draw a node's neighbours alike for all workers.
var coopSamplers = []sample.Kind{sample.NS, sample.Labor0}

// coopFanouts are from the seeds outward.
var coopFanouts = []int{10, 10, 10}

// coopHot is the part of the rows that each worker is taken to hold, of the first nodes: a
// dataset of --order degree has its hottest nodes first.
const coopHot = 0.05

// drawnBy has what V workers draw in a step, on average over the steps.
type drawnBy struct {
	inputs, edges, frontier float64 // of the worker that has most
	all                     float64 // inputs of all workers
	cold                    float64 // of them, beyond what each worker holds
	parts                   fromOwners
}

// fromOwners has what workers ask each other for where each owns nodes: lists, the neighbours that
// come for them, and rows, of the worker that has most. Then the rows that the busiest owner reads,
// that all owners read, and those beyond the rows that each owner holds.
type fromOwners struct {
	lists, neighbors, rows float64
	reads, all, cold       float64
}

// countWorkers counts what each of several workers draws for its share of a step's seeds, alone,
// and what workers ask each other for where each owns nodes: by the rule, at random, and as
// directories of parts of the same dataset have them. Then it counts what workers draw, read and
// compute together. No step is trained. The counts follow from the seeds, so there are no turns.
// With -check, counts that differ from the known ones are an error.
func countWorkers(ctx context.Context, c *comparison) error {
	d, err := data.OpenToDraw(c.ds, data.Options{})
	if err != nil {
		return err
	}
	if isTyped(d) || len(d.Train) < coopSeeds*coopSteps {
		return fmt.Errorf("%s: coop draws from a graph of one type and relation, for %d training nodes", c.dataset, coopSeeds*coopSteps)
	}
	var deals []*dealing
	for _, workers := range coopWorkers {
		deals = append(deals, dealtByRule(d.Types[0].Nodes, workers))
	}
	for _, dir := range c.parts {
		deal, err := dealtInParts(c.ds, dir)
		if err != nil {
			return err
		}
		same := func(d *dealing) bool { return d.name == atRandom && d.workers == deal.workers }
		if !slices.ContainsFunc(deals, same) {
			deals = append(deals, deal.atRandom())
		}
		deals = append(deals, deal)
	}
	sample.Shuffle(d.Train, 1, 1)
	fmt.Fprintf(c.out, "%s: %s; %d seeds a step in all, fanouts %v, %d steps. Each of V workers draws for its share alone. Thousands "+
		"a step: inputs, edges of the last hop and its destinations, of the worker that has most; inputs of all; and those past the "+
		"first %.0f %% of the rows:\n\n", c.base(), extent(d), coopSeeds, coopFanouts, coopSteps, 100*coopHot)
	fmt.Fprintf(c.out, "| sampler | V | S³ | E² | S² | all S³ | cold |\n|---|---|---|---|---|---|---|\n")
	parts, alone := "", map[sample.Kind]map[int]float64{}
	for _, kind := range coopSamplers {
		alone[kind] = map[int]float64{}
		s := sample.NewTyped(d.Schema(), []sample.Topology{d.Relations[0].AtHand(false)}, sample.Config{Kind: kind, Fanouts: coopFanouts}, 1)
		for i, deal := range deals {
			for _, seeds := range []string{shared, dealt, owned} {
				var n drawnBy
				err := store.Guard(func() (err error) {
					n, err = drawByWorkers(ctx, d, s, deal, seeds)
					return err
				})
				if err != nil {
					return err
				}
				if seeds == shared {
					alone[kind][deal.workers] = n.cold
				}
				if i < len(coopWorkers) && seeds == shared {
					fmt.Fprintf(c.out, "| %s | %d | %.1f | %.1f | %.1f | %.1f | %.1f |\n", kind, deal.workers, n.inputs, n.edges, n.frontier, n.all, n.cold)
				}
				o := &n.parts
				parts += fmt.Sprintf("| %s | %s | %d | %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", kind, deal.name, deal.workers, seeds,
					o.lists, o.neighbors, o.rows, o.reads, o.all, o.cold)
			}
		}
	}
	fmt.Fprintf(c.out, "\nWhere workers own nodes. Seeds are shared evenly, or so that each share has as many own ones as fit, or each "+
		"worker has all of its own. Lists that a worker asks others for, neighbours and rows that come, of the worker that has most; rows "+
		"that the owner reads that reads most, and all; and those past the first %.0f %% of the rows, as many at each owner:\n\n"+
		"| sampler | owners | V | seeds | lists | neighbours | rows | reads | all reads | cold |\n"+
		"|---|---|---|---|---|---|---|---|---|---|\n%s", 100*coopHot, parts)
	return printTogether(ctx, c, d, deals, alone)
}

// Which seeds of a step a worker draws for: an even share, an even share that dist.Deal has filled
// with its own nodes, or all of its own.
const (
	shared = "shared"
	dealt  = "dealt"
	owned  = "owned"
)

// coopWorkers are the numbers of workers that the rule deals out nodes among.
var coopWorkers = []int{1, 2, 4, 8, 16}

// dealing has the owner of each node, and the node's row there.
type dealing struct {
	name    string
	workers int
	owner   []int
	row     []uint32
}

func dealtByRule(nodes, workers int) *dealing {
	d, of := &dealing{name: byRule, workers: workers}, store.OwnersByRule(workers)
	for v := range uint32(nodes) {
		d.owner, d.row = append(d.owner, of.Owner(v)), append(d.row, of.RowOf(v))
	}
	return d
}

// dealtInParts reads the owners from a directory of parts of ds, by the original ids.
func dealtInParts(ds *store.Dataset, dir string) (*dealing, error) {
	workers, err := store.CountParts(dir)
	if err != nil {
		return nil, err
	}
	nodes := ds.Manifest().NodeTypes[0].Count
	d := &dealing{filepath.Base(dir), workers, make([]int, nodes), make([]uint32, nodes)}
	found := int64(0)
	for q := range workers {
		part, err := store.OpenPart(dir, q, workers)
		if err != nil {
			return nil, err
		}
		err = store.Guard(func() error {
			for row := range uint32(part.Manifest().StoredNodes(0)) {
				v, ok := ds.IDs(0).Stored(part.IDs(0).Original(row))
				if !ok {
					return fmt.Errorf("%s: not of %s", dir, ds.Path())
				}
				d.owner[v], d.row[v] = q, row
				found++
			}
			return nil
		})
		if err := errors.Join(err, part.Close()); err != nil {
			return nil, err
		}
	}
	if found != nodes {
		return nil, fmt.Errorf("%s: %d nodes of %d", dir, found, nodes)
	}
	return d, nil
}

// byRule names the dealing that goes without a directory, and atRandom the control of directories
// of parts.
const (
	byRule   = "rule"
	atRandom = "random"
)

// atRandom gives each worker as many nodes as d does, at random.
func (d *dealing) atRandom() *dealing {
	r := &dealing{atRandom, d.workers, slices.Clone(d.owner), make([]uint32, len(d.row))}
	rng := rand.New(rand.NewPCG(1, uint64(d.workers)))
	rng.Shuffle(len(r.owner), func(i, j int) { r.owner[i], r.owner[j] = r.owner[j], r.owner[i] })
	rows := make([]uint32, d.workers)
	for v, q := range r.owner {
		r.row[v] = rows[q]
		rows[q]++
	}
	return r
}

func drawByWorkers(
	ctx context.Context, d *data.Data, s *sample.Sampler, deal *dealing, how string,
) (n drawnBy, err error) {
	hot := uint32(coopHot * float64(d.Types[0].Nodes))
	var b sample.Batch
	for step := range coopSteps {
		seeds := d.Train[step*coopSeeds : (step+1)*coopSeeds]
		if how == dealt {
			seeds = slices.Clone(seeds)
			dist.Deal(seeds, deal.workers, func(v uint32) int { return deal.owner[v] })
		}
		var inputs, edges, frontier int
		own := newOwners(deal)
		for w := range deal.workers {
			lo, hi := dist.Share(len(seeds), w, deal.workers)
			share := seeds[lo:hi]
			if how == owned {
				share = nil
				for _, v := range seeds {
					if deal.owner[v] == w {
						share = append(share, v)
					}
				}
			}
			if err := s.SampleOne(ctx, &b, sample.Alone(1, 1, step), share); err != nil {
				return n, err
			}
			last := &b.Layers[0]
			inputs = max(inputs, len(last.Nodes[0].Src))
			edges, frontier = max(edges, len(last.Blocks[0].Nbr)), max(frontier, last.Nodes[0].Dst)
			own.add(w, &b)
			n.all += float64(len(last.Nodes[0].Src))
			for _, v := range last.Nodes[0].Src {
				if v >= hot {
					n.cold++
				}
			}
		}
		own.addTo(&n.parts, hot)
		n.inputs, n.edges, n.frontier = n.inputs+float64(inputs), n.edges+float64(edges), n.frontier+float64(frontier)
	}
	o := &n.parts
	for _, x := range []*float64{
		&n.inputs, &n.edges, &n.frontier, &n.all, &n.cold, &o.lists, &o.neighbors, &o.rows, &o.reads, &o.all, &o.cold,
	} {
		*x /= 1000 * coopSteps
	}
	return n, nil
}

// owners counts, for a step, what workers ask each other for.
type owners struct {
	lists, neighbors, rows int
	reads                  []map[uint32]bool // by owner
	deal                   *dealing
}

func newOwners(deal *dealing) *owners {
	o := &owners{deal: deal}
	for range deal.workers {
		o.reads = append(o.reads, map[uint32]bool{})
	}
	return o
}

// add counts the batch of worker w.
func (o *owners) add(w int, b *sample.Batch) {
	lists, neighbors, rows := 0, 0, 0
	for l := range b.Layers {
		block, nodes := &b.Layers[l].Blocks[0], &b.Layers[l].Nodes[0]
		for i, v := range nodes.Src[:nodes.Dst] {
			if o.deal.owner[v] != w {
				lists++
				neighbors += int(block.End[i] - block.Start[i])
			}
		}
	}
	for _, v := range b.Layers[0].Nodes[0].Src {
		q := o.deal.owner[v]
		o.reads[q][v] = true
		if q != w {
			rows++
		}
	}
	o.lists, o.neighbors, o.rows = max(o.lists, lists), max(o.neighbors, neighbors), max(o.rows, rows)
}

// addTo adds the step to n. Each owner holds hot rows, its first ones.
func (o *owners) addTo(n *fromOwners, hot uint32) {
	reads := 0
	for _, rows := range o.reads {
		reads = max(reads, len(rows))
		n.all += float64(len(rows))
		for v := range rows {
			if o.deal.row[v] >= hot {
				n.cold++
			}
		}
	}
	n.lists, n.neighbors, n.rows = n.lists+float64(o.lists), n.neighbors+float64(o.neighbors), n.rows+float64(o.rows)
	n.reads += float64(reads)
}
