package live

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
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
		"gnnstore_history_slots", "gnnstore_history_audit_nodes_total", "gnnstore_staleness_steps", "gnnstore_state_records",
		"gnnstore_device_steps_total", "gnnstore_worker_input_rows_total",
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
	r.History = new(run.HistoryOf)
	used := run.HistoryLayer{Layer: 1, Type: "paper", Slots: 7, Live: 4, Audit: &run.AuditOf{Nodes: 5, ErrorDraw: 0.5, ErrorFull: 0.25}}
	used.Hits, used.Computed, used.Ages, used.EvictedGrad, used.EvictedStale = 30, 10, 60, 3, 2
	r.History.Add(used)
	r.Stream = &run.StreamOf{Staleness: run.StalenessOf{K: 3}, State: &run.StateOf{Nodes: 9}}
	r.History.Add(run.HistoryLayer{Layer: 2, Type: "paper", Slots: 3})
	r.Workers = &run.WorkersOf{ // of an older run
		InputRows: []int64{3, 5}, DiskBytes: []int64{4, 6}, WaitSeconds: []float64{0.5, 0.25},
	}
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP gnnstore_worker_input_rows_total Feature rows that a worker read, up to the newest checkpoint.
# TYPE gnnstore_worker_input_rows_total counter
gnnstore_worker_input_rows_total{worker="0"} 3
gnnstore_worker_input_rows_total{worker="1"} 5
# HELP gnnstore_worker_sent_bytes_total Bytes that a worker sent to others, up to there.
# TYPE gnnstore_worker_sent_bytes_total counter
gnnstore_worker_sent_bytes_total{worker="0"} 0
gnnstore_worker_sent_bytes_total{worker="1"} 0
`), "gnnstore_worker_input_rows_total", "gnnstore_worker_sent_bytes_total"))
	require.Greater(t, check(), few)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP gnnstore_history_audit_error_full_ratio How far they lay from what all neighbours come to, relative to that.
# TYPE gnnstore_history_audit_error_full_ratio gauge
gnnstore_history_audit_error_full_ratio{layer="1",type="paper"} 0.25
# HELP gnnstore_history_evicted_total Rows that were removed, by why: a large gradient, or age.
# TYPE gnnstore_history_evicted_total counter
gnnstore_history_evicted_total{by="age",layer="1",type="paper"} 2
gnnstore_history_evicted_total{by="age",layer="2",type="paper"} 0
gnnstore_history_evicted_total{by="gradient",layer="1",type="paper"} 3
gnnstore_history_evicted_total{by="gradient",layer="2",type="paper"} 0
# HELP gnnstore_history_hits_total Rows that steps used again.
# TYPE gnnstore_history_hits_total counter
gnnstore_history_hits_total{layer="1",type="paper"} 30
gnnstore_history_hits_total{layer="2",type="paper"} 0
# HELP gnnstore_history_mean_age_steps Steps from computing a row to using it, on average over hits.
# TYPE gnnstore_history_mean_age_steps gauge
gnnstore_history_mean_age_steps{layer="1",type="paper"} 2
gnnstore_history_mean_age_steps{layer="2",type="paper"} 0
# HELP gnnstore_history_reuse_ratio Share of the rows used again in all that steps met.
# TYPE gnnstore_history_reuse_ratio gauge
gnnstore_history_reuse_ratio{layer="1",type="paper"} 0.75
gnnstore_history_reuse_ratio{layer="2",type="paper"} 0
`), "gnnstore_history_audit_error_full_ratio", "gnnstore_history_evicted_total", "gnnstore_history_hits_total", "gnnstore_history_mean_age_steps",
		"gnnstore_history_reuse_ratio"))
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

// TestBoard: the board of Grafana asks only for metrics that are served.
func TestBoard(t *testing.T) {
	board, err := os.ReadFile("../../tools/deploy/monitor/grafana/gnnstore.json")
	require.NoError(t, err)
	require.True(t, json.Valid(board))
	asked := regexp.MustCompile(`gnnstore_\w+`).FindAllString(string(board), -1)
	require.NotEmpty(t, asked)
	for _, name := range asked {
		require.True(t, slices.ContainsFunc(families, func(f family) bool { return f.name == name }), name)
	}
}
