package auto

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

// folderOf writes files by path; a name that ends in a slash is a folder.
func folderOf(t testing.TB, files map[string]string) string {
	dir := filepath.Join(t.TempDir(), "my graph")
	require.NoError(t, os.Mkdir(dir, 0o777))
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(path, 0o777))
			continue
		}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	return dir
}

func zipped(t testing.TB, names ...string) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, n := range names {
		f, err := w.Create(n)
		require.NoError(t, err)
		_, err = f.Write([]byte("x"))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.String()
}

func gzipped(t testing.TB, text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

func TestFolders(t *testing.T) {
	npy := "\x93NUMPY\x01\x00"
	for _, c := range []struct {
		format, why string
		files       map[string]string
	}{
		{"ogb", "raw/edge.csv.gz: an OGB folder", map[string]string{"raw/edge.csv.gz": "x", "split/time/": ""}},
		{"ogb", "raw/data.npz: an OGB folder in its binary layout", map[string]string{"raw/data.npz": "x"}},
		{"ogb", "raw/triplet-type-list.csv.gz: a heterogeneous OGB folder", map[string]string{"raw/triplet-type-list.csv.gz": "x"}},
		{"ogb", "raw/edge_index_dict.npz: a heterogeneous OGB folder in its binary layout", map[string]string{"raw/edge_index_dict.npz": "x"}},
		{"ogb", "raw/edge.csv: an OGB folder whose tables were unpacked", map[string]string{"raw/edge.csv": "0,1\n", "raw/num-node-list.csv": "2\n"}},
		{"mag240m", "meta.pt: MAG240M as OGB-LSC leaves it", map[string]string{"meta.pt": "x", "processed/paper/": "", "RELEASE_v1.txt": "x"}},
		{"graphbolt", "metadata.yaml: a GraphBolt dataset", map[string]string{"metadata.yaml": "graph:\n", "edges.csv": "0,1\n"}},
		{"graphbolt", "preprocessed/metadata.yaml: a preprocessed GraphBolt dataset", map[string]string{"preprocessed/metadata.yaml": "x"}},
		{"hgb", "node.dat: a graph of the Heterogeneous Graph Benchmark", map[string]string{"node.dat": "x", "link.dat": "x", "label.dat": "x"}},
		{"planetoid", "ind.cora.graph: the files of a citation graph, without ind.*.ally, ind.*.test.index, ind.*.x, ind.*.tx, ind.*.y, ind.*.ty", map[string]string{"ind.cora.graph": "x", "ind.cora.allx": "x"}},
		{"graphsaint", "adj_full.npz: a GraphSAINT folder, without class_map.json", map[string]string{"adj_full.npz": "x", "role.json": "{}", "feats.npy": "x"}},
		{"triples", "train.txt: the triples of a knowledge graph, without valid.txt", map[string]string{"train.txt": "a\tb\tc\n", "test.txt": "a\tb\tc\n"}},
		{"triples", "train.txt: the triples of a knowledge graph, without test.txt", map[string]string{"train.txt": "a\tb\tc\n", "valid.txt": "a\tb\tc\n"}},
		{"triples", "numeric_triples.tsv.gz: a knowledge graph of PyKEEN", map[string]string{"numeric_triples.tsv.gz": "x", "entity_to_id.tsv.gz": "x", "relation_to_id.tsv.gz": "x"}},
		{"triples", "a.nt.zst: RDF as N-Triples", map[string]string{"a.nt.zst": "x", "a.ttl": "x"}},
		{"triples", "a.nq.gz: RDF as N-Quads", map[string]string{"a.nq.gz": "x"}},
		{"triples", "a.ttl: RDF as Turtle", map[string]string{"a.ttl": "x"}},
		{"tgl", "edges.csv: a temporal graph of TGL", map[string]string{"edges.csv": ",src,dst,time,ext_roll\n", "ext_full.npz": "x", "about.ttl": "x"}},
		{"tgl", "edges.csv: a temporal graph of TGL", map[string]string{"edges.csv": ",src,dst,time,ext_roll\n", "edge_features.pt": "x"}},
		{"tgb", "tgbl-wiki_edgelist_v2.csv: a temporal graph of TGB, without *_test_ns*.pkl", map[string]string{"tgbl-wiki_edgelist_v2.csv": "x", "tgbl-wiki_val_ns_v2.pkl": "x"}},
		{"tgn", "ml_wiki.csv: a temporal graph of TGN", map[string]string{"ml_wiki.csv": ",u,i,ts,label,idx\n", "ml_wiki.npy": "x"}},
		{"npy", "edge_index.npy: a folder of arrays", map[string]string{"edge_index.npy": npy, "feat.npy": npy}},
		{"csv", "part-1.csv and 1 more: the parts of an edge list", map[string]string{"part-1.csv": "0,1\n", "part-20.csv": "1,2\n", "_SUCCESS": ""}},
	} {
		_, format, why, err := Recognise(folderOf(t, c.files))
		require.NoError(t, err)
		require.Equal(t, c.format, format)
		require.Equal(t, c.why, why)
	}
	// The only graph in a folder is taken, and what else is there named.
	for _, c := range []struct {
		at, format, why string
		files           map[string]string
	}{
		{"a.npz", "npz", "a.npz: adj_data.npy: arrays of NumPy; it is the only graph there", map[string]string{"a.npz": zipped(t, "adj_data.npy"), "README.md": "0 1\n"}},
		{"arxiv", "ogb", "arxiv: raw/edge.csv.gz: an OGB folder; it is the only graph there, and not read are notes.txt", map[string]string{"arxiv/raw/edge.csv.gz": "x", "notes.txt": "words"}},
		{"e.csv", "csv", "e.csv: an edge list, whose columns are \"u,v\"; it is the only graph there, and not read are n.json, n.txt", map[string]string{"e.csv": "u,v\n1,2\n", "n.json": "{}", "n.txt": "1\n"}},
	} {
		dir := folderOf(t, c.files)
		at, format, why, err := Recognise(dir)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, c.at), at)
		require.Equal(t, c.format, format)
		require.Equal(t, c.why, why)
	}
	for want, files := range map[string]map[string]string{
		"manifest.json: it is a dataset already":                                {"manifest.json": "{\n  \"format\": \"gnnstore\",\n"},
		"tgbl-wiki_edgelist_v2.csv: a temporal graph of TGB":                    {"tgbl-wiki_edgelist_v2.csv": "x"},
		"an IGB folder, which is not read yet":                                  {"processed/paper__cites__paper/edge_index.npy": npy},
		"what Marius preprocessed":                                              {"dataset.yaml": "num_nodes: 3", "edges/train_edges.bin": "x"},
		"schema.yaml describes a graph of tables; name this file":               {"schema.yaml": "nodes:\n", "users.csv": "id,age\n"},
		"there are several things inside: name one of a.npz (npz), b.npz (npz)": {"a.npz": zipped(t, "x.npy"), "b.npz": zipped(t, "x.npy")},
		"several tables: name the one of the edges among edges.csv (csv), users.csv (csv), or describe them all: gnnstore ingest table {infer} ": {
			"edges.csv": "src,dst\na,b\n", "users.csv": "1,2\n"},
		"not one of the formats that are recognised (csv, graphbolt, ": {"a.bin": "x", "b.bin": "y", "c/": ""},
		"the folder is empty": {},
	} {
		dir := folderOf(t, files)
		_, _, _, err := Recognise(dir)
		require.ErrorContains(t, err, want)
		require.True(t, strings.HasPrefix(err.Error(), dir+": "), err)
		require.NotContains(t, err.Error(), "\n")
	}
}

// TestIncomplete: a folder that lacks files of the format that others tell is refused with their
// names, or they are named where the format can be read without them.
func TestIncomplete(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"node.dat: a graph of the Heterogeneous Graph Benchmark has link.dat, label.dat as well, and it is not there; fetch it again": {"node.dat": "x"},
		"role.json: a GraphSAINT folder has adj_full.npz, feats.npy, class_map.json as well":                                          {"role.json": "{}"},
		"ind.toy.graph: a citation graph has ind.*.allx, ":                                                                            {"ind.toy.graph": "x"},
		"valid.txt: a knowledge graph has train.txt as well":                                                                          {"valid.txt": "a\tb\tc\n", "test.txt": "a\tb\tc\n"},
		"x_val_ns.pkl: a temporal graph of TGB has *_test_ns*.pkl, *_edgelist*.csv as well":                                           {"x_val_ns.pkl": "x"},
	} {
		dir := folderOf(t, files)
		_, _, _, err := Recognise(dir)
		require.ErrorContains(t, err, dir+": "+want)
	}
	_, format, why, err := Recognise(folderOf(t, map[string]string{"adj_full.npz": "x", "feats.npy": "x", "class_map.json": "{}"}))
	require.NoError(t, err)
	require.Equal(t, "graphsaint", format)
	require.Equal(t, "adj_full.npz: a GraphSAINT folder, without role.json", why)
}

// TestOffers: what may be read in two ways, or needs a schema, is named with the ways.
func TestOffers(t *testing.T) {
	for _, header := range []string{"src dst unixtime", "source,target,weight,timestamp", "user_id,item_id,ts"} {
		path := filepath.Join(folderOf(t, map[string]string{"e.csv": header + "\n"}), "e.csv")
		_, _, _, err := Recognise(path)
		require.ErrorAs(t, err, new(*ingest.Question))
		require.ErrorContains(t, err, "gnnstore ingest events "+path+" OUT")
		require.ErrorContains(t, err, "gnnstore ingest csv "+path+" OUT")
	}
	for system, header := range map[string]string{
		"neo4j-admin": "personId:ID(Person),name,:LABEL", "APOC": `"_id","_labels","name","_start","_end","_type"`, "Neptune": "~id,~from,~to,~label",
	} {
		dir := folderOf(t, map[string]string{"a.csv": header + "\n1,2,3\n", "b.csv": "x,y,z\n"})
		way := "a property graph by its header, of " + system + "; gnnstore ingest table {infer} " + dir
		_, _, _, err := Recognise(dir)
		require.ErrorContains(t, err, dir+": a.csv: "+way)
		_, _, _, err = Recognise(filepath.Join(dir, "a.csv"))
		require.ErrorContains(t, err, way)
	}
	_, _, _, err := Recognise(folderOf(t, map[string]string{"acm.json": `{"edges": [{"relation": ["a", "to", "a"], "source_id_col": "x", "files": "e.csv"}]}`, "e.csv": "x,y\n1,2\n"}))
	require.ErrorContains(t, err, "a graph as GraphStorm constructs it, by its configuration; gnnstore ingest table {infer} ")
	at, format, _, err := Recognise(folderOf(t, map[string]string{"meta.yaml": "dataset_name: x\nedge_data:\n- file_name: e.csv\n", "e.csv": "src_id,dst_id\n1,2\n"}))
	require.NoError(t, err)
	require.Equal(t, "table", format)
	require.Equal(t, "meta.yaml", filepath.Base(at))
	_, _, _, err = Recognise(folderOf(t, map[string]string{"coins_edgelist.csv": "a1,a2\n1,2\n", "coins_classes.csv": "1,2\n"}))
	require.ErrorContains(t, err, "or describe them all: gnnstore ingest table {infer} ")
}

func TestFiles(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	long := strings.Repeat("# a comment\n", 10)
	const legacyTorch = "\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19." // a pickle of a magic number
	many := []string{"archive/data.pkl"}
	for i := range 2000 { // its directory does not fit in what is read of the end
		many = append(many, fmt.Sprintf("archive/data/%d", i))
	}
	for _, c := range []struct{ name, text, format, why string }{
		{"a.npz", zipped(t, "edge_index.npy"), "npz", "a.npz: edge_index.npy: arrays of NumPy"},
		{"adj", zipped(t, "indptr.npy"), "npz", "adj: indptr.npy: arrays of NumPy"},
		{"a.pt", zipped(t, "archive/data.pkl", "archive/data/0"), "pt", "a.pt: archive/data.pkl: tensors of PyTorch"},
		{"wikipedia.csv", "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n", "jodie", `wikipedia.csv: a temporal graph of JODIE, whose header is "user_id,item_id,timestamp,state_label,co…"`},
		{"ml_w.csv", ",u,i,ts,label,idx\n0,1,2,0,0,1\n", "tgn", `ml_w.csv: a temporal graph of TGN, whose columns are ",u,i,ts,label,idx"`},
		{"many.pt", zipped(t, many...), "pt", "many.pt: archive/data.pkl: tensors of PyTorch"},
		{"old.pth", legacyTorch + "...", "pt", "old.pth: tensors of PyTorch"},
		{"p4.pth", "\x80\x04\x95\x0e\x00\x00\x00\x00\x00\x00\x00" + legacyTorch[2:] + "...", "pt", "p4.pth: tensors of PyTorch"},
		{"ACM.zip", zipped(t, "ACM/info.dat", "ACM/node.dat"), "hgb", "ACM.zip: ACM/node.dat: a graph of the Heterogeneous Graph Benchmark"},
		{"g.mtx", "%%MatrixMarket matrix coordinate\n3 3 1\n", "mtx", "g.mtx: a matrix in the Matrix Market format"},
		{"g.mtx.gz", gzipped(t, "3 3 1\n1 2\n"), "mtx", "g.mtx.gz: a matrix in the Matrix Market format by its name, without the banner"},
		{"g.zip", zipped(t, "readme.html", "g.mtx"), "mtx", "g.zip: g.mtx: a matrix in the Matrix Market format"},
		{"g.tar.gz", gzipped(t, strings.Repeat("x", 257)+"ustar"+strings.Repeat("x", 250)), "mtx", "g.tar.gz: a tar archive, with a matrix as collections pack it"},
		{"g.xml", "<?xml version='1.0'?>\n<graphml>", "graphml", "g.xml: a graph in GraphML"},
		{"g.graphml.gz", gzipped(t, "<graphml>"), "graphml", "g.graphml.gz: a graph in GraphML"},
		{"g.json", `{"directed": true, "nodes": []}`, "nodelink", "g.json: JSON with the key nodes"},
		{"g.graph", "1 2\n2 3\n", "csv", `g.graph: an edge list, whose first row is "1 2"`},
		{"e.npy", "\x93NUMPY\x01\x00", "npy", "e.npy: an array of NumPy"},
		{"s.yaml", "# mine\nnodes:\n  - a\n", "table", "s.yaml: a schema of tables"},
		{"s.yml", "edges: []\n", "table", "s.yml: a schema of tables"},
		{"metadata.yaml", "dataset_name: x\ngraph:\n  nodes: []\n", "graphbolt", "metadata.yaml: a GraphBolt dataset"},
		{"ind.cora.graph", "\x80\x02ccollections\n", "planetoid", "ind.cora.graph: a file of a citation graph"},
		{"g.txt", long + "0\t1\n", "csv", `g.txt: an edge list, whose first row is "0\t1"`},
		{"g.csv", "src,dst\r\n0,1\r\n", "csv", `g.csv: an edge list, whose columns are "src,dst"`},
		{"g.edges", "% x\n3 4\n", "csv", `g.edges: an edge list, whose first row is "3 4"`},
		{"g.txt.gz", gzipped(t, "0 1\n"), "csv", `g.txt.gz: an edge list, whose first row is "0 1"`},
		{"g.tsv.zst", string(z.EncodeAll([]byte("0\t1\n"), nil)), "csv", `g.tsv.zst: an edge list, whose first row is "0\t1"`},
		{"g.csv", "edge_id,u,v\n7,0,1\n", "csv", `g.csv: an edge list, whose columns are "edge_id,u,v"`},
		{"g.csv", "k,src,dst,\"a\nb\"\n7,0,1,x\n", "csv", `g.csv: an edge list, whose columns are "k,src,dst,\"a"`},
		{"ratings.dat", "1::2::5\n", "csv", `ratings.dat: an edge list, whose first row is "1::2::5"`},
		{"g.txt", "1|2\n", "csv", `g.txt: an edge list, whose first row is "1|2"`},
		{"g.tsv", "ann\tbob\n", "csv", `g.tsv: an edge list with text for ids, whose first row is "ann\tbob"`},
	} {
		dir := folderOf(t, map[string]string{c.name: c.text})
		_, format, why, err := Recognise(filepath.Join(dir, c.name))
		require.NoError(t, err, c.name)
		require.Equal(t, c.format, format)
		require.Equal(t, c.why, why)
	}
	for _, c := range []struct{ name, text, want string }{
		{"a.parquet", "PAR1...", "a table in parquet, which needs a schema: gnnstore ingest table {infer} "},
		{"a.zip", zipped(t, "arxiv/raw/edge.csv.gz"), "arxiv/raw/edge.csv.gz: a dataset in a zip archive; unpack it first"},
		{"b.zip", zipped(t, "readme.txt"), "a zip archive of none of the formats"},
		{"a.csv", ",src,dst,time,int_roll,ext_roll\n0,1,2,3.0,0,0\n", "the events of a temporal graph of TGL (,src,dst,time,int_roll,ext_roll); name its folder: gnnstore ingest tgl "},
		{"a.pkl", "\x80\x03}q\x00.", "a Python pickle that is none of"},
		{"a.npy", "rawrawraw", "its first bytes are not those of a .npy file"},
		{"a.json", "{\"1\": [2]}", "JSON, which is no graph by itself"},
		{"a.txt", "<!DOCTYPE html>", "a web page"},
		{"a.rdf.txt", "<http://a> <http://b> <http://c> .\n", "RDF triples: rename it to end in .nt if it is N-Triples"},
		{"a.n3", "@prefix a: <http://b> .\na:b a:c a:d .\n", "RDF triples: rename it to end in .nt if it is N-Triples"},
		{"a.ttl", "<!DOCTYPE html>", "a web page"},
		{"a.gml", "graph [\n node [\n  id 1\n", "a graph in GML, which is not read; write it as node-link JSON"},
		{"a.xml", "<?xml version='1.0'?><gexf><graph>", "a graph in GEXF"},
		{"a.gml.gz", gzipped(t, "graph [\n node [\n  id 1\n"), "a graph in GML"},
		{"a.net", "*Vertices 3\n1 \"a\"\n", "a graph in Pajek's format"},
		{"a.bin", "\x3f\xa1\xb4\x46\xf0\x4f\x2e\xdd\x02\x00", "a graph of DGL, which is not read"},
		{"a.graph", "% x\n3 2\n2 3\n1\n1\n", "a graph of METIS"},
		{"a.txt", "3 2\n2 3\n1\n1\n", "a graph of METIS"},
		{"a.txt", "7 2 3\n2 3\n3\n", "an adjacency list, a node and its neighbours a row, is not read; write it as node-link JSON"},
		{"a.adjlist", "a b c\nb c\n", "an adjacency list"},
		{"a.mat", "MATLAB 5.0 MAT-file, Platform: GLNXA64", "a MATLAB file, which is not read; write its matrices as .npz"},
		{"a.csv", "a,b,c\n1,2,3\n", "name those of an edge list by gnnstore ingest csv FILE OUT {columns} SRC,DST[,WEIGHT], or describe the table: gnnstore ingest table {infer} "},
		{"kg.txt", "a\tlikes\tb\n", "a table of 3 columns (a\tlikes\tb), of which nobody knows which are ids"},
		{"one.txt", "17\n18\n", "its first row has one column (17), and an edge has two ids"},
		{"comments.txt", long, "no row in its first 4096 bytes"},
		{"empty.csv", "", "the file is empty"},
		{"x.yaml", "a: b\n", "YAML without nodes: and edges:"},
		{"a.dat", "\x00\x01\x02\x03\x04\x05\x06\x07", "not text, and not one of the formats that are recognised"},
		{"a.h5", "\x89HDF\r\n\x1a\n", "an HDF5 file"},
		{"cut.csv.gz", gzipped(t, "0,1\n")[:12], "truncated or damaged download"},
	} {
		path := filepath.Join(folderOf(t, map[string]string{c.name: c.text}), c.name)
		_, _, _, err := Recognise(path)
		require.ErrorContains(t, err, c.want, c.name)
		require.True(t, strings.HasPrefix(err.Error(), path+": "), err)
	}
	dir := folderOf(t, map[string]string{"ind.cora.graph": "x"})
	_, format, _, err := Recognise(filepath.Join(dir, "ind.cora"))
	require.NoError(t, err)
	require.Equal(t, "planetoid", format)
	_, _, _, err = Recognise(filepath.Join(dir, "none"))
	require.EqualError(t, err, filepath.Join(dir, "none")+": no such file or directory")
}

// TestProcessed: what a data set of PyTorch Geometric keeps in its folder.
func TestProcessed(t *testing.T) {
	graph := zipped(t, "data/data.pkl")
	beside := map[string]string{"pre_transform.pt": graph, "pre_filter.pt": graph}
	inside := folderOf(t, beside)
	require.NoError(t, os.WriteFile(filepath.Join(inside, "data.pt"), []byte(graph), 0o666))
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "raw"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(root, "raw", "notes.pdf"), []byte("%PDF-"), 0o666))
	require.NoError(t, os.CopyFS(filepath.Join(root, "processed"), os.DirFS(inside)))
	for path, want := range map[string]string{inside: "data.pt", root: filepath.Join("processed", "data.pt")} {
		at, format, why, err := Recognise(path)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(path, want), at)
		require.Equal(t, "pt", format)
		require.Contains(t, why, "data.pt: ")
	}
	// Raw files that are read come first, and of two graphs the user names one.
	require.NoError(t, os.WriteFile(filepath.Join(root, "raw", "ind.x.graph"), nil, 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(root, "raw", "ind.x.allx"), nil, 0o666))
	at, format, _, err := Recognise(root)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(root, "raw"), at)
	require.Equal(t, "planetoid", format)
	require.NoError(t, os.WriteFile(filepath.Join(inside, "more.pt"), []byte(graph), 0o666))
	_, _, _, err = Recognise(inside)
	require.ErrorContains(t, err, "there are several things inside: name one of data.pt (pt), more.pt (pt)")
}

// TestReal: every folder of the public data, and files in them.
func TestReal(t *testing.T) {
	root := os.Getenv("GNNSTORE_DATA")
	if root == "" {
		t.Skip("GNNSTORE_DATA is not set: the folder of public data")
	}
	want := map[string]string{ // a format, the only thing inside and its format, or what the refusal says
		"ogbn_arxiv":                         "ogb",
		"ogbn_arxiv/graphsaint":              "graphsaint",
		"ogbn_arxiv/graphsaint/adj_full.npz": "npz",
		"planetoid_cora":                     "planetoid",
		"planetoid_citeseer":                 "planetoid",
		"amazon_computers":                   "> amazon_electronics_computers.npz npz",
		"amazon_computers/amazon_electronics_computers.npz": "npz",
		"coauthor_cs":                         "> ms_academic_cs.npz npz",
		"dblp_citation":                       "> dblp.npz npz",
		"musae_facebook":                      "> facebook_edges.csv csv",
		"musae_facebook/facebook_edges.csv":   "csv",
		"musae_facebook/facebook_target.csv":  "! a table of 4 columns",
		"heterophilous":                       "! name one of actor.npz (npz), ",
		"heterophilous/actor.npz":             "npz",
		"hgb_acm":                             "> ACM.zip hgb",
		"hgb_acm/ACM.zip":                     "hgb",
		"hgb_imdb":                            "> IMDB.zip hgb",
		"hgb_imdb/IMDB.zip":                   "hgb",
		"aifb":                                "triples",
		"aifb/aifb_stripped.nt.gz":            "triples",
		"wn18rr":                              "triples",
		"wn18rr/train.txt":                    "! gnnstore ingest table {infer}",
		"jodie_wikipedia_edges":               "> ml_wikipedia.txt csv",
		"bitcoin_otc":                         "> soc-sign-bitcoinotc.csv csv",
		"bitcoin_otc/soc-sign-bitcoinotc.csv": "csv",
		"email_eu_core_temporal":              "> email-Eu-core-temporal.txt.gz csv",
		"patent_temporal":                     "! patent.txt (csv)",
		"collegemsg":                          "! name one of CollegeMsg.txt.gz (csv), ml_UCI-Msg.csv.gz (tgn)",
		"enron_temporal":                      "> ml_enron.txt csv",
		"mutag_rdf":                           "triples",
		"ogbl_ddi":                            "ogb",
		"umls_rnnlogic":                       "triples",
		"cnr2000":                             "> cnr-2000-csr.npz npz",
		"cnr2000/cnr-2000-csr.npz":            "npz",
		"soc_slashdot0902":                    "> soc-Slashdot0902.txt.gz csv",
		"soc_slashdot0902/soc-Slashdot0902.txt.gz": "csv",
	}
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	for _, e := range entries {
		if e.IsDir() {
			require.Contains(t, want, e.Name())
		}
	}
	for name, w := range want {
		at, format, why, err := Recognise(filepath.Join(root, name))
		if says, refused := strings.CutPrefix(w, "! "); refused {
			require.ErrorContains(t, err, says, name)
			continue
		}
		require.NoError(t, err, name)
		if inside, ok := strings.CutPrefix(w, "> "); ok {
			name, w, _ = strings.Cut(inside, " ")
			require.Equal(t, name, filepath.Base(at))
		}
		require.Equal(t, w, format, why)
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte("0,1\n"))
	f.Add([]byte("PK\x03\x04"))
	f.Add([]byte(zipped(f, "a.npy")))
	f.Add([]byte(gzipped(f, "0,1\n")))
	path := filepath.Join(f.TempDir(), "x")
	f.Fuzz(func(t *testing.T, b []byte) {
		require.NoError(t, os.WriteFile(path, b, 0o666))
		_, format, _, err := Recognise(path)
		require.Equal(t, format == "", err != nil)
	})
}
