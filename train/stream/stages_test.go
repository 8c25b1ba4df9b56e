package stream

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal/staleness"
)

var percent = flag.Duration("percent", time.Millisecond, "how long a percent of a step of BenchmarkStages takes: longer ones on a machine with other work")

// BenchmarkStages makes the stages of a run take as long as in MSPipe (arXiv 2402.15113, tables 1,
// 5 and 6), at one staleness below the best, at it and above, and at 1 with state published a
// quarter into training. ms/step is the period over the second half of the epoch, predicted is the
// period of staleness.Costs, and by-stages the period from the measured times of the stages. %ideal
// is the epoch's speed-up over stages in turn, as a share of the speed-up of a full pipeline.
func BenchmarkStages(b *testing.B) {
	const steps = 200
	ds := drifting(b, steps*4*100/70+10)
	for _, row := range []struct {
		run   string
		stage [5]float64 // sample, features, state, train, publish
	}{
		{"TGN-REDDIT", [5]float64{9.5, 12.6, 5.7, 46.9, 25.3}},
		{"TGN-GDELT", [5]float64{17.6, 12.8, 10.5, 37.5, 21.6}},
		{"JODIE-WIKI", [5]float64{2.20, 1.10, 4.95, 46.70, 45.05}},
		{"APAN-LASTFM", [5]float64{11.12, 1.02, 12.26, 41.77, 33.83}},
		{"APAN-GDELT", [5]float64{14.34, 3.25, 20.31, 23.95, 38.15}},
	} {
		var c staleness.Costs
		for i, stage := range []int{staleness.Sample, staleness.Features, staleness.State, staleness.Train, staleness.Publish} {
			c.Stage[stage] = row.stage[i] * percent.Seconds()
		}
		best := c.Within(0)
		for k := max(1, best-1); k <= best+1; k++ {
			b.Run(fmt.Sprintf("run=%s/publish=late/k=%d", row.run, k), func(b *testing.B) { stages(b, ds, c, k, steps) })
		}
		c.Early, c.Forward, c.Stage[staleness.Publish] = true, c.Stage[staleness.Train]/4, 0
		b.Run(fmt.Sprintf("run=%s/publish=early/k=1", row.run), func(b *testing.B) { stages(b, ds, c, 1, steps) })
	}
}

// stages is BenchmarkStages for one staleness.
func stages(b *testing.B, ds *store.Dataset, c staleness.Costs, k, steps int) {
	o := options(model.JODIE)
	// There are two windows at a time, until their steps have written: of one step each they would
	// bound what is in flight.
	o.Staleness, o.Batch, o.Epochs, o.EpochSteps, o.Eval, o.Window, o.Workers, o.Lookahead = k, 4, 1, steps, run.NoEvaluation, 4, 1, 0
	before, after := c.Stage[staleness.Train], 0.0
	o.Publish = run.Late
	if c.Early {
		o.Publish, before, after = run.Early, c.Forward, c.Stage[staleness.Train]-c.Forward
	}
	seconds := func(s float64) time.Duration { return time.Duration(s * 1e9) }
	took := map[string]time.Duration{
		pipeline.Sample: seconds(c.Stage[staleness.Sample]), pipeline.Gather: seconds(c.Stage[staleness.Features]),
		pipeline.State: seconds(c.Stage[staleness.State]), pipeline.Step: seconds(before), pipeline.Write: seconds(c.Stage[staleness.Publish]),
	}
	found := c // what stages took
	var half time.Time
	var period, ideal float64
	for b.Loop() {
		in := internal{delay: func(stage string) { time.Sleep(took[stage]) }}
		h := run.Hooks{Step: func(_, step, _ int, _ float64) {
			time.Sleep(seconds(after))
			switch step {
			case steps / 2:
				half = time.Now()
			case steps:
				period = time.Since(half).Seconds() / float64(steps-steps/2)
			}
		}}
		r := run1(b, ds, o, h, in)
		require.Len(b, r.Epochs, 1)
		ideal = float64(steps) * c.Limit() / r.Epochs[0].Seconds
		s := r.Stages
		for stage, took := range map[int]float64{
			staleness.Sample: s.Sample + s.Plan, staleness.Features: s.Gather - s.State, staleness.State: s.State, staleness.Train: s.Step, staleness.Publish: s.Write,
		} {
			found.Stage[stage] = took / float64(steps)
		}
		found.Forward = c.Forward + found.Stage[staleness.Train] - c.Stage[staleness.Train]
	}
	b.ReportMetric(1e3*period, "ms/step")
	b.ReportMetric(1e3*c.Period(k), "predicted-ms/step")
	b.ReportMetric(1e3*found.Period(k), "by-stages-ms/step")
	b.ReportMetric(100*ideal, "%ideal")
}
