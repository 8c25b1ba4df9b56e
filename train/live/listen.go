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
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
)

// Files of a run directory while its training is served.
const (
	socketFile = run.SocketFile
	addrFile   = run.SocketPathFile
)

// socketDir begins the name of a directory for temporary files that holds nothing but a socket.
const socketDir = "gnnstore-stats-"

// maxSocketPath is the longest socket path that the system takes: sun_path has 104 bytes on macOS
// and 108 on Linux, and one is for the end of the string.
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

// Endpoint is a TCP address that listens for those who look at a run. Serve takes it and closes it.
type Endpoint struct {
	host     string // as the user gave it
	listener net.Listener
}

// Listen takes an address as ParseListen gives it.
func Listen(addr string) (*Endpoint, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &Endpoint{host, l}, nil
}

// Addr returns the address, with the port that the system chose for port 0.
func (e *Endpoint) Addr() net.Addr { return e.listener.Addr() }

// Close frees the address. Serve closes it as well; closing twice does no harm.
func (e *Endpoint) Close() error { return e.listener.Close() }

// listenRun listens on a socket in the run directory, else on one among the temporary files, whose
// path it leaves there.
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
	dir, derr := os.MkdirTemp("", socketDir) // only its owner may enter it
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
		if derr = writeNew(named, path+"\n"); derr == nil {
			return l, remove, nil
		}
		l.Close()
	}
	remove()
	return nil, nil, errors.Join(err, derr)
}

// writeNew writes a file that must not exist yet. It does not follow a link of that name.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// listenUnix makes a socket that nobody but its owner may connect to. It must not exist.
func listenUnix(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("socket %s: its path has %d bytes, and the system takes %d", path, len(path), maxSocketPath)
	}
	c := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		// On Linux bind gives the file the descriptor's mode, so that it is never open to others;
		// elsewhere this fails.
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
	// A file may say anything, or be copied with its run: what somebody answers at is no stale
	// socket.
	if err == nil && !answers(elsewhere) {
		if info, err := os.Lstat(elsewhere); err == nil && info.Mode().Type() == fs.ModeSocket {
			os.Remove(elsewhere)
		}
		os.Remove(filepath.Dir(elsewhere)) // fails unless it is empty
	}
	return os.Remove(named)
}

// readAddr reads the path in a file that listenRun wrote.
func readAddr(file string) (string, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no file of a training", file)
	}
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

// socketOf returns the path of the socket of the training in a run directory. It does not ask
// whether anybody answers there.
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

// limited holds at most most connections, and accepts one every so often. If it is full, a new
// connection replaces the oldest one that has sent no request. If all have sent one, new ones wait
// in the system's queue, which is bounded too. One goroutine calls Accept.
type limited struct {
	net.Listener
	most   int
	every  time.Duration
	next   time.Time // when one may be accepted
	closed <-chan struct{}

	mu     sync.Mutex
	open   int
	silent []*placed     // those without a request, the oldest first
	freed  chan struct{} // gets a value when a place becomes free
}

func limit(l net.Listener, most int, every time.Duration, closed <-chan struct{}) *limited {
	return &limited{Listener: l, most: most, every: every, closed: closed, freed: make(chan struct{}, 1)}
}

func (l *limited) Accept() (net.Conn, error) {
	if wait := time.Until(l.next); wait > 0 {
		time.Sleep(wait) // a fraction of a second, and nobody waits for its end but who is to be accepted, and Close
	}
	l.next = time.Now().Add(l.every)
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	p := &placed{Conn: c, of: l}
	for !l.take(p) {
		select {
		case <-l.freed:
		case <-l.closed:
			return nil, errors.Join(net.ErrClosed, c.Close())
		}
	}
	return p, nil
}

// take gives p a place, and closes another connection for it if needed. It returns false if none
// may be closed.
func (l *limited) take(p *placed) bool {
	l.mu.Lock()
	if l.open < l.most {
		l.open++
		l.silent = append(l.silent, p)
		l.mu.Unlock()
		return true
	}
	var oldest *placed
	if len(l.silent) > 0 {
		oldest = l.silent[0]
	}
	l.mu.Unlock()
	if oldest == nil {
		return false
	}
	oldest.Close() // it may just have been closed
	return l.take(p)
}

// placed is a connection that has a place, and gives it back when it is closed.
type placed struct {
	net.Conn
	of    *limited
	freed bool
}

// asks marks that the connection sent a request: it keeps its place until it is closed.
func (c *placed) asks() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.silent = slices.DeleteFunc(c.of.silent, func(o *placed) bool { return o == c })
}

func (c *placed) Close() error {
	c.asks()
	c.of.mu.Lock()
	if !c.freed {
		c.freed = true
		c.of.open--
		select {
		case c.of.freed <- struct{}{}:
		default:
		}
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}
