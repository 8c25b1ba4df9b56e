package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEdgeRowsOfSources goes from features of edges as OGB lays them out, in arrays of one's own
// and in columns of an edge list, to what is learnt of them: the same from each, and from the same
// numbers as columns of edges.
func TestEdgeRowsOfSources(t *testing.T) {
	work, rng := t.TempDir(), rand.New(rand.NewPCG(3, 4))
	at := func(name string) string { return filepath.Join(work, name) }
	write := func(name string, b []byte) {
		require.NoError(t, os.MkdirAll(filepath.Dir(at(name)), 0o777))
		require.NoError(t, os.WriteFile(at(name), b, 0o666))
	}
	packed := func(name, text string) {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		write(name, b.Bytes())
	}
	const nodes, classes, edges = 90, 3, 600
	var ends [2][edges]int64
	var class []int64
	var rows []float32
	list, pairs, features, table, labels := "src,dst,a,b,c\n", "", "", "id,label\n", ""
	for v := range nodes {
		class = append(class, rng.Int64N(classes))
		table += fmt.Sprintf("%d,%d\n", v, class[v])
		labels += fmt.Sprintln(class[v])
	}
	for e := range edges {
		u, v := rng.Int64N(nodes), rng.Int64N(nodes)
		ends[0][e], ends[1][e] = u, v
		var row []string
		for c := range int64(classes) {
			x := rng.Float32()
			if c == class[v] {
				x++
			}
			rows, row = append(rows, x), append(row, strconv.FormatFloat(float64(x), 'g', -1, 32))
		}
		text := strings.Join(row, ",") + "\n"
		list += fmt.Sprintf("%d,%d,%s", u, v, text)
		pairs += fmt.Sprintf("%d,%d\n", u, v)
		features += text
	}
	write("edges.csv", []byte(list))
	write("nodes.csv", []byte(table))
	packed("ogbn_small/raw/edge.csv.gz", pairs)
	packed("ogbn_small/raw/edge-feat.csv.gz", features)
	packed("ogbn_small/raw/node-label.csv.gz", labels)
	packed("ogbn_small/raw/num-node-list.csv.gz", fmt.Sprintln(nodes))
	packed("ogbn_small/raw/num-edge-list.csv.gz", fmt.Sprintln(edges))
	write("arrays/edge_index.npy", savedNpy("<i8", append(ends[0][:], ends[1][:]...), 2, edges))
	write("arrays/edge_attr.npy", savedNpy("<f4", rows, edges, classes))
	write("arrays/y.npy", savedNpy("<i8", class))

	run := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := gnnstore(t, args...)
		require.Zero(t, code, stderr)
		return stdout
	}
	type learnt struct {
		Losses []float64 `json:"losses"`
		Params string    `json:"params_xxh3"`
		Best   struct {
			Test float64 `json:"test_acc"`
		} `json:"best"`
	}
	csv := []string{"csv", at("edges.csv"), "--nodes", at("nodes.csv")}
	for _, way := range []string{"--reverse", "--undirected --duplicates first"} {
		var want learnt
		for i, source := range []struct {
			from  []string
			input string
		}{
			{append(csv, "--edge-columns", "a=a:f32,b=b:f32,c=c:f32"), "a,b,c"},
			{append(csv, "--edge-features", "a,b,c"), "table"},
			{[]string{"ogb", at("ogbn_small"), "--add-reverse", "no"}, "table"},
			{[]string{"npy", at("arrays")}, "table:edge_feat"},
		} {
			about, out := fmt.Sprint(way, source), at(fmt.Sprintf("%d%s.gnn", i, strings.Fields(way)[0]))
			args := append([]string{"ingest", source.from[0], source.from[1], out}, source.from[2:]...)
			run(append(append(args, strings.Fields(way)...), "--features", "degree", "--dtype", "f32", "--split", "random:0.5/0.2/0.3")...)
			var got learnt
			text := run("train", out, "--model", "rsage", "--edge-input", "to="+source.input, "--epochs", "20", "--batch", "16", "--hidden", "8", "--run", out+".run", "--json")
			require.NoError(t, json.Unmarshal([]byte(text), &got), text)
			if i == 0 {
				want = got
				require.NotEmpty(t, got.Losses, text)
				require.Greater(t, got.Best.Test, 0.6, "edges tell the class, which a third has by chance")
			}
			require.Equal(t, want, got, about)
		}
	}

	// What is of another graph, or no number, is refused by name.
	write("arrays/edge_attr.npy", savedNpy("<f4", rows[:3*edges-3], edges-1, classes))
	code, _, stderr := gnnstore(t, "ingest", "npy", at("arrays"), at("z.gnn"))
	require.NotZero(t, code)
	require.Contains(t, stderr, "edge_attr.npy: 599 rows, and ")
	packed("ogbn_small/raw/edge-feat.csv.gz", strings.Replace(features, "0.", "nan", 1))
	code, _, stderr = gnnstore(t, "ingest", "ogb", at("ogbn_small"), at("z.gnn"), "--features", "degree")
	require.NotZero(t, code)
	require.Contains(t, stderr, "edge-feat.csv.gz: line 1")
}
