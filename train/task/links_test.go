package task

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
)

// TestPermutation: every number once, in an order for each key.
func TestPermutation(t *testing.T) {
	for n := uint64(1); n < 300; n += 1 + n/7 {
		p, q := newPermutation(n, 1), newPermutation(n, 2)
		seen, same := make([]bool, n), 0
		for i := range n {
			at := p.at(i)
			require.False(t, seen[at], "%d of %d", i, n)
			seen[at] = true
			if at == q.at(i) {
				same++
			}
		}
		if n > 50 {
			require.Less(t, same, int(n)/4)
		}
	}
	// Far places of many: each in the middle of its range as often as it should be.
	p, upper := newPermutation(1<<40+12345, 9), 0
	for i := range uint64(2000) {
		if p.at(i) > p.n/2 {
			upper++
		}
	}
	require.InDelta(t, 1000, upper, 120)
}

// pairs is a bipartite graph with the reverse of its relation, and one more relation that links are
// nothing of. Some edges are parallel.
func pairs(t *testing.T) *data.Data {
	const users, items = 30, 20
	spec := storetest.TypedSpec{
		Types: []storetest.TypedNodes{
			{Name: "item", Nodes: items, Dim: 2, Row: func(int) []float32 { return []float32{1, 2} }},
			{Name: "user", Nodes: users, Dim: 2, Row: func(int) []float32 { return []float32{1, 2} }},
		},
		Target: "item", Classes: 1, Class: func(int) int32 { return 0 },
	}
	buys, back := make([][]store.NodeID, items), make([][]store.NodeID, users)
	for u := range users {
		for j := range 1 + u%4 {
			v := (u*7 + j/2*3) % items // every other one twice
			buys[v], back[u] = append(buys[v], store.NodeID(u)), append(back[u], store.NodeID(v))
		}
	}
	for _, lists := range [][][]store.NodeID{buys, back} {
		for _, l := range lists {
			slices.Sort(l)
		}
	}
	other := make([][]store.NodeID, items)
	for v := range other {
		other[v] = []store.NodeID{store.NodeID(v % users)}
	}
	spec.Relations = []storetest.TypedRelation{
		{Src: "item", Name: "rev_buys", Dst: "user", Neighbors: back, ReverseOf: "user__buys__item"},
		{Src: "user", Name: "buys", Dst: "item", Neighbors: buys, EdgeSplit: &storetest.EdgeSplit{
			Valid: storetest.HeldEdges{Src: []store.NodeID{0, 1}, Dst: []store.NodeID{19, 18}},
			Test:  storetest.HeldEdges{Src: []store.NodeID{2}, Dst: []store.NodeID{3}},
		}},
		{Src: "user", Name: "sees", Dst: "item", Neighbors: other},
	}
	ds, err := store.Open(storetest.BuildTyped(t, spec))
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	d, err := data.Open(ds, data.Options{Links: true})
	require.NoError(t, err)
	return d
}

// TestStepsOfLinks: an epoch has every edge once, a step's seeds are the ends of its positives and
// negatives in the order in which they first come, and its draws are without every edge between the
// ends of a positive, in both relations, and with all others. All of it is the same whoever asks,
// in any order.
func TestStepsOfLinks(t *testing.T) {
	d := pairs(t)
	buys, back := d.Relations[1], d.Relations[0]
	for _, o := range []LinkOptions{
		{}, {Negatives: "uniform:3", Corrupt: "both"}, {Negatives: "filtered:2"}, {Negatives: "shared:4", Chunk: 5, Corrupt: "src"}, {Negatives: "in-batch", Chunk: 4},
	} {
		k, err := NewLinks(d, Options{Batch: 7, Seed: 3}, o, model.Dot)
		require.NoError(t, err)
		require.EqualValues(t, (buys.Edges()+6)/7, k.Steps())
		var orders []string
		for epoch := 1; epoch <= 2; epoch++ {
			k.Begin(epoch)
			found := map[[2]uint32]int{}
			for i := range k.Steps() {
				var x examples
				k.of(&x, i)
				orders = append(orders, fmt.Sprint(x.links))
				seeds := k.Seeds(i)
				require.Equal(t, x.seeds, seeds)

				want, named := make([][]uint32, 2), func(list []uint32, v uint32) []uint32 {
					if slices.Contains(list, v) {
						return list
					}
					return append(list, v)
				}
				linked := map[[2]uint32]bool{}
				for n, l := range x.links {
					found[l]++
					linked[l] = true
					want[1], want[0] = named(want[1], l[0]), named(want[0], l[1])
					require.Equal(t, l, [2]uint32{seeds[1][x.src[n]], seeds[0][x.dst[n]]})
				}
				require.Len(t, x.sides, len(corrupted(k.links.Corrupt)))
				for _, s := range x.sides {
					from := 1
					if s.dst {
						from = 0
					}
					for n := range x.links {
						own := s.list(n)
						lo := n / k.links.Chunk * k.links.Chunk
						switch k.negatives.Way {
						case Uniform, Filtered:
							require.Len(t, own, k.negatives.Of)
						case Shared:
							require.Len(t, own, k.negatives.Of)
							require.Equal(t, s.list(lo), own)
						case InBatch:
							chunk := x.dst[lo:min(lo+k.links.Chunk, len(x.dst))]
							require.Equal(t, slices.Delete(slices.Clone(chunk), n-lo, n-lo+1), own)
						}
						for _, row := range own {
							want[from] = named(want[from], seeds[from][row])
						}
					}
				}
				require.Equal(t, want, seeds)

				without := k.Without(i)
				for _, v := range seeds[0] {
					row := slices.Index(seeds[0], v)
					for _, u := range buys.Neighbors(v) {
						require.Equal(t, linked[[2]uint32{u, v}], slices.Contains(without[1].Of(row), u))
					}
				}
				for _, u := range seeds[1] {
					row := slices.Index(seeds[1], u)
					for _, v := range back.Neighbors(u) {
						require.Equal(t, linked[[2]uint32{u, v}], slices.Contains(without[0].Of(row), v))
					}
				}
				require.Empty(t, without[2].Start)
			}
			total := 0
			for v := range uint32(d.Types[0].Nodes) {
				for _, u := range buys.Neighbors(v) {
					total++
					require.Positive(t, found[[2]uint32{u, v}])
				}
			}
			all := 0
			for _, n := range found {
				all += n
			}
			require.Equal(t, total, all)
		}
		require.NotEqual(t, orders[:k.Steps()], orders[k.Steps():])
		k.links.KeepTargets = true
		require.Nil(t, k.Without(0))
	}
}

// TestSymmetricLinks: in a symmetric relation a step is without both directions of its positives,
// and no other edge.
func TestSymmetricLinks(t *testing.T) {
	ds, err := store.Open(storetest.Build(t, storetest.Communities(60, 2, 3, 4, 1).Linked()))
	require.NoError(t, err)
	defer ds.Close()
	d, err := data.Open(ds, data.Options{Links: true})
	require.NoError(t, err)
	k, err := NewLinks(d, Options{Batch: 10, Seed: 3}, LinkOptions{}, model.Dot)
	require.NoError(t, err)
	k.Begin(1)
	both := 0
	for i := range k.Steps() {
		seeds, without := k.Seeds(i)[0], k.Without(i)[0]
		linked := map[[2]uint32]bool{}
		for _, l := range k.ahead.links {
			linked[l], linked[[2]uint32{l[1], l[0]}] = true, true
		}
		for row, v := range seeds {
			for _, u := range ds.Graph(0).Neighbors(v) {
				require.Equal(t, linked[[2]uint32{u, v}], slices.Contains(without.Of(row), u))
				if linked[[2]uint32{u, v}] {
					both++
				}
			}
		}
	}
	require.Greater(t, both, int(ds.Graph(0).Edges())*3/2)
}

// TestOneRuleOfExclusion: of a relation within a type that has a reverse, a step of links and one
// of edges are without both directions of their positives in both relations, and no other edge.
func TestOneRuleOfExclusion(t *testing.T) {
	d, _ := knows(t)
	d, err := data.Open(d.Set, data.Options{Links: true, Target: "node,a,node"})
	require.NoError(t, err)
	require.NotEqual(t, -1, d.Links.Mirror)
	k, err := NewLinks(d, Options{Batch: 6, Seed: 3}, LinkOptions{}, model.Dot)
	require.NoError(t, err)
	e := &Edges{options: k.options, data: d, relation: k.relation}
	e.owned.relations, e.owned.begins = k.relations, k.begins
	opposite := 0
	for _, task := range []interface {
		Begin(epoch int)
		Steps() int
		Seeds(step int) [][]uint32
		Without(step int) []sample.Without
	}{k, e} {
		task.Begin(1)
		x := &e.ahead
		if task == any(k) {
			x = &k.ahead
		}
		for i := range task.Steps() {
			seeds, without := task.Seeds(i)[0], task.Without(i)
			linked := map[[2]uint32]bool{}
			for _, l := range x.links {
				linked[l], linked[[2]uint32{l[1], l[0]}] = true, true
			}
			for n, r := range d.Relations {
				for row, v := range seeds {
					for _, u := range r.Neighbors(v) {
						want := linked[[2]uint32{u, v}] && (n == d.Links.Relation || n == d.Links.Mirror)
						require.Equal(t, want, slices.Contains(without[n].Of(row), u))
						if want && n == d.Links.Mirror && !slices.Contains(x.links, [2]uint32{v, u}) {
							opposite++
						}
					}
				}
			}
		}
	}
	require.Positive(t, opposite)
}

// TestPairsOfEvaluation: they are no links that are known, the same ones each time, and others for
// each part.
func TestPairsOfEvaluation(t *testing.T) {
	d := pairs(t)
	k, err := NewLinks(d, Options{Batch: 7, Seed: 3}, LinkOptions{EvalNegatives: "pairs:40"}, model.Dot)
	require.NoError(t, err)
	require.Equal(t, metric.ROCAUC, k.Kind())
	var drawn [2][][2]uint32
	for _, part := range []Part{Valid, Test} {
		nodes, err := k.Part(t.Context(), part)
		require.NoError(t, err)
		drawn[part] = slices.Clone(pairsOf(t, k))
		require.Len(t, drawn[part], 40*k.held[part].Len())
		for _, p := range drawn[part] {
			require.NotContains(t, d.Relations[1].Neighbors(p[1]), p[0])
			require.NotContains(t, [][2]uint32{{0, 19}, {1, 18}, {2, 3}}, p)
			require.Contains(t, nodes[1], p[0])
			require.Contains(t, nodes[0], p[1])
		}
		k.drawn[part] = nil
		_, err = k.Part(t.Context(), part)
		require.NoError(t, err)
		require.Equal(t, drawn[part], pairsOf(t, k))
	}
	require.NotEqual(t, drawn[Valid][:40], drawn[Test])
	require.NoError(t, k.Limit(1))
	k.drawn = [3][][2]uint32{}
	_, err = k.Part(t.Context(), Valid)
	require.NoError(t, err)
	require.Len(t, pairsOf(t, k), 40)
	require.Len(t, k.used, 1)
}

// TestScoresAreBudgeted: Bytes counts the scores that a metric keeps, twice since slices grow.
// Metrics of ranks keep one number for each link; others keep the scores of all links and
// negatives.
func TestScoresAreBudgeted(t *testing.T) {
	d := pairs(t)
	bytes := func(kind metric.Kind, negatives, corrupt string) int64 {
		k, err := NewLinks(d, Options{Batch: 7, Metric: kind, Width: 4}, LinkOptions{EvalNegatives: negatives, Corrupt: corrupt}, model.Dot)
		require.NoError(t, err)
		k.model = &model.Model{Shape: model.Shape{Out: 4}}
		return k.Bytes(1 << 30)
	}
	require.EqualValues(t, 2*4*2*100, bytes(metric.AP, "uniform:100", "dst")-bytes(metric.MRR, "uniform:100", "dst"))
	require.EqualValues(t, 2*4*2*100*2, bytes(metric.AP, "uniform:100", "both")-bytes(metric.MRR, "uniform:100", "both"))
	require.Equal(t, bytes(metric.MRR, "uniform:100", "dst"), bytes(metric.Hits(3), "uniform:100", "dst"))
	// Each drawn pair of both parts takes 8 bytes. Each pair of the larger part also takes a score,
	// and a place in a list and a row while it is scored.
	require.EqualValues(t, 8*(2+1)*10+(2*4+pairBytes+4*4*9/8)*2*10, bytes(metric.AP, "pairs:1010", "")-bytes(metric.AP, "pairs:1000", ""))
	// Lists are scored some at a time, and no fewer than one: a link's own.
	require.EqualValues(t, pairBytes*1000, bytes(metric.MRR, "uniform:1001000", "")-bytes(metric.MRR, "uniform:1000000", ""))
}

// live is a backend that counts the bytes of its buffers.
type live struct {
	kernels.Backend
	sizes     map[kernels.Buffer]int64
	now, most int64
}

func (l *live) Alloc(t kernels.DType, n int) kernels.Buffer {
	b := l.Backend.Alloc(t, n)
	l.sizes[b] = int64(n * t.Size())
	l.now += l.sizes[b]
	l.most = max(l.most, l.now)
	return b
}

func (l *live) Free(b kernels.Buffer) {
	l.now -= l.sizes[b]
	delete(l.sizes, b)
	l.Backend.Free(b)
}

// TestScoringStaysWithinItsBytes scores more pairs than fit in scoredBytes, in wide rows, by each
// decoder. Beside the rows of nodes, the backend never has more than scoring counts.
func TestScoringStaysWithinItsBytes(t *testing.T) {
	d := pairs(t)
	const cols, drawn = 128, "pairs:80000"
	for _, decoder := range model.Decoders {
		be := &live{Backend: kernels.NewCPU(kernels.CPUOptions{}), sizes: map[kernels.Buffer]int64{}}
		k, err := NewLinks(d, Options{Batch: 7, Metric: metric.AP, Width: cols}, LinkOptions{EvalNegatives: drawn}, decoder)
		require.NoError(t, err)
		c := model.Config{Kind: model.MLP, Layers: 1, Hidden: 4, Norm: "none", Decoder: decoder}
		s := step.New(be, model.New(be, c, model.Shape{In: []int{2, 2}, Out: cols, Decoded: 1}, 1), k, optim.Options{})
		k.Attach(s)
		seeds, err := k.Part(t.Context(), Valid)
		require.NoError(t, err)
		for n, nodes := range seeds {
			out := kernels.Tensor{Buf: be.Alloc(kernels.F32, len(nodes)*cols), Rows: len(nodes), Cols: cols}
			be.Fill(out, 0.1)
			require.NoError(t, k.Measure(s.Feed, n, out, nodes))
		}
		before := be.now
		be.most = before
		_, err = k.Value()
		require.NoError(t, err)
		most, _ := k.scoredAtOnce()
		require.Less(t, most, 80_000, "%s: nothing is shown", decoder)
		require.LessOrEqual(t, be.most-before, k.scoring(k.evaluation.of), "%s", decoder)
		s.Close()
	}
}

// TestKnownLinksAreBudgeted: chunks of destinations have no more known links of the block than
// there is room for, but where one destination has, and together all of them, each once.
func TestKnownLinksAreBudgeted(t *testing.T) {
	k, err := NewLinks(pairs(t), Options{Batch: 7}, LinkOptions{}, model.Dot)
	require.NoError(t, err)
	find := func(most int, sources []uint32) (known [][2]uint32, largest int) {
		s := &search{TopOptions: TopOptions{ExcludeKnown: true}, k: k, r: k.relation, targets: 20, mostKnown: most, sources: sources}
		s.findHeld()
		hi := 0
		for lo := 0; lo < s.targets; lo = hi {
			hi = s.chunkFrom(lo)
			s.findKnown(lo, hi)
			if hi > lo+1 {
				largest = max(largest, len(s.known))
			}
			for _, at := range s.known {
				known = append(known, [2]uint32{sources[at>>32], uint32(lo) + uint32(at)})
			}
		}
		slices.SortFunc(known, func(a, b [2]uint32) int { return slices.Compare(a[:], b[:]) })
		return known, largest
	}
	var all []uint32
	want := map[[2]uint32]bool{{0, 19}: true, {1, 18}: true, {2, 3}: true}
	for u := range uint32(30) {
		all = append(all, u)
	}
	for v := range uint32(20) {
		for _, u := range k.relation.Neighbors(v) {
			want[[2]uint32{u, v}] = true
		}
	}
	for _, most := range []int{1, 5, 12, 1000} {
		known, largest := find(most, all)
		require.ElementsMatch(t, slices.Collect(maps.Keys(want)), known)
		require.LessOrEqual(t, largest, most)
		known, _ = find(most, []uint32{1, 5, 29})
		for _, pair := range known {
			require.True(t, want[pair])
		}
		require.Len(t, known, linksFrom(want, 1)+linksFrom(want, 5)+linksFrom(want, 29))
	}
}

// linksFrom returns the number of links from a source.
func linksFrom(links map[[2]uint32]bool, src uint32) (n int) {
	for l := range links {
		if l[0] == src {
			n++
		}
	}
	return n
}

// TestOneNode: where there is no other node to take the place of an end there is nothing to learn
// or to measure, which is no reason not to use a network where no links are held out.
func TestOneNode(t *testing.T) {
	row := func(int) []float32 { return []float32{1, 2} }
	spec := storetest.TypedSpec{
		Types:     []storetest.TypedNodes{{Name: "item", Nodes: 1, Dim: 2, Row: row}, {Name: "user", Nodes: 3, Dim: 2, Row: row}},
		Relations: []storetest.TypedRelation{{Src: "user", Name: "buys", Dst: "item", Neighbors: [][]store.NodeID{{0, 2}}}},
		Target:    "item", Classes: 1, Class: func(int) int32 { return 0 },
	}
	ds, err := store.Open(storetest.BuildTyped(t, spec))
	require.NoError(t, err)
	defer ds.Close()
	d, err := data.Open(ds, data.Options{Links: true, Uses: true, Target: "user,buys,item"})
	require.NoError(t, err)
	_, err = NewLinks(d, Options{Batch: 7}, LinkOptions{}, model.Dot)
	require.ErrorContains(t, err, "{corrupt} dst: type item has 1 node, so there is no other to take the place of an end")
	k, err := NewLinks(d, Options{Batch: 7, Fixed: true}, LinkOptions{}, model.Dot)
	require.NoError(t, err)
	require.Zero(t, k.Count(Test))
}

// TestTooManyNegatives: negatives of evaluation that there is no memory for are refused before they
// are drawn, with the number that there is memory for.
func TestTooManyNegatives(t *testing.T) {
	d := pairs(t)
	open := func(kind metric.Kind, negatives string) error {
		_, err := NewLinks(d, Options{Batch: 7, Metric: kind, MemoryBytes: 64 << 20}, LinkOptions{EvalNegatives: negatives}, model.Dot)
		return err
	}
	for _, kind := range []metric.Kind{metric.MRR, metric.AP} {
		err := open(kind, "uniform:2000000000")
		require.ErrorContains(t, err, "{eval_negatives} uniform:2000000000: scoring the links of a part among them takes ")
		require.ErrorContains(t, err, ", and there are 64 MiB; take uniform:")
		fits, _, _ := strings.Cut(strings.Split(err.Error(), "take ")[1], ",")
		require.NoError(t, open(kind, fits))
		n, err := strconv.Atoi(strings.TrimPrefix(fits, "uniform:"))
		require.NoError(t, err)
		require.Error(t, open(kind, fmt.Sprint("uniform:", n+1)))
	}
	require.ErrorContains(t, open(metric.ROCAUC, "pairs:2000000000"), "take pairs:")
}

func pairsOf(t *testing.T, k *Links) [][2]uint32 {
	pairs, err := k.pairs(t.Context())
	require.NoError(t, err)
	return pairs
}

// TestNoPairsLeft: a graph in which all nodes are linked leaves no pair for a negative, which is
// said, and not drawn for ever.
func TestNoPairsLeft(t *testing.T) {
	const nodes = 6
	s := storetest.Spec{Nodes: nodes, Neighbors: make([][]store.NodeID, nodes), EdgeSplit: new(storetest.EdgeSplit), Symmetric: true}
	for v := range store.NodeID(nodes) {
		for u := range store.NodeID(nodes) {
			if u != v && u+v > 1 {
				s.Neighbors[v] = append(s.Neighbors[v], u)
			}
		}
	}
	s.EdgeSplit.Valid = storetest.HeldEdges{Src: []store.NodeID{0}, Dst: []store.NodeID{1}}
	ds, err := store.Open(storetest.Build(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	d, err := data.Open(ds, data.Options{Links: true})
	require.NoError(t, err)
	k, err := NewLinks(d, Options{Batch: 8, Metric: metric.ROCAUC}, LinkOptions{}, model.Dot)
	require.NoError(t, err)
	_, err = k.Part(t.Context(), Valid)
	require.ErrorContains(t, err, "{eval_negatives} pairs:1: 10001 pairs of nodes that were drawn in a row are links of node__to__node, so nearly all pairs are; take uniform:1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = k.Part(ctx, Valid)
	require.ErrorIs(t, err, context.Canceled)
}

// TestUniformNodes: nodes that negatives have are drawn alike.
func TestUniformNodes(t *testing.T) {
	counts := make([]int, 10)
	for i := range 10_000 {
		counts[below(sample.Hash(7), i, len(counts))]++
	}
	for _, n := range counts {
		require.InDelta(t, 1000, n, 5*math.Sqrt(1000))
	}
}

// TestFilteredNegatives compares filtered:N with uniform:N. filtered:N replaces links and pairs of
// a node with itself, and keeps all other negatives.
func TestFilteredNegatives(t *testing.T) {
	several, _ := knows(t)
	one, err := store.Open(storetest.Build(t, storetest.Communities(60, 2, 30, 4, 1).Linked()))
	require.NoError(t, err)
	defer one.Close()
	symmetric, err := data.Open(one, data.Options{Links: true})
	require.NoError(t, err)
	for name, d := range map[string]*data.Data{"two types": pairs(t), "one relation": symmetric, "several relations": several} {
		for _, corrupt := range []string{CorruptDst, CorruptBoth} {
			tasks := [2]*Links{}
			for i, way := range []string{"uniform:3", "filtered:3"} {
				tasks[i], err = NewLinks(d, Options{Batch: 40, Seed: 3, NoLayers: true}, LinkOptions{Negatives: way, Corrupt: corrupt, EvalNegatives: "uniform:3"}, model.DistMult)
				require.NoError(t, err)
				tasks[i].Begin(1)
			}
			kept, redrawn := 0, 0
			var drawn, clean examples
			tasks[0].of(&drawn, 0)
			tasks[1].of(&clean, 0)
			for s, side := range clean.sides {
				from := tasks[1].relation.Src
				if side.dst {
					from = tasks[1].relation.Dst
				}
				for i, link := range clean.links {
					edges := d.Links.All[clean.relation(i)].Relation
					linked := func(v uint32) bool {
						u := link[0]
						if !side.dst {
							u, v = v, link[1]
						}
						r := d.Relations[edges]
						return r.Src == r.Dst && u == v || slices.Contains(r.Neighbors(v), u)
					}
					for j, row := range side.list(i) {
						first := drawn.seeds[from][drawn.sides[s].list(i)[j]]
						now := clean.seeds[from][row]
						require.False(t, linked(now), "%s: %d of %v", name, now, link)
						if linked(first) {
							redrawn++
							continue
						}
						require.Equal(t, first, now, name)
						kept++
					}
				}
			}
			require.Positive(t, kept, name)
			require.Positive(t, redrawn, name)
		}
	}
}

// TestFilteredGivesUp: where a node is linked to all others, a link is a negative in the end.
func TestFilteredGivesUp(t *testing.T) {
	asked := 0
	v := filtered(7, 0, 10, func(uint32) bool { asked++; return true })
	require.Less(t, v, uint32(10))
	require.Equal(t, mostRedraws, asked)
}
