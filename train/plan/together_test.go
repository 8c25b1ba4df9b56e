package plan_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

// lane lets workers exchange numbers. All workers make the same exchanges in the same order.
type lane struct {
	workers int
	mu      sync.Mutex
	now     *meeting
}

type meeting struct {
	came []int
	done chan struct{}
}

// all returns the numbers that all workers give.
func (l *lane) all(ctx context.Context, n int) ([]int, error) {
	l.mu.Lock()
	if l.now == nil {
		l.now = &meeting{done: make(chan struct{})}
	}
	m := l.now
	if m.came = append(m.came, n); len(m.came) == l.workers {
		close(m.done)
		l.now = nil
	}
	l.mu.Unlock()
	select {
	case <-m.done:
		return m.came, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// team has workers that draw together. All of them must draw the same steps in the same order, and
// use each step together.
type team struct {
	draws, uses *lane
	workers     []*teammate
}

// teammate is a worker of a team, and its Packer.
type teammate struct {
	team    *team
	seed    uint64
	planner *plan.Planner
	stack   *cachetier.Stack
	file    *spill.File // nil: it has no spill
	table   *store.Features
	drawn   []int                // first step and number of each group
	fails   func(from int) error // of a draw; nil: none
}

func (w *teammate) rows(step int) [][]uint32 { return [][]uint32{inputs(w.seed)(step, 0)} }

func (*teammate) New() plan.Batch { return new(known) }

func (w *teammate) Draw(ctx context.Context, _ *plan.Steps, from int, into []plan.Batch) error {
	if w.fails != nil {
		if err := w.fails(from); err != nil {
			return err
		}
	}
	w.drawn = append(w.drawn, from, len(into))
	for _, own := range []int{from, len(into)} {
		all, err := w.team.draws.all(ctx, own)
		if err != nil {
			return err
		}
		if slices.Min(all) != slices.Max(all) {
			return fmt.Errorf("workers draw %v", all)
		}
	}
	for i, b := range into {
		*b.(*known) = known{from + i, w.rows(from + i)}
	}
	return nil
}

func (*teammate) Pack(dst []byte, b plan.Batch) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(b.(*known).step))
}

func (w *teammate) Unpack(b plan.Batch, src []byte) error {
	step := int(binary.LittleEndian.Uint64(src))
	*b.(*known) = known{step, w.rows(step)}
	return nil
}

func (*teammate) Far() bool { panic("asked whether it draws far") }

func (*teammate) DrawFar(context.Context, *plan.Steps, sample.Room, int, int, func(int, plan.Batch) error) error {
	panic("drawn far")
}

func (w *teammate) agree(ctx context.Context, n int) (int, error) {
	all, err := w.team.draws.all(ctx, n)
	if err != nil {
		return 0, err
	}
	return slices.Min(all), nil
}

// mate has the sizes of a teammate's memory and spill.
type mate struct {
	slots, windows, segments int // segments 0: no spill
	batches                  int64
	group, ahead             int
	faults                   func(write bool, at int64, size int) error
}

func newTeam(t *testing.T, table *store.Features, seed uint64, mates ...mate) *team {
	all := &team{}
	for i, m := range mates {
		w := &teammate{team: all, seed: seed + uint64(100*i), table: table}
		o := cachetier.Options{HostBytes: int64(m.slots * table.RowBytes())}
		var err error
		w.stack, err = cachetier.Open(t.Context(), table, o)
		require.NoError(t, err)
		t.Cleanup(func() { w.stack.Close() })
		c := plan.Config{
			Sampler: w, Parallel: 1, Tables: []*cachetier.Stack{w.stack}, Bytes: m.batches, Group: m.group,
			Ahead: m.ahead, BatchBytes: 100, BatchRows: []int{20}, Agree: w.agree,
		}
		if m.segments > 0 {
			w.file, err = spill.Create(spill.Options{
				Dir: t.TempDir(), Bytes: int64(4096 * m.segments), Segment: 4096, Buffers: m.windows + 8, Depth: 2,
				Faults: m.faults,
			})
			require.NoError(t, err)
			t.Cleanup(func() { w.file.Close() })
			ok, err := w.stack.Join(t.Context(), w.file, m.windows, table.Rows(), table, o)
			require.NoError(t, err)
			require.Equal(t, m.slots < table.Rows(), ok, "else all rows are in memory")
			c.Join = plan.Join{File: w.file, Windows: m.windows}
		}
		w.planner = plan.NewPlanner(c)
		all.workers = append(all.workers, w)
	}
	return all
}

// run takes the steps [from, to) through all planners, until an error ends all of them.
func (a *team) run(t *testing.T, from, to int, use func(rank, step int) error) error {
	ctx, end := context.WithTimeout(t.Context(), 20*time.Second)
	defer end()
	a.draws, a.uses = &lane{workers: len(a.workers)}, &lane{workers: len(a.workers)}
	g, ctx := errgroup.WithContext(ctx)
	for rank, w := range a.workers {
		w.drawn = nil
		g.Go(func() error {
			w.planner.Begin(steps(from, to))
			next := from
			tables := []*store.Features{w.table}
			err := atOnceUsing(ctx, w.planner, tables, w.rows, func(ctx context.Context, step int) error {
				if step != next {
					return fmt.Errorf("step %d where %d is next", step, next)
				}
				next++
				if use != nil {
					if err := use(rank, step); err != nil {
						return err
					}
				}
				_, err := a.uses.all(ctx, step)
				return err
			})
			if err == nil && next != to {
				return fmt.Errorf("the last step is %d", next-1)
			}
			return err
		})
	}
	return g.Wait()
}

// TestTogether: workers with unequal caches, spills and budgets draw the same groups, and use all
// steps in order with the right rows. None waits for ever. They go by horizons if all of them have
// a spill with room for a step.
func TestTogether(t *testing.T) {
	table := features(t, 1000)
	horizons, short := 0, 0
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 3))
		one := func(of ...int) int { return of[r.IntN(len(of))] }
		var mates []mate
		ahead := one(0, 1, 3) // of all: an option of the run
		for range 1 + one(1, 1, 2) {
			mates = append(mates, mate{
				slots: one(60, 100, 200, 400), windows: one(4, 7, 20), segments: one(40, 120, 1000),
				batches: int64(one(1, 2000, 1<<30)), group: one(0, 0, 1, 5), ahead: ahead,
			})
		}
		without := int(seed) % 8
		if without < len(mates) {
			mates[without].segments = 0
		}
		all := newTeam(t, table, seed, mates...)
		taken := make([]*spill.Run, len(mates))
		if full := int(seed)%8 - 4; full >= 0 && full < len(mates) { // no room for the first step
			w := all.workers[full]
			taken[full] = w.file.NewRun()
			require.NoError(t, taken[full].Put(t.Context(), make([]byte, 4096*mates[full].segments)))
		}
		for range 2 { // the sizes of batches are known the second time
			require.NoError(t, all.run(t, 3, 120, nil), "seed %d: %+v", seed, mates)
		}
		joined := 0
		for rank, w := range all.workers {
			require.Equal(t, all.workers[0].drawn, w.drawn, "seed %d: %+v", seed, mates)
			if w.stack.Stats().Join != nil {
				joined++
			}
			if taken[rank] != nil {
				taken[rank].Drop()
				require.Zero(t, joined)
			}
			if w.file == nil {
				require.Zero(t, joined)
			} else {
				require.Zero(t, w.file.Stats().UsedBytes)
			}
		}
		if joined > 0 {
			horizons++
		}
		drawn := 0
		for i := 1; i < len(all.workers[0].drawn); i += 2 {
			drawn += all.workers[0].drawn[i]
		}
		if drawn > 117 {
			short++
		}
	}
	require.Greater(t, horizons, 5)
	require.Greater(t, short, 2, "runs in which a horizon ended within a group")
}

// TestTogetherCutShort: a worker that fails while a horizon is drawn, or while a step is used, ends
// all, nothing is left, and the next range is whole.
func TestTogetherCutShort(t *testing.T) {
	table := features(t, 1000)
	all := newTeam(t, table, 5,
		mate{slots: 60, windows: 7, segments: 300, batches: 2000},
		mate{slots: 120, windows: 20, segments: 1000, batches: 1500},
		mate{slots: 80, windows: 9, segments: 500, batches: 4000})
	broken := errors.New("broken on purpose")
	require.NoError(t, all.run(t, 0, 80, nil))
	for at := 0; at < 80; at += 11 {
		bad := at % len(all.workers)
		var use func(rank, step int) error
		if at%2 == 0 {
			all.workers[bad].fails = func(from int) error {
				if from >= at {
					return broken
				}
				return nil
			}
		} else {
			use = func(rank, step int) error {
				if rank == bad && step == at {
					return broken
				}
				return nil
			}
		}
		require.ErrorIs(t, all.run(t, 0, 80, use), broken)
		for _, w := range all.workers {
			w.planner.Reset()
			w.fails = nil
			require.Zero(t, w.file.Stats().UsedBytes)
		}
		require.NoError(t, all.run(t, at, 80, nil))
	}
}

// TestTogetherDamaged: rows that the spill of one worker has lost are read from the table, and a
// lost batch, which no worker draws again alone, ends all with what to do.
func TestTogetherDamaged(t *testing.T) {
	storetest.Long(t)
	table := features(t, 1000)
	lost, reread := 0, 0
	for bad := range int64(14) {
		var writes atomic.Int64
		faults := func(write bool, _ int64, _ int) error {
			if write && writes.Add(1) == 12*bad {
				return errors.New("the disk is gone")
			}
			return nil
		}
		all := newTeam(t, table, 5, mate{slots: 60, windows: 12, segments: 500, batches: 2000},
			mate{slots: 60, windows: 12, segments: 500, batches: 2000, faults: faults})
		err := all.run(t, 0, 120, nil)
		if err != nil {
			require.ErrorIs(t, err, spill.ErrDamaged)
			require.ErrorContains(t, err, "the batch of step ")
			require.ErrorContains(t, err, "{spill_bytes} 0 goes by windows, {tmp} names another directory")
			lost++
		} else if all.workers[1].stack.Stats().Join.Reread > 0 {
			reread++
		}
		for _, w := range all.workers {
			w.planner.Reset()
		}
	}
	require.Greater(t, lost, 2)
	require.Greater(t, reread, 2)
}
