package graph

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
)

// spilling is a run of many windows, which goes by horizons where it has a spill.
func spilling(ds *store.Dataset, bytes int64) run.Options {
	o := small()
	f := ds.Features(0)
	o.Epochs, o.Batch, o.SpillBytes = 1, 8, bytes
	o.Cache.Engine, o.Cache.HostBytes = disk.Pread, int64(f.Rows()*f.RowBytes())/2
	o.TopologyBytes = topology.LeastBytes(ds.Graph(0))
	o.EvalBytes = 0
	return o
}

// TestSameResultsBySpill: however an epoch's rows come, its results are the same: under each policy
// and sampler, with windows of a step, and with spills that are too small to be of use.
func TestSameResultsBySpill(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(3000, 4, 8, 24, 2))
	for n, name := range []string{"ns smoothed", "labor0 nested", "labor-star nested"} {
		o := spilling(ds, 0)
		draws[name](&o)
		want := trained(t, ds, o)
		require.Nil(t, want.Join)
		joined := 0
		for i, policy := range []cachetier.Policy{cachetier.Belady, cachetier.LRU, cachetier.Sieve, cachetier.Static, cachetier.None} {
			if n > 0 && i%2 == 1 { // the policy does not change what the sampler draws
				continue
			}
			o := o
			o.Cache.Policy, o.Workers = policy, 1+i%3
			o.SpillBytes = []int64{64 << 20, 16 << 20, 8 << 20, 1 << 20}[i%4]
			if i == 4 {
				o.Window = 1
			}
			got := trained(t, ds, o)
			sameWork(t, want, got, "%s: %s, a spill of %d", name, policy, o.SpillBytes)
			if got.Join != nil && got.Join.Spilled > 0 {
				joined++
				require.Zero(t, got.Join.Reread)
				require.Positive(t, got.Spill.PeakBytes)
				require.Zero(t, got.Spill.UsedBytes)
			}
		}
		require.GreaterOrEqual(t, joined, 3-min(n, 1), name)
	}
}

// TestResumeBySpill: a run that is cut in the middle of horizons, again and again, ends as one that
// is not.
func TestResumeBySpill(t *testing.T) {
	ds := open(t, storetest.Communities(3000, 4, 8, 24, 2))
	want := trained(t, ds, spilling(ds, 0))
	dir := filepath.Join(t.TempDir(), "run")
	o := spilling(ds, 16<<20)
	joined := false
	for cuts := 0; ; cuts++ {
		require.Less(t, cuts, 40)
		ctx, cancel := context.WithCancel(context.Background())
		steps := 0
		got, err := Run(ctx, ds, func() (*run.Dir, error) {
			d, _, err := run.OpenOn(vfs.Default, dir)
			return d, err
		}, o, "test", run.Hooks{Step: func(int, int, int, float64) {
			if steps++; steps == 50 {
				cancel()
			}
		}})
		cancel()
		require.NoError(t, err)
		joined = joined || got.Join != nil && got.Join.Spilled > 0
		if got.Status == run.Interrupted {
			o.SpillBytes = []int64{16 << 20, 0, 64 << 20}[cuts%3]
			continue
		}
		require.True(t, joined)
		sameWork(t, want, got)
		return
	}
}

// TestNoPlaceForASpill: where there is none the run goes by windows, and says so in a line.
func TestNoPlaceForASpill(t *testing.T) {
	ds := open(t, storetest.Communities(3000, 4, 8, 24, 2))
	want := trained(t, ds, spilling(ds, 0))
	free, err := spill.Free(t.TempDir())
	require.NoError(t, err)
	for says, change := range map[string]func(o *run.Options){
		"no such file or directory": func(o *run.Options) { o.Tmp = filepath.Join(t.TempDir(), "none") },
		"no space left on device":   func(o *run.Options) { o.SpillBytes = free + 1<<30 },
		"there is no room for that": func(o *run.Options) { o.SpillBytes, o.MemoryBytes = 1<<46, 1<<30 },
		"is too small for":          func(o *run.Options) { o.SpillBytes = 1 << 19 },
	} {
		o := spilling(ds, 16<<20)
		change(&o)
		var notes []string
		got, err := Run(context.Background(), ds, scratch(t), o, "test", run.Hooks{Note: func(text string) { notes = append(notes, text) }})
		require.NoError(t, err)
		sameWork(t, want, got)
		require.Nil(t, got.Join)
		text := strings.Join(notes, "\n")
		require.Contains(t, text, says)
		require.Contains(t, text, "rows are read by windows")
	}
}

// TestASpillThatIsTooSmall: it is used, and a line names its cost, the cost of windows, and a
// remedy.
func TestASpillThatIsTooSmall(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(40_000, 4, 8, 64, 2))
	for spill, small := range map[int64]bool{4 << 20: true, 64 << 20: false} {
		o := spilling(ds, spill)
		o.Batch, o.Eval, o.EvalNodes = 32, "sampled", 1
		var notes []string
		got, err := Run(context.Background(), ds, scratch(t), o, "test", run.Hooks{Note: func(text string) { notes = append(notes, text) }})
		require.NoError(t, err)
		require.Positive(t, got.Join.Horizons)
		p, err := MakePlan(context.Background(), ds, o)
		require.NoError(t, err)
		if !small {
			require.Empty(t, notes)
			require.Empty(t, p.Spill)
			continue
		}
		require.Equal(t, []string{p.Spill}, notes)
		require.Regexp(t, `^a spill of 4 MiB is too small to be worth it: an epoch moves about \d+ MiB by the join, and \d+ MiB by windows; `+
			`with \{spill_bytes\} [\d.]+ MiB it would be [\d.]+ MiB; 0 goes by windows$`, p.Spill)
		require.Greater(t, p.Ways.Join.Moved(), p.Ways.Windows.Moved())
	}
}

// TestWaysAreThoseOfARun: what a plan says of windows and of the join, before the first step, is
// within a quarter of what runs count.
func TestWaysAreThoseOfARun(t *testing.T) {
	ds := open(t, storetest.Communities(40_000, 4, 8, 64, 2))
	for _, spill := range []int64{0, 16 << 20, 64 << 20} {
		o := spilling(ds, spill)
		o.Batch, o.EvalNodes = 32, 1
		p, err := MakePlan(context.Background(), ds, o)
		require.NoError(t, err)
		require.Equal(t, spill > 0, p.Joined)
		r := trained(t, ds, o)
		if spill == 0 {
			require.InEpsilon(t, r.Disk.BytesRead, p.Ways.Windows.RowBytes, 0.25)
			require.InEpsilon(t, r.Topology.Disk.BytesRead, p.Ways.Windows.ListBytes, 0.25)
			continue
		}
		require.InEpsilon(t, r.Disk.BytesRead, p.Ways.Join.RowBytes, 0.25)
		require.InEpsilon(t, r.Topology.Disk.BytesRead, p.Ways.Join.ListBytes, 0.25)
		require.InEpsilon(t, r.Spill.BytesWritten+r.Spill.BytesKept, p.Ways.Join.SpillBytes, 0.25)
	}
}
