package live

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/train/run"
)

// family is a metric of all its labels' values: put takes a value, and the labels in order.
type family struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	values     func(r *run.Result, put func(v float64, labels ...string))
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// families has the metrics. They are made from a result when somebody asks, so that nothing is
// counted twice. A metric is left out if the result has no value for it.
var families = []family{
	{"gnnstore_run_info", "The training, by its labels; always 1.", gauge,
		[]string{"run", "dataset", "model", "device", "kernels", "disk_engine", "status"},
		func(r *run.Result, put func(float64, ...string)) {
			put(1, r.Run, r.Dataset, string(r.Options.Kind), r.Device, r.Kernels, r.DiskEngine, r.Status)
		}},
	{"gnnstore_epochs_total", "Whole epochs.", counter, nil,
		single(func(r *run.Result) float64 { return float64(len(r.Epochs)) })},
	{"gnnstore_updates_total", "Steps of the run.", counter, nil,
		ofLive(func(l *run.Live) float64 { return float64(l.Updates) })},
	{"gnnstore_epoch_step", "The last step done of the epoch under way.", gauge, nil,
		ofLive(func(l *run.Live) float64 { return float64(l.Step) })},
	{"gnnstore_epoch_steps", "The steps of an epoch.", gauge, nil,
		ofLive(func(l *run.Live) float64 { return float64(l.Steps) })},
	{"gnnstore_loss", "The loss of the last step.", gauge, nil, func(r *run.Result, put func(float64, ...string)) {
		if r.Live != nil && r.Live.Loss != nil {
			put(*r.Live.Loss)
		}
	}},
	{"gnnstore_best_valid_ratio", "The best validation metric so far.", gauge, nil,
		func(r *run.Result, put func(float64, ...string)) {
			if r.Best.ValidAcc != nil {
				put(*r.Best.ValidAcc)
			}
		}},
	{"gnnstore_left_seconds", "What all epochs still take at the present rate.", gauge, nil,
		func(r *run.Result, put func(float64, ...string)) {
			if r.Live != nil && r.Live.ETASeconds != nil {
				put(*r.Live.ETASeconds)
			}
		}},
	{"gnnstore_input_rows_total", "Feature rows that training steps took.", counter, nil,
		single(func(r *run.Result) float64 { return float64(r.InputRows) })},

	{"gnnstore_worker_input_rows_total", "Feature rows that a worker read, up to the newest checkpoint.", counter, byWorker,
		ofWorkers(func(w *run.WorkersOf, p int) float64 { return float64(at(w.InputRows, p)) })},
	{"gnnstore_worker_disk_bytes_total", "Bytes that a worker read from disk, up to there.", counter, byWorker,
		ofWorkers(func(w *run.WorkersOf, p int) float64 { return float64(at(w.DiskBytes, p)) })},
	{"gnnstore_worker_sent_bytes_total", "Bytes that a worker sent to others, up to there.", counter, byWorker,
		ofWorkers(func(w *run.WorkersOf, p int) float64 { return float64(at(w.SentBytes, p)) })},
	{"gnnstore_worker_exchange_seconds_total", "Time of a worker in exchanges, waiting and sending, up to there.", counter, byWorker,
		ofWorkers(func(w *run.WorkersOf, p int) float64 { return at(w.WaitSeconds, p) })},

	{"gnnstore_tier_capacity_bytes", "Room for rows, or neighbour lists.", gauge, byTier,
		ofTiers(func(t *cachetier.Tier) int64 { return t.CapacityBytes })},
	{"gnnstore_tier_used_bytes", "What is held of them.", gauge, byTier,
		ofTiers(func(t *cachetier.Tier) int64 { return t.UsedBytes })},
	{"gnnstore_tier_index_bytes", "Bookkeeping.", gauge, byTier,
		ofTiers(func(t *cachetier.Tier) int64 { return t.IndexBytes })},
	{"gnnstore_tier_rows_served_total", "Rows that the tier had.", counter, byTier,
		ofTiers(func(t *cachetier.Tier) int64 { return t.RowsHit })},
	{"gnnstore_tier_rows_missed_total", "Rows that it passed on.", counter, byTier,
		ofTiers(func(t *cachetier.Tier) int64 { return t.RowsMissed })},
	{"gnnstore_tier_served_bytes_total", "Bytes of the rows that it had.", counter, byTier,
		ofTiers(func(t *cachetier.Tier) int64 { return t.BytesOut })},
	{"gnnstore_tier_filled_bytes_total", "Bytes that came into the tier.", counter, byTier,
		ofTiers(func(t *cachetier.Tier) int64 { return t.BytesRead })},
	{"gnnstore_tier_evictions_total", "Rows that lost their place.", counter, byTier,
		ofTiers(func(t *cachetier.Tier) int64 { return t.Evictions })},

	{"gnnstore_device_steps_total", "Training steps whose work on the device was counted.", counter, nil,
		ofBus(func(b *run.Bus) int64 { return b.Steps })},
	{"gnnstore_device_waits_total", "Times that these steps waited for the device.", counter, nil,
		ofBus(func(b *run.Bus) int64 { return b.Waits })},
	{"gnnstore_device_uploads_total", "Copies to the device.", counter, nil,
		ofBus(func(b *run.Bus) int64 { return b.Uploads })},
	{"gnnstore_device_upload_bytes_total", "Bytes of these copies.", counter, nil,
		ofBus(func(b *run.Bus) int64 { return b.UploadBytes })},
	{"gnnstore_device_launches_total", "Kernels and sets of memory that were launched.", counter, nil,
		ofBus(func(b *run.Bus) int64 { return b.Launches })},

	{"gnnstore_history_slots", "Room for rows of earlier steps that are used again.", gauge, byLayer,
		ofHistory(func(l *run.HistoryLayer) float64 { return float64(l.Slots) })},
	{"gnnstore_history_live_slots", "Slots that have a row.", gauge, byLayer,
		ofHistory(func(l *run.HistoryLayer) float64 { return float64(l.Live) })},
	{"gnnstore_history_hits_total", "Rows that steps used again.", counter, byLayer,
		ofHistory(func(l *run.HistoryLayer) float64 { return float64(l.Hits) })},
	{"gnnstore_history_computed_total", "Rows that steps computed.", counter, byLayer,
		ofHistory(func(l *run.HistoryLayer) float64 { return float64(l.Computed) })},
	{"gnnstore_history_reuse_ratio", "Share of the rows used again in all that steps met.", gauge, byLayer,
		ofHistory(func(l *run.HistoryLayer) float64 { return l.Reuse })},
	{"gnnstore_history_mean_age_steps", "Steps from computing a row to using it, on average over hits.", gauge, byLayer,
		ofHistory(func(l *run.HistoryLayer) float64 { return l.MeanAge })},
	{"gnnstore_history_admitted_total", "Computed rows that got a slot.", counter, byLayer,
		ofHistory(func(l *run.HistoryLayer) float64 { return float64(l.Admitted) })},
	{"gnnstore_history_refused_total", "Computed rows that found no free slot.", counter, byLayer,
		ofHistory(func(l *run.HistoryLayer) float64 { return float64(l.Refused) })},
	{"gnnstore_history_evicted_total", "Rows that were removed, by why: a large gradient, or age.", counter, []string{"layer", "type", "by"},
		func(r *run.Result, put func(float64, ...string)) {
			eachHistory(r, func(l *run.HistoryLayer, layer string) {
				put(float64(l.EvictedGrad), layer, l.Type, "gradient")
				put(float64(l.EvictedStale), layer, l.Type, "age")
			})
		}},
	{"gnnstore_history_audit_nodes_total", "Rows used again that were compared with what they would be.", counter, byLayer,
		ofAudit(func(a *run.AuditOf) float64 { return float64(a.Nodes) })},
	{"gnnstore_history_audit_error_draw_ratio", "How far they lay from what the step would have computed, relative to that.", gauge, byLayer,
		ofAudit(func(a *run.AuditOf) float64 { return a.ErrorDraw })},
	{"gnnstore_history_audit_error_full_ratio", "How far they lay from what all neighbours come to, relative to that.", gauge, byLayer,
		ofAudit(func(a *run.AuditOf) float64 { return a.ErrorFull })},
	{"gnnstore_history_audit_error_fresh_ratio", "How far rows computed anew lie from what all neighbours come to, relative to that.", gauge, byLayer,
		ofAudit(func(a *run.AuditOf) float64 { return a.ErrorFresh })},
	{"gnnstore_mitigation_audit_nodes_total", "Blended memories that were compared with fresh ones.", counter, nil,
		ofMitigation(func(a *run.MitigationAudit) float64 { return float64(a.Nodes) })},
	{"gnnstore_mitigation_audit_error_ratio", "How far they lay from fresh ones, relative to those.", gauge, nil,
		ofMitigation(func(a *run.MitigationAudit) float64 { return a.ErrorBlended })},
	{"gnnstore_mitigation_audit_error_without_ratio", "How far they lay without blending.", gauge, nil,
		ofMitigation(func(a *run.MitigationAudit) float64 { return a.ErrorWithout })},

	{"gnnstore_staleness_steps", "How many steps behind its own the state is that a step of a stream sees.", gauge, nil,
		ofStream(func(s *run.StreamOf) float64 { return float64(s.Staleness.K) })},
	{"gnnstore_stale_reads_ratio", "Share of the nodes read whose state later steps had changed.", gauge, nil,
		ofStream(func(s *run.StreamOf) float64 { return s.Staleness.Realised })},
	{"gnnstore_stream_events", "Events of the stream, by part.", gauge, []string{"part"},
		func(r *run.Result, put func(float64, ...string)) {
			if s := r.Stream; s != nil {
				put(float64(s.Train), "train")
				put(float64(s.Valid), "valid")
				put(float64(s.Test), "test")
			}
		}},
	{"gnnstore_state_records", "Nodes that may have state.", gauge, nil,
		ofState(func(s *run.StateOf) float64 { return float64(s.Nodes) })},
	{"gnnstore_state_record_bytes", "Bytes of the state of a node.", gauge, nil,
		ofState(func(s *run.StateOf) float64 { return float64(s.RecordBytes) })},
	{"gnnstore_state_touched_records", "Nodes that have state.", gauge, nil,
		ofState(func(s *run.StateOf) float64 { return float64(s.Touched) })},
	{"gnnstore_state_written_bytes_total", "Bytes of state that were written to disk.", counter, nil,
		ofState(func(s *run.StateOf) float64 { return float64(s.BytesWritten) })},

	{"gnnstore_join_rows_total", "Rows that went to the spill: by a scan to the first window that wants them, or by a window to the next.", counter, []string{"by"},
		func(r *run.Result, put func(float64, ...string)) {
			if j := r.Join; j != nil {
				put(float64(j.Spilled), "scan")
				put(float64(j.Forwarded), "window")
			}
		}},
	{"gnnstore_spill_used_bytes", "What the spill holds.", gauge, nil,
		ofSpill(func(s *spill.Stats) int64 { return s.UsedBytes })},
	{"gnnstore_spill_written_bytes_total", "Bytes that were written to the spill.", counter, nil,
		ofSpill(func(s *spill.Stats) int64 { return s.BytesWritten })},
	{"gnnstore_spill_read_bytes_total", "Bytes that were read from the spill.", counter, nil,
		ofSpill(func(s *spill.Stats) int64 { return s.BytesRead })},

	{"gnnstore_disk_reads_total", "Stretches of files that were read.", counter, byPurpose,
		ofDisk(func(d *cachetier.Disk) float64 { return float64(d.Reads) })},
	{"gnnstore_disk_wanted_bytes_total", "Bytes that were wanted of the disk.", counter, byPurpose,
		ofDisk(func(d *cachetier.Disk) float64 { return float64(d.BytesWanted) })},
	{"gnnstore_disk_read_bytes_total", "Bytes that were read for them.", counter, byPurpose,
		ofDisk(func(d *cachetier.Disk) float64 { return float64(d.BytesRead) })},
	{"gnnstore_disk_busy_seconds_total", "Time in which a read was under way.", counter, byPurpose,
		ofDisk(func(d *cachetier.Disk) float64 { return d.Seconds })},
	{"gnnstore_disk_reads_under_way", "Reads that the disk has before it.", gauge, nil,
		func(r *run.Result, put func(float64, ...string)) {
			if r.Live != nil && r.Live.ReadsUnderWay != nil {
				put(float64(*r.Live.ReadsUnderWay))
			}
		}},

	{"gnnstore_stage_busy_seconds_total", "Time in which a stage worked, on however many batches at once; state is part of gather.", counter, []string{"stage"},
		func(r *run.Result, put func(float64, ...string)) {
			put(r.Stages.Sample, "sample")
			put(r.Stages.Plan, "plan")
			put(r.Stages.Load, "load")
			put(r.Stages.Gather, "gather")
			put(r.Stages.Step, "step")
			if r.Stream != nil {
				put(r.Stages.State, "state")
				put(r.Stages.Write, "write")
			}
		}},
	{"gnnstore_step_waits_seconds_total", "Time in which no batch was there for the step.", counter, nil,
		single(func(r *run.Result) float64 { return r.Stages.Wait })},
	{"gnnstore_state_waits_seconds_total", "Time in which rows of a step of a stream waited for the state of earlier steps.", counter, nil,
		func(r *run.Result, put func(float64, ...string)) {
			if r.Stream != nil {
				put(r.Stages.StateWait)
			}
		}},
	{"gnnstore_samplers", "Batches that are drawn at once.", gauge, nil,
		single(func(r *run.Result) float64 { return float64(r.Stages.Samplers) })},
	{"gnnstore_limiting_stage_info", "The stage that the others wait for of late; always 1.", gauge, []string{"stage"},
		func(r *run.Result, put func(float64, ...string)) {
			if stage := LoadOf(r).Limiting; stage != "" {
				put(1, stage)
			}
		}},
	{"gnnstore_window_steps", "Steps whose rows are read at once.", gauge, nil,
		func(r *run.Result, put func(float64, ...string)) {
			if r.Window != nil {
				put(float64(r.Window.Steps))
			}
		}},

	{"gnnstore_resident_bytes", "Memory of the process, mapped files apart.", gauge, nil,
		ofLive(func(l *run.Live) float64 { return float64(l.ResidentBytes) })},
	{"gnnstore_mapped_bytes", "Pages of mapped files that are in memory.", gauge, nil,
		ofLive(func(l *run.Live) float64 { return float64(l.FileBytes) })},
	{"gnnstore_resident_peak_bytes", "The most memory of the process so far, mapped files apart.", gauge, nil,
		single(func(r *run.Result) float64 { return float64(r.PeakRSSBytes) })},
	{"gnnstore_memory_budget_bytes", "What the process should take in all.", gauge, nil,
		func(r *run.Result, put func(float64, ...string)) {
			if r.Memory != nil {
				put(float64(r.Memory.BudgetBytes))
			}
		}},
	{"gnnstore_memory_part_bytes", "How that is split.", gauge, []string{"part"},
		func(r *run.Result, put func(float64, ...string)) {
			if r.Memory != nil {
				for _, p := range r.Memory.Parts {
					put(float64(p.Bytes), p.Name)
				}
			}
		}},
}

var byTier, byPurpose, byLayer, byWorker = []string{"tier"}, []string{"of"}, []string{"layer", "type"}, []string{"worker"}

// ofWorkers makes a metric of runs of several workers.
func ofWorkers(value func(w *run.WorkersOf, p int) float64) func(*run.Result, func(float64, ...string)) {
	return func(r *run.Result, put func(float64, ...string)) {
		if r.Workers != nil {
			for p := range r.Workers.InputRows {
				put(value(r.Workers, p), strconv.Itoa(p))
			}
		}
	}
}

// at returns element p of a list, or 0 where an older run has none.
func at[N int64 | float64](all []N, p int) N {
	if p < len(all) {
		return all[p]
	}
	return 0
}

func single(value func(*run.Result) float64) func(*run.Result, func(float64, ...string)) {
	return func(r *run.Result, put func(float64, ...string)) { put(value(r)) }
}

// ofLive makes a metric of runs that go on.
func ofLive(value func(*run.Live) float64) func(*run.Result, func(float64, ...string)) {
	return func(r *run.Result, put func(float64, ...string)) {
		if r.Live != nil {
			put(value(r.Live))
		}
	}
}

func ofTiers(value func(*cachetier.Tier) int64) func(*run.Result, func(float64, ...string)) {
	return func(r *run.Result, put func(float64, ...string)) {
		put(float64(value(&r.Tiers.Device)), "device")
		put(float64(value(&r.Tiers.Host)), "host")
		put(float64(value(&r.Tiers.Disk)), "disk")
		if r.Topology != nil {
			put(float64(value(&r.Topology.Tier)), "topology")
		}
	}
}

// eachHistory calls do with each layer of rows that are used again, and its number.
func eachHistory(r *run.Result, do func(l *run.HistoryLayer, layer string)) {
	if r.History == nil {
		return
	}
	for i := range r.History.Layers {
		do(&r.History.Layers[i], strconv.Itoa(r.History.Layers[i].Layer))
	}
}

func ofHistory(value func(*run.HistoryLayer) float64) func(*run.Result, func(float64, ...string)) {
	return func(r *run.Result, put func(float64, ...string)) {
		eachHistory(r, func(l *run.HistoryLayer, layer string) { put(value(l), layer, l.Type) })
	}
}

func ofAudit(value func(*run.AuditOf) float64) func(*run.Result, func(float64, ...string)) {
	return func(r *run.Result, put func(float64, ...string)) {
		eachHistory(r, func(l *run.HistoryLayer, layer string) {
			if l.Audit != nil {
				put(value(l.Audit), layer, l.Type)
			}
		})
	}
}

func ofBus(value func(*run.Bus) int64) func(*run.Result, func(float64, ...string)) {
	return func(r *run.Result, put func(float64, ...string)) {
		if r.Bus != nil {
			put(float64(value(r.Bus)))
		}
	}
}

func ofMitigation(value func(*run.MitigationAudit) float64) func(*run.Result, func(float64, ...string)) {
	return func(r *run.Result, put func(float64, ...string)) {
		if r.Stream != nil && r.Stream.Mitigation.Audit != nil {
			put(value(r.Stream.Mitigation.Audit))
		}
	}
}

func ofStream(value func(*run.StreamOf) float64) func(*run.Result, func(float64, ...string)) {
	return func(r *run.Result, put func(float64, ...string)) {
		if r.Stream != nil {
			put(value(r.Stream))
		}
	}
}

func ofState(value func(*run.StateOf) float64) func(*run.Result, func(float64, ...string)) {
	return func(r *run.Result, put func(float64, ...string)) {
		if r.Stream != nil && r.Stream.State != nil {
			put(value(r.Stream.State))
		}
	}
}

// ofSpill makes a metric of runs with a spill.
func ofSpill(of func(s *spill.Stats) int64) func(r *run.Result, put func(float64, ...string)) {
	return func(r *run.Result, put func(float64, ...string)) {
		if r.Spill != nil {
			put(float64(of(r.Spill)))
		}
	}
}

// ofDisk makes a metric of disk reads with a label for their purpose: features for training,
// evaluation, or topology.
func ofDisk(value func(*cachetier.Disk) float64) func(*run.Result, func(float64, ...string)) {
	return func(r *run.Result, put func(float64, ...string)) {
		put(value(&r.Disk), "features")
		put(value(&r.Evaluation.Disk), "evaluation")
		if r.Topology != nil {
			put(value(&r.Topology.Disk), "topology")
		}
	}
}

// collector makes metrics of the result so far.
type collector struct {
	now     func() *run.Result
	descs   []*prometheus.Desc // of families
	latency *prometheus.Desc
}

// newMetrics answers with the metrics of the result so far.
func newMetrics(now func() *run.Result) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(now))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true, MaxRequestsInFlight: 4})
}

func newCollector(now func() *run.Result) *collector {
	c := &collector{now: now}
	for _, f := range families {
		c.descs = append(c.descs, prometheus.NewDesc(f.name, f.help, f.labels, nil))
	}
	c.latency = prometheus.NewDesc("gnnstore_disk_read_latency_seconds", "What single reads of the disk took.", nil, nil)
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range append(c.descs[:len(c.descs):len(c.descs)], c.latency) {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	r := c.now()
	for i, f := range families {
		f.values(r, func(v float64, labels ...string) {
			for i, l := range labels {
				labels[i] = strings.ToValidUTF8(l, "?") // paths may hold anything
			}
			metrics <- prometheus.MustNewConstMetric(c.descs[i], f.kind, v, labels...)
		})
	}
	if l := r.Latency; l != nil {
		metrics <- prometheus.MustNewConstSummary(c.latency, uint64(l.Reads), l.Seconds,
			map[float64]float64{0.5: l.P50, 0.9: l.P90, 0.99: l.P99, 1: l.Max})
	}
}
