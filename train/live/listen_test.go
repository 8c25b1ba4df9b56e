package live

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/run"
)

func TestParseListen(t *testing.T) {
	for addr, want := range map[string]string{
		":8080": "127.0.0.1:8080", "0.0.0.0:8080": "0.0.0.0:8080", "[::]:1": "[::]:1", "localhost:0": "localhost:0", "box:65535": "box:65535",
	} {
		got, err := ParseListen(addr)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, addr := range []string{"", "8080", "localhost", ":http", ":-1", ":65536", "::1", "a:b:c", ":"} {
		_, err := ParseListen(addr)
		require.ErrorContains(t, err, "is no HOST:PORT")
	}
}

// dead leaves the socket of a killed process.
func dead(t *testing.T, path string) {
	l, err := listenUnix(path)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.FileExists(t, path)
}

// TestSocket: in the directory or, where its path is too long, elsewhere, there is a socket that
// its owner alone may open; one that was left by a killed process is no obstacle, and nothing
// stays.
func TestSocket(t *testing.T) {
	tmp, err := os.MkdirTemp("", "") // t.TempDir is too long where test names are
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(tmp) })
	t.Setenv("TMPDIR", tmp)
	long := filepath.Join(tmp, strings.Repeat("x", 110))
	short := filepath.Join(tmp, "run")
	for _, run := range []string{short, long} {
		require.NoError(t, os.Mkdir(run, 0o777))
		_, err := socketOf(run)
		require.Error(t, err)
		for range 2 { // the second after a kill
			l, remove, err := listenRun(run)
			require.NoError(t, err)
			path, err := socketOf(run)
			require.NoError(t, err)
			require.Equal(t, run == short, filepath.Dir(path) == run)
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, os.ModeSocket|0o600, info.Mode())
			require.True(t, answers(path))
			if run == long {
				info, err = os.Stat(filepath.Dir(path))
				require.NoError(t, err)
				require.Equal(t, os.ModeDir|0o700, info.Mode())
			}
			require.NoError(t, l.Close())
			remove()
			require.NoFileExists(t, path)
			left, err := os.ReadDir(run)
			require.NoError(t, err)
			require.Empty(t, left)

			if run == short {
				dead(t, path)
				continue
			}
			require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
			dead(t, path)
			require.NoError(t, os.WriteFile(filepath.Join(run, addrFile), []byte(path+"\n"), 0o600))
		}
	}
	require.NoError(t, removeStale(long))
	left, err := filepath.Glob(filepath.Join(tmp, socketDir+"*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestStaleElsewhere: what a file of a run names is removed only where it is a dead socket of ours.
func TestStaleElsewhere(t *testing.T) {
	tmp, err := os.MkdirTemp("", "")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(tmp) })
	run := filepath.Join(tmp, "run")
	require.NoError(t, os.Mkdir(run, 0o777))
	place := func(dir string) string {
		require.NoError(t, os.MkdirAll(filepath.Join(tmp, dir), 0o700))
		return filepath.Join(tmp, dir, socketFile)
	}
	precious := place("precious")
	require.NoError(t, os.WriteFile(precious, nil, 0o666))
	file := place(socketDir + "1")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	alive := place(socketDir + "2")
	l, err := net.Listen("unix", alive)
	require.NoError(t, err)
	defer l.Close()
	for _, text := range []string{precious, file, alive, "", "\x00", "../" + socketDir + "1/" + socketFile, strings.Repeat("/x", 1<<20)} {
		require.NoError(t, os.WriteFile(filepath.Join(run, addrFile), []byte(text), 0o666))
		require.NoError(t, removeStale(run))
		require.NoFileExists(t, filepath.Join(run, addrFile))
		for _, path := range []string{precious, file, alive} {
			_, err := os.Lstat(path)
			require.NoError(t, err, text)
		}
	}
}

// endless is a listener to which somebody always connects.
type endless struct{ net.Listener }

func (endless) Accept() (net.Conn, error) {
	c, other := net.Pipe()
	return c, other.Close()
}

// TestLimited: connections are accepted one at a time, up to a limit. A new one replaces the oldest
// that has sent no request, and none that has. A second Close gives back no second place.
func TestLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ending := make(chan struct{})
		l := limit(endless{}, 2, time.Second, ending)
		began := time.Now()
		accept := func() *placed {
			c, err := l.Accept()
			require.NoError(t, err)
			return c.(*placed)
		}
		for range 11 {
			c := accept()
			require.NoError(t, c.Close())
			require.NoError(t, c.Close())
		}
		require.Equal(t, 10*time.Second, time.Since(began))
		first, second := accept(), accept()
		first.asks()
		third := accept()
		require.Equal(t, []bool{false, true, false}, []bool{first.freed, second.freed, third.freed})
		require.Equal(t, 2, l.open)
		third.asks()
		accepted := 0
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				c.(*placed).asks()
				accepted++
			}
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, accepted)
		first.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 1, accepted)
		require.Equal(t, 2, l.open)
		close(ending)
	})
}

// queue is a listener whose connections come from a channel.
type queue struct {
	net.Listener
	conns  chan net.Conn
	closed chan struct{}
}

func (q queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

func (q queue) Close() error   { close(q.closed); return nil }
func (q queue) Addr() net.Addr { return &net.UnixAddr{} }

// TestHalfOpen: beside 500 connections that send nothing, or part of a request, the server answers
// before the first of them times out, and no more of them are open than there are places.
func TestHalfOpen(t *testing.T) {
	for _, sent := range []string{"", "GET /stats HTTP/1.1\r\nHost: x\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			const many = 500
			q := queue{nil, make(chan net.Conn, many), make(chan struct{})}
			s := newServer(Options{Now: func() *run.Result { return &run.Result{Status: run.Running} }})
			s.serve(q)
			began := time.Now()
			connect := func(text string) net.Conn {
				ours, theirs := net.Pipe()
				q.conns <- theirs
				// this ends when the other end is closed
				go func() { _, _ = ours.Write([]byte(text)) }()
				return ours
			}
			var open atomic.Int64
			for range many {
				c := connect(sent)
				open.Add(1)
				go func() {
					_, _ = io.Copy(io.Discard, c)
					open.Add(-1)
				}()
			}
			asker := connect("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
			answer, err := io.ReadAll(asker)
			require.NoError(t, err)
			require.Contains(t, string(answer), "200 OK")
			require.Contains(t, string(answer), "ok\n")
			require.Less(t, time.Since(began), readTimeout)
			synctest.Wait()
			require.EqualValues(t, maxConns-1, open.Load())
			time.Sleep(2 * readTimeout)
			synctest.Wait()
			require.Zero(t, open.Load())
			close(s.ending)
			require.NoError(t, s.http.Close())
			s.serving.Wait()
		})
	}
}

// TestAllowance: maxAsked answers may come at once, and as many a second.
func TestAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a allowance
		taken := func() (n int) {
			for a.take() {
				n++
			}
			return n
		}
		time.Sleep(time.Hour)
		require.Equal(t, maxAsked, taken())
		time.Sleep(time.Second / 10)
		require.Equal(t, maxAsked/10, taken())
	})
}
