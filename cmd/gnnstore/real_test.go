package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/store"
)

// publicData is the folder of public graphs; the test is skipped without it.
func publicData(t *testing.T) string {
	t.Helper()
	root := os.Getenv("GNNSTORE_DATA")
	if root == "" {
		t.Skip("GNNSTORE_DATA is not set: the folder with expected.json and the public graphs that it names")
	}
	return root
}

// notStatic names public graphs that other tests read: RDF, streams of events, and held-out links.
var notStatic = []string{"aifb", "bitcoin_otc", "email_eu_core_temporal", "jodie_wikipedia_edges", "patent_temporal",
	"collegemsg", "enron_temporal", "mutag_rdf", "ogbl_ddi"}

// TestEveryDataset ingests each public graph as its users do, by the name of its format and by
// auto, as given and undirected, and compares all that expected.json says of it.
func TestEveryDataset(t *testing.T) {
	root := publicData(t)
	raw, err := os.ReadFile(filepath.Join(root, "expected.json"))
	require.NoError(t, err)
	var expected map[string]map[string]any
	require.NoError(t, json.Unmarshal(raw, &expected))

	made := []string{"--features", "degree"}
	typed := []string{"!undirected"}
	type dataset struct {
		expect, format, src string
		flags               []string // of both ingests; !undirected says that no relation can be
	}
	tried := slices.Clone(notStatic)
	for _, c := range []dataset{
		{"ogbn_arxiv", "ogb", "ogbn_arxiv", made},
		{"ogbn_arxiv", "graphsaint", "ogbn_arxiv/graphsaint", made},
		{"planetoid_cora", "planetoid", "planetoid_cora", nil},
		{"planetoid_citeseer", "planetoid", "planetoid_citeseer", nil},
		{"amazon_computers", "npz", "amazon_computers/amazon_electronics_computers.npz", nil},
		{"coauthor_cs", "npz", "coauthor_cs/ms_academic_cs.npz", nil},
		{"dblp_citation", "npz", "dblp_citation/dblp.npz", nil},
		{"musae_facebook", "csv", "musae_facebook/facebook_edges.csv", []string{"--nodes", root + "/musae_facebook/facebook_target.csv",
			"--label", "page_type", "--node-features", root + "/musae_facebook/facebook.json"}},
		{"heterophilous/actor", "npz", "heterophilous/actor.npz", nil},
		{"heterophilous/chameleon_filtered", "npz", "heterophilous/chameleon_filtered.npz", nil},
		{"heterophilous/squirrel_filtered", "npz", "heterophilous/squirrel_filtered.npz", nil},
		{"heterophilous/squirrel_filtered_directed", "npz", "heterophilous/squirrel_filtered_directed.npz", nil},
		{"heterophilous/minesweeper", "npz", "heterophilous/minesweeper.npz", nil},
		{"hgb_acm", "hgb", "hgb_acm/ACM.zip", typed},
		{"hgb_imdb", "hgb", "hgb_imdb/IMDB.zip", typed},
		{"cnr2000", "npz", "cnr2000/cnr-2000-csr.npz", made},
		{"soc_slashdot0902", "csv", "soc_slashdot0902/soc-Slashdot0902.txt.gz", made},
	} {
		tried = append(tried, c.expect)
		t.Run(c.format+"/"+c.expect, func(t *testing.T) {
			src := filepath.Join(root, c.src)
			flags, undirected := c.flags, []string{"--undirected"}
			if slices.Equal(flags, typed) {
				flags, undirected = nil, nil
			}
			given := ingestAs(t, c.format, src, flags...)
			auto := ingestAs(t, autoFormat, src, append(undirected, flags...)...)
			if undirected == nil {
				require.Equal(t, given.Seal, auto.Seal)
			}
			require.Equal(t, given.edgesRead, auto.edgesRead)
			agree(t, expected[c.expect], given, auto)
		})
	}
	tried = append(tried, "wn18rr")
	t.Run("table/wn18rr", func(t *testing.T) { everyTriple(t, filepath.Join(root, "wn18rr"), expected["wn18rr"]) })

	for name := range expected {
		require.Contains(t, tried, name, "expected.json knows it")
	}
}

// everyTriple ingests a knowledge graph whole, by the schema that --infer writes, and each of its
// parts alone.
func everyTriple(t *testing.T, dir string, want map[string]any) {
	tables := filepath.Join(t.TempDir(), "tables")
	require.NoError(t, os.CopyFS(tables, os.DirFS(dir)))
	var inferred, stderr bytes.Buffer
	require.Zero(t, execute([]string{"ingest", "table", "--infer", tables}, &inferred, &stderr), "%s", &stderr)
	schema := filepath.Join(tables, "schema.yaml")
	ingested := func(format, text string) *ingested {
		require.NoError(t, os.WriteFile(schema, []byte(text), 0o666))
		return ingestAs(t, format, schema, "--features", "degree")
	}
	whole := ingested(autoFormat, inferred.String())
	got := map[string]any{"entities": whole.NodeTypes[0].Count, "relations": len(whole.Relations)}
	triples := int64(0)
	for _, part := range []string{"train", "valid", "test"} {
		p := ingested("table", "edges: [{type: 'entity:to:entity', files: "+part+".txt, format: tsv, header: no, src: 1, dst: 3}]")
		got[part] = p.edgesRead
		triples += p.edgesRead
	}
	require.Equal(t, triples, whole.edgesRead)
	require.JSONEq(t, asJSON(t, want), asJSON(t, got))
}

// agree compares every fact that expected.json has of a dataset.
func agree(t *testing.T, expected map[string]any, given, auto *ingested) {
	require.NotEmpty(t, expected)
	facts := given.facts()
	facts["edges_symmetrised"] = auto.edges
	facts["undirected_edges"] = (auto.edges - auto.loops) / 2
	got := map[string]any{}
	for fact := range expected {
		require.Contains(t, facts, fact, "nothing here counts it")
		got[fact] = facts[fact]
	}
	require.JSONEq(t, asJSON(t, expected), asJSON(t, got))
}

func asJSON(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

// ingested has the report of gnnstore ingest, and counts that the test made by reading the dataset.
type ingested struct {
	build.Report
	edgesRead, edges, loops int64 // as read, as stored, and self loops among the latter
	maxIn, maxOut           int
	values                  int64   // features other than 0
	classes                 []int64 // nodes of each class of the first label
	split                   [3][]int64
}

// ingestAs ingests, verifies and counts.
func ingestAs(t *testing.T, format, src string, flags ...string) *ingested {
	t.Helper()
	out := filepath.Join(t.TempDir(), "x.gnn")
	var stdout, stderr bytes.Buffer
	require.Zero(t, execute(append([]string{"ingest", format, src, out, "--json"}, flags...), &stdout, &stderr), "%s", &stderr)
	g := &ingested{}
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &g.Report))
	require.Zero(t, execute([]string{"verify", out}, io.Discard, &stderr), "%s", &stderr)
	ds, err := store.Open(out)
	require.NoError(t, err)
	defer func() {
		require.NoError(t, ds.Close())
		require.NoError(t, os.RemoveAll(out))
	}()
	g.count(ds)
	for i, r := range g.Relations {
		g.edgesRead += r.EdgesRead
		require.Equal(t, ds.Graph(i).Edges(), r.Edges)
	}
	return g
}

// count goes over the whole dataset.
func (g *ingested) count(ds *store.Dataset) {
	m := ds.Manifest()
	for i, r := range m.Relations {
		graph := ds.Graph(i)
		out := map[store.NodeID]int{}
		for v := range graph.Nodes() {
			neighbors := graph.Neighbors(store.NodeID(v))
			g.edges += int64(len(neighbors))
			g.maxIn = max(g.maxIn, len(neighbors))
			for _, u := range neighbors {
				out[u]++
				if int(u) == v && r.Src == r.Dst {
					g.loops++
				}
			}
		}
		for _, degree := range out {
			g.maxOut = max(g.maxOut, degree)
		}
	}
	for i, table := range m.Tables {
		if table.Elem != store.F16 {
			continue
		}
		for v := range table.Shards[0].Rows {
			for row := ds.Features(i).Row(store.NodeID(v)); len(row) > 0; row = row[2:] {
				if binary.LittleEndian.Uint16(row)&0x7fff != 0 {
					g.values++
				}
			}
		}
	}
	if len(m.Labels) > 0 && !m.Labels[0].Multi {
		g.classes = make([]int64, m.Labels[0].Classes)
		for v := range m.Labels[0].Values.Rows {
			if class := ds.Labels(0).Class(store.NodeID(v)); class >= 0 {
				g.classes[class]++
			}
		}
	}
	if len(m.Splits) > 0 {
		ids := ds.IDs(0)
		for i, part := range [][]store.NodeID{ds.Split(0).Train, ds.Split(0).Valid, ds.Split(0).Test} {
			for _, v := range part {
				g.split[i] = append(g.split[i], ids.Original(v))
			}
			slices.Sort(g.split[i])
		}
	}
}

// facts returns everything that expected.json may state about a dataset, by its names there.
func (g *ingested) facts() map[string]any {
	var nodes, loops int64
	var nodeTypes, linkTypes []int64
	for _, n := range g.NodeTypes {
		nodeTypes = append(nodeTypes, n.Count)
		nodes += n.Count
	}
	for _, r := range g.Relations {
		linkTypes = append(linkTypes, r.EdgesRead)
		loops += r.SelfLoops
	}
	facts := map[string]any{
		"nodes": nodes, "node_types": nodeTypes, "self_loops": loops, "link_types": linkTypes, "feature_nnz": g.values,
		"max_in_degree": g.maxIn, "max_out_degree": g.maxOut, "class_counts": g.classes,
	}
	for _, name := range []string{"edges", "directed_edges", "stored_edges", "links", "arcs"} {
		facts[name] = g.edgesRead
	}
	facts["features"] = nil
	if t := g.Tables[0]; !t.Made {
		facts["features"] = t.Dim
	}
	if len(g.Labels) == 1 {
		facts["classes"], facts["multilabel"] = g.Labels[0].Classes, g.Labels[0].Multi
	}
	if len(g.Splits) == 1 {
		s := g.Splits[0]
		facts["train"], facts["valid"], facts["test"] = s.Train, s.Valid, s.Test
		facts["train_labels"], facts["test_labels"] = s.Train+s.Valid, s.Test
	}
	return facts
}

// TestEveryMask: each of the ten splits of the heterophilous graphs has the nodes that are True in
// the masks.
func TestEveryMask(t *testing.T) {
	root := publicData(t)
	for _, name := range []string{"actor", "chameleon_filtered", "squirrel_filtered", "squirrel_filtered_directed", "minesweeper"} {
		path := filepath.Join(root, "heterophilous", name+".npz")
		z, err := zip.OpenReader(path)
		require.NoError(t, err)
		var masks [3][]byte // bool[10, nodes] behind a header, some in Fortran's order
		for i, key := range []string{"train_masks", "val_masks", "test_masks"} {
			member, err := z.Open(key + ".npy")
			require.NoError(t, err)
			masks[i], err = io.ReadAll(member)
			require.NoError(t, err)
		}
		require.NoError(t, z.Close())
		for k := range 10 {
			g := ingestAs(t, "npz", path, "--features", "degree", "--mask-split", fmt.Sprint(k))
			n := int(g.NodeTypes[0].Count)
			for i, mask := range masks {
				fortran := bytes.Contains(mask[:128], []byte("'fortran_order': True"))
				mask = mask[len(mask)-10*n:]
				var want []int64
				for v := range n {
					if fortran && mask[10*v+k] != 0 || !fortran && mask[n*k+v] != 0 {
						want = append(want, int64(v))
					}
				}
				require.NotEmpty(t, want)
				require.True(t, slices.Equal(want, g.split[i]), "%s: %s of split %d", name, ingest.Part(i), k)
			}
		}
	}
}
