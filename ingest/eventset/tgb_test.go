package eventset

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/store"
)

// list is the negatives of the events with a key.
type list struct {
	src, dst, time int32
	nodes          []int64
}

// pickled is a dict of arrays by tuples, as TGB's files of negatives: NumPy's arrays of integers.
func pickled(lists ...list) string {
	le := binary.LittleEndian
	b := []byte("\x80\x04}\x94(")
	number := func(x int32) { b = le.AppendUint32(append(b, 'J'), uint32(x)) }
	for _, l := range lists {
		number(l.src)
		number(l.dst)
		number(l.time)
		b = append(b, "\x87\x94cnumpy.core.multiarray\n_reconstruct\n\x94cnumpy\nndarray\n\x94K\x00\x85\x94C\x01b\x94\x87\x94R\x94(K\x01"...)
		number(int32(len(l.nodes)))
		b = append(b, "\x85\x94cnumpy\ndtype\n\x94X\x02\x00\x00\x00i8\x94\x89\x88\x87\x94R\x94(K\x03X\x01\x00\x00\x00<\x94NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t\x94b\x89"...)
		b = le.AppendUint32(append(b, 'B'), uint32(8*len(l.nodes)))
		for _, v := range l.nodes {
			b = le.AppendUint64(b, uint64(v))
		}
		b = append(b, "\x94t\x94b"...)
	}
	return string(append(b, "u."...))
}

// wiki is a table in JODIE's layout: 2 users, 3 items, 10 events. By quantiles 7 train, 1 validates
// and 2 test; the last two are alike.
const wiki = "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n0,0,0,0,1,2\n1,1,1,0,3,4\n0,2,2,0,5,6\n0,0,3,1,7,8\n0,0,4,0,9,1\n" +
	"1,1,5,0,1,1\n0,1,6,0,1,1\n1,2,7,0,1,1\n0,2,9,0,1,1\n0,2,9,0,1,1\n"

// sealed ingests a source.
func sealed(t *testing.T, s ingest.Source, o build.Options) (*store.Dataset, *build.Report, error) {
	out := filepath.Join(t.TempDir(), "x.gnn")
	rep, err := build.Build(t.Context(), s, out, o)
	require.NoError(t, s.Close())
	if err != nil {
		return nil, nil, err
	}
	d, err := store.Open(out)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	problems, err := d.Verify(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	return d, rep, nil
}

// TestTGBWiki: items count on from users in the files of negatives, which name the events that are
// alike once.
func TestTGBWiki(t *testing.T) {
	dir := folder{
		"tgbl-wiki_edgelist_v2.csv": wiki,
		"tgbl-wiki_val_ns_v2.pkl":   pickled(list{1, 4, 7, []int64{2, 3}}),
		"tgbl-wiki_test_ns_v2.pkl":  pickled(list{0, 4, 9, []int64{3, 2, 3}}, list{0, 3, 100, []int64{2}}),
	}.write(t)
	for _, order := range []build.Order{build.OrderOriginal, build.OrderDegree} {
		s, err := OpenTGB(dir, nil, Options{})
		require.NoError(t, err)
		d, rep, err := sealed(t, s, build.Options{Order: order})
		require.NoError(t, err)
		require.Equal(t, store.StreamSplit{Name: "time:0.7/0.15/0.15", Train: 7, Valid: 1, Test: 2}, rep.Streams[0].Split)
		require.EqualValues(t, 8, rep.Streams[0].Negatives)
		require.Contains(t, strings.Join(rep.Notes, "\n"), "1 lists of negatives are of no event to validate or to test on")
		e := d.Events(0)
		items := func(event int64) (ids []int64) {
			for _, v := range e.Negatives(event) {
				ids = append(ids, d.IDs(1).Original(v))
			}
			return ids
		}
		require.Equal(t, [][]int64{{0, 1}, {1, 0, 1}, {1, 0, 1}}, [][]int64{items(7), items(8), items(9)}, order)
		feat, ok := d.StreamTable("events", "feat")
		require.True(t, ok)
		require.Equal(t, 2, feat.Dim())
	}
	s, err := OpenTGB(dir, nil, Options{NoRows: true})
	require.NoError(t, err)
	_, _, err = sealed(t, s, build.Options{Split: "time:0.5/0.2/0.3"})
	require.ErrorContains(t, err, "is to validate, and the source's negatives have none for it; leave {split} out")
}

// TestTGBTexts: nodes are texts that are numbered as they come, and rows need not be in order.
func TestTGBTexts(t *testing.T) {
	dir := folder{
		"tgbl-coin_edgelist.csv": "day,src,dst,weight\n4,zoe,adam,1\n0,adam,zoe,1\n1,zoe,eve,2.5\n2,\"a,b\",zoe,1\n3,eve,adam,1\n9,eve,adam,1\n",
		"tgbl-coin_val_ns.pkl":   pickled(list{0, 1, 4, []int64{3, 0}}),
		"tgbl-coin_test_ns.pkl":  pickled(list{2, 1, 9, []int64{2}}),
	}.write(t)
	s, err := OpenTGB(filepath.Join(dir, "tgbl-coin_edgelist.csv"), []string{"4"}, Options{Memory: 1 << 30})
	require.NoError(t, err)
	d, _, err := sealed(t, s, build.Options{})
	require.NoError(t, err)
	e := d.Events(0)
	names := func(nodes []store.NodeID) (all []string) {
		for _, v := range nodes {
			name, err := d.IDs(0).Name(v)
			require.NoError(t, err)
			all = append(all, string(name))
		}
		return all
	}
	src, dst := e.Ends(0, 6)
	require.Equal(t, []string{"adam", "zoe", "a,b", "eve", "zoe", "eve"}, names(src))
	require.Equal(t, []string{"zoe", "eve", "zoe", "adam", "adam", "adam"}, names(dst))
	require.Equal(t, store.StreamSplit{Name: "time:0.7/0.15/0.15", Train: 4, Valid: 1, Test: 1}, e.Stream.Split)
	require.Equal(t, []string{"a,b", "zoe"}, names(e.Negatives(4)))
	require.Equal(t, []string{"eve"}, names(e.Negatives(5)))
}

// TestTGBOwnNegatives: a note names lists that hold the destination of their own event.
func TestTGBOwnNegatives(t *testing.T) {
	dir := folder{"w_edgelist.csv": wiki, "w_val_ns.pkl": pickled(list{1, 4, 7, []int64{2, 4}}), "w_test_ns.pkl": pickled(list{0, 4, 9, []int64{3}})}.write(t)
	s, err := OpenTGB(dir, nil, Options{})
	require.NoError(t, err)
	_, rep, err := sealed(t, s, build.Options{})
	require.NoError(t, err)
	require.Contains(t, strings.Join(rep.Notes, "\n"), "stream events: 1 lists of negatives hold the destination of their own event, which then ties with itself; the first is "+dir+"/w_val_ns.pkl: list 0 (counting from 0)")
}

// TestTGBPlan: a plan knows the events, and judges negatives by the first ones of each file; the
// files' faults are left to who reads them.
func TestTGBPlan(t *testing.T) {
	var many []list
	for i := range int32(500) {
		many = append(many, list{i % 2, 2 + i%3, i, make([]int64, 100+i%7)})
	}
	for i := range many {
		for j := range many[i].nodes {
			many[i].nodes[j] = int64(2 + j%3)
		}
	}
	dir := folder{"w_edgelist.csv": wiki, "w_val_ns.pkl": pickled(many...), "w_test_ns.pkl": "not a pickle"}.write(t)
	s, err := OpenTGB(dir, nil, Options{})
	require.NoError(t, err)
	defer s.Close()
	schema, err := s.Schema(t.Context())
	require.NoError(t, err)
	r := schema.Relations[0]
	require.EqualValues(t, 10, r.Edges)
	require.InEpsilon(t, 500, r.Stream.About.Lists, 0.3)
	require.InEpsilon(t, 500*103, r.Stream.About.Negatives, 0.3)
	plan, err := build.PlanBuild(t.Context(), s, filepath.Join(t.TempDir(), "x.gnn"), build.Options{})
	require.NoError(t, err)
	require.Greater(t, plan.Bytes, 4*r.Stream.About.Negatives)
}

// TestTGBWithout: a data set may come without negatives, which is remarked.
func TestTGBWithout(t *testing.T) {
	dir := folder{"x_edgelist.csv": wiki}.write(t)
	s, err := OpenTGB(dir, nil, Options{})
	require.NoError(t, err)
	d, rep, err := sealed(t, s, build.Options{})
	require.NoError(t, err)
	require.False(t, d.Events(0).HasNegatives())
	require.Contains(t, strings.Join(rep.Notes, "\n"), "no negatives to rank events among: looked for "+dir+"/x_val_ns.pkl and "+dir+"/x_test_ns.pkl")
}

func TestTGBRefuses(t *testing.T) {
	good := pickled(list{1, 4, 7, []int64{2}}, list{0, 4, 9, []int64{3}})
	with := func(val string) folder {
		return folder{"w_edgelist.csv": wiki, "w_val_ns.pkl": val, "w_test_ns.pkl": pickled()}
	}
	item := func(opcodes string) folder { return with("\x80\x04}(" + opcodes + "u.") }
	for _, c := range []struct {
		files folder
		want  string
	}{
		{folder{}, ": 0 files *_edgelist*.csv in it; name the one to read"},
		{folder{"a_edgelist.csv": wiki, "a_edgelist_v2.csv": wiki}, ": 2 files *_edgelist*.csv in it"},
		{folder{"a_edgelist.csv": "source,target,weight\n1,2,3\n"}, "its columns are source,target,weight, and TGB's begin with time, source and destination"},
		{folder{"tkgl-icews_edgelist.csv": "timestamp,head,tail,relation_type\n1,a,b,\n"}, "line 2, column 4: an event's type is missing"},
		{folder{"tgbn-trade_edgelist.csv": wiki}, "it is of shares to foretell of nodes"},
		{folder{"w_edgelist.csv": wiki, "w_val_ns.pkl": good}, "w_test_ns.pkl: it is not there, and w_val_ns.pkl is"},
		{with(pickled(list{1, 4, 7, []int64{2}})), "event 8 (counting from 0, in the order of time) is to test, and the source's negatives have none for it"},
		{with(pickled(list{0, 4, 9, []int64{2}})), "event 7 (counting from 0, in the order of time) is to validate"},
		{with(good + "x"), "w_val_ns.pkl: byte 339: 1 bytes follow the end of the pickle"},
		{with(good[:100]), "w_val_ns.pkl: byte 97: truncated"},
		{with("not a pickle"), "w_val_ns.pkl: byte 0: opcode 0x6e is no part of a pickle of data"},
		{with("\x80\x04cos\nsystem\n(X\x02\x00\x00\x00lstR."), `it imports "os.system"`},
		{with("]."), "w_val_ns.pkl: it holds a list instead of a dict"},
		{with(pickled(list{1, 4, 7, []int64{2}}, list{1, 4, 7, []int64{3}}, list{0, 4, 9, []int64{3}})), "are there twice"},
		{with(pickled(list{1, 4, 7, []int64{5}}, list{0, 4, 9, []int64{3}})), "w_val_ns.pkl: list 0 (counting from 0): negative 3 is none of the 3 nodes of type item"},
		{with(pickled(list{1, 4, 7, []int64{1}})), "negative -1 is none of the 3 nodes of type item, which count from 0"},
		{with(pickled(list{2, 4, 7, []int64{2}})), "source 2 is none of the 2 nodes of type user"},
		{item("K\x01K\x02"), "w_val_ns.pkl: item 0 (counting from 0): its key is an integer instead of a tuple of source, destination and time"},
		{item("(K\x01K\x02K\x03K\x04t]"), "its key is a tuple of 4 instead of a tuple"},
		{item("K\x01NK\x03\x87]"), "an end of its event is None instead of an integer"},
		{item("K\x01K\x04G\x7f\xf0\x00\x00\x00\x00\x00\x00\x87]"), "the time of its event is a float instead of a finite number"},
		{item("K\x01K\x04K\x07\x87K\x02"), "its negatives are an integer instead of an array of integers"},
		{item("K\x01K\x04K\x07\x87](K\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00e"), "negative 1 (counting from 0) is a float instead of an integer"},
	} {
		dir := c.files.write(t)
		s, err := OpenTGB(dir, nil, Options{})
		if err == nil {
			_, _, err = sealed(t, s, build.Options{})
		}
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "\n")
	}
	dir := folder{"x.csv": wiki}.write(t)
	_, err := OpenTGB(filepath.Join(dir, "x.csv"), nil, Options{})
	require.ErrorContains(t, err, "not NAME_edgelist.csv, as TGB's data sets have it; for another table choose format events")
}

// TestTGBMany: lists of different lengths, in another order than the events, against a plain map.
// Several events share a list.
func TestTGBMany(t *testing.T) {
	const n = 3000
	var table strings.Builder
	table.WriteString("ts,src,dst\n")
	numbers := map[string]int32{}
	number := func(name string) int32 {
		if _, there := numbers[name]; !there {
			numbers[name] = int32(len(numbers))
		}
		return numbers[name]
	}
	type key struct{ src, dst, time int32 }
	want := map[key][]int64{}
	var lists [2][]list
	at := func(i int) int32 { return int32(i / 4) }
	for i := range n {
		src, dst := fmt.Sprint("n", i*i%91), fmt.Sprint("m", i/8%2)
		fmt.Fprintf(&table, "%d,%s,%s\n", at(i), src, dst)
		k := key{number(src), number(dst), at(i)}
		if _, there := want[k]; there {
			continue
		}
		var nodes []int64
		for j := range (i * 7) % 23 {
			nodes = append(nodes, int64((i+j)%2))
		}
		want[k] = nodes
		lists[i%2] = append(lists[i%2], list{k.src, k.dst, k.time, nodes}) // which file they are in does not matter
	}
	reverse := func(l []list) []list {
		for i, j := 0, len(l)-1; i < j; i, j = i+1, j-1 {
			l[i], l[j] = l[j], l[i]
		}
		return l
	}
	dir := folder{"m_edgelist.csv": table.String(), "m_val_ns.pkl": pickled(reverse(lists[0])...), "m_test_ns.pkl": pickled(lists[1]...)}.write(t)
	s, err := OpenTGB(dir, nil, Options{})
	require.NoError(t, err)
	d, _, err := sealed(t, s, build.Options{Order: build.OrderDegree})
	require.NoError(t, err)
	e := d.Events(0)
	src, dst := e.Ends(0, n)
	times := e.Times(0, n)
	of := func(v store.NodeID) int32 {
		name, err := d.IDs(0).Name(v)
		require.NoError(t, err)
		return numbers[string(name)]
	}
	require.Less(t, e.Stream.Split.Train, int64(n*3/4))
	for i := e.Stream.Split.Train; i < n; i++ {
		var got []int64
		for _, v := range e.Negatives(i) {
			got = append(got, int64(of(v)))
		}
		require.Equal(t, want[key{of(src[i]), of(dst[i]), int32(times[i])}], got, "event %d", i)
	}
}

func TestTGBConform(t *testing.T) {
	const n = 1<<16 + 7
	var texts, ints strings.Builder
	texts.WriteString("ts,src,dst,w\n")
	ints.WriteString("user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n")
	for i := range n {
		fmt.Fprintf(&texts, "%d,n%d,m%d,%d\n", i, i%500, i%7777, i%7)
		fmt.Fprintf(&ints, "%d,%d,%d,%d,%d\n", i%500, i%77, i, i%2, i%9)
	}
	a := folder{"a_edgelist.csv": texts.String(), "a_val_ns.pkl": pickled(), "a_test_ns.pkl": pickled()}.write(t)
	b := folder{"b_edgelist.csv": ints.String()}.write(t)
	sourcetest.Conform(t, func() (ingest.Source, error) { return OpenTGB(a, []string{"4"}, Options{}) },
		func() (ingest.Source, error) { return OpenTGB(b, nil, Options{}) })
}

// FuzzTGB: whatever the negatives are, what is wrong is said in a line.
func FuzzTGB(f *testing.F) {
	f.Add(pickled(list{1, 4, 7, []int64{2, 3}}, list{0, 4, 9, []int64{3}}))
	f.Add("\x80\x04}(K\x01K\x04K\x07\x87](K\x02K\x03eu.")
	f.Fuzz(func(t *testing.T, body string) {
		var c ingest.NegativeChunk
		err := (&TGB{users: 2}).eachList(&c, "w_val_ns.pkl", strings.NewReader(body), int64(len(body)), func() error {
			require.Len(t, c.Ends, len(c.Src))
			require.EqualValues(t, len(c.Nodes), c.Ends[len(c.Ends)-1])
			at := c.Times[len(c.Times)-1]
			require.False(t, math.IsNaN(at-at))
			return nil
		})
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
		}
	})
}

// TestTGBTyped makes a column of features of each type of events, text or integers, and notes that
// negatives are not read.
func TestTGBTyped(t *testing.T) {
	for name, c := range map[string]struct {
		rows string
		want []float32
	}{
		"tkgl-x": {"5,Q1,Q2,P9\n6,Q2,Q3,P1\n6,Q1,Q3,P9\n", []float32{0, 1, 1, 0, 0, 1}},
		"thgl-x": {"5,0,9,3\n6,9,0,11\n7,0,4,3\n", []float32{1, 0, 0, 1, 1, 0}},
	} {
		dir := folder{name + "_edgelist.csv": "timestamp,head,tail,relation_type\n" + c.rows, name + "_val_ns.pkl": "x", name + "_test_ns.pkl": "x"}.write(t)
		open := func() (ingest.Source, error) { return OpenTGB(dir, nil, Options{}) }
		s, err := open()
		require.NoError(t, err)
		g, err := sourcetest.Read(s)
		require.NoError(t, err)
		require.Equal(t, c.want, g.Rows[0])
		require.Equal(t, int64(3), g.Schema.NodeTypes[0].Count)
		require.False(t, g.Schema.Relations[0].Stream.Negatives)
		require.Len(t, g.Schema.Skipped, 1)
		require.Contains(t, g.Schema.Skipped[0], "the negatives of typed events")
		require.Len(t, s.Extras().Describe().Tables[0], 1)
		_, _, err = sealed(t, s, build.Options{})
		require.NoError(t, err)
		// Columns that the user names take their place.
		if name == "thgl-x" {
			s, err := OpenTGB(dir, []string{"4"}, Options{})
			require.NoError(t, err)
			g, err := sourcetest.Read(s)
			require.NoError(t, err)
			require.Equal(t, []float32{3, 11, 3}, g.Rows[0])
		}
	}
}
