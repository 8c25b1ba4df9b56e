package dist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// Host is one process and the workers that it hosts. Close it after Run.
type Host struct {
	Options
	link        link
	workers     int // of all processes
	first, last int // workers of this process: first to last-1
	lanes       [lanes]*lane
	turns       [][]turn // by worker; nil: all messages of an exchange go at once
}

// Options configures the workers of a run.
type Options struct {
	Way     Way
	Workers int // 0: one a process
	// Library is the file of the MPI library. Default: the one of the launcher.
	Library string
	// Timeout bounds the time that a worker waits for the others in an exchange. Default 0:
	// for ever.
	Timeout time.Duration
	// Fatal gets the error of an exchange among processes, before all of them are ended; nil:
	// nobody does.
	Fatal func(error)
	// Getenv looks up a variable that the launcher has set.
	Getenv func(key string) string
}

// Open connects the processes of a run. Each of them calls it.
func Open(o Options) (*Host, error) {
	var l link = alone{}
	switch o.Way {
	case Local:
	case MPI:
		var err error
		if l, err = openMPI(o); err != nil {
			return nil, err
		}
	default:
		o.Workers = 1
	}
	h := newHost(l, o)
	if err := h.SetWorkers(cmp.Or(o.Workers, l.Size())); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return h, nil
}

func newHost(l link, o Options) *Host {
	h := &Host{Options: o, link: l}
	for n := range h.lanes {
		h.lanes[n] = &lane{number: laneNumber(n), host: h}
		h.lanes[n].packed, h.lanes[n].arrived = make([][]byte, l.Size()), make([][]byte, l.Size())
	}
	return h
}

// SetWorkers sets the number of workers of all processes, before Run. Each process hosts one or
// more.
func (h *Host) SetWorkers(n int) error {
	if n < h.Processes() {
		return fmt.Errorf("{dist} %s: %d workers for %d processes, which host one or more each; "+
			"start fewer processes, or name more workers", h.Way.Text(n), n, h.Processes())
	}
	h.workers = n
	h.first, h.last = h.hostedBy(h.link.Rank())
	return nil
}

// Agree calls own in the first process, and returns its result in every process. If own fails,
// Agree returns its error in the first process, and a *WorkerError in the others. All processes
// call it before Run.
func (h *Host) Agree(ctx context.Context, own func() ([]byte, error)) ([]byte, error) {
	if h.Processes() == 1 {
		return own()
	}
	between := newHost(h.link, h.Options)
	if err := between.SetWorkers(h.Processes()); err != nil {
		return nil, err
	}
	var text []byte
	err := between.Run(ctx, func(ctx context.Context, g *Group) (err error) {
		if g.Rank() == 0 {
			if text, err = own(); err != nil {
				return err
			}
		}
		text, err = g.Broadcast(ctx, At{}, text)
		return err
	})
	return text, err
}

// Processes returns the number of processes.
func (h *Host) Processes() int { return h.link.Size() }

// hostedBy returns the workers of process p: first to last-1.
func (h *Host) hostedBy(p int) (first, last int) { return Share(h.workers, p, h.link.Size()) }

// Share returns worker p's part of the numbers below total, among n workers: lo to hi-1. Parts
// follow each other, and their sizes differ by one at most.
func Share(total, p, n int) (lo, hi int) { return p * total / n, (p + 1) * total / n }

// Workers returns the number of workers of the run, in all processes.
func (h *Host) Workers() int { return h.workers }

// Hosted returns the number of workers that this process hosts.
func (h *Host) Hosted() int { return h.last - h.first }

// First reports whether this process hosts worker 0, which prints and writes.
func (h *Host) First() bool { return h.first == 0 }

// Run calls work for each worker of this process, on a goroutine of its own, and waits for them. If
// a worker fails, the others are told. Run returns the error of a worker of this process, or else
// the error that it was told.
//
// If ctx ends, this process asks all workers to stop. They learn it in the same exchange, which
// returns [ErrStopped], and then the contexts of their work end, too: not before, so that no worker
// leaves another one waiting.
//
// If a worker does not come, Run does not wait for it. If it is of another process, or an exchange
// among processes fails, Run ends all processes, this one too.
func (h *Host) Run(ctx context.Context, work func(ctx context.Context, g *Group) error) error {
	type ended struct {
		rank int
		err  error
	}
	ends := make(chan ended, h.Hosted())
	for rank := h.first; rank < h.last; rank++ {
		go func() { ends <- ended{rank, h.worker(ctx, rank, work)} }()
	}
	expected := map[int]bool{}
	for rank := h.first; rank < h.last; rank++ {
		expected[rank] = true
	}
	var first error
	for len(expected) > 0 {
		e := <-ends
		delete(expected, e.rank)
		if weight(e.err) > weight(first) {
			first = e.err
		}
		var late *LateError
		if errors.As(e.err, &late) {
			for _, rank := range late.Workers {
				delete(expected, rank)
			}
		}
	}
	if h.broken() && h.Processes() > 1 { // other processes cannot be told
		if h.Fatal != nil {
			h.Fatal(first)
		}
		h.link.Abort()
	}
	return first
}

// broken reports whether an exchange has failed: workers did not come, or the library failed.
func (h *Host) broken() bool {
	return slices.ContainsFunc(h.lanes[:], func(l *lane) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.broken != nil
	})
}

// worker is Run for one worker.
func (h *Host) worker(ctx context.Context, rank int, work func(ctx context.Context, g *Group) error) error {
	if h.workers > 1 {
		var cancel func()
		asked := ctx
		ctx, cancel = context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		g := h.group(rank, cancel)
		defer context.AfterFunc(asked, func() { g.asked.Store(true) })()
		err := g.meet(ctx, rank)
		if err == nil {
			err = g.Leave(work(ctx, g))
		}
		g.leaveChannels(err)
		return g.named(err)
	}
	return work(ctx, h.group(rank, func() {}))
}

// named puts this worker's name before an error of its own.
func (g *Group) named(err error) error {
	if weight(err) < ownError {
		return err
	}
	return fmt.Errorf("%s: %w", g.Name(g.Rank()), err)
}

// Weights of errors: Run returns the heaviest.
const (
	stopping = 1 + iota
	othersError
	lateness
	ownError
)

func weight(err error) int {
	var others *WorkerError
	var late *LateError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrStopped):
		return stopping
	case errors.As(err, &others):
		return othersError
	case errors.As(err, &late):
		return lateness
	}
	return ownError
}

// Close gives up the connection. Workers of other processes must have ended, too.
func (h *Host) Close() error { return h.link.Close() }

// mostBytes bounds a message of a round, where there are few workers.
const mostBytes = 64 << 20

// most returns the most bytes of a message from worker to worker in a round. All messages of a
// process are one call of MPI, which counts in 32 bits. It is the same for all workers.
func (h *Host) most() int {
	hosted := (h.workers + h.Processes() - 1) / h.Processes()
	return min(mostBytes, math.MaxInt32/(hosted*h.workers))
}

func (h *Host) group(rank int, cancel func()) *Group {
	g := h.groupOn(steps, rank, cancel)
	if h.workers > 1 {
		for _, n := range []laneNumber{drawing, rows} {
			c := &Channel{group: h.groupOn(n, rank, func() {}), left: make(chan struct{})}
			c.group.peers, c.group.moved, c.group.aside = g.peers, g.moved, true
			g.channels = append(g.channels, c)
		}
	}
	return g
}

func (h *Host) groupOn(n laneNumber, rank int, cancel func()) *Group {
	g := &Group{
		end: end{h.lanes[n], rank}, timeout: h.Timeout, hosted: h.Hosted(), most: h.most(), cancel: cancel,
		peers: make([]Peer, h.workers), library: h.link.Library(), moved: new(atomic.Int64),
	}
	if h.turns != nil {
		g.turns = h.turns[rank]
	}
	return g
}
