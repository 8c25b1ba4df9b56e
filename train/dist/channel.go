package dist

import (
	"context"
	"errors"
	"sync/atomic"
)

// Channel is a worker's end of a lane of its own: its exchanges do not wait for exchanges of the
// [Group], so a worker can draw and read ahead of its steps. All workers call the same methods in
// the same order. One goroutine at a time calls Exchange; Leave may be called at any time when
// Exchange does not run. A nil Channel is for one worker.
type Channel struct {
	group *Group // of the lane
	recv  [][]byte

	leaves atomic.Bool   // Leave was called
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
	if c.leaves.Load() {
		return nil, ErrStopped
	}
	if c.recv == nil {
		c.recv = make([][]byte, len(send))
	}
	done := make(chan error, 1)
	if err = ctx.Err(); err == nil {
		go func() { done <- c.group.messages(ctx, messages, at, send, c.recv) }()
		select {
		case err = <-done:
			if err == nil {
				return c.recv, nil
			}
		case <-ctx.Done(): // others may come later: this worker does not wait for them
			c.leaveAfter(done, nil)
			return nil, ctx.Err()
		}
	}
	c.Leave(nil)
	return nil, err
}

// Leave says that this worker exchanges no more on the lane. If err is set, it is this worker's
// failure, and the others' next exchange fails with it; else theirs ends with [ErrStopped]. Leave
// does not wait for them, so that no worker waits on one lane for another that waits on a second
// lane. Only the first call counts.
func (c *Channel) Leave(err error) {
	if c == nil {
		return
	}
	c.leaveAfter(nil, err)
}

// leaveAfter leaves the lane when the exchange under way has ended; done is nil if there is none.
func (c *Channel) leaveAfter(done <-chan error, err error) {
	if c.leaves.Swap(true) {
		return
	}
	go func() {
		defer close(c.left)
		if done != nil {
			<-done
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
