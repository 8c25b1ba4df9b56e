package cachetier_test

import (
	"context"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
)

// TestFilesThatFailAndRecover cuts off the end of a file in the middle of a run, and restores it.
// The run ends with an error, and afterwards every row is right, from whatever tier it comes.
func TestFilesThatFailAndRecover(t *testing.T) {
	f := table(t, tableRows, 100)
	shards := f.Shards()
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, f)
		groups := drawGroups(t, tableRows)
		shard := rapid.SampledFrom(shards).Draw(t, "shard")
		lost := rapid.Int64Range(0, shard.Rows-1).Draw(t, "rows left")
		whole, err := os.ReadFile(shard.Path)
		require.NoError(t, err)
		s, err := cachetier.Open(bg, f, o)
		require.NoError(t, err)
		defer s.Close()
		_, err = runAll(s, f, groups[:len(groups)/2], 2, false)
		require.NoError(t, err)

		end := shard.DataOffset + lost*shard.Stride
		require.NoError(t, os.Truncate(shard.Path, end))
		failed := fill(s, groups)
		require.NoError(t, os.WriteFile(shard.Path, whole, 0o644))
		if failed != nil {
			require.ErrorIs(t, failed, store.ErrCorrupt)
		}
		before := s.Stats()
		s.Reset()
		require.Zero(t, s.SetsInUse())
		within(func() {
			after, err := runAll(s, f, groups, 2, true)
			require.NoError(t, err)
			if len(after) > 0 {
				st := after[len(after)-1].Sub(before)
				require.Equal(t, st.InputRows, st.Tiers.Device.RowsHit+st.Tiers.Host.RowsHit+st.Disk.Rows)
			}
		})
		all := make([]uint32, tableRows)
		for v := range all {
			all[v] = uint32(v)
		}
		got := make([]byte, tableRows*f.RowBytes())
		require.NoError(t, s.Gather(bg, got, all))
		require.True(t, string(direct(f, all)) == string(got), "wrong rows")
	})
}

// TestReadsThatFail makes some reads fail, come short, or come late. Short and late reads change
// nothing, and a run that ends with an error leaves no wrong row in any tier.
func TestReadsThatFail(t *testing.T) {
	f := table(t, tableRows, 100)
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, f)
		groups := drawGroups(t, tableRows)
		every := rapid.IntRange(1, 40).Draw(t, "one read in")
		errno := rapid.SampledFrom([]syscall.Errno{0, syscall.EIO, syscall.ENOMEM}).Draw(t, "errno")
		fault := disk.Fault{Errno: errno, Short: rapid.IntRange(0, 600).Draw(t, "bytes short"),
			Delay: time.Duration(rapid.IntRange(0, 20).Draw(t, "µs late")) * time.Microsecond}
		var reads atomic.Int64
		var trouble atomic.Bool
		o.Faults = func(int, int64, int) disk.Fault {
			if trouble.Load() && reads.Add(1)%int64(every) == 0 {
				return fault
			}
			return disk.Fault{}
		}
		s, err := cachetier.Open(bg, f, o)
		require.NoError(t, err)
		defer s.Close()
		want, err := s.Forecast(slices.Concat(groups...), 3)
		require.NoError(t, err)
		rounds := 3
		if testing.Short() {
			rounds = 1
		}
		for range rounds {
			trouble.Store(true)
			within(func() { _, err = runAll(s, f, groups, 3, false) })
			trouble.Store(false)
			if err != nil {
				if errno != 0 {
					require.ErrorIs(t, err, errno)
				} else { // every read of some extent came short
					require.ErrorContains(t, err, "the device brings nothing")
				}
				require.ErrorContains(t, err, "feat-0")
				require.NotContains(t, err.Error(), "\n")
			}
			s.Reset()
			require.Zero(t, s.SetsInUse())
			within(func() {
				_, err := runAll(s, f, groups, 3, true)
				require.NoError(t, err)
			})
		}
		again, err := s.Forecast(slices.Concat(groups...), 3)
		require.NoError(t, err)
		require.Equal(t, want, again, "a forecast does not depend on what happened")
	})
}

// fill runs groups through their windows. It does not check the rows, since the map of a broken
// file cannot give the right ones.
func fill(s *cachetier.Stack, groups [][][]uint32) error {
	for _, steps := range groups {
		s.Expect(steps)
		for {
			w, err := s.Next(bg, s.Fit())
			if err != nil {
				return err
			}
			if w == nil {
				break
			}
			if err := w.Load(bg); err != nil {
				return err
			}
			for i := range w.Steps() {
				if err := w.Gather(bg, i, make([]byte, tableRows*200)); err != nil {
					return err
				}
			}
			w.Release()
		}
	}
	return nil
}

// endings are the ways to end a call, and the error that it returns then. end takes effect at once
// or soon.
var endings = map[string]struct {
	start func() (context.Context, context.CancelFunc)
	end   func(s *cachetier.Stack, cancel context.CancelFunc)
	want  error
}{
	"cancel": {
		func() (context.Context, context.CancelFunc) { return context.WithCancel(bg) },
		func(_ *cachetier.Stack, cancel context.CancelFunc) { cancel() }, context.Canceled,
	},
	"deadline": {
		func() (context.Context, context.CancelFunc) { return context.WithTimeout(bg, 10*time.Millisecond) },
		func(*cachetier.Stack, context.CancelFunc) {}, context.DeadlineExceeded,
	},
	"Close": {
		func() (context.Context, context.CancelFunc) { return bg, func() {} },
		func(s *cachetier.Stack, _ context.CancelFunc) { s.Close() }, context.Canceled,
	},
}

// TestEndOfReading ends calls whose reads would take very long: they return soon. After Reset the
// stack works as before, if it is open.
func TestEndOfReading(t *testing.T) {
	f := table(t, tableRows, 100)
	ids := make([]uint32, tableRows)
	for v := range ids {
		ids[v] = uint32(v)
	}
	dst := make([]byte, tableRows*f.RowBytes())
	calls := map[string]func(ctx context.Context, s *cachetier.Stack) error{
		"Gather": func(ctx context.Context, s *cachetier.Stack) error { return s.Gather(ctx, dst, ids) },
		"Peek":   func(ctx context.Context, s *cachetier.Stack) error { return s.Peek(ctx, dst, ids) },
		"windows": func(ctx context.Context, s *cachetier.Stack) error {
			s.Expect([][]uint32{ids[:tableRows/2], ids[tableRows/2:]})
			w, err := s.Next(ctx, s.Fit())
			if err == nil {
				err = w.Load(ctx)
			}
			if err == nil {
				err = w.Gather(ctx, 0, dst)
			}
			return err
		},
	}
	for _, hostBytes := range []int64{0, int64(tableRows * f.RowBytes())} { // windows of one step, and of two
		for how, ending := range endings {
			for name, call := range calls {
				var reads atomic.Int64
				var slow atomic.Bool
				slow.Store(true)
				first := make(chan struct{}, 1)
				s, err := cachetier.Open(bg, f, cachetier.Options{HostBytes: hostBytes, Policy: cachetier.None, Engine: disk.Pread, Readers: 1,
					Costs: disk.Costs{SecondsPerRead: 1e-9, BytesPerSecond: 1}, // one read per row
					Faults: func(int, int64, int) disk.Fault {
						if !slow.Load() {
							return disk.Fault{}
						}
						reads.Add(1)
						select {
						case first <- struct{}{}:
						default:
						}
						return disk.Fault{Delay: 30 * time.Millisecond}
					}})
				require.NoError(t, err)
				ctx, cancel := ending.start()
				go func() {
					select {
					case <-first:
					case <-ctx.Done(): // ended before the first read
					}
					ending.end(s, cancel)
				}()
				within(func() { err = call(ctx, s) })
				cancel()
				require.ErrorIs(t, err, ending.want, "%s, %s", name, how)
				require.Less(t, reads.Load(), int64(4), "%s, %s", name, how)
				if how != "Close" {
					slow.Store(false)
					s.Reset()
					require.Zero(t, s.SetsInUse())
					require.NoError(t, s.Gather(bg, dst, ids))
					require.True(t, string(direct(f, ids)) == string(dst), "wrong rows")
				}
				require.NoError(t, s.Close())
			}
		}
	}
}

// TestEndOfWaiting ends calls that wait for a window that nobody releases.
func TestEndOfWaiting(t *testing.T) {
	f := table(t, tableRows, 100)
	for how, ending := range endings {
		s, err := cachetier.Open(bg, f, cachetier.Options{HostBytes: int64(tableRows * f.RowBytes() / 2)})
		require.NoError(t, err)
		s.Expect([][]uint32{{1}}) // no window is loaded beside a window of one step
		s.Expect([][]uint32{{2}, {3}})
		s.Expect([][]uint32{{4}, {5}, {6}})
		first, second := next(t, s), next(t, s)
		ctx, cancel := ending.start()
		errs := make(chan error, 4)
		go func() {
			_, err := s.Next(ctx, s.Fit())
			errs <- err
		}()
		go func() { errs <- second.Load(ctx) }()
		go func() { errs <- s.Room(ctx) }()
		go func() { errs <- second.Ready(ctx) }()
		within(func() {
			for s.Calls() < 4 && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			ending.end(s, cancel)
			for range 4 {
				require.ErrorIs(t, <-errs, ending.want, how)
			}
		})
		cancel()
		if how != "Close" { // the window is useless, but the steps that Next would have planned are not lost
			require.ErrorIs(t, second.Load(bg), ending.want)
			first.Release()
			second.Release()
			require.Equal(t, 3, next(t, s).Steps())
		}
		require.Zero(t, s.Calls())
		require.NoError(t, s.Close())
	}
}

// TestCloseWhileGathering: an unplanned Gather also takes the planning lock, in the same order as
// Close. A Gather after Close panics.
func TestCloseWhileGathering(t *testing.T) {
	f := table(t, tableRows, 100)
	for i := range 300 {
		s, err := cachetier.Open(bg, f, cachetier.Options{HostBytes: int64(tableRows * f.RowBytes() / 2)})
		require.NoError(t, err)
		began, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { _ = recover() }()
			dst := make([]byte, f.RowBytes())
			close(began)
			for v := uint32(0); s.Gather(bg, dst, []uint32{v % tableRows}) == nil; v++ {
			}
		}()
		<-began
		within(func() {
			time.Sleep(time.Duration(i%30) * time.Microsecond)
			require.NoError(t, s.Close())
			<-ended
		})
	}
}
