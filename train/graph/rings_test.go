package graph

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// junction is a remote backend that sees where the rows of a step come from, and where it stores
// hidden rows.
type junction struct {
	*rowsOf
	hottest int   // rows of the table, the hottest, that slots never displace
	shared  []int // by step: ids whose rows lie where slots may come
	steps   int
	stored  map[int]stored // by step, the last of its StoreRows
	kepts   map[int]stored // by step, of its KeepRows
	early   bool           // a step stores these rows before its own are put together
}

// stored has the rows that an operation stored.
type stored struct {
	slots kernels.Tensor
	to    []uint32
	rows  []float32
}

func newJunction() *junction {
	return &junction{rowsOf: newRowsOf(), stored: map[int]stored{}, kepts: map[int]stored{}}
}

// read returns rows of a table, and their numbers.
func (j *junction) read(table, rows kernels.Tensor) (s stored) {
	s = stored{slots: table, to: make([]uint32, rows.Rows), rows: make([]float32, rows.Rows*table.Cols)}
	j.Backend.DownloadU32(s.to, rows)
	wide := kernels.NewTensor(j, kernels.F32, rows.Rows, table.Cols)
	j.GatherRows(wide, table, rows)
	j.Backend.DownloadF32(s.rows, wide)
	kernels.FreeTensors(j, wide)
	return s
}

// write stores rows in the table that they were read from, whose memory is now buf.
func (j *junction) write(s stored, buf kernels.Buffer) {
	if len(s.to) == 0 {
		return
	}
	table, rows := s.slots, kernels.NewTensor(j, kernels.F32, len(s.to), s.slots.Cols)
	table.Buf = buf
	ids := kernels.NewTensor(j, kernels.U32, len(s.to), 1)
	j.Backend.UploadF32(rows, s.rows)
	j.Backend.UploadU32(ids, s.to)
	j.ScatterRows(table, rows, ids)
	kernels.FreeTensors(j, rows, ids)
}

func (j *junction) KeepRows(hot, came, from, to kernels.Tensor) {
	j.rowsOf.KeepRows(hot, came, from, to)
	if !j.early {
		j.kepts[j.steps-1] = j.read(hot, to)
	}
}

func (j *junction) RowsOf(dst, hot, came, at kernels.Tensor) {
	if j.early {
		j.write(j.stored[j.steps], hot.Buf)
		j.write(j.kepts[j.steps], hot.Buf)
	}
	j.steps++
	places := make([]uint32, at.Rows)
	j.Backend.DownloadU32(places, at)
	n := 0
	for _, p := range places {
		if p < uint32(hot.Rows-j.hottest) {
			n++
		}
	}
	j.shared = append(j.shared, n)
	j.rowsOf.RowsOf(dst, hot, came, at)
}

func (j *junction) StoreRows(slots, lost, x, rows, to, void kernels.Tensor) {
	j.RemoteBackend.StoreRows(slots, lost, x, rows, to, void)
	if j.steps > 0 && !j.early {
		j.stored[j.steps-1] = j.read(slots, to)
	}
}

// TestJunction: slots displace the hot rows as they come into use, and change no bit of a run,
// whatever the sizes. A step that stored its rows too early would.
func TestJunction(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	size := int64(ds.Features(0).RowBytes())
	o := reusing()
	o.Cache.DeviceBytes, o.Cache.HostBytes = 100*size, 400*size
	want := trained(t, ds, o)
	require.Positive(t, want.History.Hits)
	over := func(j *junction) *run.Result {
		j.hottest = 100
		got, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{Backend: j})
		require.NoError(t, err)
		return got
	}
	j := newJunction()
	sameWork(t, want, over(j))
	last := j.shared[len(j.shared)-1]
	require.Greater(t, j.shared[0], 2*last, "rows lie where slots come, and give way")
	require.Positive(t, last, "the rows that lie where no slot has come are still there")
	fault := newJunction()
	fault.early, fault.stored = true, j.stored
	require.NotEqual(t, want.ParamsXXH3, over(fault).ParamsXXH3, "a store before a gather is found")
}

// TestKeptTooEarly: a step that kept rows on the device before its own rows are put together would
// have other results, since they take the places of rows that it reads for the last time.
func TestKeptTooEarly(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	size := int64(ds.Features(0).RowBytes())
	o := small()
	o.Cache.DeviceBytes, o.Cache.DynamicBytes, o.Cache.HostBytes = 200*size, 150*size, 100<<10
	o.Cache.DevicePolicy = policy.Belady
	want := trained(t, ds, o)
	over := func(j *junction) *run.Result {
		got, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{Backend: j})
		require.NoError(t, err)
		return got
	}
	j := newJunction()
	sameWork(t, want, over(j))
	require.Positive(t, j.rowsOf.kept)
	fault := newJunction()
	fault.early, fault.kepts = true, j.kepts
	require.NotEqual(t, want.ParamsXXH3, over(fault).ParamsXXH3)
}

// TestJunctionAnywhere: any size, policy, window and model.
func TestJunctionAnywhere(t *testing.T) {
	storetest.Long(t)
	graphs := []*store.Dataset{
		open(t, storetest.Communities(300, 4, 8, 24, 2)), openTyped(t, storetest.Library(300, 3, 2)),
	}
	storetest.Fewer(t, 25)
	rapid.Check(t, func(r *rapid.T) {
		typed := rapid.IntRange(0, 2).Draw(r, "graph") / 2
		ds, o := graphs[typed], reusing()
		if typed > 0 {
			o.Kind, o.Target = model.RSAGE, ""
		}
		all := int64(ds.Features(0).Rows() * ds.Features(0).RowBytes())
		o.Epochs, o.Batch = rapid.IntRange(1, 2).Draw(r, "epochs"), rapid.SampledFrom([]int{20, 64}).Draw(r, "batch")
		o.Cache.Policy = rapid.SampledFrom(policy.Kinds).Draw(r, "policy")
		o.Cache.DeviceBytes = rapid.Int64Range(1, all+100).Draw(r, "device")
		o.Cache.DevicePolicy = rapid.SampledFrom([]policy.Kind{"", policy.LRU, policy.Belady}).Draw(r, "device policy")
		o.Cache.DynamicBytes = rapid.Int64Range(0, o.Cache.DeviceBytes).Draw(r, "dynamic")
		o.Cache.HostBytes = rapid.SampledFrom([]int64{0, all / 9, all / 2, all}).Draw(r, "host")
		o.Cache.StaticBytes = rapid.SampledFrom([]int64{0, all / 20}).Draw(r, "static")
		o.Window, o.Lookahead = rapid.IntRange(0, 3).Draw(r, "window"), rapid.IntRange(0, 2).Draw(r, "lookahead")
		o.HistoryLag, o.TStale = rapid.IntRange(1, 6).Draw(r, "lag"), rapid.IntRange(1, 9).Draw(r, "stale")
		o.HistoryBytes = rapid.Int64Range(1, 700).Draw(r, "slots") * history.SlotBytes(o.Hidden)
		o.CheckpointEvery = rapid.SampledFrom([]int{0, 3}).Draw(r, "checkpoints")
		o.EvalBytes = rapid.SampledFrom([]int64{0, 1 << 20}).Draw(r, "evaluation")
		want := trained(t, ds, o)
		before := kernels.HostBytes()
		got, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{Backend: newRowsOf()})
		require.NoError(r, err)
		sameWork(r, want, got)
		require.Equal(r, want.History, got.History)
		require.Equal(r, before, kernels.HostBytes())
	})
}

// TestJunctionResumes: interrupted after every third step, on this backend or on the CPU in turn, a
// run ends as one that was not.
func TestJunctionResumes(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 24, 2))
	o := reusing()
	o.Cache.DeviceBytes, o.Cache.HostBytes = 3000, 3000
	o.HistoryBytes = 300 * history.SlotBytes(o.Hidden)
	want := trained(t, ds, o)
	require.Positive(t, want.History.Hits)
	disk := vfs.NewMem()
	for cuts := 0; ; cuts++ {
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		hooks := run.Hooks{Step: func(int, int, int, float64) {
			if steps++; steps == 3 {
				cancel()
			}
		}}
		if cuts%3 < 2 {
			hooks.Backend = newRowsOf()
		}
		got, err := runOn(ctx, disk, ds, o, hooks)
		cancel()
		require.NoError(t, err)
		if got.Status == run.Interrupted {
			require.Less(t, cuts, 40)
			continue
		}
		require.Greater(t, cuts, 3)
		require.Equal(t, want.ParamsXXH3, got.ParamsXXH3)
		require.Equal(t, want.History.Hits, got.History.Hits)
		return
	}
}
