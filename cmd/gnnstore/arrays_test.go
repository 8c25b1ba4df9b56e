package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const madeArrays = "../../ingest/arrays/testdata"

// TestArraysOfFrameworks: PyTorch Geometric saves a dataset in several forms, and several formats
// read them. All give the same sealed dataset.
func TestArraysOfFrameworks(t *testing.T) {
	gnnstore := func(code int, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		require.Equal(t, code, execute(args, &out, &errs), "%s: %s", args, &errs)
		return out.String(), errs.String()
	}
	at := func(name string) string { return filepath.Join(madeArrays, name) }
	for _, format := range []string{"pt", "events", "auto"} {
		for _, name := range []string{"temporal.pt", "temporal_processed.pt", "temporal.legacy.pt"} {
			out := filepath.Join(t.TempDir(), "x.gnn")
			text, _ := gnnstore(0, "ingest", format, at(name), out)
			require.Contains(t, text, "\nevents    6 of node, at times 5 to 20\n")
			require.Contains(t, text, "\nlabels    of events: 2 classes\n")
			require.Contains(t, text, "\nfeatures  feat of events: 2 × f16\n")
			require.Contains(t, text, "--time-scale says otherwise")
			text, _ = gnnstore(0, "ingest", format, at(name), out+"3", "--time-scale", "3")
			require.Contains(t, text, "\nscale     differences of times 3 times as long for networks\n")
			gnnstore(0, "verify", out)
			text, _ = gnnstore(0, "inspect", out)
			require.Contains(t, text, "from msg (2 numbers)")
		}
	}
	out := filepath.Join(t.TempDir(), "x.gnn")
	text, _ := gnnstore(0, "ingest", "events", at("temporal.pt"), out, "--bipartite", "--label", "none", "--edge-features", "random:3")
	require.Contains(t, text, "features  feat of events: 3 × f16")
	require.NotContains(t, text, "\nlabels ")
	_, errs := gnnstore(2, "ingest", "events", at("temporal.pt"), out+"2", "--header", "no")
	require.Contains(t, errs, "arrays have no header and no text, and numbers for ids; leave out --header, --id-type, --decimal, --thousands, --encoding and --one-id-space")
	_, errs = gnnstore(2, "ingest", "events", at("temporal.pt"), out+"2", "--edge-features", "msg,y")
	require.Contains(t, errs, "--edge-features msg,y: of arrays one holds all features of events; name it")
	_, errs = gnnstore(1, "ingest", "events", at("temporal.pt"), out+"2", "--time", "when")
	require.Contains(t, errs, "temporal.pt: there is no when, which --time names (found src, dst, t, msg, y)")
	_, errs = gnnstore(1, "ingest", "events", at("adj_t.pt"), out+"2")
	require.Contains(t, errs, "adj_t.pt: adj_t: a matrix, and events are a source and a destination each")

	text, _ = gnnstore(0, "ingest", "auto", at("hetero_processed.pt"), out+"2")
	require.Contains(t, text, "edges     4 edges from 4 read")
	_, errs = gnnstore(1, "ingest", "pt", at("several.pt"), out+"3")
	require.Contains(t, errs, "it holds 2 graphs, and one is read")
	_, errs = gnnstore(1, "ingest", "npz", at("ragged.npz"), out+"3")
	require.Contains(t, errs, "y is (5,) of |O, Python objects of several kinds (element 0 is the number 1, and 1 is the text \"a\")")
	require.NoDirExists(t, out+"3")
}
