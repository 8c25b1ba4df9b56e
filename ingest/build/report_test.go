package build

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

func TestProvenance(t *testing.T) {
	f := small()
	f.schema.NodeTypes = append(f.schema.NodeTypes, ingest.NodeType{Name: "author", Count: 2})
	f.schema.Relations = append(f.schema.Relations, ingest.Relation{Src: "author", Name: "writes", Dst: "paper", Edges: -1})
	f.edges[1] = [][2]int64{{1, 5}, {0, 0}, {1, 5}}
	d, _ := build(t, f, Options{Undirected: true, Name: "named", Text: func(s string) string { return "said: " + s }})
	m := d.Manifest()
	require.Equal(t, "named", m.Name)
	require.Equal(t, "degree", m.Order)
	require.Equal(t, "small", m.Provenance.Source)
	require.Equal(t, map[string]string{"undirected": "true", "reverse": "false", "order": "degree", "dtype": "f16", "normalize": "none", "clamp": "false", "features": "",
		"split": "given", "seed": "1", "self-loops": "keep", "duplicates": "keep", "edge-ids": "false", "skip-bad": "0"}, m.Provenance.Options)
	require.Equal(t, []string{
		"said: years: not read",
		"said: relation author__writes__paper joins two node types and is stored as given: {undirected} adds reverses within a type only",
		"said: node type author has no features",
		"said: training learns rows for nodes without features, but nodes of a later graph have no such rows: {features} fastrp:128 makes columns from the neighbourhood",
	}, m.Provenance.Notes)
	c := m.Provenance.Counts
	require.EqualValues(t, []int64{11, 1, 2, 1, 4, 14}, []int64{c["edges_read"], c["self_loops"], c["duplicates"], c["duplicates_merged"], c["reverse_added"], c["edges"]})
	require.EqualValues(t, []int64{3, 1, 0, 3}, []int64{c["author__writes__paper.edges_read"], c["author__writes__paper.duplicates"],
		c["author__writes__paper.duplicates_merged"], c["author__writes__paper.edges"]})
	require.EqualValues(t, 1, c["labels_missing"])
}

// TestReportKeys: scripts read these.
func TestReportKeys(t *testing.T) {
	_, rep := build(t, small(), Options{})
	b, err := json.Marshal(rep)
	require.NoError(t, err)
	var top map[string]any
	require.NoError(t, json.Unmarshal(b, &top))
	keys := func(m any) []string { return slices.Sorted(maps.Keys(m.(map[string]any))) }
	first := func(key string) any { return top[key].([]any)[0] }
	require.Equal(t, []string{"bytes", "dropped", "edge_splits", "labels", "memory_bytes", "name", "node_types", "notes", "order", "passes", "path", "peak_file_bytes", "peak_rss_bytes", "relations", "resumed", "seal",
		"seconds", "splits", "tables"}, keys(top))
	require.Equal(t, []string{"count", "name"}, keys(first("node_types")))
	require.Equal(t, []string{"columns", "columns_left", "duplicates", "duplicates_merged", "edges", "edges_ascending", "edges_read", "held_out", "key", "pairs_both_ways",
		"pairs_compared", "reverse_added", "self_loops", "self_loops_added",
		"self_loops_dropped", "skipped"}, keys(first("relations")))
	require.Equal(t, []string{"dim", "dtype", "made", "missing", "name", "node_type", "overflowed", "rounded", "tiny"}, keys(first("tables")))
	require.Equal(t, []string{"class_names", "classes", "missing", "multi", "name", "node_type"}, keys(first("labels")))
	require.Equal(t, []string{"name", "no_edge", "node_type", "test", "train", "valid"}, keys(first("splits")))
	require.NotContains(t, string(b), "null")
}

// sparse has no rows of features for two nodes, and something to say.
type sparse struct{ *fake }

func (s sparse) Extras() ingest.Extras {
	return ingest.Extras{MissingRows: s.MissingRows, Remarks: s.Remarks}
}

func (sparse) MissingRows(int) int64 { return 2 }
func (sparse) Remarks() []string     { return []string{"taken as it is"} }

// TestReportOfSources: what a reader leaves behind, makes up and assumes is in the report.
func TestReportOfSources(t *testing.T) {
	f := small()
	f.schema.Relations[0].Left = []string{"time"}
	_, rep := build(t, sparse{f}, Options{})
	require.Equal(t, []string{"time"}, rep.Relations[0].Left)
	require.EqualValues(t, 2, rep.Tables[0].Missing)
	require.Contains(t, rep.Notes, "taken as it is")
}
