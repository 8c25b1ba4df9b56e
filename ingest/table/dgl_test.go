package table

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const dglFolder = `dataset_name: zoo
separator: ';'
node_data:
- {file_name: animals.csv, ntype: animal}
- {file_name: keepers.csv, ntype: keeper, node_id_field: no}
edge_data:
- {file_name: feeds.csv, etype: [keeper, feeds, animal]}
- {file_name: fears.csv, etype: [animal, fears, animal], src_id_field: from, dst_id_field: to}
`

// TestDGL: the folder of DGL's CSVDataset is read by its meta.yaml.
func TestDGL(t *testing.T) {
	f := files{
		"meta.yaml":   dglFolder,
		"animals.csv": "node_id;feat;label;train_mask;val_mask;test_mask\n7;\"0.5,1.5,2\";0;True;False;False\n8;\"1, 2, 3\";1;False;True;False\n",
		"keepers.csv": "no;age\n1;30\n2;40\n",
		"feeds.csv":   "src_id;dst_id;hours\n1;7;2\n2;8;3\n",
		"fears.csv":   "from;to;f\n7;8;\"1, 2\"\n8;7;\"3, 4\"\n",
	}
	dir := f.write(t)
	s, err := Open(filepath.Join(dir, "meta.yaml"), Options{})
	require.NoError(t, err)
	g, err := readAll(s)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Equal(t, "zoo", g.schema.Name)
	require.Equal(t, map[string][]string{"keeper__feeds__animal": {"1>7", "2>8"}, "animal__fears__animal": {"7>8", "8>7"}}, g.edges)
	require.Equal(t, []float32{0.5, 1.5, 2, 1, 2, 3}, g.rows["animal/feat"])
	require.Equal(t, []float32{1, 2, 3, 4}, g.rows["animal__fears__animal/feat"])
	require.Equal(t, []int32{0, 1}, g.labels["animal"])
	require.Equal(t, [3][]string{{"7"}, {"8"}, nil}, g.splits["animal"])
	yaml, err := Infer(dir, Options{})
	require.NoError(t, err)
	require.Contains(t, string(yaml), "# from meta.yaml, of DGL's CSVDataset")

	for _, c := range []struct{ file, text, want string }{
		{"meta.yaml", "edge_data: []\n", "a CSVDataset of DGL: edge_data lists no tables"},
		{"meta.yaml", "edge_data: 7\n", "a CSVDataset of DGL, whose keys cannot be read"},
		{"meta.yaml", "edge_data: [{file_name: ../x.csv}]\n", `file_name "../x.csv": it leads out of the folder`},
		{"meta.yaml", "edge_data: [{file_name: none.csv}]\n", "none.csv: no such file or directory"},
		{"meta.yaml", "edge_data: [{file_name: feeds.csv, etype: [a]}]\nseparator: ';'\n", `etype ["a"]: it has three names`},
		{"meta.yaml", dglFolder + "graph_data: {file_name: g.csv}\n", "graph_data: several graphs"},
		{"meta.yaml", replace(dglFolder, "';'", "'::'"), `separator "::": it is one character`},
		{"keepers.csv", "id;age\n1;30\n", "keepers.csv: there is no column no, the ids of nodes; name it with node_id_field"},
		{"feeds.csv", "graph_id;src_id;dst_id\n0;1;7\n1;2;8\n", "feeds.csv: 2 graphs, by column graph_id, and one is read"},
	} {
		bad := files{}
		for name, text := range f {
			bad[name] = text
		}
		bad[c.file] = c.text
		_, err := Open(filepath.Join(bad.write(t), "meta.yaml"), Options{})
		require.ErrorContains(t, err, c.want)
	}
}

func FuzzDGL(f *testing.F) {
	f.Add([]byte(dglFolder))
	f.Add([]byte("edge_data: [{file_name: e.csv}]\n"))
	dir := f.TempDir()
	path := filepath.Join(dir, "meta.yaml")
	require.NoError(f, os.WriteFile(filepath.Join(dir, "e.csv"), []byte("src_id,dst_id\n1,2\n"), 0o666))
	f.Fuzz(func(t *testing.T, text []byte) {
		made, err := dglSchema(path, text)
		if err == nil && made != nil {
			d := &document{path: path}
			d.parse(made, "name", "nodes", "edges")
			require.NoError(t, d.err, "%s", made)
		}
	})
}
