package graph

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
)

// audit compares rows that a step uses again with what they would be now: run.AuditOf. It runs
// before the step, on its goroutine, and has samplers and readers of its own, so that no count of
// the run, no cache and no plan knows of it: neighbour lists come by the map of the graph, feature
// rows from disk past the tiers.
//
// Nodes are computed a few at a time, with at most auditBytes of rows in memory, mostly in buffers
// that steps have as well. A run of ogbn-arxiv took 3 MiB more with audits of 256 nodes, and 11
// with audits of all reused rows. So audits have no part of the memory budget, and change no split
// of it.
//
// # Why not
//
// Why not compute them with the step, in its batch: then the step would read other rows than
// without an audit, and other windows.
//
// Why not by infer.Evaluator, which bounds the memory of any hub: a pass of it takes a bit a node
// and layer and four bytes a node, to find the rows of a few hundred nodes.
type audit struct {
	*core
	tables []*cachetier.Stack // by the numbers of a batch's inputs; nil where batches read none
	draw   []*sample.Sampler  // by layer; each draws neighbours for the layer's input rows, as a step does
	full   []*sample.Sampler  // likewise all neighbours; nil for random walks, which have no weights for these
	most   int                // edges of the nodes that are computed together, and of one over all neighbours
	batch  sample.Batch
	said   bool
	places []uint32 // of compare
}

const (
	auditBytes   = 8 << 20 // of rows in float32
	auditReaders = 4       // reads of disk at a time: each has a buffer
	auditTag     = 23      // begins the hash that picks the nodes to compare: see history.coinTag
)

// openAudit opens the tables and samplers of audits, if the run wants audits.
func (c *core) openAudit(ctx context.Context) error {
	if c.HistoryAudit == 0 || !c.reuse.any() {
		return nil
	}
	a := &audit{core: c, tables: make([]*cachetier.Stack, len(c.data.Types)+len(c.data.EdgeTables))}
	c.reuse.audit = a
	widest := c.Hidden
	for _, n := range c.tiers.Types {
		table := c.data.Input(n)
		if table.Features == nil {
			return fmt.Errorf("{history_audit} %d: the rows of type %s are learnt, and an audit reads those of tables alone; leave it out, or give "+
				"{input} %s=constant or a table", c.HistoryAudit, table.Name, table.Name)
		}
		widest = max(widest, table.Dim())
		o := c.eval.Tables
		o.Readers = auditReaders
		var err error
		if a.tables[n], err = cachetier.Open(ctx, table.Features, o); err != nil {
			return fmt.Errorf("the rows of %s: %w", table.Name, err)
		}
	}
	a.most = auditBytes / (4 * widest)
	var lists []sample.Topology
	var values []sample.Values
	for _, r := range c.data.Relations {
		lists, values = append(lists, r.AtHand(c.draws.Weighted)), append(values, r.Values())
	}
	sampler := func(draws sample.Config) *sample.Sampler {
		s := sample.NewTyped(c.data.Schema(), lists, draws, 1)
		s.Bring(values)
		c.data.BringRows(s, func(r int) sample.Rows { return c.data.Relations[r].Rows() })
		return s
	}
	a.draw, a.full = make([]*sample.Sampler, c.Layers), make([]*sample.Sampler, c.Layers)
	for l := 1; l < c.Layers; l++ {
		some, all := c.draws, sample.Config{Weighted: c.draws.Weighted, Options: c.draws.Options}
		some.Fanouts, some.OfRelation, all.Fanouts = some.Fanouts[c.Layers-l:], slices.Clone(some.OfRelation), make([]int, l)
		for r := range c.data.Relations {
			if len(some.OfRelation) > 0 && some.OfRelation[r] != nil {
				some.OfRelation[r] = some.OfRelation[r][c.Layers-l:]
			}
			fanouts := make([]int, l)
			for hop := range fanouts {
				if c.tiers.Reach.Relations[l-1-hop][r] {
					fanouts[hop] = sample.All
				}
			}
			all.OfRelation = append(all.OfRelation, fanouts)
		}
		a.draw[l] = sampler(some)
		if !some.Kind.Walks() {
			a.full[l] = sampler(all)
		}
	}
	return nil
}

// close gives up the readers.
func (a *audit) close() {
	if a == nil {
		return
	}
	for _, s := range a.tables {
		if s != nil {
			s.Close()
		}
	}
}

// look compares some of the rows that step now reuses, if an audit is due. b is the step's batch,
// and key seeds its dropout. If it fails, or ctx ends, nothing is counted.
func (a *audit) look(ctx context.Context, now int, b *sample.Batch, key uint64) error {
	if a == nil || now%cmp.Or(a.HistoryAuditEvery, run.DefaultAuditEvery) != 0 {
		return nil
	}
	parts := a.reuse.cache.Planned(now).Parts
	sums := make([]run.AuditSums, len(parts))
	for k, n := range spread(parts, a.HistoryAudit) {
		part := &parts[k]
		uses := make([]uint32, len(part.Used))
		for i := range uses {
			uses[i] = uint32(i)
		}
		sample.Shuffle(uses, sample.Hash(a.Seed, auditTag, uint64(part.Layer), uint64(part.Type)), now)
		uses = uses[:n]
		slices.Sort(uses)
		for some := range slices.Chunk(uses, a.most) {
			nodes, slots := make([]uint32, len(some)), make([]uint32, len(some))
			for i, use := range some {
				u := part.Used[use]
				nodes[i], slots[i] = b.Live(part.Layer, part.Type)[u.At], u.Slot
				sums[k].Ages += int64(now) - int64(u.Stamp)
			}
			if err := a.compare(ctx, k, a.BatchSeeds().At(now), key, nodes, slots, &sums[k]); err != nil {
				return fmt.Errorf("audit of rows that are used again: %w", err)
			}
		}
	}
	for k, s := range sums {
		a.reuse.audited[k].Add(s)
	}
	a.warn()
	return nil
}

// spread returns how many of each part's reused rows are compared, n in all if there are enough.
// Shares are equal, but a part with few rows leaves the rest of its share to the others.
func spread(parts []history.Part, n int) []int {
	order, shares := make([]int, len(parts)), make([]int, len(parts))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(len(parts[i].Used), len(parts[j].Used)) })
	for i, k := range order { // those that have few leave their share to others
		shares[k] = min(len(parts[k].Used), n/(len(parts)-i))
		n -= shares[k]
	}
	return shares
}

// compare adds to sums how far the rows in slots are from the rows of nodes computed anew: as the
// step draws them with z and key, and over all neighbours. k is the number of the part.
func (a *audit) compare(
	ctx context.Context, k int, batchSeed sample.BatchSeed, key uint64, nodes, slots []uint32, sums *run.AuditSums,
) error {
	u, kept, before := a.reuse, a.reuse.options.Kept[k], a.read()
	row := func(rows []float32, i int) []float32 { return rows[i*u.hidden:][:u.hidden] }
	a.step.Tape.Reset(false)
	used := a.step.Tape.GatherRows(a.step.Tape.Leaf(u.slots[k]), a.step.Feed.Ints(u.place(k, slots, &a.places))[0])
	rows := slices.Clone(a.step.Feed.Download(used.Value))
	var fresh []float32 // what the step would have computed
	for some := range slices.Chunk(nodes, max(1, a.most/a.edgesDrawn(kept.Layer, kept.Type))) {
		computed, err := a.compute(ctx, a.draw[kept.Layer], batchSeed, key, kept.Type, some)
		if err != nil {
			return err
		}
		fresh = append(fresh, computed...)
	}
	for i := range nodes {
		sums.Draw.Add(row(rows, i), row(fresh, i))
	}
	err := a.inFull(kept, nodes, func(some, places []uint32) error {
		full, err := a.compute(ctx, a.full[kept.Layer], sample.BatchSeed{}, 0, kept.Type, some)
		if err != nil {
			return err
		}
		for i, at := range places {
			sums.Full.Add(row(rows, int(at)), row(full, i))
			sums.Fresh.Add(row(fresh, int(at)), row(full, i))
		}
		sums.Whole += int64(len(some))
		return nil
	})
	if err != nil {
		return err
	}
	after := a.read()
	sums.Nodes += int64(len(nodes))
	sums.Rows, sums.Bytes = sums.Rows+after.InputRows-before.InputRows, sums.Bytes+after.Tiers.Disk.BytesRead-before.Tiers.Disk.BytesRead
	return nil
}

// inFull calls do with groups of nodes to compute together over all their neighbours, and their
// places in nodes. It leaves out nodes with more than a.most edges.
func (a *audit) inFull(kept history.Kept, nodes []uint32, do func(some, places []uint32) error) error {
	if a.full[kept.Layer] == nil {
		return nil
	}
	var some, places []uint32
	edges := 0
	for i, v := range nodes {
		n, err := a.edges(kept.Layer, kept.Type, v)
		if err != nil {
			return err
		}
		if n > a.most {
			continue
		}
		if edges+n > a.most {
			if err := do(some, places); err != nil {
				return err
			}
			some, places, edges = some[:0], places[:0], 0
		}
		some, places, edges = append(some, v), append(places, uint32(i)), edges+n
	}
	if len(some) == 0 {
		return nil
	}
	return do(some, places)
}

// read returns the counters of audits' reads so far.
func (a *audit) read() cachetier.Stats {
	var all []cachetier.Stats
	for _, s := range a.tables {
		if s != nil {
			all = append(all, s.Stats())
		}
	}
	return cachetier.Sum(all)
}

// compute returns the rows of nodes of type t, a row each, from a batch that s draws with z. key
// seeds the dropout; 0: without dropout.
func (a *audit) compute(
	ctx context.Context, s *sample.Sampler, batchSeed sample.BatchSeed, key uint64, t int, nodes []uint32,
) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	seeds := make([][]uint32, len(a.data.Types))
	seeds[t] = nodes
	if err := s.SampleOne(ctx, &a.batch, batchSeed, seeds...); err != nil {
		return nil, a.data.Place(err)
	}
	inputs := a.batch.Inputs()
	in := step.InputOf(&a.batch, make([]kernels.Tensor, len(inputs))...)
	in.Key = key
	for n, ids := range inputs {
		if a.tables[n] == nil || len(ids) == 0 {
			continue
		}
		var err error
		if in.Rows[n], err = a.step.Feed.Gather(ctx, n, a.tables[n], a.data.Input(n).DType(), ids); err != nil {
			return nil, err
		}
	}
	return a.step.Feed.Download(a.step.Predict(in)[t].Value), nil
}

// edgesDrawn returns the most edges that a step draws for a row of type t that layer reads, from 1
// to a.most.
func (a *audit) edgesDrawn(layer, t int) int {
	if layer == 0 {
		return 1 // the row itself
	}
	n := a.edgesDrawn(layer-1, t)
	for i, r := range a.data.Relations {
		if r.Dst != t || !a.tiers.Reach.Relations[layer-1][i] {
			continue
		}
		fanout := a.draws.FanoutOf(a.Layers-layer, i)
		if fanout == sample.All || n > a.most {
			return a.most
		}
		n += min(fanout, a.most) * a.edgesDrawn(layer-1, r.Src)
	}
	return min(n, a.most)
}

// edges counts the edges over all neighbours that lead to the row of v, of type t, that layer
// reads. If there are more than a.most, it returns some number above a.most.
func (a *audit) edges(layer, t int, v uint32) (n int, err error) {
	nodes, known := make([][]uint32, len(a.data.Types)), make([]map[uint32]bool, len(a.data.Types))
	for i := range known {
		known[i] = map[uint32]bool{}
	}
	nodes[t], known[t][v] = []uint32{v}, true
	for l := layer - 1; l >= 0; l-- {
		found := slices.Clone(nodes)
		for i, r := range a.data.Relations {
			if !a.tiers.Reach.Relations[l][i] {
				continue
			}
			for _, v := range nodes[r.Dst] {
				if n += r.Degree(v); n > a.most {
					return n, nil
				}
				if l == 0 {
					continue
				}
				for _, u := range r.Neighbors(v) {
					if int(u) >= a.data.Types[r.Src].Nodes {
						return 0, r.CorruptNeighbor(v, u)
					}
					if !known[r.Src][u] {
						known[r.Src][u] = true
						found[r.Src] = append(found[r.Src], u)
					}
				}
			}
		}
		nodes = found
	}
	return n, nil
}

// farOff is the error above which reused rows are poor stand-ins for the right rows.
const farOff = 0.25

// warn notes, once, that reused rows are far from the right rows, if rows that a step computes are
// much closer.
func (a *audit) warn() {
	h := a.reuse.report(a.data.Types)
	if a.said || h.Audit.ErrorFull <= farOff || h.Audit.ErrorFull <= math.Sqrt2*h.Audit.ErrorFresh {
		return
	}
	a.said = true
	a.Note("history: reuse %.0f %%, error %.2f: lower {t_stale}", 100*h.Reuse, h.Audit.ErrorFull)
}
