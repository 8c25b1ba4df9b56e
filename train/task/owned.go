package task

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
)

// Gather returns the bytes that each worker gives, by worker. All workers call it.
type Gather = func(ctx context.Context, own []byte) ([][]byte, error)

// Workers connects a task with the other workers, where each has only a part of the edges. Each
// worker then asks for the same edges as all others, at the same time.
type Workers struct {
	Ahead  Gather // on the goroutine that draws
	Gather Gather // in evaluations
}

// owned reads edges by their number, and finds links, where each worker has only a part of the
// edges: the lists of the nodes that it owns.
type owned struct {
	relations []data.Relation
	begins    []int64             // as of Links
	columns   []*store.EdgeColumn // their values come along with an edge; of the only relation

	mu    sync.Mutex
	steps map[int]*stepEdges // that are drawn, and may not be computed yet
}

// stepEdges are the edges of a step, of all workers.
type stepEdges struct {
	links  [][2]uint32 // the ends
	values []float64   // of the columns, edge by edge
	// tries counts, by side and negative, how often a filtered negative is drawn anew.
	tries [][]uint8
}

// relationOf returns the index of the relation of edge e, where relation i begins with edge
// begins[i].
func relationOf(begins []int64, e int64) int {
	return sort.Search(len(begins)-2, func(i int) bool { return e < begins[i+1] })
}

// read returns the ends of edges, and the values of the columns, edge by edge.
func (o *owned) read(
	ctx context.Context, gather Gather, edges []int64,
) (links [][2]uint32, values []float64, err error) {
	order := make([]int, len(edges))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(edges[a] - edges[b]) }) // the order of the files
	var own []byte
	for _, i := range order {
		r := relationOf(o.begins, edges[i])
		u, v, here, ok := o.relations[r].OwnEdge(edges[i] - o.begins[r])
		if !ok {
			continue
		}
		for _, x := range []uint32{uint32(i), u, v} {
			own = binary.LittleEndian.AppendUint32(own, x)
		}
		for _, c := range o.columns {
			own = binary.LittleEndian.AppendUint64(own, math.Float64bits(c.At(here)))
		}
	}
	came, err := gather(ctx, own)
	if err != nil {
		return nil, nil, err
	}
	cols := len(o.columns)
	links, values = make([][2]uint32, len(edges)), make([]float64, cols*len(edges))
	found, size := make([]bool, len(edges)), 12+8*cols
	for q, b := range came {
		for ; len(b) >= size; b = b[size:] {
			i := binary.LittleEndian.Uint32(b)
			if int64(i) >= int64(len(edges)) || found[i] {
				return nil, nil, fmt.Errorf("worker %d sends edge %d of %d, which it does not own", q, i, len(edges))
			}
			found[i] = true
			links[i] = [2]uint32{binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])}
			for c := range cols {
				values[int(i)*cols+c] = math.Float64frombits(binary.LittleEndian.Uint64(b[12+8*c:]))
			}
		}
		if len(b) > 0 {
			return nil, nil, fmt.Errorf("worker %d sends %d bytes after its edges", q, len(b))
		}
	}
	if i := slices.Index(found, false); i >= 0 {
		r := relationOf(o.begins, edges[i])
		return nil, nil, fmt.Errorf("no part has edge %d of relation %s; run gnnstore verify on each part",
			edges[i]-o.begins[r], o.relations[r].Relation.Key())
	}
	return links, values, nil
}

// candidatePair is a pair of nodes that may be a link of a relation.
type candidatePair struct{ relation, src, dst uint32 }

// linked reports which of the pairs are links. Without a gather this worker has all lists.
func (o *owned) linked(ctx context.Context, gather Gather, pairs []candidatePair) ([]bool, error) {
	all := make([]bool, len(pairs))
	var own []byte
	for i, p := range pairs {
		r := &o.relations[p.relation]
		if !r.Has(p.dst) || !r.Linked(p.src, p.dst) {
			continue
		}
		if all[i] = true; gather != nil {
			own = binary.LittleEndian.AppendUint32(own, uint32(i))
		}
	}
	if gather == nil {
		return all, nil
	}
	came, err := gather(ctx, own)
	if err != nil {
		return nil, err
	}
	for q, b := range came {
		for ; len(b) >= 4; b = b[4:] {
			i := binary.LittleEndian.Uint32(b)
			if int64(i) >= int64(len(all)) {
				return nil, fmt.Errorf("worker %d sends link %d of %d", q, i, len(all))
			}
			all[i] = true
		}
	}
	return all, nil
}

// degreesOf returns the number of in-neighbours that nodes have in relation r.
func degreesOf(ctx context.Context, gather Gather, r *data.Relation, nodes []uint32) ([]uint32, error) {
	var own []byte
	for i, v := range nodes {
		if r.Has(v) {
			own = binary.LittleEndian.AppendUint32(own, uint32(i))
			own = binary.LittleEndian.AppendUint32(own, uint32(r.Degree(v)))
		}
	}
	came, err := gather(ctx, own)
	if err != nil {
		return nil, err
	}
	degrees := make([]uint32, len(nodes))
	for q, b := range came {
		for ; len(b) >= 8; b = b[8:] {
			i := binary.LittleEndian.Uint32(b)
			if int64(i) >= int64(len(nodes)) {
				return nil, fmt.Errorf("worker %d sends the degree of node %d of %d", q, i, len(nodes))
			}
			degrees[i] = binary.LittleEndian.Uint32(b[4:])
		}
	}
	return degrees, nil
}

// prepare reads the edges of n steps. edgesOf returns the edges of a step, of all workers.
func (o *owned) prepare(
	ctx context.Context, gather Gather, from, n int, edgesOf func(step int) []int64,
) ([]*stepEdges, error) {
	var edges []int64
	steps, ends := make([]*stepEdges, n), make([]int, n)
	for i := range steps {
		edges = append(edges, edgesOf(from+i)...)
		ends[i] = len(edges)
	}
	links, values, err := o.read(ctx, gather, edges)
	if err != nil {
		return nil, err
	}
	lo, cols := 0, len(o.columns)
	for i, hi := range ends {
		steps[i] = &stepEdges{links: links[lo:hi:hi], values: values[cols*lo : cols*hi : cols*hi]}
		lo = hi
	}
	return steps, nil
}

// keep keeps the edges of steps, which begin with step from, until a later step is computed.
// It leaves out the steps in which this worker has no share.
func (o *owned) keep(from int, steps []*stepEdges, hasShare func(edges int) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.steps == nil {
		o.steps = map[int]*stepEdges{}
	}
	for i, s := range steps {
		if hasShare(len(s.links)) {
			o.steps[from+i] = s
		}
	}
}

// of returns the edges of a step that was kept.
func (o *owned) of(step int) *stepEdges {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.steps[step]
}

// computes forgets the edges of the steps before step, which is being computed.
func (o *owned) computes(step int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.steps {
		if i < step {
			delete(o.steps, i)
		}
	}
}

// forget forgets all steps.
func (o *owned) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.steps)
}
