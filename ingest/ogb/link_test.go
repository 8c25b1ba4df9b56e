package ogb

import (
	"bytes"
	"context"
	"encoding/binary"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/rawfile"
	"github.com/gnnstore/gnnstore/store"
)

// pickled is a dict of keys and pickled values, as torch.save left it in the days of protocol 2.
func pickled(keysAndValues ...string) string {
	var b strings.Builder
	b.WriteString("\x80\x02}(")
	for i, s := range keysAndValues {
		if i%2 == 0 {
			s = "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
		}
		b.WriteString(s)
	}
	return b.String() + "u."
}

// ndarray is the pickle of an int64 array of that shape, "2,3".
func ndarray(shape string, values ...int64) string {
	dims := ""
	for _, d := range strings.Split(shape, ",") {
		n, err := strconv.Atoi(d)
		if err != nil {
			panic(err)
		}
		dims += "K" + string([]byte{byte(n)})
	}
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	return "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01(" + dims + "t" +
		"cnumpy\ndtype\nX\x02\x00\x00\x00i8\x89\x88\x87R(K\x03X\x01\x00\x00\x00<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89" +
		"T" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(data)))) + string(data) + "tb"
}

// citation has two lists of nodes a part, and nodes in the place of each target: lists as protocol
// 2 encodes them, in the text.
func citation(t testing.TB) files {
	part := func(src, dst, negatives []int64) string {
		var b bytes.Buffer
		f := rawfile.NewPT(&b, "valid.pt")
		require.NoError(t, f.Object(func(p *rawfile.Pickler) error {
			return p.Dict(func() {
				for key, ids := range map[string][]int64{"source_node": src, "target_node": dst} {
					require.NoError(t, p.Text(key).Int64s(int64(len(ids)), func(emit func([]int64) error) error { return emit(ids) }))
				}
			})
		}))
		require.NoError(t, f.Close())
		if negatives != nil {
			return pickled("source_node", ndarray(strconv.Itoa(len(src)), src...), "target_node", ndarray(strconv.Itoa(len(dst)), dst...),
				"target_node_neg", ndarray(strconv.Itoa(len(src))+","+strconv.Itoa(len(negatives)/len(src)), negatives...))
		}
		return b.String()
	}
	return files{
		"raw/num-node-list.csv.gz": "300\n", "raw/num-edge-list.csv.gz": "3\n", "raw/edge.csv.gz": "0,1\n1,2\n299,0\n",
		"split/time/train.pt": "not read",
		"split/time/valid.pt": part([]int64{3, 200}, []int64{255, 0}, nil),
		"split/time/test.pt":  part([]int64{1, 4}, []int64{2, 3}, []int64{5, 6, 7, 8, 9, 10}),
	}
}

// sealed seals the dataset in a folder.
func sealed(t *testing.T, dir string, o build.Options) (*store.Dataset, *build.Report, error) {
	src, err := Options{}.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	defer src.Close()
	o.Features = "none"
	out := filepath.Join(t.TempDir(), "x.gnn")
	rep, err := build.Build(context.Background(), src, out, o)
	if err != nil {
		return nil, nil, err
	}
	d, err := store.Open(out)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	problems, err := d.Verify(context.Background(), nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	return d, rep, nil
}

// original are nodes by the ids of the source.
func original(d *store.Dataset, nodes []store.NodeID) (ids []int64) {
	for _, v := range nodes {
		ids = append(ids, d.IDs(0).Original(v))
	}
	return ids
}

func TestHeldEdges(t *testing.T) {
	for _, o := range []build.Options{{}, {Order: build.OrderOriginal}} {
		d, rep, err := sealed(t, citation(t).write(t, "citation_v2"), o)
		require.NoError(t, err)
		require.Equal(t, []build.EdgeSplitReport{{Name: "given", Relation: "node__to__node", Train: 3, Valid: 2, Test: 2}}, rep.EdgeSplits)
		require.Contains(t, rep.Notes, "1 held-out edges of relation node__to__node are among its training edges as well, as the source has them")
		valid, _ := d.HeldEdges(0, store.HeldValid)
		src, dst := valid.Ends()
		require.Equal(t, [][]int64{{3, 200}, {255, 0}}, [][]int64{original(d, src), original(d, dst)})
		require.Nil(t, valid.DstNegatives(0))
		test, _ := d.HeldEdges(0, store.HeldTest)
		src, dst = test.Ends()
		require.Equal(t, [][]int64{{1, 4}, {2, 3}}, [][]int64{original(d, src), original(d, dst)})
		require.Equal(t, [][]int64{{5, 6, 7}, {8, 9, 10}}, [][]int64{original(d, test.DstNegatives(0)), original(d, test.DstNegatives(1))})
	}

	d, _, err := sealed(t, collab().write(t, "collab"), build.Options{})
	require.NoError(t, err)
	valid, _ := d.HeldEdges(0, store.HeldValid)
	src, dst := valid.Ends()
	require.Equal(t, [][]int64{{0, 1}, {2, 2}}, [][]int64{original(d, src), original(d, dst)})
	src, dst = valid.Pool()
	require.Equal(t, [][]int64{{0, 1, 2}, {0, 1, 2}}, [][]int64{original(d, src), original(d, dst)})
	require.Equal(t, []byte{0, 0, 0xa0, 0x40, 0, 0, 0xc0, 0x40}, valid.Column("weight"), "5 and 6")
	require.Equal(t, []byte{0xe2, 7, 0, 0, 0, 0, 0, 0, 0xe2, 7, 0, 0, 0, 0, 0, 0}, valid.Column("year"))

	// A note names negatives that are held-out edges.
	own := citation(t)
	own["split/time/test.pt"] = pickled("source_node", ndarray("2", 1, 4), "target_node", ndarray("2", 2, 3), "target_node_neg", ndarray("2,2", 5, 6, 3, 9))
	_, rep, err := sealed(t, own.write(t, "citation_v2"), build.Options{})
	require.NoError(t, err)
	require.Contains(t, strings.Join(rep.Notes, "\n"), "1 negatives of relation node__to__node are held-out edges themselves, so that the metric counts them against the edges; the first is ")
	require.Contains(t, strings.Join(rep.Notes, "\n"), "test.pt: row 1 (counting from 0)")
	own = collab()
	own["split/time/valid.pt"] = pickled("edge", ndarray("2,2", 0, 2, 1, 2), "edge_neg", ndarray("3,2", 0, 1, 1, 2, 2, 1))
	_, rep, err = sealed(t, own.write(t, "collab"), build.Options{})
	require.NoError(t, err)
	require.Contains(t, strings.Join(rep.Notes, "\n"), "1 negatives of relation node__to__node are held-out edges themselves")
	require.Contains(t, strings.Join(rep.Notes, "\n"), "valid.pt: edge_neg: row 1 (counting from 0)")

	d, rep, err = sealed(t, collab().write(t, "collab"), build.Options{EdgeSplit: []string{"random:0.5/0.25/0.25"}, Seed: 3})
	if err == nil { // of two edges both may be held out
		require.Equal(t, "random:0.5/0.25/0.25", d.Manifest().Relations[0].EdgeSplit.Name)
		require.Contains(t, rep.Dropped, "the edges of node__to__node that the source holds out: {edge_split} random:0.5/0.25/0.25 takes the place of its split")
	}
}

// TestWikikg: the relation of a triple is a column, and either end has negatives. One dict has both
// parts.
func TestWikikg(t *testing.T) {
	part := func(negatives string) string {
		return strings.TrimSuffix(pickled("head", ndarray("2", 0, 1), "relation", ndarray("2", 4, 5), "tail", ndarray("2", 2, 0),
			"head_neg", ndarray(negatives, 1, 2, 0, 2), "tail_neg", ndarray("2,1", 0, 1))[2:], ".")
	}
	all := files{
		"raw/num-node-list.csv.gz": "3\n", "raw/num-edge-list.csv.gz": "2\n", "raw/edge.csv.gz": "0,1\n2,0\n", "raw/edge_reltype.csv.gz": "4\n4\n",
		"split/time/split_dict.pt": pickled("train", "}", "valid", part("2,2"), "test", part("2,2")), "split/time/train.pt": "not read",
	}
	d, _, err := sealed(t, all.write(t, "wikikg_v2"), build.Options{})
	require.NoError(t, err)
	test, _ := d.HeldEdges(0, store.HeldTest)
	require.Equal(t, []int64{0, 2}, original(d, test.SrcNegatives(1)))
	require.Equal(t, []int64{1}, original(d, test.DstNegatives(1)))
	require.Equal(t, []byte{4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0}, test.Column("reltype"))
}

// texts is the pickle of a list of text.
func texts(values ...string) string {
	var b strings.Builder
	b.WriteString("](")
	for _, s := range values {
		b.WriteString("X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s)
	}
	return b.String() + "e"
}

// biokg is ogbl-biokg in small: three types, two relations between the same ones, and held-out
// edges of all of them in one list.
func biokg() files {
	f := files{
		"raw/num-node-dict.csv.gz":      "protein,drug,disease\n4,3,2\n",
		"raw/triplet-type-list.csv.gz":  "drug,slows,drug\ndrug,helps,drug\ndrug,binds,protein\ndisease,of,protein\nprotein,never,protein\n",
		"split/random/train.pt":         "not read",
		"split/random/valid.pt":         biokgPart(),
		"mapping/relidx2relname.csv.gz": "not read",
		"split/random/test.pt": pickled("head_type", texts("drug"), "head", ndarray("1", 2), "head_neg", ndarray("1,3", 0, 1, 2),
			"relation", ndarray("1", 2), "tail_type", texts("drug"), "tail", ndarray("1", 0), "tail_neg", ndarray("1,1", 1)),
	}
	for i, r := range []string{"disease___of___protein", "drug___binds___protein", "drug___helps___drug", "drug___slows___drug"} {
		f["raw/relations/"+r+"/edge.csv.gz"] = "0,1\n1,0\n"
		f["raw/relations/"+r+"/num-edge-list.csv.gz"] = "2\n"
		f["raw/relations/"+r+"/edge_reltype.csv.gz"] = strings.Repeat(strconv.Itoa(i)+"\n", 2)
	}
	f["raw/relations/protein___never___protein/edge.csv.gz"] = ""
	f["raw/relations/protein___never___protein/num-edge-list.csv.gz"] = "0\n"
	return f
}

func biokgPart() string {
	return pickled("head_type", texts("drug", "disease", "drug", "drug", "drug"), "head", ndarray("5", 0, 1, 1, 2, 0),
		"head_neg", ndarray("5,2", 1, 2, 0, 0, 0, 1, 0, 2, 2, 1), "relation", ndarray("5", 3, 0, 3, 1, 3),
		"tail_type", texts("drug", "protein", "drug", "protein", "drug"), "tail", ndarray("5", 2, 3, 2, 0, 1),
		"tail_neg", ndarray("5,1", 0, 1, 1, 3, 2))
}

// TestBiokg: each relation has the held-out edges of its types and its number, with the negatives
// of both ends.
func TestBiokg(t *testing.T) {
	source, err := Options{}.Open(biokg().write(t, "biokg"))
	require.NoError(t, err)
	defer source.Close()
	for i, r := range source.schema.Relations { // the dicts stay from the first relation to the last
		for part := ingest.Valid; part <= ingest.Test && r.Held != nil; part++ {
			require.NoError(t, source.HeldEdges(t.Context(), i, part, func(ingest.HeldChunk) error { return nil }))
			require.Equal(t, r.Name == "slows" && part == ingest.Test, source.kept == nil)
		}
	}
	d, rep, err := sealed(t, biokg().write(t, "biokg"), build.Options{})
	require.NoError(t, err)
	require.Equal(t, []build.EdgeSplitReport{
		{Name: "given", Relation: "disease__of__protein", Train: 2, Valid: 1, Test: 0}, {Name: "given", Relation: "drug__binds__protein", Train: 2, Valid: 1, Test: 0},
		{Name: "given", Relation: "drug__helps__drug", Train: 2, Valid: 0, Test: 1}, {Name: "given", Relation: "drug__slows__drug", Train: 2, Valid: 3, Test: 0},
	}, rep.EdgeSplits)
	at := map[string]int{}
	for i, r := range d.Manifest().Relations {
		at[r.Name] = i
	}
	types := map[string]int{}
	for i, n := range d.Manifest().NodeTypes {
		types[n.Name] = i
	}
	ids := func(kind string, nodes []store.NodeID) (all []int64) {
		for _, v := range nodes {
			all = append(all, d.IDs(types[kind]).Original(v))
		}
		return all
	}
	slows, _ := d.HeldEdges(at["slows"], store.HeldValid)
	src, dst := slows.Ends()
	require.Equal(t, [][]int64{{0, 1, 0}, {2, 2, 1}}, [][]int64{ids("drug", src), ids("drug", dst)})
	require.Equal(t, [][]int64{{1, 2}, {0, 1}, {2, 1}}, [][]int64{ids("drug", slows.SrcNegatives(0)), ids("drug", slows.SrcNegatives(1)), ids("drug", slows.SrcNegatives(2))})
	require.Equal(t, [][]int64{{0}, {1}, {2}}, [][]int64{ids("drug", slows.DstNegatives(0)), ids("drug", slows.DstNegatives(1)), ids("drug", slows.DstNegatives(2))})
	of, _ := d.HeldEdges(at["of"], store.HeldValid)
	src, dst = of.Ends()
	require.Equal(t, [][]int64{{1}, {3}, {0, 0}, {1}}, [][]int64{ids("disease", src), ids("protein", dst), ids("disease", of.SrcNegatives(0)), ids("protein", of.DstNegatives(0))})
	helps, _ := d.HeldEdges(at["helps"], store.HeldTest)
	require.Equal(t, []int64{0, 1, 2}, ids("drug", helps.SrcNegatives(0)))
	require.Nil(t, d.Manifest().Relations[at["never"]].EdgeSplit)

	for want, change := range map[string]files{
		"valid.pt: row 3 (counting from 0): no relation from \"drug\" to \"protein\" has the number 7 in its edge_reltype": {
			"raw/relations/drug___binds___protein/edge_reltype.csv.gz": "9\n9\n",
			"split/random/valid.pt": strings.Replace(biokgPart(), ndarray("5", 3, 0, 3, 1, 3), ndarray("5", 3, 0, 3, 7, 3), 1),
		},
		"valid.pt: those of drug__slows__drug: row 2 (counting from 0): negative destination 9 is not one of the 3 nodes": {
			"split/random/valid.pt": strings.Replace(biokgPart(), ndarray("5,1", 0, 1, 1, 3, 2), ndarray("5,1", 0, 1, 1, 3, 9), 1),
		},
		"valid.pt: head_type: 1 types for 5 edges": {
			"split/random/valid.pt": strings.Replace(biokgPart(), texts("drug", "disease", "drug", "drug", "drug"), texts("drug"), 1),
		},
		"valid.pt: relation: array is (2,) of <i8, where a number for each of 5 edges is expected": {
			"split/random/valid.pt": strings.Replace(biokgPart(), ndarray("5", 3, 0, 3, 1, 3), ndarray("2", 3, 0), 1),
		},
		"valid.pt: no head, tail, head_type and tail_type in it": {"split/random/valid.pt": pickled("edge", ndarray("1,2", 0, 1))},
	} {
		_, _, err := sealed(t, biokg().with(change).write(t, "biokg"), build.Options{})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	for want, change := range map[string]files{
		"edge_reltype has the number 3 for the relations drug__helps__drug and drug__slows__drug": {"raw/relations/drug___helps___drug/edge_reltype.csv.gz": "3\n3\n"},
		"edge_reltype has no number for relation drug__helps__drug":                               {"raw/relations/drug___helps___drug/edge_reltype.csv.gz": "-"},
	} {
		d, rep, err := sealed(t, biokg().with(change).write(t, "biokg"), build.Options{})
		require.NoError(t, err)
		require.Nil(t, d.Manifest().Relations[0].EdgeSplit)
		require.Contains(t, strings.Join(rep.Dropped, "\n"), want)
	}
}

// TestHeldEdgesRefused: each mistake is one line with file, place and reason.
func TestHeldEdgesRefused(t *testing.T) {
	for want, valid := range map[string]string{
		"valid.pt: row 1 (counting from 0): destination 3 is not one of the 3 nodes":                              pickled("edge", ndarray("2,2", 0, 2, 1, 3)),
		"valid.pt: row 0 (counting from 0): source -1 is not one of the 3 nodes":                                  pickled("edge", ndarray("1,2", -1, 2)),
		"valid.pt: edge_neg: row 0 (counting from 0): pair that is no edge: source 7 is not one of the 3 nodes":   pickled("edge", ndarray("1,2", 1, 2), "edge_neg", ndarray("1,2", 7, 2)),
		"valid.pt: row 0 (counting from 0): negative destination 9 is not one of the 3 nodes":                     pickled("source_node", ndarray("1", 1), "target_node", ndarray("1", 2), "target_node_neg", ndarray("1,2", 0, 9)),
		"valid.pt: edge: array is (1, 3) of <i8, where two columns are expected":                                  pickled("edge", ndarray("1,3", 1, 2, 0)),
		"valid.pt: target_node_neg: array is (2, 1) of <i8, where a row of nodes for each of 1 edges is expected": pickled("source_node", ndarray("1", 1), "target_node", ndarray("1", 2), "target_node_neg", ndarray("2,1", 0, 1)),
		"valid.pt: target_node_neg: array is (1,) of <i8, where 2 dimensions are expected":                        pickled("source_node", ndarray("1", 1), "target_node", ndarray("1", 2), "target_node_neg", ndarray("1", 0)),
		"valid.pt: 1 in source_node and 2 in target_node; each edge has both":                                     pickled("source_node", ndarray("1", 1), "target_node", ndarray("2", 2, 0)),
		"valid.pt: weight: array is (2,) of <i8, where a value for each of 1 edges is expected":                   pickled("edge", ndarray("1,2", 1, 2), "weight", ndarray("2", 1, 1)),
		"valid.pt: it holds an integer, where a dict is expected":                                                 "I3\n.",
	} {
		dir := collab().with(files{"split/time/valid.pt": valid}).write(t, "collab")
		_, _, err := sealed(t, dir, build.Options{})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
		require.ErrorContains(t, err, dir)
	}
}
