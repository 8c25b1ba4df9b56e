package live

import (
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/run"
)

// TestMetricsAreOfTheirCounters: with another number in every counter, each metric has the number
// of the one that it is called after.
func TestMetricsAreOfTheirCounters(t *testing.T) {
	r := &run.Result{
		Live: &run.Live{}, Bus: &run.Bus{}, Topology: &run.Topology{}, Stream: &run.StreamOf{State: &run.StateOf{}},
	}
	n := 0
	number(reflect.ValueOf(r).Elem(), &n)
	require.Greater(t, n, 100)

	got := map[string]float64{}
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(func() *run.Result { return r }))
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.Metric {
			name := strings.TrimPrefix(f.GetName(), "gnnstore_")
			for _, l := range m.Label {
				name += " " + l.GetValue()
			}
			got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() // one of them is absent
		}
	}
	want := map[string]float64{
		"input_rows_total": float64(r.InputRows),

		"tier_capacity_bytes host":           float64(r.Tiers.Host.CapacityBytes),
		"tier_used_bytes host":               float64(r.Tiers.Host.UsedBytes),
		"tier_index_bytes host":              float64(r.Tiers.Host.IndexBytes),
		"tier_rows_served_total device":      float64(r.Tiers.Device.RowsHit),
		"tier_rows_served_total host":        float64(r.Tiers.Host.RowsHit),
		"tier_rows_served_total disk":        float64(r.Tiers.Disk.RowsHit),
		"tier_rows_served_total topology":    float64(r.Topology.RowsHit),
		"tier_rows_missed_total device":      float64(r.Tiers.Device.RowsMissed),
		"tier_rows_missed_total host":        float64(r.Tiers.Host.RowsMissed),
		"tier_rows_missed_total topology":    float64(r.Topology.RowsMissed),
		"tier_served_bytes_total host":       float64(r.Tiers.Host.BytesOut),
		"tier_filled_bytes_total host":       float64(r.Tiers.Host.BytesRead),
		"tier_evictions_total host":          float64(r.Tiers.Host.Evictions),
		"disk_reads_total features":          float64(r.Disk.Reads),
		"disk_wanted_bytes_total features":   float64(r.Disk.BytesWanted),
		"disk_read_bytes_total features":     float64(r.Disk.BytesRead),
		"disk_busy_seconds_total features":   r.Disk.Seconds,
		"disk_wanted_bytes_total evaluation": float64(r.Evaluation.Disk.BytesWanted),
		"disk_read_bytes_total evaluation":   float64(r.Evaluation.Disk.BytesRead),
		"disk_wanted_bytes_total topology":   float64(r.Topology.Disk.BytesWanted),
		"disk_read_bytes_total topology":     float64(r.Topology.Disk.BytesRead),
		"stage_busy_seconds_total sample":    r.Stages.Sample,
		"stage_busy_seconds_total plan":      r.Stages.Plan,
		"stage_busy_seconds_total load":      r.Stages.Load,
		"stage_busy_seconds_total gather":    r.Stages.Gather,
		"stage_busy_seconds_total step":      r.Stages.Step,
		"stage_busy_seconds_total state":     r.Stages.State,
		"stage_busy_seconds_total write":     r.Stages.Write,
		"step_waits_seconds_total":           r.Stages.Wait,
		"state_waits_seconds_total":          r.Stages.StateWait,
		"staleness_steps":                    float64(r.Stream.Staleness.K),
		"stale_reads_ratio":                  r.Stream.Staleness.Realised,
		"stream_events train":                float64(r.Stream.Train),
		"stream_events valid":                float64(r.Stream.Valid),
		"stream_events test":                 float64(r.Stream.Test),
		"state_records":                      float64(r.Stream.State.Nodes),
		"state_record_bytes":                 float64(r.Stream.State.RecordBytes),
		"state_touched_records":              float64(r.Stream.State.Touched),
		"state_written_bytes_total":          float64(r.Stream.State.BytesWritten),
		"device_steps_total":                 float64(r.Bus.Steps),
		"device_waits_total":                 float64(r.Bus.Waits),
		"device_uploads_total":               float64(r.Bus.Uploads),
		"device_upload_bytes_total":          float64(r.Bus.UploadBytes),
		"device_launches_total":              float64(r.Bus.Launches),
		"samplers":                           float64(r.Stages.Samplers),
		"updates_total":                      float64(r.Live.Updates),
		"epoch_step":                         float64(r.Live.Step),
		"epoch_steps":                        float64(r.Live.Steps),
		"resident_bytes":                     float64(r.Live.ResidentBytes),
		"mapped_bytes":                       float64(r.Live.FileBytes),
		"resident_peak_bytes":                float64(r.PeakRSSBytes),
	}
	for name, value := range want {
		require.Contains(t, got, name)
		require.Equal(t, value, got[name], name)
	}
}

// number gives every number in v, and in what it points to, the next one.
func number(v reflect.Value, n *int) {
	switch {
	case !v.CanSet():
	case v.CanInt():
		*n++
		v.SetInt(int64(*n))
	case v.CanFloat():
		*n++
		v.SetFloat(float64(*n))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			number(v.Field(i), n)
		}
	case v.Kind() == reflect.Pointer && !v.IsNil():
		number(v.Elem(), n)
	}
}
