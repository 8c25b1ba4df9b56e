package store_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

// piecewise writes a dataset in steps, and after each step keeps a journal of the parts that are
// done: a small model of ingest.
type piecewise struct {
	fs      vfs.FS
	path    string
	skipped int // steps that an earlier run has done
	kept    int // steps that the last journal names whose writing succeeded
}

func (p *piecewise) options() store.WriterOptions {
	return store.WriterOptions{FS: p.fs, ShardBytes: 64, Continue: func(work string) *store.Manifest {
		f, err := p.fs.Open(p.fs.PathJoin(work, "journal"))
		if err != nil {
			return nil
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		m := new(store.Manifest)
		if err != nil || json.Unmarshal(b, m) != nil {
			return nil
		}
		p.skipped = len(m.NodeTypes) + len(m.Relations) + len(m.Tables)
		return m
	}}
}

// run writes all steps that are not done yet. On an error it leaves the finished ones.
func (p *piecewise) run() (_ *store.Manifest, err error) {
	p.skipped = 0
	w, err := store.Create(p.path, p.options())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = w.Leave()
		}
	}()
	if m, err := w.Parts(); err != nil || len(m.NodeTypes)+len(m.Relations)+len(m.Tables) < p.skipped {
		p.skipped = 0 // the journal named more than there was
	}
	for i, step := range []func() error{
		func() error { return w.AddNodeType("node", []int64{5, 3, 4}) },
		func() error {
			g, err := w.AddRelation("node", "to", "node", false)
			for v := range 3 {
				if err == nil {
					err = g.Append([]store.NodeID{store.NodeID(2 - v)})
				}
			}
			if err == nil {
				err = g.Close()
			}
			return err
		},
		func() error {
			f, err := w.AddTable("feat", "node", store.F32, 3, 16)
			for _, v := range []store.NodeID{2, 0, 1} {
				if err == nil {
					err = f.Put(v, make([]byte, 64))
				}
			}
			if err == nil {
				err = f.Close()
			}
			return err
		},
	} {
		if i < p.skipped {
			continue
		}
		if err := step(); err != nil {
			return nil, err
		}
		if err := p.journal(w); err != nil {
			return nil, err
		}
		p.kept = i + 1
	}
	p.kept = 0 // Seal removes the journal
	return w.Seal(store.Manifest{Name: "x", Order: "original"})
}

func (p *piecewise) journal(w *store.Writer) error {
	dir, err := w.WorkDir() // before Parts, which syncs its name
	if err != nil {
		return err
	}
	m, err := w.Parts()
	if err != nil {
		return err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	next := p.fs.PathJoin(dir, "next")
	f, err := p.fs.Create(next, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := p.fs.Rename(next, p.fs.PathJoin(dir, "journal")); err != nil {
		return err
	}
	d, err := p.fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func straight(t *testing.T) string {
	m, err := (&piecewise{fs: vfs.Default, path: filepath.Join(t.TempDir(), "x.gnn")}).run()
	require.NoError(t, err)
	return m.Seal
}

// TestContinueAfterEveryFailure fails the n-th operation, for every n, and runs again without
// failures: the dataset must be the same, with nothing beside it, and no finished step may be
// repeated.
func TestContinueAfterEveryFailure(t *testing.T) {
	want := straight(t)
	most := 0
	for n := int32(0); ; n++ {
		mem := vfs.NewMem()
		require.NoError(t, mem.MkdirAll("/d", 0o777))
		inj, fired := errorfs.OnIndex(n), false
		failing := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind != errorfs.OpStat && inj.MaybeError(op) != nil {
				fired = true
				return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
			}
			return nil
		}))
		m, err := (&piecewise{fs: failing, path: "/d/x.gnn"}).run()
		if err == nil && !fired {
			require.Greater(t, n, int32(60))
			break
		}
		if err != nil { // else the journal could not be read, but there was none
			require.ErrorIs(t, err, syscall.ENOSPC, "operation %d", n)
		}
		if _, serr := mem.Stat("/d/x.gnn"); serr != nil {
			again := &piecewise{fs: mem, path: "/d/x.gnn"}
			m, err = again.run()
			require.NoError(t, err, "operation %d", n)
			most = max(most, again.skipped)
		}
		if err == nil {
			require.Equal(t, want, m.Seal, "operation %d", n)
			names, err := mem.List("/d/x.gnn")
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"manifest.json", "ids", "topo", "feat"}, names, "operation %d", n)
			_, err = mem.Stat("/d/x.gnn.partial")
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
		if err != nil || n%32 == 0 {
			out := filepath.Join(t.TempDir(), "x.gnn")
			_, err = vfs.Clone(mem, vfs.Default, "/d/x.gnn", out)
			require.NoError(t, err)
			require.NoError(t, check(out), "operation %d", n)
		}
	}
	require.Equal(t, 3, most, "all steps were skipped when only the seal was missing")
}

// TestContinueAfterEveryCrash cuts the power at every operation, and loses some or all of what was
// not synced. No step that a journal names may be repeated.
func TestContinueAfterEveryCrash(t *testing.T) {
	want := straight(t)
	for n := 0; ; n++ {
		mem := vfs.NewCrashableMem()
		require.NoError(t, mem.MkdirAll("/d", 0o777))
		root, err := mem.OpenDir("/")
		require.NoError(t, err)
		require.NoError(t, root.Sync())
		var crashed *vfs.MemFS
		p := &piecewise{path: "/d/x.gnn"}
		ops, kept := 0, 0
		var alone sync.Mutex // several goroutines sync small sections
		p.fs = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				alone.Lock()
				defer alone.Unlock()
				if ops++; ops == n {
					kept = p.kept
					rng := rand.New(rand.NewPCG(uint64(n), 1))
					crashed = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: n % 3 * 50, RNG: rng})
				}
			}
			return nil
		}))
		_, err = p.run()
		require.NoError(t, err)
		if n == 0 {
			continue
		}
		if crashed == nil {
			require.Greater(t, n, 30)
			return
		}
		if _, err := crashed.Stat("/d/x.gnn"); err != nil {
			again := &piecewise{fs: crashed, path: "/d/x.gnn"}
			m, err := again.run()
			require.NoError(t, err, "operation %d", n)
			require.GreaterOrEqual(t, again.skipped, kept, "operation %d", n)
			require.Equal(t, want, m.Seal, "operation %d", n)
		}
		if n%8 > 0 {
			continue
		}
		out := filepath.Join(t.TempDir(), "x.gnn")
		_, err = vfs.Clone(crashed, vfs.Default, "/d/x.gnn", out)
		require.NoError(t, err)
		require.NoError(t, check(out), "operation %d", n)
	}
}

func TestContinue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gnn")
	var parts *store.Manifest
	begin := func() {
		w, err := store.Create(path, store.WriterOptions{})
		require.NoError(t, err)
		require.NoError(t, w.AddNodeType("node", []int64{1, 2}))
		require.NoError(t, w.AddSplit("given", "node", []store.NodeID{1}, nil, nil))
		parts, err = w.Parts()
		require.NoError(t, err)
		work, err := w.WorkDir()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(work, "notes"), []byte("kept"), 0o666))
		_, err = w.AddTable("feat", "node", store.F16, 2, 1) // open: lost
		require.NoError(t, err)
		require.NoError(t, w.Leave())
		require.NoError(t, w.Leave())
		require.PanicsWithValue(t, "store: use of a Writer after Seal, Abort or Leave", func() { w.WorkDir() })
	}
	again := func(m *store.Manifest) *store.Writer {
		w, err := store.Create(path, store.WriterOptions{Continue: func(work string) *store.Manifest {
			require.Equal(t, filepath.Join(path+".partial", "work"), work)
			return m
		}})
		require.NoError(t, err)
		return w
	}
	partial := func(name string) string { return filepath.Join(path+".partial", name) }

	begin()
	w := again(parts)
	require.FileExists(t, partial("work/notes"))
	require.FileExists(t, partial("split/given/train.u32"))
	require.NoDirExists(t, partial("feat"))
	require.NoError(t, w.Abort())
	require.NoDirExists(t, path+".partial")

	for name, spoil := range map[string]func(){
		"nil":       func() { parts = nil },
		"missing":   func() { require.NoError(t, os.Remove(partial("split/given/test.u32"))) },
		"cut":       func() { require.NoError(t, os.Truncate(partial("ids/node/order.u32"), 5000)) },
		"hostile":   func() { parts.Splits[0].Train.Path = "../../secret" },
		"directory": func() { parts.Splits[0].Train.Path = "split/given" },
		"nowhere":   func() { parts.Splits[0].Train.Path = "else/where" },
		"link": func() {
			require.NoError(t, os.Rename(partial("split"), path+".moved"))
			require.NoError(t, os.Symlink(path+".moved", partial("split")))
		},
	} {
		begin()
		spoil()
		w := again(parts)
		left, err := os.ReadDir(path + ".partial")
		require.NoError(t, err, name)
		require.Len(t, left, 1, "%s: only the lock is left", name)
		require.NoError(t, w.Abort())
	}
	require.FileExists(t, path+".moved/given/train.u32", "what a link leads to is not ours")
}

// TestContinueTable interrupts the writing of a table. It continues behind the closed shards, and
// the result equals a table written without interruption.
func TestContinueTable(t *testing.T) {
	const rows, dim = 41, 3
	row := func(v int) []byte {
		b := make([]byte, 4*dim)
		for i := range b {
			b[i] = byte(v*7 + i)
		}
		for i := 3; i < len(b); i += 4 {
			b[i] = 1 // finite
		}
		return b
	}
	write := func(dir string, stops ...int) string {
		path, at := filepath.Join(dir, "t.gnn"), 0
		var journal *store.Manifest
		for _, stop := range append(stops, rows) {
			w, err := store.Create(path, store.WriterOptions{ShardBytes: 16 * 5, Continue: func(work string) *store.Manifest { return journal }})
			require.NoError(t, err)
			if journal == nil {
				ids := make([]int64, rows)
				for i := range ids {
					ids[i] = int64(i)
				}
				require.NoError(t, w.AddNodeType("node", ids))
			}
			f, err := w.ContinueTable("rows", "node", store.F32, rows, dim)
			require.NoError(t, err)
			require.LessOrEqual(t, f.Done(), int64(at))
			require.Greater(t, f.Done()+5, int64(at), "no more than a shard is lost")
			for at = int(f.Done()); at < stop; at++ {
				require.NoError(t, f.Put(uint32(at), row(at)))
			}
			if stop < rows {
				journal, err = w.PartsWith(f)
				require.NoError(t, err)
				_, err := w.WorkDir()
				require.NoError(t, err)
				require.NoError(t, w.Leave())
				continue
			}
			require.NoError(t, f.Close())
			_, err = w.Seal(store.Manifest{Name: "t", Order: "original"})
			require.NoError(t, err)
		}
		return path
	}
	for _, stops := range [][]int{nil, {0}, {3}, {5}, {17, 18, 40}, {40, 40}} {
		ds, err := store.Open(write(t.TempDir(), stops...))
		require.NoError(t, err)
		for v := range rows {
			require.Equal(t, row(v), ds.Features(0).Row(uint32(v)))
		}
		require.NoError(t, ds.Close())
	}
}
