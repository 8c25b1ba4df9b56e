package dist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"
)

// Host is one process and the workers that it hosts. Close it after Run.
type Host struct {
	Options
	link        link
	workers     int // of all processes
	first, last int // workers of this process: first to last-1
	lanes       [lanes]*lane
}

// Options configures the workers of a run.
type Options struct {
	Way     Way
	Workers int // 0: one a process
	// Library is the file of the MPI library. Default: the one of the launcher.
	Library string
	// Timeout bounds the time that a worker waits for the others to begin an exchange. Default 0:
	// for ever.
	Timeout time.Duration
	// Getenv reads the environment that the launcher has made: os.Getenv.
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
		h.lanes[n] = &lane{number: Lane(n), host: h}
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

// Agree returns what own returns in the first process, in all processes. If own fails, Agree
// returns its error in the first one, and a *WorkerError in the others. All processes call it
// before Run.
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

// Share returns worker p's part of the numbers below total, among n workers: lo to hi-1. Parts follow
// each other, and differ by one at most.
func Share(total, p, n int) (lo, hi int) { return p * total / n, (p + 1) * total / n }

// Workers returns the number of workers of the run, in all processes.
func (h *Host) Workers() int { return h.workers }

// Hosted returns the number of workers that this process hosts.
func (h *Host) Hosted() int { return h.last - h.first }

// First reports whether this process hosts worker 0, which prints and writes.
func (h *Host) First() bool { return h.first == 0 }

// Library names the library that connects the processes; "" if there is one process.
func (h *Host) Library() string { return h.link.Library() }

// Run calls work for each worker of this process, on a goroutine of its own, and waits for all of
// them. It tells the other workers of a worker's error, and returns the first error that is not
// only the news of another worker's.
func (h *Host) Run(ctx context.Context, work func(ctx context.Context, g *Group) error) error {
	errs := make([]error, h.Hosted())
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			g, err := h.group(ctx, h.first+i, cancel)
			if err == nil {
				err = g.Leave(work(ctx, g))
			}
			errs[i] = g.named(err)
		})
	}
	all.Wait()
	return h.verdict(errs)
}

// named puts this worker's name before an error of its own.
func (g *Group) named(err error) error {
	var others *WorkerError
	if err == nil || g.Size() == 1 || errors.As(err, &others) || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s: %w", g.Name(g.Rank()), err)
}

// verdict chooses from the errors of the workers of a process, and ends all processes if workers
// did not come: they cannot be told.
func (h *Host) verdict(errs []error) error {
	var first error
	for _, err := range errs {
		var late *LateError
		var others *WorkerError
		if errors.As(err, &late) && h.link.Size() > 1 {
			defer h.link.Abort()
		}
		if err != nil && (first == nil || errors.As(first, &others)) {
			first = err
		}
	}
	return first
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

// group returns the Group of a worker, once all workers have theirs.
func (h *Host) group(ctx context.Context, rank int, cancel func()) (*Group, error) {
	name, _ := os.Hostname() // "" where it is not known
	g := &Group{
		comm: end{h.lanes[Steps], rank}, timeout: h.Timeout, hosted: h.Hosted(),
		cancel: cancel, most: h.most(), peers: make([]Peer, h.workers),
	}
	return g, g.meet(ctx, Peer{Rank: rank, Host: name, PID: os.Getpid(), Library: h.Library()})
}
