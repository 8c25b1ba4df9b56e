package dist

import (
	"context"
	"errors"
	"sync"
)

// Channel is a worker's end of a lane: a sequence of exchanges that runs beside the exchanges of
// the [Group], so that a worker can draw and read while its steps exchange gradients. All workers
// call the same methods in the same order. One goroutine at a time calls Exchange. A nil Channel is
// for one worker.
type Channel struct {
	group *Group // of the lane
	recv  [][]byte

	mu     sync.Mutex
	now    chan struct{} // closed when the newest exchange has ended; nil: there was none
	leaves bool          // Leave was called
	left   chan struct{} // closed once all workers know that this one has left
}

// Drawing returns this worker's end of the lane for drawing batches; nil where one worker trains.
func (g *Group) Drawing() *Channel { return g.channel(0) }

// Rows returns this worker's end of the lane for rows of features; nil where one worker trains.
func (g *Group) Rows() *Channel { return g.channel(1) }

func (g *Group) channel(n int) *Channel {
	if g == nil || len(g.channels) == 0 {
		return nil
	}
	return g.channels[n]
}

// Exchange sends send[p] to worker p, and returns what each worker sends to this one, by worker.
// The results are lent until the next call; send must stay as it is, even after an error. If a
// worker has left the lane, or leaves it instead of coming, the error is its own, or [ErrStopped].
// After an error, and when ctx ends, this worker leaves the lane, too.
func (c *Channel) Exchange(ctx context.Context, at At, send [][]byte) (recv [][]byte, err error) {
	if c == nil {
		return send, ctx.Err()
	}
	c.mu.Lock()
	if c.leaves {
		c.mu.Unlock()
		return nil, ErrStopped
	}
	done := make(chan struct{})
	c.now = done
	c.mu.Unlock()
	if c.recv == nil {
		c.recv = make([][]byte, len(send))
	}
	if err = ctx.Err(); err != nil {
		close(done)
		c.Leave(nil)
		return nil, err
	}
	var failed error
	go func() {
		defer close(done)
		failed = c.group.messages(ctx, messages, at, send, c.recv)
	}()
	select {
	case <-done:
		if failed == nil {
			return c.recv, nil
		}
		err = failed
	case <-ctx.Done(): // others may come later: this worker does not wait for them
		err = ctx.Err()
	}
	c.Leave(nil)
	return nil, err
}

// Leave says that this worker exchanges no more on the lane. If err is set, it is this worker's
// failure, and the others' next exchange fails with it; else theirs ends with [ErrStopped]. Leave
// returns at once: if it waited, two workers could each wait on another lane for the other. It may
// be called at any time, and only the first call counts. It leaves after an exchange under way.
func (c *Channel) Leave(err error) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaves {
		return
	}
	c.leaves = true
	before := c.now
	go func() {
		defer close(c.left)
		if before != nil {
			<-before
		}
		_ = c.group.Leave(err) // others' errors come by the Group
	}()
}

// leaveChannels leaves the lanes of all channels, and waits until all workers know. It does not
// wait if a worker hangs.
func (g *Group) leaveChannels(err error) {
	for _, c := range g.channels {
		c.Leave(err)
	}
	var late *LateError
	for _, c := range g.channels {
		if !errors.As(err, &late) {
			<-c.left
		}
	}
}
