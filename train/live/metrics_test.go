package live

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/run"
)

// TestMetrics: they follow Prometheus's conventions, and what a result leaves out is left out.
func TestMetrics(t *testing.T) {
	r := onDisk()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(newCollector(func() *run.Result { return r }))
	check := func() int {
		problems, err := testutil.GatherAndLint(registry)
		require.NoError(t, err)
		require.Empty(t, problems)
		n, err := testutil.GatherAndCount(registry)
		require.NoError(t, err)
		return n
	}
	few := check()
	for _, name := range []string{
		"gnnstore_updates_total", "gnnstore_memory_budget_bytes", "gnnstore_disk_read_latency_seconds", "gnnstore_window_steps",
	} {
		n, err := testutil.GatherAndCount(registry, name)
		require.NoError(t, err)
		require.Zero(t, n, name)
	}
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP gnnstore_tier_used_bytes What is held of them.
# TYPE gnnstore_tier_used_bytes gauge
gnnstore_tier_used_bytes{tier="device"} 1.073741824e+09
gnnstore_tier_used_bytes{tier="disk"} 3.0064771072e+10
gnnstore_tier_used_bytes{tier="host"} 4.294967296e+09
`), "gnnstore_tier_used_bytes"))

	loss, left, reads, acc := 0.5, 60.0, 64, 0.75
	r.Run, r.Best.ValidAcc = "runs/\xff\n\"", &acc
	r.Live = &run.Live{Updates: 7, Loss: &loss, ETASeconds: &left, ReadsUnderWay: &reads}
	r.Topology, r.Window = &run.Topology{}, &run.Window{Steps: 50}
	r.Memory = &run.Memory{BudgetBytes: 8 * gib, Parts: []run.MemoryPart{
		{Name: "host cache", Bytes: gib}, {Name: "batches", Bytes: gib},
	}}
	r.Latency = &run.Latency{Reads: 1000, Seconds: 2, P50: 0.001, P90: 0.002, P99: 0.005, Max: 0.1}
	require.Greater(t, check(), few)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP gnnstore_disk_read_latency_seconds What single reads of the disk took.
# TYPE gnnstore_disk_read_latency_seconds summary
gnnstore_disk_read_latency_seconds{quantile="0.5"} 0.001
gnnstore_disk_read_latency_seconds{quantile="0.9"} 0.002
gnnstore_disk_read_latency_seconds{quantile="0.99"} 0.005
gnnstore_disk_read_latency_seconds{quantile="1"} 0.1
gnnstore_disk_read_latency_seconds_sum 2
gnnstore_disk_read_latency_seconds_count 1000
# HELP gnnstore_updates_total Steps of the run.
# TYPE gnnstore_updates_total counter
gnnstore_updates_total 7
`), "gnnstore_disk_read_latency_seconds", "gnnstore_updates_total"))
}
