package plan_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

// known is a batch with nothing but its rows of each table.
type known struct {
	step int
	rows [][]uint32
}

func (b *known) Inputs() [][]uint32 { return b.rows }
func (b *known) Reads() [][]uint32  { return b.rows }
func (b *known) Bytes() int64       { return 100 }

// packer is a Packer of known batches. Its hooks are called when a horizon is to be drawn, with its
// number; when it is drawn, from a step on as many; and when a step comes back.
type packer struct {
	rows   func(step int) [][]uint32
	begins func(horizon int)
	draws  func(from, n int)
	unpack func(step int)
	room   int // for so many steps there is some; 0: for any
	begun  atomic.Int64
}

func (p *packer) New() plan.Batch { return new(known) }

func (p *packer) Draw(context.Context, *plan.Steps, int, []plan.Batch) error {
	return errors.New("drawn in a group")
}

func (p *packer) Pack(dst []byte, b plan.Batch) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(b.(*known).step))
}

func (p *packer) Unpack(b plan.Batch, src []byte) error {
	step := int(binary.LittleEndian.Uint64(src))
	p.unpack(step)
	*b.(*known) = known{step, p.rows(step)}
	return nil
}

func (p *packer) Far() bool {
	p.begins(int(p.begun.Add(1)) - 1)
	return true
}

func (p *packer) DrawFar(_ context.Context, _ *plan.Steps, _ sample.Room, from, n int, done func(int, plan.Batch) error) error {
	p.draws(from, n)
	for step := from; step < from+n; step++ {
		if p.room > 0 && n > p.room && step == from+n*3/4 { // parts that fit memory are done by then
			return &spill.FullError{Bytes: int64(p.room)}
		}
		if err := done(step, &known{step, p.rows(step)}); err != nil {
			return err
		}
	}
	return nil
}

// until waits for what others do.
func until(ready func() bool) {
	for !ready() {
		time.Sleep(time.Millisecond)
	}
}

// How many steps a horizon has does not depend on how far the windows of the one before have come.
func TestHorizonsDoNotDependOnTime(t *testing.T) {
	const last = 200
	f := features(t, 64)
	rows := func(step int) [][]uint32 { // more and more
		var ids []uint32
		for v := range 8 + step/8 {
			ids = append(ids, uint32(v*7+step)%tableRows)
		}
		return [][]uint32{ids}
	}
	run := func(sets int, drawnFirst bool) (asked [][2]int, windows []int) {
		o := cachetier.Options{HostBytes: 200 * 64}
		s, err := cachetier.Open(t.Context(), f, o)
		require.NoError(t, err)
		defer s.Close()
		create := func() *spill.File {
			file, err := spill.Create(spill.Options{Dir: t.TempDir(), Bytes: 4 << 20, Segment: 4096, Buffers: 40, Depth: 2})
			require.NoError(t, err)
			return file
		}
		file, room := create(), create()
		defer file.Close()
		defer room.Close()
		ok, err := s.Join(t.Context(), file, sets, f.Rows(), f, o)
		require.NoError(t, err)
		require.True(t, ok)

		var drawn, planned atomic.Int64 // the first step that is not
		var from [last + 1]atomic.Int64 // of horizons
		p := &packer{rows: rows}
		p.begins = func(horizon int) {
			until(func() bool { return drawnFirst || horizon == 0 || planned.Load() > from[horizon-1].Load() })
		}
		p.draws = func(first, n int) {
			asked = append(asked, [2]int{first, n})
			from[len(asked)-1].Store(int64(first))
			drawn.Store(int64(first + n))
		}
		p.unpack = func(step int) {
			until(func() bool {
				return !drawnFirst || drawn.Load() == last || p.begun.Load() > 1 && int64(step) < from[p.begun.Load()-1].Load()
			})
		}
		planner := plan.NewPlanner(plan.Config{
			Sampler: p, Parallel: 1, Tables: []*cachetier.Stack{s}, Bytes: 1 << 30, BatchBytes: 100, BatchRows: []int{10},
			Join: plan.Join{File: file, Windows: 20, Room: room},
		})
		planner.Begin(steps(0, last))
		next := 0
		require.NoError(t, runAll(t.Context(), planner, false, func(ctx context.Context, w *plan.Window) error {
			planned.Store(int64(next + len(w.Steps)))
			var ids [][]uint32
			for _, d := range w.Steps {
				if d.Step != next {
					return errors.New("not in order")
				}
				next++
				ids = append(ids, rows(d.Step)[0])
			}
			windows = append(windows, len(w.Steps))
			if err := take(ctx, w.Rows[0], f, ids); err != nil {
				return err
			}
			for _, d := range w.Steps {
				planner.Done(d)
			}
			return nil
		}))
		require.Equal(t, last, next)
		require.Zero(t, file.Stats().UsedBytes)
		return asked, windows
	}
	for _, sets := range []int{20, 7} { // for all windows there is memory to know what they want, or not
		asked, windows := run(sets, true)
		late, lateWindows := run(sets, false)
		require.Equal(t, asked, late)
		require.Equal(t, windows, lateWindows)
		require.Greater(t, len(asked), 3)
	}
}

// TestRoomForFewerSteps: if the room is too small for the steps of a horizon, half as many are
// drawn together from then on. None are drawn in groups as long as there is room for the steps of a
// window. Steps that were drawn by then are not drawn again, nor any past the range.
func TestRoomForFewerSteps(t *testing.T) {
	const last, room = 400, 60
	f := features(t, 64)
	rows := func(step int) [][]uint32 { return [][]uint32{{uint32(step) % tableRows, uint32(step+1) % tableRows}} }
	s, err := cachetier.Open(t.Context(), f, cachetier.Options{HostBytes: 60 * 64})
	require.NoError(t, err)
	defer s.Close()
	file, err := spill.Create(spill.Options{Dir: t.TempDir(), Bytes: 4 << 20, Segment: 4096, Buffers: 60, Depth: 2})
	require.NoError(t, err)
	defer file.Close()
	ok, err := s.Join(t.Context(), file, 40, f.Rows(), f, cachetier.Options{HostBytes: 60 * 64})
	require.NoError(t, err)
	require.True(t, ok)
	p := &packer{rows: rows, begins: func(int) {}, unpack: func(int) {}, room: room}
	var asked []int
	p.draws = func(from, n int) {
		asked = append(asked, n)
		require.LessOrEqual(t, from+n, last)
	}
	planner := plan.NewPlanner(plan.Config{
		Sampler: p, Parallel: 1, Tables: []*cachetier.Stack{s}, Bytes: 1 << 30, BatchBytes: 100, BatchRows: []int{2},
		Join: plan.Join{File: file, Windows: 40, Room: file},
	})
	planner.Begin(steps(0, last))
	require.NoError(t, atOnce(t.Context(), planner, []*store.Features{f}, rows))
	refused, drawn := 0, 0
	for k, n := range asked {
		if n > room {
			require.LessOrEqual(t, asked[k+1], n/2, "%v", asked)
			refused, n = refused+1, n*3/4
		}
		drawn += n
	}
	require.Positive(t, refused, "%v", asked)
	require.Less(t, drawn, last*5/4, "%v: hardly a step is drawn in vain", asked)
}

// Horizons of two tables share a spill with no more buffers than they need: none waits for what the
// other has, and each row is right.
func TestHorizonsOfTwoTables(t *testing.T) {
	const last, windows, depth = 120, 9, 3
	tables := []*store.Features{features(t, 64), features(t, 200)}
	for seed := range uint64(4) {
		of := inputs(seed)
		rows := func(step int) [][]uint32 { return [][]uint32{of(step, 0), of(step, 1)} }
		file, err := spill.Create(spill.Options{Dir: t.TempDir(), Bytes: 4 << 20, Segment: 4096, Buffers: (windows+depth)*2 + 4, Depth: depth})
		require.NoError(t, err)
		var stacks []*cachetier.Stack
		for i, f := range tables {
			o := cachetier.Options{HostBytes: int64(180-60*i) * int64(f.RowBytes())}
			s, err := cachetier.Open(t.Context(), f, o)
			require.NoError(t, err)
			sets := windows
			if i == 1 && seed%2 == 1 { // the other table has a window more then, which is of no steps
				sets = 4
			}
			ok, err := s.Join(t.Context(), file, sets, f.Rows(), f, o)
			require.NoError(t, err)
			require.True(t, ok)
			stacks = append(stacks, s)
		}
		room, err := spill.Create(spill.Options{Dir: t.TempDir(), Bytes: 1 << 20, Segment: 4096})
		require.NoError(t, err)
		p := &packer{rows: rows, begins: func(int) {}, draws: func(int, int) {}, unpack: func(int) {}}
		planner := plan.NewPlanner(plan.Config{
			Sampler: p, Parallel: 1, Tables: stacks, Bytes: 1 << 30, BatchBytes: 100, BatchRows: []int{30, 15},
			Join: plan.Join{File: file, Windows: windows, Room: room},
		})
		for range 2 {
			planner.Begin(steps(0, last))
			require.NoError(t, atOnce(t.Context(), planner, tables, rows))
		}
		for _, s := range stacks {
			require.Positive(t, s.Stats().Join.Spilled)
			require.Zero(t, s.Stats().Join.Reread)
			require.NoError(t, s.Close())
		}
		require.Zero(t, file.Stats().UsedBytes)
		file.Close()
		room.Close()
	}
}

// atOnce plans, loads all tables of a window at a time, and gathers, each beside the others.
func atOnce(ctx context.Context, p *plan.Planner, tables []*store.Features, rows func(step int) [][]uint32) error {
	return atOnceUsing(ctx, p, tables, rows, func(context.Context, int) error { return nil })
}

// atOnceUsing is atOnce, and calls use for each step once its rows are gathered.
func atOnceUsing(
	ctx context.Context, p *plan.Planner, tables []*store.Features, rows func(step int) [][]uint32,
	use func(ctx context.Context, step int) error,
) error {
	g, ctx := errgroup.WithContext(ctx)
	planned, loaded := make(chan *plan.Window), make(chan *plan.Window)
	pass := func(to chan<- *plan.Window, w *plan.Window) error {
		select {
		case to <- w:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	g.Go(func() error {
		defer close(planned)
		for {
			w, err := p.Next(ctx)
			if w == nil || err != nil {
				return err
			}
			if err := pass(planned, w); err != nil {
				return err
			}
		}
	})
	g.Go(func() error {
		defer close(loaded)
		for w := range planned {
			if err := p.Keep(ctx, w); err != nil {
				return err
			}
			var all errgroup.Group
			for _, r := range w.Rows {
				all.Go(func() error { return r.Load(ctx) })
			}
			if err := all.Wait(); err != nil {
				return err
			}
			if err := pass(loaded, w); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error {
		for w := range loaded {
			for i, d := range w.Steps {
				for n, ids := range rows(d.Step) {
					var want []byte
					for _, v := range ids {
						want = append(want, tables[n].Row(v)...)
					}
					got := make([]byte, len(want))
					if err := w.Rows[n].Gather(ctx, i, got); err != nil {
						return err
					}
					if !bytes.Equal(want, got) {
						return fmt.Errorf("wrong rows of table %d, step %d", n, d.Step)
					}
				}
				if err := use(ctx, d.Step); err != nil {
					return err
				}
				p.Done(d)
			}
			for _, r := range w.Rows {
				r.Release()
			}
		}
		return nil
	})
	return g.Wait()
}

// spilling has the windows that a run's horizons had for one table, each by its first step.
type spilling struct {
	windows [][]int
	rows    func(step int) []uint32
	last    int
}

// held returns the most segments of a spill that a horizon has once the windows before the k-th are
// loaded. A row takes one segment, and so does a batch.
func (s *spilling) held(horizon, k int) int {
	windows, end := s.windows[horizon], s.last
	if horizon+1 < len(s.windows) {
		end = s.windows[horizon+1][0]
	}
	if k == len(windows) {
		return 0
	}
	rows := map[uint32]bool{}
	for step := windows[k]; step < end && len(windows) > 1; step++ {
		for _, v := range s.rows(step) {
			rows[v] = true
		}
	}
	return end - windows[k] + len(rows)
}

// waits returns for each horizon the number of windows of the horizon before it that it waits for,
// in a spill of so many segments.
func (s *spilling) waits(segments int) []int {
	all := []int{0}
	for n := 1; n < len(s.windows); n++ {
		k := 0
		for k < len(s.windows[n-1]) && s.held(n-1, k)+s.held(n, 0) > segments {
			k++
		}
		all = append(all, k)
	}
	return all
}

// A table is scanned for a horizon when those windows of the one before are loaded that leave room
// for it in the spill, and not later.
func TestScansWaitForRoom(t *testing.T) {
	storetest.Long(t)
	const last, rowBytes, segment, segments, most = 400, 2048, 4096, 360, 24
	f, of := features(t, rowBytes), inputs(1)
	rows := func(step int) []uint32 { return of(step, 0) }
	// run returns the windows that horizons had. known has the windows that they will have.
	run := func(known *spilling) [][]int {
		o := cachetier.Options{HostBytes: 60 * rowBytes, Engine: disk.Pread}
		s, err := cachetier.Open(t.Context(), f, o)
		require.NoError(t, err)
		defer s.Close()
		create := func() *spill.File {
			file, err := spill.Create(spill.Options{Dir: t.TempDir(), Bytes: segments * segment, Segment: segment, Buffers: most + 8, Depth: 2})
			require.NoError(t, err)
			return file
		}
		file, room := create(), create()
		defer file.Close()
		defer room.Close()
		var waits []int
		if known != nil {
			waits = known.waits(segments)
		}
		var drawn, early atomic.Int64
		var loaded [last]atomic.Bool // by the first step of a window
		var scanned [last]atomic.Bool
		o.Faults = func(int, int64, int) disk.Fault { // a scan reads
			n := int(drawn.Load()) - 1
			scanned[n].Store(true)
			if known == nil || n == 0 {
				return disk.Fault{}
			}
			for _, first := range known.windows[n-1][:waits[n]] {
				if !loaded[first].Load() {
					early.Add(1)
				}
			}
			return disk.Fault{}
		}
		ok, err := s.Join(t.Context(), file, most, f.Rows(), f, o)
		require.NoError(t, err)
		require.True(t, ok)
		var from, windows []int
		asked := 0
		p := &packer{rows: func(step int) [][]uint32 { return [][]uint32{rows(step)} }, begins: func(int) {}, unpack: func(int) {}}
		p.draws = func(first, n int) {
			from, asked = append(from, first), asked+n
			drawn.Add(1)
		}
		planner := plan.NewPlanner(plan.Config{
			Sampler: p, Parallel: 1, Tables: []*cachetier.Stack{s}, Bytes: 1 << 30, BatchBytes: 100, BatchRows: []int{30},
			Join: plan.Join{File: file, Windows: most, Room: room},
		})
		planner.Begin(steps(0, last))
		require.NoError(t, runAll(t.Context(), planner, true, func(ctx context.Context, w *plan.Window) error {
			first := w.Steps[0].Step
			windows = append(windows, first)
			for n := 1; known != nil && n < len(known.windows); n++ {
				k, before := waits[n], known.windows[n-1]
				switch at := slices.Index(before, first); {
				case at < 0 || len(known.windows[n]) == 1:
				case at == k-1: // the last one that the scan waits for
					until(func() bool { return int(drawn.Load()) > n })
					time.Sleep(2 * time.Millisecond) // in which the table might be scanned
				case at == k && k > 0: // no scan waits for it
					until(func() bool { return scanned[n].Load() })
				}
			}
			var ids [][]uint32
			for _, d := range w.Steps {
				ids = append(ids, rows(d.Step))
			}
			loaded[first].Store(true) // now, since the scan may go on before Load returns
			if err := take(ctx, w.Rows[0], f, ids); err != nil {
				return err
			}
			for _, d := range w.Steps {
				planner.Done(d)
			}
			return nil
		}))
		require.Zero(t, early.Load())
		require.Zero(t, s.Stats().Join.Reread, "the spill was never full")
		require.Less(t, asked, last*5/4, "hardly a step is drawn in vain")
		require.Zero(t, file.Stats().UsedBytes)
		var horizons [][]int
		for n, first := range from {
			end := last
			if n+1 < len(from) {
				end = from[n+1]
			}
			lo, _ := slices.BinarySearch(windows, first)
			hi, _ := slices.BinarySearch(windows, end)
			horizons = append(horizons, windows[lo:hi])
		}
		return horizons
	}
	known := &spilling{windows: run(nil), rows: rows, last: last}
	require.Equal(t, known.windows, run(known))
	require.Greater(t, len(known.windows[1]), 1)
	some := 0
	for n, k := range known.waits(segments) {
		require.LessOrEqual(t, known.held(n, 0), segments)
		if n > 1 {
			require.LessOrEqual(t, len(known.windows[n]), 4*len(known.windows[n-1]))
		}
		if n > 0 && k > 0 && k < len(known.windows[n-1]) {
			some++
		}
	}
	require.Greater(t, some, 5, "scans that wait for some windows and not for all")
}

// Whatever room there is, horizons keep to it, and what they do does not depend on who comes first.
func TestHorizonsKeepToTheirSpace(t *testing.T) {
	const last, rowBytes, segment, windows = 150, 1000, 4096, 12
	f := features(t, rowBytes)
	for seed := range uint64(6) {
		of := inputs(seed)
		rows := func(step int) [][]uint32 { return [][]uint32{of(step, 0)} }
		run := func(slow func(step int)) (done cachetier.Join, used spill.Stats) {
			o := cachetier.Options{HostBytes: 100 * rowBytes}
			s, err := cachetier.Open(t.Context(), f, o)
			require.NoError(t, err)
			defer s.Close()
			create := func(bytes int64) *spill.File {
				file, err := spill.Create(spill.Options{Dir: t.TempDir(), Bytes: bytes, Segment: segment, Buffers: windows + 8, Depth: 2})
				require.NoError(t, err)
				return file
			}
			file, room := create(int64(60+30*seed)*segment), create(1<<20)
			defer file.Close()
			defer room.Close()
			ok, err := s.Join(t.Context(), file, windows, f.Rows(), f, o)
			require.NoError(t, err)
			require.True(t, ok)
			p := &packer{rows: rows, begins: func(int) {}, draws: func(from, _ int) { slow(from) }, unpack: slow}
			planner := plan.NewPlanner(plan.Config{
				Sampler: p, Parallel: 1, Tables: []*cachetier.Stack{s}, Bytes: 1 << 30, BatchBytes: 100, BatchRows: []int{20},
				Join: plan.Join{File: file, Windows: windows, Room: room},
			})
			planner.Begin(steps(0, last))
			require.NoError(t, atOnce(t.Context(), planner, []*store.Features{f}, rows))
			require.Zero(t, file.Stats().UsedBytes)
			done = *s.Stats().Join
			done.ScanSeconds = 0
			return done, file.Stats()
		}
		first, used := run(func(int) {})
		require.Zero(t, first.Reread)
		require.Greater(t, first.Horizons, int64(3))
		require.Positive(t, used.PeakBytes)
		again, _ := run(func(step int) {
			if step%5 == 0 {
				time.Sleep(time.Millisecond)
			}
		})
		require.Equal(t, first, again)
	}
}
