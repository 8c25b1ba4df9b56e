package sample

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// typedGraph is three types of nodes and four relations: within type 0, from 1 to 0, from 1 to 2,
// and from 2 to 0 without an edge.
func typedGraph(t *rapid.T) (s Schema, topo []lists) {
	for i := range 3 {
		s.Types = append(s.Types, rapid.IntRange(1, 30).Draw(t, fmt.Sprint("nodes of type", i)))
	}
	s.Relations = []Relation{{0, 0}, {1, 0}, {1, 2}, {2, 0}}
	for r, ends := range s.Relations {
		l := make(lists, s.Types[ends.Dst])
		for v := range l {
			if r == 3 {
				break
			}
			for j := range draw(Hash(uint64(r), uint64(v)), 0, 40) {
				l[v] = append(l[v], uint32(draw(Hash(uint64(r), uint64(v)), j+1, s.Types[ends.Src])))
			}
			slices.Sort(l[v])
		}
		topo = append(topo, l)
	}
	return s, topo
}

// typedConfig is any way to draw from several relations, by one of kinds.
func typedConfig(t *rapid.T, kinds ...Kind) Config {
	for {
		if c := config(t); slices.Contains(kinds, c.Kind) {
			c.SelfLoops, c.GCN = false, false
			return c
		}
	}
}

// ofRelation gives c fanouts for some relations of s.
func ofRelation(t *rapid.T, c *Config, s Schema) {
	c.OfRelation = make([][]int, len(s.Relations))
	for r := range c.OfRelation {
		if rapid.Bool().Draw(t, "own fanouts") {
			for range c.Fanouts {
				c.OfRelation[r] = append(c.OfRelation[r], rapid.SampledFrom([]int{All, 0, 1, 2, 5}).Draw(t, "fanout"))
			}
		}
	}
}

// typedSeeds are some of each type.
func typedSeeds(t *rapid.T, s Schema) (seeds [][]uint32) {
	for _, nodes := range s.Types {
		seeds = append(seeds, rapid.SliceOfNDistinct(rapid.Uint32Range(0, uint32(nodes-1)), 0, nodes, rapid.ID[uint32]).Draw(t, "seeds"))
	}
	return seeds
}

// TestTypedDrawsEqualReference: whatever is resident, however many batches come together, and
// however many workers draw them.
func TestTypedDrawsEqualReference(t *testing.T) {
	edges := requireTypedDraws(t, func(t *rapid.T, _ Schema) Config { return typedConfig(t, NS, Labor0, LaborStar) })
	require.NotContains(t, edges[:3], 0)
	require.Zero(t, edges[3])
}

// TestFanoutsOfRelations: relations that share numbers, and under LABOR-* π, each draw by their own
// fanouts, or not at all.
func TestFanoutsOfRelations(t *testing.T) {
	requireTypedDraws(t, func(t *rapid.T, s Schema) Config {
		c := typedConfig(t, NS, Labor0, LaborStar, LaborStar)
		ofRelation(t, &c, s)
		return c
	})
}

// requireTypedDraws compares what is drawn by any configuration with the reference, and counts
// edges by relation.
func requireTypedDraws(t *testing.T, config func(t *rapid.T, s Schema) Config) []int {
	makeKnots()
	compared, unsure, edges := 0, 0, make([]int, 4)
	rapid.Check(t, func(t *rapid.T) {
		schema, topo := typedGraph(t)
		c := config(t, schema)
		var tiers []Topology
		var values []Values
		var columns []int
		for _, l := range topo {
			tier := &tiered{lists: l, part: rapid.SampledFrom([]int{1, 7, 1000}).Draw(t, "part")}
			tier.resident = rapid.Uint32Range(0, uint32(len(l))).Draw(t, "resident")
			tiers, columns = append(tiers, tier), append(columns, rapid.IntRange(0, 3).Draw(t, "columns"))
			if values = append(values, nil); columns[len(values)-1] > 0 {
				values[len(values)-1] = &valued{tier, columns[len(values)-1]}
			}
		}
		s := NewTyped(schema, tiers, c, rapid.IntRange(1, 4).Draw(t, "workers"))
		s.maxPairs = rapid.SampledFrom([]int{1, 10, maxPairs}).Draw(t, "pairs")
		s.Bring(values)
		n := rapid.IntRange(1, 8).Draw(t, "batches")
		batches, z, seeds := make([]*Batch, n), make([]BatchSeed, n), make([][][]uint32, n)
		for range 2 { // the same buffers again
			for i := range batches {
				if batches[i] == nil {
					batches[i] = new(Batch)
				}
				z[i], seeds[i] = anyZ(t), typedSeeds(t, schema)
			}
			require.NoError(t, s.Sample(context.Background(), batches, z, seeds))
			for i, b := range batches {
				w := reference{Config: c, Schema: schema, topo: topo, columns: columns}
				want := w.batch(z[i], seeds[i])
				if compared++; w.unsure {
					unsure++
					continue
				}
				requireAlike(t, want, b, "batch %d of %+v", i, c)
				for r := range b.Layers[0].Blocks {
					edges[r] += len(b.Layers[0].Blocks[r].Nbr)
				}
			}
		}
	})
	t.Logf("%d of %d unsure; edges of relations %v", unsure, compared, edges)
	require.Less(t, unsure, compared/5, "of %d", compared)
	return edges
}

// TestFirstRelationDrawsAlone: relation 0, within type 0, draws the same as in a graph of its own.
// LABOR-* is left out, since it looks at all relations.
func TestFirstRelationDrawsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema, topo := typedGraph(t)
		c := typedConfig(t, NS, Labor0)
		c.Fanouts = c.Fanouts[:1] // further hops begin at what other relations drew as well
		var all []Topology
		for _, l := range topo {
			all = append(all, AtHand(l))
		}
		z, seeds := anyZ(t), typedSeeds(t, schema)
		var typed, one Batch
		require.NoError(t, NewTyped(schema, all, c, 1).SampleOne(context.Background(), &typed, z, seeds...))
		require.NoError(t, newSingle(topo[0], c).Sample(&one, z, seeds[0]))
		require.True(t, slices.Equal(one.flat(0).Src, typed.flat(0).Src[:len(one.flat(0).Src)]))
		require.True(t, slices.Equal(one.flat(0).Nbr, typed.flat(0).Nbr))
		require.True(t, slices.Equal(one.flat(0).Weight, typed.flat(0).Weight))
	})
}

// TestRelationsAgreeOnVertices: under LABOR-0 equal lists of two relations from one type keep the
// same nodes. Those of relations from two types, and under NS of any two relations, have nothing in
// common.
func TestRelationsAgreeOnVertices(t *testing.T) {
	const trials = 10_000
	schema := Schema{Types: []int{1, 6, 6}, Relations: []Relation{{1, 0}, {1, 0}, {2, 0}}}
	list := lists{{0, 1, 2, 3, 4, 5}}
	topo := []Topology{AtHand(list), AtHand(list), AtHand(list)}
	for _, c := range []Config{{Kind: NS}, {Kind: NS, Smoothed: true}, {Kind: Labor0}, {Kind: Labor0, Smoothed: true}} {
		s := NewTyped(schema, topo, c.with(2), 1)
		same, oneType, twoTypes := 0, map[[2]uint64]int{}, map[[2]uint64]int{}
		var b Batch
		for i := range uint64(trials) {
			require.NoError(t, s.SampleOne(t.Context(), &b, BatchSeed{Hash(1, i), Hash(2, i), 0.5}, []uint32{0}, nil, nil))
			var sets [3]uint64
			for r, ends := range schema.Relations {
				sets[r] = flat{&b.Layers[0].Nodes[ends.Src], &b.Layers[0].Blocks[r]}.chosen(0)
			}
			if sets[0] == sets[1] {
				same++
			}
			oneType[[2]uint64{sets[0], sets[1]}]++
			twoTypes[[2]uint64{sets[0], sets[2]}]++
		}
		requireIndependent(t, twoTypes, "%s: relations from two types", c.name())
		if c.Kind == Labor0 {
			require.Equal(t, trials, same, c.name())
		} else {
			requireIndependent(t, oneType, "%s: relations from one type", c.name())
		}
	}
}

// TestErrorsOfRelations: errors name the relation, and the number of nodes of its source type.
func TestErrorsOfRelations(t *testing.T) {
	schema := Schema{Types: []int{3, 2}, Relations: []Relation{{0, 0}, {1, 0}}}
	topo := []Topology{AtHand(lists{{2}, {}, {}}), AtHand(lists{{1}, {0, 2}, {}})}
	err := NewTyped(schema, topo, Config{Fanouts: []int{All}}, 1).SampleOne(t.Context(), new(Batch), BatchSeed{}, []uint32{0, 1}, nil)
	var bad *NeighborError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, NeighborError{Relation: 1, Node: 1, Neighbor: 2, Nodes: 2}, *bad)
}

// TestReach: batches hold nothing that Reach does not say, and where every fanout draws and lists
// are long, all of it.
func TestReach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema, topo := typedGraph(t)
		c := typedConfig(t, NS)
		ofRelation(t, &c, schema)
		target := rapid.IntRange(0, 2).Draw(t, "target")
		seeds := make([][]uint32, 3)
		for v := range schema.Types[target] {
			seeds[target] = append(seeds[target], uint32(v))
		}
		var all []Topology
		for _, l := range topo {
			all = append(all, AtHand(l))
		}
		var b Batch
		require.NoError(t, NewTyped(schema, all, c, 1).SampleOne(context.Background(), &b, anyZ(t), seeds...))
		reach := c.Reach(schema, target)
		require.Len(t, reach.Types, len(b.Layers)+1)
		for l, layer := range b.Layers {
			for n, nodes := range layer.Nodes {
				require.False(t, len(nodes.Src) > 0 && !reach.Types[l][n], "type %d below layer %d", n, l)
				require.False(t, nodes.Dst > 0 && !reach.Types[l+1][n], "type %d of layer %d", n, l)
			}
			for r, block := range layer.Blocks {
				require.False(t, len(block.Nbr) > 0 && !reach.Relations[l][r], "relation %d in layer %d", r, l)
			}
		}
		top := len(b.Layers) - 1
		for r, ends := range schema.Relations {
			require.Equal(t, ends.Dst == target && c.FanoutOf(0, r) != 0, reach.Relations[top][r])
		}
	})
}

// TestUnweighted: edges that weigh nothing of their own draw like edges that all weigh 1.
func TestUnweighted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema, topo := typedGraph(t)
		c := Config{Kind: NS, Weighted: true, Fanouts: []int{3, 2}}
		var ones, none []Topology
		for _, l := range topo {
			tier := &tiered{lists: l, part: 7, resident: rapid.Uint32Range(0, uint32(len(l))).Draw(t, "resident")}
			none = append(none, Unweighted(tier))
			ones = append(ones, AtHand(equal{l}))
		}
		z, seeds := anyZ(t), typedSeeds(t, schema)
		var a, b Batch
		require.NoError(t, NewTyped(schema, ones, c, 1).SampleOne(context.Background(), &a, z, seeds...))
		require.NoError(t, NewTyped(schema, none, c, 2).SampleOne(context.Background(), &b, z, seeds...))
		for l := range a.Layers {
			for r := range a.Layers[l].Blocks {
				require.True(t, slices.Equal(a.Layers[l].Blocks[r].Nbr, b.Layers[l].Blocks[r].Nbr))
				require.True(t, slices.Equal(a.Layers[l].Blocks[r].Weight, b.Layers[l].Blocks[r].Weight))
			}
		}
	})
}

// equal is lists whose edges weigh 1.
type equal struct{ plain }

type plain interface {
	Nodes() int
	Neighbors(v uint32) []uint32
}

func (e equal) Weights(v uint32) []float32 {
	w := make([]float32, len(e.Neighbors(v)))
	for i := range w {
		w[i] = 1
	}
	return w
}

func TestFits(t *testing.T) {
	two := Schema{Types: []int{3, 2}, Relations: []Relation{{0, 0}, {1, 0}}}
	for _, c := range []struct {
		Config
		Schema
		want string
	}{
		{Config{Kind: RW}, OneType(5), ""},
		{Config{Kind: NS}, two, ""},
		{Config{Kind: LaborStar}, two, ""},
		{Config{Kind: RW}, two,
			"{sampler} rw needs one relation within a type, and the graph has 2 types and 2 relations; take ns, labor0 or labor-star"},
		{Config{Options: Options{SelfLoops: true, GCN: true}}, two,
			"{model} gcn needs one relation within a type, and the graph has 2 types and 2 relations; take a network for typed graphs"},
		{Config{Options: Options{SelfLoops: true}}, two,
			"a network with self loops needs one relation within a type, and the graph has 2 types and 2 relations; take one for typed graphs"},
		{Config{OfRelation: [][]int{nil}}, two, "fanouts of 1 relations, and there are 2"},
		{Config{Fanouts: []int{1, 1}, OfRelation: [][]int{nil, {1}}}, two, "relation 1 has 1 fanouts, and there are 2 hops"},
		{Config{}, Schema{Types: []int{3}, Relations: []Relation{{1, 0}}}, "relation 0 goes from type 1 to type 0, and there are 1 types"},
	} {
		if err := c.Fits(c.Schema); c.want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, c.want)
		}
	}
}
