package live

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
)

const gib = 1 << 30

// onDisk is a run that waits for the disk, with full caches.
func onDisk() *run.Result {
	r := &run.Result{Stages: pipeline.Stats{Sample: 10, Load: 95, Gather: 8, Step: 10, Wait: 90, Run: 100, Samplers: 2}}
	r.Stats = cachetier.Stats{
		InputRows: 1000, Disk: cachetier.Disk{Rows: 660, Reads: 100, BytesRead: 400 << 10, BytesWanted: 100 << 10, Amplification: 4, Seconds: 93},
		Tiers: cachetier.Tiers{
			Device: cachetier.Tier{CapacityBytes: 1 * gib, UsedBytes: 1 * gib}, Host: cachetier.Tier{CapacityBytes: 4 * gib, UsedBytes: 4 * gib},
			Disk: cachetier.Tier{CapacityBytes: 28 * gib, UsedBytes: 28 * gib},
		},
	}
	return r
}

// onStream makes a run one on a stream without features of events, at this staleness.
func onStream(k int, stages pipeline.Stats) func(r *run.Result) {
	return func(r *run.Result) {
		*r = run.Result{Stages: stages, Stream: &run.StreamOf{Staleness: run.StalenessOf{K: k}}}
		r.Options.Kind = "tgn"
	}
}

func TestAdvise(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(r *run.Result)
		want   string
	}{
		{"nothing ran", func(r *run.Result) { r.Stages = pipeline.Stats{Samplers: 2} }, ""},
		{"drawing the first steps", func(r *run.Result) {
			r.Stages, r.Live = pipeline.Stats{Samplers: 2}, &run.Live{}
		}, "caches are being filled, or the first steps drawn"},
		{"drawing them from the disk", func(r *run.Result) {
			r.Stages, r.Live = pipeline.Stats{Samplers: 2}, &run.Live{}
			r.Topology = &run.Topology{Disk: cachetier.Disk{BytesRead: 3 * gib}}
		}, "the first steps are being drawn together, for which 3 GiB of neighbour lists were read so far"},
		{"reading the first window", func(r *run.Result) {
			r.Stages, r.Live = pipeline.Stats{Samplers: 2}, &run.Live{}
			r.RowBytes, r.Window = 256, &run.Window{Steps: 50, Rows: 4 << 20}
		}, "the 1 GiB of rows that the first 50 steps want are being read; the next ones…"},
		{"disk, full caches", func(*run.Result) {},
			"the disk limits: it is busy 93 % of the time, in reads of 4 KiB that bring 4.0 bytes for each one wanted; the caches are full with 18 % " +
				"of the rows, and serve 34 % of what is asked for: a larger {host_bytes} would help most"},
		{"disk, a budget and a window", func(r *run.Result) {
			r.Memory, r.Window = &run.Memory{BudgetBytes: 8 * gib}, &run.Window{Steps: 50}
			r.Live = &run.Live{ResidentBytes: 8*gib - 100<<20}
		}, "…a larger {memory_bytes}, which makes windows longer than their 50 steps, would help most; 7.9 GiB of 8 GiB are used"},
		{"disk, no caches", func(r *run.Result) { r.Tiers.Device, r.Tiers.Host = cachetier.Tier{}, cachetier.Tier{} },
			"…no rows are kept in memory, and what {host_bytes} gives the host cache is not read again"},
		{"disk, cold caches", func(r *run.Result) { r.Tiers.Host.UsedBytes = gib },
			"…the caches are still filling (2 GiB of 5 GiB), so it will get better by itself"},
		{"disk, the caches hold all", func(r *run.Result) { r.Tiers.Disk.UsedBytes = 5 * gib },
			"…the caches hold every row by now, so it will get better by itself"},
		{"copying", func(r *run.Result) {
			r.Disk.Seconds, r.Stages.Load, r.Stages.Gather = 5, 0, 95
		}, "copying rows limits: gathering is busy 95 % of the time…"},
		{"step", func(r *run.Result) { r.Stages.Step, r.Stages.Load, r.Disk.Seconds, r.Stages.Wait = 97, 40, 40, 3 },
			"the step limits: it computes 97 % of the time, and its rows are there when it wants them; more cores…"},
		{"sampling", func(r *run.Result) { r.Stages.Sample, r.Stages.Load, r.Disk.Seconds = 90, 20, 20 },
			"sampling limits: it is busy 90 % of the time, drawing 2 batches at once; more {workers} help while cores are idle, a smaller {fanout} always does"},
		{"sampling, from the disk", func(r *run.Result) {
			r.Stages.Sample, r.Stages.Load, r.Disk.Seconds = 90, 20, 20
			r.Topology = &run.Topology{
				Tier: cachetier.Tier{UsedRows: 1_000_000, RowsHit: 3, RowsMissed: 1}, Lists: 111_059_956, Disk: cachetier.Disk{Seconds: 80},
			}
		}, "reading neighbour lists limits: the disk is busy with them 80 % of the time, and 1 % of 111 M lists are in memory; a larger {host_bytes}…"},
		{"rows and lists together", func(r *run.Result) {
			r.Stages.Sample, r.Stages.Load, r.Disk.Seconds, r.Stages.Step, r.Stages.Wait = 40, 50, 50, 30, 70
			r.Topology, r.Window = &run.Topology{Disk: cachetier.Disk{Seconds: 35}}, &run.Window{Steps: 50}
		}, "the disk limits: it is busy 50 % of the time with rows and 35 % with neighbour lists, in reads…"},
		{"in turns", func(r *run.Result) {
			r.Stages.Load, r.Disk.Seconds, r.Stages.Gather, r.Stages.Step, r.Stages.Wait = 0, 0, 50, 45, 55
		},
			"no stage is busy all the time (sample 10 %, gather 50 %, step 45 %), so they wait for each other; a larger {batch_bytes}…"},
		{"window after window", func(r *run.Result) {
			r.Stages.Load, r.Disk.Seconds, r.Stages.Step, r.Stages.Wait = 55, 55, 45, 55
			r.Window, r.Memory = &run.Window{Steps: 50}, &run.Memory{BudgetBytes: gib}
		}, "reading a window (55 % of the time) and computing its 50 steps (45 %) take turns: the longer windows are, the less…{memory_bytes} makes them longer"},
		{"windows of one step", func(r *run.Result) {
			r.Stages.Load, r.Disk.Seconds, r.Stages.Step, r.Stages.Wait = 55, 55, 45, 55
			r.Window, r.Memory = &run.Window{Steps: 1}, &run.Memory{BudgetBytes: gib}
		}, "reading a window (55 % of the time) and computing its one step (45 %) take turns: the longer windows are…"},
		{"writing behind the step", func(r *run.Result) {
			r.Stages = pipeline.Stats{Write: 90, Step: 20, Wait: 80}
			r.Disk.Seconds = 0
		}, "write limits: it is busy 90 % of the time"},
		{"copying rewritten rows", func(r *run.Result) {
			r.Disk.Seconds, r.Stages.Load, r.Stages.Gather, r.Stages.State = 5, 0, 95, 90
		}, "copying rows limits: gathering is busy 95 % of the time…"},
		{"of late, not in all", func(r *run.Result) {
			r.Live = &run.Live{Recent: run.Recent{Stages: pipeline.Stats{Step: 9, Gather: 2, Wait: 1}}}
		}, "the step limits: it computes 90 % of the time…"},
		{"a stream before its first step", func(r *run.Result) {
			onStream(1, pipeline.Stats{})(r)
			r.Live = &run.Live{}
		}, "caches are being filled, or the first steps drawn"},
		{"a stream's step", onStream(1, pipeline.Stats{Step: 95, Wait: 5, Gather: 30, State: 20}),
			"the step limits: it computes 95 % of the time; more cores, a smaller {hidden} or fewer neighbours ({fanout}) would help, more memory would not, and " +
				"{staleness} 1 costs next to nothing"},
		{"a stream's step, of old state", onStream(3, pipeline.Stats{Step: 95, Wait: 5}), "the step limits: …more memory would not"},
		{"a stream in turns", onStream(1, pipeline.Stats{Step: 40, Wait: 60, Gather: 45, State: 35, Write: 20}),
			"reading state (35 % of the time), computing (40 %) and writing state (20 %) take turns, since at {staleness} 1…{staleness} auto finds how far they may " +
				"overlap, with other results"},
		{"a stream, waiting for each other", onStream(2, pipeline.Stats{Step: 50, Wait: 50, Gather: 50, State: 35, Write: 20}),
			"no stage is busy all the time (sample 0 %, state 35 %, step 50 %, write 20 %), so they wait for each other; a larger {inflight} or {staleness}…"},
		{"a stream's state", onStream(2, pipeline.Stats{Step: 10, Wait: 90, Gather: 95, State: 80}), "reading state limits: it takes 80 % of the time; a larger {host_bytes}…"},
		{"a stream's rows", onStream(2, pipeline.Stats{Step: 10, Wait: 90, Gather: 95, State: 20}), "copying rows limits: gathering is busy 95 % of the time…"},
		{"a stream's rows, from the disk", func(r *run.Result) {
			stats := r.Stats
			onStream(2, pipeline.Stats{Step: 10, Wait: 90, Gather: 95, State: 20})(r)
			r.Stats = stats
		}, "the disk limits: it is busy 93 % of the time…"},
		{"a stream's writing", onStream(2, pipeline.Stats{Step: 10, Wait: 90, Write: 95}), "writing state limits: it takes 95 % of the time; …and {publish} early has nobody wait for it"},
		{"a stream's drawing", onStream(2, pipeline.Stats{Step: 10, Wait: 90, Sample: 60, Plan: 30}), "sampling limits: it is busy 90 % of the time; a smaller {fanout} helps"},
	} {
		r := onDisk()
		c.change(r)
		got := Advise(r)
		before, after, cut := strings.Cut(c.want, "…")
		require.True(t, strings.HasPrefix(got, before) && strings.HasSuffix(got, strings.TrimSuffix(after, "…")) && (cut || got == c.want), "%s: %s", c.name, got)
		require.Less(t, len(got), 330, "%s", c.name)
	}
}
