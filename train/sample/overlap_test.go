package sample

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/sampledata"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// computers returns the bundled graph: Amazon Computers, 13,752 products, with all edges in both
// directions.
func computers(t *testing.T) lists {
	raw := sampledata.AmazonComputers()
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	require.NoError(t, err)
	array := func(name string) []int32 {
		f, err := z.Open(name + ".npy")
		require.NoError(t, err)
		defer f.Close()
		text, err := io.ReadAll(f)
		require.NoError(t, err)
		text = text[10+int(binary.LittleEndian.Uint16(text[8:])):] // behind the header
		numbers := make([]int32, len(text)/4)
		_, err = binary.Decode(text, binary.LittleEndian, numbers)
		require.NoError(t, err)
		return numbers
	}
	ends, others := array("adj_indptr"), array("adj_indices")
	topo := make(lists, len(ends)-1)
	require.Len(t, topo, 13_752)
	for v := range topo {
		for _, u := range others[ends[v]:ends[v+1]] {
			topo[v] = append(topo[v], uint32(u))
			topo[u] = append(topo[u], uint32(v))
		}
	}
	for v := range topo {
		slices.Sort(topo[v])
		topo[v] = slices.Compact(topo[v])
	}
	return topo
}

// reaches returns the samplers for which the theorems hold: a node draws the same neighbours in
// every batch with the same batch seed. The last one takes all neighbours.
func reaches() map[string]Config {
	return map[string]Config{
		"ns":     {Kind: NS, Fanouts: []int{4, 4, 4}},
		"labor0": {Kind: Labor0, Fanouts: []int{4, 4, 4}},
		"full":   {Kind: NS, Fanouts: []int{All, All}},
	}
}

// reached draws a batch, and returns S^l as sets, by number of hops l.
func reached(t *testing.T, s single, z BatchSeed, seeds []uint32) (hops []map[uint32]bool) {
	var b Batch
	require.NoError(t, s.Sample(&b, z, seeds))
	set := func(nodes []uint32) map[uint32]bool {
		all := map[uint32]bool{}
		for _, v := range nodes {
			all[v] = true
		}
		return all
	}
	hops = append(hops, set(seeds))
	for _, layer := range slices.Backward(b.Layers) {
		hops = append(hops, set(layer.Nodes[0].Src))
	}
	return hops
}

// union returns the nodes of a and b, and counts the nodes that are in both.
func union(a, b map[uint32]bool) (all map[uint32]bool, both int) {
	all = map[uint32]bool{}
	for v := range a {
		all[v] = true
		if b[v] {
			both++
		}
	}
	for v := range b {
		all[v] = true
	}
	return all, both
}

// TestReachIsAUnion: with one batch seed, a batch reaches the nodes that its seeds reach, and no
// others. So |S^l| is a coverage function of the seeds. Theorems 3.1 and 3.2 (Balin et al.,
// Cooperative Minibatching) then hold for each batch, not only on average, in the forms that their
// proofs use: if one of n seeds is left out, |S^l| shrinks to (n-1)/n or more, on average over the
// seed; leaving out another seed saves no less.
func TestReachIsAUnion(t *testing.T) {
	topo := computers(t)
	order := make([]uint32, len(topo))
	for v := range order {
		order[v] = uint32(v)
	}
	for name, c := range reaches() {
		s := newSingle(topo, c)
		for trial := range 4 {
			Shuffle(order, 1, trial)
			z := Schedule{Seed: 5, Kappa: 1}.At(trial)
			seeds := order[:10]
			whole := reached(t, s, z, seeds)
			a, b := reached(t, s, z, seeds[:6]), reached(t, s, z, seeds[4:])
			less := func(out ...int) (sizes []float64) {
				var rest []uint32
				for i, v := range seeds {
					if !slices.Contains(out, i) {
						rest = append(rest, v)
					}
				}
				for _, hop := range reached(t, s, z, rest) {
					sizes = append(sizes, float64(len(hop)))
				}
				return sizes
			}
			one, two, n := make([]moments, len(whole)), make([]moments, len(whole)), float64(len(seeds))
			for i := range seeds {
				for l, size := range less(i) {
					one[l].add(size)
				}
				for j := range i {
					for l, size := range less(i, j) {
						two[l].add(size)
					}
				}
			}
			for l := range whole {
				all, _ := union(a[l], b[l])
				require.Equal(t, whole[l], all, "%s, hop %d", name, l)
				size := float64(len(whole[l]))
				require.GreaterOrEqual(t, one[l].mean()/(n-1)*(1+1e-12), size/n, "%s, hop %d", name, l)
				first, second := size-one[l].mean(), one[l].mean()-two[l].mean()
				require.LessOrEqual(t, first, second+1e-9, "%s, hop %d", name, l)
			}
		}
	}
}

// growing measures batches of sizes first, 2·first, and so on, on the bundled graph.
type growing struct {
	sizes []int
	// By size: |S^l| / |S⁰|, and the edges that the last hop draws for a seed; the share of S^l
	// that another batch of the same size reaches, too; edges of the subgraph that the seeds
	// induce, for a seed.
	nodes, edges, shared, induced []float64
}

// growBatches draws a trial. Smaller batches are the first seeds of larger ones.
func growBatches(t *testing.T, topo lists, c Config, trial, first, doublings int) (g growing) {
	order := make([]uint32, len(topo))
	for v := range order {
		order[v] = uint32(v)
	}
	Shuffle(order, 3, trial)
	half := len(order) / 2
	z, s := Schedule{Seed: 7, Kappa: 1}.At(trial), newSingle(topo, c)
	within := func(set map[uint32]bool) (edges float64) {
		for v := range set {
			for _, u := range topo[v] {
				if set[u] {
					edges++
				}
			}
		}
		return edges
	}
	for k := range doublings {
		n := first << k
		var b Batch
		require.NoError(t, s.Sample(&b, z, order[:n]))
		a, other := reached(t, s, z, order[:n]), reached(t, s, z, order[half:half+n])
		last := len(a) - 1
		_, both := union(a[last], other[last])
		g.sizes = append(g.sizes, n)
		g.nodes = append(g.nodes, float64(len(a[last]))/float64(n))
		g.edges = append(g.edges, float64(len(b.Layers[0].Blocks[0].Nbr))/float64(n))
		g.shared = append(g.shared, float64(both)/float64(len(a[last])))
		g.induced = append(g.induced, within(a[0])/float64(n))
	}
	return g
}

// TestWorkAndOverlapOfBatches: on a real graph, as a batch grows, it has fewer nodes and edges for
// a seed (theorem 3.1), in steps that get smaller (3.2). It shares more of its nodes with another
// batch of its size, so that workers save more if they draw together. All of this holds for full
// neighbourhoods, too. The subgraph that the seeds induce has more edges for a seed as the batch
// grows, in proportion to n-1. Bounds are sigmas standard errors of the differences. All seeds are
// fixed.
func TestWorkAndOverlapOfBatches(t *testing.T) {
	storetest.Long(t)
	topo := computers(t)
	edges := 0.0
	for _, list := range topo {
		edges += float64(len(list))
	}
	for name, c := range reaches() {
		const trials, first, doublings = 20, 32, 5
		var all []growing
		for trial := range trials {
			all = append(all, growBatches(t, topo, c, trial, first, doublings))
		}
		differs := func(k int, of func(g *growing) []float64) (low, high float64) {
			var m moments
			for i := range all {
				x := of(&all[i])
				m.add(x[k+1] - x[k])
			}
			return m.mean() - sigmas*m.deviation(), m.mean() + sigmas*m.deviation()
		}
		report := ""
		for k := range doublings - 1 {
			_, high := differs(k, func(g *growing) []float64 { return g.nodes })
			require.Negative(t, high, "%s: nodes for a seed, %d seeds", name, first<<k)
			_, high = differs(k, func(g *growing) []float64 { return g.edges })
			require.Negative(t, high, "%s: edges for a seed, %d seeds", name, first<<k)
			low, _ := differs(k, func(g *growing) []float64 { return g.shared })
			require.Positive(t, low, "%s: share of nodes, %d seeds", name, first<<k)
			low, _ = differs(k, func(g *growing) []float64 { return g.induced })
			require.Positive(t, low, "%s: induced edges for a seed, %d seeds", name, first<<k)
			if k == 0 {
				continue
			}
			// From n to 2n seeds and from 2n to 4n: the second step is less than twice the first.
			var bend moments
			for i := range all {
				x, n := all[i].nodes, float64(int(first)<<k)
				bend.add((2*n*x[k+1] - n*x[k]) - 2*(n*x[k]-n/2*x[k-1]))
			}
			require.Negative(t, bend.mean()+sigmas*bend.deviation(), "%s: %d seeds", name, first<<k)
		}
		for k := range doublings {
			var nodes, drawn, shared, induced moments
			for i := range all {
				nodes.add(all[i].nodes[k])
				drawn.add(all[i].edges[k])
				shared.add(all[i].shared[k])
				induced.add(all[i].induced[k])
			}
			n, of := float64(int(first)<<k), float64(len(topo))
			want := edges * (n - 1) / of / (of - 1) // both ends of an edge are seeds by chance
			require.InDelta(t, want, induced.mean(), sigmas*induced.deviation(), "%s: edges within %v seeds", name, n)
			report += formatGrowth(int(n), nodes.mean(), drawn.mean(), shared.mean(), induced.mean())
		}
		t.Logf("%s: seeds; for a seed nodes and edges; share of nodes; for a seed induced edges\n%s", name, report)
	}
}

func formatGrowth(n int, x ...float64) string { return fmt.Sprintf("%4d: %.3f\n", n, x) }
