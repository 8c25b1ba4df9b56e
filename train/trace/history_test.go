package trace

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/sample"
)

// plainSlots has the rules for reusing hidden rows in plain maps, for one layer and type. A row is
// known by its node and the step
// that computed it.
type plainSlots struct {
	history.Options
	history.Kept
	at       map[uint32]int // by node: the step of the row that is there
	rejected map[int]map[plainRow]bool
	counts   history.Counts // of steps from counted on
	counted  int
}

type plainRow struct {
	node uint32
	step int
}

// plan splits live into nodes that are computed and rows that are used, and then decides about the
// rows of both.
func (r *plainSlots) plan(i int, live []uint32) (computed []uint32) {
	if i < r.Start {
		return live
	}
	var c history.Counts
	for row := range r.rejected[i-r.Lag] {
		if step, ok := r.at[row.node]; ok && step == row.step {
			delete(r.at, row.node)
			c.EvictedGrad++
		}
	}
	used, kept := map[plainRow]bool{}, map[plainRow]bool{}
	for _, v := range live {
		step, ok := r.at[v]
		provisional := i-step < r.Lag
		coin := float64(sample.Hash(r.Seed, 21, uint64(r.Layer), uint64(r.Type), uint64(v), uint64(step))>>11)*0x1p-53 < r.PGrad
		if !ok || i-step > r.TStale || provisional && !coin {
			computed = append(computed, v)
			continue
		}
		used[plainRow{v, step}] = true
		c.Hits++
		c.Ages += int64(i - step)
		if provisional {
			c.ProvisionalHits++
			if r.rejected[step][plainRow{v, step}] {
				c.UsedRejected++
			}
		}
	}
	c.Computed = int64(len(computed))
	maps.DeleteFunc(r.at, func(_ uint32, step int) bool {
		stale := i-step >= r.TStale
		if stale {
			c.EvictedStale++
		}
		return stale
	})
	last := 0 // rows that are used, and by no later step
	for row := range used {
		if _, ok := r.at[row.node]; !ok {
			last++
		}
	}
	for _, v := range computed {
		if !r.Admits(v) {
			continue
		}
		if _, ok := r.at[v]; ok {
			delete(r.at, v)
			c.Replaced++
		}
		if len(r.at)+last == r.Slots {
			c.Refused++
			continue
		}
		r.at[v], kept[plainRow{v, i}] = i, true
		c.Admitted++
	}
	norm := func(v uint32) uint64 {
		return sample.Hash(r.Seed, 22, uint64(r.Layer), uint64(r.Type), uint64(i), uint64(v)) >> 40
	}
	ranked := slices.SortedFunc(slices.Values(live), func(a, b uint32) int { return cmp.Or(cmp.Compare(norm(a), norm(b)), cmp.Compare(a, b)) })
	bad := map[uint32]bool{}
	for _, v := range ranked[int(math.Floor(r.PGrad*float64(len(live)))):] {
		bad[v] = true
	}
	r.rejected[i] = map[plainRow]bool{}
	for row := range maps.Keys(used) {
		r.rejected[i][row] = bad[row.node]
	}
	for row := range maps.Keys(kept) {
		r.rejected[i][row] = bad[row.node]
	}
	maps.DeleteFunc(r.rejected[i], func(_ plainRow, is bool) bool { return !is })
	if i >= r.counted {
		r.counts.Add(c)
	}
	return computed
}

// plainReads returns the reads and computed nodes of a run that uses rows again, from batches that
// were drawn whole.
func plainReads(t *testing.T, d *drawer, s stream, reach sample.Reach, tables []int, pools map[[2]int]*plainSlots, from int) (r StepReads, rows [][]uint32) {
	layers := len(s.config.Fanouts)
	r.ComputedNodes = make([]float64, layers)
	n := float64(s.steps - from)
	err := d.draw(context.Background(), s, func(step int, b *sample.Batch) error {
		made := b.Seeds // of each type, by the layer at hand
		var inputs []uint32
		for l := layers - 1; l >= 0; l-- {
			live, seen := make([][]uint32, len(made)), make([]map[uint32]bool, len(made))
			add := func(typ int, v uint32) {
				if !seen[typ][v] {
					seen[typ][v], live[typ] = true, append(live[typ], v)
				}
			}
			for typ := range made {
				seen[typ] = map[uint32]bool{}
				for _, v := range made[typ] {
					add(typ, v)
				}
				if step >= from {
					r.ComputedNodes[l] += float64(len(made[typ])) / n
				}
			}
			for i, drawn := range reach.Relations[l] {
				if !drawn {
					continue
				}
				rel, k := &d.data.Relations[i], &b.Layers[l].Blocks[i]
				whole := b.Layers[l].Nodes[rel.Dst]
				for _, v := range made[rel.Dst] {
					at := slices.Index(whole.Src[:whole.Dst], v)
					if step >= from && len(rel.Neighbors(v)) > 0 {
						r.Lists += 1 / n
					}
					for _, u := range k.Nbr[k.Start[at]:k.End[at]] {
						add(rel.Src, b.Layers[l].Nodes[rel.Src].Src[u])
					}
				}
			}
			made = make([][]uint32, len(live))
			for typ := range live {
				made[typ] = live[typ]
				if slots := pools[[2]int{l, typ}]; slots != nil {
					made[typ] = slots.plan(step, live[typ])
				}
			}
		}
		for _, typ := range tables {
			if step >= from {
				r.Rows += float64(len(made[typ])) / n
			}
			inputs = append(inputs, made[typ]...)
		}
		rows = append(rows, inputs)
		return nil
	})
	require.NoError(t, err)
	return r, rows
}

// near has counts that were added up in another way compare as equal.
var near = gocmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(a)) })

// TestHistoryAgreesWithPlainOne: what steps read and compute, and what becomes of rows, from
// batches that are drawn whole and plain maps; and the same whatever the number of workers.
func TestHistoryAgreesWithPlainOne(t *testing.T) {
	one, several := graph(t, 300, nil), library(t, nil)
	for name, c := range map[string]struct {
		ds     *store.Dataset
		change func(o *Options)
	}{
		"ns":                       {one, func(*Options) {}},
		"labor0, κ = 4, smoothed":  {one, func(o *Options) { o.Samplers[0], o.Kappas[0], o.Smoothed = sample.Labor0, 4, true }},
		"κ = ∞":                    {one, func(o *Options) { o.Kappas[0] = sample.Forever }},
		"walks":                    {one, func(o *Options) { o.Samplers[0] = sample.RW }},
		"every neighbour":          {one, func(o *Options) { o.Fanouts = []int{sample.All, 2, sample.All} }},
		"fewer steps than the lag": {one, func(o *Options) { o.Steps, o.History.HistoryLag = 9, []int{30} }},
		"a late start":             {one, func(o *Options) { o.History.HistoryStart = 11 }},
		"from the second epoch":    {one, func(o *Options) { o.History.HistoryStart = history.Auto }},
		"all is as good":           {one, func(o *Options) { o.History.PGrad = 1 }},
		"never too old":            {one, func(o *Options) { o.History.TStale = []int{math.MaxInt32} }},
		"fewer slots than a step":  {one, func(o *Options) { o.History.Slots = []Slots{{Bytes: 7 * history.SlotBytes(128)}, {Share: 0.01}} }},
		"as many as are worth it": {one, func(o *Options) {
			o.History.Slots, o.History.Hidden, o.History.TStale = []Slots{{Bytes: history.Auto}}, 1, []int{15}
		}},
		"several types": {several, func(o *Options) { o.Batch = 10 }},
		"several types, few slots": {several, func(o *Options) {
			o.Batch, o.History.Slots = 10, []Slots{{Bytes: 20 * history.SlotBytes(128)}, {Share: 0.3}}
		}},
		"relations of some fanouts": {several, func(o *Options) { o.Batch, o.RelationFanouts = 10, map[string][]int{"cites": {5, 0, 2}} }},
	} {
		t.Run(name, func(t *testing.T) {
			o, h := DefaultOptions(), DefaultHistory()
			o.Samplers, o.Kappas, o.Fanouts, o.Batch, o.Steps, o.Growth, o.Seed = []sample.Kind{sample.NS}, []int{1}, []int{3, 3, 2}, 12, 40, []int{}, 9
			h.PGrad, h.TStale, h.HistoryLag, h.Slots = 0.75, []int{3, 12}, []int{1, 5}, []Slots{{Share: 0.2}, {Share: 1}}
			o.Caches, o.History = nil, &h
			c.change(&o)
			r, err := Run(context.Background(), c.ds, o)
			require.NoError(t, err)
			require.Empty(t, r.Traces)
			require.Empty(t, r.Growth)
			got := r.History
			require.Equal(t, []any{"by a hash", o.Steps}, []any{got.Verdicts, got.WarmupSteps + got.MeasuredSteps})

			plain := &run{Options: o}
			require.NoError(t, plain.open(c.ds))
			s := stream{
				config: plain.config(o.Samplers[0], o.Kappas[0]), batch: o.Batch, epochSteps: r.EpochSteps, steps: r.Steps, seed: o.Seed,
				batchSeed: sample.Schedule{Seed: o.Seed, Kappa: o.Kappas[0]}.At,
			}
			reach := plain.reach
			tables := []int{}
			for _, of := range plain.tables {
				tables = append(tables, of.number)
			}
			withoutLists := func(r StepReads) StepReads {
				if o.Samplers[0] == sample.RW {
					r.Lists = 0
				}
				return r
			}
			want, _ := plainReads(t, &plain.drawer, s, reach, tables, nil, got.WarmupSteps)
			require.Empty(t, gocmp.Diff(withoutLists(want), got.Draws[0].Without, near))

			p := way{run: plain, stream: s, name: "sizing"}
			sizing, err := p.size(context.Background())
			require.NoError(t, err)
			hits := int64(0)
			for i, v := range h.variants(r.EpochSteps) {
				kept := sizing.Kept(v.Settings, got.SlotBytes)
				if v.slots.Share > 0 {
					kept = sizing.Hottest(v.slots.Share)
				}
				pools := map[[2]int]*plainSlots{}
				for _, k := range kept {
					pools[[2]int{k.Layer, k.Type}] = &plainSlots{
						Options: history.Options{Seed: o.Seed, PGrad: v.PGrad, TStale: v.TStale, Lag: v.HistoryLag, Start: v.HistoryStart},
						Kept:    k, at: map[uint32]int{}, rejected: map[int]map[plainRow]bool{}, counted: got.WarmupSteps,
					}
				}
				want, _ := plainReads(t, &plain.drawer, s, reach, tables, pools, got.WarmupSteps)
				is := got.Draws[0].Variants[i]
				require.Equal(t, []any{v.TStale, v.HistoryLag, v.slots.String(), got.Draws[0].Without.Rows}, []any{is.TStale, is.Lag, is.Asked, is.InputRows})
				require.Empty(t, gocmp.Diff(withoutLists(want), is.StepReads, near), "%+v", v)
				var sum history.Counts
				require.Len(t, is.Layers, len(kept))
				for j, k := range kept {
					require.Equal(t, pools[[2]int{k.Layer, k.Type}].counts, is.Layers[j].Counts, "layer %d of type %d, %+v", k.Layer, k.Type, v)
					sum.Add(is.Layers[j].Counts)
				}
				require.Equal(t, sum, is.Counts)
				hits += is.Hits
			}
			require.Positive(t, hits)
			o.Threads = 5
			again, err := Run(context.Background(), c.ds, o)
			require.NoError(t, err)
			require.Empty(t, gocmp.Diff(r, again))
		})
	}
}

// TestHistoryThatKeepsNothing: with p_grad or t_stale of 0 a run reads and computes what one
// without history does.
func TestHistoryThatKeepsNothing(t *testing.T) {
	ds := graph(t, 300, nil)
	o, h := DefaultOptions(), DefaultHistory()
	o.Samplers, o.Kappas, o.Batch, o.Steps, o.Growth, o.Caches, o.History = sample.Kinds, []int{1, 4}, 12, 20, []int{}, nil, &h
	h.WindowBytes, h.DiskCosts, h.EqualBytes = 4000, disk.Assumed, true
	for _, change := range []func(){
		func() { h.PGrad, h.TStale = 0, []int{5} },
		func() { h.PGrad, h.TStale = 0.9, []int{0} },
		func() { h.TStale, h.Slots = []int{5}, []Slots{{Bytes: 0}} },
	} {
		change()
		h.HistoryLag = []int{2 * mostWindow}
		r, err := Run(context.Background(), ds, o)
		require.NoError(t, err)
		require.Len(t, r.History.Draws, 8)
		for _, d := range r.History.Draws {
			require.Empty(t, gocmp.Diff(d.Without, d.Variants[0].StepReads))
			require.Zero(t, d.Variants[0].Slots)
			require.Nil(t, d.Variants[0].Prefix)
		}
	}
}

// TestWindowsOfHistory: the steps that fit and the rows that are read, as sets, in a slab that
// keeps nothing from one window to the next but what is wanted again; and the disk's time by its
// costs.
func TestWindowsOfHistory(t *testing.T) {
	ds := graph(t, 300, func(s *storetest.Spec) { s.Dim = 64 })
	size := int64(ds.Features(0).RowBytes())
	o, h := DefaultOptions(), DefaultHistory()
	o.Samplers, o.Kappas, o.Fanouts, o.Batch, o.Steps, o.Growth, o.Caches, o.History = []sample.Kind{sample.NS}, []int{1}, []int{3, 3}, 6, 60, []int{}, nil, &h
	h.TStale, h.HistoryLag, h.Slots, h.DiskCosts, h.EqualBytes = []int{8}, []int{1, 6}, []Slots{{Bytes: 3 * history.SlotBytes(h.Hidden)}}, disk.Assumed, true
	partly := false
	for _, bytes := range []int64{1, 200 * size, 300 * (size + 100)} {
		h.WindowBytes = bytes
		r, err := Run(context.Background(), ds, o)
		require.NoError(t, err)
		d := r.History.Draws[0]
		m, err := cachetier.Simulate(ds.Features(0), cachetier.Options{HostBytes: bytes, Lookahead: 1})
		require.NoError(t, err)
		room, hot := m.WindowRows(), m.HotRows()
		m.Close()

		windows, union := []int{}, map[uint32]bool{}
		for step, rows := range plainTrace(t, ds, o, sample.NS, 1, 60) {
			need := map[uint32]bool{}
			for _, v := range rows {
				if int(v) >= hot {
					need[v] = true
				}
			}
			maps.Copy(union, need)
			if step == 0 || len(union) > room && len(need) > 0 {
				windows, union = append(windows, step), need
			}
		}
		first := slices.IndexFunc(windows, func(w int) bool { return w >= r.History.WarmupSteps })
		w := d.Without.Windows
		if first >= 0 && len(windows)-first > 1 {
			partly = partly || len(windows) < 60
			counted := windows[first:]
			require.Equal(t, len(counted)-1, w.Windows)
			require.InDelta(t, float64(counted[len(counted)-1]-counted[0])/float64(len(counted)-1), w.Steps, 1e-9)
		} else {
			require.Equal(t, 1, w.Windows)
		}
		require.InDelta(t, 1e3*(w.RowReads*disk.Assumed.SecondsPerRead+w.RowBytes/disk.Assumed.BytesPerSecond), w.RowMS, 1e-9)
		require.InDelta(t, 1e3*(w.ListReads*disk.Assumed.SecondsPerRead+w.ListBytes/disk.Assumed.BytesPerSecond), w.ListMS, 1e-9)
		require.InDelta(t, w.RowMS+w.ListMS, w.DeviceMS, 1e-9)
		require.Positive(t, w.ListMS)
		require.LessOrEqual(t, w.ColdRows, 1.1*d.Without.Rows, "of other steps")
		switch {
		case hot == 300:
			require.Zero(t, w.ColdRows)
		case room == 0:
			require.InDelta(t, d.Without.Rows, w.ColdRows, 1, "of windows of one step, but the last step")
		}
		for _, v := range d.Variants {
			slots := 3 * history.SlotBytes(h.Hidden)
			require.Equal(t, max(0, bytes-slots), v.Windows.SlabBytes)
			require.Equal(t, []int64{min(bytes, slots), max(0, bytes-slots)}, []int64{v.Prefix.PrefixBytes, v.Prefix.SlabBytes})
			require.LessOrEqual(t, v.Windows.Steps, float64(max(1, v.Lag/2)))
		}
	}
	h.Window = 1
	r, err := Run(context.Background(), ds, o)
	require.NoError(t, err)
	require.Equal(t, 1.0, r.History.Draws[0].Without.Windows.Steps)
	require.True(t, partly, "windows of several steps, and several of them")
}

// TestListsOfWindows: the lists of a window's steps are read together, each once, through gaps that
// are cheaper than a read.
func TestListsOfWindows(t *testing.T) {
	ds := graph(t, 300, nil)
	g := ds.Graph(0)
	steps := []*asked{{lists: [][]uint32{{5, 200}}}, {lists: [][]uint32{{200, 5, 7}}}}
	bytes := func(v uint32) int64 { return 4 * int64(g.Degree(v)) }
	for _, c := range []struct {
		costs disk.Costs
		reads int64
	}{{disk.Costs{SecondsPerRead: 1, BytesPerSecond: 1e9}, 1}, {disk.Costs{SecondsPerRead: 1e-9, BytesPerSecond: 1}, 2}} {
		s, err := newSlab(nil, nil, []*store.Graph{g}, 0, 0, 10, true, c.costs)
		require.NoError(t, err)
		got := s.listsOf(0, steps)
		require.Equal(t, c.reads, got.Reads)
		require.GreaterOrEqual(t, got.Bytes, bytes(5)+bytes(7)+bytes(200))
		require.Zero(t, got.Bytes%store.PageSize)
	}
}

func TestHistoryThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(o *Options){
		"{history}: it keeps the rows between layers, and {layers} is 1; take 2 or more": func(o *Options) { o.Fanouts = []int{5} },
		"{p_grad} 1.5: from 0, which keeps nothing, to 1":                                func(o *Options) { o.History.PGrad = 1.5 },
		"{t_stale} -2: at least 0, which keeps nothing, or auto":                         func(o *Options) { o.History.TStale = []int{4, -2} },
		"{t_stale}: 4 is there twice":                                                    func(o *Options) { o.History.TStale = []int{4, 4} },
		"{history_lag} 0: at least 1, or auto":                                           func(o *Options) { o.History.HistoryLag = []int{0} },
		"{history_lag}: at least one number, or auto":                                    func(o *Options) { o.History.HistoryLag = nil },
		"{history_bytes} 150%: a share is above 0 and at most 100%":                      func(o *Options) { o.History.Slots = []Slots{{Share: 1.5}} },
		"{hidden} 0: at least 1":                                                         func(o *Options) { o.History.Hidden = 0 },
		"{equal_bytes}: it takes the bytes of slots from {window_bytes}, so give that too": func(o *Options) {
			o.History.EqualBytes = true
		},
		"{window} 300: from 1 to 256, or 0 for as many as fit":                func(o *Options) { o.History.WindowBytes, o.History.Window = 1, 300 },
		"{window}: it bounds windows, so give {window_bytes} too":             func(o *Options) { o.History.Window = 2 },
		"{disk_costs}: they are those of windows, so give {window_bytes} too": func(o *Options) { o.History.DiskCosts = disk.Assumed },
	} {
		o, h := DefaultOptions(), DefaultHistory()
		o.History = &h
		require.NoError(t, o.Validate())
		change(&o)
		require.EqualError(t, o.Validate(), want)
	}
	o, h := DefaultOptions(), DefaultHistory()
	o.Samplers, o.Kappas, o.Growth, o.History, h.WindowBytes = o.Samplers[:1], []int{1}, []int{}, &h, 1<<20
	o.Inputs = map[string]string{"author": "embed:4"}
	_, err := Run(context.Background(), library(t, nil), o)
	require.ErrorContains(t, err, "type author has no table of features, and other rows have no windows here; leave it out")
}

// TestCancelHistory: at each report of its progress a trace ends.
func TestCancelHistory(t *testing.T) {
	ds := graph(t, 300, nil)
	o, h := DefaultOptions(), DefaultHistory()
	o.Samplers, o.Kappas, o.Batch, o.Steps, o.Growth, o.Caches, o.History = o.Samplers[:1], []int{1}, 20, 6, []int{}, nil, &h
	h.WindowBytes, h.DiskCosts, h.TStale = 1000, disk.Assumed, []int{3}
	reports := 0
	o.Progress = func(string, int64, int64, string) { reports++ }
	_, err := Run(context.Background(), ds, o)
	require.NoError(t, err)
	for end := range reports - 1 {
		ctx, cancel := context.WithCancel(context.Background())
		at := 0
		o.Progress = func(string, int64, int64, string) {
			if at++; at == end {
				cancel()
			}
		}
		if _, err := Run(ctx, ds, o); end > 0 {
			require.ErrorIs(t, err, context.Canceled, "report %d of %d", end, reports)
		}
		cancel()
	}
}

func TestStepsOfHistory(t *testing.T) {
	h := DefaultHistory()
	for _, c := range []struct{ epoch, stale, start, want int }{
		{1000, history.Auto, 0, 400}, {91, 200, 0, 400}, {91, 200, history.Auto, 2 * 291}, {91, 0, 50, 91}, {91, math.MaxInt32, 0, 91},
	} {
		h.TStale, h.HistoryStart = []int{c.stale}, c.start
		require.Equal(t, c.want, Options{History: &h, Kappas: []int{1}}.steps(c.epoch), fmt.Sprintf("%+v", c))
	}
}
