package graph

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
)

// within ends the tests, and shows who waits for what, if do takes much longer than any machine
// needs: it hangs.
func within(do func()) {
	defer time.AfterFunc(time.Minute, func() { panic("it hangs") }).Stop()
	do()
}

// begun runs o in path, or goes on with the run there.
func begun(ctx context.Context, ds *store.Dataset, path string, o run.Options, faults disk.Faults) (r *run.Result, err error) {
	within(func() {
		r, err = runWith(ctx, ds, func() (*run.Dir, error) {
			d, _, err := run.Open(path)
			return d, err
		}, o, "test", run.Hooks{}, internal{faults: faults})
	})
	return r, err
}

// TestSlowAndShort: reads that come short, and a disk that takes a hundred times as long, change
// nothing.
func TestSlowAndShort(t *testing.T) {
	ds := open(t, storetest.Communities(500, 4, 8, 200, 2))
	want := trained(t, ds, outOfCore(ds, disk.Pread))
	for _, engine := range disk.Kinds[1:] {
		var n atomic.Int64
		got, err := begun(t.Context(), ds, t.TempDir(), outOfCore(ds, engine), func(_ int, _ int64, size int) disk.Fault {
			switch n.Add(1) % 4 {
			case 0:
				return disk.Fault{Short: size / 3}
			case 1:
				return disk.Fault{Delay: 5 * time.Millisecond}
			}
			return disk.Fault{}
		})
		require.NoError(t, err)
		require.Greater(t, n.Load(), int64(20))
		sameWork(t, want, got, engine)
	}
}

// TestFailedRead makes one read fail, anywhere in a run: a line names the read, no step is lost,
// and the resumed run ends as the one that never failed.
func TestFailedRead(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(500, 4, 8, 100, 2))
	points := 6
	if testing.Short() {
		points = 3
	}
	for _, engine := range disk.Kinds[1:] {
		o := outOfCore(ds, engine)
		o.CheckpointEvery = 5
		var reads atomic.Int64
		count := func(int, int64, int) disk.Fault { reads.Add(1); return disk.Fault{} }
		want, err := begun(t.Context(), ds, t.TempDir(), o, count)
		require.NoError(t, err)
		total := reads.Load()
		for point := range points {
			at := 1 + total*int64(point)/int64(points)
			reads.Store(0)
			path := filepath.Join(t.TempDir(), "run")
			_, err := begun(t.Context(), ds, path, o, func(int, int64, int) disk.Fault {
				if reads.Add(1) == at {
					return disk.Fault{Errno: syscall.EIO}
				}
				return disk.Fault{}
			})
			require.ErrorIs(t, err, syscall.EIO)
			require.Regexp(t, `read \d+ bytes of \S+/(feat-00000.f16|neighbors.u32|offsets.u64) at 0x[0-9a-f]+: input/output error`, err.Error())
			require.NotContains(t, err.Error(), "\n")
			if !run.Begun(path) { // the first of all reads came to nothing, and so did the run
				require.NoDirExists(t, path)
			} else {
				require.ErrorContains(t, err, "no step is lost: go on with gnnstore train {resume} {run} "+path)
				r, rerr := run.Read(path)
				require.NoError(t, rerr)
				require.Equal(t, run.Failed, r.Status)
				require.Equal(t, err.Error(), r.Error)
			}
			got, err := begun(t.Context(), ds, path, o, nil)
			require.NoError(t, err)
			sameWork(t, want, got, "%s: read %d of %d", engine, at, total)
		}
	}
}

// TestDeadDisk: where no read comes back any more, the run ends, and says so.
func TestDeadDisk(t *testing.T) {
	ds := open(t, storetest.Communities(500, 4, 8, 100, 2))
	for _, engine := range disk.Kinds[1:] {
		var n atomic.Int64
		_, err := begun(t.Context(), ds, filepath.Join(t.TempDir(), "run"), outOfCore(ds, engine), func(int, int64, int) disk.Fault {
			if n.Add(1) > 30 {
				return disk.Fault{Errno: syscall.EIO, Delay: time.Millisecond}
			}
			return disk.Fault{}
		})
		require.ErrorIs(t, err, syscall.EIO)
		require.Equal(t, 1, strings.Count(err.Error(), "input/output error"), "%v", err)
	}
}

// TestInterruptedWhileReading ends a run at any of its reads, on a disk so slow that the rest of a
// window would take minutes: what is under way comes, nothing else is asked for, and going on ends
// as a run that was never cut.
func TestInterruptedWhileReading(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(500, 4, 8, 100, 2))
	points := 4
	if testing.Short() {
		points = 3
	}
	for _, engine := range disk.Kinds[1:] {
		o := outOfCore(ds, engine)
		o.Cache.Readers = 4
		var reads atomic.Int64
		want, err := begun(t.Context(), ds, t.TempDir(), o, func(int, int64, int) disk.Fault { reads.Add(1); return disk.Fault{} })
		require.NoError(t, err)
		total := reads.Load()
		for point := range points {
			at := 1 + total*int64(point)/int64(points)
			reads.Store(0)
			ctx, cancel := context.WithCancel(context.Background())
			path := filepath.Join(t.TempDir(), "run")
			r, err := begun(ctx, ds, path, o, func(int, int64, int) disk.Fault {
				n := reads.Add(1)
				if n == at {
					cancel()
				}
				if n >= at {
					return disk.Fault{Delay: 20 * time.Millisecond}
				}
				return disk.Fault{}
			})
			cancel()
			// Of two readers, of rows and of lists, what each had under way.
			require.Less(t, reads.Load()-at, int64(2*(4+2)), "%s: read %d of %d", engine, at, total)
			if !run.Begun(path) {
				require.Equal(t, context.Canceled, err)
				require.NoDirExists(t, path)
			} else {
				require.NoError(t, err)
				require.Equal(t, run.Interrupted, r.Status)
			}
			got, err := begun(t.Context(), ds, path, o, nil)
			require.NoError(t, err)
			sameWork(t, want, got, "%s: read %d of %d", engine, at, total)
		}
	}
}

// TestReplacedWhileTraining: a section that another file takes the place of goes on being read, as
// it was. One that is written to ends the run before a step on it is kept; once it is restored, the
// run goes on as if nothing had been.
func TestReplacedWhileTraining(t *testing.T) {
	for _, file := range []string{"feat/node/feat-00000.f16", "topo/node__to__node/neighbors.u32", "label/node/label.i32"} {
		for _, engine := range []disk.Kind{disk.Mmap, disk.Pread, disk.Uring} {
			ds := open(t, storetest.Communities(500, 4, 8, 100, 2))
			o := outOfCore(ds, engine)
			want := trained(t, ds, o)
			section := filepath.Join(ds.Path(), file)
			sound, err := os.ReadFile(section)
			require.NoError(t, err)
			at := func(step int, do func()) run.Hooks {
				return run.Hooks{Step: func(epoch, n, _ int, _ float64) {
					if epoch == 1 && n == step {
						do()
					}
				}}
			}
			got, err := Run(t.Context(), ds, scratch(t), o, "test", at(2, func() {
				other := section + ".other"
				require.NoError(t, os.WriteFile(other, make([]byte, len(sound)), 0o666))
				require.NoError(t, os.Rename(other, section))
			}))
			require.NoError(t, err)
			sameWork(t, want, got)
			require.NoError(t, os.WriteFile(section, sound, 0o666))

			path := t.TempDir()
			ds, err = store.Open(ds.Path())
			require.NoError(t, err)
			t.Cleanup(func() { ds.Close() })
			_, err = Run(t.Context(), ds, in(path), o, "test", at(2, func() {
				f, err := os.OpenFile(section, os.O_WRONLY, 0)
				require.NoError(t, err)
				_, err = f.WriteAt(make([]byte, 512), int64(store.PageSize)) // neighbour 0, class 0 and rows of zeros are all possible
				require.NoError(t, errors.Join(err, f.Close()))
			}))
			require.ErrorIs(t, err, store.ErrCorrupt)
			require.Regexp(t, file+"(: it was written to while in use; run gnnstore verify| at 0x1000: the checksum of this page is )", err.Error())
			require.NotContains(t, err.Error(), "\n")
			require.NoDirExists(t, filepath.Join(path, run.CheckpointDir), "no step was worth keeping")
			require.NoError(t, os.WriteFile(section, sound, 0o666))
			ds, err = store.Open(ds.Path())
			require.NoError(t, err)
			t.Cleanup(func() { ds.Close() })
			got, err = begun(t.Context(), ds, path, o, nil)
			require.NoError(t, err)
			sameWork(t, want, got)
		}
	}
}
