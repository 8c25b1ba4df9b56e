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

// citation has two lists of nodes a part, and nodes in the place of each target: lists as protocol 2 encodes them, in the text.
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

// build seals the dataset in a folder.
func build(t *testing.T, dir string, o ingest.Options) (*store.Dataset, *ingest.Report, error) {
	src, err := Open(dir)
	if err != nil {
		return nil, nil, err
	}
	defer src.Close()
	o.Features = "none"
	out := filepath.Join(t.TempDir(), "x.gnn")
	rep, err := ingest.Build(context.Background(), src, out, o)
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
	for _, o := range []ingest.Options{{}, {Order: ingest.OrderOriginal}} {
		d, rep, err := build(t, citation(t).write(t, "citation_v2"), o)
		require.NoError(t, err)
		require.Equal(t, []ingest.EdgeSplitReport{{Name: "given", Relation: "node__to__node", Train: 3, Valid: 2, Test: 2}}, rep.EdgeSplits)
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

	d, _, err := build(t, collab().write(t, "collab"), ingest.Options{})
	require.NoError(t, err)
	valid, _ := d.HeldEdges(0, store.HeldValid)
	src, dst := valid.Ends()
	require.Equal(t, [][]int64{{0, 1}, {2, 2}}, [][]int64{original(d, src), original(d, dst)})
	src, dst = valid.Pool()
	require.Equal(t, [][]int64{{0, 1, 2}, {0, 1, 2}}, [][]int64{original(d, src), original(d, dst)})
	require.Equal(t, []byte{0, 0, 0xa0, 0x40, 0, 0, 0xc0, 0x40}, valid.Column("weight"), "5 and 6")
	require.Equal(t, []byte{0xe2, 7, 0, 0, 0, 0, 0, 0, 0xe2, 7, 0, 0, 0, 0, 0, 0}, valid.Column("year"))

	d, rep, err := build(t, collab().write(t, "collab"), ingest.Options{EdgeSplit: []string{"random:0.5/0.25/0.25"}, Seed: 3})
	if err == nil { // of two edges both may be held out
		require.Equal(t, "random:0.5/0.25/0.25", d.Manifest().Relations[0].EdgeSplit.Name)
		require.Contains(t, rep.Dropped, "the edges of node__to__node that the source holds out: --edge-split random:0.5/0.25/0.25 takes the place of its split")
	}
}

// TestWikikg: the relation of a triple is a column, and either end has negatives. One dict has both parts.
func TestWikikg(t *testing.T) {
	part := func(negatives string) string {
		return strings.TrimSuffix(pickled("head", ndarray("2", 0, 1), "relation", ndarray("2", 4, 5), "tail", ndarray("2", 2, 0),
			"head_neg", ndarray(negatives, 1, 2, 0, 2), "tail_neg", ndarray("2,1", 0, 1))[2:], ".")
	}
	all := files{
		"raw/num-node-list.csv.gz": "3\n", "raw/num-edge-list.csv.gz": "2\n", "raw/edge.csv.gz": "0,1\n2,0\n", "raw/edge_reltype.csv.gz": "4\n4\n",
		"split/time/split_dict.pt": pickled("train", "}", "valid", part("2,2"), "test", part("2,2")), "split/time/train.pt": "not read",
	}
	d, _, err := build(t, all.write(t, "wikikg_v2"), ingest.Options{})
	require.NoError(t, err)
	test, _ := d.HeldEdges(0, store.HeldTest)
	require.Equal(t, []int64{0, 2}, original(d, test.SrcNegatives(1)))
	require.Equal(t, []int64{1}, original(d, test.DstNegatives(1)))
	require.Equal(t, []byte{4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0}, test.Column("reltype"))
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
		_, _, err := build(t, dir, ingest.Options{})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
		require.ErrorContains(t, err, dir)
	}
}
