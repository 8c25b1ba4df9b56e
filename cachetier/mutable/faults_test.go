package mutable_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
)

// TestReadsThatFail has the reads of a range of steps fail from some read on. All rows written back
// by then are there after Reset, in memory and in a checkpoint, and the run goes on. If the
// write-back itself fails, no checkpoint can follow.
func TestReadsThatFail(t *testing.T) {
	const rows, size = 70, 500
	for seed := range uint64(32) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var reads atomic.Int64
		var trouble atomic.Bool
		after := int64(rng.IntN(12))
		o := mutable.Options{
			Place: mutable.Place{Dir: filepath.Join(t.TempDir(), "table"), Run: "this"}, Rows: rows, RowBytes: size, Initial: initial, Lag: 1 + int(seed%3),
			Cache: cachetier.Options{
				HostBytes: []int64{0, 4700 + 20*size, 4700 + 30*size, 4700 + 50*size}[rng.IntN(4)], Engine: []disk.Kind{disk.Pread, disk.Uring}[seed%2], Readers: 4,
				Policy: []cachetier.Policy{cachetier.Belady, cachetier.LRU, cachetier.Sieve, cachetier.None}[rng.IntN(4)],
				Faults: func(int, int64, int) disk.Fault {
					if trouble.Load() && reads.Add(1) > after {
						return disk.Fault{Errno: syscall.EIO}
					}
					return disk.Fault{}
				},
			},
		}
		table, err := mutable.Open(bg, o)
		require.NoError(t, err)
		require.NoError(t, table.Begin(bg))
		model := newOracle(o.Lag, size)
		within(func() {
			for range 3 {
				require.NoError(t, take(table, model, randomGroups(rng, rows), 2, false))
			}
			trouble.Store(true)
			groups := slices.Concat(randomGroups(rng, rows), randomGroups(rng, rows))
			states := []map[uint32][]byte{maps.Clone(model.rows)} // after each step
			whole := newOracle(o.Lag, size)
			whole.rows, whole.steps = maps.Clone(model.rows), model.steps
			for _, s := range slices.Concat(groups...) {
				whole.take(s)
				seen := maps.Clone(whole.rows)
				for _, wrote := range whole.pending {
					maps.Copy(seen, wrote)
				}
				states = append(states, seen)
			}
			model.passed = 0
			err = take(table, model, groups, 2, seed%4 > 1)
			passed := model.passed
			trouble.Store(false)
			if err != nil {
				var read *disk.ReadError
				require.True(t, errors.As(err, &read), "%v", err)
				table.Reset()
			}
			if model.failed { // a step was used but not written back: no checkpoint may follow
				_, again := table.Checkpoint(1)
				require.Equal(t, err, again)
				return
			}
			check := func() {
				_, err = table.Checkpoint(int64(model.steps))
				require.NoError(t, err)
				got, err := each(table)
				require.NoError(t, err)
				require.Equal(t, model.all(), got)
			}
			model.rows, model.pending = maps.Clone(states[passed]), nil
			if seed%4 != 0 {
				check()
			} else if table.Peek(bg, nil, nil) != nil { // evicted rows could not be written
				require.NoError(t, table.Flush())
			}
			require.NoError(t, take(table, model, randomGroups(rng, rows), 2, false))
			check()
		})
		require.NoError(t, table.Close())
	}
}

// written makes a table with two checkpoints, both kept. It returns the second one, and the rows.
func written(t *testing.T, o mutable.Options) (mutable.Mark, []string) {
	table, err := mutable.Open(bg, o)
	require.NoError(t, err)
	defer table.Close()
	require.NoError(t, table.Begin(bg))
	rng := rand.New(rand.NewPCG(5, 5))
	model := newOracle(o.Lag, o.RowBytes)
	var m mutable.Mark
	for step := range int64(2) {
		require.NoError(t, take(table, model, randomGroups(rng, o.Rows), 2, false))
		m, err = table.Checkpoint(step)
		require.NoError(t, err)
	}
	return m, model.all()
}

// TestFlippedBits flips a bit of a file: resuming or reading finds it and names the file, or no row
// changes.
func TestFlippedBits(t *testing.T) {
	o := mutable.Options{Place: mutable.Place{FS: vfs.NewMem(), Dir: "/table", Run: "this"}, Rows: 50, RowBytes: 70, Initial: initial}
	m, want := written(t, o)
	names, err := o.FS.List(o.Dir)
	require.NoError(t, err)
	require.Len(t, names, 4)
	rng := rand.New(rand.NewPCG(1, 1))
	inRows := 0
	for _, name := range names {
		f, err := o.FS.OpenReadWrite(o.FS.PathJoin(o.Dir, name), vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		info, err := f.Stat()
		require.NoError(t, err)
		for at := int64(0); at < info.Size(); at += 1 + rng.Int64N(stride(30)) {
			if name[:4] == "rows" && at > 100 && at < 4092 { // skip the rest of the header, which has one checksum
				at = 4092
			}
			flip := func() {
				var b [1]byte
				_, err := f.ReadAt(b[:], at)
				require.NoError(t, err)
				b[0] ^= 1 << (at % 8)
				_, err = f.WriteAt(b[:], at)
				require.NoError(t, err)
			}
			flip()
			table, err := mutable.Open(bg, o)
			require.NoError(t, err)
			var got []string
			if err = table.Resume(bg, m); err == nil {
				got, err = each(table)
			}
			if err != nil {
				require.ErrorIs(t, err, mutable.ErrDamaged)
				require.ErrorContains(t, err, name)
				require.NotContains(t, err.Error(), "\n")
				if strings.Contains(err.Error(), "at 0x") {
					inRows++
				}
			} else {
				require.Equal(t, want, got, "%s at %d", name, at)
				require.Equal(t, "rows", name[:4])
			}
			require.NoError(t, table.Close())
			flip()
		}
		require.NoError(t, f.Close())
	}
	require.Positive(t, inRows)
}

// TestRefused checks that files that are missing, cut or foreign are refused in a line that names
// the file and what to do, and that nothing is changed.
func TestRefused(t *testing.T) {
	const lists, rows = "gen-000000000001", "rows-00000001"
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string, o *mutable.Options, m *mutable.Mark)
		want   string
	}{
		{"a list that is gone", func(t *testing.T, dir string, _ *mutable.Options, _ *mutable.Mark) {
			require.NoError(t, os.Remove(filepath.Join(dir, "gen-000000000000")))
		}, "gen-000000000000: the file is gone; restore it, go on from an older checkpoint"},
		{"rows that are gone", func(t *testing.T, dir string, _ *mutable.Options, _ *mutable.Mark) {
			require.NoError(t, os.Remove(filepath.Join(dir, rows)))
		}, rows + ": the file is gone; restore it"},
		{"a list that was cut", func(t *testing.T, dir string, _ *mutable.Options, _ *mutable.Mark) {
			require.NoError(t, os.Truncate(filepath.Join(dir, lists), 90))
		}, lists + ": it has 90 bytes, and a list of 50 rows has 96: it was cut"},
		{"rows that were cut", func(t *testing.T, dir string, _ *mutable.Options, _ *mutable.Mark) {
			require.NoError(t, os.Truncate(filepath.Join(dir, rows), 4096+16))
		}, rows + ": it has 4112 bytes, and its rows take 8192: it was cut or added to"},
		{"no header", func(t *testing.T, dir string, _ *mutable.Options, _ *mutable.Mark) {
			require.NoError(t, os.Truncate(filepath.Join(dir, rows), 0))
		}, rows + ": it has no header: it was cut"},
		{"something else", func(t *testing.T, dir string, _ *mutable.Options, _ *mutable.Mark) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, rows), make([]byte, 8192), 0o666))
		}, rows + `: it begins with "\x00\x00`},
		{"a directory", func(t *testing.T, dir string, _ *mutable.Options, _ *mutable.Mark) {
			require.NoError(t, os.Remove(filepath.Join(dir, rows)))
			require.NoError(t, os.Mkdir(filepath.Join(dir, rows), 0o777))
		}, "it is a directory, not a file"},
		{"one file for another", func(t *testing.T, dir string, _ *mutable.Options, _ *mutable.Mark) {
			require.NoError(t, os.Rename(filepath.Join(dir, "rows-00000002"), filepath.Join(dir, rows)))
		}, rows + ": it is file 2 of the table, and file 1 is looked for"},
		{"one list for another", func(t *testing.T, dir string, _ *mutable.Options, _ *mutable.Mark) {
			require.NoError(t, os.Rename(filepath.Join(dir, "gen-000000000000"), filepath.Join(dir, lists)))
		}, lists + ": it is the list of step 0"},
		{"another run", func(_ *testing.T, _ string, o *mutable.Options, _ *mutable.Mark) {
			o.Run = "that"
		}, lists + ": it is of another run or table"},
		{"other rows", func(_ *testing.T, _ string, o *mutable.Options, _ *mutable.Mark) {
			o.RowBytes = 44
		}, "the checkpoint has 50 rows of 40 bytes, and the table 50 of 44"},
		{"no step", func(_ *testing.T, _ string, _ *mutable.Options, m *mutable.Mark) {
			m.Step = -1
		}, "no checkpoint is of step -1"},
		{"another checkpoint", func(_ *testing.T, _ string, _ *mutable.Options, m *mutable.Mark) {
			m.Step = 7
		}, "gen-000000000007: the file is gone"},
		{"more than there is room for", func(_ *testing.T, _ string, o *mutable.Options, _ *mutable.Mark) {
			o.FS = small{vfs.Default}
		}, "no space left on device: the rows that steps rewrite may take 16.9 KiB more, and it has 1000 B; fewer checkpoints take less"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "table")
			o := mutable.Options{Place: mutable.Place{Dir: dir, Run: "this"}, Rows: 50, RowBytes: 40, Initial: initial}
			m, _ := written(t, o)
			c.change(t, dir, &o, &m)
			before := contents(t, dir)
			table, err := mutable.Open(bg, o)
			require.NoError(t, err)
			defer table.Close()
			err = table.Resume(bg, m)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			require.Equal(t, before, contents(t, dir))
		})
	}
}

// small is a file system with little space left.
type small struct{ vfs.FS }

func (s small) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: 1000}, nil
}

// contents returns the files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		b, _ := os.ReadFile(filepath.Join(dir, e.Name())) // a directory has none
		files[e.Name()] = string(b)
	}
	return files
}

// TestOptionsRefused checks that an error reports all invalid options at once.
func TestOptionsRefused(t *testing.T) {
	_, err := mutable.Open(bg, mutable.Options{Kept: -1, Touched: 3})
	require.ErrorContains(t, err, "a table of 0 rows: use 1 to 4294967295\nrows of 0 bytes: use 1 to 16777216\n-1 checkpoints at a time")
	o := mutable.Options{Place: mutable.Place{FS: vfs.NewMem(), Dir: "/table"}, Rows: 5, RowBytes: 8, Lag: 2000}
	_, err = mutable.Open(bg, o)
	require.ErrorContains(t, err, "a lag of 2000 steps: use 1 to 1024")
	o.Lag, o.Cache.Policy = 1, "best"
	_, err = mutable.Open(bg, o)
	require.ErrorContains(t, err, `unknown cache policy "best"`)
	o.Cache.Policy = ""
	table, err := mutable.Open(bg, o)
	require.NoError(t, err)
	defer table.Close()
	require.PanicsWithValue(t, "mutable: Write before Begin or Resume", func() { _ = table.Write(nil, nil) })
	require.NoError(t, table.Begin(bg))
	_, err = table.Checkpoint(3)
	require.NoError(t, err)
	require.ErrorContains(t, table.Retain(bg, 2), "no checkpoint of step 2 is there to keep")
	_, err = table.Checkpoint(2)
	require.ErrorContains(t, err, "a checkpoint of step 2 after that of step 3")
	require.PanicsWithValue(t, "cachetier: Write of a step that is not gathered", func() { _ = table.Write(nil, nil) })
	require.PanicsWithValue(t, "cachetier: Passed of a step that is not gathered", func() { table.Passed() })
	require.Contains(t, fmt.Sprint(table.Engine()), "buffered")
}

// TestShowOfUnsealed checks that Show does not lose rows that are in no checkpoint, in memory or on
// disk.
func TestShowOfUnsealed(t *testing.T) {
	for _, host := range []int64{0, 10_000} {
		table, err := mutable.Open(bg, mutable.Options{
			Place: mutable.Place{FS: vfs.NewMem(), Dir: "/table"}, Rows: 100, RowBytes: 8, Cache: cachetier.Options{HostBytes: host},
		})
		require.NoError(t, err)
		defer table.Close()
		require.NoError(t, table.Begin(bg))
		_, err = table.Checkpoint(1)
		require.NoError(t, err)
		require.NoError(t, table.ShowNow(bg), "nothing to take back")
		table.Expect([][]uint32{{3}})
		w, err := table.Next(bg, 1)
		require.NoError(t, err)
		w.Keep()
		require.NoError(t, w.Load(bg))
		require.NoError(t, w.Gather(bg, 0, make([]byte, 8)))
		require.NoError(t, table.Write([]uint32{0}, []byte("changed!")))
		w.Release()
		table.Passed()
		require.Panics(t, func() { _ = table.Show(bg, 1) }, "row 3 is in no checkpoint")
	}
}
