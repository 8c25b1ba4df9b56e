package sample

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLabels compares the lists with looking at every edge, in layers of two types that follow each
// other through one Labels.
func TestLabels(t *testing.T) {
	const classes = 4
	rng := rand.New(rand.NewPCG(1, 2))
	relations := []Relation{{Src: 0, Dst: 0}, {Src: 1, Dst: 0}, {Src: 0, Dst: 1}, {Src: 0, Dst: 0}}
	shown := func(v uint32) []uint32 { return [][]uint32{nil, {3}, {0, 2}, {1}}[v%4] }
	var l Labels
	for round := range 20 {
		layer := Layer{Nodes: make([]Frontier, 2), Blocks: make([]Block, len(relations))}
		for i := range layer.Nodes {
			src := rng.IntN(30)
			for _, v := range rng.Perm(40)[:src] {
				layer.Nodes[i].Src = append(layer.Nodes[i].Src, uint32(v))
			}
			layer.Nodes[i].Dst = rng.IntN(src + 1)
		}
		for r, ends := range relations[:3] { // nothing is drawn from the last one
			b, from := &layer.Blocks[r], len(layer.Nodes[ends.Src].Src)
			for range layer.Nodes[ends.Dst].Dst {
				b.Start = append(b.Start, uint32(len(b.Nbr)))
				for range rng.IntN(5) * min(1, from) {
					b.Nbr, b.Weight = append(b.Nbr, uint32(rng.IntN(from))), append(b.Weight, rng.Float32())
				}
				b.End = append(b.End, uint32(len(b.Nbr)))
			}
			if round%2 == 0 {
				b.Weight = nil
			}
		}
		l.Make(&layer, relations, 0, classes, shown, round%3 > 0)

		type edge struct {
			class  uint32
			weight float32
		}
		check := func(got *Block, want [][]edge) {
			require.Len(t, got.Start, len(want))
			byClass := make([][]uint32, classes)
			for i, list := range want {
				var found []edge
				for e := got.Start[i]; e < got.End[i]; e++ {
					found = append(found, edge{got.Nbr[e], got.Weight[e]})
				}
				require.Equal(t, list, found)
				for _, e := range list {
					byClass[e.class] = append(byClass[e.class], uint32(i))
				}
			}
			if round%3 == 0 {
				require.Empty(t, got.RevStart)
				return
			}
			for c, list := range byClass {
				require.Equal(t, list, append([]uint32(nil), got.RevDst[got.RevStart[c]:got.RevStart[c+1]]...))
				for k := got.RevStart[c]; k < got.RevStart[c+1]; k++ {
					e, i := got.RevEdge[k], got.RevDst[k]
					require.EqualValues(t, c, got.Nbr[e])
					require.True(t, got.Start[i] <= e && e < got.End[i])
				}
			}
		}
		nodes := &layer.Nodes[0]
		own := make([][]edge, nodes.Dst)
		for i := range own {
			for _, c := range shown(nodes.Src[i]) {
				own[i] = append(own[i], edge{c, 1})
			}
		}
		check(&l.Own, own)
		for _, r := range []int{0, 2} {
			b := &layer.Blocks[r]
			want := make([][]edge, len(b.Start))
			for i := range want {
				list := b.Nbr[b.Start[i]:b.End[i]]
				for k, u := range list {
					w := 1 / float32(len(list))
					if b.Weight != nil {
						w = b.Weight[int(b.Start[i])+k]
					}
					for _, c := range shown(nodes.Src[u]) {
						want[i] = append(want[i], edge{c, w})
					}
				}
			}
			check(&l.Of[r], want)
		}
		require.Empty(t, l.Of[1].Start, "from another type")
		require.Empty(t, l.Of[3].Start)
	}
	require.Positive(t, l.Bytes())
}
