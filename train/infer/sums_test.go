package infer

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
)

// TestRowsOrSums: sums are held where neighbours are anywhere and few rows fit, rows where they are
// close together, or fit.
func TestRowsOrSums(t *testing.T) {
	const nodes, degree = 20_000, 20
	rng := rand.New(rand.NewPCG(1, 1))
	evaluator := func(kind model.Kind, neighbor func(v, i int) int) *Evaluator {
		s := storetest.Communities(nodes, 2, 0, 4, 1)
		s.Neighbors = make([][]store.NodeID, nodes)
		for v := range s.Neighbors {
			for i := range degree {
				s.Neighbors[v] = append(s.Neighbors[v], store.NodeID(neighbor(v, i)))
			}
		}
		return network(t, storetest.Build(t, s), model.Config{Kind: kind, Layers: 2, Hidden: 64, Norm: "none", Heads: 1}, Options{})
	}
	holdsSums := func(e *Evaluator, bytes int64) bool {
		e.most.edges = 1000
		all := newNodeSet(nodes)
		for v := range uint32(nodes) {
			all.add(v)
		}
		_, hold := e.decide(&pass{need: [][]nodeSet{{all}, {all}}, toDisk: true, memory: bytes}, 1, 0, all)
		return hold == HoldSums
	}
	anywhere := evaluator(model.SAGE, func(int, int) int { return rng.IntN(nodes) })
	require.True(t, holdsSums(anywhere, 500_000))
	require.False(t, holdsSums(anywhere, 100_000_000), "all rows fit")
	near := evaluator(model.SAGE, func(v, i int) int { return (v + i + nodes - degree/2) % nodes })
	require.False(t, holdsSums(near, 500_000))
	require.False(t, holdsSums(evaluator(model.GAT, func(int, int) int { return rng.IntN(nodes) }), 500_000), "attention has no sums")
}

// TestEdgeList: each destination has its sources in ascending order, with their weights, from lists
// that are read block by block, wherever blocks and bins end: of many sources, of few, and of one
// that most edges have.
func TestEdgeList(t *testing.T) {
	type edge struct {
		source, dst uint32
		weight      float32
	}
	rng := rand.New(rand.NewPCG(2, 3))
	for _, n := range []int{0, 1, 5000, 50_000} {
		for _, nodes := range []int{1, 3, 1000, 1 << 20} {
			var want []edge
			for i := range n {
				u := rng.IntN(nodes)
				if i%3 > 0 {
					u = nodes / 2
				}
				want = append(want, edge{uint32(u), uint32(i / 10), rng.Float32()})
			}
			slices.SortStableFunc(want, func(a, b edge) int { return cmp.Or(cmp.Compare(a.dst, b.dst), cmp.Compare(a.source, b.source)) })
			for _, together := range []int{1, 7, 100, 5000} {
				for _, slack := range []int64{0, 4 << 10, 1 << 20} {
					l := newEdgeList(nodes, together, slack, true)
					if slack > 1<<10*int64(nodes>>mostSources+1)*2 {
						require.LessOrEqual(t, int64(len(l.bins))*l.bytes(1<<l.page), slack)
					}
					require.NoError(t, l.grow(n/2))
					for i, e := range want {
						if i == n/2 {
							require.NoError(t, l.grow(n))
							l.weigh()
						}
						l.add(e.source, e.dst, e.weight)
					}
					var got []edge
					of, distinct := sources{l: &l}, 0
					for ids := of.next(nil, together); len(ids) > 0; ids = of.next(nil, together) {
						require.LessOrEqual(t, len(ids), together)
						distinct += len(ids)
						for b := ids[0] >> l.shift; b <= ids[len(ids)-1]>>l.shift; b++ {
							for edges, weight := range l.of(int(b)) {
								for i, e := range edges {
									if u := uint32(e >> 32); u >= ids[0] && u <= ids[len(ids)-1] {
										got = append(got, edge{u, uint32(e), weight[i]})
									}
								}
							}
						}
					}
					of.next(nil, together)
					slices.SortStableFunc(got, func(a, b edge) int { return cmp.Compare(a.dst, b.dst) })
					for i := range n / 2 { // before they had weights
						want[i].weight = 1
					}
					require.Equal(t, want, got, "%d edges from %d sources, %d together, slack %d", n, nodes, together, slack)
					all := map[uint32]bool{}
					for _, e := range want {
						all[e.source] = true
					}
					require.Equal(t, len(all), distinct, "each source once")
					l.free()
				}
			}
		}
	}
}

// TestSumsEnd: a pass over parts of sums that fails, or is stopped, at any chunk ends with that
// error, and leaves no goroutine and no memory.
func TestSumsEnd(t *testing.T) {
	e, papers := library(t, model.RSAGE, Options{Dir: filepath.Join(t.TempDir(), "layers"), FS: storetest.NoSync, Bytes: 20_000})
	e.Hold = HoldSums
	_, want, err := rows(t.Context(), e, 2, papers)
	require.NoError(t, err)
	memory, failed := kernels.HostBytes(), errors.New("failed")
	for at := 1; ; at += 1 + at/4 {
		for _, stops := range []bool{false, true} {
			ctx, stop := context.WithCancel(t.Context())
			chunks := 0
			e.Progress = func(Progress) {
				if chunks++; chunks == at && stops {
					stop()
				}
			}
			err := e.Each(ctx, 2, papers, func([]uint32, kernels.Tensor) error {
				if chunks+1 == at && !stops {
					return failed
				}
				return nil
			})
			stop()
			switch {
			case chunks < at && err == nil: // it was at its end
				e.Progress = nil
				_, got, err := rows(t.Context(), e, 2, papers)
				require.NoError(t, err)
				require.Equal(t, want, got)
				return
			case stops && err != nil:
				require.ErrorIs(t, err, context.Canceled)
			case err != nil:
				require.ErrorIs(t, err, failed)
			}
			require.Equal(t, memory, kernels.HostBytes())
		}
	}
}

// TestLayerNames: what others have put beside layers is not removed with them.
func TestLayerNames(t *testing.T) {
	for name, ours := range map[string]bool{"layer-0": true, "layer-12.partial": true, "layer-2024-backup.txt": false, "layer-": false, "my-layer-1": false} {
		require.Equal(t, ours, layerNames.MatchString(name), name)
	}
}

// TestEdgesOfPartsFit: the lists of a part are as long as was reserved, wherever it begins, so that
// none is copied to grow.
func TestEdgesOfPartsFit(t *testing.T) {
	const nodes = 4000
	rng := rand.New(rand.NewPCG(4, 5))
	s := storetest.Communities(nodes, 2, 0, 4, 1)
	s.Neighbors = make([][]store.NodeID, nodes)
	for v := range s.Neighbors {
		for range 1 + 4000/(v+1) + rng.IntN(20) {
			s.Neighbors[v] = append(s.Neighbors[v], store.NodeID(rng.IntN(nodes)))
		}
		slices.Sort(s.Neighbors[v])
		s.Neighbors[v] = slices.Compact(s.Neighbors[v])
	}
	e := network(t, storetest.Build(t, s), model.Config{Kind: model.SAGE, Layers: 2, Hidden: 16, Norm: "none", Heads: 1}, Options{})
	e.most.bytes, e.most.edges = 8000, 3000
	all := newNodeSet(nodes)
	for v := range uint32(nodes) {
		all.add(v)
	}
	for _, memory := range []int64{1, 20_000, 100_000, 1 << 20} {
		h := &held{e: e, layer: 1, w: &windows{e: e, stacks: make([]*cachetier.Stack, 1)}, sums: make([]sums, 1), block: 4 << 10}
		m, parts, room := newPartMaker(h, memory), 0, 0
		var p *part
		require.NoError(t, e.chunks(all, 0, 1, func(chunk []uint32) error {
			if p == nil {
				var err error
				p, err = m.begin(t.Context(), all, chunk[0])
				require.NoError(t, err)
				room = m.edges[0].most
			}
			require.NoError(t, m.add(t.Context(), p, chunk))
			<-m.looks
			require.Equal(t, room, m.edges[0].most, "part %d of %d bytes", parts, memory)
			if p.bytes >= memory {
				parts++
				close(p.done)
				m.added <- struct{}{}
				p = nil
			}
			return nil
		}))
		require.Positive(t, room)
		m.free()
	}
}
