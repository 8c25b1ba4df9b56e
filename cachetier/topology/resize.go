package topology

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// prefix is the resident lists, from the first node on, with the weights, values and rows of their
// edges.
type prefix struct {
	memory   *kernels.HostBuf // lists, then weights, then each column of values, then rows
	lists    []uint32         // lists of the nodes below resident, one after another
	weights  []float32        // edge by edge as in lists
	values   [][]byte         // by column: edge by edge as in lists, in the encoding of the file
	rows     []byte           // edge by edge as in lists, in the encoding of the file
	resident uint32
}

// close frees the memory and empties the prefix.
func (p *prefix) close() {
	if p.memory != nil {
		p.memory.Close()
	}
	*p = prefix{}
}

// Resize changes the budget, larger or smaller, to bytes, in the sense of Options.Bytes. It reads
// the lists, weights, values and rows that are not resident yet, and keeps offsets, self loops and
// the disk engine. The counters start again. Except for seconds they are then as in a Tier that was
// opened with this budget, and that has read the lists for SelfLoops if this one has.
//
// Only Stats may run during Resize, and what Neighbors and Weights lent before is no longer valid.
// While Resize runs, both the old and the new lists are in memory. After an error, such as the end
// of ctx, the Tier is as it was.
func (t *Tier) Resize(ctx context.Context, bytes int64) error {
	if err := checkBudget(t.graph, bytes); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hold(ctx, bytes)
}

// checkBudget returns an error if the offsets of g exceed a budget of bytes.
func checkBudget(g *store.Graph, bytes int64) error {
	least := LeastBytes(g)
	if bytes >= least {
		return nil
	}
	return fmt.Errorf("topology: a budget of %d bytes: the offsets of %d nodes and %d edges take %d, the least that "+
		"works", bytes, g.Nodes(), g.Edges(), least)
}

// hold replaces the prefix with the one that a budget of bytes allows, and starts the counters
// again. The caller holds t.mu, or is Open, before anybody else has the Tier.
func (t *Tier) hold(ctx context.Context, bytes int64) error {
	resident := t.offsets.prefix(uint64((bytes - LeastBytes(t.graph)) / t.edgeBytes))
	if t.prefix.memory != nil && resident == t.resident { // loaded already; a second load would need it twice in memory
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

// load returns the prefix of the nodes below resident. It copies what the Tier's own prefix has,
// and reads the rest.
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

// recount starts the counters again, as Resize describes. Reading the prefix took seconds now; time
// that warming up took before stays counted.
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

// takes returns the traffic that reading these extents counts as, without reading them.
func (t *Tier) takes(next func() (disk.Extent, bool)) (traffic disk.Traffic) {
	for s, ok := next(); ok; s, ok = next() {
		traffic.Add(t.reader.Takes(s))
	}
	return traffic
}
