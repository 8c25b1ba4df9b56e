package store

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// removed is a file system that calls meanwhile once, just after a lock file was opened: there the
// lock's holder may release it, and somebody else take it.
type removed struct {
	vfs.FS
	meanwhile func()
}

func (r *removed) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	f, err := r.FS.OpenReadWrite(name, c, o...)
	if do := r.meanwhile; do != nil {
		r.meanwhile = nil
		do()
	}
	return f, err
}

// TestLock checks that a lock has one holder at a time, even if the file is removed and made anew
// after somebody opened it, and that Release leaves no file.
func TestLock(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{filepath.Join(t.TempDir(), "x.lock"): vfs.Default, "x.lock": vfs.NewMem()} {
		first, err := TakeLock(fsys, name)
		require.NoError(t, err)
		_, err = TakeLock(fsys, name)
		require.ErrorIs(t, err, ErrLocked)
		require.NoError(t, first.Release())
		_, err = fsys.Stat(name)
		require.ErrorIs(t, err, os.ErrNotExist)
	}

	name := filepath.Join(t.TempDir(), "x.lock")
	first, err := TakeLock(vfs.Default, name)
	require.NoError(t, err)
	var second *Lock
	_, err = TakeLock(&removed{vfs.Default, func() {
		require.NoError(t, first.Release())
		second, err = TakeLock(vfs.Default, name)
		require.NoError(t, err)
	}}, name)
	require.ErrorIs(t, err, ErrLocked)
	last, err := TakeLock(&removed{vfs.Default, func() { require.NoError(t, second.Release()) }}, name)
	require.NoError(t, err)
	require.FileExists(t, name)
	require.NoError(t, last.Release())

	// Many at once.
	var holders, most atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 300 {
				l, err := TakeLock(vfs.Default, name)
				if err != nil {
					continue
				}
				most.Store(max(most.Load(), holders.Add(1)))
				holders.Add(-1)
				if err := l.Release(); err != nil {
					most.Store(100)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, most.Load())
}

// TestLockOfOthers takes over an empty file that an earlier process left, and keeps a file that is
// not a lock as it is.
func TestLockOfOthers(t *testing.T) {
	name := filepath.Join(t.TempDir(), "poetry.lock")
	require.NoError(t, os.WriteFile(name, []byte("mine"), 0o666))
	_, err := TakeLock(vfs.Default, name)
	require.EqualError(t, err, name+": it is wanted for a lock, and is no empty file; move it away")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))

	require.NoError(t, os.Truncate(name, 0))
	l, err := TakeLock(vfs.Default, name)
	require.NoError(t, err)
	require.NoError(t, l.Release())
	require.NoFileExists(t, name)
}
