package edgelist

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

func expect(t *testing.T, name string, want any) string {
	root := os.Getenv("GNNSTORE_DATA")
	if root == "" {
		t.Skip("GNNSTORE_DATA is not set: the folder with musae_facebook, soc_slashdot0902, bitcoin_otc and expected.json")
	}
	raw, err := os.ReadFile(filepath.Join(root, "expected.json"))
	require.NoError(t, err)
	var expected map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &expected))
	require.NoError(t, json.Unmarshal(expected[name], want))
	return filepath.Join(root, name)
}

func TestFacebook(t *testing.T) {
	var want struct {
		Nodes     int64 `json:"nodes"`
		Edges     int   `json:"edges"`
		SelfLoops int   `json:"self_loops"`
		Features  int   `json:"features"`
		Classes   int   `json:"classes"`
	}
	dir := expect(t, "musae_facebook", &want)
	s, err := Open(filepath.Join(dir, "facebook_edges.csv"), Options{
		Nodes: filepath.Join(dir, "facebook_target.csv"), Label: "page_type", Features: filepath.Join(dir, "facebook.json"),
	})
	require.NoError(t, err)
	schema, err := s.Schema(context.Background())
	require.NoError(t, err)
	s.schema.Tables = nil // 424 MB, which are counted and not kept
	g, err := sourcetest.Read(s)
	require.NoError(t, err)
	s.schema = schema
	ones, last := 0, int64(0)
	require.NoError(t, s.Rows(context.Background(), 0, func(c ingest.RowChunk) error {
		for _, v := range c.Values {
			if v == 1 {
				ones++
			}
		}
		last = c.First + int64(len(c.Values)/want.Features)
		return nil
	}))
	require.Equal(t, want.Nodes, last)
	require.Equal(t, []ingest.NodeType{{Name: "node", Count: want.Nodes}}, g.Schema.NodeTypes)
	require.Len(t, g.Edges[0].Src, want.Edges)
	require.Equal(t, want.Features, schema.Tables[0].Dim)
	require.Equal(t, []string{"company", "government", "politician", "tvshow"}, g.Schema.Labels[0].ClassNames)
	require.Equal(t, want.Classes, g.Schema.Labels[0].Classes)
	loops, counts := 0, [4]int{}
	for i, u := range g.Edges[0].Src {
		if u == g.Edges[0].Dst[i] {
			loops++
		}
	}
	for _, c := range g.Labels[0] {
		counts[c]++
	}
	require.Equal(t, want.SelfLoops, loops)
	require.Equal(t, [4]int{6495, 6880, 5768, 3327}, counts)
	require.Equal(t, 314583, ones)
}

func TestSNAP(t *testing.T) {
	for name, c := range map[string]struct {
		file    string
		counted bool // by a comment
	}{"soc_slashdot0902": {"soc-Slashdot0902.txt.gz", true}, "bitcoin_otc": {"soc-sign-bitcoinotc.csv", false}, "email_eu_core_temporal": {"email-Eu-core-temporal.txt.gz", false}, "patent_temporal": {"patent.txt", false}, "jodie_wikipedia_edges": {"ml_wikipedia.txt", false}} {
		var want struct {
			Nodes int64 `json:"nodes"`
			Users int64 `json:"users"`
			Items int64 `json:"items"`
			Edges int   `json:"directed_edges"`
			Event int   `json:"events"`
			Loops int   `json:"self_loops"`
		}
		dir := expect(t, name, &want)
		s, err := Open(filepath.Join(dir, c.file), Options{})
		require.NoError(t, err)
		g, err := sourcetest.Read(s)
		require.NoError(t, err, name)
		require.Len(t, g.Edges[0].Src, want.Edges+want.Event, name)
		nodes := want.Nodes + want.Users + want.Items
		seen := map[int64]bool{}
		for i, u := range g.Edges[0].Src {
			seen[u], seen[g.Edges[0].Dst[i]] = true, true
		}
		require.Len(t, seen, int(nodes), name)
		if !c.counted {
			require.Equal(t, []ingest.NodeType{{Name: "node", IDs: ingest.IntIDs, Gathered: true}}, g.Schema.NodeTypes, name)
			continue
		}
		require.Equal(t, []ingest.NodeType{{Name: "node", Count: nodes}}, g.Schema.NodeTypes)
		require.EqualValues(t, want.Edges, g.Schema.Relations[0].Edges)
		loops := 0
		for i, u := range g.Edges[0].Src {
			if u == g.Edges[0].Dst[i] {
				loops++
			}
		}
		require.Equal(t, want.Loops, loops)
	}
}

func TestTrustWeights(t *testing.T) {
	var want struct{ Events int }
	s, err := Open(filepath.Join(expect(t, "bitcoin_otc", &want), "soc-sign-bitcoinotc.csv"), Options{Weight: "3"})
	require.NoError(t, err)
	g, err := sourcetest.Read(s)
	require.NoError(t, err)
	require.Len(t, g.Edges[0].Floats(0), want.Events)
	require.EqualValues(t, -10, slices.Min(g.Edges[0].Floats(0)))
	require.EqualValues(t, 10, slices.Max(g.Edges[0].Floats(0)))
}
