package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRunsKnowTheirColumns: a run refuses a dataset with as many columns of another meaning, and
// takes one with the same columns.
func TestRunsKnowTheirColumns(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	contents := func(path string) string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	write := func(name, head string, row func(v int) string) {
		lines := []string{head}
		for v := range 60 {
			lines = append(lines, row(v))
		}
		require.NoError(t, os.WriteFile(at(name), []byte(strings.Join(lines, "\n")+"\n"), 0o666))
	}
	write("edges.csv", "src,dst", func(v int) string { return fmt.Sprintf("%d,%d", v, (v+2)%60) })
	nodes := func(name, head, format string, cities ...string) {
		write(name+".csv", head, func(v int) string {
			return fmt.Sprintf(format, v, v*37%60, cities[v*7%60/30], []string{"no", "yes"}[v*11%60/30])
		})
		require.NoError(t, os.WriteFile(at(name+".yaml"), []byte("name: x\nnodes:\n- {type: shop, files: "+name+".csv, id: id, features: [age, city], "+
			"categorical: [city], label: open}\nedges:\n- {type: \"shop:near:shop\", files: edges.csv, src: src, dst: dst}\n"), 0o666))
	}
	nodes("spring", "id,age,city,open", "%d,%d,%s,%s", "berlin", "paris")
	nodes("autumn", "id,age,city,open", "%d,%d,%s,%s", "paris", "zagreb")
	ingest := func(name, out string, more ...string) {
		code, _, stderr := gnnstore(t, append([]string{"ingest", "table", at(name + ".yaml"), at(out), "--undirected=false"}, more...)...)
		require.Zero(t, code, stderr)
	}
	ingest("spring", "spring.gnn")
	ingest("autumn", "autumn.gnn")
	ingest("spring", "row.gnn", "--normalize", "row")
	ingest("spring", "both.gnn", "--undirected")
	ingest("spring", "same.gnn", "--seed", "2")
	code, _, stderr := gnnstore(t, "train", at("spring.gnn"), "--epochs", "1", "--memory", "128MiB", "--run", at("run"))
	require.Zero(t, code, stderr)

	for _, c := range []struct{ dataset, says string }{
		{"autumn.gnn", "column city has the categories paris, zagreb, and was learnt with berlin, paris; ingest both together"},
		{"row.gnn", "its rows were normalised, and were not there; ingest it without --normalize"},
		{"both.gnn", "relation shop__near__shop is not what was learnt from: its edges run both ways, and ran one way there"},
	} {
		for _, args := range [][]string{{"predict", at("run"), at(c.dataset), at("out.csv")}, {"eval", at("run"), at(c.dataset)}} {
			code, _, stderr := gnnstore(t, args...)
			require.Equal(t, 1, code)
			require.Contains(t, stderr, c.says)
			require.NoFileExists(t, at("out.csv"))
		}
	}
	code, _, stderr = gnnstore(t, "predict", at("run"), at("same.gnn"), at("out.csv"))
	require.Zero(t, code, stderr)
	require.NotContains(t, stderr, "says nothing of its columns")

	// The dataset that it trained on may be gone.
	predicted := contents(at("out.csv"))
	require.NoError(t, os.Rename(at("spring.gnn"), at("moved.gnn")))
	predict := []string{"predict", at("run"), at("same.gnn"), at("out.csv"), "--force"}
	code, _, stderr = gnnstore(t, predict...)
	require.Zero(t, code, stderr)
	require.Equal(t, predicted, contents(at("out.csv")))
	code, _, stderr = gnnstore(t, "eval", at("run"), at("autumn.gnn"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "column city has the categories paris, zagreb")
	kept := contents(at("run/dataset.json"))
	for says, text := range map[string]string{
		"dataset.json is damaged: unexpected end of JSON input; copy it again from the run": "",
		"the file says ": strings.Replace(kept, `"shop"`, `"shoq"`, 1),
		"dataset.json is damaged: type \"x\" has no label": strings.Replace(kept, `"label":"shop"`, `"label":"x"`, 1),
	} {
		require.NoError(t, os.WriteFile(at("run/dataset.json"), []byte(text), 0o666))
		code, _, stderr = gnnstore(t, predict...)
		require.Equal(t, 1, code)
		require.Contains(t, stderr, says)
	}

	// A run of an earlier build has no dataset.json, so its dataset is read. Without encodings.json
	// there is a note.
	require.NoError(t, os.Remove(at("run/dataset.json")))
	code, _, stderr = gnnstore(t, predict...)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "cannot be compared with that one: "+at("spring.gnn")+": no such dataset")
	require.NoError(t, os.Rename(at("moved.gnn"), at("spring.gnn")))
	require.NoError(t, os.Remove(at("run/encodings.json")))
	code, _, stderr = gnnstore(t, predict...)
	require.Zero(t, code, stderr)
	require.Equal(t, predicted, contents(at("out.csv")))
	require.Contains(t, stderr, "note: the dataset that the run trained on was made by an earlier build and says nothing of its columns")

	code, stdout, _ := gnnstore(t, "inspect", at("spring.gnn"))
	require.Zero(t, code)
	require.Contains(t, stdout, "age, city (2 categories, onehot)")
}

// TestLeakOfOneColumn: a column that is both a feature and the label is refused, whether named or
// numbered.
func TestLeakOfOneColumn(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("n.csv"), []byte("id,age,churned\n0,7,0\n1,8,1\n"), 0o666))
	require.NoError(t, os.WriteFile(at("e.csv"), []byte("src,dst\n0,1\n"), 0o666))
	for _, feature := range []string{"churned", `"3"`} {
		for _, key := range []string{"label", "value"} {
			require.NoError(t, os.WriteFile(at("s.yaml"), []byte("nodes:\n- {type: user, files: n.csv, id: id, features: [age, "+feature+"], "+key+": churned}\n"+
				"edges:\n- {type: \"user:knows:user\", files: e.csv, src: src, dst: dst}\n"), 0o666))
			code, _, stderr := gnnstore(t, "ingest", "table", at("s.yaml"), at("x.gnn"), "--allow-leak", "churned")
			require.Equal(t, 1, code)
			require.Contains(t, stderr, "is the "+key+" as well, and a network would read what it is to learn; leave it out of features")
		}
	}
	require.NoError(t, os.WriteFile(at("events.csv"), []byte("src,dst,time,label,x\n0,1,1,0,3\n1,0,2,1,4\n"), 0o666))
	code, _, stderr := gnnstore(t, "ingest", "events", at("events.csv"), at("x.gnn"), "--label", "label", "--edge-features", "4-5")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "column label is the label of events, and a network would read what it is to learn; leave it out of --edge-features")
}
