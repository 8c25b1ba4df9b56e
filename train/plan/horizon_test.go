package plan_test

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

// known is a batch of which only its rows are known.
type known struct {
	step int
	rows []uint32
}

func (b *known) Inputs() [][]uint32 { return [][]uint32{b.rows} }
func (b *known) Bytes() int64       { return 100 }

// packer is a Packer of known batches. Its hooks are called when a horizon is to be drawn, with its number; when it is drawn, from a step on
// as many; and when a step comes back.
type packer struct {
	rows   func(step int) []uint32
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
	rows := func(step int) (ids []uint32) { // more and more
		for v := range 8 + step/8 {
			ids = append(ids, uint32(v*7+step)%tableRows)
		}
		return ids
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
				ids = append(ids, rows(d.Step))
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
