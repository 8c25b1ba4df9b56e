package graph

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
)

// audited is a run whose every second step is audited.
func audited() run.Options {
	o := reusing()
	o.HistoryAudit, o.HistoryAuditEvery = 9, 2
	return o
}

// plainSteps takes steps of the first epochs as Run does, one after the other and with rows from
// the map of the table, and calls look before each, with its batch and its key of dropout.
func plainSteps(t *testing.T, m *trainer, steps int, look func(now int, b *sample.Batch, key uint64)) {
	for now := range steps {
		epoch, i := 1+now/m.task.Steps(), now%m.task.Steps()
		if i == 0 {
			m.task.Begin(epoch)
		}
		b := &sample.Batch{Without: m.task.Without(i)}
		e := m.reuse.cache.Group(now, 1)
		seeds := [][][]uint32{m.task.Seeds(i)}
		require.NoError(t, m.tiers.Sampler.SampleThrough(t.Context(), e, []*sample.Batch{b}, []sample.BatchSeed{m.BatchSeeds().At(now)}, seeds))
		key := sample.StepSeed(m.Seed, epoch, i) | 1
		look(now, b, key)
		in := plainInput(t, m, b, key)
		in.Held = m.reuse.input(now, false)
		require.NoError(t, m.step.Compute(in))
		require.NoError(t, m.step.Update(m.LR, nil))
		_, err := m.step.Launched().Wait()
		require.NoError(t, err)
		require.NoError(t, m.reuse.writeBack(now, b, nil))
		freeRows(m, in)
	}
}

// plainInput is b with rows from the maps of the tables.
func plainInput(t *testing.T, m *trainer, b *sample.Batch, key uint64) step.Input {
	in := step.InputOf(b, make([]kernels.Tensor, len(b.Inputs()))...)
	in.Key = key
	for _, n := range m.tiers.Types {
		ids := b.Inputs()[n]
		in.Rows[n] = m.tiers.Zeros(n, len(ids))
		bytes, ok := m.Backend.Host(in.Rows[n])
		require.True(t, ok || len(ids) == 0)
		size := m.data.Input(n).Features.RowBytes()
		for i, v := range ids {
			copy(bytes[i*size:], m.data.Input(n).Features.Row(v))
		}
	}
	return in
}

func freeRows(m *trainer, in step.Input) {
	for _, n := range m.tiers.Types {
		m.Backend.Free(in.Rows[n].Buf)
	}
}

// TestAudit: an audit of all reused rows compares them, row by row, with the rows that a step
// without history computes, and with the rows of evaluation over all neighbours.
func TestAudit(t *testing.T) {
	plain := open(t, storetest.Communities(500, 4, 8, 24, 2))
	library, rated := openTyped(t, storetest.Library(500, 3, 2)), open(t, ratedRows(500, store.U32))
	for name, c := range map[string]struct {
		ds     *store.Dataset
		change func(o *run.Options)
	}{
		"sage": {plain, func(o *run.Options) { o.Layers, o.Fanouts, o.InputDropout = 3, []int{4, 3, 3}, 0.2 }},
		"smoothed labor0": {plain, func(o *run.Options) {
			o.Sampler, o.Kappa, o.Dependent = sample.Labor0, 4, run.Smoothed
		}},
		"gcn":      {plain, func(o *run.Options) { o.Kind = model.GCN }},
		"gat":      {plain, func(o *run.Options) { o.Kind, o.AttnDropout = model.GAT, 0.3 }},
		"walks":    {plain, func(o *run.Options) { o.Sampler = sample.RW }},
		"weighted": {rated, func(o *run.Options) { o.Weighted = true }},
		"columns":  {rated, func(o *run.Options) { o.Kind, o.EdgeInputs = model.RGAT, asColumns }},
		"rows": {rated, func(o *run.Options) {
			o.Kind, o.EdgeInputs, o.Layers, o.Fanouts = model.RSAGE, asTable, 3, []int{3, 3, 3}
		}},
		"rsage":    {library, func(o *run.Options) { o.Kind, o.Layers, o.Fanouts = model.RSAGE, 3, []int{4, 3, 3} }},
		"hgt":      {library, func(o *run.Options) { o.Kind = model.HGT }},
		"one list": {library, func(o *run.Options) { o.Kind, o.RelationFanouts = model.RGCN, map[string][]int{"cites": {3, -1}} }},
	} {
		o := audited()
		o.HistoryAudit = maxShown
		if c.ds == library {
			o.Batch, o.Inputs = 40, map[string]string{"author": "constant"}
		}
		o.Heads = 2
		c.change(&o)
		m := opened(t, c.ds, o)
		want, looked := make([]run.AuditSums, len(m.reuse.options.Kept)), 0
		plainSteps(t, m, 14, func(now int, b *sample.Batch, key uint64) {
			if now%o.HistoryAuditEvery == 0 {
				wholeAudit(t, m, now, b, key, want, func(int, uint32) bool { return true })
			}
			require.NoError(t, m.reuse.audit.look(t.Context(), now, b, key))
			if now%o.HistoryAuditEvery == 0 {
				for k, part := range m.reuse.cache.Planned(now).Parts {
					looked += len(part.Used)
					require.Equal(t, want[k].Nodes, m.reuse.audited[k].Nodes)
				}
			}
		})
		require.Greater(t, looked, 50, name)
		for k, got := range m.reuse.audited {
			want := want[k]
			require.Positive(t, got.Nodes, name)
			require.Positive(t, got.Rows, name)
			require.Equal(t, want.Ages, got.Ages, name)
			require.InEpsilon(t, want.Draw.Error, got.Draw.Error, 1e-6, name)
			require.InEpsilon(t, want.Draw.Cosine, got.Draw.Cosine, 1e-6, name)
			require.Equal(t, want.Whole, got.Whole, name)
			if o.Sampler == sample.RW {
				require.Zero(t, got.Whole, name)
				continue
			}
			require.Equal(t, got.Nodes, got.Whole, name)
			require.InDelta(t, want.Fresh.Error, got.Fresh.Error, 1e-5*(1+want.Fresh.Error), name)
			require.InEpsilon(t, want.Full.Error, got.Full.Error, 1e-5, name)
			require.InEpsilon(t, want.Full.Cosine, got.Full.Cosine, 1e-5, name)
		}
	}
}

const maxShown = 1 << 20

// wholeAudit adds to sums the comparison of all rows that step now reuses. It draws and computes
// the batch once more without history, and computes all nodes layer by layer; only nodes inFull
// count there.
func wholeAudit(t *testing.T, m *trainer, now int, b *sample.Batch, key uint64, sums []run.AuditSums, inFull func(layer int, v uint32) bool) {
	whole, err := m.tiers.First(t.Context(), m.BatchSeeds().At(now), b.Seeds, nil)
	require.NoError(t, err)
	in := plainInput(t, m, whole, key)
	defer freeRows(m, in)
	graphs := m.step.Feed.Blocks(in.Layers, in.Rows[len(m.data.Types):]...)
	m.step.Tape.Reset(false)
	x := make(model.Rows, len(m.data.Types))
	for n := range x {
		if in.Rows[n].Buf != nil {
			x[n] = m.step.Leaf(n, in.Rows[n])
		}
	}
	kept := new(model.Kept)
	m.model.Forward(m.step.Tape, x, graphs, model.Pass{Key: key, Kept: kept})
	drawn := make([]map[uint32][]float32, len(sums))
	for k, part := range m.reuse.cache.Planned(now).Parts {
		drawn[k] = map[uint32][]float32{}
		if len(part.Used) == 0 {
			continue
		}
		rows := slices.Clone(m.step.Feed.Download(kept.Hidden[part.Layer-1][part.Type].Value))
		for i, v := range whole.Layers[part.Layer].Nodes[part.Type].Src {
			drawn[k][v] = rows[i*m.Hidden:][:m.Hidden]
		}
	}
	for k, part := range m.reuse.cache.Planned(now).Parts {
		if len(part.Used) == 0 {
			continue
		}
		nodes := make([]uint32, m.data.Types[part.Type].Nodes)
		for v := range nodes {
			nodes[v] = uint32(v)
		}
		var full []float32
		if m.Sampler != sample.RW {
			require.NoError(t, m.eval.EachOf(t.Context(), part.Layer-1, part.Type, nodes, func(_ []uint32, y kernels.Tensor) error {
				full = append(full, m.step.Feed.Download(y)...)
				return nil
			}))
		}
		slot := kernels.Tensor{Buf: m.Backend.Alloc(kernels.F32, m.Hidden), Type: kernels.F32, Rows: 1, Cols: m.Hidden}
		used := make([]float32, m.Hidden)
		for _, u := range part.Used {
			v := b.Layers[part.Layer].Nodes[part.Type].Src[u.At]
			m.Backend.Convert(slot, m.reuse.slots[k].Slice(int(u.Slot), int(u.Slot)+1))
			m.Backend.DownloadF32(used, slot)
			_, known := drawn[k][v]
			require.True(t, known)
			sums[k].Nodes, sums[k].Ages = sums[k].Nodes+1, sums[k].Ages+int64(now)-int64(u.Stamp)
			add := func(c *run.Comparison, row, right []float32) {
				apart, of, to, dot := 0.0, 0.0, 0.0, 0.0
				for i, x := range row {
					d := float64(x) - float64(right[i])
					apart, of, to, dot = apart+d*d, of+float64(x)*float64(x), to+float64(right[i])*float64(right[i]), dot+float64(x)*float64(right[i])
				}
				c.Error, c.Cosine = c.Error+math.Sqrt(apart)/math.Sqrt(to), c.Cosine+dot/math.Sqrt(of)/math.Sqrt(to)
			}
			add(&sums[k].Draw, used, drawn[k][v])
			if full != nil && inFull(part.Layer, v) {
				sums[k].Whole++
				add(&sums[k].Full, used, full[int(v)*m.Hidden:][:m.Hidden])
				add(&sums[k].Fresh, drawn[k][v], full[int(v)*m.Hidden:][:m.Hidden])
			}
		}
		m.Backend.Free(slot.Buf)
	}
}

// TestAuditChangesNothing: weights, counts of tiers, disk and history are the same as without
// audits. The audits' own reads are counted apart.
func TestAuditChangesNothing(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	for name, change := range map[string]func(o *run.Options){
		"ns":         func(*run.Options) {},
		"3 layers":   func(o *run.Options) { o.Layers, o.Fanouts = 3, []int{3, 3, 3} },
		"labor-star": func(o *run.Options) { o.Sampler, o.Kappa = sample.LaborStar, 4 },
		"rw":         func(o *run.Options) { o.Sampler = sample.RW },
		"out of core": func(o *run.Options) {
			cold := outOfCore(ds, "pread")
			o.Cache, o.TopologyBytes = cold.Cache, topology.LeastBytes(ds.Graph(0))
		},
	} {
		o := audited()
		change(&o)
		with := trained(t, ds, o)
		o.HistoryAudit, o.HistoryAuditEvery = 0, 0
		want := trained(t, ds, o)
		sameWork(t, want, with, name)
		require.Equal(t, want.Tiers, with.Tiers, name)
		require.Equal(t, want.Memory, with.Memory, name)
		require.Equal(t, want.Window, with.Window, name)
		timeless := func(r *run.Result) []any {
			d, e, l := r.Disk, r.Evaluation.Disk, r.Topology.Disk
			d.Seconds, e.Seconds, l.Seconds = 0, 0, 0
			return []any{d, e, l, r.Topology.Tier, r.Warmup.Rows, r.Windows, r.RowsBypassed}
		}
		require.Equal(t, timeless(want), timeless(with), name)

		a, sum := with.History.Audit, run.AuditOf{}
		require.Nil(t, want.History.Audit, name)
		require.EqualValues(t, a.LeftOut, map[bool]int64{true: a.Nodes}[name == "rw"], name)
		require.Positive(t, a.ErrorDraw, name)
		require.Less(t, a.ErrorDraw, 2.0, name)
		require.LessOrEqual(t, a.MeanAge, float64(o.TStale), name)
		require.GreaterOrEqual(t, a.MeanAge, 1.0, name)
		for i := range with.History.Layers {
			l := &with.History.Layers[i]
			require.Positive(t, l.Audit.Nodes, name)
			sum.Nodes, sum.Rows, sum.Bytes = sum.Nodes+l.Audit.Nodes, sum.Rows+l.Audit.Rows, sum.Bytes+l.Audit.Bytes
			l.Audit = nil
		}
		require.Equal(t, []int64{a.Nodes, a.Rows, a.Bytes}, []int64{sum.Nodes, sum.Rows, sum.Bytes}, name)
		require.Positive(t, a.Bytes, name)
		with.History.Audit = nil
		require.Equal(t, want.History, with.History, name)
	}
}

// TestAuditResume: interrupted over and over, or killed between two checkpoints, a run has the
// weights of one without audits, and the audits of one that was never cut. They may begin, change
// and end with a resume.
func TestAuditResume(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	o := audited()
	o.Epochs, o.CheckpointEvery = 6, 3
	resumeOverAndOver(t, ds, o)

	want := trained(t, ds, o)
	disk, steps := vfs.NewCrashableMem(), 0
	var left *vfs.MemFS
	_, err := runOn(t.Context(), disk, ds, o, run.Hooks{Step: func(int, int, int, float64) {
		if steps++; steps == 20 {
			left = disk.CrashClone(vfs.CrashCloneCfg{})
		}
	}})
	require.NoError(t, err)
	got, err := runOn(t.Context(), left, ds, o, run.Hooks{})
	require.NoError(t, err)
	sameRun(t, want, got)

	o.HistoryAudit, o.HistoryAuditEvery = 0, 0
	plain := trained(t, ds, o)
	require.Equal(t, want.ParamsXXH3, plain.ParamsXXH3)
	disk = vfs.NewMem()
	for i, n := range []int{0, 5, 7, 0} {
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		o.HistoryAudit, o.HistoryAuditEvery = n, 1+i
		got, err = runOn(ctx, disk, ds, o, run.Hooks{Step: func(int, int, int, float64) {
			if steps++; steps == 12 && i < 3 {
				cancel()
			}
		}})
		cancel()
		require.NoError(t, err)
	}
	require.Equal(t, run.Done, got.Status)
	require.Equal(t, want.ParamsXXH3, got.ParamsXXH3)
	require.EqualValues(t, 6*5+4*7, got.History.Audit.Nodes)
}

// TestAuditLeavesOut: a node whose neighbours are more than an audit reads is left out of what is
// over all of them, and of nothing else; and how many are computed together changes nothing.
func TestAuditLeavesOut(t *testing.T) {
	spec := storetest.Communities(500, 4, 8, 24, 2)
	for v := range spec.Neighbors {
		spec.Neighbors[v] = spec.Neighbors[v][:1+v%8]
	}
	ds := open(t, spec)
	o := audited()
	o.Layers, o.Fanouts, o.HistoryAudit = 3, []int{3, 3, 3}, maxShown
	const most = 6
	m := opened(t, ds, o)
	m.reuse.audit.most = most
	few := func(layer int, v uint32) bool {
		nodes, edges := map[uint32]bool{v: true}, 0
		for range layer {
			for u := range maps.Clone(nodes) {
				edges += m.data.Relations[0].Degree(u)
				for _, w := range m.data.Relations[0].Neighbors(u) {
					nodes[w] = true
				}
			}
		}
		return edges <= most
	}
	want := make([]run.AuditSums, len(m.reuse.options.Kept))
	plainSteps(t, m, 12, func(now int, b *sample.Batch, key uint64) {
		if now%o.HistoryAuditEvery == 0 {
			wholeAudit(t, m, now, b, key, want, few)
		}
		require.NoError(t, m.reuse.audit.look(t.Context(), now, b, key))
	})
	for k, got := range m.reuse.audited {
		require.Equal(t, want[k].Whole, got.Whole)
		require.Positive(t, got.Whole)
		require.Less(t, got.Whole, got.Nodes)
		require.Equal(t, want[k].Nodes, got.Nodes)
		require.InEpsilon(t, want[k].Draw.Error, got.Draw.Error, 1e-6)
		require.InDelta(t, want[k].Full.Error, got.Full.Error, 1e-5*(1+want[k].Full.Error))
	}
}

// TestSpread: what is looked at is spread over layers and types, and no more than there is.
func TestSpread(t *testing.T) {
	parts := func(used ...int) (all []history.Part) {
		for _, n := range used {
			all = append(all, history.Part{Used: make([]history.Use, n)})
		}
		return all
	}
	require.Equal(t, []int{5, 5}, spread(parts(100, 100), 10))
	require.Equal(t, []int{8, 2}, spread(parts(100, 2), 10))
	require.Equal(t, []int{1, 0, 2, 4}, spread(parts(1, 0, 2, 9), 7))
	require.Equal(t, []int{3, 2}, spread(parts(3, 2), 10))
	require.Equal(t, []int{0, 1}, spread(parts(9, 9), 1))
	require.Empty(t, spread(nil, 3))
}

// TestComparison: errors are relative to the row that is right, and rows of zeros have none that
// are not numbers.
func TestComparison(t *testing.T) {
	for _, c := range []struct{ row, right, want []float64 }{
		{[]float64{3, 4}, []float64{3, 4}, []float64{0, 1}},
		{[]float64{6, 8}, []float64{3, 4}, []float64{1, 1}},
		{[]float64{0, 5}, []float64{5, 0}, []float64{math.Sqrt2, 0}},
		{[]float64{0, 0}, []float64{0, 0}, []float64{0, 1}},
		{[]float64{1, 0}, []float64{0, 0}, []float64{1, 0}},
		{[]float64{0, 0}, []float64{0, 2}, []float64{1, 0}},
	} {
		narrow := func(v []float64) []float32 { return []float32{float32(v[0]), float32(v[1])} }
		var got run.Comparison
		got.Add(narrow(c.row), narrow(c.right))
		require.InDeltaSlice(t, c.want, []float64{got.Error, got.Cosine}, 1e-12)
	}
	require.Equal(t, &run.AuditOf{}, run.AuditSums{}.Of())
}

// TestAuditRefused: what cannot be followed.
func TestAuditRefused(t *testing.T) {
	for want, change := range map[string]func(o *run.Options){
		"{history_audit} -1: from 0":                     func(o *run.Options) { o.HistoryAudit = -1 },
		"{history_audit} 1048577: from 0":                func(o *run.Options) { o.HistoryAudit = 1<<20 + 1 },
		"{history_audit_every} -1: at least 0":           func(o *run.Options) { o.HistoryAuditEvery = -1 },
		"{history_audit_every} 2: it goes with {history": func(o *run.Options) { o.History, o.Settings = false, history.Settings{} },
	} {
		o := audited()
		change(&o)
		require.ErrorContains(t, o.Validate(), want)
	}
	require.NoError(t, audited().Validate())
	o := audited()
	o.Kind, o.Batch = model.RSAGE, 20
	refused(t, openTyped(t, storetest.Library(600, 3, 2)), o, "{history_audit} 9: the rows of type author are learnt, and an audit reads those of tables alone")
}

// TestAuditWarns: rows that lie far off are said to, once.
func TestAuditWarns(t *testing.T) {
	ds := open(t, storetest.Communities(500, 4, 8, 24, 2))
	o := audited()
	o.LR, o.TStale, o.PGrad, o.Epochs, o.Dropout = 0.3, 200, 1, 6, 0
	var notes []string
	r, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{Note: func(s string) {
		if strings.Contains(s, "error") {
			notes = append(notes, s)
		}
	}})
	require.NoError(t, err)
	require.Greater(t, r.History.Audit.ErrorFull, farOff)
	require.Len(t, notes, 1)
	require.Regexp(t, `^history: reuse [0-9]+ %, error [0-9.]+: lower \{t_stale\}$`, notes[0])
}
