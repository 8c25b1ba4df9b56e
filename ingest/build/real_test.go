package build_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/edgelist"
	"github.com/gnnstore/gnnstore/ingest/graphsaint"
	"github.com/gnnstore/gnnstore/ingest/npz"
	"github.com/gnnstore/gnnstore/ingest/ogb"
	"github.com/gnnstore/gnnstore/ingest/planetoid"
	"github.com/gnnstore/gnnstore/ingest/sampledata"
	"github.com/gnnstore/gnnstore/store"
)

// sealed builds, verifies and closes.
func sealed(t *testing.T, src ingest.Source, o build.Options) *build.Report {
	t.Helper()
	defer src.Close()
	path := filepath.Join(t.TempDir(), "x.gnn")
	rep, err := build.Build(context.Background(), src, path, o)
	require.NoError(t, err)
	d, err := store.Open(path)
	require.NoError(t, err)
	defer d.Close()
	problems, err := d.Verify(context.Background(), nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	return rep
}

func TestAmazonComputers(t *testing.T) {
	raw := sampledata.AmazonComputers()
	src, err := npz.OpenReader("amazon.npz", bytes.NewReader(raw), int64(len(raw)))
	require.NoError(t, err)
	rep := sealed(t, src, build.Options{Undirected: true, Split: "per-class:20/30", Name: "computers"})
	require.Equal(t, "computers", rep.Name)
	require.EqualValues(t, 13752, rep.NodeTypes[0].Count)
	require.EqualValues(t, 287209, rep.Relations[0].EdgesRead)
	require.EqualValues(t, 491722, rep.Relations[0].Edges)
	require.Equal(t, 767, rep.Tables[0].Dim)
	require.Equal(t, 10, rep.Labels[0].Classes)
	require.Equal(t, [3]int{200, 300, 13252}, [3]int{rep.Splits[0].Train, rep.Splits[0].Valid, rep.Splits[0].Test})
}

// data is a file of the folder of public data; the test is skipped without it.
func data(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("GNNSTORE_DATA")
	if root == "" {
		t.Skip("GNNSTORE_DATA is not set: the folder with coauthor_cs, ogbn_arxiv and others")
	}
	return filepath.Join(root, name)
}

func TestCoauthorCS(t *testing.T) {
	src, err := npz.Open(data(t, "coauthor_cs/ms_academic_cs.npz"))
	require.NoError(t, err)
	rep := sealed(t, src, build.Options{Undirected: true, Features: "degree"}) // 6,805 columns of its own take seconds
	require.EqualValues(t, 18333, rep.NodeTypes[0].Count)
	require.EqualValues(t, 163788, rep.Relations[0].EdgesRead)
	require.EqualValues(t, 163788, rep.Relations[0].Edges)
	require.Zero(t, rep.Relations[0].ReverseAdded)
}

func TestOgbnArxiv(t *testing.T) {
	for _, undirected := range []bool{false, true} {
		src, err := ogb.Options{}.Open(data(t, "ogbn_arxiv"))
		require.NoError(t, err)
		rep := sealed(t, src, build.Options{Undirected: undirected, Features: "degree"})
		require.EqualValues(t, 169343, rep.NodeTypes[0].Count)
		require.EqualValues(t, 1166243, rep.Relations[0].EdgesRead)
		require.Zero(t, rep.Relations[0].SelfLoops)
		require.Equal(t, map[bool]int64{false: 1166243, true: 2315598}[undirected], rep.Relations[0].Edges)
		require.Equal(t, 40, rep.Labels[0].Classes)
		require.Equal(t, [3]int{90941, 29799, 48603}, [3]int{rep.Splits[0].Train, rep.Splits[0].Valid, rep.Splits[0].Test})
	}
}

// TestPlanetoid: 5,278 pairs in Cora; 4,552 in CiteSeer, and 124 nodes that cite themselves.
func TestPlanetoid(t *testing.T) {
	for _, c := range []struct {
		name                              string
		nodes, read, merged, edges, loops int64
		dim, classes, train, missing      int
	}{
		{"cora", 2708, 10858, 302, 2 * 5278, 0, 1433, 7, 140, 0},
		{"citeseer", 3327, 9464, 236, 2*4552 + 124, 124, 3703, 6, 120, 15},
	} {
		src, err := planetoid.Open(data(t, "planetoid_"+c.name), 0)
		require.NoError(t, err)
		rep := sealed(t, src, build.Options{Undirected: true})
		require.Equal(t, c.name, rep.Name)
		require.Equal(t, c.nodes, rep.NodeTypes[0].Count)
		r := rep.Relations[0]
		require.Equal(t, [4]int64{c.read, c.merged, c.edges, 0}, [4]int64{r.EdgesRead, r.DuplicatesMerged, r.Edges, r.ReverseAdded})
		require.GreaterOrEqual(t, r.SelfLoops, c.loops, "with repeats")
		require.Equal(t, c.dim, rep.Tables[0].Dim)
		require.Equal(t, c.classes, rep.Labels[0].Classes)
		require.EqualValues(t, c.missing, rep.Labels[0].Missing)
		require.Equal(t, [3]int{c.train, 500, 1000}, [3]int{rep.Splits[0].Train, rep.Splits[0].Valid, rep.Splits[0].Test})
	}
}

// TestGraphSAINT: the graph of TestOgbnArxiv in its other layout.
func TestGraphSAINT(t *testing.T) {
	src, err := graphsaint.Open(data(t, "ogbn_arxiv/graphsaint"))
	require.NoError(t, err)
	rep := sealed(t, src, build.Options{Undirected: true, Features: "degree"})
	require.Equal(t, "ogbn_arxiv", rep.Name)
	require.EqualValues(t, 1166243, rep.Relations[0].EdgesRead)
	require.EqualValues(t, 2315598, rep.Relations[0].Edges)
	require.Equal(t, 40, rep.Labels[0].Classes)
	require.Equal(t, [3]int{90941, 29799, 48603}, [3]int{rep.Splits[0].Train, rep.Splits[0].Valid, rep.Splits[0].Test})
}

func TestFacebook(t *testing.T) {
	src, err := edgelist.Open(data(t, "musae_facebook/facebook_edges.csv"), edgelist.Options{
		Nodes: data(t, "musae_facebook/facebook_target.csv"), Label: "page_type", Features: data(t, "musae_facebook/facebook.json"),
	})
	require.NoError(t, err)
	rep := sealed(t, src, build.Options{Undirected: true, Split: "per-class:20/30"})
	require.EqualValues(t, 22470, rep.NodeTypes[0].Count)
	require.EqualValues(t, 171002, rep.Relations[0].EdgesRead)
	require.EqualValues(t, 179, rep.Relations[0].SelfLoops)
	require.EqualValues(t, 2*(171002-179)+179, rep.Relations[0].Edges)
	require.Equal(t, 4714, rep.Tables[0].Dim)
	require.Equal(t, 4, rep.Labels[0].Classes)
	require.Equal(t, [3]int{80, 120, 22270}, [3]int{rep.Splits[0].Train, rep.Splits[0].Valid, rep.Splits[0].Test})
}

// TestBitcoinOTC: ids from 1 to 6005 with gaps stay the nodes' names.
func TestBitcoinOTC(t *testing.T) {
	src, err := edgelist.Open(data(t, "bitcoin_otc/soc-sign-bitcoinotc.csv"), edgelist.Options{})
	require.NoError(t, err)
	rep := sealed(t, src, build.Options{Features: "degree"})
	require.EqualValues(t, 5881, rep.NodeTypes[0].Count)
	require.EqualValues(t, 35592, rep.Relations[0].Edges)
	require.Zero(t, rep.Relations[0].Duplicates)
}

// TestFastRPFindsClasses: the mean embedding of 20 nodes a class tells most of the others apart. A
// tenth is chance; the largest class is 37 %.
func TestFastRPFindsClasses(t *testing.T) {
	raw := sampledata.AmazonComputers()
	src, err := npz.OpenReader("amazon.npz", bytes.NewReader(raw), int64(len(raw)))
	require.NoError(t, err)
	defer src.Close()
	path := filepath.Join(t.TempDir(), "x.gnn")
	_, err = build.Build(context.Background(), src, path, build.Options{Undirected: true, Features: "fastrp:32", DType: build.F32, Split: "per-class:20/30"})
	require.NoError(t, err)
	d, err := store.Open(path)
	require.NoError(t, err)
	defer d.Close()
	row := func(v store.NodeID) (out [32]float64) {
		for c, b := 0, d.Features(0).Row(v); c < 32; c++ {
			out[c] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*c:])))
		}
		return out
	}
	var mean [10][32]float64
	for _, v := range d.Split(0).Train {
		for c, y := range row(v) {
			mean[d.Labels(0).Class(v)][c] += y / 20
		}
	}
	right := 0
	for _, v := range d.Split(0).Test {
		best, least := -1, math.Inf(1)
		for class := range mean {
			distance := 0.0
			for c, y := range row(v) {
				distance += (y - mean[class][c]) * (y - mean[class][c])
			}
			if distance < least {
				best, least = class, distance
			}
		}
		if int32(best) == d.Labels(0).Class(v) {
			right++
		}
	}
	accuracy := float64(right) / float64(len(d.Split(0).Test))
	t.Logf("nearest class mean: %.3f", accuracy)
	require.Greater(t, accuracy, 0.6)
}
