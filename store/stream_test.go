package store_test

import (
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// streams writes two streams: one among the 3 users of everything, with labels and a table, and one
// from these users to 2 items.
func streams(t *testing.T, w *store.Writer) {
	s, err := w.AddStream(store.StreamSpec{Name: "talks", Src: "user", Dst: "user", Labels: true, Negatives: true})
	require.NoError(t, err)
	require.NoError(t, s.Append([]store.NodeID{0, 1}, []store.NodeID{2, 1}, []float64{-1.5, 3}, []int32{-1, 1}))
	require.NoError(t, s.Append([]store.NodeID{2}, []store.NodeID{0}, []float64{3}, []int32{0}))
	require.NoError(t, s.AppendNear([]store.HalfEdge{{-1.5, 0, 2}, {3, 2, 2}, {3, 1, 1}}))
	require.NoError(t, s.AppendLengths([]uint64{2, 2}))
	require.NoError(t, s.AppendNear([]store.HalfEdge{{3, 1, 1}, {-1.5, 0, 0}, {3, 2, 0}}))
	require.NoError(t, s.AppendLengths([]uint64{2}))
	require.NoError(t, s.AppendNegatives(nil))
	require.NoError(t, s.AppendNegatives([]store.NodeID{2}))
	require.NoError(t, s.AddNodeLabels())
	require.NoError(t, s.AppendNodeLabels([]store.NodeID{2, 0, 2}, []float64{-7, 3, 3}, []int32{1, 0, 2}))
	require.ErrorContains(t, s.AppendNodeLabels([]store.NodeID{0}, []float64{2}, []int32{1}), "label 3 is class 1 at 2, behind 3")
	require.ErrorContains(t, s.AppendNodeLabels([]store.NodeID{0}, []float64{4}, []int32{-1}), "label 3 is class -1")
	require.NoError(t, s.Close(store.StreamEnd{
		TimeScale: 1, Split: store.StreamSplit{Name: "given", Train: 1, Valid: 1, Test: 1}, Classes: 2, ClassNames: []string{"still", "banned"},
		NodeLabels: store.StreamSplit{Name: "given", Train: 2, Test: 1},
	}))
	f, err := w.AddStreamTable("feat", "talks", store.F16, 3, 1)
	require.NoError(t, err)
	require.NoError(t, f.PutRows(0, []byte{0, 0x3c, 0, 0x40, 0, 0xc0}))
	require.NoError(t, f.Close())

	n, err := w.NewNodeType("item", 2)
	require.NoError(t, err)
	require.NoError(t, n.AppendOriginal([]int64{0, 1}))
	require.NoError(t, n.AppendOrder([]store.NodeID{0, 1}))
	require.NoError(t, n.Close())
	s, err = w.AddStream(store.StreamSpec{Name: "buys", Src: "user", Dst: "item", Negatives: true})
	require.NoError(t, err)
	require.NoError(t, s.AppendNegatives([]store.NodeID{1, 1, 0}))
	require.NoError(t, s.Append([]store.NodeID{1, 1}, []store.NodeID{1, 0}, []float64{0, 0.5}, nil))
	require.NoError(t, s.AppendLengths([]uint64{0, 2, 0, 1, 1}))
	require.NoError(t, s.AppendNear([]store.HalfEdge{{0, 0, 1}, {0.5, 1, 0}, {0.5, 1, 1}, {0, 0, 1}}))
	require.NoError(t, s.Close(store.StreamEnd{TimeScale: 1e3, Split: store.StreamSplit{Name: "time:0.7/0.15/0.15", Train: 1, Test: 1}}))
}

// requireStreams compares d with what streams wrote.
func requireStreams(t *testing.T, d *store.Dataset) {
	talks := d.Events(0)
	require.Equal(t, []int64{3, 3}, []int64{talks.Len(), talks.Places()})
	src, dst := talks.Ends(0, 3)
	require.Equal(t, [][]store.NodeID{{0, 1, 2}, {2, 1, 0}}, [][]store.NodeID{src, dst})
	require.Equal(t, []float64{3, 3}, talks.Times(1, 3))
	require.Equal(t, []int32{-1, 1}, talks.Labels(0, 2))
	require.Equal(t, []store.HalfEdge{{3, 1, 1}, {3, 1, 1}}, talks.Near(1), "an event from a node to itself")
	lo, hi := talks.List(2)
	require.Equal(t, []uint64{4, 6}, []uint64{lo, hi})
	file, two := talks.NearFile(), make([]store.HalfEdge, 2)
	b := make([]byte, 2*store.HalfEdgeBytes)
	_, err := file.File.ReadAt(b, store.PageSize+store.HalfEdgeBytes*int64(lo))
	require.NoError(t, err)
	require.Equal(t, len(b), store.CopyHalfEdges(two, b))
	require.Equal(t, talks.Near(2), two)
	require.Equal(t, []store.HalfEdge{{-1.5, 0, 0}, {3, 2, 0}}, talks.Near(talks.Place(2)))
	require.Equal(t, []string{"still", "banned"}, talks.Stream.ClassNames)
	feat, ok := d.StreamTable("talks", "feat")
	require.True(t, ok)
	require.Equal(t, []byte{0, 0xc0}, feat.Row(2))

	buys := d.Events(1)
	require.Equal(t, []int64{2, 5, 4}, []int64{buys.Len(), buys.Places(), buys.Place(1)})
	require.Nil(t, buys.Labels(0, 2))
	require.Equal(t, []store.NodeID{1, 1, 0}, buys.Negatives(1))
	require.Equal(t, []int64{0, 3}, []int64{buys.NegativesBefore(1), buys.NegativesBefore(2)})
	nodes, times, classes := talks.LabelledNodes(1, 3)
	require.Equal(t, []store.NodeID{0, 2}, nodes)
	require.Equal(t, []float64{3, 3}, times)
	require.Equal(t, []int32{0, 2}, classes)
	require.EqualValues(t, 3, talks.Stream.NodeLabels.Classes)
	require.Nil(t, buys.Stream.NodeLabels)
	require.Empty(t, talks.Negatives(1))
	require.Equal(t, []store.NodeID{2}, talks.Negatives(2))
	require.Equal(t, []int64{0, 0, 1}, []int64{talks.NegativesBefore(1), talks.NegativesBefore(2), talks.NegativesBefore(3)})
	require.Empty(t, buys.Near(0))
	require.Equal(t, []store.HalfEdge{{0, 0, 1}, {0.5, 1, 0}}, buys.Near(1))
	require.Equal(t, []store.HalfEdge{{0, 0, 1}}, buys.Near(buys.Place(1)))
	_, ok = d.StreamTable("buys", "feat")
	require.False(t, ok)
}

// TestStreamForged forges sections as a faulty or hostile program could seal them. Verify finds
// each change, and readers do not crash.
func TestStreamForged(t *testing.T) {
	le := binary.LittleEndian
	float := func(x float64) []byte { return le.AppendUint64(nil, math.Float64bits(x)) }
	for _, c := range []struct {
		file string
		at   int64
		b    []byte
		want string
	}{
		{"talks/src.u32", 4, []byte{3}, "event 1 is of node 3 of 3"},
		{"buys/dst.u32", 0, []byte{2}, "event 0 is of node 2 of 2"},
		{"talks/time.f64", 8, float(math.NaN()), "event 1 has the time NaN"},
		{"talks/time.f64", 16, float(math.Inf(1)), "event 2 has the time +Inf"},
		{"talks/time.f64", 16, float(2.5), "event 2 has the time 2.5, and the one before it 3"},
		{"talks/label.i32", 0, []byte{2, 0, 0, 0}, "event 0 has class 2 of 2"},
		{"talks/offsets.u64", 8, []byte{7}, "decreases at node 2 (7 > 4)"},
		{"buys/offsets.u64", 40, []byte{3}, "ends at 3, and there are 4 half-edges"},
		{"talks/node-labels/node.u32", 4, []byte{3}, "label 1 is of node 3 of 3"},
		{"talks/node-labels/class.i32", 4, []byte{3}, "label 1 is class 3 of 3"},
		{"talks/node-labels/time.f64", 8, float(-8), "label 1 has the time -8, and the one before it -7"},
		{"talks/negative-offsets.u64", 8, []byte{2}, "decreases at node 2 (2 > 1)"},
		{"buys/negative-offsets.u64", 8, []byte{4}, "ends at 4, and there are 3 negatives"},
		{"buys/negatives.u32", 4, []byte{2}, "event 1 is ranked among node 2 of 2"},
		{"talks/near.u64", 24, []byte{0}, "has event 0 behind event 0"},
		{"buys/near.u64", 12, []byte{0}, "the lists of nodes have other events"},         // the other end
		{"buys/near.u64", 0, float(0.25), "the lists of nodes have other events"},        // the time
		{"talks/near.u64", 32 + 12, []byte{0}, "has event 1 behind event 1"},             // one half of a loop
		{"talks/near.u64", 32 + 8, []byte{2}, "the list of the node at place 1 has"},     // the event
		{"buys/offsets.u64", 16, []byte{1}, "the lists of nodes have other events than"}, // in the list of another node
	} {
		dir := everything(t)
		storetest.Forge(t, dir, "stream/"+c.file, store.PageSize+c.at, c.b)
		d, err := store.Open(dir)
		require.NoError(t, err)
		problems, err := d.Verify(context.Background(), nil)
		require.NoError(t, err)
		require.NotEmpty(t, problems, c.want)
		// Verify stops at the file's hash, which is of the old bytes. So also check the contents,
		// as a reader would meet them.
		require.ErrorContains(t, store.Guard(func() error { return d.CheckStream(c.file) }), c.want, "%s at %d", c.file, c.at)
		require.NoError(t, d.Close())
	}
}

func TestStreamRefused(t *testing.T) {
	w, err := store.Create(filepath.Join(t.TempDir(), "x.gnn"), store.WriterOptions{})
	require.NoError(t, err)
	defer w.Abort()
	_, err = w.AddStream(store.StreamSpec{Name: "a__b", Src: "user", Dst: "user"})
	require.ErrorContains(t, err, `stream "a__b": names are`)
	s, err := w.AddStream(store.StreamSpec{Name: "talks", Src: "user", Dst: "user", Labels: true})
	require.NoError(t, err)
	require.NoError(t, s.Append([]store.NodeID{0}, []store.NodeID{0}, []float64{2}, []int32{5}))
	for _, c := range []struct {
		time  float64
		label int32
		want  string
	}{
		{1, 0, "event 1 has the time 1 behind 2"}, {math.NaN(), 0, "has the time NaN"}, {math.Inf(1), 0, "has the time +Inf"}, {3, -2, "class -2"},
	} {
		require.ErrorContains(t, s.Append([]store.NodeID{0}, []store.NodeID{0}, []float64{c.time}, []int32{c.label}), c.want)
	}
}
