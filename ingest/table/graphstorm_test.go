package table

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const stormZoo = `{"version": "gconstruct-v0.1",
 "nodes": [
  {"node_type": "animal", "format": {"name": "csv", "separator": ";"}, "files": "/data/zoo/nodes/animals_*.csv", "node_id_col": "nid",
   "features": [{"feature_col": "size"}, {"feature_col": "name", "transform": {"name": "tokenize_hf"}}, {"feature_col": ["diet"], "transform": {"name": "to_categorical"}}],
   "labels": [{"label_col": "kind", "task_type": "classification", "split_pct": [0.8, 0.1, 0.1]}]},
  {"node_type": "keeper", "format": {"name": "csv"}, "files": ["nodes/keepers.csv"], "node_id_col": "nid"}],
 "edges": [{"relation": ["keeper", "feeds", "animal"], "format": {"name": "csv"}, "files": "edges.csv", "source_id_col": "s", "dest_id_col": "d",
   "labels": [{"task_type": "link_prediction"}]}]}`

// TestGraphStorm: a folder with a configuration of GraphStorm has a schema by it, wherever it was
// moved.
func TestGraphStorm(t *testing.T) {
	f := files{
		"config.json": stormZoo, "nodes/animals_1.csv": "nid;size;diet;kind\na;1;hay;x\nb;2;meat;y\n", "nodes/animals_2.csv": "nid;size;diet;kind\nc;3;hay;x\n",
		"nodes/keepers.csv": "nid\nk\n", "edges.csv": "s,d\nk,a\nk,c\n",
	}
	yaml, g := inferAndRead(t, f.write(t))
	require.Contains(t, yaml, "    # not used: name (text)\n")
	require.Contains(t, yaml, "# From config.json, of GraphStorm.")
	require.Equal(t, map[string][]string{"keeper__feeds__animal": {"k>a", "k>c"}}, g.edges)
	require.Equal(t, []float32{1, 1, 0, 2, 0, 1, 3, 1, 0}, g.rows["animal/feat"])
	require.Equal(t, []int32{0, 1, 0}, g.labels["animal"])
	for text, want := range map[string]string{
		replace(stormZoo, `"name": "csv"`, `"name": "hdf5"`):                `format "hdf5" is not read; write the tables as Parquet`,
		replace(stormZoo, `["keeper", "feeds", "animal"]`, `["feeds"]`):     `relation ["feeds"]: it has three names`,
		replace(stormZoo, `"node_type": "keeper"`, `"node_type": "animal"`): "node type animal is there twice",
		`{"edges": [{"relation": 7, "source_id_col": "x"}]}`:                "a configuration of GraphStorm, which cannot be read",
		`{"relation": 0, "source_id_col": 0}`:                               "it has no edges",
	} {
		f["config.json"] = text
		_, err := Infer(f.write(t), Options{})
		require.ErrorContains(t, err, want)
	}
}
