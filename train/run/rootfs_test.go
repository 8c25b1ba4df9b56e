package run

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// TestFilesOfAClosedDirectory: if only the owner may open the run directory, the same holds for
// each file in it, wherever it is moved. Otherwise the user's mask decides.
func TestFilesOfAClosedDirectory(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	for mode, want := range map[fs.FileMode][2]fs.FileMode{0o700: {0o600, 0o700}, 0o755: {0o644, 0o755}, 0o750: {0o644, 0o755}} {
		path := filepath.Join(t.TempDir(), "run")
		require.NoError(t, os.Mkdir(path, mode))
		d, err := Create(path)
		require.NoError(t, err)
		require.NoError(t, d.WriteRecord(new(Record)))
		require.NoError(t, d.AddCheckpoint(1, nil, nil, 1))
		require.NoError(t, d.Close())
		require.NoError(t, filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := e.Info()
			require.NoError(t, err)
			if at != path {
				require.Equal(t, want[map[bool]int{true: 1}[e.IsDir()]], info.Mode().Perm(), at)
			}
			return nil
		}))
	}
}

// TestRootFS: no operation on a name leads outside the directory or through a link. A lock does not
// change its file. A file created anew shares nothing with other names.
func TestRootFS(t *testing.T) {
	work := t.TempDir()
	path, victim := filepath.Join(work, "run"), filepath.Join(work, "victim")
	require.NoError(t, os.MkdirAll(filepath.Join(victim, "sub"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(victim, "mine"), []byte("mine"), 0o666))
	f, err := makeRoot(path)
	require.NoError(t, err)
	defer f.Close()
	at := func(name string) string { return filepath.Join(path, name) }
	uses := func(name string) map[string]error {
		_, create := f.Create(name, vfs.WriteCategoryUnspecified)
		_, open := f.Open(name)
		_, write := f.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
		_, dir := f.OpenDir(name)
		_, list := f.List(name)
		_, stat := f.Stat(name)
		_, lock := f.Lock(name)
		_, usage := f.GetDiskUsage(name)
		return map[string]error{"create": create, "open": open, "write": write, "dir": dir, "list": list, "stat": stat, "lock": lock, "usage": usage,
			"mkdir": f.MkdirAll(name, 0o777), "from": f.Rename(name, at("x")), "to": f.Rename(at("plain"), name)}
	}
	require.NoError(t, os.WriteFile(at("plain"), []byte("plain"), 0o666))
	require.NoError(t, os.Symlink(victim, at("dir")))
	require.NoError(t, os.Symlink(filepath.Join(victim, "mine"), at("file")))
	require.NoError(t, os.Symlink("plain", at("inside")))
	require.NoError(t, os.Symlink("/nowhere", at("dangling")))
	for _, name := range []string{"dir", "dir/mine", "dir/new", "dir/sub", "file", "inside", "dangling"} {
		for use, err := range uses(at(name)) {
			require.ErrorIs(t, err, errNotPlain, "%s of %s", use, name)
		}
	}
	for _, name := range []string{victim, at("../victim/mine"), work, "/etc", "/"} {
		for use, err := range uses(name) {
			require.ErrorContains(t, err, "outside the run directory", "%s of %s", use, name)
		}
		require.Error(t, f.Remove(name))
		require.Error(t, f.RemoveAll(name))
	}
	require.ErrorIs(t, f.Remove(at("dir/mine")), errNotPlain)
	require.ErrorIs(t, f.RemoveAll(at("dir/sub")), errNotPlain)
	require.NoError(t, f.RemoveAll(at("dir")), "the link itself")
	require.FileExists(t, filepath.Join(victim, "mine"))
	require.DirExists(t, filepath.Join(victim, "sub"))

	lock, err := f.Lock(at("plain"))
	require.NoError(t, err)
	_, err = f.Lock(at("plain"))
	require.Error(t, err)
	require.NoError(t, lock.Close())
	lock, err = f.Lock(at("plain"))
	require.NoError(t, err)
	require.NoError(t, lock.Close())
	b, err := os.ReadFile(at("plain"))
	require.NoError(t, err)
	require.Equal(t, "plain", string(b))

	require.NoError(t, os.Link(filepath.Join(victim, "mine"), at("hard")))
	made, err := f.Create(at("hard"), vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = made.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, made.Close())
	b, err = os.ReadFile(filepath.Join(victim, "mine"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(b))
}
