package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/store"
)

// Files of a run directory while its training is served.
const (
	socketFile = "stats.sock"
	addrFile   = "stats.addr" // the path of the socket, where the directory cannot have it
)

// socketDir begins the name of a directory for temporary files that holds nothing but a socket.
const socketDir = "gnnstore-stats-"

// maxSocketPath is what the system takes for a socket's path: sun_path has 104 bytes on macOS, 108 on Linux, and one is
// for its end.
const maxSocketPath = 103

// ParseListen reads HOST:PORT. No host is 127.0.0.1: who wants others to look says so.
func ParseListen(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "", fmt.Errorf("%q is no HOST:PORT, such as :8080, which is 127.0.0.1:8080, or 0.0.0.0:8080", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// listenRun listens on a socket in the run directory, else on one among the temporary files, whose path it leaves
// there.
func listenRun(run string) (_ net.Listener, remove func(), err error) {
	if run, err = filepath.Abs(run); err != nil {
		return nil, nil, err
	}
	if err := removeStale(run); err != nil {
		return nil, nil, err
	}
	path := filepath.Join(run, socketFile)
	l, err := listenUnix(path)
	if err == nil {
		return l, func() { os.Remove(path) }, nil
	}
	dir, derr := os.MkdirTemp("", socketDir) // which its owner alone may enter
	if derr != nil {
		return nil, nil, errors.Join(err, derr)
	}
	path = filepath.Join(dir, socketFile)
	named := filepath.Join(run, addrFile)
	remove = func() {
		os.Remove(named)
		os.Remove(path)
		os.Remove(dir)
	}
	if l, derr = listenUnix(path); derr == nil {
		if derr = os.WriteFile(named, []byte(path+"\n"), 0o600); derr == nil {
			return l, remove, nil
		}
		l.Close()
	}
	remove()
	return nil, nil, errors.Join(err, derr)
}

// listenUnix makes a socket that nobody but its owner may connect to. It must not exist.
func listenUnix(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("socket %s: its path has %d bytes, and the system takes %d", path, len(path), maxSocketPath)
	}
	c := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		// On Linux bind gives the file the descriptor's mode, so that it is never open to others; elsewhere this fails.
		return c.Control(func(fd uintptr) { _ = unix.Fchmod(int(fd), 0o600) })
	}}
	l, err := c.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // the path is removed when all that were served have been
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		os.Remove(path)
		return nil, err
	}
	return l, nil
}

// removeStale removes what a killed training left in a run directory, or for it.
func removeStale(run string) error {
	path := filepath.Join(run, socketFile)
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is in the way, and is no socket; remove it", path)
	default:
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	named := filepath.Join(run, addrFile)
	elsewhere, err := readAddr(named)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// A file may say anything, or be copied with its run: what somebody answers at is no stale socket.
	if err == nil && !answers(elsewhere) {
		if info, err := os.Lstat(elsewhere); err == nil && info.Mode().Type() == fs.ModeSocket {
			os.Remove(elsewhere)
		}
		os.Remove(filepath.Dir(elsewhere)) // which fails unless it is empty, or gone
	}
	return os.Remove(named)
}

// readAddr reads the path in a file that listenRun wrote.
func readAddr(file string) (string, error) {
	f, err := store.OpenFile(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4096))
	path := strings.TrimSpace(string(b))
	if err == nil && (!filepath.IsAbs(path) || len(path) > maxSocketPath || filepath.Base(path) != socketFile ||
		!strings.HasPrefix(filepath.Base(filepath.Dir(path)), socketDir)) {
		err = fmt.Errorf("%s names no socket of a training", file)
	}
	return path, err
}

// socketOf is where the training in a run directory answers, if one does.
func socketOf(run string) (string, error) {
	run, err := filepath.Abs(run)
	if err != nil {
		return "", err
	}
	path := filepath.Join(run, socketFile)
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		return path, nil
	}
	return readAddr(filepath.Join(run, addrFile))
}

func answers(path string) bool {
	c, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// limited accepts so many connections at a time, and one in a while; others wait in the system's queue, which is
// bounded, too. Its Accept is for one goroutine.
type limited struct {
	net.Listener
	slots  chan struct{}
	every  time.Duration
	next   time.Time // when one may be accepted
	closed <-chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	if wait := time.Until(l.next); wait > 0 {
		time.Sleep(wait) // a fraction of a second, and nobody waits for its end but who is to be accepted, and Close
	}
	l.next = time.Now().Add(l.every)
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotConn{c, sync.OnceFunc(func() { <-l.slots })}, nil
}

// slotConn gives its slot back when it is closed.
type slotConn struct {
	net.Conn
	free func()
}

func (c *slotConn) Close() error {
	c.free()
	return c.Conn.Close()
}
