package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/stream"
)

func TestPrintStreamPlan(t *testing.T) {
	p := &stream.Plan{
		Options: run.Options{Batch: 600},
		Memory:  plan.Budget{Total: 1 << 30, Host: 1 << 29}, Steps: 184, Window: 8, Drawn: 16, Rows: 7122,
		Reads:        plan.Reads{InputRows: 7033, ColdRows: 700, MissRate: 0.1, FeatureBytes: 1 << 20, TopologyBytes: 2 << 20},
		EpochSeconds: 13, LimitingStage: pipeline.Step,
		AutoStaleness: run.AutoStaleness{K: 2, Best: 2, Rehearsal: run.Rehearsal{
			Steps: 40, Sample: 0.001, Train: 0.07, Forward: 0.012, Publish: 0.0001, Compute: 0.1, Cores: 2, Serial: 0.075, Plain: 0.072, Seconds: 0.07,
		}},
		Tables: []plan.Reading{{Type: "state of nodes", InputRows: 1695, ColdRows: 700, FeatureBytes: 1 << 20}},
	}
	print := func() string {
		var b bytes.Buffer
		printStreamPlan(&b, p)
		return b.String()
	}
	text := print()
	for _, want := range []string{
		"           a step   600 events ", "rows read        7,033   700 of them from disk at most (10.0 %), 1 MiB read\n", "within the step, 12 ms after it began\n", "limited by step\n",
		"\nstaleness 2: a step takes 70 ms, and 72 ms at 1; training waits for no state from 2 on\n",
		"\nan epoch of 184 steps: about 13 s; judged by 40 steps that were rehearsed, and 16 that were drawn\n",
	} {
		require.Contains(t, text, want)
	}
	p.Explain(0)
	p.Options.Publish = run.Late
	text = print()
	require.Contains(t, text, "behind the step")
	require.Contains(t, text, "\nstaleness auto: 2, by a rehearsal of 40 steps: the least with which training waits for no state; a step should take 70 ms, and 75 ms with its "+
		"stages in turn; at 1, 72 ms; up to 0, at most half of the nodes read are out of date; {staleness} 2 repeats the run\n")
}
