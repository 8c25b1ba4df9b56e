// Package live lets others look at a training while it goes on: over a unix socket in its run
// directory, which its owner alone may open, and over HTTP on TCP where that is asked for. It only
// reads.
//
//	/               a page for browsers, which updates itself: see Document
//	/stats          the result so far, as JSON: what gnnstore stats --json prints
//	/watch?every=1s the same, a line each time, and how the run ended in the last line
//	/metrics        the same figures as Prometheus wants them
//	/healthz        ok
//
// A [Server] answers for one training, or for the several runs of [ServeRuns]. A [Client] asks a
// Server. [Advise] names in a sentence or two the part that limits a run, and the option to change.
//
// Concurrency: a training shows itself at step boundaries, by a pointer, and never waits for who
// looks (run.Hooks.Live). So nobody slow, or hostile, holds it up: there are at most maxConns
// connections, each with its deadlines and one request; maxWatch of them may be of /watch. A second
// brings at most maxRate new connections and maxAsked answers, and a result is encoded once for all
// who ask within a twentieth of a second. A connection that has not asked yet is closed when
// another needs its place, so that hundreds of idle ones do not keep others out. A failure to serve
// is a note and no error. [Server.Close] sends those who watch the final result, and waits for
// them, a second at most. Start at [Serve].
package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/train/page"
	"github.com/gnnstore/gnnstore/train/run"
)

// Options has the run to show, and the places to serve it.
type Options struct {
	// Run is the run directory. The training holds its lock, so a socket that lies there is of a
	// process that has died.
	Run string
	// HTTP is the TCP address to serve at; nil: none.
	HTTP *Endpoint
	// Now returns the result so far, as run.Hooks.Live gives it. The result is the caller's own.
	Now func() *run.Result
	// Note is called with the places of the statistics, and with failures to serve. It may be nil.
	Note func(string)
	// Text replaces the option keys in advice, which package run describes, by the user's names for
	// them; nil leaves advice as it is.
	Text func(string) string

	many func() []*run.Result // see ServeRuns
}

// Bounds of the work for those who look.
const (
	maxConns     = 48   // at once, on the socket and on TCP each
	maxWatch     = 32   // of maxConns; the other places are for single requests
	maxRate      = 1000 // new connections a second: 500 idle ones pass in 0.5 s, for 3 % of a core
	maxAsked     = 50   // answers a second, except for /healthz
	maxHeader    = 8 << 10
	readTimeout  = 5 * time.Second // of a request
	writeTimeout = 5 * time.Second // of an answer, or of a line of /watch
	drainTimeout = time.Second
)

// The paths that are served for one training, and for several runs. For several runs, /stats is a
// list.
const (
	endpoints       = "/, /stats, /watch, /metrics and /healthz"
	endpointsOfMany = "/, /stats, /watch and /healthz"
)

// Server answers for one training until Close. Its methods are safe for concurrent use.
type Server struct {
	now     func() *run.Result
	many    func() []*run.Result // set instead of now to serve several runs
	text    func(string) string  // nil: leaves advice unchanged
	metrics http.Handler         // nil for several runs
	http    http.Server
	serving sync.WaitGroup
	ending  chan struct{} // closed when the training has ended
	close   func()

	watching map[bool]chan struct{} // a place for each who watches, of the socket and of TCP
	asked    map[bool]*allowance    // for the socket and for TCP

	answering sync.RWMutex // read-locked by each who answers
	closed    bool         // nobody does any more

	addr     net.Addr // of TCP
	host     string   // as it was given
	loopback bool

	shown, page encoding
	pages       atomic.Int64 // requests for the page since pagesSince
	pagesSince  time.Time    // guarded by page
}

// encoding is a result as it is served: a line of JSON, or a page.
type encoding struct {
	sync.Mutex
	text  []byte
	tag   string    // of text
	until time.Time // text may be served up to then
	last  bool      // text is the final result, and stays
}

// An encoding is served for encodeEvery, or if longer for encodeShare times the time that encoding
// took: results grow with their epochs.
const (
	encodeEvery = minEvery / 2
	encodeShare = 20
)

// newServer returns a Server that serves nothing yet.
func newServer(o Options) *Server {
	s := &Server{now: o.Now, many: o.many, text: o.Text, ending: make(chan struct{}), watching: map[bool]chan struct{}{
		false: make(chan struct{}, maxWatch), true: make(chan struct{}, maxWatch),
	}, asked: map[bool]*allowance{false: {}, true: {}}}
	if s.many == nil {
		s.metrics = newMetrics(s.advised)
	}
	s.http = http.Server{
		Handler: http.HandlerFunc(s.answer), ErrorLog: log.New(io.Discard, "", 0), MaxHeaderBytes: maxHeader,
		ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		ConnState: func(c net.Conn, state http.ConnState) {
			if p, ok := c.(*placed); ok && state == http.StateActive { // a request has come
				p.asks()
			}
		},
	}
	s.http.SetKeepAlivesEnabled(false)
	return s
}

// Serve starts to answer.
func Serve(o Options) *Server {
	s := newServer(o)
	note := func(text string) {
		if o.Note != nil {
			o.Note(text)
		}
	}
	removeSocket := func() {}
	if s.many != nil { // each run's own process serves its socket
	} else if l, remove, err := listenRun(o.Run); err == nil {
		removeSocket = remove
		s.serve(l)
	} else {
		note("gnnstore stats will not see this run live: " + err.Error())
	}
	if o.HTTP != nil {
		l := o.HTTP.listener
		s.addr, s.host = l.Addr(), o.HTTP.host
		tcp, ok := s.addr.(*net.TCPAddr)
		s.loopback = ok && tcp.IP.IsLoopback()
		s.serve(l)
		whom := ""
		if !s.loopback {
			whom = ", for everybody who reaches this machine"
		}
		note("statistics at http://" + l.Addr().String() + s.endpoints() + whom)
	}
	s.close = sync.OnceFunc(func() {
		close(s.ending)
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		defer cancel()
		if s.http.Shutdown(ctx) != nil {
			s.http.Close() // of somebody who does not read
		}
		s.serving.Wait()
		s.answering.Lock() // http.Close waits for no answer, and one that is being made looks at the training
		s.closed = true
		s.answering.Unlock()
		removeSocket()
	})
	return s
}

func (s *Server) serve(l net.Listener) {
	l = limit(l, maxConns, time.Second/maxRate, s.ending)
	s.serving.Go(func() { _ = s.http.Serve(l) }) // it ends with Close, or because the system closed the listener
}

// ServeRuns serves several runs at a TCP address: their page, and their results as a list. now
// returns the newest results without waiting. The Server shows them unchanged, and never writes to
// them.
func ServeRuns(at *Endpoint, note func(string), now func() []*run.Result) *Server {
	return Serve(Options{HTTP: at, Note: note, many: now})
}

// Addr returns the address where TCP is served, or nil.
func (s *Server) Addr() net.Addr { return s.addr }

// Close sends those who watch the final result and stops answering: Now is not called after it. A
// second Close does nothing.
func (s *Server) Close() { s.close() }

// advised returns the result so far with advice.
func (s *Server) advised() *run.Result {
	r := s.now()
	r.Advice = Advise(r)
	if s.text != nil {
		r.Advice = s.text(r.Advice)
	}
	return r
}

// results returns the runs to show.
func (s *Server) results() []*run.Result {
	if s.many != nil {
		return s.many()
	}
	return []*run.Result{s.advised()}
}

func (s *Server) endpoints() string {
	if s.many != nil {
		return endpointsOfMany
	}
	return endpoints
}

// cached returns the text in e and its tag. It calls encode if the text is no longer fresh. Once
// the training has ended, the text is the final result.
func (s *Server) cached(e *encoding, encode func() ([]byte, error)) (text []byte, tag string, err error) {
	e.Lock()
	defer e.Unlock()
	now, ended := time.Now(), false
	select {
	case <-s.ending:
		ended = true
	default:
	}
	if e.last || !ended && now.Before(e.until) {
		return e.text, e.tag, nil
	}
	b, err := encode()
	if err != nil {
		return nil, "", err
	}
	e.text, e.tag, e.last = b, fmt.Sprintf("\"%016x\"", xxh3.Hash(b)), ended
	e.until = now.Add(max(encodeEvery, encodeShare*time.Since(now)))
	return e.text, e.tag, nil
}

// encoded returns the result so far as a line of JSON.
func (s *Server) encoded() ([]byte, error) {
	text, _, err := s.cached(&s.shown, func() ([]byte, error) {
		var shown any
		if s.many != nil {
			shown = s.many()
		} else {
			shown = s.advised()
		}
		b, err := json.Marshal(shown)
		return append(b, '\n'), err
	})
	return text, err
}

// While a run goes on, its page asks for an update every pagePoll. If browsers ask for more than
// pageRate pages a second in all, pages ask less often, but at least every mostPoll.
const (
	pagePoll = 2 * time.Second
	pageRate = 10
	mostPoll = time.Minute
)

// drawn returns the page of the result so far.
func (s *Server) drawn() (text []byte, tag string, err error) {
	s.pages.Add(1)
	return s.cached(&s.page, func() ([]byte, error) {
		runs := s.results()
		d := Document(runs)
		d.Served = true
		rate := float64(s.pages.Swap(0)) / max(time.Since(s.pagesSince).Seconds(), 1)
		s.pagesSince = time.Now()
		for _, r := range runs {
			if r.Status == run.Running {
				d.Poll = min(time.Duration(float64(pagePoll)*max(1, rate/pageRate)), mostPoll)
			}
		}
		return d.Page()
	})
}

// answerPage sends the page, or status 304 if the browser's tag shows that it has this page.
func (s *Server) answerPage(w http.ResponseWriter, r *http.Request) {
	text, tag, err := s.drawn()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	h := w.Header()
	h.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", page.Policy())
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	_, _ = w.Write(text)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	s.answering.RLock()
	defer s.answering.RUnlock()
	if s.closed {
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed, "statistics are only read: use GET")
	case r.ContentLength != 0:
		refuse(w, http.StatusBadRequest, "a request has no body")
	case !s.ours(r):
		refuse(w, http.StatusForbidden,
			"ask for localhost, or for the address itself: this is served to this machine alone")
	case r.URL.Path == "/healthz":
		_, _ = io.WriteString(w, "ok\n")
	case !s.asked[overTCP(r)].take():
		if r.URL.Path == "/" {
			w.Header().Set("Refresh", "3") // seconds, after which a browser asks again
		}
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("asked %d times a second already; ask again later", maxAsked))
	case r.URL.Path == "/stats":
		b, err := s.encoded()
		if err != nil {
			refuse(w, http.StatusInternalServerError, err.Error())
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(b) // who does not listen is no concern of ours, here and below
	case r.URL.Path == "/watch":
		select {
		case s.watching[overTCP(r)] <- struct{}{}:
			s.watch(w, r)
			<-s.watching[overTCP(r)]
		default:
			refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("%d watch already; ask /stats, or again later", maxWatch))
		}
	case r.URL.Path == "/":
		s.answerPage(w, r)
	case r.URL.Path == "/metrics" && s.metrics != nil:
		s.metrics.ServeHTTP(w, r)
	default:
		refuse(w, http.StatusNotFound, "there are "+s.endpoints())
	}
}

// allowance permits maxAsked answers a second; they may come at once.
type allowance struct {
	mu   sync.Mutex
	used time.Time // the time up to which answers are used up
}

// take uses one answer up. It returns false if none is left.
func (a *allowance) take() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if a.used.Before(now) {
		a.used = now
	}
	if a.used.Sub(now) > time.Second-time.Second/maxAsked {
		return false
	}
	a.used = a.used.Add(time.Second / maxAsked)
	return true
}

// refuse answers in a line, and hangs up: what else the connection brings is not read.
func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Connection", "close")
	http.Error(w, why, code)
}

func overTCP(r *http.Request) bool {
	_, tcp := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return tcp
}

// ours reports whether a request to a loopback address was meant for this server. A page in the
// user's browser can make the browser ask here under a name of the page's own, which resolves to
// 127.0.0.1 (DNS rebinding); under a number it cannot. A server for other machines answers under
// any name.
func (s *Server) ours(r *http.Request) bool {
	if !overTCP(r) || !s.loopback {
		return true
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || strings.EqualFold(host, "localhost") || strings.EqualFold(host, s.host)
}

// The interval of /watch is between these; others are brought there.
const (
	minEvery = 100 * time.Millisecond
	maxEvery = time.Hour
)

// watch writes a line each time, and one more when the training ends.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	every := time.Second
	if text := r.URL.Query().Get("every"); text != "" {
		var err error
		if every, err = time.ParseDuration(text); err != nil {
			refuse(w, http.StatusBadRequest, "every is a time such as 1s or 500ms")
			return
		}
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // it was of the request; from here on reading tells that they hung up
	tick := time.NewTicker(min(max(every, minEvery), maxEvery))
	defer tick.Stop()
	for last := false; ; {
		b, err := s.encoded()
		if err == nil {
			_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
			_, err = w.Write(b)
		}
		if err == nil {
			err = c.Flush()
		}
		if err != nil || last {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.ending:
			last = true
		case <-tick.C:
		}
	}
}
