package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestRemoteMemory: a backend whose memory the host cannot address trains and evaluates to the same
// bits, and its staging buffers go when the run does.
func TestRemoteMemory(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	for name, change := range map[string]func(*run.Options){
		"sage":        func(*run.Options) {},
		"sampled":     func(o *run.Options) { o.EvalBytes, o.Cache.HostBytes = 0, 5000 },
		"gcn":         func(o *run.Options) { o.Kind = model.GCN },
		"gat, walked": func(o *run.Options) { o.Kind = model.GAT; draws["rw nested"](o) },
	} {
		o := small()
		o.Epochs = 2
		change(&o)
		want := trained(t, ds, o)
		held := kernels.HostBytes()
		got, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{Backend: kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{}))})
		require.NoError(t, err, name)
		sameWork(t, want, got, name)
		require.Equal(t, held, kernels.HostBytes(), name)
	}
}

// rowsOf is a remote backend that counts the rows that RowsOf puts together, and KeepRows keeps.
type rowsOf struct {
	*kerneltest.RemoteBackend
	all, came, kept int64
}

func newRowsOf() *rowsOf {
	return &rowsOf{RemoteBackend: kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{}))}
}

func (r *rowsOf) RowsOf(dst, hot, came, at kernels.Tensor) {
	r.all, r.came = r.all+int64(dst.Rows), r.came+int64(came.Rows)
	r.RemoteBackend.RowsOf(dst, hot, came, at)
}

// TestRowsOnTheDevice: with any share of the rows on a device that the host cannot address, a run
// has the results of the CPU's. The other rows alone are uploaded.
func TestRowsOnTheDevice(t *testing.T) {
	storetest.Long(t)
	halves := open(t, storetest.Communities(900, 4, 8, 24, 2))
	wide := storetest.Communities(500, 4, 8, 24, 3)
	wide.Elem = store.F32
	floats := open(t, wide)
	typed := openTyped(t, storetest.Library(600, 3, 2))
	for name, c := range map[string]struct {
		ds      *store.Dataset
		history bool
		change  func(*run.Options)
	}{
		"sage":             {halves, false, func(*run.Options) {}},
		"windows":          {halves, false, func(o *run.Options) { o.EvalBytes, o.Cache.HostBytes = 0, 5000 }},
		"a step at a time": {halves, false, func(o *run.Options) { o.Cache.HostBytes, o.Window = 0, 1 }},
		"static and a look": {halves, false, func(o *run.Options) {
			o.Cache.HostBytes, o.Cache.StaticBytes, o.Lookahead = 9000, 2000, 2
		}},
		"gat":     {halves, false, func(o *run.Options) { o.Kind = model.GAT; draws["rw nested"](o) }},
		"floats":  {floats, false, func(o *run.Options) { o.Cache.HostBytes = 8000 }},
		"history": {halves, true, func(o *run.Options) { o.Cache.HostBytes = 9000 }},
		"typed, learnt": {typed, true, func(o *run.Options) {
			o.Kind, o.Target, o.Batch, o.Cache.HostBytes = model.RSAGE, "", 20, 20<<10
		}},
	} {
		o := small()
		if c.history {
			o = reusing()
		}
		o.Epochs = 2
		c.change(&o)
		want := trained(t, c.ds, o)
		all := int64(c.ds.Features(0).Rows() * c.ds.Features(0).RowBytes())
		for _, bytes := range []int64{1, all / 7, all} {
			o.Cache.DeviceBytes = bytes
			held := kernels.HostBytes()
			be := newRowsOf()
			got, err := Run(t.Context(), c.ds, scratch(t), o, "test", run.Hooks{Backend: be})
			require.NoError(t, err, name)
			sameWork(t, want, got, "%s: %d bytes", name, bytes)
			require.Equal(t, held, kernels.HostBytes(), name)
			if bytes > 1 || !c.history { // slots leave room for some rows
				require.Equal(t, bytes > 1, be.all > 0, name)
			}
			if c.ds != typed { // learnt rows are on the host
				require.LessOrEqual(t, got.Tiers.Device.RowsHit, be.all-be.came, "%s: evaluation may add some", name)
			}
			if bytes == all && c.ds != typed {
				require.Zero(t, be.came, name)
				require.Zero(t, got.Evaluation.Disk.Rows, name)
			}
		}
	}
}

func (r *rowsOf) KeepRows(hot, came, from, to kernels.Tensor) {
	r.kept += int64(from.Rows)
	r.RemoteBackend.KeepRows(hot, came, from, to)
}

// TestRowsThatStay: with rows of earlier steps on the device fewer come, and results are the same.
func TestRowsThatStay(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	size := int64(ds.Features(0).RowBytes())
	for _, history := range []bool{false, true} {
		o := small()
		if history {
			o = reusing()
		}
		o.Epochs, o.Batch, o.Window = 2, 16, 8
		o.Cache.DeviceBytes, o.Cache.DynamicBytes, o.Cache.HostBytes = 300*size, 150*size, 600*size
		want := trained(t, ds, o)
		came := map[policy.Kind]int64{}
		for _, p := range []policy.Kind{"", policy.LRU, policy.Belady} {
			o.Cache.DevicePolicy = p
			be := newRowsOf()
			got, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{Backend: be})
			require.NoError(t, err)
			sameWork(t, want, got, p)
			require.Equal(t, p != "", be.kept > 0, p)
			require.GreaterOrEqual(t, got.Memory.OnDevice, o.Cache.DeviceBytes)
			for _, part := range got.Memory.Parts {
				require.NotEqual(t, "device", part.Name, "the rows are no part of the process's memory")
			}
			came[p] = be.came
		}
		require.LessOrEqual(t, came[policy.Belady], came[policy.LRU])
		require.Less(t, came[policy.Belady], came[""])
	}
}
