package cachetier_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy/policytest"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// joinModel models horizons with maps, as their comments describe them. It counts what they spill,
// and checks that no row is in the spill twice.
type joinModel struct {
	oracle *policytest.Oracle
	hot    int
	want   cachetier.Join
	most   int // largest number of rows in the spill
}

// horizon runs one horizon. Each window is the set of rows that it wants.
func (m *joinModel) horizon(t require.TestingT, windows []policytest.Rows, belady bool) {
	run := make([]policytest.Rows, len(windows)) // rows in the spill, by window
	for i := range run {
		run[i] = policytest.Rows{}
	}
	first := policytest.Rows{}
	for i, w := range windows {
		for v := range w {
			if !first[v] && len(windows) > 1 {
				run[i][v] = true
				m.want.Spilled++
			}
			first[v] = true
		}
	}
	m.want.Horizons++
	seen := policytest.Rows{}
	for i, w := range windows {
		spilled, all := 0, policytest.Rows{}
		for _, r := range run {
			spilled += len(r)
			maps.Copy(all, r)
		}
		require.Len(t, all, spilled, "a row is in the spill twice")
		m.most = max(m.most, spilled)
		before := maps.Clone(m.oracle.Held)
		var future []policytest.Rows
		if belady {
			future = windows[i+1:]
		}
		m.oracle.Change(w, future, false)
		for v := range w {
			_, held := before[v]
			require.True(t, held || run[i][v] || len(windows) == 1, "row %d is neither held nor in the run of window %d", v, i)
		}
		run[i] = nil
		maps.Copy(seen, w)
		for v := range before {
			if _, stays := m.oracle.Held[v]; stays || !seen[v] {
				continue
			}
			for j := i + 1; j < len(windows); j++ {
				if windows[j][v] {
					require.False(t, run[j][v])
					run[j][v] = true
					m.want.Forwarded++
					break
				}
			}
		}
	}
}

// unrepeated sorts ids and returns them without repeats.
func unrepeated(ids []uint32) []uint32 {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// spillFor creates a spill for horizons over f with so many windows.
func spillFor(t require.TestingT, f *store.Features, windows int, faults func(bool, int64, int) error) *spill.File {
	const segment = 16 << 10
	s, err := spill.Create(spill.Options{
		Dir: os.TempDir(), Segment: segment, Bytes: int64(f.Rows()*(f.RowBytes()+4)*2) + int64(4*windows+8)*segment, Buffers: windows + 7, Depth: 3, Faults: faults,
	})
	require.NoError(t, err)
	return s
}

// horizonOf plans a horizon from steps, with at most most windows. It returns the steps of each
// window, and the steps that are left.
func horizonOf(h *cachetier.Horizon, steps [][]uint32, most int) (windows [][][]uint32, left [][]uint32) {
	windows = [][][]uint32{nil}
	for len(steps) > 0 {
		w := &windows[len(windows)-1]
		switch {
		case h.Add(steps[0]):
			*w = append(*w, steps[0])
			steps = steps[1:]
		case len(*w) == 0 || len(windows) == most:
			h.Done()
			return windows, steps
		default:
			h.Cut()
			windows = append(windows, nil)
		}
	}
	h.Done()
	return windows, steps
}

// runHorizons runs all steps through horizons of at most most windows. The next horizon is planned
// and scanned while one is used.
func runHorizons(ctx context.Context, s *cachetier.Stack, steps [][]uint32, most int, use func(ids []uint32, rows []byte) error, planned func([][][]uint32)) error {
	type ready struct {
		h       *cachetier.Horizon
		windows [][][]uint32
	}
	g, ctx := errgroup.WithContext(ctx)
	horizons, loaded := make(chan ready), make(chan *cachetier.Window)
	g.Go(func() error {
		defer close(horizons)
		for n := 1; len(steps) > 0; n = most {
			h := s.NewHorizon()
			windows, left := horizonOf(h, steps, n)
			if len(left) == len(steps) {
				h.Close()
				return errors.New("a step that does not fit")
			}
			steps = left
			planned(windows)
			if err := h.Scan(ctx); err != nil {
				h.Close()
				return err
			}
			select {
			case horizons <- ready{h, windows}:
			case <-ctx.Done():
				h.Close()
				return ctx.Err()
			}
		}
		return nil
	})
	inUse := make(chan [][]uint32, 4)
	g.Go(func() error {
		defer close(loaded)
		defer close(inUse)
		for r := range horizons {
			defer r.h.Close() // after an error
			for _, steps := range r.windows {
				w, err := r.h.Next(ctx, steps)
				if err != nil {
					return err
				}
				if err := w.Load(ctx); err != nil {
					return err
				}
				inUse <- steps
				select {
				case loaded <- w:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			r.h.Close()
		}
		return nil
	})
	g.Go(func() error {
		for w := range loaded {
			for i, ids := range <-inUse {
				got := make([]byte, len(ids)*s.RowBytes())
				if err := w.Gather(ctx, i, got); err != nil {
					return err
				}
				if err := use(ids, got); err != nil {
					return err
				}
			}
			w.Release()
		}
		return nil
	})
	return g.Wait()
}

func TestHorizonsDoWhatTheModelDoes(t *testing.T) {
	const rows = 3000
	f := table(t, rows, 40)
	forwarded := 0
	storetest.CheckUntil(t, func(t *rapid.T) {
		size := int64(f.RowBytes())
		o := cachetier.Options{
			DeviceBytes: rapid.SampledFrom([]int64{0, 5 * size}).Draw(t, "device"),
			StaticBytes: rapid.SampledFrom([]int64{0, 70 * size}).Draw(t, "static"),
			HostBytes:   rapid.Int64Range(300*size, 900*size).Draw(t, "host"),
			Policy:      rapid.SampledFrom([]cachetier.Policy{cachetier.Belady, cachetier.LRU, cachetier.Sieve, cachetier.Static}).Draw(t, "policy"),
			Prewarm:     rapid.IntRange(0, 3).Draw(t, "prewarm") == 0,
			Engine:      rapid.SampledFrom([]disk.Kind{disk.Mmap, disk.Pread, disk.Buffered, disk.Uring}).Draw(t, "engine"),
		}
		s, err := cachetier.Open(bg, f, o)
		require.NoError(t, err)
		defer s.Close()
		_, hot, slots, _ := s.Layout()
		if slots < 100 {
			t.Skip("hardly any cache")
		}
		most := rapid.IntRange(2, 8).Draw(t, "windows of a horizon")
		file := spillFor(t, f, 2*most, nil)
		defer file.Close()
		ok, err := s.Join(bg, file, 2*most+2, f.Rows(), f, o)
		require.NoError(t, err)
		require.True(t, ok)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		steps := make([][]uint32, rapid.IntRange(1, 80).Draw(t, "steps"))
		largest := rapid.IntRange(1, min(slots, 200)).Draw(t, "rows of a step")
		for i := range steps {
			steps[i] = unrepeated(skewed(rng, rows, rng.IntN(largest+1)))
		}

		m := &joinModel{oracle: policytest.New(string(o.Policy), slots), hot: hot}
		if o.Prewarm {
			all := policytest.Rows{}
			for v := range slots {
				all[uint32(hot+v)] = true
			}
			m.oracle.Change(all, nil, false)
		}
		start := s.Stats()
		within(func() {
			err = runHorizons(bg, s, steps, most, func(ids []uint32, got []byte) error {
				if !bytes.Equal(direct(f, ids), got) {
					return errors.New("wrong rows")
				}
				return nil
			}, func(windows [][][]uint32) {
				var sets []policytest.Rows
				for _, w := range windows {
					set := policytest.Rows{}
					for _, ids := range w {
						for _, v := range ids {
							if int(v) >= hot {
								set[v] = true
							}
						}
					}
					sets = append(sets, set)
				}
				m.horizon(t, sets, o.Policy == cachetier.Belady)
			})
		})
		require.NoError(t, err)
		st := s.Stats().Sub(start)
		m.want.ScanBytes, m.want.ScanSeconds = st.Join.ScanBytes, st.Join.ScanSeconds
		require.Equal(t, m.want, *st.Join)
		forwarded += int(st.Join.Forwarded)
		require.Zero(t, file.Stats().UsedBytes)
		require.Zero(t, s.SetsInUse())
		require.Equal(t, st.InputRows, st.Tiers.Device.RowsHit+st.Tiers.Host.RowsHit+st.Disk.Rows)
		wanted := st.Join.Spilled + st.Join.Forwarded
		moved := file.Stats().BytesWritten + file.Stats().BytesKept
		require.LessOrEqual(t, moved, wanted*(size+4)+(wanted+64*int64(len(steps)))*64)
	}, map[string]*int{"a forwarded row": &forwarded})
}

// Rows that a spill loses are read from the table, and counted: the rows of the segments that fail,
// and no others.
func TestAHorizonOutlivesItsSpill(t *testing.T) {
	const rows, n = 3000, 40
	f := table(t, rows, 40)
	for _, c := range []struct {
		write bool
		every int64
	}{{true, 3}, {false, 3}, {true, 1000}} { // in the last case only the first transfer fails
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			o := cachetier.Options{HostBytes: 600 * int64(f.RowBytes())}
			s, err := cachetier.Open(bg, f, o)
			require.NoError(t, err)
			defer s.Close()
			var moved atomic.Int64
			file := spillFor(t, f, 12, func(w bool, _ int64, _ int) error {
				if w == c.write && moved.Add(1)%c.every == 1 {
					return errors.New("the disk is gone")
				}
				return nil
			})
			defer file.Close()
			ok, err := s.Join(bg, file, 14, f.Rows(), f, o)
			require.NoError(t, err)
			require.True(t, ok)
			var steps [][]uint32
			for i := range n {
				var ids []uint32
				for v := range uint32(100) {
					ids = append(ids, (v*29+uint32(i)*101)%rows)
				}
				steps = append(steps, ids)
			}
			within(func() {
				err = runHorizons(bg, s, steps, 6, func(ids []uint32, got []byte) error {
					if !bytes.Equal(direct(f, ids), got) {
						return errors.New("wrong rows")
					}
					return nil
				}, func([][][]uint32) {})
			})
			require.NoError(t, err)
			require.Positive(t, s.Stats().Join.Reread)
			if c.every > 3 {
				require.LessOrEqual(t, s.Stats().Join.Reread, int64(file.Segment()/(f.RowBytes()+4)))
			}
			require.Zero(t, file.Stats().UsedBytes)
		})
	}
}

// A run of horizons that ends in the middle leaves nothing behind.
func TestEndOfHorizons(t *testing.T) {
	const rows = 3000
	f := table(t, rows, 40)
	o := cachetier.Options{HostBytes: 600 * int64(f.RowBytes())}
	for stop := range 12 {
		s, err := cachetier.Open(bg, f, o)
		require.NoError(t, err)
		file := spillFor(t, f, 12, nil)
		_, err = s.Join(bg, file, 14, f.Rows(), f, o)
		require.NoError(t, err)
		var steps [][]uint32
		for i := range 40 {
			var ids []uint32
			for v := range uint32(100) {
				ids = append(ids, (v*29+uint32(i)*101)%rows)
			}
			steps = append(steps, ids)
		}
		used := 0
		within(func() {
			err = runHorizons(bg, s, steps, 6, func([]uint32, []byte) error {
				if used++; used > 3*stop {
					return errors.New("enough")
				}
				return nil
			}, func([][][]uint32) {})
			require.ErrorContains(t, err, "enough")
			s.Reset()
		})
		require.Zero(t, s.SetsInUse())
		require.Zero(t, file.Stats().UsedBytes)
		allBuffers(t, file, 12)
		s.Close()
		file.Close()
	}
}

// joinedStack returns a Stack over a table of so many rows, and the spill of its horizons. faults
// affect the scans.
func joinedStack(t *testing.T, rows int, faults disk.Faults) (*cachetier.Stack, *spill.File) {
	f := table(t, rows, 40)
	o := cachetier.Options{HostBytes: 600 * int64(f.RowBytes()), Engine: disk.Pread}
	s, err := cachetier.Open(bg, f, o)
	require.NoError(t, err)
	file := spillFor(t, f, 12, nil)
	o.Faults = faults
	ok, err := s.Join(bg, file, 14, f.Rows(), f, o)
	require.NoError(t, err)
	require.True(t, ok)
	t.Cleanup(func() { s.Close(); file.Close() })
	return s, file
}

// stride returns n steps whose rows overlap.
func stride(n, rows int) (steps [][]uint32) {
	for i := range n {
		var ids []uint32
		for v := range uint32(100) {
			ids = append(ids, (v*29+uint32(i)*101)%uint32(rows))
		}
		steps = append(steps, ids)
	}
	return steps
}

// Close ends a Scan that is under way, and waits for it.
func TestCloseDuringAScan(t *testing.T) {
	var reading atomic.Int64
	started, finish := make(chan struct{}, 100), make(chan struct{})
	s, file := joinedStack(t, 3000, func(int, int64, int) disk.Fault {
		reading.Add(1)
		defer reading.Add(-1)
		started <- struct{}{}
		<-finish
		return disk.Fault{}
	})
	h := s.NewHorizon()
	horizonOf(h, stride(40, 3000), 6)
	scanned := make(chan error)
	go func() { scanned <- h.Scan(bg) }()
	<-started
	time.AfterFunc(20*time.Millisecond, func() { close(finish) })
	within(func() {
		require.NoError(t, s.Close())
		require.Zero(t, reading.Load())
		require.ErrorIs(t, <-scanned, context.Canceled)
	})
	h.Close()
	require.Zero(t, file.Stats().UsedBytes)
	require.Panics(t, func() { h.Add(nil) })
}

// Windows that were planned before their horizon was closed can be loaded without the others.
func TestWindowsOutliveTheirHorizon(t *testing.T) {
	s, file := joinedStack(t, 3000, nil)
	f := table(t, 3000, 40)
	h := s.NewHorizon()
	var steps [][]uint32 // the first window's rows are wanted again, and cannot stay until then
	for i := range uint32(12) {
		var ids []uint32
		for v := range uint32(200) {
			ids = append(ids, 200*(i%8)+v)
		}
		steps = append(steps, ids)
	}
	windows, _ := horizonOf(h, steps, 6)
	require.Len(t, windows, 6)
	require.NoError(t, h.Scan(bg))
	use := func(w *cachetier.Window, steps [][]uint32) {
		for i, ids := range steps {
			got := make([]byte, len(ids)*s.RowBytes())
			require.NoError(t, w.Gather(bg, i, got))
			require.True(t, bytes.Equal(direct(f, ids), got))
		}
		w.Release()
	}
	first, err := h.Next(bg, windows[0])
	require.NoError(t, err)
	second, err := h.Next(bg, windows[1])
	require.NoError(t, err)
	require.NoError(t, first.Load(bg))
	use(first, windows[0])
	h.Close()
	require.NoError(t, second.Load(bg))
	use(second, windows[1])
	require.Zero(t, s.Stats().Join.Forwarded)
	require.Zero(t, file.Stats().UsedBytes)
	require.Zero(t, s.SetsInUse())
	allBuffers(t, file, 12)
}

// As windows are loaded, the spill holds no more than the remaining windows want. Drained returns
// once the windows before are loaded or given up.
func TestAHorizonDrains(t *testing.T) {
	s, file := joinedStack(t, 3000, nil)
	h := s.NewHorizon()
	windows, _ := horizonOf(h, stride(40, 3000), 6)
	require.Len(t, windows, 6)
	require.NoError(t, h.Scan(bg))
	over, end := context.WithCancel(bg)
	end()
	for k, steps := range windows {
		wanted := map[uint32]bool{}
		for _, w := range windows[k:] {
			for _, ids := range w {
				for _, v := range ids {
					wanted[v] = true
				}
			}
		}
		require.Equal(t, len(wanted), h.Left(k))
		require.LessOrEqual(t, file.Stats().UsedBytes, s.SpillBytes(h.Left(k)))
		require.ErrorIs(t, h.Drained(over, k+1), context.Canceled)
		w, err := h.Next(bg, steps)
		require.NoError(t, err)
		if k == len(windows)-2 { // this window and the last one are given up
			w.Release()
			h.Close()
			require.NoError(t, h.Drained(bg, len(windows)))
			break
		}
		require.NoError(t, w.Load(bg))
		require.NoError(t, h.Drained(bg, k+1))
		w.Release()
	}
	require.Zero(t, file.Stats().UsedBytes)
}

// allBuffers takes all buffers of a spillFor so many windows: none is missing.
func allBuffers(t *testing.T, file *spill.File, windows int) {
	within(func() {
		for range windows + 7 {
			_, err := file.Buffer(t.Context())
			require.NoError(t, err)
		}
	})
}

// If rows do not divide a segment, they take more segments than their bytes would fill.
func TestSpillBytesAreThoseOfSegments(t *testing.T) {
	f := table(t, 300, 3000) // two rows of 6000 bytes a segment
	o := cachetier.Options{HostBytes: 100 * int64(f.RowBytes())}
	s, err := cachetier.Open(bg, f, o)
	require.NoError(t, err)
	defer s.Close()
	file := spillFor(t, f, 12, nil)
	defer file.Close()
	ok, err := s.Join(bg, file, 14, f.Rows(), f, o)
	require.NoError(t, err)
	require.True(t, ok)
	h := s.NewHorizon()
	var steps [][]uint32
	for i := range uint32(8) {
		var ids []uint32
		for v := range uint32(36) {
			ids = append(ids, 36*i+v)
		}
		steps = append(steps, ids)
	}
	windows, _ := horizonOf(h, steps, 6)
	require.NoError(t, h.Scan(bg))
	require.Greater(t, file.Stats().UsedBytes, int64(h.Rows()*(f.RowBytes()+4)))
	most := s.SpillBytes(h.Rows()) + int64(len(windows)*file.Segment())
	require.LessOrEqual(t, file.Stats().UsedBytes, most)
	h.Close()
}

// A scan that fails leaves nothing behind, whether Reset comes before or after the horizon's Close.
func TestAScanThatFails(t *testing.T) {
	for _, resetFirst := range []bool{true, false} {
		var reads atomic.Int64
		s, file := joinedStack(t, 3000, func(int, int64, int) disk.Fault {
			if reads.Add(1) > 3 {
				return disk.Fault{Errno: syscall.EIO}
			}
			return disk.Fault{}
		})
		steps := stride(40, 3000)
		one, two := s.NewHorizon(), s.NewHorizon()
		windows, left := horizonOf(one, steps, 1)
		horizonOf(two, left, 6)
		require.NoError(t, one.Scan(bg), "one window")
		require.ErrorIs(t, two.Scan(bg), syscall.EIO)
		w, err := one.Next(bg, windows[0])
		require.NoError(t, err)
		w.Keep()
		if resetFirst {
			s.Reset()
		}
		one.Close()
		two.Close()
		two.Close()
		if !resetFirst {
			s.Reset()
		}
		require.Zero(t, s.SetsInUse())
		require.Zero(t, file.Stats().UsedBytes)
		allBuffers(t, file, 12)
	}
}
