package live_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train"
	"github.com/gnnstore/gnnstore/train/live"
	"github.com/gnnstore/gnnstore/train/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// training is one that others look at: it goes forward each time, until it has ended.
type training struct {
	updates atomic.Int64
	ended   atomic.Bool
}

func (t *training) now() *run.Result {
	r := &run.Result{Run: "r", Status: run.Running, Epochs: []run.Epoch{}}
	if t.ended.Load() {
		r.Status = run.Done
		return r
	}
	r.Live = &run.Live{Updates: int(t.updates.Add(1)), At: time.Now()}
	return r
}

// endpoint listens at addr.
func endpoint(tb testing.TB, addr string) *live.Endpoint {
	e, err := live.Listen(addr)
	require.NoError(tb, err)
	return e
}

// serve serves t in dir and over HTTP until the test ends.
func serve(tb testing.TB, dir string, t *training) *live.Server {
	s := live.Serve(live.Options{Run: dir, HTTP: endpoint(tb, "127.0.0.1:0"), Now: t.now})
	tb.Cleanup(s.Close)
	return s
}

// TestTrainings: two trainings at once are each seen by several, through the socket and over HTTP;
// they come to what they come to alone, and those who watch are told.
func TestTrainings(t *testing.T) {
	ds, err := store.Open(storetest.Build(t, storetest.Communities(600, 4, 8, 16, 2)))
	require.NoError(t, err)
	defer ds.Close()
	o := run.DefaultOptions()
	o.Hidden, o.Batch, o.Epochs, o.Fanouts, o.LR = 16, 64, 6, []int{5, 3}, 0.01
	trained := func(seed uint64, look func(dir string, s *live.Server)) *run.Result {
		o := o
		o.Seed = seed
		dir := filepath.Join(t.TempDir(), "run")
		create := func() (*run.Dir, error) { return run.Create(dir) }
		r, err := train.Run(t.Context(), ds, create, o, "test", run.Hooks{
			Live: func(now func() *run.Result) func() {
				if look == nil {
					return func() {}
				}
				s := live.Serve(live.Options{Run: dir, HTTP: endpoint(t, "127.0.0.1:0"), Now: now})
				look(dir, s)
				return s.Close
			},
		})
		require.NoError(t, err)
		left, err := filepath.Glob(filepath.Join(dir, "stats.*"))
		require.NoError(t, err)
		require.Empty(t, left)
		return r
	}
	var g errgroup.Group
	for _, seed := range []uint64{1, 2} {
		g.Go(func() error {
			var lookers errgroup.Group
			got := trained(seed, func(dir string, s *live.Server) {
				socket, err := live.OfRun(dir)
				require.NoError(t, err)
				tcp, err := live.At(s.Addr().String())
				require.NoError(t, err)
				for _, c := range []*live.Client{socket, tcp, socket} {
					began := make(chan struct{})
					first := sync.OnceFunc(func() { close(began) })
					lookers.Go(func() error {
						defer first()
						var last *run.Result
						err := c.Watch(t.Context(), 100*time.Millisecond, func(r *run.Result) error {
							first()
							last = r
							if r.Seed != seed {
								return fmt.Errorf("a result of seed %d, and %d was asked", r.Seed, seed)
							}
							return nil
						})
						if err == nil && last.Status != run.Done {
							err = errors.New("ended as " + last.Status)
						}
						return err
					})
					<-began // a run of milliseconds, whose end they are to see
				}
			})
			require.NoError(t, lookers.Wait())
			require.Equal(t, trained(seed, nil).ParamsXXH3, got.ParamsXXH3)
			return nil
		})
	}
	require.NoError(t, g.Wait())
}

func TestEndpoints(t *testing.T) {
	training := new(training)
	s := serve(t, t.TempDir(), training)
	get := func(path string) (int, string) {
		a, err := http.Get("http://" + s.Addr().String() + path)
		require.NoError(t, err)
		defer a.Body.Close()
		b, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		return a.StatusCode, string(b)
	}
	defer http.DefaultClient.CloseIdleConnections()
	code, body := get("/stats")
	require.Equal(t, 200, code)
	var r run.Result
	require.NoError(t, json.Unmarshal([]byte(body), &r))
	require.Equal(t, run.Running, r.Status)
	_, body = get("/healthz")
	require.Equal(t, "ok\n", body)
	code, body = get("/metrics")
	require.Equal(t, 200, code)
	require.Contains(t, body, "\n# TYPE gnnstore_updates_total counter\ngnnstore_updates_total ")
	code, body = get("/etc/passwd")
	require.Equal(t, 404, code)
	require.Equal(t, "there are /, /stats, /watch, /metrics and /healthz\n", body)
	code, body = get("/")
	require.Equal(t, 200, code)
	require.True(t, strings.HasPrefix(body, "<!DOCTYPE html>"))
	code, _ = get("/watch?every=often")
	require.Equal(t, 400, code)
}

// TestHostile: what is no GET of an endpoint is refused, and the server goes on.
func TestHostile(t *testing.T) {
	s := serve(t, t.TempDir(), new(training))
	for name, c := range map[string]struct{ request, want string }{
		"post":                     {"POST /stats HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\nhello", "405"},
		"delete":                   {"DELETE /stats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "405"},
		"head":                     {"HEAD /stats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "405"},
		"connect":                  {"CONNECT example.org:80 HTTP/1.1\r\nHost: example.org:80\r\n\r\n", "405"},
		"made up":                  {"B*D /stats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "405"},
		"a body":                   {"GET /stats HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "400"},
		"a body that never comes":  {"GET /stats HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999\r\n\r\n", "400"},
		"lengths that differ":      {"GET /stats HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400"},
		"above the root":           {"GET /../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "404"},
		"a page rebound":           {"GET / HTTP/1.1\r\nHost: evil.example:8080\r\n\r\n", "403"},
		"a proxy's request":        {"GET http://example.org/stats HTTP/1.1\r\nHost: example.org\r\n\r\n", "403"},
		"a name that is rebound":   {"GET /stats HTTP/1.1\r\nHost: evil.example:8080\r\n\r\n", "403"},
		"no host":                  {"GET /stats HTTP/1.1\r\n\r\n", "400"},
		"no HTTP":                  {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"},
		"a header without end":     {"GET /stats HTTP/1.1\r\nX: " + strings.Repeat("x", 1<<20), "431"},
		"localhost":                {"GET /healthz HTTP/1.1\r\nHost: LOCALHOST:1\r\n\r\n", "200"},
		"the address":              {"GET /healthz HTTP/1.0\r\nHost: [::1]\r\n\r\n", "200"},
		"an interval of no length": {"GET /watch?every=-1ns HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "200"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", s.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			_, _ = io.WriteString(conn, c.request) // the answer may come before all of it is taken
			line, err := bufio.NewReader(conn).ReadString('\n')
			require.NoError(t, err)
			require.Contains(t, line, " "+c.want+" ")
		})
	}
	c, err := live.At(s.Addr().String())
	require.NoError(t, err)
	_, err = c.Stats(t.Context())
	require.NoError(t, err)
}

// TestOpen: who serves other machines serves them under any name, and is told so.
func TestOpen(t *testing.T) {
	var notes []string
	s := live.Serve(live.Options{
		Run: t.TempDir(), HTTP: endpoint(t, "0.0.0.0:0"), Now: new(training).now, Note: func(n string) { notes = append(notes, n) },
	})
	defer s.Close()
	require.Len(t, notes, 1)
	require.Contains(t, notes[0], "/, /stats, /watch, /metrics and /healthz, for everybody who reaches this machine")
	_, port, err := net.SplitHostPort(s.Addr().String())
	require.NoError(t, err)
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+"/healthz", nil)
	require.NoError(t, err)
	q.Host = "trainbox.example:8080"
	a, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	a.Body.Close()
	require.Equal(t, 200, a.StatusCode)
}

// TestText: advice is served as Options.Text has it.
func TestText(t *testing.T) {
	dir := t.TempDir()
	s := live.Serve(live.Options{Run: dir, Now: new(training).now, Text: strings.ToUpper})
	defer s.Close()
	c, err := live.OfRun(dir)
	require.NoError(t, err)
	r, err := c.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, "CACHES ARE BEING FILLED, OR THE FIRST STEPS DRAWN", r.Advice)
}

// TestSlow: those who connect and do not ask, or ask and do not read, hold up neither the training
// nor its end, and leave room on the socket for others.
func TestSlow(t *testing.T) {
	training, dir := new(training), t.TempDir()
	s := serve(t, dir, training)
	for i := range 100 { // more than are accepted
		conn, err := net.Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		if i%2 == 0 {
			_, err = io.WriteString(conn, "GET /watch?every=1ms HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
			require.NoError(t, err)
		}
	}
	c, err := live.OfRun(dir)
	require.NoError(t, err)
	r, err := c.Stats(t.Context())
	require.NoError(t, err)
	require.Equal(t, run.Running, r.Status)
	training.ended.Store(true)
	s.Close()
	s.Close()
	_, err = c.Stats(t.Context())
	require.ErrorIs(t, err, live.ErrNotServed)
}

// TestWatchers: as many as may watch take no place of those who ask once, and one more is told.
func TestWatchers(t *testing.T) {
	training, dir := new(training), t.TempDir()
	s := serve(t, dir, training)
	c, err := live.At(s.Addr().String())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var watchers errgroup.Group
	for range 32 {
		began := make(chan struct{})
		watchers.Go(func() error {
			err := c.Watch(ctx, 100*time.Millisecond, func(*run.Result) error {
				select {
				case <-began:
				default:
					close(began)
				}
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				return fmt.Errorf("watched until %w", err)
			}
			return nil
		})
		<-began
	}
	asks := http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/healthz", "/stats", "/metrics", "/healthz"} {
		a, err := asks.Get("http://" + s.Addr().String() + path)
		require.NoError(t, err)
		a.Body.Close()
		require.Equal(t, 200, a.StatusCode, path)
	}
	err = c.Watch(t.Context(), time.Second, func(*run.Result) error { return nil })
	require.ErrorIs(t, err, live.ErrNotServed)
	require.ErrorContains(t, err, "32 watch already; ask /stats, or again later")
	mine, err := live.OfRun(dir)
	require.NoError(t, err)
	require.ErrorIs(t, mine.Watch(t.Context(), time.Second, func(*run.Result) error { return io.EOF }), io.EOF, "the socket has places of its own")
	cancel()
	require.NoError(t, watchers.Wait())
}

// TestWatch: a line each time, and how it ended in the last.
func TestWatch(t *testing.T) {
	training, dir := new(training), t.TempDir()
	s := serve(t, dir, training)
	c, err := live.OfRun(dir)
	require.NoError(t, err)
	before := 0
	var seen []string
	require.NoError(t, c.Watch(t.Context(), time.Millisecond, func(r *run.Result) error {
		if seen = append(seen, r.Status); len(seen) == 3 {
			training.ended.Store(true)
			go s.Close()
		}
		if r.Live != nil {
			require.Greater(t, r.Live.Updates, before)
			before = r.Live.Updates
		}
		return nil
	}))
	require.Equal(t, []string{run.Running, run.Running, run.Running, run.Done}, seen)
	s.Close()
	_, err = live.OfRun(dir)
	require.ErrorIs(t, err, live.ErrNotServed)
}

// TestEndIsToldOnce asks how the training ended once, however many watch.
func TestEndIsToldOnce(t *testing.T) {
	var ended atomic.Bool
	var asked atomic.Int64 // after the end
	dir := t.TempDir()
	s := live.Serve(live.Options{Run: dir, Now: func() *run.Result {
		if ended.Load() {
			asked.Add(1)
			return &run.Result{Status: run.Done}
		}
		return &run.Result{Status: run.Running, Live: new(run.Live)}
	}})
	defer s.Close()
	c, err := live.OfRun(dir)
	require.NoError(t, err)
	var watchers errgroup.Group
	for range 10 {
		began := make(chan struct{})
		watchers.Go(func() error {
			first := sync.OnceFunc(func() { close(began) })
			defer first()
			return c.Watch(t.Context(), time.Hour, func(*run.Result) error { first(); return nil })
		})
		<-began
	}
	ended.Store(true)
	s.Close()
	require.NoError(t, watchers.Wait())
	require.EqualValues(t, 1, asked.Load())
}

// TestCloseWaits for an answer that is being made, even if it takes longer than those who watch are
// waited for.
func TestCloseWaits(t *testing.T) {
	looking, dir := make(chan struct{}), t.TempDir()
	first := sync.OnceFunc(func() { close(looking) })
	var now atomic.Int64 // looking
	s := live.Serve(live.Options{Run: dir, Now: func() *run.Result {
		now.Add(1)
		defer now.Add(-1)
		first()
		time.Sleep(1200 * time.Millisecond)
		return &run.Result{Status: run.Running, Live: new(run.Live)}
	}})
	defer s.Close()
	c, err := live.OfRun(dir)
	require.NoError(t, err)
	var g errgroup.Group
	g.Go(func() error {
		_, _ = c.Stats(t.Context()) // it may be hung up on
		return nil
	})
	<-looking
	s.Close()
	require.Zero(t, now.Load())
	require.NoError(t, g.Wait())
}

// TestWatchEnds with its context, with the error of show, and when the process dies without a word.
func TestWatchEnds(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, new(training))
	c, err := live.OfRun(dir)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, c.Watch(ctx, time.Hour, func(*run.Result) error { cancel(); return nil }), context.Canceled)
	require.ErrorIs(t, c.Watch(t.Context(), time.Hour, func(*run.Result) error { return io.ErrClosedPipe }), io.ErrClosedPipe)
	// A training that stops without an end, as a panic makes it, tells none.
	require.ErrorIs(t, c.Watch(t.Context(), time.Hour, func(*run.Result) error { go s.Close(); return nil }), live.ErrNotServed)
}

// TestSomebodyElse: what answers there is not always a training.
func TestSomebodyElse(t *testing.T) {
	for answer, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}":                      "what it answers is no result of gnnstore: there is no status in it",
		"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>":                  "what it answers is no result of gnnstore: invalid character",
		"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n": `it answers "302 Found", and is no training of gnnstore`,
		"SSH-2.0-OpenSSH_9.6\r\n\r\n":                                         "no training answers",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{":                       "no training answers",
		"": "no training answers",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if conn, err := l.Accept(); err == nil {
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, answer)
				conn.Close()
			}
		}()
		c, err := live.At("http://" + l.Addr().String() + "/")
		require.NoError(t, err)
		_, err = c.Stats(t.Context())
		require.ErrorContains(t, err, want, answer)
		require.NotContains(t, err.Error(), "\n")
		l.Close()
		<-done
		_, err = c.Stats(t.Context())
		require.ErrorIs(t, err, live.ErrNotServed)
	}
	_, err := live.At("nowhere")
	require.ErrorContains(t, err, `"nowhere" is no HOST:PORT`)
}

// TestNotServed: a socket that cannot be made is a note, and an address that is taken an error.
func TestNotServed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stats.sock"), []byte("mine"), 0o666))
	var notes []string
	s := live.Serve(live.Options{Run: dir, Now: new(training).now, Note: func(n string) { notes = append(notes, n) }})
	defer s.Close()
	require.Len(t, notes, 1)
	require.Contains(t, notes[0], "stats.sock is in the way, and is no socket; remove it")
	require.Nil(t, s.Addr())

	taken := endpoint(t, "127.0.0.1:0")
	defer taken.Close()
	_, err := live.Listen(taken.Addr().String())
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	s.Close()
	require.FileExists(t, filepath.Join(dir, "stats.sock"), "it is not the server's to remove")
}
