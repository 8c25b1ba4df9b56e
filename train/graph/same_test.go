package graph

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
)

// sameWork compares what no setting of the tiers may change, and adds up the rows of got.
func sameWork(t require.TestingT, want, got *run.Result, msg ...any) {
	require.Equal(t, want.Status, got.Status, msg...)
	require.Equal(t, want.ParamsXXH3, got.ParamsXXH3, msg...)
	require.Equal(t, want.Losses, got.Losses, msg...)
	require.Equal(t, want.Best, got.Best, msg...)
	require.Equal(t, want.InputRows, got.InputRows, msg...)
	require.Equal(t, got.InputRows, got.Tiers.Device.RowsHit+got.Tiers.Host.RowsHit+got.Disk.Rows, msg...)
}

// outOfCore is a run that reads nearly everything from disk, again and again.
func outOfCore(ds *store.Dataset, engine disk.Kind) run.Options {
	o := small()
	f := ds.Features(0)
	o.Epochs = 2
	o.Cache.Engine, o.Cache.HostBytes = engine, int64(f.Rows()*f.RowBytes())/5
	o.TopologyBytes = topology.LeastBytes(ds.Graph(0))
	return o
}

// TestSameResults is principle 2 out of core: each engine with each policy, and with them, in turn,
// windows, budgets, look-ahead and workers. `go run ./tools/ci same` does it with the program and a
// real graph.
func TestSameResults(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	all := int64(ds.Features(0).Rows() * ds.Features(0).RowBytes())
	lists := topology.LeastBytes(ds.Graph(0))
	type way struct {
		name   string
		stride int // of 960 settings it takes one in so many: odd, and no divisor of the counts below, so that all of them meet
		o      run.Options
		want   *run.Result
	}
	ways := []*way{
		{name: "ns", stride: 37}, {name: "labor0 nested", stride: 193}, {name: "labor0 smoothed", stride: 197},
		{name: "labor-star nested", stride: 323}, {name: "rw nested", stride: 331},
	}
	for _, w := range ways {
		if testing.Short() {
			w.stride = 4*w.stride - 1
		}
		w.o = small()
		w.o.Epochs = 2
		draws[w.name](&w.o)
		w.want = trained(t, ds, w.o)
	}
	n := 0
	for _, engine := range disk.Kinds[1:] {
		for _, kind := range policy.Kinds {
			for _, window := range []int{0, 1, 8, 1000} {
				for _, host := range []int64{0, 1 << 10, all / 10, all} {
					for i, lists := range []int64{lists, lists + 2*ds.Graph(0).Edges(), topology.AllBytes(ds.Graph(0))} {
						n++
						for _, w := range ways {
							if n%w.stride != 0 {
								continue
							}
							o := w.o
							o.Cache.Engine, o.Cache.Policy, o.Window, o.Cache.HostBytes, o.TopologyBytes = engine, kind, window, host, lists
							o.Workers, o.Lookahead = []int{1, 2, 9}[n%3], n/3%4
							o.BatchBytes = []int64{run.Auto, 0, 1 << 18}[i]
							sameWork(t, w.want, trained(t, ds, o), "%s: %+v", w.name, o)
						}
					}
				}
			}
		}
	}
}

// TestOddWidths: rows of any width are read right, whatever part of a sector they take.
func TestOddWidths(t *testing.T) {
	for _, dim := range []int{1, 3, 100, 768, 1433} {
		ds := open(t, storetest.Communities(300, 3, 6, dim, 3))
		o := small()
		o.Epochs = 2
		want := trained(t, ds, o)
		for i, engine := range disk.Kinds[1:] {
			o := outOfCore(ds, engine)
			o.Cache.Policy, o.Window = policy.Kinds[(i+dim)%len(policy.Kinds)], i%3
			sameWork(t, want, trained(t, ds, o), "%d columns by %s", dim, engine)
		}
	}
}

// TestTogether: two runs on one dataset at once are each as if they were alone.
func TestTogether(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	want := trained(t, ds, outOfCore(ds, disk.Pread))
	var results [3]*run.Result
	var errs [3]error
	done := make(chan int)
	for i, engine := range []disk.Kind{disk.Uring, disk.Pread, disk.Mmap} {
		own := ds
		if i > 0 { // one shares what is open, the others do not
			var err error
			own, err = store.Open(ds.Path())
			require.NoError(t, err)
			t.Cleanup(func() { own.Close() })
		}
		o, path := outOfCore(own, engine), t.TempDir()
		go func() {
			results[i], errs[i] = Run(context.Background(), own, in(path), o, "test", run.Hooks{})
			done <- i
		}()
	}
	for range results {
		<-done
	}
	for i, r := range results {
		require.NoError(t, errs[i])
		sameWork(t, want, r)
	}
}
