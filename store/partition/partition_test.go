package partition

import (
	"bytes"
	"context"
	"encoding/binary"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// open opens a dataset for a test.
func open(t *testing.T, path string) *store.Dataset {
	t.Helper()
	ds, err := store.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ds.Close()) })
	return ds
}

// rich is a dataset of one type with all that parts have: a column and a table of edges, labels and
// two splits.
func rich(nodes int) storetest.Spec {
	const rows = 500
	r := rand.New(rand.NewPCG(1, uint64(nodes)))
	s := storetest.Spec{
		Nodes: nodes, Dim: 3, Elem: store.F32, ShardBytes: 1 << 12, OtherSplit: "swapped", Classes: 3,
		Class:    func(v int) int32 { return int32(v%4 - 1) },
		Row:      func(v int) []float32 { return []float32{float32(v), 1, -float32(v)} },
		Original: func(v int) int64 { return int64((v+3)%nodes) * 3 },
		Weight:   func(v, i int) float32 { return float32(v + i) },
		Columns: []storetest.Column{{Name: store.EdgeID, Elem: store.U32, Value: func(v, i int) float64 {
			return float64((v*31 + i) % rows)
		}}},
		EdgeTable: &storetest.EdgeTable{Dim: 2, Rows: rows, Row: func(i int) []float32 {
			return []float32{float32(i), 2}
		}},
	}
	for range nodes {
		var list []store.NodeID
		for range r.IntN(6) {
			list = append(list, store.NodeID(r.IntN(nodes)))
		}
		s.Neighbors = append(s.Neighbors, list)
	}
	held := func(n int) (h storetest.HeldEdges) {
		for i := range store.NodeID(n) {
			h.Src, h.Dst = append(h.Src, i), append(h.Dst, 2*i)
			h.DstNegatives = append(h.DstNegatives, []store.NodeID{i + 1, i + 2})
			h.PoolSrc, h.PoolDst = append(h.PoolSrc, 3), append(h.PoolDst, i)
		}
		return h
	}
	s.EdgeSplit = &storetest.EdgeSplit{Valid: held(9), Test: held(17)}
	for v := range store.NodeID(nodes) {
		switch v % 5 {
		case 0:
			s.Train = append(s.Train, v)
		case 1:
			s.Valid = append(s.Valid, v)
		case 2:
			s.Test = append(s.Test, v)
		}
	}
	return s
}

// TestPartsHaveAll: together the parts have what the whole has, each thing once, and each part
// holds its invariants.
func TestPartsHaveAll(t *testing.T) {
	for name, path := range map[string]string{
		"rich": storetest.Build(t, rich(900)), "typed": storetest.BuildTyped(t, storetest.Library(120, 3, 1)),
		"small": storetest.Build(t, rich(40)), "trust": storetest.BuildTyped(t, storetest.Trust(90, true, true)),
		"large": storetest.Build(t, rich(4096*2+900)),
	} {
		for _, parts := range []int{2, 3, together + 5} {
			if name == "large" && parts > 2 {
				continue // with more parts, no block has several nodes
			}
			t.Run(name+" "+strconv.Itoa(parts), func(t *testing.T) {
				whole, out := open(t, path), filepath.Join(t.TempDir(), "parts")
				report, err := Write(t.Context(), whole, out, Options{Parts: parts, FS: storetest.NoSync})
				require.NoError(t, err)
				require.NoError(t, store.Guard(func() error { compare(t, whole, out, parts, report); return nil }))
			})
		}
	}
}

// compare compares the parts in a directory with the whole.
func compare(t *testing.T, whole *store.Dataset, dir string, parts int, report *Report) {
	m := whole.Manifest()
	nodes, edges, size, cross := int64(0), int64(0), int64(0), int64(0)
	found, err := store.CountParts(dir)
	require.NoError(t, err)
	require.Equal(t, parts, found)
	for q := range parts {
		ds, err := store.OpenPart(dir, q, parts)
		require.NoError(t, err)
		problems, err := ds.Verify(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, problems)
		own := ds.Manifest()
		require.Equal(t, m.Seal, own.Whole())
		require.Equal(t, dir, ds.Place())
		size += own.Bytes()
		for i, kind := range m.NodeTypes {
			rows := uint32(0)
			var last int64
			for v := range uint32(kind.Count) {
				row, ok := own.Part.Nodes(i).Row(v)
				if !ok {
					continue
				}
				require.Equal(t, rows, row)
				require.Equal(t, whole.IDs(i).Original(v), ds.IDs(i).Original(row))
				rows++
			}
			for k := range int(rows) {
				id := ds.IDs(i).Original(ds.IDs(i).Nth(k))
				require.True(t, k == 0 || id > last)
				last = id
			}
			nodes += int64(rows)
		}
		for i := range m.Relations {
			all, g := whole.Graph(i), ds.Graph(i)
			edges += g.Edges()
			require.Equal(t, all.Sources(), g.Sources())
			require.Equal(t, m.Relations[i].Edges, own.EdgesOf(i))
			require.Equal(t, m.Relations[i].EdgeSplit, own.Relations[i].EdgeSplit)
			here := int64(0)
			for e := range all.Edges() {
				u, v := all.Edge(e)
				src, dst, at, ok := g.OwnEdge(e)
				owned := store.OwnersByRule(parts).Owner(v) == q
				if ok != owned || ok && (src != u || dst != v || at != here) {
					require.Fail(t, "an edge", "%d from %d to %d is %d from %d to %d, %v", e, u, v, at, src, dst, ok)
				}
				if ok {
					here++
				}
			}
			require.Equal(t, g.Edges(), here)
			for v := range uint32(all.Nodes()) {
				row, ok := own.Part.TableRows().Row(v)
				if !ok {
					continue
				}
				require.True(t, slices.Equal(all.Neighbors(v), g.Neighbors(row)))
				for _, u := range all.Neighbors(v) {
					if store.OwnersByRule(parts).Owner(u) != q {
						cross++
					}
				}
				for _, c := range m.Relations[i].Columns {
					require.True(t, bytes.Equal(all.Column(c.Name).Bytes(v), g.Column(c.Name).Bytes(row)))
				}
			}
		}
		for i := range m.Tables {
			all, f := whole.Features(i), ds.Features(i)
			require.Equal(t, int64(all.Rows()), own.RowsOf(i))
			for v := range uint32(all.Rows()) {
				if row, ok := own.Part.TableRows().Row(v); ok {
					require.Equal(t, all.Row(v), f.Row(row))
				}
			}
		}
		for i := range m.Labels {
			require.Equal(t, m.Labels[i].Values.XXH3, own.Labels[i].Values.XXH3)
		}
		for i := range m.Splits {
			require.Equal(t, whole.Split(i), ds.Split(i))
		}
		require.NoError(t, ds.Close())
	}
	total := int64(0)
	for i := range m.Relations {
		total += m.Relations[i].Edges
	}
	require.Equal(t, total, edges)
	require.Equal(t, []int64{nodes, edges, size}, []int64{report.Nodes.Total, report.Edges.Total, report.Bytes.Total})
	require.InDelta(t, float64(cross)/float64(total), report.CrossEdges, 1e-12)
}

// TestInterrupted: a failure of any operation leaves nothing, or what the next Write clears, and
// the parts have the same seals then.
func TestInterrupted(t *testing.T) {
	ds := open(t, storetest.Build(t, rich(40)))
	seals := func(on vfs.FS) (all []string) {
		for q := range 2 {
			path := filepath.Join(t.TempDir(), "part.gnn")
			_, err := vfs.Clone(on, vfs.Default, store.PartPath("/d/parts", q), path)
			require.NoError(t, err)
			part := open(t, path)
			all = append(all, part.Manifest().Seal)
		}
		return all
	}
	write := func(on vfs.FS) error {
		_, err := Write(t.Context(), ds, "/d/parts", Options{Parts: 2, FS: on})
		return err
	}
	memory := func() *vfs.MemFS {
		mem := vfs.NewMem()
		require.NoError(t, mem.MkdirAll("/d", 0o777))
		return mem
	}
	good := memory()
	require.NoError(t, write(good))
	want := seals(good)
	for n := int32(0); ; n++ {
		mem := memory()
		inj, fired := errorfs.OnIndex(n), false
		err := write(errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind != errorfs.OpStat && inj.MaybeError(op) != nil {
				fired = true
				return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
			}
			return nil
		})))
		if !fired {
			require.NoError(t, err)
			require.Greater(t, n, int32(60))
			return
		}
		if _, serr := mem.Stat("/d/parts"); serr != nil {
			require.ErrorIs(t, err, syscall.ENOSPC, "operation %d", n)
			require.NoError(t, write(mem), "operation %d", n)
		}
		if n%16 == 0 {
			require.Equal(t, want, seals(mem), "operation %d", n)
		}
	}
}

// TestRefused: what cannot be divided is refused, and nothing is written.
func TestRefused(t *testing.T) {
	path := storetest.Build(t, rich(40))
	ds, dir := open(t, path), t.TempDir()
	out := filepath.Join(dir, "parts")
	fails := func(ds *store.Dataset, out string, parts int, want string) {
		t.Helper()
		_, err := Write(t.Context(), ds, out, Options{Parts: parts})
		require.ErrorContains(t, err, want)
	}
	for _, parts := range []int{-1, 0, 1, store.MaxParts + 1} {
		fails(ds, out, parts, "2 to 4096 parts")
	}
	fails(ds, out, 41, "has 40 nodes; give at most as many parts")
	fails(ds, filepath.Join(dir, "none", "parts"), 2, "no such directory")
	fails(ds, path, 2, "it exists already")
	stream := open(t, storetest.BuildStream(t, storetest.StreamSpec{
		Users: 3, Src: []store.NodeID{0}, Dst: []store.NodeID{1}, Times: []float64{1},
	}))
	fails(stream, out, 2, "streams cannot be divided")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)

	require.NoError(t, os.MkdirAll(out+".partial", 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(out+".partial", "thesis.tex"), nil, 0o666))
	fails(ds, out, 2, "thesis.tex, which gnnstore partition did not write")
	require.NoError(t, os.Remove(filepath.Join(out+".partial", "thesis.tex")))
	lock, err := vfs.Default.Lock(filepath.Join(out+".partial", lockName))
	require.NoError(t, err)
	fails(ds, out, 2, "another partition is writing it")
	require.NoError(t, lock.Close())
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Write(stopped, ds, out, Options{Parts: 2})
	require.ErrorIs(t, err, context.Canceled)
	_, err = Write(t.Context(), ds, out, Options{Parts: 2})
	require.NoError(t, err)
	part, err := store.OpenPart(out, 1, 2)
	require.NoError(t, err)
	defer part.Close()
	fails(part, filepath.Join(dir, "again"), 2, "it is part 1 of 2 already")

	_, err = store.OpenPart(out, 1, 3)
	require.ErrorContains(t, err, "it is one of 2 parts, and there are 3 workers; give each part a worker: ")
	_, err = store.OpenPart(out, 2, 3)
	require.ErrorContains(t, err, "part-2.gnn: missing; worker 2 of 3 reads it")
	require.NoError(t, os.Rename(store.PartPath(out, 0), store.PartPath(out, 5)))
	_, err = store.OpenPart(out, 5, 6)
	require.ErrorContains(t, err, "it is part 0 of 2, but is named as another; rename it to part-0.gnn")
	require.NoError(t, os.CopyFS(store.PartPath(out, 0), os.DirFS(path)))
	_, err = store.OpenPart(out, 0, 2)
	require.ErrorContains(t, err, "it is a whole dataset, not a part")
}

// TestDamagedWhole: a page of the whole that fails its checksum is an error that names it, and no
// part is left.
func TestDamagedWhole(t *testing.T) {
	path, dir := storetest.Build(t, rich(900)), t.TempDir()
	for _, section := range []string{
		"topo/node__to__node/neighbors.u32", "feat/node/feat-00000.f32", "ids/node/original.i64",
		"label/node/label.i32",
	} {
		t.Run(filepath.Base(section), func(t *testing.T) {
			bad := filepath.Join(t.TempDir(), "bad.gnn")
			require.NoError(t, os.CopyFS(bad, os.DirFS(path)))
			f, err := os.OpenFile(filepath.Join(bad, section), os.O_RDWR, 0)
			require.NoError(t, err)
			_, err = f.WriteAt(binary.LittleEndian.AppendUint32(nil, 0xdeadbeef), store.PageSize+8)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			o := Options{Parts: 2, FS: storetest.NoSync}
			_, err = Write(t.Context(), open(t, bad), filepath.Join(dir, "parts"), o)
			require.ErrorIs(t, err, store.ErrCorrupt)
			require.ErrorContains(t, err, section)
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, entries)
		})
	}
}
