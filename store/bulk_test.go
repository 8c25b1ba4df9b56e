package store_test

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/store"
)

// TestBulkEqualsOneByOne writes the same lists, rows, labels and ids twice: with calls that take
// many, in pieces of any size, and with calls that take one. The seals must be equal.
func TestBulkEqualsOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 40).Draw(t, "nodes")
		dim := rapid.IntRange(1, 20).Draw(t, "dim")
		piece := rapid.IntRange(1, 50).Draw(t, "piece")
		shard := rapid.Int64Range(1, 300).Draw(t, "shard")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		lengths, order := make([]uint32, nodes), make([]store.NodeID, nodes)
		var neighbors []store.NodeID
		var weights []byte
		original, class, bits := make([]int64, nodes), make([]int32, nodes), make([]uint8, 3*nodes)
		rows := make([]byte, nodes*dim*2)
		for v := range nodes {
			lengths[v] = rng.Uint32N(4)
			for u := range lengths[v] {
				neighbors = append(neighbors, store.NodeID(min(int(u), nodes-1)))
				weights = binary.LittleEndian.AppendUint32(weights, math.Float32bits(rng.Float32()))
			}
			original[v], order[nodes-1-v] = int64(100-v), store.NodeID(v)
			class[v], bits[3*v] = rng.Int32N(4)-1, uint8(rng.IntN(2))
			rows[v*dim*2] = byte(rng.Uint32())
		}
		seal := func(write func(w *store.Writer) error) string {
			w, err := store.Create("x.gnn", store.WriterOptions{FS: vfs.NewMem(), ShardBytes: shard})
			require.NoError(t, err)
			require.NoError(t, write(w))
			m, err := w.Seal(store.Manifest{Name: "x", Order: "access"})
			require.NoError(t, err)
			return m.Seal
		}
		weight := store.ColumnSpec{Name: "weight", Elem: store.F32}
		one := seal(func(w *store.Writer) error {
			require.NoError(t, w.AddNodeType("node", original))
			g, err := w.AddRelation("node", "to", "node", false, weight)
			require.NoError(t, err)
			at := 0
			for _, n := range lengths {
				end := at + int(n)
				require.NoError(t, g.Append(neighbors[at:end], weights[4*at:4*end]))
				at = end
			}
			require.NoError(t, g.Close())
			f, err := w.AddTable("feat", "node", store.F16, int64(nodes), dim)
			require.NoError(t, err)
			for _, v := range rng.Perm(nodes) {
				require.NoError(t, f.Put(store.NodeID(v), rows[v*dim*2:][:dim*2]))
			}
			require.NoError(t, f.Close())
			require.NoError(t, w.AddLabels("class", "node", class, 3, []string{"a", "b", "c"}))
			return w.AddMultiLabels("bits", "node", bits, 3, nil)
		})
		many := seal(func(w *store.Writer) error {
			ids, err := w.NewNodeType("node", int64(nodes))
			require.NoError(t, err)
			g, err := w.AddRelation("node", "to", "node", false, weight)
			require.NoError(t, err)
			f, err := w.AddTable("feat", "node", store.F16, int64(nodes), dim)
			require.NoError(t, err)
			l, err := w.NewLabels("class", "node", int64(nodes), 0, false, []string{"a", "b", "c"})
			require.NoError(t, err)
			m, err := w.NewLabels("bits", "node", int64(nodes), 3, true, nil)
			require.NoError(t, err)
			edge := 0
			for v := 0; v < nodes; v += piece {
				end := min(v+piece, nodes)
				edges := edge
				for _, n := range lengths[v:end] {
					edges += int(n)
				}
				require.NoError(t, g.AppendLengths(lengths[v:end]))
				require.NoError(t, g.AppendNeighbors(neighbors[edge:edges], weights[4*edge:4*edges]))
				edge = edges
				require.NoError(t, f.PutRows(store.NodeID(v), rows[v*dim*2:end*dim*2]))
				require.NoError(t, ids.AppendOrder(order[v:end]))
				require.NoError(t, ids.AppendOriginal(original[v:end]))
				require.NoError(t, l.AppendClasses(class[v:end]))
				require.NoError(t, m.AppendBits(bits[3*v:3*end]))
			}
			require.NoError(t, ids.Close())
			require.NoError(t, g.Close())
			require.NoError(t, f.Close())
			require.NoError(t, l.Close(3))
			return m.Close(0)
		})
		require.Equal(t, one, many)
	})
}

// edgeDataset has the edge 0→1, read as number 0, and the edge 1→0, read as number 2 and stored
// twice. Number 1 was dropped.
func edgeDataset(t *testing.T, id store.Elem, numbers []byte, weight float32) string {
	path := filepath.Join(t.TempDir(), "x.gnn")
	w, err := store.Create(path, store.WriterOptions{ShardBytes: 16})
	require.NoError(t, err)
	require.NoError(t, w.AddNodeType("node", []int64{7, 8}))
	g, err := w.AddRelation("node", "to", "node", false, store.ColumnSpec{Name: "id", Elem: id},
		store.ColumnSpec{Name: "weight", Elem: store.F32}, store.ColumnSpec{Name: "kind", Elem: store.U8})
	require.NoError(t, err)
	weights := binary.LittleEndian.AppendUint32(nil, math.Float32bits(weight))
	weights = binary.LittleEndian.AppendUint32(weights, math.Float32bits(2))
	weights = binary.LittleEndian.AppendUint32(weights, math.Float32bits(3))
	require.NoError(t, g.AppendLengths([]uint32{1, 2}))
	require.NoError(t, g.AppendNeighbors([]store.NodeID{1, 0, 0}, numbers, weights, []byte{7, 8, 9}))
	require.NoError(t, g.Close())
	f, err := w.AddEdgeTable("feat", "node__to__node", store.F32, 3, 4)
	require.NoError(t, err)
	for i := range int64(3) {
		require.NoError(t, f.PutRowsAt(i, append([]byte{byte(i)}, make([]byte, 15)...)))
	}
	require.NoError(t, f.Close())
	_, err = w.Seal(store.Manifest{Name: "x", Order: "access"})
	require.NoError(t, err)
	return path
}

func u32s(v ...uint32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

func TestEdgeColumns(t *testing.T) {
	d, err := store.Open(edgeDataset(t, store.U32, u32s(2, 0, 2), 1))
	require.NoError(t, err)
	defer d.Close()
	problems, err := d.Verify(context.Background(), nil)
	require.NoError(t, err)
	require.Empty(t, problems)

	g := d.Graph(0)
	require.Nil(t, g.Column("time"))
	ids, weight, kind := g.Column("id"), g.Column("weight"), g.Column("kind")
	require.Equal(t, []uint32{0, 2}, store.EdgeValues[uint32](ids, 1))
	require.Equal(t, []float32{1}, store.EdgeValues[float32](weight, 0))
	require.Equal(t, []float32{2, 3}, store.EdgeValues[float32](weight, 1))
	require.Equal(t, []byte{8, 9}, kind.Bytes(1))
	require.Equal(t, 2, cap(kind.Bytes(1)))
	require.Panics(t, func() { store.EdgeValues[int32](weight, 1) })
	require.ErrorIs(t, store.Guard(func() error { kind.Bytes(2); return nil }), store.ErrCorrupt)

	f := d.Features(0)
	require.Equal(t, "node__to__node", f.Table.Owner())
	require.Equal(t, 3, f.Rows())
	require.Len(t, f.Shards(), 3)
	for i, id := range store.EdgeValues[uint32](ids, 1) {
		require.EqualValues(t, []byte{0, 2}[i], f.RowAt(uint64(id))[0])
	}
}

// TestVerifyEdges seals wrong values, which the writers do not check, and has verify find them.
func TestVerifyEdges(t *testing.T) {
	for want, path := range map[string]string{
		"id.u32: edge 1 has id 3, and its table has 3 rows": edgeDataset(t, store.U32, u32s(2, 3, 2), 1),
		"id.u64: edge 2 has id 4294967297, and its table has 3 rows": edgeDataset(t, store.U64,
			u32s(2, 0, 0, 0, 1, 1), 1),
		"weight.f32: edge 0 is not finite": edgeDataset(t, store.U32, u32s(2, 0, 2), float32(math.NaN())),
	} {
		require.ErrorContains(t, check(path), want)
	}
}

// TestWritersRefuse makes mistakes in calls of writers. Each is reported by Close at the latest.
func TestWritersRefuse(t *testing.T) {
	w, err := store.Create(filepath.Join(t.TempDir(), "x.gnn"), store.WriterOptions{})
	require.NoError(t, err)
	defer w.Abort()
	columns := func(c ...store.ColumnSpec) error {
		_, err := w.AddRelation("node", "to", "node", false, c...)
		return err
	}
	require.ErrorContains(t, columns(store.ColumnSpec{Name: "../x", Elem: store.U8}), `column "../x": names are`)
	require.ErrorContains(t, columns(store.ColumnSpec{Name: "id", Elem: store.F32}), "numbered in u32 or u64")
	require.ErrorContains(t, columns(store.ColumnSpec{Name: "w", Elem: store.F16}), "elements of 1, 4 or 8 bytes")
	_, err = w.AddEdgeTable("feat", "a__../b__c", store.F32, 1, 1)
	require.ErrorContains(t, err, "names are")

	l, err := w.NewLabels("a", "node", 3, 0, false, nil)
	require.NoError(t, err)
	require.NoError(t, l.AppendClasses([]int32{0, 5, -1}))
	require.ErrorContains(t, l.Close(5), "label a: node 1 has class 5 of 5")
	l, err = w.NewLabels("b", "node", 3, 5, false, nil)
	require.NoError(t, err)
	require.ErrorContains(t, l.AppendClasses([]int32{-2}), "label b: node 0 has class -2")
	require.ErrorContains(t, l.Close(0), "values written for 3 nodes")
	n, err := w.NewNodeType("node", 2)
	require.NoError(t, err)
	require.NoError(t, n.AppendOriginal([]int64{1, 2}))
	require.NoError(t, n.AppendOrder([]store.NodeID{0}))
	require.ErrorContains(t, n.Close(), "an order of 1 for 2 nodes")

	f, err := w.AddTable("feat", "node", store.F32, 4, 1)
	require.NoError(t, err)
	require.Panics(t, func() { f.PutRows(3, make([]byte, 8)) })
	require.Panics(t, func() { f.PutRows(0, make([]byte, 3)) })
	require.NoError(t, f.PutRows(0, make([]byte, 16)))
	require.Panics(t, func() { f.PutRows(0, make([]byte, 4)) }, "a row of a shard that is finished")
	require.NoError(t, f.Close())
}
