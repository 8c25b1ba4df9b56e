package ingest

import (
	"context"
	"math"
)

// FastRP (Chen, Sultan, Tian, Chen, Skiena: Fast and Accurate Network Embeddings via Very Sparse Random Projection, CIKM
// 2019) embeds a node by random walks from it, projected to few columns before they are taken. On the graph with every
// edge in both directions, all node types and relations together, with degrees d:
//
//	X₀[v]  = d(v)^β · R[v]           R[v][c] = +√3, 0, -√3 with probabilities 1/6, 2/3, 1/6
//	Xₖ     = D⁻¹·A·Xₖ₋₁              each row the mean of its neighbours'
//	out[v] = Σₖ wₖ · Xₖ[v] / |Xₖ[v]|
//
// and out's rows are scaled to length √D, so that a value is about 1 and float16 holds it well. A node without edges gets
// zeros.
var (
	fastRPWeights = [...]float32{1, 1, 1, 1} // w₁ …
	fastRPBeta    = -0.5
)

// pull says that the nodes of a type, from global node to on, hear from those of another, from global node from on.
type pull struct {
	to, from int
	lists    *topology
}

// embedder numbers the nodes of all types one after another.
type embedder struct {
	dim, nodes int
	pulls      []pull
	degree     []float32
}

// newEmbedder takes every relation in both directions.
func (b *builder) newEmbedder(dim int) *embedder {
	e := &embedder{dim: dim}
	base := map[*nodes]int{}
	for _, n := range b.nodes {
		base[n] = e.nodes
		e.nodes += n.count
	}
	for i, r := range b.schema.Relations {
		src, dst, t := b.typeOf(r.Src), b.typeOf(r.Dst), b.topology[i]
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
	return e
}

// fastRP embeds every node of the graph, all types one after another, in dim columns.
func (b *builder) fastRP(ctx context.Context, dim int) ([]float32, error) {
	e := b.newEmbedder(dim)
	b.meter.begin("embed nodes", int64(e.nodes)*int64(len(fastRPWeights)), "nodes")
	x, next, sum := make([]float32, e.nodes*dim), make([]float32, e.nodes*dim), make([]float32, e.nodes*dim)
	err := e.each(ctx, func(v int) { e.project(x[v*dim:(v+1)*dim], v, b.Seed) })
	if err != nil {
		return nil, err
	}
	for _, w := range fastRPWeights {
		clear(next)
		for _, p := range e.pulls {
			err := parallel(ctx, p.lists.nodes(), nodeChunk/8, func(lo, hi int) {
				for v := lo; v < hi; v++ {
					row := next[(p.to+v)*dim:][:dim]
					for _, u := range p.lists.list(uint32(v)) {
						for c, y := range x[(p.from+int(u))*dim:][:dim] {
							row[c] += y
						}
					}
				}
			})
			if err != nil {
				return nil, err
			}
		}
		err := e.each(ctx, func(v int) {
			row, total := next[v*dim:(v+1)*dim], sum[v*dim:(v+1)*dim]
			scale(row, 1/max(1, e.degree[v]))
			if length := norm(row); length > 0 {
				for c, y := range row {
					total[c] += w / length * y
				}
			}
		})
		if err != nil {
			return nil, err
		}
		x, next = next, x
		b.meter.add(e.nodes)
	}
	err = e.each(ctx, func(v int) {
		row := sum[v*dim : (v+1)*dim]
		if length := norm(row); length > 0 {
			scale(row, float32(math.Sqrt(float64(dim)))/length)
		}
	})
	b.meter.end()
	return sum, err
}

// each calls visit for every node, in parallel.
func (e *embedder) each(ctx context.Context, visit func(v int)) error {
	return parallel(ctx, e.nodes, nodeChunk, func(lo, hi int) {
		for v := lo; v < hi; v++ {
			visit(v)
		}
	})
}

// project fills v's row of X₀.
func (e *embedder) project(row []float32, v int, seed uint64) {
	size := float32(math.Sqrt(3) * math.Pow(float64(max(1, e.degree[v])), fastRPBeta))
	for c := range row {
		switch h := cell(seed, uint64(v), uint64(c)) % 6; h {
		case 0:
			row[c] = size
		case 1:
			row[c] = -size
		}
	}
}

func norm(row []float32) float32 {
	sum := float32(0)
	for _, y := range row {
		sum += y * y
	}
	return float32(math.Sqrt(float64(sum)))
}

func scale(row []float32, by float32) {
	for c := range row {
		row[c] *= by
	}
}
