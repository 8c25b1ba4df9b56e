package infer

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/partition"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// together returns how each of some workers exchanges with the others. An exchange ends when any
// worker's context does.
func together(workers int) func(rank int) *Workers {
	boxes := make([][]chan []byte, workers) // to and from
	for q := range boxes {
		for range workers {
			boxes[q] = append(boxes[q], make(chan []byte, 1))
		}
	}
	return func(rank int) *Workers {
		exchange := func(ctx context.Context, send [][]byte) ([][]byte, error) {
			recv := make([][]byte, workers)
			for q, text := range send {
				select {
				case boxes[q][rank] <- slices.Clone(text):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			for q := range recv {
				select {
				case recv[q] = <-boxes[rank][q]:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return recv, nil
		}
		return &Workers{Rank: rank, Of: workers, Exchange: exchange, Gather: func(ctx context.Context, own []byte) ([][]byte, error) {
			return exchange(ctx, slices.Repeat([][]byte{own}, workers))
		}}
	}
}

// TestOwnersAlike: workers that each have a part of a graph make the rows of any layer of any
// network, bit for bit, with chunks of any size.
func TestOwnersAlike(t *testing.T) {
	storetest.Long(t)
	graph, parts := t.TempDir(), filepath.Join(t.TempDir(), "parts")
	storetest.Fewer(t, 25)
	rapid.Check(t, func(rt *rapid.T) {
		c := model.Config{Kind: rapid.SampledFrom(model.Kinds).Draw(rt, "kind"), Layers: 3, Hidden: 8, Norm: "layer", Heads: 2}
		weighted := c.Kind.Typed() && rapid.Bool().Draw(rt, "weighted")
		o := Options{Draws: sample.Config{Weighted: weighted}, Bytes: 1 << 30}
		s := randomGraph(rt, c.Kind.Typed())
		if weighted {
			s.Relations[0].Weight = func(v, i int) float32 { return float32(1 + (v*7+i*3)%5) }
		}
		if c.Kind != model.GAT && c.Kind != model.MLP && rapid.Bool().Draw(rt, "labels") {
			c.LabelInput = 3
		}
		path := writeTyped(rt, graph, s)
		workers := rapid.IntRange(2, 5).Draw(rt, "workers")
		require.NoError(rt, os.RemoveAll(parts))
		ds, err := store.Open(path)
		require.NoError(rt, err)
		by := partition.Options{Parts: workers, FS: storetest.NoSync}
		ranges := rapid.Bool().Draw(rt, "ranges")
		if ranges {
			by.By = storetest.PartFiles(t, ds, workers, rapid.Uint64().Draw(rt, "file"))
		}
		_, err = partition.Write(t.Context(), ds, parts, by)
		require.NoError(rt, err)
		require.NoError(rt, ds.Close())
		if ranges {
			path = storetest.Join(t, parts)
		}
		whole := network(t, path, c, o)
		var nodes []uint32
		for v := range uint32(whole.data.Types[0].Nodes) {
			if v == 0 || rapid.Bool().Draw(rt, "node") {
				nodes = append(nodes, v)
			}
		}
		layer := rapid.IntRange(0, 2).Draw(rt, "layer")
		wantIDs, want, err := rows(t.Context(), whole, layer, nodes)
		require.NoError(rt, err)
		most := bounds{
			rapid.IntRange(1, 2000).Draw(rt, "chunk"), rapid.IntRange(1, 300).Draw(rt, "edges"), 1 << 20,
			rapid.IntRange(0, 60).Draw(rt, "hub"), rapid.IntRange(1, 30).Draw(rt, "part"),
		}
		bytes := int64(rapid.IntRange(1, 3000).Draw(rt, "piece"))
		between := together(workers)
		all, ctx := errgroup.WithContext(t.Context())
		got, ids := make([][]float32, workers), make([][]uint32, workers)
		for rank := range workers {
			own := o
			own.Workers, own.ChunkBytes = between(rank), bytes
			e := network(t, store.PartPath(parts, rank), c, own)
			e.most = most
			all.Go(func() (err error) {
				ids[rank], got[rank], err = rows(ctx, e, layer, nodes)
				return err
			})
		}
		require.NoError(rt, all.Wait())
		for rank := range workers {
			require.Equal(rt, wantIDs, ids[rank])
			require.Equal(rt, asBits(want), asBits(got[rank]))
		}
	})
}
