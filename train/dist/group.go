package dist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"
)

// Group is one worker's view of all workers. A nil Group means one worker.
type Group struct {
	end     end
	timeout time.Duration
	hosted  int
	library string // of MPI
	most    int    // bytes of a message in a round
	turns   []turn // of exchanges with large messages; nil: they go at once
	peers   []Peer // by worker
	seq     uint64
	asked   atomic.Bool // this worker was asked to stop
	stops   bool        // a worker was asked to stop, and all know it
	cancel  func()      // ends the work of this worker, once all know
	ended   error       // why nothing can be exchanged any more

	channels []*Channel // Drawing, Rows; none where one worker trains
	aside    bool       // it is a Channel's

	heads, came [][]byte  // of headers, by worker
	out, in     [][]byte  // messages of a turn, by worker
	lent        [][]byte  // by Exchange
	others      []float32 // of Sum: other workers' numbers that this one adds up
	waited      time.Duration
	sent        atomic.Int64
	moved       *atomic.Int64 // exchanges that this worker has finished, on all lanes
}

// Rank returns the number of the worker, from 0.
func (g *Group) Rank() int {
	if g == nil {
		return 0
	}
	return g.end.Rank()
}

// Size returns the number of workers.
func (g *Group) Size() int {
	if g == nil {
		return 1
	}
	return g.end.Size()
}

// Hosted returns the number of workers that share this process.
func (g *Group) Hosted() int {
	if g == nil {
		return 1
	}
	return g.hosted
}

// Peers returns the workers. Do not change it.
func (g *Group) Peers() []Peer { return g.peers }

// Name names a worker with its host and process.
func (g *Group) Name(rank int) string { return g.peers[rank].name(g.Size()) }

// Share returns this worker's part of the numbers below n: lo to hi-1. The parts of all workers
// follow each other, and differ by one at most.
func (g *Group) Share(n int) (lo, hi int) { return Share(n, g.Rank(), g.Size()) }

// Waited returns how long this worker has waited in exchanges. It includes the time to send.
func (g *Group) Waited() time.Duration {
	if g == nil {
		return 0
	}
	return g.waited
}

// Sent returns the bytes of messages that this worker has sent to others, on its channels, too. It
// may be called at any time.
func (g *Group) Sent() int64 {
	if g == nil {
		return 0
	}
	n := g.sent.Load()
	for _, c := range g.channels {
		n += c.group.sent.Load()
	}
	return n
}

// meet brings the names of all workers together.
func (g *Group) meet(ctx context.Context, rank int) error {
	host, _ := os.Hostname() // "" where it is not known
	own := Peer{Rank: rank, Host: host, PID: os.Getpid(), Library: g.library}
	text, err := json.Marshal(own)
	if err != nil {
		return err
	}
	g.peers[own.Rank] = own
	all, err := g.gather(ctx, greeting, At{}, text)
	if err != nil {
		return err
	}
	for p, text := range all {
		if err := json.Unmarshal(text, &g.peers[p]); err != nil {
			return fmt.Errorf("the name of worker %d: %w", p, err)
		}
	}
	return nil
}

// Gather returns the bytes that each worker gives, by worker. The results are the caller's.
func (g *Group) Gather(ctx context.Context, at At, own []byte) ([][]byte, error) {
	if g == nil {
		return [][]byte{own}, nil
	}
	return g.gather(ctx, results, at, own)
}

// Exchange sends send[p] to worker p, and returns what each worker sends to this one, by worker.
// All of them call it. The results are lent until the next call.
func (g *Group) Exchange(ctx context.Context, at At, send [][]byte) ([][]byte, error) {
	if g == nil {
		return send, ctx.Err()
	}
	if g.lent == nil {
		g.lent = make([][]byte, g.Size())
	}
	return g.lent, g.messages(ctx, messages, at, send, g.lent)
}

// Broadcast returns the bytes that worker 0 gives, on every worker.
func (g *Group) Broadcast(ctx context.Context, at At, own []byte) ([]byte, error) {
	if g.Rank() != 0 {
		own = nil
	}
	all, err := g.Gather(ctx, at, own)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

func (g *Group) gather(ctx context.Context, of kind, at At, own []byte) ([][]byte, error) {
	send, recv := make([][]byte, g.Size()), make([][]byte, g.Size())
	for p := range send {
		send[p] = own
	}
	return recv, g.messages(ctx, of, at, send, recv)
}

// messages sends send[p] to worker p, and sets recv[p] to what p sends. It uses the memory of recv.
func (g *Group) messages(ctx context.Context, of kind, at At, send, recv [][]byte) error {
	lengths := make([]int, g.Size())
	for p := range send {
		lengths[p] = len(send[p])
	}
	heads, err := g.begin(ctx, header{kind: of, at: at}, lengths, "")
	if err != nil {
		return err
	}
	for p, h := range heads {
		if n := int(h.bytes); cap(recv[p]) < n {
			recv[p] = make([]byte, n, n+n/8)
		} else {
			recv[p] = recv[p][:n]
		}
	}
	return g.finish(ctx, send, recv, heads)
}

// Sum replaces x by the sum of all workers' x, which have the same length on all of them. Each sum
// is added up in float64 in the order of the workers, and rounded once: every worker gets the same
// bits. beside goes along: Sum returns the bytes that each worker gives, as many on all workers.
// They are the caller's.
//
// A worker adds up a part of the numbers and sends the sums to the others, so it sends and receives
// 8(V-1)/V bytes a number.
func (g *Group) Sum(ctx context.Context, at At, beside []byte, x []float32) ([][]byte, error) {
	v, rank := g.Size(), g.Rank()
	if v == 1 {
		return [][]byte{beside}, g.ended
	}
	send, recv, all, lengths := make([][]byte, v), make([][]byte, v), make([][]byte, v), make([]int, v)
	for p := range v {
		lengths[p] = max(len(beside), 4*len(g.part(x, p)))
		send[p], all[p] = beside, make([]byte, len(beside))
	}
	heads, err := g.begin(ctx, header{kind: sums, at: at, numbers: uint64(len(x))}, lengths, "")
	if err != nil {
		return nil, err
	}
	if err := g.finish(ctx, send, all, heads); err != nil {
		return nil, err
	}
	own := g.part(x, rank)
	g.others = slices.Grow(g.others[:0], v*len(own))[:v*len(own)]
	other := func(p int) []float32 { return g.others[p*len(own) : (p+1)*len(own)] }
	for p := range v {
		send[p], recv[p] = bytesOf(g.part(x, p)), bytesOf(other(p))
	}
	send[rank], recv[rank] = nil, nil
	if err := g.finish(ctx, send, recv, heads); err != nil {
		return nil, err
	}
	var block [1 << 11]float64 // stays in the nearest cache
	for lo := 0; lo < len(own); lo += len(block) {
		hi := min(lo+len(block), len(own))
		totals := block[:hi-lo]
		clear(totals)
		for p := range v {
			from := own
			if p != rank {
				from = other(p)
			}
			addTo(totals, from[lo:hi])
		}
		for i, x := range totals {
			own[lo+i] = float32(x)
		}
	}
	for p := range v {
		send[p], recv[p] = bytesOf(own), bytesOf(g.part(x, p))
	}
	send[rank], recv[rank] = nil, nil
	return all, g.finish(ctx, send, recv, heads)
}

// part returns the numbers that worker p adds up.
func (g *Group) part(x []float32, p int) []float32 {
	lo, hi := Share(len(x), p, g.Size())
	return x[lo:hi]
}

func addTo(totals []float64, numbers []float32) {
	for i, x := range numbers[:len(totals)] {
		totals[i] += float64(x)
	}
}

// bytesOf returns the memory of x.
func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

// Leave says that this worker exchanges no more. err is the error of its work, or nil. If err is
// set, the others' next exchange fails with it, unless they had it before. If err is nil, or says
// only that others end, and another worker has failed, Leave returns that worker's error. If others
// are still at an exchange, it ends with [ErrStopped], and Leave waits until they leave, too. A
// second call returns its err.
func (g *Group) Leave(err error) error {
	if g == nil || g.ended != nil {
		return err
	}
	for _, c := range g.channels { // first, so that workers that wait there come here
		c.Leave(err)
	}
	own, text, follows := header{kind: farewell}, "", err == nil || weight(err) <= othersError
	if !follows {
		own.status, text = failed, err.Error()
	} else if g.aside || err != nil {
		own.status = gone
	}
	lengths := make([]int, g.Size())
	for p := range lengths {
		lengths[p] = len(text)
	}
	_, news := g.begin(context.Background(), own, lengths, text)
	for errors.Is(news, errAgain) {
		_, news = g.begin(context.Background(), own, lengths, text)
	}
	if g.ended == nil {
		g.ended = errors.New("dist: an exchange after Leave")
	}
	var late *LateError
	switch {
	case follows && news != nil:
		return news
	case errors.As(news, &late): // Host.Run has to know that a worker hangs
		return fmt.Errorf("%w; %w", err, news)
	}
	return err
}

// Ended reports whether nothing can be exchanged any more.
func (g *Group) Ended() bool { return g != nil && g.ended != nil }

// fail records that nothing can be exchanged any more, because of err.
func (g *Group) fail(err error) error {
	g.ended = err
	return err
}

// begin exchanges headers. lengths has the lengths of the messages that follow, by worker, and text
// is the error of a worker that has failed. After an error nothing follows.
func (g *Group) begin(ctx context.Context, own header, lengths []int, text string) ([]header, error) {
	if g.ended != nil {
		return nil, g.ended
	}
	defer g.clock(time.Now())
	if g.heads == nil {
		for range g.Size() {
			g.heads, g.came = append(g.heads, make([]byte, headerBytes)), append(g.came, make([]byte, headerBytes))
		}
	}
	own.seq, own.rounds, own.large = g.seq, g.rounds(slices.Max(lengths)), slices.Max(lengths) > mostAtOnce
	if g.asked.Load() && !g.stops && own.kind != farewell && own.status == well {
		own.status = stopped
	}
	g.seq++
	for p := range g.heads {
		own.bytes = uint64(lengths[p])
		own.put(g.heads[p])
	}
	if err := g.allToAll(ctx, g.heads, g.came); err != nil {
		return nil, err
	}
	heads := make([]header, g.Size())
	for p := range heads {
		if err := heads[p].get(g.came[p]); err != nil {
			return nil, g.fail(fmt.Errorf("worker %d: %w", p, err))
		}
	}
	return heads, g.judge(ctx, own, heads, text)
}

// judge returns the error that the headers of an exchange give every worker.
func (g *Group) judge(ctx context.Context, own header, heads []header, text string) error {
	if slices.ContainsFunc(heads, func(h header) bool { return h.status == failed }) {
		return g.fail(g.failure(ctx, own, heads, text))
	}
	if slices.ContainsFunc(heads, func(h header) bool { return h.status == gone }) {
		switch at := slices.ContainsFunc(heads, func(h header) bool { return h.kind != farewell }); {
		case !at || g.aside:
			return g.fail(ErrStopped)
		case own.kind == farewell:
			return errAgain
		}
		return ErrStopped // this worker leaves next, and tells its error if it is the one that failed
	}
	for p, h := range heads {
		if !h.same(own) {
			return g.fail(fmt.Errorf("worker %d is at %v, and worker %d at %v", p, h, g.Rank(), own))
		}
	}
	if slices.ContainsFunc(heads, func(h header) bool { return h.status == stopped }) {
		g.stops = true
		g.cancel()
		return ErrStopped
	}
	return nil
}

// failure exchanges the errors of failed workers, and returns the error of the first one.
func (g *Group) failure(ctx context.Context, own header, heads []header, text string) error {
	send, recv, first := make([][]byte, g.Size()), make([][]byte, g.Size()), -1
	for p := range heads {
		if own.status == failed {
			send[p] = []byte(text)
		}
		if heads[p].status != failed {
			heads[p] = header{} // its message is not sent
			continue
		}
		recv[p] = make([]byte, heads[p].bytes)
		if first < 0 {
			first = p
		}
	}
	if err := g.finish(ctx, send, recv, heads); err != nil {
		return err
	}
	peer := g.peers[first]
	peer.Rank = first // at the start its name has not come
	return &WorkerError{peer, g.Size(), string(recv[first])}
}

// rounds returns the number of rounds that a message takes.
func (g *Group) rounds(bytes int) uint32 { return uint32((bytes + g.most - 1) / g.most) }

// finish exchanges the messages that heads announce, some bytes of each at a time.
func (g *Group) finish(ctx context.Context, send, recv [][]byte, heads []header) error {
	defer g.clock(time.Now())
	for p, message := range send {
		if p != g.Rank() {
			g.sent.Add(int64(len(message)))
		}
	}
	all := uint32(0)
	for _, h := range heads {
		all = max(all, h.rounds)
	}
	for r := range int(all) {
		send, recv := round(send, r, g.most), round(recv, r, g.most)
		if g.turns == nil || !slices.ContainsFunc(heads, func(h header) bool { return h.large }) {
			if err := g.allToAll(ctx, send, recv); err != nil {
				return err
			}
			continue
		}
		if g.out == nil {
			g.out, g.in = make([][]byte, g.Size()), make([][]byte, g.Size())
		}
		for _, turn := range g.turns {
			if err := g.allToAll(ctx, only(send, turn.to, g.out), only(recv, turn.from, g.in)); err != nil {
				return err
			}
		}
	}
	return nil
}

// allToAll exchanges messages whose lengths both ends know. After an error the group exchanges
// nothing more.
func (g *Group) allToAll(ctx context.Context, send, recv [][]byte) error {
	// An exchange does not end with ctx, or else the other workers would wait for this one.
	waiting, done := g.deadline(context.WithoutCancel(ctx), g.timeout)
	defer done()
	if err := g.end.AllToAll(waiting, send, recv); err != nil {
		return g.fail(g.naming(err))
	}
	g.moved.Add(1)
	return nil
}

// naming names the workers of the processes that a *LateError misses.
func (g *Group) naming(err error) error {
	var late *LateError
	if !errors.As(err, &late) || len(late.processes) == 0 {
		return err
	}
	named := *late
	for _, p := range late.processes {
		first, last := g.end.host.hostedBy(p)
		for w := first; w < last; w++ {
			peer := g.peers[w]
			peer.Rank = w // where they have not met
			named.names = append(named.names, peer.name(g.Size()))
		}
	}
	return &named
}

// round returns what the r-th round takes of each message.
func round(messages [][]byte, r, most int) [][]byte {
	if r == 0 && !slices.ContainsFunc(messages, func(m []byte) bool { return len(m) > most }) {
		return messages
	}
	parts := make([][]byte, len(messages))
	for p, m := range messages {
		parts[p] = m[min(r*most, len(m)):min((r+1)*most, len(m))]
	}
	return parts
}

func (g *Group) clock(since time.Time) { g.waited += time.Since(since) }
