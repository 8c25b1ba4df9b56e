package dist

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestChannel: messages of any lengths arrive on both channels, beside the exchanges of the group
// and at a pace of their own.
func TestChannel(t *testing.T) {
	layouts(t, func(t *testing.T, processes, workers int) {
		text := func(from, to, time int) []byte {
			return []byte(fmt.Sprint(from, to, time, make([]int, (from*7+to*3+time)%50)))
		}
		none(t, together(processes, workers, Options{}, func(ctx context.Context, g *Group) error {
			var all sync.WaitGroup
			errs := make([]error, 3)
			for n, c := range []*Channel{g.Drawing(), g.Rows()} {
				all.Go(func() {
					for time := range 40 * (n + 1) {
						send := make([][]byte, workers)
						for p := range send {
							send[p] = text(g.Rank(), p, time)
						}
						recv, err := c.Exchange(ctx, At{1, time}, send)
						for p := range recv {
							if want := text(p, g.Rank(), time); !bytes.Equal(want, recv[p]) {
								err = fmt.Errorf("worker %d sent %q, want %q", p, recv[p], want)
							}
						}
						errs[n] = errors.Join(errs[n], err)
					}
				})
			}
			for time := range 20 {
				_, err := g.Gather(ctx, At{1, time}, nil)
				errs[2] = errors.Join(errs[2], err)
			}
			all.Wait()
			return errors.Join(errs...)
		}))
	})
}

// TestChannelLeft: a worker that fails or stops while others wait for it on a channel, or on both
// channels and the group, leaves none of them waiting, whatever each of them is at.
func TestChannelLeft(t *testing.T) {
	layouts(t, func(t *testing.T, processes, workers int) {
		if workers == 1 {
			return
		}
		for trial := range 20 {
			r := rand.New(rand.NewPCG(uint64(trial), uint64(workers)))
			bad, at, lane, fails := r.IntN(workers), r.IntN(6), r.IntN(3), trial%2 == 0
			broken := errors.New("a disk has gone")
			errs := together(processes, workers, Options{}, func(ctx context.Context, g *Group) error {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				ends := make([]error, 3)
				var all sync.WaitGroup
				for n := range 3 {
					all.Go(func() {
						for time := range 10 {
							here := g.Rank() == bad && time == at && lane == n
							var err error
							switch {
							case here && fails:
								err = broken
							case here:
								err = context.Canceled
							case n == 2:
								_, err = g.Gather(ctx, At{1, time}, nil)
							default:
								_, err = g.channels[n].Exchange(ctx, At{1, time}, make([][]byte, workers))
							}
							if err == nil {
								continue
							}
							ends[n] = err
							cancel() // as stages of a pipeline end each other
							if n < 2 && errors.Is(err, broken) {
								g.channels[n].Leave(err)
							} else if n < 2 {
								g.channels[n].Leave(nil)
							} else if !errors.Is(err, ErrStopped) && g.Rank() == bad && here {
								if !fails {
									err = ErrStopped
								}
								ends[n] = g.Leave(err)
							}
							return
						}
					})
				}
				all.Wait()
				for _, err := range ends {
					if errors.Is(err, broken) {
						return err
					}
				}
				return errors.Join(ends...)
			})
			if fails {
				all := errors.Join(errs...)
				require.ErrorContains(t, all, "a disk has gone")
				require.ErrorContains(t, all, fmt.Sprintf("worker %d of %d", bad, workers))
			}
		}
	})
}

// TestLeaveFreesChannels: a worker that fails while the others wait on a channel, and on no other
// lane, leaves none of them waiting.
func TestLeaveFreesChannels(t *testing.T) {
	layouts(t, func(t *testing.T, processes, workers int) {
		if workers == 1 {
			return
		}
		for n := range 2 {
			errs := together(processes, workers, Options{}, func(ctx context.Context, g *Group) error {
				if g.Rank() == 0 {
					return g.Leave(errors.New("no space"))
				}
				_, err := g.channels[n].Exchange(ctx, At{}, make([][]byte, workers))
				return g.Leave(err)
			})
			require.ErrorContains(t, errors.Join(errs...), "no space")
		}
	})
}

// TestLateOnNoLane: a worker may wait on a channel for longer than the timeout while it goes on
// with others on another lane. Once nothing goes on, the wait ends.
func TestLateOnNoLane(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		t.Run(fmt.Sprint(hangs), func(t *testing.T) {
			t.Parallel() // most of it is waiting
			lateOnNoLane(t, hangs)
		})
	}
}

func lateOnNoLane(t *testing.T, hangs bool) {
	never := make(chan bool)
	errs := together(1, 2, Options{Timeout: time.Second}, func(ctx context.Context, g *Group) error {
		ahead := make(chan error, 1)
		if g.Rank() == 0 {
			go func() {
				_, err := g.Drawing().Exchange(ctx, At{}, make([][]byte, 2))
				ahead <- err
			}()
		}
		for step := range 24 {
			if _, err := g.Gather(ctx, At{Step: step}, nil); err != nil {
				return err
			}
			time.Sleep(60 * time.Millisecond)
		}
		switch {
		case g.Rank() == 0:
			return <-ahead
		case hangs:
			<-never
		}
		_, err := g.Drawing().Exchange(ctx, At{}, make([][]byte, 2))
		return err
	})
	if hangs {
		require.ErrorContains(t, errs[0], "waited for 1s for worker 1")
	} else {
		require.NoError(t, errs[0])
	}
	close(never)
}

// TestHangBesideFailure: a worker that fails while another one hangs does not wait for it for ever.
func TestHangBesideFailure(t *testing.T) {
	never := make(chan bool)
	defer close(never)
	errs := together(1, 2, Options{Timeout: 50 * time.Millisecond}, func(_ context.Context, g *Group) error {
		if g.Rank() == 1 {
			<-never
		}
		return errors.New("a disk has gone")
	})
	require.ErrorContains(t, errs[0], "a disk has gone")
	require.ErrorContains(t, errs[0], "waited for 50ms for worker 1")
}

// TestFollowers: workers that end because another one has left a channel hear of its failure,
// though it and others are at an exchange of the group when they end.
func TestFollowers(t *testing.T) {
	for follower := range 3 {
		for bad := range 3 {
			if bad == follower {
				continue
			}
			var mu sync.Mutex
			all := map[int]error{}
			together(2, 3, Options{Timeout: time.Minute}, func(ctx context.Context, g *Group) error {
				err := error(ErrStopped)
				if g.Rank() != follower {
					_, err = g.Sum(ctx, At{1, 2}, nil, make([]float32, 5))
				}
				if g.Rank() == bad {
					err = errors.New("a disk has gone")
				}
				err = g.Leave(err)
				mu.Lock()
				defer mu.Unlock()
				all[g.Rank()] = err
				return err
			})
			for rank, err := range all {
				require.ErrorContains(t, err, "a disk has gone")
				if rank != bad {
					var of *WorkerError
					require.ErrorAs(t, err, &of)
					require.Equal(t, bad, of.Rank)
				}
			}
		}
	}
}

// TestSent: a worker counts the messages that it has sent to others, on all lanes, and no headers.
func TestSent(t *testing.T) {
	layouts(t, func(t *testing.T, processes, workers int) {
		none(t, together(processes, workers, Options{}, func(ctx context.Context, g *Group) error {
			before, send := g.Sent(), make([][]byte, workers)
			if _, err := g.Gather(ctx, At{}, make([]byte, 7)); err != nil {
				return err
			}
			for p := range send {
				send[p] = make([]byte, 100*(p+1)+g.Rank())
			}
			if _, err := g.Rows().Exchange(ctx, At{}, send); err != nil {
				return err
			}
			want := 7 * (workers - 1)
			for p := range send {
				if p != g.Rank() {
					want += len(send[p])
				}
			}
			require.EqualValues(t, want, g.Sent()-before)
			return nil
		}))
	})
}

// TestMeasure: all workers get the same speed, and the lane goes on afterwards.
func TestMeasure(t *testing.T) {
	layouts(t, func(t *testing.T, processes, workers int) {
		type speed struct{ bytes, latency float64 }
		speeds := make([]speed, workers)
		none(t, together(processes, workers, Options{}, func(ctx context.Context, g *Group) (err error) {
			s := &speeds[g.Rank()]
			if s.bytes, s.latency, err = g.Measure(ctx); err != nil {
				return err
			}
			_, err = g.Rows().Exchange(ctx, At{1, 1}, make([][]byte, workers))
			return err
		}))
		for _, s := range speeds {
			require.Equal(t, speeds[0], s)
			require.Positive(t, s.bytes)
			require.Equal(t, workers > 1, s.latency > 0)
		}
	})
}
