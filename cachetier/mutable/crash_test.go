package mutable_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
)

// run keeps checkpoints of a table as training does: a record file names the present ones.
type run struct {
	fs     vfs.FS
	o      mutable.Options
	model  *oracle
	states map[int64]map[uint32][]byte // rows of each checkpoint ever made
	marks  []mutable.Mark              // the present checkpoints
}

const crashRows, crashSize = 40, 100

func newRun(fsys vfs.FS, lag int) *run {
	return &run{
		fs: fsys, model: newOracle(lag, crashSize), states: map[int64]map[uint32][]byte{},
		o: mutable.Options{
			Place: mutable.Place{FS: fsys, Dir: "/run/table", Run: "this"}, Rows: crashRows, RowBytes: crashSize, Initial: initial, Kept: 3, Lag: lag,
			Cache: cachetier.Options{HostBytes: 3500},
		},
	}
}

// record replaces the record of the present checkpoints, and syncs it before it returns.
func (r *run) record() error {
	b, err := json.Marshal(r.marks)
	if err != nil {
		return err
	}
	f, err := r.fs.Create("/run/record.tmp", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = cmp.Or(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := r.fs.Rename("/run/record.tmp", "/run/record"); err != nil {
		return err
	}
	d, err := r.fs.OpenDir("/run")
	if err != nil {
		return err
	}
	return cmp.Or(d.Sync(), d.Close())
}

// recorded returns the checkpoints on record in a file system.
func recorded(t *testing.T, fsys vfs.FS) (marks []mutable.Mark) {
	f, err := fsys.Open("/run/record")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &marks))
	return marks
}

// work trains for some epochs: steps, a checkpoint, and a choice of the checkpoints to keep, all
// drawn from seed.
func (r *run) work(seed uint64, epochs int) error {
	rng := rand.New(rand.NewPCG(seed, 7))
	table, err := mutable.Open(bg, r.o)
	if err != nil {
		return err
	}
	defer table.Close()
	if err := table.Begin(bg); err != nil {
		return err
	}
	for epoch := range int64(epochs) {
		if epoch == 3 && seed%2 == 0 {
			if err := table.Clear(bg); err != nil {
				return err
			}
			clear(r.model.rows)
		}
		if err := take(table, r.model, randomGroups(rng, crashRows), 2, false); err != nil {
			return err
		}
		r.states[epoch] = maps.Clone(r.model.rows)
		mark, err := table.Checkpoint(epoch)
		if err != nil {
			return err
		}
		r.marks = append(r.marks, mark)
		if err := r.record(); err != nil {
			return err
		}
		if len(r.marks) <= 2 {
			continue
		}
		r.marks = slices.Delete(r.marks, rng.IntN(2), 2) // both older ones, or the one in the middle
		if err := r.record(); err != nil {
			return err
		}
		var kept []int64
		for _, m := range r.marks {
			kept = append(kept, m.Step)
		}
		if err := table.Retain(bg, kept...); err != nil {
			return err
		}
	}
	return nil
}

// resumes checks that the table resumes exactly, from every checkpoint on record, the newest first.
func (r *run) resumes(t *testing.T, fsys vfs.FS) {
	marks := recorded(t, fsys)
	o := r.o
	o.FS = fsys
	table, err := mutable.Open(bg, o)
	require.NoError(t, err)
	defer table.Close()
	if len(marks) == 0 {
		require.NoError(t, table.Begin(bg))
		return
	}
	for i, m := range slices.Backward(marks) {
		require.NoError(t, table.Resume(bg, m))
		got, err := each(table)
		require.NoError(t, err)
		require.Equal(t, (&oracle{rows: r.states[m.Step]}).all(), got, "step %d", m.Step)
		var kept []int64
		for _, other := range marks[:i+1] {
			kept = append(kept, other.Step)
		}
		require.NoError(t, table.Retain(bg, kept...))
		for _, step := range kept {
			require.NoError(t, table.Show(bg, step))
			got, err := each(table)
			require.NoError(t, err)
			require.Equal(t, (&oracle{rows: r.states[step]}).all(), got, "step %d", step)
		}
		require.NoError(t, table.ShowNow(bg))
	}
	model := newOracle(o.Lag, o.RowBytes)
	model.rows = maps.Clone(r.states[marks[0].Step])
	require.NoError(t, take(table, model, randomGroups(rand.New(rand.NewPCG(1, 1)), crashRows), 2, false))
}

// operations counts the operations of a whole run that change files.
func operations(t *testing.T, seed uint64, epochs int) (n int64) {
	var ops atomic.Int64
	r := newRun(errorfs.Wrap(onDisk(t), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			ops.Add(1)
		}
		return nil
	})), 1)
	require.NoError(t, r.work(seed, epochs))
	return ops.Load()
}

// onDisk returns a file system that can lose power, with the directory of the run.
func onDisk(t *testing.T) *vfs.MemFS {
	disk := vfs.NewCrashableMem()
	require.NoError(t, disk.MkdirAll("/run", 0o777))
	root, err := disk.OpenDir("/")
	require.NoError(t, err)
	require.NoError(t, root.Sync())
	return disk
}

// TestPowerLoss cuts the power before each write, sync, rename and removal, and within a write as
// far as the file system simulates that: block by block, what was not synced is there or not. The
// run resumes from every checkpoint on record, with exactly its rows.
func TestPowerLoss(t *testing.T) {
	const epochs = 6
	for seed := range uint64(4) {
		for at, n := int64(seed), operations(t, seed, epochs); at < n; at += stride(9) {
			disk := onDisk(t)
			rng := rand.New(rand.NewPCG(seed, uint64(at)))
			var ops atomic.Int64
			var left *vfs.MemFS
			r := newRun(errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && ops.Add(1)-1 == at {
					left = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 50, 100}[rng.IntN(3)], RNG: rng})
				}
				return nil
			})), 1+int(seed)%2)
			require.NoError(t, r.work(seed, epochs))
			if left != nil {
				r.resumes(t, left)
			}
		}
	}
}

// TestEveryWriteFails has each write, sync, rename and removal fail in turn, and all after it: the
// run ends with an error in one line, and resumes from every checkpoint on record. A full disk
// still removes files, a broken one does not.
func TestEveryWriteFails(t *testing.T) {
	const epochs = 5
	for seed := range uint64(2) {
		full := seed == 0
		for at, n := int64(0), operations(t, seed, epochs); at < n; at += stride(5) {
			disk := onDisk(t)
			var ops atomic.Int64
			r := newRun(errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
				switch {
				case op.Kind.ReadOrWrite() == errorfs.OpIsRead || ops.Add(1)-1 < at:
					return nil
				case full && op.Kind == errorfs.OpRemove:
					return nil
				case full:
					return syscall.ENOSPC
				}
				return syscall.EIO
			})), 1)
			if err := r.work(seed, epochs); full && err != nil {
				require.ErrorIs(t, err, syscall.ENOSPC)
				require.NotContains(t, err.Error(), "\n")
			} else if err != nil {
				require.ErrorIs(t, err, syscall.EIO)
			}
			r.resumes(t, disk)
		}
	}
}

// TestCrashInAMerge resumes when the list of a merged generation is still there. The next one has
// taken over its row file. Since it was the first after a Clear, no list names it as the one
// before.
func TestCrashInAMerge(t *testing.T) {
	broken := false
	r := newRun(errorfs.Wrap(onDisk(t), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken && op.Kind == errorfs.OpRemove {
			return syscall.EIO
		}
		return nil
	})), 1)
	table, err := mutable.Open(bg, r.o)
	require.NoError(t, err)
	require.NoError(t, table.Begin(bg))
	all := func(rows uint32) (s step) {
		for v := range rows {
			s.reads, s.writes = append(s.reads, v), append(s.writes, v)
		}
		return s
	}
	checkpoint := func(number int64, rows uint32) {
		require.NoError(t, take(table, r.model, [][]step{{all(rows)}}, 1, false))
		mark, err := table.Checkpoint(number)
		require.NoError(t, err)
		r.states[number], r.marks = maps.Clone(r.model.rows), append(r.marks, mark)
	}
	checkpoint(0, 9)
	require.NoError(t, table.Clear(bg))
	clear(r.model.rows)
	checkpoint(1, crashRows)
	checkpoint(2, 1)
	r.marks = r.marks[2:]
	require.NoError(t, table.Retain(bg, 1, 2)) // so that the generation of 1 is the first
	require.NoError(t, r.record())
	broken = true
	require.ErrorIs(t, table.Retain(bg, 2), syscall.EIO)
	_ = table.Close()
	broken = false
	r.resumes(t, r.fs)
}

// stride skips most fault positions in a short test.
func stride(n int64) int64 {
	if testing.Short() {
		return 5 * n
	}
	return n
}
