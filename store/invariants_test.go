package store

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// whole seals a dataset of four nodes and five edges. Tests change copies of its slices.
func whole(t *testing.T) *Dataset {
	path := filepath.Join(t.TempDir(), "x.gnn")
	w, err := Create(path, WriterOptions{})
	require.NoError(t, err)
	require.NoError(t, w.AddNodeType("node", []int64{7, -3, 12, 30}))
	g, err := w.AddRelation("node", "to", "node", false)
	require.NoError(t, err)
	for _, list := range [][]NodeID{{1, 1}, nil, {0, 2, 3}, nil} {
		require.NoError(t, g.Append(list))
	}
	require.NoError(t, g.Close())
	f, err := w.AddTable("feat", "node", F16, 4, 2)
	require.NoError(t, err)
	for v := range NodeID(4) {
		require.NoError(t, f.Put(v, make([]byte, 4)))
	}
	require.NoError(t, f.Close())
	_, err = w.Seal(Manifest{Name: "test", Order: "original", Provenance: Provenance{Tool: "test"}})
	require.NoError(t, err)
	d, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// refuses checks that err contains want, or that it is nil if want is empty.
func refuses(t *testing.T, want string, err error) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorContains(t, err, want)
}

func TestVerifySplits(t *testing.T) {
	for _, c := range []struct {
		train, valid []NodeID
		want         string
	}{
		{[]NodeID{0, 2, 4}, []NodeID{1, 3}, ""},
		{[]NodeID{0, 2, 4}, []NodeID{1, 2}, "node 2 is in two parts of the split"},
		{[]NodeID{0, 2, 4}, []NodeID{0}, "node 0 is in two parts of the split"},
		{nil, []NodeID{1, 3, 3}, "entry 2: node 3 does not follow 3"},
		{nil, []NodeID{1, 3, 2}, "entry 2: node 2 does not follow 3"},
		{nil, []NodeID{1, 5}, "entry 1 is node 5 of 5"},
	} {
		seen := make([]uint8, 5)
		require.NoError(t, checkPart(c.train, seen, 1))
		refuses(t, c.want, checkPart(c.valid, seen, 2))
	}
}

func TestVerifyOffsets(t *testing.T) {
	for _, c := range []struct {
		offsets []uint64
		want    string
	}{
		{[]uint64{0, 2, 2, 5}, ""},
		{[]uint64{1, 2, 2, 5}, "starts at 1, not 0"},
		{[]uint64{0, 3, 2, 5}, "decreases at node 2 (3 > 2)"},
		{[]uint64{0, 2, 2, 4}, "ends at 4, and there are 5 edges"},
		{[]uint64{0, 2, 2, 6}, "ends at 6, and there are 5 edges"},
		{[]uint64{0, 2, 5, 4}, "decreases at node 3 (5 > 4)"},
	} {
		refuses(t, c.want, (&Graph{offsets: c.offsets, edges: make([]NodeID, 5)}).checkOffsets())
	}
}

func TestVerifyNeighbors(t *testing.T) {
	g := whole(t).Graph(0)
	for _, c := range []struct {
		edges []NodeID
		want  string
	}{
		{[]NodeID{1, 1, 0, 2, 3}, ""},
		{[]NodeID{1, 0, 0, 2, 3}, "neighbours of node 0 are not ascending (1 > 0)"},
		{[]NodeID{1, 1, 0, 3, 2}, "neighbours of node 2 are not ascending (3 > 2)"},
		{[]NodeID{1, 1, 0, 2, 4}, "node 2 has neighbour 4, and there are 4 nodes"},
	} {
		g.edges = c.edges
		refuses(t, c.want, g.checkNeighbors(4))
	}
}

func TestVerifyLabels(t *testing.T) {
	for _, c := range []struct {
		class []int32
		multi []uint8
		want  string
	}{
		{[]int32{2, -1, 0}, []uint8{0, 1, MissingBit}, ""},
		{[]int32{2, -1, 3}, nil, "node 2 has class 3 of 3"},
		{[]int32{-2, -1, 0}, nil, "node 0 has class -2 of 3"},
		{nil, []uint8{0, 1, 0, 0, 2, 0}, "node 1, class 1: 2 is neither 0, 1 nor missing"},
	} {
		l := &Labels{Label: &Label{Classes: 3}, class: c.class, multi: c.multi, stride: 3}
		refuses(t, c.want, l.check())
	}
	inf := float32(math.Inf(-1))
	refuses(t, "", (&Labels{Label: &Label{Numbers: true}, number: []float32{1.5, float32(math.NaN()), -2}}).check())
	refuses(t, "node 1 has the number -Inf", (&Labels{Label: &Label{Numbers: true}, number: []float32{1.5, inf}}).check())
}

func TestVerifyFeatures(t *testing.T) {
	f := whole(t).Features(0)
	sound := f.data[0]
	halves := func(h ...uint16) (b []byte) {
		for _, x := range h {
			b = binary.LittleEndian.AppendUint16(b, x)
		}
		return b
	}
	for _, c := range []struct {
		row  []byte
		want string
	}{
		{halves(0x7bff, 0xfbff), ""}, // the largest finite values
		{halves(0x7c00, 0), "row 0, column 0 is not finite"},
		{halves(0, 0xfe00), "row 0, column 1 is not finite"}, // NaN, here and below
		{halves(0, 0x7c01), "row 0, column 1 is not finite"},
	} {
		data := slices.Clone(sound)
		copy(data, c.row)
		f.data = [][]byte{data}
		refuses(t, c.want, f.checkShard(0))
	}
}

func TestVerifyIDs(t *testing.T) {
	for _, c := range []struct {
		original []int64
		order    []NodeID
		want     string
	}{
		{[]int64{7, -3, 12}, []NodeID{1, 0, 2}, ""},
		{[]int64{7, 7, 12}, []NodeID{1, 0, 2}, "entry 1: original id 7 does not follow 7"},
		{[]int64{7, -3, 12}, []NodeID{0, 1, 2}, "entry 1: original id -3 does not follow 7"},
		{[]int64{7, -3, 12}, []NodeID{1, 0, 3}, "entry 2 is node 3 of 3"},
	} {
		refuses(t, c.want, checkIDs(IDs{original: c.original, order: c.order}))
	}
}
