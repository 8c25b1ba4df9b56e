package run

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRemove: only a run that is not at work is removed, and no link in it is followed.
func TestRemove(t *testing.T) {
	begin := func(t *testing.T) (path, outside string) {
		dir := t.TempDir()
		path, outside = filepath.Join(dir, "run"), filepath.Join(dir, "outside")
		require.NoError(t, os.MkdirAll(filepath.Join(path, CheckpointDir), 0o777))
		require.NoError(t, os.Mkdir(outside, 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(path, RecordFile), []byte("{}"), 0o666))
		require.NoError(t, os.WriteFile(filepath.Join(path, "metrics.jsonl.tmp"), nil, 0o666))
		require.NoError(t, os.WriteFile(filepath.Join(outside, "file"), nil, 0o666))
		return path, outside
	}
	fine := func() error { return nil }
	t.Run("run", func(t *testing.T) {
		path, _ := begin(t)
		require.NoError(t, Remove(path, fine))
		require.NoDirExists(t, path)
	})
	for name, c := range map[string]struct {
		change func(path, outside string) error
		want   string
	}{
		"file of the user": {func(path, _ string) error { return os.WriteFile(filepath.Join(path, "notes"), nil, 0o666) }, "notes in it is no file of a run"},
		"no record":        {func(path, _ string) error { return os.Remove(filepath.Join(path, RecordFile)) }, "it holds no run: run.json is missing"},
		"link inside": {func(path, outside string) error { return os.Symlink(outside, filepath.Join(path, CheckpointDir, "x")) },
			"no link in it is followed"},
		"link": {func(path, outside string) error {
			return errors.Join(os.Rename(path, outside+"/run"), os.Symlink("outside/run", path))
		}, "it is no directory, and no link is followed"},
	} {
		t.Run(name, func(t *testing.T) {
			path, outside := begin(t)
			require.NoError(t, c.change(path, outside))
			require.ErrorContains(t, Remove(path, fine), c.want)
			require.DirExists(t, filepath.Join(path, CheckpointDir))
			require.FileExists(t, filepath.Join(outside, "file"))
		})
	}
	t.Run("at work", func(t *testing.T) {
		path, _ := begin(t)
		d, err := lockRun(mustRoot(t, path), path)
		require.NoError(t, err)
		defer d.Close()
		require.ErrorContains(t, Remove(path, fine), "a run is at work in it")
		require.FileExists(t, filepath.Join(path, RecordFile))
	})
	t.Run("changed", func(t *testing.T) {
		path, _ := begin(t)
		require.EqualError(t, Remove(path, func() error { return errors.New("it went on") }), "it went on")
		require.FileExists(t, filepath.Join(path, RecordFile))
	})
	require.ErrorContains(t, Remove(filepath.Join(t.TempDir(), "none"), fine), "no such file")
}

func mustRoot(t *testing.T, path string) *rootFS {
	root, err := openRoot(path)
	require.NoError(t, err)
	return root
}
