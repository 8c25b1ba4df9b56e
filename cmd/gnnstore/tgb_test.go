package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
)

// ranked is a dict from (source, destination, time) to a list, as Python's first protocol writes
// it.
func ranked(w io.Writer, events [][3]int, negatives func(i int) []int) {
	fmt.Fprint(w, "(d")
	for i, e := range events {
		fmt.Fprintf(w, "(I%d\nI%d\nI%d\nt(l", e[0], e[1], e[2])
		for _, v := range negatives(i) {
			fmt.Fprintf(w, "I%d\na", v)
		}
		fmt.Fprint(w, "s")
	}
	fmt.Fprint(w, ".")
}

// TestTypedStreams reads typed events of TGB alike in formats tgb, events and auto, from the folder
// and from the table.
func TestTypedStreams(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "thgl-z_edgelist.csv")
	require.NoError(t, os.WriteFile(table, []byte("timestamp,head,tail,relation_type\n1,7,2,0\n2,2,5,1\n9,5,7,0\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "thgl-z_nodetype.csv"), []byte("node_id,type\n7,0\n2,4\n5,4\n"), 0o644))
	ingested := func(code int, args ...string) (stdout, stderr string) {
		t.Helper()
		code2, stdout, stderr := gnnstore(t, append([]string{"ingest"}, args...)...)
		require.Equal(t, code, code2, stderr)
		return stdout, stderr
	}
	seals := map[string]bool{}
	for _, format := range []string{"tgb", "events", "auto"} {
		for _, src := range []string{dir, table} {
			out := filepath.Join(t.TempDir(), "x.gnn")
			text, _ := ingested(0, format, src, out)
			require.Contains(t, text, "\nfeatures  feat of events: 2 × f16\nfeatures  feat: 2 × f16\n")
			require.Contains(t, text, "1 at nodes of that type; --node-types none leaves them out")
			ds, err := store.Open(out)
			require.NoError(t, err)
			seals[ds.Manifest().Whole()] = true
			require.NoError(t, ds.Close())
			text, _ = ingested(0, format, src, out+"2", "--node-types", "none")
			require.NotContains(t, text, "features  feat: ")
		}
	}
	require.Len(t, seals, 1)
	out := filepath.Join(t.TempDir(), "x.gnn")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "thgl-z_nodetype.csv"), []byte("node_id,type\n7,0\n2,4\n"), 0o644))
	for _, format := range []string{"tgb", "events"} {
		_, errs := ingested(1, format, table, out)
		require.Contains(t, errs, `1 of the 3 nodes of events have no type, "5" is the first; add them, or say --missing-features zeros, or --node-types none`)
		text, _ := ingested(0, format, table, out+format, "--missing-features", "zeros")
		require.Contains(t, text, "features  feat: 2 × f16")
	}
	_, errs := ingested(2, "events", table, out, "--time", "timestamp", "--node-types", "none")
	require.Contains(t, errs, "no option names a column; leave them out")
	text, _ := ingested(0, "events", table, out, "--time", "timestamp", "--edge-features", "relation_type")
	require.Contains(t, text, "features  feat of events: 1 × f16")
	require.NotContains(t, text, "features  feat: ")
}

// TestTGB goes the way of a data set of TGB's: ingested with its negatives, looked at, learnt, and
// measured again.
func TestTGB(t *testing.T) {
	dir := t.TempDir()
	const users, items, events = 8, 12, 400
	var table strings.Builder
	table.WriteString("user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n")
	var all [][3]int
	for i := range events {
		u := (3*i + i/9) % users
		all = append(all, [3]int{u, users + (u+i/40)%items, i})
		fmt.Fprintf(&table, "%d,%d,%d.0,0,%d,%d\n", u, all[i][1]-users, i, i%3, i%5)
	}
	write := func(name string, events [][3]int) {
		var b bytes.Buffer
		ranked(&b, events, func(i int) (v []int) {
			for j := range 5 + i%7 {
				v = append(v, users+(i+j)%items)
			}
			return v
		})
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tgbl-x_edgelist_v2.csv"), []byte(table.String()), 0o644))
	write("tgbl-x_val_ns_v2.pkl", all[280:340])
	write("tgbl-x_test_ns_v2.pkl", all[340:])

	out, runDir := filepath.Join(dir, "x.gnn"), filepath.Join(dir, "run")
	gnnstore := func(args ...string) string {
		var stdout, stderr bytes.Buffer
		require.Zero(t, execute(args, &stdout, &stderr), "%s: %s", args, &stderr)
		return stdout.String()
	}
	require.Contains(t, gnnstore("ingest", "auto", dir, out), "\nnegatives of events: 948 that came with the source, to rank valid and test events among\n")
	require.Contains(t, gnnstore("verify", out), "every checksum and invariant holds")
	require.Regexp(t, `\nnegatives +948 came with the source, 7\.9 of an event to validate or to test on\n`, gnnstore("inspect", out))
	require.Contains(t, gnnstore("inspect", out, "--json"), `"negatives": 948,`)

	text := gnnstore("train", out, "--model", "tgn", "--metric", "mrr", "--epochs", "2", "--hidden", "8", "--batch", "50", "--run", runDir)
	require.Contains(t, text, "best epoch")
	require.Regexp(t, `valid_mrr [0-9.]+ %, test_mrr [0-9.]+ %`, text)
	require.Regexp(t, `\n +test +60 +[0-9.]+ % +[0-9.]+ % +[0-9.]+ % +[0-9.]+ % +0\.[0-9]{4}\n`, text)
	require.Regexp(t, `\n +pair seen +60 .* 0\.[0-9]{4}\n`, text)
	raw, err := os.ReadFile(filepath.Join(runDir, "result.json"))
	require.NoError(t, err)
	var r run.Result
	require.NoError(t, json.Unmarshal(raw, &r))
	require.Equal(t, r.Stream.Replay.Test.MRR, *r.Best.TestAcc)
	require.Positive(t, r.Stream.Heuristics[0].MRR)

	var again streamMeasured
	require.NoError(t, json.Unmarshal([]byte(gnnstore("eval", runDir, "--json")), &again))
	again.Stream.Replay.Seconds = r.Stream.Replay.Seconds
	require.Equal(t, r.Stream.Replay, again.Stream.Replay)
	require.Equal(t, r.Stream.Heuristics, again.Stream.Heuristics)
	require.NoError(t, json.Unmarshal([]byte(gnnstore("eval", runDir, "--json", "--eval-negatives", "uniform:4")), &again))
	require.Equal(t, "uniform:4", again.Stream.RankedAmong)
	require.NotEqual(t, r.Stream.Replay.Test.MRR, again.Stream.Replay.Test.MRR)
	require.Equal(t, r.Stream.Replay.Test.AP, again.Stream.Replay.Test.AP)

	// A dataset without negatives has no MRR, and the network is used as ever.
	plain := filepath.Join(dir, "plain.gnn")
	require.NoError(t, os.Remove(filepath.Join(dir, "tgbl-x_val_ns_v2.pkl")))
	require.NoError(t, os.Remove(filepath.Join(dir, "tgbl-x_test_ns_v2.pkl")))
	require.Contains(t, gnnstore("ingest", "tgb", dir, plain), "there are no negatives to rank events among: looked for ")
	require.NotContains(t, gnnstore("eval", runDir, plain), "MRR")
}

// TestRealTGB makes a data set of TGB's of the public stream in GNNSTORE_DATA, and compares all
// negatives.
func TestRealTGB(t *testing.T) {
	f, err := os.Open(filepath.Join(publicData(t), "jodie_wikipedia_edges", "ml_wikipedia.txt"))
	require.NoError(t, err)
	defer f.Close()
	dir := t.TempDir()
	var table bytes.Buffer
	fmt.Fprintln(&table, "user_id,item_id,timestamp,state_label,comma_separated_list_of_features")
	var all [][3]int
	users := map[int]int{}
	items := map[int]int{}
	number := func(of map[int]int, id int) int {
		if _, there := of[id]; !there {
			of[id] = len(of)
		}
		return of[id]
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		cells := strings.FieldsFunc(lines.Text(), func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
		var u, v int
		var at float64
		_, err := fmt.Sscan(strings.Join(cells[:3], " "), &u, &v, &at)
		require.NoError(t, err)
		u, v = number(users, u), number(items, v)
		all = append(all, [3]int{u, v, int(at)})
		fmt.Fprintf(&table, "%d,%d,%d.0,0,0\n", u, v, int(at))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tgbl-w_edgelist.csv"), table.Bytes(), 0o644))
	for i := range all {
		all[i][1] += len(users)
	}
	of := func(e [3]int) (nodes []int) {
		for j := range 20 {
			nodes = append(nodes, len(users)+(e[0]*31+e[1]*7+e[2]+j*j)%len(items))
		}
		return nodes
	}
	for _, part := range []struct {
		name   string
		events [][3]int
	}{{"val", all[110232:133853]}, {"test", all[133853:]}} {
		out, err := os.Create(filepath.Join(dir, "tgbl-w_"+part.name+"_ns.pkl"))
		require.NoError(t, err)
		w := bufio.NewWriter(out)
		var once [][3]int
		seen := map[[3]int]bool{}
		for _, e := range part.events {
			if !seen[e] {
				once = append(once, e)
			}
			seen[e] = true
		}
		ranked(w, once, func(i int) []int { return of(once[i]) })
		require.NoError(t, w.Flush())
		require.NoError(t, out.Close())
	}
	path := filepath.Join(dir, "w.gnn")
	var stderr bytes.Buffer
	require.Zero(t, execute([]string{"ingest", "tgb", dir, path, "--memory", "160MiB"}, io.Discard, &stderr), "%s", &stderr)
	ds, err := store.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	problems, err := ds.Verify(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	e := ds.Events(0)
	for i := e.Stream.Split.Train; i < e.Len(); i++ {
		var got []int
		for _, v := range e.Negatives(i) {
			got = append(got, len(users)+int(ds.IDs(1).Original(v)))
		}
		require.Equal(t, of(all[i]), got, "event %d", i)
	}
}
