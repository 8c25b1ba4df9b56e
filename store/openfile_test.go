package store

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpenFile(t *testing.T) {
	dir := t.TempDir()
	plain, link, pipe, socket := filepath.Join(dir, "plain"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe"), filepath.Join(dir, "s")
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o600))
	require.NoError(t, os.Symlink(plain, link))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer l.Close()
	for _, path := range []string{plain, link} {
		f, err := OpenFile(path)
		require.NoError(t, err)
		b := make([]byte, 4)
		_, err = f.Read(b)
		require.NoError(t, err)
		require.Equal(t, "text", string(b))
		require.NoError(t, f.Close())
	}
	const what = ", not a file; write what it gives to a file, and name that"
	for path, want := range map[string]string{
		dir: "it is a directory, not a file; name a file in it", pipe: "it is a named pipe" + what,
		socket: "it is a socket" + what, os.DevNull: "it is a device" + what,
	} {
		_, err := OpenFile(path)
		require.EqualError(t, err, path+": "+want)
	}
	_, err = OpenFile(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
