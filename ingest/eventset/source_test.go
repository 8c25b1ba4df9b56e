package eventset

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/generate"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/store"
)

// folder is files by name.
type folder map[string]string

func (f folder) write(t testing.TB) string {
	dir := t.TempDir()
	for name, body := range f {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(body), 0o644))
	}
	return dir
}

// array is a .npy file: descr and shape as NumPy writes them, and the bytes of its elements.
func array(descr, shape string, elements ...byte) string {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
	header += strings.Repeat(" ", 117-len(header)) + "\n"
	return "\x93NUMPY\x01\x00" + string([]byte{byte(len(header)), 0}) + header + string(elements)
}

const tgl = ",src,dst,time,int_roll,ext_roll\n0,0,2,1.5,0,0\n1,1,2,1700000000.25,0,1\n2,0,3,1700000000.25,0,2\n"

// TestTGL: the first column has no name, ext_roll is the split, features may be booleans, and nodes
// are as many as their rows.
func TestTGL(t *testing.T) {
	dir := folder{
		"edges.csv": tgl, "edge_features.npy": array("|b1", "3, 2", 1, 0, 0, 1, 1, 1), "node_features.npy": array("|i1", "5,", 9, 8, 7, 6, 5), "ext_full.npz": "x",
		"labels.csv": ",node,time,label,ext_roll\n0,4,1700000000.25,2,1\n1,0,-1,0,0\n2,4,1700000000.25,1,2\n",
	}.write(t)
	s, err := OpenTGL(dir, Options{})
	require.NoError(t, err)
	defer s.Close()
	g, err := sourcetest.Read(s)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 1, 0}, g.Edges[0].Src)
	require.Equal(t, []int64{2, 2, 3}, g.Edges[0].Dst)
	require.Equal(t, []ingest.NodeType{{Name: "node", Count: 5}}, g.Schema.NodeTypes)
	require.Equal(t, []float32{9, 8, 7, 6, 5}, g.Table("node/feat"))
	require.Equal(t, []float32{1, 0, 0, 1, 1, 1}, g.Table("node__events__node/feat"))
	require.True(t, g.Schema.Relations[0].Parted)
	require.Equal(t, []string{
		dir + "/edges.csv: 1 of the edges' columns are left behind (int_roll)", dir + "/ext_full.npz: lists of neighbours are not read",
	}, g.Schema.Skipped, "the column that counts is read")

	require.Equal(t, ingest.About{Events: 3, NodeLabels: 3}, g.Schema.Relations[0].Stream.About)

	out := filepath.Join(t.TempDir(), "x.gnn")
	rep, err := build.Build(t.Context(), s, out, build.Options{})
	require.NoError(t, err)
	require.Equal(t, store.StreamSplit{Name: "given", Train: 1, Valid: 1, Test: 1}, rep.Streams[0].Split)
	require.Equal(t, 1700000000.25, rep.Streams[0].Last, "times are not rounded to float32")
	require.EqualValues(t, 3, rep.Streams[0].NodeLabels)
	d, err := store.Open(out)
	require.NoError(t, err)
	defer d.Close()
	problems, err := d.Verify(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	nodes, times, classes := d.Events(0).LabelledNodes(0, 3)
	require.Equal(t, []int64{0, 4, 4}, []int64{d.IDs(0).Original(nodes[0]), d.IDs(0).Original(nodes[1]), d.IDs(0).Original(nodes[2])})
	require.Equal(t, []float64{-1, 1700000000.25, 1700000000.25}, times, "sorted, those of one time as they came")
	require.Equal(t, []int32{0, 2, 1}, classes)
	require.Equal(t, store.StreamSplit{Name: "given", Train: 1, Valid: 1, Test: 1}, d.Events(0).Stream.NodeLabels.Split)
}

// TestTGLLabels: without features of nodes the largest id in both tables sets the number of nodes,
// and values that no label can have are refused.
func TestTGLLabels(t *testing.T) {
	head := ",node,time,label,ext_roll\n"
	for _, c := range []struct{ labels, want string }{
		{head + "0,6,3,1,0\n", ""},
		{head + "0,6,3,-1,0\n", "labels.csv: line 2, column 4: id -1 is negative"},
		{head + "0,6,3,65536,0\n", "labels.csv: line 2: class 65536; classes are numbers from 0 to 65535"},
		{head + "0,-6,3,1,0\n", "labels.csv: line 2, column 2: id -6 is negative"},
		{head + "0,6,3,1,2\n1,6,4,1,0\n", "label 1 of nodes (counting from 0, as read): it is to train, and one before it in time is to test"},
		{head + "0,6,x,1,0\n", "labels.csv: line 2, column 3: \"x\" is not a number, as times are"},
		{",node,time,label\n0,6,3,1\n", "ext_roll: there is no such column"},
	} {
		s, err := OpenTGL(folder{"edges.csv": tgl, "labels.csv": c.labels}.write(t), Options{})
		require.NoError(t, err)
		d, _, err := sealed(t, s, build.Options{})
		if c.want != "" {
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			continue
		}
		require.NoError(t, err)
		require.EqualValues(t, 7, d.Events(0).Sources)
		schema, err := s.Schema(t.Context())
		require.NoError(t, err)
		require.Equal(t, []int64{3, 1}, []int64{schema.Relations[0].Edges, schema.Relations[0].Stream.About.NodeLabels})
	}
	s, err := OpenTGL(folder{"edges.csv": tgl, "labels.csv": head + "0,0,3,1,0\n"}.write(t), Options{Bipartite: true})
	require.NoError(t, err)
	d, rep, err := sealed(t, s, build.Options{})
	require.NoError(t, err)
	require.Nil(t, d.Events(0).Stream.NodeLabels)
	require.Contains(t, strings.Join(rep.Dropped, "\n"), "labels are of nodes of one kind, which {bipartite} parts in two, and are not read")
}

// TestGeneratedTGL reads what generate writes in TGL's layout, with features in a .pt.
func TestGeneratedTGL(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "raw")
	_, err := generate.WriteRaw(t.Context(), "temporal", dir, generate.Options{Scale: 0.005, Dim: 3}, nil)
	require.NoError(t, err)
	s, err := OpenTGL(dir, Options{})
	require.NoError(t, err)
	defer s.Close()
	out := filepath.Join(t.TempDir(), "x.gnn")
	rep, err := build.Build(t.Context(), s, out, build.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 787, rep.Streams[0].Events)
	d, err := store.Open(out)
	require.NoError(t, err)
	defer d.Close()
	problems, err := d.Verify(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	feat, ok := d.StreamTable("events", "feat")
	require.True(t, ok)
	require.Equal(t, []int{787, 3}, []int{feat.Rows(), feat.Dim()})

	s, err = OpenTGL(dir, Options{Bipartite: true, NoRows: true})
	require.NoError(t, err)
	schema, err := s.Schema(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"user", "item"}, []string{schema.NodeTypes[0].Name, schema.NodeTypes[1].Name})
	require.Empty(t, schema.Tables)
	require.NoError(t, s.Close())
}

const tgn = ",u,i,ts,label,idx\n0,1,3,0.0,0.0,1\n1,2,3,36.0,1.0,2\n2,1,4,77.0,0.0,3\n"

// TestTGN: ids count from 1, labels are floats, and row 0 of the features is of no event.
func TestTGN(t *testing.T) {
	dir := folder{"ml_wiki.csv": tgn, "ml_wiki.npy": array("|i1", "4, 2", 0, 0, 1, 2, 3, 4, 5, 6), "ml_wiki_node.npy": "x"}.write(t)
	for _, path := range []string{dir, filepath.Join(dir, "ml_wiki.csv")} {
		s, err := OpenTGN(path, Options{})
		require.NoError(t, err)
		g, err := sourcetest.Read(s)
		require.NoError(t, err)
		require.Equal(t, []int64{1, 2, 1}, g.Edges[0].Src)
		require.Equal(t, []int64{3, 3, 4}, g.Edges[0].Dst)
		require.Equal(t, []uint64{0, 1, 0}, g.Edges[0].Values[1])
		require.Equal(t, []float32{1, 2, 3, 4, 5, 6}, g.Table("node__events__node/feat"))
		require.Equal(t, "ml_wiki", g.Schema.Name)
		require.NoError(t, s.Close())
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		files folder
		tgn   bool
		o     Options
		want  string
	}{
		{folder{"ml_w.csv": tgn, "ml_w.npy": array("|i1", "4, 1", 7, 1, 2, 3)}, true, Options{}, "ml_w.npy: row 0 is not of zeros, as the one before the first event's is"},
		{folder{"ml_w.csv": tgn, "ml_w.npy": array("|i1", "3, 1", 0, 1, 2)}, true, Options{}, "ml_w.csv: line 4: idx 3 names no row of DIR/ml_w.npy: those of events are 1 to 2; are they of one data set?"},
		{folder{"ml_w.csv": tgn, "ml_w.npy": array("|i1", "5, 1", 0, 1, 2, 3, 4)}, true, Options{}, "ml_w.npy: row 3 (counting from 0) and there are 3 events of stream events"},
		{folder{"ml_w.csv": tgn, "ml_w.npy": array("|i1", "4, 1", 0, 1)}, true, Options{}, "ml_w.npy: "},
		{folder{"ml_w.csv": tgn, "ml_w.npy": array("|O", "4, 1", 0, 1)}, true, Options{}, "ml_w.npy: "},
		{folder{"ml_w.csv": tgn, "ml_w.npy": array("|i1", "0, 1")}, true, Options{}, "ml_w.npy: no row"},
		{folder{"ml_w.csv": tgn, "ml_v.csv": tgn}, true, Options{}, "2 files ml_*.csv in it; name the one to read"},
		{folder{"ml_w.csv": tgn, "ml_w.npy": array("<f2", "4, 1", 0, 0, 1, 0, 0, 0x7e, 1, 0)}, true, Options{}, "ml_w.npy: row 1, column 0 (counting from 0) is NaN; features are finite"},
		{folder{"edges.csv": tgl, "edge_features.npy": array("<f2", "3, 1", 0, 0, 1, 0, 0, 0xfc)}, false, Options{}, "edge_features.npy: row 2, column 0 (counting from 0) is -Inf; features"},
		{folder{"edges.csv": tgl, "edge_features.pt": "x"}, false, Options{}, "edge_features.pt: "},
		{folder{"edges.csv": tgl, "node_features.npy": array("|i1", "3, 1", 1, 2, 3)}, false, Options{}, "destination 3 is not one of the 3 nodes of type node"},
		{folder{"edges.csv": tgl, "node_features.npy": array("|i1", "4, 1", 1, 2, 3, 4)}, false, Options{Bipartite: true}, "its rows are of nodes of one kind"},
		{folder{"edges.csv": strings.Replace(tgl, "0,0,2,1.5,0,0", "0,0,2,1.5,0,2", 1)}, false, Options{}, "it is to validate, and one before it in time is to test"},
		{folder{"edges.csv": strings.Replace(tgl, "ext_roll", "roll", 1)}, false, Options{}, "{part} ext_roll: there is no such column"},
		{folder{}, false, Options{}, ": no edges.csv in it; name TGL's folder of one data set"},
	} {
		dir := c.files.write(t)
		open := OpenTGL
		if c.tgn {
			open = OpenTGN
		}
		s, err := open(dir, c.o)
		if err == nil {
			_, err = build.Build(t.Context(), s, filepath.Join(t.TempDir(), "x.gnn"), build.Options{})
			s.Close()
		}
		require.ErrorContains(t, err, strings.ReplaceAll(c.want, "DIR", dir))
		require.NotContains(t, err.Error(), "\n")
	}
}

// TestEventsNameTheirRows: column idx gives an event its row of features, in any order and with
// little memory. TGL's column that counts rows is checked.
func TestEventsNameTheirRows(t *testing.T) {
	const n, dim = 1000, 3
	rng := rand.New(rand.NewPCG(3, 4))
	var table strings.Builder
	table.WriteString(",u,i,ts,label,idx\n")
	rows := make([]byte, dim*(n+1))
	for i := range rows[dim:] {
		rows[dim+i] = byte(rng.IntN(127))
	}
	var want []float32
	for i, at := range rng.Perm(n) {
		fmt.Fprintf(&table, "%d,%d,%d,%d,0,%d\n", i, 1+i%5, 6+i%3, i, at+1)
		for _, x := range rows[dim*(at+1) : dim*(at+2)] {
			want = append(want, float32(x))
		}
	}
	dir := folder{"ml_p.csv": table.String(), "ml_p.npy": array("|i1", fmt.Sprintf("%d, %d", n+1, dim), rows...)}.write(t)
	for _, memory := range []int64{0, 1 << 30, 16 * n} { // the last one needs several readings
		s, err := OpenTGN(dir, Options{Memory: memory})
		require.NoError(t, err)
		g, err := sourcetest.Read(s)
		require.NoError(t, err)
		require.Equal(t, want, g.Table("node__events__node/feat"), memory)
		require.Empty(t, g.Schema.Skipped, "idx is read")
		require.NoError(t, s.Close())
	}
	sourcetest.Conform(t, func() (ingest.Source, error) { return OpenTGN(dir, Options{Memory: 16 * n}) })

	features := array("|i1", "4, 1", 0, 1, 2, 3)
	for _, c := range []struct {
		tgn, tgl string
		memory   int64
		want     string
	}{
		{strings.Replace(tgn, "0.0,3\n", "0.0,2\n", 1), "", 0, "ml_w.csv: line 4: idx 2 is that of event 1 (counting from 0) as well; each event has a row of DIR/ml_w.npy of its own"},
		{strings.Replace(tgn, "1.0,2\n", "1.0,-2\n", 1), "", 0, "ml_w.csv: line 3: idx -2 names no row of DIR/ml_w.npy: those of events are 1 to 3; are they of one data set?"},
		{strings.Replace(tgn, "1.0,2\n", "1.0,0\n", 1), "", 0, "ml_w.csv: line 3: idx 0 names no row"},
		{strings.Replace(tgn, "1.0,2\n", "1.0,4\n", 1), "", 0, "ml_w.csv: line 3: idx 4 names no row"},
		{strings.Replace(tgn, "1.0,2\n", "1.0,2.5\n", 1), "", 0, "ml_w.csv: line 3, column 6: \"2.5\" is not an integer"},
		{strings.Replace(tgn, "0.0,1\n", "0.0,3\n", 1), "", 40, "ml_w.csv: line 2: idx 3, and 1 follows: events name the rows of features in an order of their own, and 3 places take more than a quarter of {memory}"},
		{",u,i,ts,label,idx\n0,1,3,0,0,2\n1,2,3,1,0,1\n", "", 0, "ml_w.csv: 2 events, and DIR/ml_w.npy has 3 rows of events; is the table complete?"},
		{"", strings.Replace(tgl, "1,1,2,", "2,1,2,", 1), 0, "edges.csv: line 3, column 1: \"2\", and 1 follows: the column without a name counts the rows from 0"},
	} {
		dir := folder{"ml_w.csv": c.tgn, "ml_w.npy": features, "edges.csv": c.tgl}.write(t)
		var s *Source
		var err error
		if c.tgn != "" {
			s, err = OpenTGN(dir, Options{Memory: c.memory})
		} else {
			s, err = OpenTGL(dir, Options{})
		}
		if err == nil {
			_, err = sourcetest.Read(s)
		}
		require.ErrorContains(t, err, strings.ReplaceAll(c.want, "DIR", dir))
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestConform(t *testing.T) {
	const n, dim = 1 << 16, 5
	var events strings.Builder
	events.WriteString(",src,dst,time,int_roll,ext_roll\n")
	for i := range n + 7 {
		fmt.Fprintf(&events, "%d,%d,%d,%d.5,0,%d\n", i, i%500, i%77, i, i*3/(n+7))
	}
	dir := folder{"edges.csv": events.String(), "edge_features.npy": array("|i1", fmt.Sprintf("%d, %d", n+7, dim), make([]byte, dim*(n+7))...), "node_features.npy": array("|u1", "500, 2", make([]byte, 1000)...)}.write(t)
	sourcetest.Conform(t, func() (ingest.Source, error) { return OpenTGL(dir, Options{}) })
}

// FuzzTGN: whatever the table and the features are, what is wrong is said in a line.
func FuzzTGN(f *testing.F) {
	f.Add(tgn, array("|i1", "4, 2", 0, 0, 1, 2, 3, 4, 5, 6))
	f.Add(tgn, array("<f8", "4, 1"))
	f.Add(",u,i,ts,label,idx\n0,1,3,0,0,2\n1,2,3,1,0,1\n", array("|i1", "3, 1", 0, 1, 2))
	dir := f.TempDir() // of this process
	f.Fuzz(func(t *testing.T, table, features string) {
		for name, body := range map[string]string{"ml_x.csv": table, "ml_x.npy": features} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(body), 0o644))
		}
		s, err := OpenTGN(dir, Options{})
		if err == nil {
			_, err = sourcetest.Read(s)
			s.Close()
		}
		if err != nil {
			require.NotContains(t, strings.TrimSpace(err.Error()), "\n")
		}
	})
}
