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
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

// known is a batch of which only its rows are known, of each table.
type known struct {
	step int
	rows [][]uint32
}

func (b *known) Inputs() [][]uint32 { return b.rows }
func (b *known) Bytes() int64       { return 100 }

// packer is a Packer of known batches. Its hooks are called when a horizon is to be drawn, with its number; when it is drawn, from a step on
// as many; and when a step comes back.
type packer struct {
	rows   func(step int) [][]uint32
	begins func(horizon int)
	draws  func(from, n int)
	unpack func(step int)
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
	run := func(drawnFirst bool) (asked [][2]int, windows []int) {
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
		ok, err := s.Join(t.Context(), file, 20, f, o)
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
	asked, windows := run(true)
	late, lateWindows := run(false)
	require.Equal(t, asked, late)
	require.Equal(t, windows, lateWindows)
	require.Greater(t, len(asked), 3)
}

// Horizons of two tables share a spill with no more buffers than they need: none waits for what the other has, and each row is right.
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
			ok, err := s.Join(t.Context(), file, windows, f, o)
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

// A table is scanned for a horizon only when the windows of the last but one before it are loaded: what they have in the spill is not there any
// more, as the limits of the horizon have it.
func TestScansWaitForTheLastButOne(t *testing.T) {
	const last = 160
	f, of := features(t, 64), inputs(1)
	rows := func(step int) [][]uint32 { return [][]uint32{of(step, 0)} }
	run := func(expected []int) (from []int) { // first steps of horizons
		o := cachetier.Options{HostBytes: 120 * 64, Engine: disk.Pread}
		s, err := cachetier.Open(t.Context(), f, o)
		require.NoError(t, err)
		defer s.Close()
		create := func() *spill.File {
			file, err := spill.Create(spill.Options{Dir: t.TempDir(), Bytes: 1 << 20, Segment: 4096, Buffers: 20, Depth: 2})
			require.NoError(t, err)
			return file
		}
		file, room := create(), create()
		defer file.Close()
		defer room.Close()
		var drawn, loaded, early atomic.Int64
		o.Faults = func(int, int64, int) disk.Fault { // a scan reads
			if n := int(drawn.Load()); n > 2 && n <= len(expected) && int(loaded.Load()) < expected[n-2] {
				early.Add(1)
			}
			return disk.Fault{}
		}
		ok, err := s.Join(t.Context(), file, 10, f, o)
		require.NoError(t, err)
		require.True(t, ok)
		p := &packer{rows: rows, begins: func(int) {}, unpack: func(int) {}}
		p.draws = func(first, _ int) {
			from = append(from, first)
			drawn.Add(1)
		}
		planner := plan.NewPlanner(plan.Config{
			Sampler: p, Parallel: 1, Tables: []*cachetier.Stack{s}, Bytes: 1 << 30, BatchBytes: 100, BatchRows: []int{30},
			Join: plan.Join{File: file, Windows: 10, Room: room},
		})
		planner.Begin(steps(0, last))
		require.NoError(t, runAll(t.Context(), planner, true, func(ctx context.Context, w *plan.Window) error {
			next := w.Steps[len(w.Steps)-1].Step + 1
			if k := slices.Index(expected, next); k > 0 && k+1 < len(expected) { // the last window before horizon k
				until(func() bool { return int(drawn.Load()) >= k+2 })
				time.Sleep(2 * time.Millisecond) // in which the next one might be scanned
			}
			var ids [][]uint32
			for _, d := range w.Steps {
				ids = append(ids, rows(d.Step)[0])
			}
			loaded.Store(int64(next)) // now, since the scan may go on before Load returns
			if err := take(ctx, w.Rows[0], f, ids); err != nil {
				return err
			}
			for _, d := range w.Steps {
				planner.Done(d)
			}
			return nil
		}))
		require.Zero(t, early.Load())
		return from
	}
	from := run(nil)
	require.Greater(t, len(from), 4)
	require.Equal(t, from, run(from))
}
