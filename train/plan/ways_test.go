package plan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/train/plan"
)

// papers is the demand of a graph of 111 M nodes under 8 GiB.
func papers() (plan.Demand, plan.Budget) {
	d := plan.Demand{
		Batches: plan.Batches{Bytes: 6 << 20, Groups: 4, Parallel: 2, Window: plan.MaxWindow, Far: true},
		Rows:    []plan.Rows{{Count: 111_000_000, Bytes: 256, Index: 12, Inputs: 380_000}},
		Lists:   []plan.Lists{{Nodes: 111_000_000, Offsets: 260 << 20, Bytes: 6_400_000_000, Wanted: []int64{80_000, 9_000, 1000}}},
		Disk:    disk.Costs{SecondsPerRead: 1.0 / 100_000, BytesPerSecond: 1.62e9},
		Cores:   2,
	}
	return d, plan.Budget{Total: 8 << 30, Host: 5 << 30, Batches: 2 << 30, Topology: 260 << 20, Group: 45}
}

// waysOf returns the ways with the same budget for all.
func waysOf(d plan.Demand, b plan.Budget, steps int, spill int64) plan.Ways {
	return d.Ways(b, b, steps, plan.Space{Bytes: spill, Segment: 512 << 10})
}

func TestWaysOfALargeGraph(t *testing.T) {
	d, b := papers()
	w := waysOf(d, b, 1207, 0)
	require.Equal(t, 3, w.Horizons, "some steps, some windows, and the rest")
	require.True(t, w.JoinPays())
	require.Greater(t, w.Rows.Seconds, w.Windows.Seconds)
	require.Greater(t, w.Windows.Seconds, 2*w.Join.Seconds)
	require.InEpsilon(t, float64(w.WindowCount)*28.4e9, w.Windows.RowBytes, 0.1, "each window reads nearly the whole table")
	require.InEpsilon(t, float64(w.WindowCount)*2*6.4e9, w.Windows.ListBytes, 0.25, "and the lists of two hops")
	require.Zero(t, w.Windows.Written)
	require.Zero(t, w.Windows.SpillBytes)
	require.Positive(t, w.Join.Written)
	require.Equal(t, w.Join.Written, w.Join.SpillBytes)
	for _, v := range []plan.Way{w.Rows, w.Windows, w.Join} {
		require.InEpsilon(t, v.RowBytes+v.ListBytes+v.SpillBytes, v.Read, 1e-9)
		require.Equal(t, v.Read+v.Written, v.Moved())
		require.Equal(t, max(v.Device, v.Processor/2), v.Seconds)
		require.Less(t, v.ListSeconds, v.Device)
	}

	// Less space means more scans, more passes over lists, and about the same rows through the
	// spill.
	half := waysOf(d, b, 1207, w.SpillBytes/2)
	require.Greater(t, half.Horizons, w.Horizons)
	require.Greater(t, half.Join.RowBytes, w.Join.RowBytes)
	require.Greater(t, half.Join.ListBytes, w.Join.ListBytes)
	require.InEpsilon(t, w.Join.Written, half.Join.Written, 0.15)
	require.LessOrEqual(t, half.SpillBytes, w.SpillBytes/2)
	hardly := waysOf(d, b, 1207, 1<<30)
	require.Greater(t, hardly.Join.Moved(), hardly.Windows.Moved())

	// Steps that are drawn in groups read lists as windows do.
	groups := d
	groups.Batches.Far = false
	require.Greater(t, waysOf(groups, b, 1207, 0).Join.ListBytes, 2*w.Join.ListBytes)

	// One slow processor is busy for longer than the device.
	slow := d
	slow.Cores, slow.Disk.BytesPerSecond = 1, 1e12
	require.Equal(t, waysOf(slow, b, 1207, 0).Join.Processor, waysOf(slow, b, 1207, 0).Join.Seconds)

	// Of rows that are known to be fewer, fewer are written.
	d.Rows[0].Cold = 50_000
	require.Less(t, waysOf(d, b, 1207, 0).Join.Written, w.Join.Written)
}

func TestWaysThatDoNotPay(t *testing.T) {
	d, b := papers()
	b.Host = 40 << 30
	w := waysOf(d, b, 1207, 0)
	require.Zero(t, w.Windows.RowBytes, "all rows are in memory")
	require.False(t, w.JoinPays())

	d, b = papers()
	require.False(t, waysOf(d, b, 40, 0).JoinPays(), "an epoch of hardly a window")
	require.False(t, waysOf(d, b, 1, 0).JoinPays(), "an epoch of one step")

	d.Rows[0].Count, d.Rows[0].Inputs = 10_000, 100
	d.Lists = nil
	b.Host = 1 << 20
	require.False(t, waysOf(d, b, 1207, 0).JoinPays(), "a table that is read in a moment")
}

// TestWaysAreThoseOfRuns: the plan, which knows only what a run knows before its first step, comes
// near what runs read and wrote. tools/results/out-of-core.md, "Epochs as joins", has their
// figures.
func TestWaysAreThoseOfRuns(t *testing.T) {
	device := disk.Costs{SecondsPerRead: 7.5e-6, BytesPerSecond: 1.62e9}
	of := func(nodes, edges, offsets int64, inputs int, wanted []int64, batch, packed int64) plan.Demand {
		return plan.Demand{
			Batches: plan.Batches{Bytes: batch, Packed: packed, Groups: 4, Parallel: 2, Window: plan.MaxWindow, Far: true},
			Rows:    []plan.Rows{{Count: nodes, Bytes: 256, Index: 12, Inputs: inputs}},
			Lists:   []plan.Lists{{Nodes: nodes, Offsets: offsets, Bytes: 4 * edges, Wanted: wanted}},
			Disk:    device, Cores: 2,
		}
	}
	budget := func(host, batches, topology int64) plan.Budget {
		return plan.Budget{Host: host, Batches: batches, Topology: topology}
	}
	near := func(name string, want, got float64) {
		t.Helper()
		require.InEpsilon(t, want, got/1e9, 0.25, name)
	}
	const steps = 1087
	ten := of(10_000_000, 145_478_706, 23_354_208, 48_894, []int64{9023, 994, 100}, 691_972, 425_165)

	w := ten.Ways(budget(467_905_757, 105_031_392, 23_354_208), budget(354_327_373, 80_155_536, 23_354_208), steps,
		plan.Space{Bytes: 6 << 30, Segment: 512 << 10, Windows: 40})
	near("windows, rows", 77.6, w.Windows.RowBytes)
	near("windows, lists", 28.7, w.Windows.ListBytes)

	for _, c := range []struct { // when the device was found to give so many reads, and bytes, a second
		spill, host, batches int64
		reads, rate          float64
		horizons             int
		rows, lists, through float64
	}{
		{1 << 30, 387 << 20, 88 << 20, 93_800, 3.18e9, 18, 45, 19.9, 8}, {2 << 30, 386 << 20, 88 << 20, 86_200, 2.66e9, 8, 19.8, 9.8, 9.3},
		{3 << 30, 385 << 20, 88 << 20, 86_600, 1.95e9, 5, 11.9, 6, 9}, {6 << 30, 385 << 20, 85 << 20, 93_800, 3.23e9, 4, 9.6, 5.2, 8.9},
	} {
		ten.Disk = disk.Costs{SecondsPerRead: 1 / c.reads, BytesPerSecond: c.rate}
		b := budget(c.host, c.batches, 23_354_208)
		w := ten.Ways(b, b, steps, plan.Space{Bytes: c.spill, Segment: 512 << 10, Windows: 45})
		name := fmt.Sprintf("a spill of %d GiB", c.spill>>30)
		require.InEpsilon(t, c.horizons, w.Horizons, 0.25, name)
		near(name+", rows", c.rows, w.Join.RowBytes)
		near(name+", lists", c.lists, w.Join.ListBytes)
		near(name+", spill", c.through, w.Join.SpillBytes)
		near(name+", all", c.rows+c.lists+2*c.through, w.Join.Moved())
	}

	// The device of this run was measured to be like the device of the first.
	large := of(55_529_978, 807_842_936, 129_686_720, 489_401, []int64{91_392, 10_115, 1000}, 6_990_668, 4_286_035)
	w = large.Ways(budget(2_505_750_458, 558_947_840, 129_686_720), budget(2_143_809_794, 475_105_664, 129_686_720), 604,
		plan.Space{Bytes: 22 << 30, Segment: 512 << 10, Windows: 45})
	near("56 M nodes, windows, rows", 414.8, w.Windows.RowBytes)
	near("56 M nodes, windows, lists", 151.5, w.Windows.ListBytes)
}
