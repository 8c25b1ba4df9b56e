package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ndarray returns the part of a pickle for an int64 array of n rows and 2 columns.
func ndarray(pairs [][2]int64) string {
	var data []byte
	for _, p := range pairs {
		data = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(data, uint64(p[0])), uint64(p[1]))
	}
	rows := "J" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(pairs))))
	return "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01(" + rows + "K\x02t" +
		"cnumpy\ndtype\nX\x02\x00\x00\x00i8\x89\x88\x87R(K\x03X\x01\x00\x00\x00<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89" +
		"T" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(data)))) + string(data) + "tb"
}

// torchSaved is a file of torch.save with a dict of arrays.
func torchSaved(t *testing.T, name string, arrays map[string][][2]int64) []byte {
	pickle := "\x80\x02}("
	for key, pairs := range arrays {
		pickle += "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(key)))) + key + ndarray(pairs)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, member := range [][2]string{{"data.pkl", pickle + "u."}, {"byteorder", "little"}, {"version", "3\n"}} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name + "/" + member[0], Method: zip.Store})
		require.NoError(t, err)
		_, err = w.Write([]byte(member[1]))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	return b.Bytes()
}

// TestOGBLinks goes from a link dataset as OGB lays it out, with raw/ and split/target/*.pt of
// numpy arrays, to Hits@20 by OGB's rule: the share of test links that score strictly above the
// 20th best of the negatives that are given for all of them. What the training and eval report is
// held against the scores that predict writes.
func TestOGBLinks(t *testing.T) {
	work, rng := t.TempDir(), rand.New(rand.NewPCG(1, 2))
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
	const nodes, kinds = 160, 4
	linked := map[[2]int64]bool{}
	var parts [3][][2]int64 // one direction of each link, as in ogbl-collab
	for i := 0; len(linked) < 900; i++ {
		u, v := rng.Int64N(nodes), rng.Int64N(nodes)
		if rng.Float64() < 0.85 {
			v = v/kinds*kinds + u%kinds
		}
		if pair := [2]int64{min(u, v), max(u, v)}; u != v && !linked[pair] {
			linked[pair] = true
			part := max(0, i%10-7)
			parts[part] = append(parts[part], pair)
		}
	}
	var edges, features strings.Builder
	for _, p := range parts[0] {
		fmt.Fprintf(&edges, "%d,%d\n", p[0], p[1])
	}
	for v := range nodes {
		row := make([]string, 8)
		for c := range row {
			x := rng.NormFloat64()
			if c == v%kinds {
				x++
			}
			row[c] = strconv.FormatFloat(x, 'g', 4, 64)
		}
		features.WriteString(strings.Join(row, ",") + "\n")
	}
	packed("ogbl_small/raw/edge.csv.gz", edges.String())
	packed("ogbl_small/raw/node-feat.csv.gz", features.String())
	packed("ogbl_small/raw/num-node-list.csv.gz", fmt.Sprintln(nodes))
	packed("ogbl_small/raw/num-edge-list.csv.gz", fmt.Sprintln(len(parts[0])))
	for i, name := range []string{"train", "valid", "test"} {
		arrays := map[string][][2]int64{"edge": parts[i]}
		for i > 0 && len(arrays["edge_neg"]) < 100 {
			u, v := rng.Int64N(nodes), rng.Int64N(nodes)
			if !linked[[2]int64{min(u, v), max(u, v)}] && u != v {
				arrays["edge_neg"] = append(arrays["edge_neg"], [2]int64{u, v})
			}
		}
		write("ogbl_small/split/target/"+name+".pt", torchSaved(t, name, arrays))
		for key, pairs := range arrays {
			text := ""
			for _, p := range pairs {
				text += fmt.Sprintf("%d,%d\n", p[0], p[1])
			}
			write(name+"-"+key+".csv", []byte(text))
		}
	}
	run := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := gnnstore(t, args...)
		require.Zero(t, code, stderr)
		return stdout
	}
	require.Contains(t, run("ingest", "ogb", at("ogbl_small"), at("small.gnn"), "--undirected"), fmt.Sprintf(" train, %d valid, %d test edges", len(parts[1]), len(parts[2])))
	var result struct {
		Links struct {
			EvalNegatives string `json:"eval_negatives"`
		} `json:"links"`
		Best struct {
			Test float64 `json:"test_hits_20"`
		} `json:"best"`
	}
	text := run("train", at("small.gnn"), "--task", "link", "--metric", "hits@20", "--run", at("run"), "--epochs", "8", "--hidden", "16", "--batch", "128", "--json")
	require.NoError(t, json.Unmarshal([]byte(text), &result), text)
	require.Equal(t, "given", result.Links.EvalNegatives)
	require.Contains(t, run("eval", at("run"), "--nodes", "test"), fmt.Sprintf("hits@20 %.2f %%, %d links", 100*result.Best.Test, len(parts[2])))

	scores := func(pairs string) (all []float64) {
		out := at(pairs + ".scores.csv")
		run("predict", at("run"), out, "--what", "scores", "--pairs", at(pairs+".csv"))
		b, err := os.ReadFile(out)
		require.NoError(t, err)
		for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
			x, err := strconv.ParseFloat(line[strings.LastIndex(line, ",")+1:], 64)
			require.NoError(t, err)
			all = append(all, x)
		}
		return all
	}
	positive, negative := scores("test-edge"), scores("test-edge_neg")
	require.Len(t, positive, len(parts[2]))
	require.Len(t, negative, 100)
	slices.Sort(negative)
	above := 0
	for _, x := range positive {
		if x > negative[len(negative)-20] {
			above++
		}
	}
	require.InDelta(t, float64(above)/float64(len(positive)), result.Best.Test, 1e-12)
	require.Greater(t, result.Best.Test, 0.3) // 0.2 by chance
}
