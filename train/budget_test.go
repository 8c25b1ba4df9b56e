package train

import (
	"context"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/store/storetest"
)

var leastPattern = regexp.MustCompile(`^.*--memory \S+ \S+ is not enough: with this dataset, batch and fanout the least that works is (\d+) MiB \(memory [^\n]*\)$`)

// leastIn is the least that err names, in bytes.
func leastIn(t require.TestingT, err error) int64 {
	m := leastPattern.FindStringSubmatch(err.Error())
	require.NotNil(t, m, err.Error())
	mib, err := strconv.ParseInt(m[1], 10, 64)
	require.NoError(t, err)
	return mib << 20
}

// TestSplit: whatever a run demands and whatever is given, the parts are at most the whole, given parts are as they are, and
// what an error names as the least is the least, to a MiB.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := func(name string) int64 {
			return rapid.Int64Range(0, 1<<rapid.IntRange(0, 36).Draw(t, name+" bits")).Draw(t, name)
		}
		d := demand{
			fixed: 48<<20 + size("fixed"), step: size("step"), batch: 1 + size("batch"), scratch: size("scratch"), inputs: 1 + int(size("inputs")),
			lists: []int64{size("lists"), size("lists")}, groups: rapid.IntRange(3, 1000).Draw(t, "groups"), parallel: rapid.IntRange(1, 1024).Draw(t, "workers"),
			window: rapid.IntRange(1, maxWindow).Draw(t, "window"),
			rows:   1 + size("rows")>>4, rowBytes: 1 + size("row")>>20, rowIndex: rapid.Int64Range(0, 24).Draw(t, "index"),
			offsets: size("offsets"), listBytes: size("edges"), nodes: 1 + size("nodes")>>4,
			costs: disk.Costs{SecondsPerRead: 1e-5, BytesPerSecond: 1e9},
		}
		part := func(name string) int64 {
			return rapid.OneOf(rapid.Just(int64(Auto)), rapid.Just(int64(math.MaxInt64)), rapid.Int64Range(0, 1<<34)).Draw(t, name)
		}
		given := Budget{Topology: part("topology"), Device: part("device"), Host: part("host"), Batches: part("batches")}
		if given.Topology != Auto {
			given.Topology = max(given.Topology, d.offsets) // which opening the tier sees to
		}
		total := rapid.OneOf(rapid.Int64Range(0, 1<<32), rapid.Int64Range(0, 1<<40)).Draw(t, "total")
		b, err := d.split(total, given)
		require.LessOrEqual(t, b.Group, d.window)
		if err != nil {
			least := leastIn(t, err)
			require.Greater(t, least, total)
			_, err = d.split(least-1<<20, given)
			require.Error(t, err, "less than the least works")
			total = least
			b, err = d.split(total, given)
			require.NoError(t, err)
		}
		require.Equal(t, total, b.Total)
		require.LessOrEqual(t, b.Fixed+b.Step+b.Batches+b.Topology+b.Device+b.Host, total, "%+v", b)
		require.GreaterOrEqual(t, b.Group, 1)
		for _, part := range []int64{b.Fixed, b.Step, b.Batches, b.Topology - d.offsets, b.Device, b.Host} {
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

// TestAnyBudget takes budgets around the least that works, and parts from none to more than the data: what the error names as
// the least does work, and no budget changes the result.
func TestAnyBudget(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 64, 2))
	features := int64(ds.Features(0).Rows() * ds.Features(0).RowBytes())
	o := small()
	o.Epochs = 1
	wants := map[string]*Result{} // by how it draws and evaluates
	ways := []string{"ns", "ns", "labor0 smoothed", "labor-star nested", "rw nested"}
	for _, way := range ways {
		for _, method := range []string{"full", "sampled"} {
			o := o
			draws[way](&o)
			if o.EvalBytes = 1 << 30; method == "sampled" {
				o.EvalBytes = 0
			}
			wants[way+method] = run(t, ds, o)
		}
	}
	try := func(o Options) (*Result, error) {
		dir := filepath.Join(t.TempDir(), "run")
		r, err := Run(context.Background(), ds, in(dir), o, "test", Hooks{})
		if err != nil {
			require.NoDirExists(t, dir)
		}
		return r, err
	}
	rapid.Check(t, func(rt *rapid.T) {
		o, way := o, rapid.SampledFrom(ways).Draw(rt, "way")
		draws[way](&o)
		around := func(name string, of int64) int64 {
			return rapid.OneOf(rapid.Just(int64(Auto)), rapid.Int64Range(0, of/8), rapid.Int64Range(0, 2*of)).Draw(rt, name)
		}
		o.MemoryBytes = rapid.OneOf(rapid.Int64Range(1, 1<<27), rapid.Int64Range(1<<20, 1<<30)).Draw(rt, "memory")
		o.Cache.HostBytes, o.Cache.DeviceBytes = around("host", features), max(0, around("device", features))
		o.BatchBytes = around("batches", 1<<20)
		if o.TopologyBytes = around("topology", topology.AllBytes(ds.Graph(0))); o.TopologyBytes >= 0 {
			o.TopologyBytes += topology.LeastBytes(ds.Graph(0))
		}
		r, err := try(o)
		if err != nil {
			o.MemoryBytes = leastIn(rt, err)
			r, err = try(o)
			require.NoError(rt, err, "the least that works")
		}
		sameWork(rt, wants[way+r.Evaluation.Method], r, "%+v", o)
	})
}
