package trace

import (
	"context"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// together counts the work of workers, under each sampler, κ and number of workers.
func (r *run) together(ctx context.Context) error {
	if least := min(r.Batch, len(r.data.Train)); r.Workers.Most > least {
		return fmt.Errorf("{workers} %d: %s has %d seeds, and some workers would have none; take at most %d",
			r.Workers.Most, r.report.Dataset, least, least)
	}
	r.report.Workers = &WorkersReport{Hidden: r.Workers.Hidden, Counts: []WorkersCount{}}
	for _, kind := range r.Samplers {
		for _, kappa := range r.Kappas {
			for _, workers := range r.Workers.counts() {
				if err := r.countWorkers(ctx, kind, kappa, workers); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// spread adds up a count over steps: over all workers, and of the worker with most in its step.
type spread struct{ sum, largest float64 }

func (s *spread) add(of []int64) {
	s.largest += float64(slices.Max(of))
	for _, n := range of {
		s.sum += float64(n)
	}
}

func (s *spread) over(workers, steps int) Spread {
	return Spread{s.sum / float64(workers) / float64(steps), s.largest / float64(steps)}
}

// work has the numbers of each worker in one step.
type work struct {
	nodes, sources, others, edges [][]int64 // by hop
	lists, neighbors, rows        []int64
	rowBytes, hidden, drawn, ids  []int64
}

func newWork(workers, hops int) *work {
	row := func() []int64 { return make([]int64, workers) }
	w := &work{lists: row(), neighbors: row(), rows: row(), rowBytes: row(), hidden: row(), drawn: row(), ids: row()}
	for range hops + 1 {
		w.nodes, w.sources = append(w.nodes, row()), append(w.sources, row())
		w.others, w.edges = append(w.others, row()), append(w.edges, row())
	}
	return w
}

// tally adds up the work of workers that share a step in one way, over steps.
type tally struct {
	way                           Way
	nodes, sources, others, edges []spread // by hop
	lists, neighbors, rows        spread
	rowBytes, hidden, drawn, ids  spread
	sent                          spread
}

func (c *tally) add(w *work) {
	for of, hops := range map[*[]spread][][]int64{
		&c.nodes: w.nodes, &c.sources: w.sources, &c.others: w.others, &c.edges: w.edges,
	} {
		for len(*of) < len(hops) {
			*of = append(*of, spread{})
		}
		for h := range hops {
			(*of)[h].add(hops[h])
		}
	}
	sent := make([]int64, len(w.lists))
	for i := range sent {
		sent[i] = w.rowBytes[i] + w.hidden[i] + w.drawn[i] + w.ids[i]
	}
	for of, numbers := range map[*spread][]int64{
		&c.lists: w.lists, &c.neighbors: w.neighbors, &c.rows: w.rows, &c.rowBytes: w.rowBytes,
		&c.hidden: w.hidden, &c.drawn: w.drawn, &c.ids: w.ids, &c.sent: sent,
	} {
		of.add(numbers)
	}
}

// several counts the work of a number of workers.
type several struct {
	*run
	sampler  *sample.Sampler
	parts    sample.Parts
	owners   []store.Owners // by input
	rowBytes []int64        // by input
	degree   func(t int, v uint32, hop int) int64
}

func (r *run) several(s stream, workers int) *several {
	inputs := slices.Concat(r.data.Types, r.data.EdgeTables)
	w := &several{run: r, sampler: r.sampler(s.config), rowBytes: make([]int64, len(inputs))}
	for t := range inputs {
		w.owners = append(w.owners, r.data.Owners(t, workers))
	}
	w.parts = sample.Parts{
		Workers: workers, Reads: make([]bool, len(inputs)),
		Owner: func(t int, v uint32) int { return w.owners[t].Owner(v) },
	}
	for _, t := range r.tables {
		w.parts.Reads[t.number] = true
		switch of := inputs[t.number]; {
		case of.Features != nil:
			w.rowBytes[t.number] = int64(of.Features.RowBytes())
		case of.Embed > 0:
			w.rowBytes[t.number] = 4 * int64(of.Embed)
		}
	}
	w.degree = func(t int, v uint32, hop int) (n int64) {
		for i, rel := range r.data.Relations {
			if rel.Dst == t && s.config.FanoutOf(hop, i) != 0 {
				n += int64(rel.Degree(v))
			}
		}
		return n
	}
	return w
}

// countWorkers counts the work of so many workers, in each way that is asked for.
func (r *run) countWorkers(ctx context.Context, kind sample.Kind, kappa, workers int) error {
	s, name := r.stream(kind, kappa)
	name = fmt.Sprintf("%s of %d workers", name, workers)
	w := r.several(s, workers)
	var ways []*tally
	for _, way := range r.Workers.ways(kind) {
		if ways = append(ways, &tally{way: way}); workers == 1 { // all ways are the same
			break
		}
	}
	has := func(way ...Way) bool {
		return slices.ContainsFunc(ways, func(c *tally) bool { return slices.Contains(way, c.way) })
	}
	alone, owned := r.newReads(workers, has(Independent)), r.newReads(workers, has(ByParts, Cooperative))
	defer alone.close()
	defer owned.close()
	var err error
	one, shares := new(sample.Batch), make([]*sample.Batch, workers)
	for i := range shares {
		shares[i] = new(sample.Batch)
	}
	for step := range s.steps {
		seeds := r.seeds(s, step)
		lists := make([][][]uint32, workers) // by worker and type: seeds
		for p := range lists {
			lists[p] = r.data.Seeds(seeds[p*len(seeds)/workers : (p+1)*len(seeds)/workers])
		}
		if has(Independent, ByParts) {
			seeds := slices.Repeat([]sample.BatchSeed{s.batchSeed(step)}, workers)
			err = w.sampler.Sample(ctx, shares, seeds, lists)
		}
		if err == nil && has(ByParts, Cooperative) {
			err = w.sampler.SampleOne(ctx, one, s.batchSeed(step), r.data.Seeds(seeds)...)
		}
		if err != nil {
			return r.data.Place(err)
		}
		own := w.ownRows(one)
		err := store.Guard(func() error {
			for _, c := range ways {
				switch c.way {
				case Independent:
					c.add(w.alone(shares))
				case ByParts:
					c.add(w.byOwners(shares, own))
				case Cooperative:
					c.add(w.cooperating(w.sampler.Together(&w.parts, one, lists), lists))
				}
			}
			return nil
		})
		if err == nil {
			err = alone.add(r, func(p int) [][]uint32 { return shares[p].Inputs() })
		}
		if err == nil {
			err = owned.add(r, func(p int) [][]uint32 { return own[p] })
		}
		if err != nil {
			return err
		}
		r.show("draw "+name, int64(step+1), int64(s.steps), "steps")
	}
	coldAlone, counted, err := alone.judge(ctx, r, kappa, name)
	if err != nil {
		return err
	}
	coldOwned, countedOwned, err := owned.judge(ctx, r, kappa, name)
	if err != nil {
		return err
	}
	for _, c := range ways {
		n := c.report(kind, kappa, workers, s.steps)
		if n.Cold, n.ColdSteps = coldAlone, counted; c.way != Independent {
			n.Cold, n.ColdSteps = coldOwned, countedOwned
		}
		r.report.Workers.Counts = append(r.report.Workers.Counts, n)
	}
	return nil
}

// report returns the means over steps.
func (c *tally) report(kind sample.Kind, kappa, workers, steps int) WorkersCount {
	of := func(s spread) Spread { return s.over(workers, steps) }
	n := WorkersCount{
		Sampler: kind, Kappa: kappa, Workers: workers, Parallel: c.way,
		Lists: of(c.lists), Neighbors: of(c.neighbors), Rows: of(c.rows), AllRows: c.rows.sum / float64(steps),
		RowBytes: of(c.rowBytes), HiddenBytes: of(c.hidden), ListBytes: of(c.drawn), IDBytes: of(c.ids),
		SentBytes: of(c.sent),
	}
	for h := range c.nodes {
		n.Hops = append(n.Hops, WorkersHop{h, of(c.nodes[h]), of(c.sources[h]), of(c.others[h]), of(c.edges[h])})
	}
	return n
}

// alone counts the work of workers that draw and read for themselves.
func (w *several) alone(shares []*sample.Batch) *work {
	n := newWork(len(shares), len(w.Fanouts))
	for p, b := range shares {
		for _, ids := range b.Seeds {
			n.sources[0][p] += int64(len(ids))
		}
		for hop := range w.Fanouts {
			layer := &b.Layers[len(w.Fanouts)-1-hop]
			for t := range layer.Nodes {
				nodes := &layer.Nodes[t]
				n.nodes[hop][p] += int64(nodes.Dst)
				n.sources[hop+1][p] += int64(len(nodes.Src))
				for _, v := range nodes.Src[:nodes.Dst] {
					n.neighbors[p] += w.degree(t, v, hop)
				}
				n.lists[p] += int64(nodes.Dst)
			}
			for r := range layer.Blocks {
				n.edges[hop][p] += int64(len(layer.Blocks[r].Nbr))
			}
		}
		n.rows[p] = w.readRows(b.Inputs())
		n.nodes[len(w.Fanouts)][p] = n.sources[len(w.Fanouts)][p]
	}
	return n
}

// readRows counts the rows of the inputs that have rows.
func (w *several) readRows(inputs [][]uint32) (n int64) {
	for _, t := range w.tables {
		n += int64(len(inputs[t.number]))
	}
	return n
}

// byOwners counts the work of workers that compute their shares, while owners draw and read. own[q]
// has the rows that owner q reads for all workers.
func (w *several) byOwners(shares []*sample.Batch, own [][][]uint32) *work {
	n := w.alone(shares)
	clear(n.lists)
	clear(n.neighbors)
	clear(n.rows)
	last := len(w.Fanouts)
	for p, b := range shares {
		for q, asks := range w.sampler.Asks(&w.parts, b) {
			for hop := range asks.Lists {
				for t, nodes := range asks.Lists[hop] {
					n.lists[q] += int64(len(nodes))
					for _, v := range nodes {
						n.neighbors[q] += w.degree(t, v, hop)
					}
					if q != p {
						n.others[hop][p] += int64(len(nodes))
					}
				}
			}
			if q == p {
				continue
			}
			n.ids[p] += asks.IDBytes
			n.drawn[q] += asks.ListBytes
			for t, rows := range asks.Rows {
				n.others[last][p] += int64(len(rows))
				n.rowBytes[q] += w.rowBytes[t] * int64(len(rows))
			}
		}
	}
	for q := range own {
		n.rows[q] = w.readRows(own[q])
	}
	n.nodes[last] = n.rows
	return n
}

// cooperating counts the work of workers that draw, read and compute together. asked[p] has the
// seeds of worker p.
func (w *several) cooperating(all []sample.Together, asked [][][]uint32) *work {
	n, last := newWork(len(all), len(w.Fanouts)), len(w.Fanouts)
	seeds := make([]int64, len(all)) // by worker: rows of seeds that it sends
	for p := range all {
		for t, ids := range asked[p] {
			n.sources[0][p] += int64(len(ids))
			for _, v := range ids {
				if q := w.parts.Owner(t, v); q != p {
					n.others[0][p]++
					seeds[q]++
				}
			}
		}
	}
	for p := range all {
		of := &all[p]
		moved := seeds[p] + n.others[0][p] // hidden rows and gradients that it sends
		for hop := range of.Hops {
			h := &of.Hops[hop]
			n.edges[hop][p] = int64(h.Edges)
			for t := range h.Nodes {
				n.nodes[hop][p] += int64(len(h.Nodes[t]))
				n.sources[hop+1][p] += int64(h.Sources[t])
				n.others[hop+1][p] += int64(h.Taken[t])
				if hop+1 < last {
					moved += int64(h.Sent[t] + h.Taken[t])
				}
				for _, v := range h.Nodes[t] {
					n.neighbors[p] += w.degree(t, v, hop)
				}
			}
			n.lists[p] += n.nodes[hop][p]
		}
		n.rows[p] = w.readRows(of.Rows)
		n.nodes[last][p] = n.rows[p]
		n.hidden[p] = 4 * int64(w.Workers.Hidden) * moved
		n.ids[p] = of.IDBytes
		for t, rows := range of.Sent {
			n.rowBytes[p] += w.rowBytes[t] * int64(rows)
		}
	}
	return n
}

// ownRows returns the rows that each owner reads for a batch, by owner and input. A row has its
// place in the owner's files.
func (w *several) ownRows(b *sample.Batch) [][][]uint32 {
	all := make([][][]uint32, w.parts.Workers)
	for p := range all {
		all[p] = make([][]uint32, len(w.parts.Reads))
	}
	if len(b.Layers) == 0 { // the batch of all was not drawn
		return all
	}
	inputs := b.Inputs()
	for _, t := range w.tables {
		for _, v := range inputs[t.number] {
			q := &all[w.parts.Owner(t.number, v)][t.number]
			*q = append(*q, w.owners[t.number].RowOf(v))
		}
	}
	return all
}
