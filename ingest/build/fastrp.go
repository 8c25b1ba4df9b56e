package build

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// FastRP (Chen, Sultan, Tian, Chen, Skiena: Fast and Accurate Network Embeddings via Very Sparse
// Random Projection, CIKM 2019) embeds a node by the random walks from it, projected to few columns
// before they are taken. Here, on the graph with every edge in both directions, all node types and
// relations together, with degrees d:
//
//	X₀[v][c] = +1, 0, -1 with probabilities 1/6, 2/3, 1/6
//	Yₖ[v]    = (1/d(v)) · Σ Xₖ₋₁[u] over v's neighbours u
//	Xₖ[v]    = unit(Yₖ[v] - mean of Yₖ over the nodes of v's type that have edges)
//	out[v]   = √D · unit(Σ Xₖ[v] for k = fastRPFirst … fastRPLast)
//
// so that a value is about 1, which float16 holds well. Nodes without edges are zeros throughout.
//
// Two things differ from the paper. It takes the powers of the walk as they come; all of them tend
// to one stationary vector and soon say nothing of v, so that it stops at the fourth. Taking the
// mean away and bringing rows back to unit length after each step keeps what differs, and long
// walks, which see communities, become the useful ones. And X₀ is not weighted by a tuned power of
// d(v): on ogbn-arxiv every power but 0 was worse, as were lazy walks (a step that stays),
// symmetric normalisation, and powers side by side instead of summed.
//
// Accuracy on ogbn-arxiv's given split, D = 128, 5 epochs of logistic regression on the embedding,
// validation and test:
//
//	powers 1 to 4, X₀ weighted by d^-0.5   34.8 %  35.8 %
//	powers 1 to 4                          45.4 %  46.8 %
//	power 10, centred and rescaled         64.6 %  64.5 %
//	powers 4 to 12, the same               63.5 %  63.6 %
//	powers 8 to 16, the same               65.5 %  65.3 %
//	powers 8 to 24, the same               65.7 %  65.3 %
const (
	fastRPFirst = 8
	fastRPLast  = 16
)

// pull has the nodes of a type, from global node to on, hear from the nodes of another, from global
// node from on.
type pull struct {
	to, from int
	lists    *topology
}

// embedder numbers the nodes of all types one after another.
type embedder struct {
	dim, nodes int
	types      []span
	pulls      []pull
	degree     []float32
}

// span is the nodes of one type.
type span struct{ first, nodes int }

// embedChunk is the number of nodes in a chunk: some 100 µs at ten neighbours and 128 columns.
const embedChunk = 256

// newEmbedder reads every written relation, and takes it in both directions.
func (b *builder) newEmbedder(dim int) (*embedder, error) {
	e := &embedder{dim: dim}
	base := map[*nodes]int{}
	for _, n := range b.nodes {
		base[n] = e.nodes
		e.types = append(e.types, span{e.nodes, n.count})
		e.nodes += n.count
	}
	_, shared := b.sharedGroups(b.counted())
	together := map[[2]string]bool{}
	for i, r := range b.read() { // a reverse that is made says nothing new
		src, dst := b.typeOf(r.Src), b.typeOf(r.Dst)
		t := &topology{symmetric: b.form(i).reverse}
		var err error
		if !shared[i] {
			t.offsets, t.neighbors, err = b.w.ReadRelation(r.Key())
		} else if key := [2]string{r.Src, r.Dst}; !together[key] {
			together[key] = true
			err = t.readShared(b.w, key, dst.count)
		} else {
			continue
		}
		if err != nil {
			return nil, err
		}
		e.pulls = append(e.pulls, pull{base[dst], base[src], t})
		if !t.symmetric {
			e.pulls = append(e.pulls, pull{base[src], base[dst], t.transposed(src.count)})
		}
	}
	e.degree = make([]float32, e.nodes)
	for _, p := range e.pulls {
		for v := range p.lists.nodes() {
			e.degree[p.to+v] += float32(p.lists.offsets[v+1] - p.lists.offsets[v])
		}
	}
	return e, nil
}

// embedding is the rows of all nodes, by stored id.
type embedding struct {
	*embedder
	rows *kernels.HostBuf
	free func()
}

func (e *embedding) row(node int) []float32 { return e.rows.Float32s()[node*e.dim : (node+1)*e.dim] }

// fastRPBytes returns the memory of an embedding beside what is held.
func (b *builder) fastRPBytes(dim int) int64 {
	edges, nodes := int64(0), b.state.total()
	for i := range b.read() {
		rel := &b.state.Relations[i]
		if edges += rel.Report.Edges; !b.form(i).reverse {
			edges += rel.Report.Edges
		}
	}
	return 12*int64(dim)*nodes + 4*edges + (16+4)*nodes
}

// fastRP embeds every node of the graph, all types one after another, in dim columns. It works in
// memory, on the edges as stored: sums run in the order of stored ids, so the last bits follow
// Order.
func (b *builder) fastRP(ctx context.Context, dim int) (_ *embedding, err error) {
	if need := b.fastRPBytes(dim); b.held+need+baseBytes > b.Memory {
		return nil, fmt.Errorf("{features} fastrp:%d works in memory, and needs {memory} %d MiB for this graph; give that, or fewer columns, or choose random:D or degree",
			dim, (b.held+need+baseBytes)>>20+1)
	}
	e, err := b.newEmbedder(dim)
	if err != nil {
		return nil, err
	}
	b.meter.begin("embed nodes", int64(e.nodes)*fastRPLast, "nodes")
	var bufs [3]*kernels.HostBuf
	free := func() {
		for i := range bufs {
			b.release(&bufs[i])
		}
	}
	for i := range bufs {
		if bufs[i], err = b.hold(4 * int64(dim) * int64(max(e.nodes, 1))); err != nil {
			free()
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			free()
		}
	}()
	x, next, sum := bufs[0].Float32s(), bufs[1].Float32s(), bufs[2].Float32s()
	base := 0
	for _, n := range b.nodes { // by rows, so that rows do not depend on the order of nodes
		stored := n.storedIDs()
		err := parallel(ctx, n.count, embedChunk, func(lo, hi int) {
			for row := lo; row < hi; row++ {
				v := base + int(storedID(stored, uint32(row)))
				projectRow(x[v*dim:(v+1)*dim], b.Seed, uint64(base+row))
			}
		})
		if err != nil {
			return nil, err
		}
		base += n.count
	}
	for k := 1; k <= fastRPLast; k++ {
		if err := e.walk(ctx, next, x); err != nil {
			return nil, err
		}
		for _, t := range e.types {
			if err := e.center(ctx, next, t); err != nil {
				return nil, err
			}
		}
		err := e.each(ctx, func(v int) {
			row, total := next[v*dim:(v+1)*dim], sum[v*dim:(v+1)*dim]
			stretch(row, 1)
			if k >= fastRPFirst {
				for c, y := range row {
					total[c] += y
				}
			}
		})
		if err != nil {
			return nil, err
		}
		x, next = next, x
		b.meter.add(e.nodes)
	}
	length := float32(math.Sqrt(float64(dim)))
	err = e.each(ctx, func(v int) { stretch(sum[v*dim:(v+1)*dim], length) })
	return &embedding{e, bufs[2], free}, err
}

// topology is one relation in memory, by stored ids: the in-neighbours of each destination,
// ascending.
type topology struct {
	offsets   []uint64
	neighbors []uint32
	symmetric bool
}

// readShared reads all relations between two types that share sections, reverses included, as one.
func (t *topology) readShared(w *store.Writer, types [2]string, nodes int) error {
	of, starts, neighbors, err := w.ReadShared(types[0], types[1])
	if err != nil {
		return err
	}
	t.offsets, t.neighbors = make([]uint64, nodes+1), make([]uint32, len(neighbors))
	for k, v := range of {
		t.offsets[v+1] += starts[k+1] - starts[k]
	}
	for v := range nodes {
		t.offsets[v+1] += t.offsets[v]
	}
	next := slices.Clone(t.offsets)
	for k, v := range of {
		next[v] += uint64(copy(t.neighbors[next[v]:], neighbors[starts[k]:starts[k+1]]))
	}
	return nil
}

func (t *topology) nodes() int { return len(t.offsets) - 1 }

// list is v's in-neighbours, borrowed.
func (t *topology) list(v uint32) []uint32 { return t.neighbors[t.offsets[v]:t.offsets[v+1]] }

// transposed returns the out-neighbours of each of n sources, ascending.
func (t *topology) transposed(n int) *topology {
	r := &topology{offsets: make([]uint64, n+1), neighbors: make([]uint32, len(t.neighbors))}
	for _, u := range t.neighbors {
		r.offsets[u]++
	}
	sum := uint64(0)
	for u, c := range r.offsets {
		r.offsets[u] = sum
		sum += c
	}
	for v := range uint32(t.nodes()) {
		for _, u := range t.list(v) {
			r.neighbors[r.offsets[u]] = v
			r.offsets[u]++
		}
	}
	copy(r.offsets[1:], r.offsets[:n])
	r.offsets[0] = 0
	return r
}

// walk makes each row of dst the mean of its neighbours' rows in src.
func (e *embedder) walk(ctx context.Context, dst, src []float32) error {
	clear(dst)
	for _, p := range e.pulls {
		err := parallel(ctx, p.lists.nodes(), embedChunk, func(lo, hi int) {
			for v := lo; v < hi; v++ {
				row := dst[(p.to+v)*e.dim:][:e.dim]
				for _, u := range p.lists.list(uint32(v)) {
					for c, y := range src[(p.from+int(u))*e.dim:][:e.dim] {
						row[c] += y
					}
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return e.each(ctx, func(v int) {
		if d := e.degree[v]; d > 0 {
			scale(dst[v*e.dim:(v+1)*e.dim], 1/d)
		}
	})
}

// center takes the mean of the rows of a type's nodes that have edges away from them. It sums by
// chunk, and the chunks in their order, so that the mean does not depend on the threads.
func (e *embedder) center(ctx context.Context, x []float32, t span) error {
	chunks := make([][]float64, (t.nodes+embedChunk-1)/embedChunk)
	connected := make([]int, len(chunks))
	err := parallel(ctx, t.nodes, embedChunk, func(lo, hi int) {
		sum := make([]float64, e.dim)
		for v := t.first + lo; v < t.first+hi; v++ {
			if e.degree[v] > 0 {
				connected[lo/embedChunk]++
				for c, y := range x[v*e.dim : (v+1)*e.dim] {
					sum[c] += float64(y)
				}
			}
		}
		chunks[lo/embedChunk] = sum
	})
	if err != nil {
		return err
	}
	mean, count := make([]float64, e.dim), 0
	for i, sum := range chunks {
		count += connected[i]
		for c, y := range sum {
			mean[c] += y
		}
	}
	for c := range mean {
		mean[c] /= float64(max(1, count))
	}
	return parallel(ctx, t.nodes, embedChunk, func(lo, hi int) {
		for v := t.first + lo; v < t.first+hi; v++ {
			if e.degree[v] > 0 {
				for c, y := range x[v*e.dim : (v+1)*e.dim] {
					x[v*e.dim+c] = float32(float64(y) - mean[c])
				}
			}
		}
	})
}

// each calls visit for every node, in parallel.
func (e *embedder) each(ctx context.Context, visit func(v int)) error {
	return parallel(ctx, e.nodes, embedChunk, func(lo, hi int) {
		for v := lo; v < hi; v++ {
			visit(v)
		}
	})
}

// projectRow fills a row of X₀.
func projectRow(row []float32, seed, v uint64) {
	for c := range row {
		switch cell(seed, v, uint64(c)) % 6 {
		case 0:
			row[c] = 1
		case 1:
			row[c] = -1
		default:
			row[c] = 0
		}
	}
}

// stretch gives a row a length, unless it is zero.
func stretch(row []float32, length float32) {
	sum := 0.0
	for _, y := range row {
		sum += float64(y) * float64(y)
	}
	if sum > 0 {
		scale(row, length/float32(math.Sqrt(sum)))
	}
}

func scale(row []float32, by float32) {
	for c := range row {
		row[c] *= by
	}
}
