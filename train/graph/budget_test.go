package graph

import (
	"context"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

var leastPattern = regexp.MustCompile(`^.*\{memory_bytes\} \S+ \S+ is not enough: with this dataset, batch and fanout the least that works is (\d+) MiB \(memory [^\n]*\)[^\n]*$`)

// leastIn is the least that err names, in bytes.
func leastIn(t require.TestingT, err error) int64 {
	m := leastPattern.FindStringSubmatch(err.Error())
	require.NotNil(t, m, err.Error())
	mib, err := strconv.ParseInt(m[1], 10, 64)
	require.NoError(t, err)
	return mib << 20
}

// TestAnyBudget takes budgets around the least that works, and parts from none to more than the
// data: what the error names as the least does work, and no budget changes the result.
func TestAnyBudget(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(600, 4, 8, 64, 2))
	features := int64(ds.Features(0).Rows() * ds.Features(0).RowBytes())
	o := small()
	o.Epochs = 1
	wants := map[string]*run.Result{} // by how it draws and evaluates
	ways := []string{"ns", "ns", "labor0 smoothed", "labor-star nested", "rw nested"}
	for _, way := range ways {
		for _, method := range []string{"full", "sampled"} {
			o := o
			draws[way](&o)
			if o.EvalBytes = 1 << 30; method == "sampled" {
				o.EvalBytes = 0
			}
			wants[way+method] = trained(t, ds, o)
		}
	}
	try := func(o run.Options) (*run.Result, error) {
		dir := filepath.Join(t.TempDir(), "run")
		r, err := Run(context.Background(), ds, in(dir), o, "test", run.Hooks{})
		if err != nil {
			require.NoDirExists(t, dir)
		}
		return r, err
	}
	storetest.Fewer(t, 40)
	rapid.Check(t, func(rt *rapid.T) {
		o, way := o, rapid.SampledFrom(ways).Draw(rt, "way")
		draws[way](&o)
		around := func(name string, of int64) int64 {
			return rapid.OneOf(rapid.Just(int64(run.Auto)), rapid.Int64Range(0, of/8), rapid.Int64Range(0, 2*of)).Draw(rt, name)
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

// TestLeastWithReport: the least memory that an error names has room for the report that the run
// keeps with that memory. A report of 4,000 nodes and 120 classes takes up to 4 MiB.
func TestLeastWithReport(t *testing.T) {
	ds := open(t, storetest.Communities(12000, 120, 4, 8, 2))
	for _, method := range []string{"full", "sampled"} {
		o := small()
		o.Epochs, o.MemoryBytes = 1, 1
		if o.EvalBytes = 1 << 30; method == "sampled" {
			o.EvalBytes = 0
		}
		_, err := Run(t.Context(), ds, in(filepath.Join(t.TempDir(), "run")), o, "test", run.Hooks{})
		o.MemoryBytes = leastIn(t, err)
		_, err = Run(t.Context(), ds, in(filepath.Join(t.TempDir(), "run")), o, "test", run.Hooks{})
		require.NoError(t, err, method)
	}
}

// TestLeastOfWalks: the least memory that an error names has room for the rows that a network of
// walks keeps while it scores pairs. They take more with more memory.
func TestLeastOfWalks(t *testing.T) {
	ds := open(t, linked(24000))
	o := linkOptions()
	o.Sampler, o.KeepTargets, o.Hidden, o.Epochs, o.EpochSteps, o.EvalEdges = sample.RW, true, 128, 1, 1, 100
	dir, _ := runIn(t, ds, o)
	looked, err := run.Look(dir)
	require.NoError(t, err)
	little := NetworkOptions{Use: run.Use{MemoryBytes: 16 << 20}}
	_, err = OpenNetwork(t.Context(), ds, looked, little, run.Hooks{})
	little.MemoryBytes = leastIn(t, err)
	require.NoError(t, network(t, ds, dir, little).Close())
}
