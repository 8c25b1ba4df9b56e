package dist

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// laneNumber numbers the lanes of a run. Exchanges on one lane do not wait for those on another.
type laneNumber int

const (
	steps   laneNumber = iota // for the steps, the evaluation and the checkpoints
	drawing                   // see Group.Drawing
	rows                      // see Group.Rows
	lanes
)

// link connects processes. Each lane calls its methods from one goroutine at a time.
type link interface {
	Rank() int // of this process
	Size() int // processes
	AllToAll(ctx context.Context, lane laneNumber, send, recv [][]byte) error
	Library() string // "" where there is none
	// Abort ends all processes, this one too.
	Abort()
	Close() error
}

// alone is the link of a process without others.
type alone struct{}

func (alone) Rank() int       { return 0 }
func (alone) Size() int       { return 1 }
func (alone) Library() string { return "" }
func (alone) Abort()          {}
func (alone) Close() error    { return nil }
func (alone) AllToAll(_ context.Context, _ laneNumber, send, recv [][]byte) error {
	copy(recv[0], send[0])
	return nil
}

// lane joins the calls of the workers of a process into one exchange among processes.
type lane struct {
	number laneNumber
	host   *Host

	mu      sync.Mutex
	now     *meeting
	broken  error
	packed  [][]byte // message to each process
	arrived [][]byte // message from each process
}

// meeting is one call of AllToAll by every worker of a process.
type meeting struct {
	send, recv [][][]byte // by worker of this process, and by worker
	missing    int
	done       chan struct{} // closed when err is set
	err        error
}

func (l *lane) begin() *meeting {
	n := l.host.last - l.host.first
	return &meeting{send: make([][][]byte, n), recv: make([][][]byte, n), missing: n, done: make(chan struct{})}
}

// end is the worker's end of a lane.
type end struct {
	*lane
	rank int
}

func (e end) Rank() int { return e.rank }
func (e end) Size() int { return e.host.workers }

// AllToAll sends send[p] to worker p, and fills recv[p] with the bytes that p sends. Both ends know
// the lengths. Every worker calls it, one call at a time; the last one to come exchanges for the
// workers of its process. send is not changed. The end of ctx is an error. After an error no worker
// of the process can use the lane.
func (e end) AllToAll(ctx context.Context, send, recv [][]byte) error {
	if len(send) != e.Size() || len(recv) != e.Size() {
		panic(fmt.Sprintf("dist: AllToAll of %d and %d messages among %d workers", len(send), len(recv), e.Size()))
	}
	l, own := e.lane, e.rank-e.host.first
	l.mu.Lock()
	if l.broken != nil {
		defer l.mu.Unlock()
		return l.broken
	}
	if l.now == nil {
		l.now = l.begin()
	}
	m := l.now
	m.send[own], m.recv[own] = send, recv
	if m.missing--; m.missing > 0 {
		l.mu.Unlock()
		return l.wait(ctx, m)
	}
	l.now = nil
	l.mu.Unlock()
	if m.err = l.exchange(ctx, m); m.err != nil {
		l.mu.Lock()
		l.broken = m.err
		l.mu.Unlock()
	}
	close(m.done)
	return m.err
}

// wait waits for the others of a meeting. If ctx ends while some are missing, the lane breaks.
func (l *lane) wait(ctx context.Context, m *meeting) error {
	select {
	case <-m.done:
		return m.err
	case <-ctx.Done():
	}
	l.mu.Lock()
	if l.now != m { // all came, and exchange
		l.mu.Unlock()
		<-m.done
		return m.err
	}
	late := &LateError{For: context.Cause(ctx)}
	for i, sent := range m.send {
		if sent == nil {
			late.Workers = append(late.Workers, l.host.first+i)
		}
	}
	l.broken, m.err, l.now = late, late, nil
	l.mu.Unlock()
	close(m.done)
	return late
}

// exchange copies what workers of this process send to each other, and sends the rest as one
// message for each other process: worker after worker, and for each of them receiver after
// receiver.
func (l *lane) exchange(ctx context.Context, m *meeting) error {
	h := l.host
	for p := range h.link.Size() {
		l.packed[p], l.arrived[p] = l.packed[p][:0], l.arrived[p][:0]
		first, last := h.hostedBy(p)
		for i := range m.send {
			for q := first; q < last; q++ {
				if p == h.link.Rank() {
					to, from := m.recv[q-first][h.first+i], m.send[i][q]
					if len(to) != len(from) {
						panic(fmt.Sprintf("dist: worker %d sends %d bytes, and worker %d expects %d",
							h.first+i, len(from), q, len(to)))
					}
					copy(to, from)
					continue
				}
				l.packed[p] = append(l.packed[p], m.send[i][q]...)
			}
		}
		if p != h.link.Rank() {
			n := 0
			for q := first; q < last; q++ {
				for i := range m.recv {
					n += len(m.recv[i][q])
				}
			}
			l.arrived[p] = slices.Grow(l.arrived[p], n)[:n]
		}
	}
	if h.link.Size() == 1 {
		return nil
	}
	if err := h.link.AllToAll(ctx, l.number, l.packed, l.arrived); err != nil {
		return err
	}
	for p, came := range l.arrived {
		if p == h.link.Rank() {
			continue
		}
		first, last := h.hostedBy(p)
		for q := first; q < last; q++ {
			for i := range m.recv {
				came = came[copy(m.recv[i][q], came):]
			}
		}
	}
	return nil
}

// deadline returns a context that ends with an error that says so once this worker has finished no
// exchange for d, on any lane; 0: never. A worker that draws ahead waits for others as long as they
// make steps, which may take longer than d.
func (g *Group) deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	seen := g.moved.Load()
	var mu sync.Mutex // guards timer
	mu.Lock()
	defer mu.Unlock()
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		mu.Lock()
		defer mu.Unlock()
		now := g.moved.Load()
		switch {
		case ctx.Err() != nil: // the wait has ended
		case now != seen:
			seen = now
			timer.Reset(d)
		default:
			cancel(fmt.Errorf("waited for %v", d))
		}
	})
	return ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
		cancel(nil)
	}
}
