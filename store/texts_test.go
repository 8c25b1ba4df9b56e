package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

// writeNames writes node type "user", whose node v is named names[v], in tables of limit bytes. The
// caller writes the rest of the dataset.
func writeNames(w *Writer, names []string, limit int64) error {
	t, err := w.NewNodeType("user", int64(len(names)))
	if err != nil {
		return err
	}
	t.names[0].limit, t.names[1].limit = limit, limit
	order := make([]NodeID, len(names))
	for v := range names {
		order[v] = NodeID(v)
		if err := t.AppendOriginal([]int64{int64(v)}); err != nil {
			return err
		}
		if err := t.AppendText([]byte(names[v])); err != nil {
			return err
		}
	}
	if err := t.AppendOrder(order); err != nil {
		return err
	}
	slices.SortFunc(order, func(a, b NodeID) int { return strings.Compare(names[a], names[b]) })
	for _, v := range order {
		if err := t.AppendName([]byte(names[v]), v); err != nil {
			return err
		}
	}
	return t.Close()
}

func sealNames(t require.TestingT, path string, names []string, limit int64) *Manifest {
	w, err := Create(path, WriterOptions{})
	require.NoError(t, err)
	require.NoError(t, writeNames(w, names, limit))
	m, err := w.Seal(Manifest{Name: "x", Order: "original"})
	require.NoError(t, err)
	return m
}

func someNames(n int) []string {
	rng := rand.New(rand.NewPCG(3, 4))
	names := make([]string, n)
	for v := range names {
		names[v] = fmt.Sprintf("https://example.org/%06x/%d", rng.Uint32N(1<<24), v)
	}
	return names
}

// TestNames compares look-ups with a map, for tables of many sizes.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		if round++; round > 25 {
			return // each round costs a few syncs
		}
		names := rapid.SliceOfNDistinct(rapid.StringN(1, 40, 80), 1, 60, rapid.ID[string]).Draw(rt, "names")
		limit := rapid.Int64Range(1, 400).Draw(rt, "limit")
		path := filepath.Join(dir, fmt.Sprint(round))
		m := sealNames(rt, path, names, limit)
		require.GreaterOrEqual(rt, len(m.Blobs()), 2)
		d, err := Open(path)
		require.NoError(rt, err)
		defer d.Close()
		problems, err := d.Verify(context.Background(), nil)
		require.NoError(rt, err)
		require.Empty(rt, problems)
		ids := d.IDs(0)
		require.True(rt, ids.HasNames())
		byName := map[string]NodeID{}
		for v, name := range names {
			byName[name] = NodeID(v)
			got, err := ids.Name(NodeID(v))
			require.NoError(rt, err)
			require.Equal(rt, name, got)
			node, ok, err := ids.Find([]byte(name))
			require.NoError(rt, err)
			require.True(rt, ok)
			require.EqualValues(rt, v, node)
		}
		for _, name := range append(rapid.SliceOfN(rapid.String(), 5, 5).Draw(rt, "others"), "", "\xff\xff") {
			want, there := byName[name]
			v, ok, err := ids.Find([]byte(name))
			require.NoError(rt, err)
			require.Equal(rt, there, ok)
			require.Equal(rt, want, v)
		}
		var all []string
		require.NoError(rt, ids.EachName(context.Background(), func(v NodeID, name []byte) error {
			require.EqualValues(rt, len(all), v)
			all = append(all, string(name))
			return nil
		}))
		require.Equal(rt, names, all)
	})
}

// TestNamesAreTheirBytes writes the same names twice, interleaved in two ways: the seals are equal.
func TestNamesAreTheirBytes(t *testing.T) {
	names := someNames(20_000)
	a := sealNames(t, filepath.Join(t.TempDir(), "a"), names, 200_000)
	require.Greater(t, len(a.NodeTypes[0].Names.ByName), 2)
	names[7] += "x"
	b := sealNames(t, filepath.Join(t.TempDir(), "b"), names, 200_000)
	require.NotEqual(t, a.Seal, b.Seal)
	names[7] = names[7][:len(names[7])-1]

	mem := vfs.NewMem()
	w, err := Create("c", WriterOptions{FS: mem})
	require.NoError(t, err)
	n, err := w.NewNodeType("user", int64(len(names)))
	require.NoError(t, err)
	n.names[0].limit, n.names[1].limit = 200_000, 200_000
	order := make([]NodeID, len(names))
	for v := range names {
		order[v] = NodeID(v)
	}
	require.NoError(t, n.AppendOrder(order))
	slices.SortFunc(order, func(a, b NodeID) int { return strings.Compare(names[a], names[b]) })
	for _, v := range order {
		require.NoError(t, n.AppendName([]byte(names[v]), v))
	}
	for v, name := range names {
		require.NoError(t, n.AppendText([]byte(name)))
		require.NoError(t, n.AppendOriginal([]int64{int64(v)}))
	}
	require.NoError(t, n.Close())
	c, err := w.Seal(Manifest{Name: "x", Order: "original"})
	require.NoError(t, err)
	require.Equal(t, a.Seal, c.Seal)
}

// TestNamesGoneOnFrom interrupts a Writer after the names. The next Writer keeps their tables.
func TestNamesGoneOnFrom(t *testing.T) {
	names := someNames(100)
	want := sealNames(t, filepath.Join(t.TempDir(), "straight"), names, 1000)
	path := filepath.Join(t.TempDir(), "x")
	w, err := Create(path, WriterOptions{})
	require.NoError(t, err)
	require.NoError(t, writeNames(w, names, 1000))
	parts, err := w.Parts()
	require.NoError(t, err)
	require.Equal(t, want.NodeTypes, parts.NodeTypes)
	open, err := w.NewNodeType("more", 1)
	require.NoError(t, err)
	require.NoError(t, open.AppendText([]byte("lost")))
	require.NoError(t, w.Leave())

	w, err = Create(path, WriterOptions{Continue: func(string) *Manifest { return parts }})
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(path+".partial", "ids", "more"))
	got, err := w.Seal(Manifest{Name: "x", Order: "original"})
	require.NoError(t, err)
	require.Equal(t, want.Seal, got.Seal)
	d, err := Open(path)
	require.NoError(t, err)
	name, err := d.IDs(0).Name(42)
	require.NoError(t, err)
	require.Equal(t, names[42], name)
	require.NoError(t, d.Close())
}

// TestNamesAtOnce looks names up from many goroutines, which race to open the tables.
func TestNamesAtOnce(t *testing.T) {
	names := someNames(5000)
	path := filepath.Join(t.TempDir(), "x")
	sealNames(t, path, names, 50_000)
	d, err := Open(path)
	require.NoError(t, err)
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range 300 {
				v := rng.IntN(len(names))
				name, err := d.IDs(0).Name(NodeID(v))
				u, ok, err2 := d.IDs(0).Find([]byte(names[v]))
				if err != nil || err2 != nil || !ok || name != names[v] || int(u) != v {
					errs[i] = fmt.Errorf("node %d: %q, %v, node %d, %v", v, name, err, u, err2)
				}
			}
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))

	stop := errors.New("enough")
	require.Equal(t, stop, d.IDs(0).EachName(context.Background(), func(NodeID, []byte) error { return stop }))
	require.PanicsWithValue(t, "mine", func() {
		d.IDs(0).EachName(context.Background(), func(NodeID, []byte) error { panic("mine") })
	})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, d.IDs(0).EachName(ctx, func(NodeID, []byte) error { return nil }), context.Canceled)
	require.PanicsWithValue(t, "store: names of nodes that have none", func() { IDs{}.Find(nil) })
	require.NoError(t, d.Close())
}

// TestNamesDamaged flips bytes of the tables. Verify finds each change, and a look-up that meets
// one reports where.
func TestNamesDamaged(t *testing.T) {
	names := someNames(300)
	path := filepath.Join(t.TempDir(), "x")
	m := sealNames(t, path, names, maxTextTable)
	met := 0
	for _, b := range m.Blobs() {
		file := filepath.Join(path, b.Path)
		was, err := os.ReadFile(file)
		require.NoError(t, err)
		for at := 0; at < len(was); at += 101 {
			now := bytes.Clone(was)
			now[at] ^= 0x20
			require.NoError(t, os.WriteFile(file, now, 0o666))
			d, err := Open(path)
			require.NoError(t, err)
			problems, err := d.Verify(context.Background(), nil)
			require.NoError(t, err)
			require.Len(t, problems, 1, "%s byte %d", b.Path, at)
			require.Equal(t, b.Path, problems[0].Section)
			_, err = d.IDs(0).Name(NodeID(at % 300))
			_, _, err2 := d.IDs(0).Find([]byte(names[at%300]))
			if err = errors.Join(err, err2); err != nil {
				var se *SectionError
				require.ErrorAs(t, err, &se)
				require.ErrorIs(t, err, ErrCorrupt)
				met++
			}
			require.NoError(t, d.Close())
		}
		require.NoError(t, os.WriteFile(file, was, 0o666))
	}
	require.Greater(t, met, 30)

	require.NoError(t, os.Truncate(filepath.Join(path, m.NodeTypes[0].Names.ByNode[0].Path), 100))
	_, err := Open(path)
	require.ErrorContains(t, err, "ids/user/by-node-00000.sst at 0x64: 100 bytes, and the manifest says")
	require.NoError(t, os.Remove(filepath.Join(path, m.NodeTypes[0].Names.ByName[0].Path)))
	_, err = Open(path)
	require.ErrorContains(t, err, "ids/user/by-name-00000.sst: missing")
}

// TestVerifyNames seals tables with valid checksums that contradict each other, or hold wrong
// nodes.
func TestVerifyNames(t *testing.T) {
	for want, write := range map[string]func(n *NodeTypeWriter){
		"by-name-00000.sst: holds other names than ids/user/by-node-00000.sst": func(n *NodeTypeWriter) {
			require.NoError(t, errors.Join(n.AppendText([]byte("a")), n.AppendText([]byte("b"))))
			require.NoError(t, errors.Join(n.AppendName([]byte("a"), 1), n.AppendName([]byte("b"), 0)))
		},
		"by-name-00000.sst: has node 7 of 2": func(n *NodeTypeWriter) {
			require.NoError(t, errors.Join(n.AppendText([]byte("a")), n.AppendText([]byte("b"))))
			require.NoError(t, errors.Join(n.AppendName([]byte("a"), 0), n.AppendName([]byte("b"), 7)))
		},
		"by-node-00000.sst: has node 5 where 1 belongs": func(n *NodeTypeWriter) {
			require.NoError(t, n.AppendText([]byte("a")))
			require.NoError(t, n.names[1].add([]byte{0, 0, 0, 5}, []byte("b")))
			require.NoError(t, errors.Join(n.AppendName([]byte("a"), 0), n.AppendName([]byte("b"), 1)))
			n.node.Count, n.rows = 6, 6
			n.names[0].count, n.names[1].count = 6, 6
			require.NoError(t, n.AppendOriginal([]int64{2, 3, 4, 5}))
			require.NoError(t, n.AppendOrder([]NodeID{2, 3, 4, 5}))
		},
	} {
		path := filepath.Join(t.TempDir(), "x")
		w, err := Create(path, WriterOptions{})
		require.NoError(t, err)
		n, err := w.NewNodeType("user", 2)
		require.NoError(t, err)
		require.NoError(t, n.AppendOriginal([]int64{0, 1}))
		require.NoError(t, n.AppendOrder([]NodeID{0, 1}))
		write(n)
		require.NoError(t, n.Close())
		_, err = w.Seal(Manifest{Name: "x", Order: "original"})
		require.NoError(t, err)
		d, err := Open(path)
		require.NoError(t, err)
		problems, err := d.Verify(context.Background(), nil)
		require.NoError(t, err)
		require.Len(t, problems, 1)
		require.ErrorContains(t, problems[0], want)
		require.NoError(t, d.Close())
	}
}

func TestNamesRefused(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	w, err := Create(filepath.Join(t.TempDir(), "x"), WriterOptions{})
	require.NoError(t, err)
	n, err := w.NewNodeType("user", 2)
	require.NoError(t, err)
	require.ErrorContains(t, n.AppendText(nil), "has 0 bytes; ids have 1 to 65536")
	require.ErrorContains(t, n.AppendName(make([]byte, maxText+1), 0), "has 65537 bytes")
	require.NoError(t, n.AppendName([]byte("b"), 0))
	require.ErrorContains(t, n.AppendName([]byte("b"), 1), `id "b" does not follow "b"`)
	require.NoError(t, n.AppendText([]byte("b")))
	require.PanicsWithValue(t, "store: Seal before every section writer is closed: ids/user/original.i64",
		func() { w.Seal(Manifest{}) })
	require.ErrorContains(t, n.Close(), "1 names by text and 1 by node for 2 nodes")
	n, err = w.NewNodeType("other", 2)
	require.NoError(t, err)
	require.NoError(t, n.AppendText([]byte("open")))
	require.NoError(t, w.Abort())
}

// TestNamesEveryWriteFails fails each operation in turn. Each time there is an error, and no
// goroutine is left running.
func TestNamesEveryWriteFails(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	names := someNames(3000)
	for i := int32(0); ; i++ {
		inj := errorfs.OnIndex(i)
		fsys := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind != errorfs.OpStat && inj.MaybeError(op) != nil {
				return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
			}
			return nil
		}))
		w, err := Create("x", WriterOptions{FS: fsys})
		if err == nil {
			if err = writeNames(w, names, 30_000); err == nil {
				_, err = w.Seal(Manifest{Name: "x", Order: "original"})
			}
			_ = w.Abort()
		}
		if err == nil {
			require.Greater(t, i, int32(40))
			return
		}
		require.ErrorIs(t, err, syscall.ENOSPC, "operation %d", i)
	}
}
