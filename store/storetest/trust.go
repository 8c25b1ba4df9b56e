package storetest

import (
	"math/rand/v2"
	"slices"

	"github.com/gnnstore/gnnstore/store"
)

// Trust returns a graph whose edges are rated from -2 to 2, by what the destination deserves and,
// half as much, by what the source gives. If asRows is true, rows reveal both; else only the
// ratings of other edges do. Times carry no information. If back is true, there is also the reverse
// relation.
func Trust(nodes int, asRows, back bool) TypedSpec {
	rng := rand.New(rand.NewPCG(5, 6))
	rows, good, kind := make([][]float32, nodes), make([]float64, nodes), make([]float64, nodes)
	for v := range rows {
		good[v], kind[v] = rng.NormFloat64(), rng.NormFloat64()
		for range 4 {
			rows[v] = append(rows[v], float32(rng.NormFloat64()))
		}
		if asRows {
			rows[v][0], rows[v][1] = float32(good[v]), float32(kind[v])
		}
	}
	type edge struct {
		u            store.NodeID
		rating, time float64
	}
	lists, turned := make([][]edge, nodes), make([][]edge, nodes)
	split := &EdgeSplit{}
	for v := range nodes {
		for j, u := range rng.Perm(nodes)[:8] {
			e := edge{store.NodeID(u), min(max(float64(int(good[v]+kind[u]/2)), -2), 2), float64(rng.IntN(100))}
			if part := map[int]*HeldEdges{0: &split.Valid, 1: &split.Test}[(v+j)%10]; part != nil {
				if part.Values == nil {
					part.Values = make([][]float64, 2)
				}
				part.Src, part.Dst = append(part.Src, e.u), append(part.Dst, store.NodeID(v))
				part.Values[0], part.Values[1] = append(part.Values[0], e.rating), append(part.Values[1], e.time)
				continue
			}
			lists[v] = append(lists[v], e)
			turned[u] = append(turned[u], edge{store.NodeID(v), e.rating, e.time})
		}
	}
	relation := func(name string, lists [][]edge) TypedRelation {
		r := TypedRelation{Src: "user", Name: name, Dst: "user"}
		for _, list := range lists {
			slices.SortFunc(list, func(a, b edge) int { return int(a.u) - int(b.u) })
			var ids []store.NodeID
			for _, e := range list {
				ids = append(ids, e.u)
			}
			r.Neighbors = append(r.Neighbors, ids)
		}
		r.Columns = []Column{
			{Name: "rating", Elem: store.I32, Value: func(v, i int) float64 { return lists[v][i].rating }},
			{Name: "time", Elem: store.F32, Value: func(v, i int) float64 { return lists[v][i].time }},
		}
		return r
	}
	s := TypedSpec{
		Types:     []TypedNodes{{Name: "user", Nodes: nodes, Dim: 4, Row: func(v int) []float32 { return rows[v] }}},
		Relations: []TypedRelation{relation("rates", lists)},
		Target:    "user", Classes: 1, Class: func(int) int32 { return 0 }, Train: []store.NodeID{0},
	}
	s.Relations[0].EdgeSplit = split
	if back {
		s.Relations = append(s.Relations, relation("rev_rates", turned))
		s.Relations[1].ReverseOf = "user__rates__user"
	}
	return s
}
