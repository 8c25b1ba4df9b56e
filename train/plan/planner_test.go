package plan_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// given is a GraphSampler of known batches: inputs returns the rows that a step reads of each
// table.
type given struct {
	tables int
	inputs func(step, table int) []uint32
}

func (g given) SampleThrough(_ context.Context, e sample.Expander, batches []*sample.Batch, z []sample.BatchSeed, _ [][][]uint32) error {
	for i, b := range batches {
		nodes := make([]sample.Frontier, g.tables)
		for t := range nodes {
			nodes[t].Src = g.inputs(int(z[i].First), t)
		}
		b.Layers = []sample.Layer{{Nodes: nodes}}
	}
	return nil
}

func (given) Pack([]byte, *sample.Batch) []byte                     { panic("not packed") }
func (given) Unpack(*sample.Batch, []byte) (rest []byte, err error) { panic("not packed") }

func (given) Far() bool { return false }
func (given) SampleFar(context.Context, sample.Room, int, func(int) (sample.BatchSeed, [][]uint32, []sample.Without), func(int, *sample.Batch) error) error {
	panic("not far")
}

func steps(from, to int) plan.Steps {
	return plan.Steps{
		From: from, To: to, Seeds: func(int) [][]uint32 { return [][]uint32{nil} },
		BatchSeed: func(step int) sample.BatchSeed { return sample.BatchSeed{First: uint64(step)} },
	}
}

const tableRows = 300

// features is a table of rows of so many bytes.
func features(t *testing.T, rowBytes int) *store.Features {
	d, err := store.Open(storetest.Build(t, storetest.Spec{Nodes: tableRows, Dim: rowBytes / 2}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d.Features(0)
}

// inputs are the rows that steps read of two tables: of the first more than of the second.
func inputs(seed uint64) func(step, table int) []uint32 {
	return func(step, table int) (ids []uint32) {
		rng := rand.New(rand.NewPCG(seed, uint64(2*step+table)))
		for _, v := range rng.Perm(tableRows)[:1+rng.IntN(40-25*table)] {
			ids = append(ids, uint32(v))
		}
		return ids
	}
}

// fit is the rule: how many of the steps have their rows fit in the cache together, at least one.
func fit(s *cachetier.Stack, hot int, steps [][]uint32) int {
	rows := map[uint32]bool{}
	for n, ids := range steps {
		for _, v := range ids {
			if int(v) >= hot {
				rows[v] = true
			}
		}
		if len(rows) > s.WindowRows() {
			return max(n, 1)
		}
	}
	return len(steps)
}

func counters(s *cachetier.Stack) cachetier.Stats {
	st := s.Stats()
	st.Disk.Seconds, st.Warmup.Seconds = 0, 0
	return st
}

// take loads, gathers and releases a window of one table, and compares its rows with the file's.
func take(ctx context.Context, w *cachetier.Window, f *store.Features, steps [][]uint32) error {
	if err := w.Load(ctx); err != nil {
		return err
	}
	for i, ids := range steps {
		var want []byte
		for _, v := range ids {
			want = append(want, f.Row(v)...)
		}
		got := make([]byte, len(want))
		if err := w.Gather(ctx, i, got); err != nil {
			return err
		}
		if !bytes.Equal(want, got) {
			return fmt.Errorf("wrong rows")
		}
	}
	w.Release()
	return nil
}

// TestTwoTables plans two tables of different rows side by side: both get windows of the same
// steps, the fewest that fit one of them, every row is right, and each table counts what it counts
// alone when it is told the same windows.
func TestTwoTables(t *testing.T) {
	const first, last, size = 3, 60, 7
	tables := []*store.Features{features(t, 64), features(t, 200)}
	limits := map[int]bool{} // tables that had the least room
	for seed := range uint64(12) {
		kind := policy.Kinds[seed%uint64(len(policy.Kinds))]
		rng := rand.New(rand.NewPCG(seed, 1))
		of, ahead := inputs(seed), rng.IntN(3)
		var options []cachetier.Options
		for i, f := range tables {
			options = append(options, cachetier.Options{
				HostBytes: int64(60+rng.IntN(200)) * int64(f.RowBytes()) / int64(1+3*i), StaticBytes: int64(rng.IntN(20) * f.RowBytes()), Policy: kind, Lookahead: ahead,
			})
		}
		open := func() (stacks []*cachetier.Stack) {
			for i, f := range tables {
				s, err := cachetier.Open(t.Context(), f, options[i])
				require.NoError(t, err)
				stacks = append(stacks, s)
			}
			return stacks
		}
		// Alone: groups of so many steps, 1 + ahead of them known to each window.
		var windows []int
		alone := open()
		var all []int
		for step := first; step < last; step++ {
			all = append(all, step)
		}
		groups := slices.Collect(slices.Chunk(all, size))
		rows := func(table int, steps []int) (ids [][]uint32) {
			for _, step := range steps {
				ids = append(ids, of(step, table))
			}
			return ids
		}
		for known := 0; len(groups) > 0; {
			for ; known < min(1+ahead, len(groups)); known++ {
				for i, s := range alone {
					s.Expect(rows(i, groups[known]))
				}
			}
			n, limit := len(groups[0]), -1
			for i, s := range alone {
				hot := int(options[i].StaticBytes) / tables[i].RowBytes()
				if most := fit(s, hot, rows(i, groups[0])); most < n {
					n, limit = most, i
				}
			}
			limits[limit] = true
			for i, s := range alone {
				w, err := s.Next(t.Context(), n)
				require.NoError(t, err)
				require.NoError(t, take(t.Context(), w, tables[i], rows(i, groups[0][:n])))
			}
			windows = append(windows, n)
			if groups[0] = groups[0][n:]; len(groups[0]) == 0 {
				groups, known = groups[1:], known-1
			}
		}

		stacks := open()
		p := plan.NewPlanner(plan.Config{
			Sampler: plan.Graph{GraphSampler: given{len(tables), of}}, Parallel: 1, Tables: stacks, Bytes: 1 << 30, Group: size, Ahead: ahead,
			BatchBytes: 1, BatchRows: []int{1, 1},
		})
		for _, atOnce := range []bool{false, true} {
			var got []int
			use := func(ctx context.Context, w *plan.Window) error {
				got = append(got, len(w.Steps))
				for i, r := range w.Rows {
					if err := take(ctx, r, tables[i], idsOf(w, i, of)); err != nil {
						return err
					}
				}
				for _, s := range w.Steps {
					p.Done(s)
				}
				return nil
			}
			p.Begin(steps(first, last))
			require.NoError(t, runAll(t.Context(), p, atOnce, use))
			require.Equal(t, windows, got, "seed %d", seed)
			if !atOnce {
				for i := range stacks {
					require.Equal(t, counters(alone[i]), counters(stacks[i]), "seed %d, table %d", seed, i)
				}
				for _, s := range stacks {
					require.NoError(t, s.Close())
				}
				stacks = open()
				p.Tables = stacks
			}
		}
		for i := range stacks {
			require.Equal(t, counters(alone[i]), counters(stacks[i]), "seed %d, table %d, at once", seed, i)
			require.NoError(t, stacks[i].Close())
			require.NoError(t, alone[i].Close())
		}
	}
	require.Equal(t, map[int]bool{-1: true, 0: true, 1: true}, limits)
}

// runAll takes the windows of p to use: one thing at a time, or with a goroutine that plans beside
// one that keeps.
func runAll(ctx context.Context, p *plan.Planner, atOnce bool, use func(context.Context, *plan.Window) error) error {
	if !atOnce {
		for {
			w, err := p.Next(ctx)
			if w == nil || err != nil {
				return err
			}
			if err := p.Keep(ctx, w); err != nil {
				return err
			}
			if err := use(ctx, w); err != nil {
				return err
			}
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	planned := make(chan *plan.Window)
	g.Go(func() error {
		defer close(planned)
		for {
			w, err := p.Next(ctx)
			if w == nil || err != nil {
				return err
			}
			select {
			case planned <- w:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	g.Go(func() error {
		for w := range planned {
			if err := p.Keep(ctx, w); err != nil {
				return err
			}
			if err := use(ctx, w); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

// TestReset cuts ranges short, by an error and by the end of the context, at a window that is
// planned, kept or in use: the next range begins at any step and is whole.
func TestReset(t *testing.T) {
	f := features(t, 64)
	of := inputs(9)
	s, err := cachetier.Open(t.Context(), f, cachetier.Options{HostBytes: 150 * 64, Lookahead: 1})
	require.NoError(t, err)
	defer s.Close()
	p := plan.NewPlanner(plan.Config{
		Sampler: plan.Graph{GraphSampler: given{1, of}}, Parallel: 2, Tables: []*cachetier.Stack{s}, Bytes: 1 << 30, Ahead: 1, BatchBytes: 1, BatchRows: []int{20},
	})
	errTest := errors.New("broken on purpose")
	for cut := range 12 {
		ctx, cancel := context.WithCancel(t.Context())
		windows := 0
		p.Begin(steps(cut, 40))
		err := runAll(ctx, p, cut%2 == 0, func(ctx context.Context, w *plan.Window) error {
			if windows++; windows <= cut/4 {
				return take(ctx, w.Rows[0], f, idsOf(w, 0, of))
			}
			if cut%4 < 2 {
				return errTest
			}
			cancel()
			return ctx.Err()
		})
		cancel()
		require.Error(t, err)
		require.Panics(t, func() { p.Begin(steps(0, 1)) })
		p.Reset()

		next := cut
		p.Begin(steps(cut, 40))
		require.NoError(t, runAll(t.Context(), p, true, func(ctx context.Context, w *plan.Window) error {
			for _, d := range w.Steps {
				require.Equal(t, next, d.Step)
				next++
			}
			return take(ctx, w.Rows[0], f, idsOf(w, 0, of))
		}))
		require.Equal(t, 40, next)
		steps, rows := p.Newest()
		require.Positive(t, steps)
		require.Positive(t, rows)
	}
}

// made is a sampler that takes note of the batches that it had to make.
type made struct {
	plan.Graph
	batches *[]weak.Pointer[sample.Batch]
}

func (m made) New() plan.Batch {
	b := m.Graph.New()
	*m.batches = append(*m.batches, weak.Make(b.(*sample.Batch)))
	return b
}

// TestTrim: batches that were used are drawn into again, but for those that Trim has given up,
// whose memory nothing keeps.
func TestTrim(t *testing.T) {
	var batches []weak.Pointer[sample.Batch]
	p := plan.NewPlanner(plan.Config{Sampler: made{plan.Graph{GraphSampler: given{}}, &batches}, Bytes: 1 << 30})
	once := func() {
		p.Begin(steps(0, 1))
		w, err := p.Next(t.Context())
		require.NoError(t, err)
		p.Done(w.Steps[0])
	}
	once()
	once()
	require.Len(t, batches, 1)
	p.Trim()
	runtime.GC()
	require.Nil(t, batches[0].Value())
	once()
	require.Len(t, batches, 2)
	runtime.KeepAlive(p)
}

// idsOf are the rows of one table that each step of w reads.
func idsOf(w *plan.Window, table int, of func(step, table int) []uint32) (ids [][]uint32) {
	for _, d := range w.Steps {
		ids = append(ids, of(d.Step, table))
	}
	return ids
}

// TestWritten: who waits for a step goes on when that is written back, at once where it was before,
// and at the end of ctx.
func TestWritten(t *testing.T) {
	p := plan.NewPlanner(plan.Config{Tables: []*cachetier.Stack{{}, {}}})
	p.Begin(steps(10, 20))
	for step := range 10 {
		require.NoError(t, p.Written(t.Context(), step))
	}
	g := new(errgroup.Group)
	for step := 9; step < 20; step++ {
		g.Go(func() error { return p.Written(context.Background(), step) })
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Written(ctx, 20) }()
	require.Error(t, p.WriteBack(11, nil), "step 10 is next")
	require.Error(t, p.WriteBack(10, make(plan.Written, 3)), "there are two tables")
	for step := 10; step < 20; step++ {
		require.NoError(t, p.WriteBack(step, plan.Written{{1}, {2, 3}}))
		require.Error(t, p.WriteBack(step, nil), "twice")
	}
	require.NoError(t, g.Wait())
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Equal(t, plan.Written{{1, 4}, {2, 3}, {5}}, plan.Written{{1}, {2, 3}}.Add(plan.Written{{4}, nil, {5}}))
}

// TestForecastIsWhatHappens compares what is forecast of two tables with what a run of the same
// steps counts.
func TestForecastIsWhatHappens(t *testing.T) {
	tables := []*store.Features{features(t, 64), features(t, 200)}
	for seed := range uint64(10) {
		of := inputs(seed)
		var stacks []*cachetier.Stack
		for i, f := range tables {
			s, err := cachetier.Open(t.Context(), f, cachetier.Options{
				HostBytes: int64(60+20*seed) * int64(f.RowBytes()) / int64(1+3*i), Lookahead: 1, Policy: policy.Kinds[seed%5],
			})
			require.NoError(t, err)
			defer s.Close()
			stacks = append(stacks, s)
		}
		p := plan.NewPlanner(plan.Config{Sampler: plan.Graph{GraphSampler: given{2, of}}, Parallel: 1, Tables: stacks, Bytes: 1 << 30, Ahead: 1})
		p.Begin(steps(0, 33))
		n := 0
		for {
			drawn, err := p.Draw(t.Context(), 7)
			require.NoError(t, err)
			if len(drawn) == 0 {
				break
			}
			require.Equal(t, n, drawn[0].Step)
			n += len(drawn)
		}
		require.Equal(t, 33, n)
		want, err := p.Forecast()
		require.NoError(t, err)
		windows := 0
		require.NoError(t, runAll(t.Context(), p, true, func(ctx context.Context, w *plan.Window) error {
			windows++
			for i, r := range w.Rows {
				if err := take(ctx, r, tables[i], idsOf(w, i, of)); err != nil {
					return err
				}
			}
			return nil
		}))
		for i, s := range stacks {
			st, f := s.Stats(), want[i]
			require.Equal(t, st.InputRows, f.InputRows)
			require.Equal(t, windows, f.All.Windows)
			require.Equal(t, 33, f.All.Steps)
			require.Equal(t, 33-7, f.Warm.Steps)
			require.Equal(t, st.Disk.Reads, f.All.Reads)
			require.Equal(t, st.Disk.BytesRead, f.All.Bytes)
			require.Equal(t, st.Disk.Rows-st.Disk.RowsRepeated, f.All.Rows)
		}
	}
}
