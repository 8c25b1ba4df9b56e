package build

import (
	"context"
	"math"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// slowFastRP is the formula at the head of fastrp.go, in float64 and over an adjacency matrix.
func slowFastRP(adjacency [][]float64, types []span, dim int, seed uint64) [][]float64 {
	n := len(adjacency)
	degree := make([]float64, n)
	x, sum := make([][]float64, n), make([][]float64, n)
	for v := range x {
		row := make([]float32, dim)
		projectRow(row, seed, uint64(v))
		x[v], sum[v] = make([]float64, dim), make([]float64, dim)
		for c := range row {
			x[v][c] = float64(row[c])
		}
		for _, a := range adjacency[v] {
			degree[v] += a
		}
	}
	unit := func(row []float64, length float64) {
		norm := 0.0
		for _, y := range row {
			norm += y * y
		}
		for c := range row {
			if norm > 0 {
				row[c] *= length / math.Sqrt(norm)
			}
		}
	}
	for k := 1; k <= fastRPLast; k++ {
		y := make([][]float64, n)
		for v := range y {
			y[v] = make([]float64, dim)
			for u, a := range adjacency[v] {
				for c := range dim {
					y[v][c] += a * x[u][c] / max(1, degree[v])
				}
			}
		}
		for _, t := range types {
			for c := range dim {
				mean, connected := 0.0, 0.0
				for v := t.first; v < t.first+t.nodes; v++ {
					if degree[v] > 0 {
						mean += y[v][c]
						connected++
					}
				}
				for v := t.first; v < t.first+t.nodes; v++ {
					if degree[v] > 0 {
						y[v][c] -= mean / connected
					}
				}
			}
		}
		for v := range y {
			unit(y[v], 1)
			for c := range y[v] {
				if k >= fastRPFirst {
					sum[v][c] += y[v][c]
				}
			}
		}
		x = y
	}
	for v := range sum {
		unit(sum[v], math.Sqrt(float64(dim)))
	}
	return sum
}

// TestFastRPIsItsFormula on two node types, one relation within the first and one across, against
// the formula.
func TestFastRPIsItsFormula(t *testing.T) {
	const papers, authors, dim = 30, 12, 16
	f := &fake{schema: ingest.Schema{
		Name:      "two",
		NodeTypes: []ingest.NodeType{{Name: "paper", Count: papers}, {Name: "author", Count: authors}},
		Relations: []ingest.Relation{{Src: "paper", Name: "cites", Dst: "paper", Edges: -1}, {Src: "author", Name: "writes", Dst: "paper", Edges: -1}},
	}, edges: map[int][][2]int64{}}
	adjacency := make([][]float64, papers+authors)
	for v := range adjacency {
		adjacency[v] = make([]float64, papers+authors)
	}
	connect := func(relation int, u, v, firstU int64) {
		f.edges[relation] = append(f.edges[relation], [2]int64{u, v})
		adjacency[firstU+u][v]++
		adjacency[v][firstU+u]++
	}
	for v := range int64(papers - 1) { // the last has no edges
		connect(0, v, v*7%20, 0)
		connect(0, v, v*v%(papers-1), 0)
		connect(1, v%(authors-1), v, papers)
	}
	d, _ := build(t, f, Options{Features: "fastrp:16", Order: OrderOriginal, Seed: 5})
	want := slowFastRP(adjacency, []span{{0, papers}, {papers, authors}}, dim, 5)
	for i, first := range []int{0, papers} {
		table := d.Features(i)
		for v := range table.Rows() {
			got, length := half(table.Row(uint32(v))), 0.0
			for c, y := range got {
				require.InDelta(t, want[first+v][c], y, 0.01, "node %d, column %d", first+v, c)
				length += float64(y) * float64(y)
			}
			if v == table.Rows()-1 {
				require.Zero(t, length, "a node without edges")
			} else {
				require.InDelta(t, dim, length, 0.1)
			}
		}
	}
}

// TestMadeFeaturesIgnoreThreads: one processor and many write equal bytes.
func TestMadeFeaturesIgnoreThreads(t *testing.T) {
	for _, features := range []string{"degree", "random:9", "fastrp:9"} {
		var seals []string
		for _, threads := range []int{1, 4} {
			before := runtime.GOMAXPROCS(threads)
			rep, err := Build(context.Background(), classed(3000), filepath.Join(t.TempDir(), "x.gnn"),
				Options{Features: features, DType: F32, Undirected: true, FS: storetest.NoSync})
			runtime.GOMAXPROCS(before)
			require.NoError(t, err)
			seals = append(seals, rep.Seal)
		}
		require.Equal(t, seals[0], seals[1])
	}
}

// TestFastRPPlan: the plan goes by the sums there are to make, which the number of rows says
// nothing of.
func TestFastRPPlan(t *testing.T) {
	seconds := func(edges int64, o Options) float64 {
		f := &fake{schema: ingest.Schema{Name: "wide", NodeTypes: []ingest.NodeType{{Name: "node", Count: 1000}},
			Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: edges}}}}
		plan, err := PlanBuild(t.Context(), f, filepath.Join(t.TempDir(), "x.gnn"), o)
		require.NoError(t, err)
		for _, p := range plan.Passes {
			if p.Name == "make features node/feat" {
				return p.Seconds
			}
		}
		t.Fatal("no pass makes features")
		return 0
	}
	of := func(features string, undirected bool) Options {
		return Options{Features: features, Undirected: undirected, Memory: 16 << 30, Split: "random:0.6/0.2/0.2"}
	}
	const edges = 10_000_000
	want := (2*edges + 1000) * 128.0 * 16 / rateEmbed / float64(workers())
	require.InEpsilon(t, want, seconds(edges, of("fastrp:128", true)), 0.01)
	require.InEpsilon(t, want, seconds(edges, of("fastrp:128", false)), 0.01, "both directions are walked in any case")
	require.InEpsilon(t, want/4, seconds(edges, of("fastrp:32", true)), 0.01)
	require.Less(t, seconds(edges, of("random:128", true)), 0.1)
}
