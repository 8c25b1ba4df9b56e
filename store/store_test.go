package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// small has several shards, gaps in its ids, an empty neighbour list, missing labels, and padding
// everywhere.
func small() storetest.Spec {
	return storetest.Spec{
		Nodes: 9, Dim: 5, Classes: 3, ShardBytes: 64,
		Neighbors: [][]store.NodeID{{8, 1}, {0, 0}, {}, {2}, {5, 4, 3, 3}},
		Class:     func(v int) int32 { return int32(v%4) - 1 },
		Original:  func(v int) int64 { return int64(100 - 7*v) },
		Train:     []store.NodeID{4, 0, 1}, Valid: []store.NodeID{2}, Test: nil,
	}
}

func TestRoundTrip(t *testing.T) {
	for _, elem := range []store.Elem{store.F16, store.F32} {
		spec := small()
		spec.Elem = elem
		spec.Name = func(v int) string { return fmt.Sprint("node ", 9-v) }
		spec.Weight = func(v, i int) float32 { return float32(10*v + i) }
		d, err := store.Open(storetest.Build(t, spec))
		require.NoError(t, err)
		problems, err := d.Verify(context.Background(), nil)
		require.NoError(t, err)
		require.Empty(t, problems)

		g := d.Graph(0)
		require.Equal(t, 9, g.Nodes())
		require.Equal(t, []store.NodeID{1, 8}, g.Neighbors(0))
		require.Equal(t, []store.NodeID{3, 3, 4, 5}, g.Neighbors(4))
		require.Empty(t, g.Neighbors(2))
		list := g.Neighbors(0)
		require.Equal(t, len(list), cap(list), "an append must not reach the next node")

		f := d.Features(0)
		require.Equal(t, 9, f.Rows())
		require.Greater(t, len(f.Shards()), 1)
		require.Len(t, f.Row(8), f.RowBytes())
		require.NotEqual(t, f.Row(7), f.Row(8))
		for _, s := range f.Shards() {
			b := make([]byte, f.RowBytes())
			_, err := s.File.ReadAt(b, s.DataOffset+(s.Rows-1)*s.Stride)
			require.NoError(t, err)
			require.Equal(t, f.Row(store.NodeID(s.FirstRow+s.Rows-1)), b)
		}
		require.EqualValues(t, -1, d.Labels(0).Class(4))
		require.EqualValues(t, 2, d.Labels(0).Class(3))
		require.Equal(t, store.Sets{Train: []store.NodeID{0, 1, 4}, Valid: []store.NodeID{2}}, d.Split(0))
		require.Equal(t, []float32{40, 41, 42, 43}, store.EdgeValues[float32](g.Column("weight"), 4))
		ids := d.IDs(0)
		for v := range store.NodeID(9) {
			name, err := ids.Name(v)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint("node ", 9-v), name)
			got, ok := ids.Stored(ids.Original(v))
			require.True(t, ok)
			require.Equal(t, v, got)
		}
		for _, id := range []int64{-1, 0, 1, 101, 99} {
			_, ok := ids.Stored(id)
			require.False(t, ok, id)
		}
		require.NoError(t, d.Close())
	}
}

func TestSealIsTheData(t *testing.T) {
	seal := func(s storetest.Spec) string {
		d, err := store.Open(storetest.Build(t, s))
		require.NoError(t, err)
		defer d.Close()
		return d.Manifest().Seal
	}
	other := small()
	other.Class = func(int) int32 { return 0 }
	require.Equal(t, seal(small()), seal(small()))
	require.NotEqual(t, seal(small()), seal(other))
}

// TestEveryFlippedByte flips bytes of each file, one at a time. Opening or verifying must notice
// each.
func TestEveryFlippedByte(t *testing.T) {
	spec := small()
	spec.ShardBytes = 0
	dir := storetest.Build(t, spec)
	require.NoError(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		require.NoError(t, err)
		f, err := os.OpenFile(p, os.O_WRONLY, 0)
		require.NoError(t, err)
		defer f.Close()
		step := 1
		if len(b) > 600 {
			step = 61 // samples padding and header; flipping every byte would take seconds more
		}
		for i := 0; i < len(b); i += step {
			f.WriteAt([]byte{b[i] ^ 0x20}, int64(i))
			require.Error(t, check(dir), "%s byte %d", p, i)
			f.WriteAt(b[i:i+1], int64(i))
		}
		return nil
	}))
	require.NoError(t, check(dir))
}

// patch overwrites bytes of a section.
func patch(t *testing.T, dir, section string, at int64, b []byte) {
	f, err := os.OpenFile(filepath.Join(dir, section), os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(b, at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// check opens a dataset and verifies it.
func check(dir string) error {
	d, err := store.Open(dir)
	if err != nil {
		if !errors.Is(err, store.ErrCorrupt) {
			return fmt.Errorf("not an ErrCorrupt: %w", err)
		}
		return err
	}
	defer d.Close()
	problems, err := d.Verify(context.Background(), nil)
	for _, p := range problems {
		err = errors.Join(err, p)
	}
	return err
}

func TestOpenRefuses(t *testing.T) {
	edit := func(from, to string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			p := filepath.Join(dir, "manifest.json")
			b, err := os.ReadFile(p)
			require.NoError(t, err)
			require.Contains(t, string(b), from)
			require.NoError(t, os.WriteFile(p, bytes.Replace(b, []byte(from), []byte(to), 1), 0o666))
		}
	}
	for name, c := range map[string]struct {
		break_ func(t *testing.T, dir string)
		want   string
	}{
		"newer version": {edit(`"version": 3`, `"version": 7`),
			"unknown dataset version 7: this build reads versions 2 to 3"},
		"other format":  {edit(`"format": "gnnstore"`, `"format": "gnnshop"`), `format is "gnnshop"`},
		"edited":        {edit(`"order": "original"`, `"order": "degree"`), "edited or damaged"},
		"unknown field": {edit(`"order"`, `"odour"`), "unknown field"},
		"empty manifest": {func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, "manifest.json"), 0))
		}, "not a manifest"},
		"no manifest": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "manifest.json")))
		}, "not a sealed dataset"},
		"missing section": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "split/given/train.u32")))
		}, "split/given/train.u32: missing"},
		"truncated section": {func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, "ids/node/order.u32"), 5000))
		}, "5000 bytes, and the manifest says 12288"},
		"swapped sections": {func(t *testing.T, dir string) {
			a, b := filepath.Join(dir, "split/given/train.u32"), filepath.Join(dir, "split/given/valid.u32")
			require.NoError(t, os.Rename(a, a+"x"))
			require.NoError(t, os.Rename(b, a))
			require.NoError(t, os.Rename(a+"x", b))
		}, "swapped or renamed"},
		"symlinked section": {func(t *testing.T, dir string) {
			p := filepath.Join(dir, "split/given/train.u32")
			require.NoError(t, os.Rename(p, filepath.Join(dir, "x")))
			require.NoError(t, os.Symlink("../../x", p))
		}, "plain files and directories only"},
		"symlinked directory": {func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(filepath.Join(dir, "split"), filepath.Join(dir, "x")))
			require.NoError(t, os.Symlink("x", filepath.Join(dir, "split")))
		}, "plain files and directories only"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := storetest.Build(t, small())
			c.break_(t, dir)
			_, err := store.Open(dir)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, strings.TrimSpace(err.Error()), "\n", "one line")
		})
	}
	_, err := store.Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, err, "no such dataset")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	_, err = store.Open(file)
	require.ErrorContains(t, err, "this is a file")
}

func TestTruncatedUnderTheMap(t *testing.T) {
	dir := storetest.Build(t, storetest.Spec{Nodes: 5000, Dim: 64})
	d, err := store.Open(dir)
	require.NoError(t, err)
	defer d.Close()
	f := d.Features(0)
	require.NoError(t, os.Truncate(f.Shards()[0].Path, 8192))
	var sum byte
	err = store.Guard(func() error {
		sum += f.Row(4999)[0]
		return nil
	})
	require.ErrorIs(t, err, store.ErrCorrupt)
	var at *store.SectionError
	require.ErrorAs(t, err, &at)
	require.Equal(t, dir, at.Dataset)
	require.Equal(t, "feat/node/feat-00000.f16", at.Section)
	require.ErrorContains(t, err, dir+": feat/node/feat-00000.f16 at 0x")
	require.Zero(t, sum)
}

// TestVerifyBlamesOnce damages sections that the invariants of others read as well. Verify reports
// each damaged section once, and no other.
func TestVerifyBlamesOnce(t *testing.T) {
	for _, damaged := range [][]string{
		{"topo/node__to__node/offsets.u64"},
		{"ids/node/original.i64"},
		{"topo/node__to__node/offsets.u64", "topo/node__to__node/neighbors.u32"},
		{"ids/node/original.i64", "ids/node/order.u32", "label/node/label.i32"},
	} {
		dir := storetest.Build(t, small())
		for _, section := range damaged {
			patch(t, dir, section, store.PageSize+8, []byte{99})
		}
		d, err := store.Open(dir)
		require.NoError(t, err)
		problems, err := d.Verify(context.Background(), nil)
		require.NoError(t, err)
		var found []string
		for _, p := range problems {
			require.ErrorContains(t, p, " at 0x1000: the checksum of this page is ")
			found = append(found, p.Section)
		}
		slices.Sort(found)
		slices.Sort(damaged)
		require.Equal(t, damaged, found)
		require.NoError(t, d.Close())
	}
}

// TestEveryWriteFails fails the n-th operation, for every n. The final name must not exist or hold
// a whole dataset.
func TestEveryWriteFails(t *testing.T) {
	for n := int32(0); ; n++ {
		dir := t.TempDir()
		path := filepath.Join(dir, "x.gnn")
		inj := errorfs.OnIndex(n)
		fsys := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpStat || op.Kind == errorfs.OpRemoveAll {
				return nil // the clean-up uses these
			}
			if inj.MaybeError(op) != nil {
				return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
			}
			return nil
		}))
		w, err := store.Create(path, store.WriterOptions{FS: fsys})
		if err == nil {
			_, err = storetest.Write(w, small())
		}
		if err == nil {
			require.Greater(t, n, int32(30))
			require.NoError(t, check(path))
			return
		}
		require.ErrorIs(t, err, syscall.ENOSPC, "operation %d", n)
		if _, serr := os.Stat(path); serr == nil {
			require.NoError(t, check(path), "operation %d", n)
		}
		w2, err := store.Create(path+"2", store.WriterOptions{})
		require.NoError(t, err)
		require.NoError(t, w2.Abort())
	}
}

// TestCrash cuts the power before anything is written, and after a successful Seal: then the
// dataset is absent, or whole.
func TestCrash(t *testing.T) {
	mem := vfs.NewCrashableMem()
	require.NoError(t, mem.MkdirAll("/d", 0o777))
	root, err := mem.OpenDir("/")
	require.NoError(t, err)
	require.NoError(t, root.Sync())
	w, err := store.Create("/d/x.gnn", store.WriterOptions{FS: mem})
	require.NoError(t, err)
	before := mem.CrashClone(vfs.CrashCloneCfg{})
	_, err = storetest.Write(w, small())
	require.NoError(t, err)
	after := mem.CrashClone(vfs.CrashCloneCfg{})

	_, err = before.Stat("/d/x.gnn")
	require.ErrorIs(t, err, fs.ErrNotExist)
	out := t.TempDir()
	_, err = vfs.Clone(after, vfs.Default, "/d/x.gnn", filepath.Join(out, "x.gnn"))
	require.NoError(t, err)
	require.NoError(t, check(filepath.Join(out, "x.gnn")))
}

func TestCreateRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gnn")
	w, err := store.Create(path, store.WriterOptions{})
	require.NoError(t, err)
	_, err = store.Create(path, store.WriterOptions{})
	require.ErrorIs(t, err, store.ErrBusy)
	_, err = storetest.Write(w, small())
	require.NoError(t, err)
	_, err = store.Create(path, store.WriterOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
	require.NoFileExists(t, path+".partial")
	require.NoFileExists(t, filepath.Join(path, "lock"))

	// Create clears what an interrupted writer left.
	path += "2"
	require.NoError(t, os.MkdirAll(path+".partial/feat/old", 0o777))
	require.NoError(t, os.WriteFile(path+".partial/lock", nil, 0o666))
	w, err = store.Create(path, store.WriterOptions{})
	require.NoError(t, err)
	_, err = storetest.Write(w, small())
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(path, "feat/old"))
	require.NoError(t, check(path))
}

// TestCreateTouchesNothing puts obstacles where a dataset would be written. Create refuses each in
// one line, and changes nothing.
func TestCreateTouchesNothing(t *testing.T) {
	write := func(t *testing.T, path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
	for name, c := range map[string]struct {
		lay  func(t *testing.T, dir string)
		out  string
		want string
	}{
		"a stranger's directory": {func(t *testing.T, dir string) { write(t, dir+"/x.gnn.partial/thesis.txt", "precious") },
			"x.gnn", "x.gnn.partial: is not empty, and no ingest left it: " +
				`it has no empty file "lock"; move it away or choose another name`},
		"a stranger's lock": {func(t *testing.T, dir string) { write(t, dir+"/x.gnn.partial/lock", "Yale") },
			"x.gnn", "no ingest left it"},
		"a directory lock": {func(t *testing.T, dir string) { write(t, dir+"/x.gnn.partial/lock/key", "") },
			"x.gnn", "no ingest left it"},
		"a lock that leads away": {func(t *testing.T, dir string) {
			write(t, dir+"/empty", "")
			write(t, dir+"/x.gnn.partial/thesis.txt", "precious")
			require.NoError(t, os.Symlink("../empty", dir+"/x.gnn.partial/lock"))
		}, "x.gnn", "no ingest left it"},
		"a link to a directory": {func(t *testing.T, dir string) {
			write(t, dir+"/home/thesis.txt", "precious")
			write(t, dir+"/home/lock", "")
			require.NoError(t, os.Symlink("home", dir+"/x.gnn.partial"))
		}, "x.gnn", "x.gnn.partial: is a symbolic link"},
		"a dangling link beside": {func(t *testing.T, dir string) {
			require.NoError(t, os.Symlink("none", dir+"/x.gnn.partial"))
		}, "x.gnn", "x.gnn.partial: is a symbolic link"},
		"a file": {func(t *testing.T, dir string) { write(t, dir+"/x.gnn.partial", "precious") },
			"x.gnn", "x.gnn.partial: is a file"},
		"a dangling link": {func(t *testing.T, dir string) { require.NoError(t, os.Symlink("none", dir+"/x.gnn")) },
			"x.gnn", fs.ErrExist.Error()},
		"no parent": {func(*testing.T, string) {}, "a/b/x.gnn", "a/b: no such directory; make it first"},
		"a file as parent": {func(t *testing.T, dir string) { write(t, dir+"/a", "precious") },
			"a/x.gnn", "a: not a directory; choose another name"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.lay(t, dir)
			before := tree(t, dir)
			_, err := store.Create(filepath.Join(dir, c.out), store.WriterOptions{})
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n", "one line")
			require.Equal(t, before, tree(t, dir))
		})
	}
}

// tree lists what is under dir: files with their contents, links with their targets.
func tree(t *testing.T, dir string) (list []string) {
	require.NoError(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		text := ""
		switch {
		case err != nil:
			return err
		case e.Type() == fs.ModeSymlink:
			text, err = os.Readlink(p)
		case !e.IsDir():
			var b []byte
			b, err = os.ReadFile(p)
			text = string(b)
		}
		list = append(list, fmt.Sprintf("%s %v %s", p, e.Type(), text))
		return err
	}))
	return list
}

func TestTrailingSlash(t *testing.T) {
	dir := t.TempDir()
	w, err := store.Create(filepath.Join(dir, "x.gnn")+"/", store.WriterOptions{})
	require.NoError(t, err)
	names, err := filepath.Glob(dir + "/*")
	require.NoError(t, err)
	require.Equal(t, []string{dir + "/x.gnn.partial"}, names)
	_, err = storetest.Write(w, small())
	require.NoError(t, err)
	require.NoError(t, check(dir+"/x.gnn"))
}

// TestAbortKeepsTheLockLast cuts an Abort short. The next Writer still recognises what it left.
func TestAbortKeepsTheLockLast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gnn")
	broken := false
	fsys := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken && op.Kind == errorfs.OpRemoveAll {
			return &fs.PathError{Op: "remove", Path: op.Path, Err: syscall.EIO}
		}
		return nil
	}))
	w, err := store.Create(path, store.WriterOptions{FS: fsys})
	require.NoError(t, err)
	require.NoError(t, w.AddNodeType("node", []int64{1, 2}))
	broken = true
	require.ErrorIs(t, w.Abort(), syscall.EIO)
	require.FileExists(t, path+".partial/lock")

	w, err = store.Create(path, store.WriterOptions{})
	require.NoError(t, err)
	require.NoError(t, w.Abort())
	require.NoDirExists(t, path+".partial")
}

// TestManyCreate lets writers of one name race. At most one works at a time, the others are
// refused, and a writer that seals leaves a whole dataset and nothing else.
func TestManyCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.gnn")
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 40 {
				w, err := store.Create(path, store.WriterOptions{})
				if err != nil {
					assert.True(t, errors.Is(err, store.ErrBusy) || errors.Is(err, fs.ErrExist), "%v", err)
					continue
				}
				if i == 0 {
					_, err = storetest.Write(w, small())
				} else if err = w.AddNodeType("node", []int64{1, 2}); err == nil {
					err = w.Abort()
				}
				assert.NoError(t, err)
			}
		})
	}
	group.Wait()
	require.NoDirExists(t, path+".partial")
	if _, err := os.Stat(path); err == nil {
		require.NoError(t, check(path))
	}
}

// TestSealReadsBack seals texts that are not valid UTF-8. The dataset still opens, with U+FFFD in
// them.
func TestSealReadsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gnn")
	w, err := store.Create(path, store.WriterOptions{})
	require.NoError(t, err)
	require.NoError(t, w.AddNodeType("node", []int64{7}))
	bad, good := "caf\xe9.npz <&>\u2028", "caf\ufffd.npz <&>\u2028"
	classes := []string{bad}
	require.NoError(t, w.AddLabels("label", "node", []int32{0}, 1, classes))
	require.Equal(t, []string{bad}, classes)
	_, err = w.Seal(store.Manifest{Name: "x", Order: "original", Provenance: store.Provenance{Tool: bad, Source: bad,
		Options: map[string]string{bad: bad}, Counts: map[string]int64{bad: 1}, Notes: []string{bad}}})
	require.NoError(t, err)
	require.NoError(t, check(path))
	d, err := store.Open(path)
	require.NoError(t, err)
	defer d.Close()
	require.Equal(t, []string{good}, d.Manifest().Labels[0].ClassNames)
	require.Equal(t, store.Provenance{Tool: good, Source: good, Options: map[string]string{good: good},
		Counts: map[string]int64{good: 1}, Notes: []string{good}}, d.Manifest().Provenance)
}

// TestNamesAreRefused checks that a name that would become a path is refused before anything is
// written.
func TestNamesAreRefused(t *testing.T) {
	dir := t.TempDir()
	w, err := store.Create(filepath.Join(dir, "x.gnn"), store.WriterOptions{})
	require.NoError(t, err)
	const bad = "../../y"
	before := tree(t, dir)
	_, relation := w.AddRelation("node", "to", bad, false)
	_, table := w.AddTable("feat", bad, store.F16, 1, 1)
	for _, err := range []error{
		relation, table, w.AddNodeType(bad, nil), w.AddLabels(bad, "node", nil, 1, nil),
		w.AddMultiLabels("l", bad, nil, 1, nil), w.AddSplit(bad, "node", nil, nil, nil),
	} {
		require.ErrorContains(t, err, `"../../y": names are`)
	}
	require.Equal(t, before, tree(t, dir))
	for _, name := range []string{"", "../x", ".x", "a b", "é"} {
		_, err = w.Seal(store.Manifest{Name: name, Order: "original"})
		require.ErrorContains(t, err, fmt.Sprintf("the dataset's name is %q", name))
		require.NotContains(t, err.Error(), "\n", "one line")
	}
	_, err = w.Seal(store.Manifest{Name: "x", Order: "chaos"})
	require.ErrorContains(t, err, "nodes are numbered by")
	require.NoError(t, w.Abort())
}

func TestManifestIsStable(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(storetest.Build(t, small()), "manifest.json"))
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(b, &m))
	for _, k := range []string{
		"format", "version", "name", "node_types", "relations", "tables", "labels", "splits", "seal", "check",
	} {
		require.Contains(t, m, k)
	}
}

// TestUnchanged notices writes to a section after Open. It ignores another file put in the
// section's place.
func TestUnchanged(t *testing.T) {
	path := storetest.Build(t, storetest.Communities(50, 3, 4, 8, 1))
	for _, change := range []func(section string) error{
		func(section string) error { return os.Truncate(section, 4096) },
		func(section string) error { return os.Chtimes(section, time.Time{}, time.Now().Add(time.Second)) },
	} {
		ds, err := store.Open(path)
		require.NoError(t, err)
		require.NoError(t, ds.Unchanged())
		for _, f := range ds.Manifest().Files() {
			section := filepath.Join(path, f.Path)
			sound, err := os.ReadFile(section)
			require.NoError(t, err)
			ds, err := store.Open(path)
			require.NoError(t, err)
			other := section + ".other"
			require.NoError(t, os.WriteFile(other, sound, 0o666))
			require.NoError(t, os.Rename(other, section))
			require.NoError(t, ds.Unchanged())
			require.NoError(t, ds.Close())

			ds, err = store.Open(path)
			require.NoError(t, err)
			require.NoError(t, change(section))
			var wrong *store.SectionError
			require.ErrorAs(t, ds.Unchanged(), &wrong)
			require.Equal(t, f.Path, wrong.Section)
			require.ErrorIs(t, wrong, store.ErrCorrupt)
			require.NoError(t, ds.Close())
			require.NoError(t, os.WriteFile(section, sound, 0o666))
		}
		require.NoError(t, ds.Close())
	}
}

// TestNumbers writes a label that is a number for each node, NaN where missing, and that has no
// classes.
func TestNumbers(t *testing.T) {
	number := func(v int) float32 {
		if v%3 == 1 {
			return float32(math.NaN())
		}
		return float32(v) - 2.5
	}
	d, err := store.Open(storetest.Build(t, storetest.Spec{Nodes: 7, Dim: 1, Neighbors: make([][]store.NodeID, 7), Number: number, Train: []store.NodeID{0, 1}}))
	require.NoError(t, err)
	defer d.Close()
	l := d.Labels(0)
	require.True(t, l.Label.Numbers)
	require.Zero(t, l.Classes())
	for v := range 7 {
		require.Equal(t, v%3 != 1, l.Has(store.NodeID(v)))
		if l.Has(store.NodeID(v)) {
			require.Equal(t, number(v), l.Number(store.NodeID(v)))
		}
	}
	problems, err := d.Verify(context.Background(), nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	w, err := store.Create(filepath.Join(t.TempDir(), "x.gnn"), store.WriterOptions{})
	require.NoError(t, err)
	defer w.Abort()
	n, err := w.NewNumbers("label", "node", 2)
	require.NoError(t, err)
	require.ErrorContains(t, n.AppendNumbers([]float32{1, float32(math.Inf(1))}), "label label: node 1 has the number +Inf; numbers are finite, and NaN is missing")
}
