package plan

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier/disk"
)

// TestSplit: whatever a run demands and whatever is given, the parts are at most the whole, given
// parts are as they are, and what an error names as the least is the least, to a MiB.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := func(name string) int64 {
			return rapid.Int64Range(0, 1<<rapid.IntRange(0, 36).Draw(t, name+" bits")).Draw(t, name)
		}
		d := Demand{
			Fixed: 48<<20 + size("fixed"), Step: size("step"), Disk: disk.Costs{SecondsPerRead: 1e-5, BytesPerSecond: 1e9},
			Batches: Batches{
				Bytes: 1 + size("batch"), Scratch: size("scratch"), Groups: rapid.IntRange(3, 1000).Draw(t, "groups"),
				Parallel: rapid.IntRange(1, 1024).Draw(t, "workers"), Window: rapid.IntRange(1, MaxWindow).Draw(t, "window"),
			},
		}
		for range rapid.IntRange(1, 3).Draw(t, "tables") {
			d.Rows = append(d.Rows, Rows{
				Count: 1 + size("rows")>>4, Bytes: 1 + size("row")>>20, Index: rapid.Int64Range(0, 24).Draw(t, "index"), Inputs: 1 + int(size("inputs")),
			})
		}
		for range rapid.IntRange(1, 3).Draw(t, "relations") {
			d.Lists = append(d.Lists, Lists{
				Nodes: 1 + size("nodes")>>4, Offsets: size("offsets"), Bytes: size("edges"), Wanted: []int64{size("lists"), size("lists")},
			})
		}
		part := func(name string) int64 {
			return rapid.OneOf(rapid.Just(int64(Auto)), rapid.Just(int64(math.MaxInt64)), rapid.Int64Range(0, 1<<34)).Draw(t, name)
		}
		offsets, _ := d.lists()
		given := Budget{Topology: part("topology"), Device: part("device"), Host: part("host"), Batches: part("batches")}
		if given.Topology != Auto {
			given.Topology = max(given.Topology, offsets) // opening the tier takes as many
		}
		total := rapid.OneOf(rapid.Int64Range(0, 1<<32), rapid.Int64Range(0, 1<<40)).Draw(t, "total")
		b, err := d.Split(total, given)
		require.LessOrEqual(t, b.Group, d.Batches.Window)
		if err != nil {
			var short *NotEnough
			require.ErrorAs(t, err, &short)
			least := (short.Least.Total + 1<<20 - 1) &^ (1<<20 - 1)
			require.Greater(t, least, total)
			_, err = d.Split(least-1<<20, given)
			require.Error(t, err, "less than the least works")
			total = least
			b, err = d.Split(total, given)
			require.NoError(t, err)
		}
		require.Equal(t, total, b.Total)
		require.LessOrEqual(t, b.Fixed+b.Step+b.Batches+b.Topology+b.Device+b.Host, total, "%+v", b)
		require.GreaterOrEqual(t, b.Group, 1)
		for _, part := range []int64{b.Fixed, b.Step, b.Batches, b.Topology - offsets, b.Device, b.Host} {
			require.GreaterOrEqual(t, part, int64(0), "%+v", b)
		}
		g := d.useful(given)
		for _, p := range [][2]int64{{g.Topology, b.Topology}, {g.Host, b.Host}, {g.Batches, b.Batches}} {
			if p[0] != Auto {
				require.Equal(t, p[0], p[1])
			}
		}
	})
}
