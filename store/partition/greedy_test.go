package partition

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// greedyOf returns the part of each node as greedily has it.
func greedyOf(t require.TestingT, ds *store.Dataset, parts int) (of [][]uint16) {
	w := &writer{Options: Options{Parts: parts}, ctx: context.Background(), ds: ds, m: ds.Manifest()}
	require.NoError(t, store.Guard(func() (err error) {
		of, err = w.greedily()
		return err
	}))
	return of
}

// randomTyped is a small graph of several types and relations.
func randomTyped(t *rapid.T) storetest.TypedSpec {
	s := storetest.TypedSpec{Target: "t0", Classes: 2, Class: func(v int) int32 { return int32(v % 2) }}
	for n := range rapid.IntRange(1, 3).Draw(t, "types") {
		nodes := rapid.IntRange(1, 60).Draw(t, "nodes")
		s.Types = append(s.Types, storetest.TypedNodes{Name: fmt.Sprintf("t%d", n), Nodes: nodes})
	}
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	for r := range rapid.IntRange(1, 4).Draw(t, "relations") {
		src, dst := s.Types[rng.IntN(len(s.Types))], s.Types[rng.IntN(len(s.Types))]
		rel := storetest.TypedRelation{Src: src.Name, Name: fmt.Sprintf("r%d", r), Dst: dst.Name}
		for range dst.Nodes {
			var list []store.NodeID
			for range rng.IntN(7) {
				list = append(list, store.NodeID(rng.IntN(src.Nodes)))
			}
			rel.Neighbors = append(rel.Neighbors, list)
		}
		s.Relations = append(s.Relations, rel)
	}
	for v := range s.Types[0].Nodes {
		if rng.IntN(3) == 0 {
			s.Train = append(s.Train, store.NodeID(v))
		} else {
			s.Valid = append(s.Valid, store.NodeID(v))
		}
	}
	return s
}

// slowly is greedily as the formula has it, with maps.
func slowly(ds *store.Dataset, parts int, order [][2]int) map[[2]int]int {
	m := ds.Manifest()
	typeOf := func(name string) int {
		return slices.IndexFunc(m.NodeTypes, func(t store.NodeType) bool { return t.Name == name })
	}
	train := map[[2]int]bool{}
	for _, v := range ds.Split(0).Train {
		train[[2]int{typeOf(m.Splits[0].NodeType), int(v)}] = true
	}
	alike := func(node [2]int) (nodes [][2]int) { // of its class
		for v := range int(m.NodeTypes[node[0]].Count) {
			if other := [2]int{node[0], v}; train[other] == train[node] {
				nodes = append(nodes, other)
			}
		}
		return nodes
	}
	part := map[[2]int]int{}
	for range 5 {
		for _, node := range order {
			delete(part, node)
			class := alike(node)
			size := map[int]float64{}
			for _, other := range class {
				if q, ok := part[other]; ok {
					size[q]++
				}
			}
			most := float64(int(1.03*float64(len(class))/float64(parts) + 1e-9))
			if even := (len(class) + parts - 1) / parts; most < float64(even) {
				most = float64(even)
			}
			near := map[int]float64{}
			for i, r := range m.Relations {
				if r.Dst != m.NodeTypes[node[0]].Name {
					continue
				}
				for _, u := range ds.Graph(i).Neighbors(uint32(node[1])) {
					if q, ok := part[[2]int{typeOf(r.Src), int(u)}]; ok {
						near[q]++
					}
				}
			}
			best, score := -1, 0.0
			for q := range parts {
				s := near[q] * (most - size[q]) / most // near · (1 − size/most), where equal scores are equal numbers
				if s > score || s == score && s > 0 && size[q] < size[best] {
					best, score = q, s
				}
			}
			for q := range parts {
				if score == 0 && (best < 0 || size[q] < size[best]) {
					best = q
				}
			}
			part[node] = best
		}
	}
	return part
}

// TestGreedyAsReference: nodes get the parts that the formula gives them, and no class of nodes
// fills a part beyond its cap.
func TestGreedyAsReference(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		path := filepath.Join(dir, strconv.Itoa(n))
		w, err := store.Create(path, store.WriterOptions{FS: storetest.NoSync})
		require.NoError(rt, err)
		require.NoError(rt, storetest.WriteTyped(w, randomTyped(rt)))
		ds, err := store.Open(path)
		require.NoError(rt, err)
		defer ds.Close()
		parts := rapid.IntRange(2, 9).Draw(rt, "parts")
		// Each type has one chunk.
		types := len(ds.Manifest().NodeTypes)
		order := make([]int, types)
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			if mix(uint64(a)) < mix(uint64(b)) {
				return -1
			}
			return 1
		})
		var nodes [][2]int
		for _, i := range order {
			for v := range int(ds.Manifest().NodeTypes[i].Count) {
				nodes = append(nodes, [2]int{i, v})
			}
		}
		var want map[[2]int]int
		require.NoError(rt, store.Guard(func() error { want = slowly(ds, parts, nodes); return nil }))
		got := greedyOf(rt, ds, parts)
		classes := map[[3]int]int64{}
		trains := (&writer{ds: ds, m: ds.Manifest()}).trains()
		for t, kind := range ds.Manifest().NodeTypes {
			train := int64(ones(trains[t]))
			for v, q := range got[t] {
				classes[[3]int{t, int(trains[t][v/64] >> (v % 64) & 1), int(q)}]++
			}
			for q := range parts {
				require.LessOrEqual(rt, classes[[3]int{t, 1, q}], capOf(train, parts))
				require.LessOrEqual(rt, classes[[3]int{t, 0, q}], capOf(kind.Count-train, parts))
			}
		}
		for node, q := range want {
			require.Equal(rt, q, int(got[node[0]][node[1]]), "node %d of type %d", node[1], node[0])
		}
	})
}

// TestGreedyChunks: each node is in one chunk, and chunks do not come in the order of the file.
func TestGreedyChunks(t *testing.T) {
	m := &store.Manifest{NodeTypes: []store.NodeType{{Count: 3*greedyChunk + 1}, {Count: 0}, {Count: 70 * greedyChunk}}}
	all := (&greedy{writer: &writer{m: m}}).chunks()
	require.Len(t, all, 74)
	require.False(t, slices.IsSortedFunc(all, func(a, b chunk) int { return (a.t-b.t)<<30 + int(a.lo-b.lo) }))
	slices.SortFunc(all, func(a, b chunk) int { return (a.t-b.t)<<30 + int(a.lo-b.lo) })
	next := int64(0)
	for i, c := range all {
		if i == 4 {
			require.Equal(t, m.NodeTypes[0].Count, next)
			next = 0
		}
		require.Equal(t, []int64{next, int64(min(i/4, 1) * 2)}, []int64{c.lo, int64(c.t)})
		next = c.hi
	}
	require.Equal(t, m.NodeTypes[2].Count, next)
}

// TestGreedyQuality: on a graph of communities far fewer edges cross than with parts as large whose
// nodes are drawn at random, and the parts are even.
func TestGreedyQuality(t *testing.T) {
	ds := open(t, storetest.Build(t, blocks(12000, 40)))
	const parts = 8
	of := greedyOf(t, ds, parts)[0]
	random := slices.Clone(of)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(random), func(i, j int) { random[i], random[j] = random[j], random[i] })
	cross := func(of []uint16) float64 {
		n, all, g := 0, 0, ds.Graph(0)
		for v := range uint32(g.Nodes()) {
			for _, u := range g.Neighbors(v) {
				if all++; of[u] != of[v] {
					n++
				}
			}
		}
		return float64(n) / float64(all)
	}
	sizes, trains := make([]int, parts), make([]int, parts)
	for _, q := range of {
		sizes[q]++
	}
	for _, v := range ds.Split(0).Train {
		trains[of[v]]++
	}
	require.LessOrEqual(t, float64(slices.Max(sizes)), 1.03*12000/parts)
	require.LessOrEqual(t, float64(slices.Max(trains)), 1.03*float64(len(ds.Split(0).Train))/parts)
	require.InDelta(t, 7.0/8, cross(random), 0.01)
	require.Less(t, cross(of), 0.4)
}

// blocks is a graph of many communities, whose nodes lie apart. A fifth of the edges leave them.
func blocks(nodes, communities int) storetest.Spec {
	s := storetest.Communities(nodes, 4, 0, 4, 1)
	rng := rand.New(rand.NewPCG(9, 9))
	for v := range nodes {
		for range 8 {
			u := rng.IntN(nodes)
			if rng.IntN(5) > 0 {
				u = u/communities*communities + v%communities
			}
			s.Neighbors[v] = append(s.Neighbors[v], store.NodeID(min(u, nodes-1)))
		}
	}
	return s
}
