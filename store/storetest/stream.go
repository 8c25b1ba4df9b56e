package storetest

import (
	"cmp"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

// StreamSpec describes a dataset with one stream, "events", from nodes of type "user" to nodes of
// type "item", or among users.
type StreamSpec struct {
	Users, Items int // without Items, both ends are users
	Src, Dst     []store.NodeID
	Times        []float64                 // never decreasing
	TimeScale    float64                   // default 1
	Split        store.StreamSplit         // default: all events train
	Elem         store.Elem                // of both tables; default F32
	Dim          int                       // of the table "feat"; default none
	Row          func(event int) []float32 // row of an event in "feat"
	NodeDim      int                       // of the users' table "feat"; default none
	NodeRow      func(user int) []float32  // row of a user in the users' "feat"
	Labels       []int32                   // of events, below Classes; default none
	Classes      int
	// Negatives returns the negatives of an event that is not for training; default none.
	Negatives func(event int) []store.NodeID
	// NodeLabels are classes of users at times of their own; LabelSplit parts them. Default none.
	NodeLabels []NodeLabel
	LabelSplit store.StreamSplit
}

// NodeLabel is the class of a user at a time.
type NodeLabel struct {
	Node  store.NodeID
	Time  float64
	Class int32
}

// BuildStream seals s in a directory of the test and returns its path.
func BuildStream(t testing.TB, s StreamSpec) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stream.gnn")
	w, err := store.Create(path, store.WriterOptions{FS: NoSync})
	require.NoError(t, err)
	require.NoError(t, WriteStream(w, s))
	return path
}

// WriteStream writes s to w and seals it. On an error it aborts.
func WriteStream(w *store.Writer, s StreamSpec) (err error) {
	defer func() {
		if err != nil {
			w.Abort()
		}
	}()
	spec := store.StreamSpec{Name: "events", Src: "user", Dst: "user", Labels: s.Labels != nil, Negatives: s.Negatives != nil}
	places, first := s.Users, 0 // places; first is the place of destination 0
	if err := addNodes(w, "user", s.Users); err != nil {
		return err
	}
	if s.Items > 0 {
		spec.Dst, places, first = "item", s.Users+s.Items, s.Users
		if err := addNodes(w, "item", s.Items); err != nil {
			return err
		}
	}
	out, err := w.AddStream(spec)
	if err != nil {
		return err
	}
	if err := out.Append(s.Src, s.Dst, s.Times, s.Labels); err != nil {
		return err
	}
	lists := make([][]store.HalfEdge, places)
	for i, at := range s.Times {
		u, v := s.Src[i], s.Dst[i]
		place := first + int(v)
		lists[u] = append(lists[u], store.HalfEdge{Time: at, Event: uint32(i), Neighbor: v})
		lists[place] = append(lists[place], store.HalfEdge{Time: at, Event: uint32(i), Neighbor: u})
	}
	lengths := make([]uint64, places)
	for place, list := range lists {
		lengths[place] = uint64(len(list))
		if err := out.AppendNear(list); err != nil {
			return err
		}
	}
	if err := out.AppendLengths(lengths); err != nil {
		return err
	}
	end := store.StreamEnd{TimeScale: cmp.Or(s.TimeScale, 1), Split: s.Split, Classes: s.Classes}
	if end.Split == (store.StreamSplit{}) {
		end.Split = store.StreamSplit{Name: "given", Train: int64(len(s.Times))}
	}
	if end.NodeLabels = s.LabelSplit; s.NodeLabels != nil {
		if err := out.AddNodeLabels(); err != nil {
			return err
		}
	}
	for _, l := range s.NodeLabels {
		if err := out.AppendNodeLabels([]store.NodeID{l.Node}, []float64{l.Time}, []int32{l.Class}); err != nil {
			return err
		}
	}
	for event := int(end.Split.Train); s.Negatives != nil && event < len(s.Times); event++ {
		if err := out.AppendNegatives(s.Negatives(event)); err != nil {
			return err
		}
	}
	if err := out.Close(end); err != nil {
		return err
	}
	elem := cmp.Or(s.Elem, store.F32)
	if s.Dim > 0 {
		f, err := w.AddStreamTable("feat", "events", elem, int64(len(s.Times)), s.Dim)
		if err != nil {
			return err
		}
		for i := range s.Times {
			if err := f.PutRowsAt(int64(i), encode(s.Row(i), elem)); err != nil {
				return err
			}
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	if s.NodeDim > 0 {
		f, err := w.AddTable("feat", "user", elem, int64(s.Users), s.NodeDim)
		if err != nil {
			return err
		}
		for v := range s.Users {
			if err := f.PutRowsAt(int64(v), encode(s.NodeRow(v), elem)); err != nil {
				return err
			}
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	_, err = w.Seal(store.Manifest{Name: "stream", Order: "original", Provenance: store.Provenance{Tool: "storetest"}})
	return err
}

// addNodes adds a node type whose original ids are the stored ids.
func addNodes(w *store.Writer, name string, nodes int) error {
	original := make([]int64, nodes)
	for v := range original {
		original[v] = int64(v)
	}
	return w.AddNodeType(name, original)
}
