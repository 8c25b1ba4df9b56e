package cachetier_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/cachetier/policy/policytest"
	"github.com/gnnstore/gnnstore/store"
)

// bg is the context of calls that nothing cuts short.
var bg = context.Background()

// within runs do. If do takes much longer than any machine needs, it hangs: within ends the tests
// and shows who waits for what.
func within(do func()) {
	defer time.AfterFunc(time.Minute, func() {
		stacks := make([]byte, 1<<20)
		panic("it hangs:\n" + string(stacks[:runtime.Stack(stacks, true)]))
	}).Stop()
	do()
}

// model models the tiers with maps, as their comments describe them.
type model struct {
	device, hot, slots, most, lookahead int
	rows                                int
	apart                               bool // the host cannot address the device region
	o                                   cachetier.Options
	oracle                              *policytest.Oracle
	groups                              [][][]uint32
	window                              struct {
		steps    [][]uint32
		single   bool
		need     policytest.Rows
		future   []policytest.Rows
		fresh    policytest.Rows
		evicted  int64
		admitted int64
		counted  bool
	}
	want cachetier.Stats // only the counters that are set below
}

// newModel takes the sizes of the tiers from s, which has just been opened.
func newModel(s *cachetier.Stack, o cachetier.Options, rows int) *model {
	m := &model{most: s.WindowRows(), rows: rows, o: o}
	m.device, m.hot, m.slots, m.lookahead = s.Layout()
	_, m.apart = s.Apart()
	m.oracle = policytest.New(string(o.Policy), m.slots)
	if o.Prewarm && m.slots > 0 && o.Policy != cachetier.None {
		all := policytest.Rows{}
		for v := range m.slots {
			all[uint32(m.hot+v)] = true
		}
		m.oracle.Change(all, nil, false)
	}
	return m
}

// union returns the rows of steps that are not hot.
func (m *model) union(steps ...[]uint32) policytest.Rows {
	u := policytest.Rows{}
	for _, ids := range steps {
		for _, v := range ids {
			if int(v) >= m.hot {
				u[v] = true
			}
		}
	}
	return u
}

// fit returns how many steps the next window can have.
func (m *model) fit() int {
	g := m.groups[0]
	n := len(g)
	if m.hot < m.rows {
		for n > 1 && len(m.union(g[:n]...)) > m.most {
			n--
		}
		if m.slots == 0 {
			n = 1
		}
	}
	return n
}

// next plans the next window, of n steps.
func (m *model) next(n int) {
	g, w := m.groups[0], &m.window
	*w = struct {
		steps    [][]uint32
		single   bool
		need     policytest.Rows
		future   []policytest.Rows
		fresh    policytest.Rows
		evicted  int64
		admitted int64
		counted  bool
	}{}
	w.single = m.hot < m.rows && n == 1
	w.steps, w.need = g[:n], m.union(g[:n]...)
	if m.groups[0] = g[n:]; n == len(g) {
		m.groups = m.groups[1:]
	} else {
		w.future = append(w.future, m.union(g[n:]...))
	}
	later := m.groups
	if n < len(g) {
		later = later[1:]
	}
	for _, g := range later[:min(m.lookahead, len(later))] {
		w.future = append(w.future, m.union(g...))
	}
	if m.hot == m.rows || w.single {
		return
	}
	before := maps.Clone(m.oracle.Held)
	c := m.oracle.Change(w.need, w.future, false)
	w.evicted, w.admitted = int64(c.Evicted), int64(c.Admitted)
	w.fresh = policytest.Rows{}
	for v := range w.need {
		if _, ok := before[v]; !ok || m.o.Policy == cachetier.None {
			w.fresh[v] = true
		}
	}
}

// gather counts step i of the window.
func (m *model) gather(i int) {
	w := &m.window
	if w.single {
		m.step(w.steps[i], w.future, true, true)
		return
	}
	st := &m.want
	if !w.counted {
		w.counted = true
		st.Windows++
		st.Tiers.Host.Evictions += w.evicted
		st.Tiers.Host.BytesRead += w.admitted
	}
	for _, v := range w.steps[i] {
		switch {
		case int(v) < m.device:
			st.Tiers.Device.RowsHit++
		case int(v) < m.hot:
			st.StaticRowsHit++
			st.Tiers.Host.RowsHit++
		case w.fresh[v]:
			delete(w.fresh, v)
			st.Disk.Rows++
		default:
			st.Tiers.Host.RowsHit++
		}
	}
}

// step counts a window of one step. It changes the cache if keep is set.
func (m *model) step(ids []uint32, future []policytest.Rows, keep, planned bool) {
	st := &m.want
	st.Windows++
	held := maps.Clone(m.oracle.Held)
	if keep && m.o.Policy == cachetier.None {
		clear(held)
	}
	missed := policytest.Rows{}
	for _, v := range ids {
		_, hit := held[v]
		switch {
		case int(v) < m.device && m.apart && !planned: // read from disk
			st.Disk.Rows++
			if missed[v] {
				st.Disk.RowsRepeated++
			}
			missed[v] = true
		case int(v) < m.device:
			st.Tiers.Device.RowsHit++
		case int(v) < m.hot:
			st.StaticRowsHit++
			st.Tiers.Host.RowsHit++
		case hit:
			st.Tiers.Host.RowsHit++
		default:
			st.Disk.Rows++
			if missed[v] {
				st.Disk.RowsRepeated++
			}
			missed[v] = true
		}
	}
	if m.slots == 0 || !keep {
		st.RowsBypassed += int64(len(missed))
		return
	}
	c := m.oracle.Change(m.union(ids), future, true)
	st.Tiers.Host.Evictions += int64(c.Evicted)
	st.Tiers.Host.BytesRead += int64(c.Admitted)
	st.RowsBypassed += int64(len(missed) - c.Admitted)
}

// checkCounters compares the counters of s since start with the model's.
func (m *model) checkCounters(t require.TestingT, s *cachetier.Stack, start cachetier.Stats) {
	st := s.Stats()
	require.LessOrEqual(t, st.Tiers.Host.CapacityBytes+st.Tiers.Host.IndexBytes, m.o.HostBytes)
	st = st.Sub(start)
	require.Equal(t, st.InputRows, st.Tiers.Device.RowsHit+st.Tiers.Host.RowsHit+st.Disk.Rows)
	w := m.want
	type counters struct {
		device, host, static, disk, repeated, evictions, copied, bypassed, windows, used int64
	}
	require.Equal(t, counters{
		w.Tiers.Device.RowsHit, w.Tiers.Host.RowsHit, w.StaticRowsHit, w.Disk.Rows, w.Disk.RowsRepeated, w.Tiers.Host.Evictions,
		w.Tiers.Host.BytesRead, w.RowsBypassed, w.Windows, int64(m.hot - m.device + len(m.oracle.Held)),
	}, counters{
		st.Tiers.Device.RowsHit, st.Tiers.Host.RowsHit, st.StaticRowsHit, st.Disk.Rows, st.Disk.RowsRepeated,
		st.Tiers.Host.Evictions, st.Tiers.Host.BytesRead / st.RowBytes, st.RowsBypassed, st.Windows, st.Tiers.Host.UsedRows,
	})
}

// drawOptions draws budgets from nothing to more than the table.
func drawOptions(t *rapid.T, f *store.Features) cachetier.Options {
	size := int64(f.RowBytes())
	all := size * int64(f.Rows())
	return cachetier.Options{
		DeviceBytes: rapid.SampledFrom([]int64{0, 5 * size, all / 4}).Draw(t, "device"),
		HostBytes:   rapid.OneOf(rapid.Int64Range(0, all+2*size), rapid.Int64Range(8*size, all/2)).Draw(t, "host"),
		StaticBytes: rapid.SampledFrom([]int64{0, 0, 7 * size, all / 8}).Draw(t, "static"),
		Policy:      rapid.SampledFrom(policy.Kinds).Draw(t, "policy"),
		Lookahead:   rapid.IntRange(0, 4).Draw(t, "lookahead"),
		Prewarm:     rapid.IntRange(0, 3).Draw(t, "prewarm") == 0,
		Engine:      rapid.SampledFrom([]disk.Kind{disk.Mmap, disk.Pread, disk.Buffered, disk.Uring}).Draw(t, "engine"),
	}
}

// drawGroups draws groups of steps. The ids of a step are different.
func drawGroups(t *rapid.T, rows uint32) [][][]uint32 {
	most := rapid.SampledFrom([]int{5, 15, 60}).Draw(t, "most rows a step")
	id := rapid.OneOf(rapid.Uint32Range(0, rows-1), rapid.Uint32Range(0, rows/3))
	step := rapid.SliceOfNDistinct(id, 0, most, rapid.ID)
	return rapid.SliceOfN(rapid.SliceOfN(step, 0, 5), 1, 8).Draw(t, "groups")
}

const tableRows = 150

func TestWindowsDoWhatTheModelDoes(t *testing.T) {
	f := table(t, tableRows, 100)
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, f)
		groups := drawGroups(t, tableRows)
		ahead := rapid.IntRange(1, 6).Draw(t, "groups expected")
		slots := shareRegion(t, &o)
		s, err := cachetier.Open(bg, f, o)
		require.NoError(t, err)
		defer slots.close(t)
		defer s.Close()
		s.SetPortion(rapid.IntRange(1, 60).Draw(t, "portion"))
		start, m := s.Stats(), newModel(s, o, tableRows)
		within(func() {
			for len(groups) > 0 || len(m.groups) > 0 {
				for len(groups) > 0 && len(m.groups) < ahead {
					s.Expect(groups[0])
					if len(groups[0]) > 0 {
						m.groups = append(m.groups, groups[0])
					}
					groups = groups[1:]
				}
				if len(m.groups) == 0 {
					require.Nil(t, next(t, s))
					break
				}
				n := s.Fit()
				require.Equal(t, m.fit(), n)
				if rapid.IntRange(0, 2).Draw(t, "fewer") == 0 { // as if another table had no room for more
					n = rapid.IntRange(1, n).Draw(t, "steps")
				}
				w, err := s.Next(bg, n)
				require.NoError(t, err)
				m.next(n)
				require.Equal(t, n, w.Steps())
				if rapid.Bool().Draw(t, "Keep") { // otherwise Load does it
					require.NoError(t, w.Ready(bg))
					w.Keep()
				}
				require.NoError(t, w.Load(bg))
				for i, ids := range m.window.steps {
					require.True(t, bytes.Equal(direct(f, ids), gatherAll(t, s, w, i, ids)), "wrong rows")
					m.gather(i)
					m.checkCounters(t, s, start)
				}
				w.Release()
				if rapid.IntRange(0, 4).Draw(t, "unplanned") == 0 {
					ids := rapid.SliceOfN(rapid.Uint32Range(0, tableRows-1), 0, 40).Draw(t, "ids")
					var future []policytest.Rows
					for _, g := range m.groups[:min(m.lookahead, len(m.groups))] {
						future = append(future, m.union(g...))
					}
					keep, get := rapid.Bool().Draw(t, "keep"), s.Peek
					if keep {
						get = s.Gather
					}
					beyond := m.apart && !keep && rapid.Bool().Draw(t, "beyond the device")
					got := make([]byte, len(ids)*f.RowBytes())
					if beyond {
						at := make([]uint32, len(ids))
						came := got[:s.Places(ids, at)*f.RowBytes()]
						require.NoError(t, s.PeekBeyond(bg, came, ids))
						got = together(t, s, came, at)
					} else {
						require.NoError(t, get(bg, got, ids))
					}
					require.True(t, bytes.Equal(direct(f, ids), got), "wrong rows")
					m.step(ids, future, keep, beyond)
					m.checkCounters(t, s, start)
				}
			}
			require.Nil(t, next(t, s))
		})
		s.Reset()
		require.Zero(t, s.SetsInUse())
	})
}

// counters returns the counters that must not depend on time.
func counters(s *cachetier.Stack) cachetier.Stats {
	st := s.Stats()
	st.Disk.Seconds, st.Warmup.Seconds = 0, 0
	return st
}

// next plans the next window of s, with as many steps as fit.
func next(t require.TestingT, s *cachetier.Stack) *cachetier.Window {
	w, err := s.Next(bg, s.Fit())
	require.NoError(t, err)
	return w
}

// runAll runs groups through their windows, in one goroutine, or if atOnce with a goroutine each to
// plan, to load and to gather. It returns the counters after each step.
func runAll(s *cachetier.Stack, f *store.Features, groups [][][]uint32, ahead int, atOnce bool) (after []cachetier.Stats, err error) {
	type planned struct {
		*cachetier.Window
		steps [][]uint32
	}
	plan := func(ctx context.Context, give func(planned) error) error {
		var steps [][]uint32
		expected := 0
		for {
			for ; len(groups) > 0 && expected < ahead; expected++ {
				s.Expect(groups[0])
				steps = append(steps, groups[0]...)
				groups = groups[1:]
			}
			w, err := s.Next(ctx, s.Fit())
			if err != nil || w == nil && len(groups) == 0 {
				return err
			}
			expected--
			if w == nil {
				continue
			}
			if err := give(planned{w, steps[:w.Steps()]}); err != nil {
				return err
			}
			steps = steps[w.Steps():]
		}
	}
	gather := func(ctx context.Context, w planned) error {
		for i, ids := range w.steps {
			got := make([]byte, len(ids)*f.RowBytes())
			if err := w.Gather(ctx, i, got); err != nil {
				return err
			}
			if !bytes.Equal(direct(f, ids), got) {
				return fmt.Errorf("wrong rows")
			}
			after = append(after, counters(s))
		}
		w.Release()
		return nil
	}
	if !atOnce {
		err = plan(bg, func(w planned) error {
			if err := w.Load(bg); err != nil {
				return err
			}
			return gather(bg, w)
		})
		return after, err
	}
	g, ctx := errgroup.WithContext(bg)
	load, use := make(chan planned, 1), make(chan planned, 1)
	send := func(to chan<- planned, w planned) error {
		select {
		case to <- w:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	g.Go(func() error {
		defer close(load)
		return plan(ctx, func(w planned) error { return send(load, w) })
	})
	g.Go(func() error {
		defer close(use)
		for w := range load {
			if err := w.Load(ctx); err != nil {
				return err
			}
			if err := send(use, w); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error {
		for w := range use {
			if err := gather(ctx, w); err != nil {
				return err
			}
		}
		return nil
	})
	return after, g.Wait()
}

// TestTimeHasNoPart runs the same batches one thing at a time and all at once: the rows and the
// counters after each step are the same.
func TestTimeHasNoPart(t *testing.T) {
	f := table(t, tableRows, 100)
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, f)
		groups := drawGroups(t, tableRows)
		ahead := rapid.IntRange(1, 6).Draw(t, "groups expected")
		var want []cachetier.Stats
		for i, atOnce := range []bool{false, true, true} {
			s, err := cachetier.Open(bg, f, o)
			require.NoError(t, err)
			within(func() {
				got, err := runAll(s, f, groups, ahead, atOnce)
				require.NoError(t, err)
				if i == 0 {
					want = got
				}
				require.Equal(t, want, got)
			})
			require.NoError(t, s.Close())
		}
	})
}

// TestRunsCutShort stops runs anywhere and goes on: nobody waits for ever, and no row is wrong
// afterwards.
func TestRunsCutShort(t *testing.T) {
	f := table(t, tableRows, 100)
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, f)
		groups := drawGroups(t, tableRows)
		s, err := cachetier.Open(bg, f, o)
		require.NoError(t, err)
		defer s.Close()
		for range 3 {
			stop := time.Duration(rapid.IntRange(0, 300).Draw(t, "µs")) * time.Microsecond
			within(func() {
				g := new(errgroup.Group)
				ctx, cancel := context.WithCancel(bg)
				defer cancel()
				load, use := make(chan *cachetier.Window, 9), make(chan *cachetier.Window, 9)
				g.Go(func() error {
					defer close(load)
					for _, steps := range groups {
						s.Expect(steps)
						w, err := s.Next(ctx, s.Fit())
						if err != nil {
							return err
						}
						if w != nil {
							load <- w
						}
					}
					return nil
				})
				g.Go(func() error {
					defer close(use)
					for w := range load {
						if err := w.Load(ctx); err != nil {
							return err
						}
						use <- w
					}
					return nil
				})
				g.Go(func() error {
					time.Sleep(stop)
					cancel()
					for w := range use {
						w.Release()
					}
					return nil
				})
				if err := g.Wait(); err != nil {
					require.ErrorIs(t, err, context.Canceled)
				}
			})
			s.Reset()
			require.Zero(t, s.SetsInUse())
			within(func() {
				_, err := runAll(s, f, groups, 2, false)
				require.NoError(t, err)
			})
			s.Reset()
		}
	})
}

func TestWindowsAreSplitAndShared(t *testing.T) {
	f := table(t, tableRows, 100)
	s, err := cachetier.Open(bg, f, cachetier.Options{HostBytes: 40 * 200, Policy: cachetier.Belady})
	require.NoError(t, err)
	defer s.Close()
	most := uint32(s.WindowRows())
	require.Greater(t, most, uint32(10))
	seq := func(from, to uint32) (ids []uint32) {
		for v := from; v < to; v++ {
			ids = append(ids, v)
		}
		return ids
	}
	// Two steps that fill the cache; one that shares rows with both and still fits; one that does
	// not fit.
	s.Expect([][]uint32{seq(0, 5), seq(5, most), seq(3, 9), seq(most, most+1), seq(0, 2)})
	w := next(t, s)
	require.Equal(t, 3, w.Steps())
	w.Release()
	w = next(t, s)
	require.Equal(t, 2, w.Steps())
	w.Release()
	require.Nil(t, next(t, s))
	s.Expect([][]uint32{seq(0, most+1), seq(0, 1)}) // more than fits
	require.Equal(t, 1, next(t, s).Steps())
	s.Reset()
	s.Expect(nil)
	require.Nil(t, next(t, s))
}

// TestKeptAndNeverLoaded gives up a window between Keep and Load: rows that were never read do not
// count as cached.
func TestKeptAndNeverLoaded(t *testing.T) {
	f := table(t, tableRows, 100)
	for _, giveUp := range []func(*cachetier.Stack, *cachetier.Window){
		func(s *cachetier.Stack, _ *cachetier.Window) { s.Reset() },
		func(_ *cachetier.Stack, w *cachetier.Window) { w.Release() },
	} {
		for _, kind := range policy.Kinds {
			s, err := cachetier.Open(bg, f, cachetier.Options{HostBytes: 40 * 200, Policy: kind})
			require.NoError(t, err)
			ids := []uint32{1, 2, 3}
			s.Expect([][]uint32{ids[:2], ids[1:]})
			w := next(t, s)
			require.NoError(t, w.Ready(bg))
			w.Keep()
			giveUp(s, w)
			require.Zero(t, s.SetsInUse())
			require.Panics(t, func() { w.Keep() })
			got := make([]byte, 3*f.RowBytes())
			require.NoError(t, s.Gather(bg, got, ids))
			require.True(t, bytes.Equal(direct(f, ids), got), "wrong rows")
			require.EqualValues(t, 3, s.Stats().Disk.Rows)
			require.NoError(t, s.Close())
		}
	}
}

// TestLargeWindow has more rows to read than are listed at a time, and steps of many chunks.
func TestLargeWindow(t *testing.T) {
	const n = 150_000
	f := table(t, n, 32)
	for _, engine := range []disk.Kind{disk.Mmap, disk.Pread} {
		s, err := cachetier.Open(bg, f, cachetier.Options{DeviceBytes: 64_000, HostBytes: 8 << 20, StaticBytes: 128_000, Engine: engine, Policy: cachetier.LRU})
		require.NoError(t, err)
		defer s.Close()
		require.Greater(t, s.WindowRows(), 80_000)
		ids := make([]uint32, n)
		for i := range ids {
			ids[i] = uint32(i)
		}
		rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		steps := [][]uint32{ids[:40_000], ids[20_000:70_000], ids[60_000:80_000]}
		s.Expect(steps)
		w := next(t, s)
		require.Equal(t, 3, w.Steps())
		require.NoError(t, w.Load(bg))
		for i, ids := range steps {
			got := make([]byte, len(ids)*f.RowBytes())
			require.NoError(t, w.Gather(bg, i, got))
			require.True(t, bytes.Equal(direct(f, ids), got), "wrong rows")
		}
		w.Release()
		hot := 0
		for _, v := range ids[:80_000] {
			if v < 3000 {
				hot++
			}
		}
		st := s.Stats()
		checkSums(t, st)
		require.EqualValues(t, 80_000-hot, st.Disk.Rows)
		require.EqualValues(t, 110_000, st.InputRows)
	}
}

func TestMisuseOfWindowsPanics(t *testing.T) {
	f := table(t, tableRows, 100)
	s, err := cachetier.Open(bg, f, cachetier.Options{HostBytes: 40 * 200})
	require.NoError(t, err)
	defer s.Close()
	require.Panics(t, func() { s.Expect([][]uint32{{1, tableRows}}) })
	s.Expect([][]uint32{{1, 2}, {3}})
	s.Expect([][]uint32{{4}})
	first, second := next(t, s), next(t, s)
	dst := make([]byte, 2*f.RowBytes())
	require.Panics(t, func() { first.Gather(bg, 0, dst) }, "not loaded")
	require.Panics(t, func() { s.Gather(bg, dst, []uint32{1}) }, "a window is planned")
	require.NoError(t, first.Load(bg))
	require.NoError(t, second.Load(bg))
	require.Panics(t, func() { second.Gather(bg, 0, dst) }, "the one before is not released")
	require.Panics(t, func() { second.Release() })
	require.Panics(t, func() { first.Gather(bg, 0, dst[:1]) })
	require.Panics(t, func() { first.Gather(bg, 2, dst) })
	require.NoError(t, first.Gather(bg, 0, dst))
	first.Release()
	first.Release()
	require.Panics(t, func() { first.Gather(bg, 0, dst) }, "released")
	require.NoError(t, second.Gather(bg, 0, dst))
	second.Release()
	s.Expect([][]uint32{{1, 2}, {3}})
	require.Panics(t, func() { s.Next(bg, 0) })
	require.Panics(t, func() { s.Next(bg, 3) }, "the group has two steps")
	left := next(t, s)
	left.Release()
	require.Panics(t, func() { left.Load(bg) }, "released")
	require.Panics(t, func() { s.Forecast(nil, 0) })
}

// TestLoadFollowsTheWindowInUse loads a window into the slots of one that is not released: some
// slots are free once a step is gathered, all of them once the last step is.
func TestLoadFollowsTheWindowInUse(t *testing.T) {
	f := table(t, tableRows, 100)
	const slots = 40
	index := policy.Config{Kind: cachetier.Belady, Rows: tableRows}
	s, err := cachetier.Open(bg, f, cachetier.Options{HostBytes: slots*(200+index.SlotBytes()) + index.FixedBytes() + 400})
	require.NoError(t, err)
	defer s.Close()
	n := s.WindowRows()
	require.Less(t, 2*n, tableRows)
	group := func(first int) (steps [][]uint32) {
		for v := first; v < first+n; v += 2 {
			steps = append(steps, []uint32{uint32(v)})
			if v+1 < first+n {
				steps[len(steps)-1] = append(steps[len(steps)-1], uint32(v+1))
			}
		}
		return steps
	}
	groups := [][][]uint32{group(0), group(n)}
	s.Expect(groups[0])
	s.Expect(groups[1])
	within(func() {
		first, second := next(t, s), next(t, s)
		require.NoError(t, first.Load(bg))
		read := s.Live().Reads
		gathering := make(chan error)
		go func() { gathering <- second.Load(bg) }()
		for i, ids := range groups[0] {
			got := make([]byte, len(ids)*f.RowBytes())
			require.NoError(t, first.Gather(bg, i, got))
			require.True(t, bytes.Equal(direct(f, ids), got), "wrong rows")
			if i == len(groups[0])/2 {
				for s.Live().Reads == read { // or it hangs
					time.Sleep(time.Millisecond)
				}
			}
		}
		require.NoError(t, <-gathering)
		require.Panics(t, func() { first.Gather(bg, 0, make([]byte, 400)) }, "its rows have given way")
		first.Release()
		for i, ids := range groups[1] {
			got := make([]byte, len(ids)*f.RowBytes())
			require.NoError(t, second.Gather(bg, i, got))
			require.True(t, bytes.Equal(direct(f, ids), got), "wrong rows")
		}
		second.Release()
	})
}

// TestForecastIsWhatHappens compares a forecast with the counters of a run.
func TestForecastIsWhatHappens(t *testing.T) {
	f := table(t, tableRows, 100)
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, f)
		o.Prewarm = false
		trace := slices.Concat(drawGroups(t, tableRows)...)
		w := rapid.IntRange(1, 6).Draw(t, "w")
		s, err := cachetier.Open(bg, f, o)
		require.NoError(t, err)
		defer s.Close()
		before := s.Stats()
		want, err := s.Forecast(trace, w)
		require.NoError(t, err)
		require.Equal(t, before, s.Stats(), "it reads and counts nothing")
		groups := slices.Collect(slices.Chunk(trace, w))
		dry, err := cachetier.Simulate(f, o)
		require.NoError(t, err)
		defer dry.Close()
		require.Equal(t, s.WindowRows(), dry.WindowRows())
		require.EqualValues(t, before.Tiers.Device.CapacityRows+before.Tiers.Host.CapacityRows, dry.HotRows()+dry.WindowRows())
		var all cachetier.Cost
		for _, g := range groups {
			dry.Expect(g)
		}
		for n := dry.Fit(); n > 0; n = dry.Fit() {
			all.Add(dry.Next(n))
		}
		require.Equal(t, want.All, all, "without the Stack, too")
		_, err = runAll(s, f, groups, len(groups)+1, false)
		require.NoError(t, err)
		st := s.Stats()
		require.Equal(t, st.InputRows, want.InputRows)
		require.Equal(t, st.Windows, int64(want.All.Windows))
		require.Equal(t, st.Disk.Reads, want.All.Reads)
		require.Equal(t, st.Disk.BytesRead, want.All.Bytes)
		require.Equal(t, st.Disk.Rows-st.Disk.RowsRepeated, want.All.Rows)
		require.Equal(t, len(trace), want.All.Steps)
		require.LessOrEqual(t, want.Warm.Rows, want.All.Rows)
	})
}
