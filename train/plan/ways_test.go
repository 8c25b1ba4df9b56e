package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/train/plan"
)

// papers is the demand of a graph of 111 M nodes under 8 GiB.
func papers() (plan.Demand, plan.Budget) {
	d := plan.Demand{
		Batches: plan.Batches{Bytes: 6 << 20, Groups: 4, Parallel: 2, Window: plan.MaxWindow},
		Rows:    []plan.Rows{{Count: 111_000_000, Bytes: 256, Index: 12, Inputs: 380_000}},
		Disk:    disk.Costs{SecondsPerRead: 1.0 / 100_000, BytesPerSecond: 1.62e9},
	}
	return d, plan.Budget{Total: 8 << 30, Host: 5 << 30, Group: 45}
}

func TestWaysOfALargeGraph(t *testing.T) {
	d, b := papers()
	w := d.Ways(b, 1207, 0)
	require.Equal(t, 27, w.WindowCount)
	require.Equal(t, 2, w.Horizons, "some windows, and the rest")
	require.True(t, w.JoinPays())
	require.Greater(t, w.Rows.Seconds, w.Windows.Seconds)
	require.Greater(t, w.Windows.Seconds, 2*w.Join.Seconds)
	require.InDelta(t, 27*28.4e9, w.Windows.Read, 60e9, "each window reads nearly the whole table")
	require.Zero(t, w.Windows.Written)
	require.Positive(t, w.Join.Written)

	// Less space means more scans, and the same rows through the spill.
	half := d.Ways(b, 1207, w.SpillBytes/2)
	require.Greater(t, half.Horizons, w.Horizons)
	require.Greater(t, half.Join.Read, w.Join.Read)
	require.Equal(t, w.Join.Written, half.Join.Written)
	require.LessOrEqual(t, half.SpillBytes, w.SpillBytes/2)

	// Of rows that are known to be fewer, fewer are written.
	d.Rows[0].Cold = 100_000
	require.Less(t, d.Ways(b, 1207, 0).Join.Written, w.Join.Written)
}

func TestWaysThatDoNotPay(t *testing.T) {
	d, b := papers()
	b.Host = 40 << 30
	w := d.Ways(b, 1207, 0)
	require.Zero(t, w.Windows.Seconds, "all rows are in memory")
	require.False(t, w.JoinPays())

	d, b = papers()
	require.False(t, d.Ways(b, 40, 0).JoinPays(), "an epoch of one window")
	require.False(t, d.Ways(b, 1, 0).JoinPays(), "an epoch of one step")

	d.Rows[0].Count, d.Rows[0].Inputs = 10_000, 100
	b.Host = 1 << 20
	require.False(t, d.Ways(b, 1207, 0).JoinPays(), "a table that is read in a moment")
}
