package cachetier_test

import (
	"errors"
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

// TestFilesThatFailAndRecover takes the end of a file away in the middle of a run, and gives it back: the run ends with an
// error, and afterwards every row is right, from whatever tier it comes.
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
		s, err := cachetier.Open(f, o)
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
		require.NoError(t, s.Gather(got, all))
		require.True(t, string(direct(f, all)) == string(got), "wrong rows")
	})
}

// TestReadsThatFail has some reads fail, come short or late: short ones and late ones change nothing, and a run that ends with
// an error leaves no wrong row, in any tier.
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
		s, err := cachetier.Open(f, o)
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
				} else { // every read of some stretch came short
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

// fill takes groups through the windows as far as reading goes, without looking at the rows, which a broken file's map cannot
// tell.
func fill(s *cachetier.Stack, groups [][][]uint32) error {
	for _, steps := range groups {
		s.Expect(steps)
		for w := s.Next(); w != nil; w = s.Next() {
			if err := w.Load(); err != nil {
				return err
			}
			for i := range w.Steps() {
				if err := w.Gather(i, make([]byte, tableRows*200)); err != nil {
					return err
				}
			}
			w.Release()
		}
	}
	return nil
}

// TestStopWhileReading stops a stack that reads for ever so long, by Stop and by Options.Stop: Load and both Gathers end soon,
// and after Reset all is as before.
func TestStopWhileReading(t *testing.T) {
	f := table(t, tableRows, 100)
	ids := make([]uint32, tableRows)
	for v := range ids {
		ids[v] = uint32(v)
	}
	ended := errors.New("the run has ended")
	for _, hostBytes := range []int64{0, int64(tableRows * f.RowBytes())} { // windows of one step, and of two
		for _, byOption := range []bool{false, true} {
			var reads atomic.Int64
			var end atomic.Bool
			first := make(chan struct{}, 1)
			s, err := cachetier.Open(f, cachetier.Options{HostBytes: hostBytes, Policy: cachetier.None, Engine: disk.Pread, Readers: 1,
				Costs: disk.Costs{SecondsPerRead: 1e-9, BytesPerSecond: 1}, // a read a row
				Stop: func() error {
					if end.Load() {
						return ended
					}
					return nil
				},
				Faults: func(int, int64, int) disk.Fault {
					reads.Add(1)
					select {
					case first <- struct{}{}:
					default:
					}
					return disk.Fault{Delay: 10 * time.Millisecond}
				}})
			require.NoError(t, err)
			dst := make([]byte, tableRows*f.RowBytes())
			for name, read := range map[string]func() error{
				"Gather": func() error { return s.Gather(dst, ids) },
				"windows": func() error {
					s.Expect([][]uint32{ids[:tableRows/2], ids[tableRows/2:]})
					w := s.Next()
					if err := w.Load(); err != nil {
						return err
					}
					return w.Gather(0, dst)
				},
			} {
				go func() {
					<-first
					if byOption {
						end.Store(true)
					} else {
						s.Stop()
					}
				}()
				before := reads.Load()
				within(func() { err = read() })
				want := cachetier.ErrStopped
				if byOption {
					want = ended
				}
				require.ErrorIs(t, err, want, name)
				require.Less(t, reads.Load()-before, int64(4), name)
				end.Store(false)
				s.Reset()
			}
			require.NoError(t, s.Close())
		}
	}
}
