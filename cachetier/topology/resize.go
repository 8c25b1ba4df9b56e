package topology

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// prefix is the resident lists: those of the first nodes, and the weights, values and rows of their
// edges.
type prefix struct {
	memory   *kernels.HostBuf // of lists, behind them of weights, then of one column of values after the other, and of rows
	lists    []uint32         // of the nodes below resident, one behind the other
	weights  []float32        // beside lists
	values   [][]byte         // by column, beside lists: as in its file
	rows     []byte           // beside lists, as in the file
	resident uint32
}

// close gives up the memory. The prefix is empty from here on.
func (p *prefix) close() {
	if p.memory != nil {
		p.memory.Close()
	}
	*p = prefix{}
}

// Resize changes the budget to bytes, more or fewer, which is what Options.Bytes says. It reads the
// lists, weights, values and rows that are not resident yet, and keeps offsets, self loops and the
// way the disk is read. The counters begin anew: but for seconds they are those of a Tier that was
// opened with this budget, and that has read the lists for SelfLoops if this one has.
//
// Nothing may run beside it but Stats, and what Neighbors and Weights lent before dies. While it
// runs, both the old and the new lists are in memory. An error, the end of ctx too, leaves the Tier
// as it was.
func (t *Tier) Resize(ctx context.Context, bytes int64) error {
	if err := checkBudget(t.graph, bytes); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hold(ctx, bytes)
}

// checkBudget refuses a budget that the offsets of g do not fit.
func checkBudget(g *store.Graph, bytes int64) error {
	least := LeastBytes(g)
	if bytes >= least {
		return nil
	}
	return fmt.Errorf("topology: a budget of %d bytes: the offsets of %d nodes and %d edges take %d, the least that "+
		"works", bytes, g.Nodes(), g.Edges(), least)
}

// hold replaces the prefix with the one that a budget of bytes allows, and begins the counters
// anew. It expects t.mu held.
func (t *Tier) hold(ctx context.Context, bytes int64) error {
	resident := t.offsets.prefix(uint64((bytes - LeastBytes(t.graph)) / t.edgeBytes))
	if t.prefix.memory != nil && resident == t.resident { // all of it is there, and would be in memory twice
		t.recount(0)
		return nil
	}
	p, traffic, err := t.load(ctx, resident)
	if err != nil {
		return fmt.Errorf("topology: the lists of %d nodes: %w", resident, err)
	}
	t.prefix.close()
	t.prefix = p
	t.recount(traffic.Seconds)
	return nil
}

// load makes the prefix of the nodes below resident: it copies what the Tier's own prefix has, and
// reads the rest.
func (t *Tier) load(ctx context.Context, resident uint32) (p prefix, traffic disk.Traffic, err error) {
	edges := int(t.offsets.at(resident))
	p.resident = resident
	if p.memory, err = kernels.NewHostBuf((edges*int(t.edgeBytes) + 3) / 4 * 4); err != nil {
		return prefix{}, traffic, err
	}
	b := p.memory.Lend()
	defer func() {
		p.memory.Return()
		if err != nil {
			p.close()
		}
	}()
	p.lists = p.memory.Uint32s()[:edges]
	known := copy(p.lists, t.lists)
	if traffic, err = fill(ctx, t, &t.ids, b[:4*edges], known); err != nil {
		return p, traffic, err
	}
	used := 4 * edges
	if t.weighted() {
		p.weights = p.memory.Float32s()[edges : 2*edges]
		copy(p.weights, t.weights)
		more, err := fill(ctx, t, &t.weightsOf, b[used:2*used], known)
		if traffic.Add(more); err != nil {
			return p, traffic, err
		}
		used *= 2
	}
	for i := range t.valuesOf {
		c := &t.valuesOf[i]
		values := b[used : used+c.size*edges]
		if len(t.values) > 0 {
			copy(values, t.values[i])
		}
		more, err := fill(ctx, t, c, values, known)
		if traffic.Add(more); err != nil {
			return p, traffic, err
		}
		p.values, used = append(p.values, values), used+len(values)
	}
	if t.HasRows() {
		p.rows = b[used : used+t.rowsOf.size*edges]
		copy(p.rows, t.rows)
		more, err := fill(ctx, t, &t.rowsOf, p.rows, known)
		if traffic.Add(more); err != nil {
			return p, traffic, err
		}
	}
	return p, traffic, nil
}

// recount begins the counters anew, as Resize says of them. Reading the prefix took seconds now;
// what warming up took before stays counted.
func (t *Tier) recount(seconds float64) {
	all, edges := uint64(t.Edges()), uint64(len(t.lists))
	s := Stats{
		OffsetBytes: LeastBytes(t.graph), ResidentBytes: t.edgeBytes * int64(edges), ResidentLists: int64(t.resident),
		TotalBytes: t.edgeBytes * int64(all), TotalLists: int64(t.nodes),
	}
	rows, wanted, traffic := s.ResidentLists, fileEntry*int64(t.nodes+1)+s.ResidentBytes, t.offsetsRead
	traffic.Add(t.takes(t.ids.edges(0, edges)))
	if t.weighted() {
		traffic.Add(t.takes(t.weightsOf.edges(0, edges)))
	}
	for i := range t.valuesOf {
		traffic.Add(t.takes(t.valuesOf[i].edges(0, edges)))
	}
	if t.HasRows() {
		traffic.Add(t.takes(t.rowsOf.edges(0, edges)))
	}
	if t.mu.loops != nil {
		rows, wanted = s.TotalLists, wanted+4*int64(all-edges)
		traffic.Add(t.takes(t.ids.edges(edges, all)))
	}
	t.stats.Lock()
	defer t.stats.Unlock()
	traffic.Seconds = t.stats.Warmup.Seconds + seconds
	s.Warmup.Count(rows, 0, wanted, traffic)
	t.stats.Stats = s
}

// takes is what reading these extents counts as, without reading them.
func (t *Tier) takes(next func() (disk.Extent, bool)) (traffic disk.Traffic) {
	for s, ok := next(); ok; s, ok = next() {
		traffic.Add(t.reader.Takes(s))
	}
	return traffic
}
