package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

// TestEveryStream ingests the public streams in GNNSTORE_DATA, and compares all that expected.json
// there says of them.
func TestEveryStream(t *testing.T) {
	root := publicData(t)
	raw, err := os.ReadFile(filepath.Join(root, "expected.json"))
	require.NoError(t, err)
	var expected map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &expected))
	for name, c := range map[string]struct {
		file  string
		flags []string
		split [3]int64
		tied  int64
	}{
		"jodie_wikipedia_edges":  {"ml_wikipedia.txt", []string{"--bipartite", "--edge-features", "random:16"}, [3]int64{110232, 23621, 23621}, 4717},
		"email_eu_core_temporal": {"email-Eu-core-temporal.txt.gz", nil, [3]int64{232634, 49850, 49850}, 124454},
		"bitcoin_otc":            {"soc-sign-bitcoinotc.csv", []string{"--time", "4", "--edge-features", "3"}, [3]int64{24914, 5339, 5339}, 0},
		"patent_temporal":        {"patent.txt", nil, [3]int64{30372, 5529, 6015}, 41025},
	} {
		t.Run(name, func(t *testing.T) {
			var want struct{ Events, Nodes, Users, Items, Pairs int }
			require.NoError(t, json.Unmarshal(expected[name], &want))
			out := filepath.Join(t.TempDir(), "x.gnn")
			var stderr bytes.Buffer
			args := append([]string{"ingest", "events", filepath.Join(root, name, c.file), out}, c.flags...)
			require.Zero(t, execute(args, io.Discard, &stderr), "%s", &stderr)
			ds, err := store.Open(out)
			require.NoError(t, err)
			defer ds.Close()
			problems, err := ds.Verify(t.Context(), nil)
			require.NoError(t, err)
			require.Empty(t, problems)
			e := ds.Events(0)
			require.EqualValues(t, want.Events, e.Len())
			if want.Users > 0 {
				require.Equal(t, []int64{int64(want.Users), int64(want.Items)}, []int64{e.Sources, e.Destinations})
			} else {
				require.EqualValues(t, want.Nodes, e.Places())
			}
			split := e.Stream.Split
			require.Equal(t, c.split, [3]int64{split.Train, split.Valid, split.Test})
			require.Equal(t, c.tied, inspectStream(e).Tied)
			pairs := map[[2]store.NodeID]bool{}
			src, dst := e.Ends(0, e.Len())
			for i := range src {
				pairs[[2]store.NodeID{src[i], dst[i]}] = true
			}
			if want.Pairs > 0 {
				require.Len(t, pairs, want.Pairs)
			}
			require.True(t, slices.IsSorted(e.Times(0, e.Len())))
		})
	}
}
