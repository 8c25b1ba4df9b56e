package main

import (
	"context"
	"fmt"
	"io"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/stream"
)

// planStream prints what a run on a stream would take.
func planStream(ctx context.Context, stdout io.Writer, ds *store.Dataset, o *trainOptions) error {
	p, err := stream.MakePlan(ctx, ds, o.Options, run.Hooks{Text: withFlags})
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(stdout, p)
	}
	printStreamPlan(stdout, p)
	return nil
}

func printStreamPlan(w io.Writer, p *stream.Plan) {
	fmt.Fprintln(w, p.Memory)
	published := "within the step, " + seconds(p.Forward) + " after it began"
	if p.Options.Publish == run.Late {
		published = "behind the step"
	}
	tabulate(w, [][]string{
		{"a step", count(int64(p.Options.Batch)) + " events", ""},
		{"rows read", count(int64(p.InputRows)), fmt.Sprintf("%s of them from disk at most (%s), %s read", count(int64(p.ColdRows)), percent(p.MissRate), size(int64(p.FeatureBytes)))},
		{"nodes at times", count(int64(p.Rows)), size(int64(p.TopologyBytes)) + " of neighbour lists read"},
		{"drawing", seconds(p.Sample), ""},
		{"loading", seconds(p.Page), fmt.Sprintf("rows, %d steps at a time", p.Window)},
		{"features", seconds(p.Features), ""},
		{"state", seconds(p.State), ""},
		{"computing", seconds(p.Train), ""},
		{"publishing", seconds(p.Publish), published},
		{"in turns", seconds(p.Serial), fmt.Sprintf("%s of processors, of which there are %d", seconds(p.Compute), p.Cores)},
		{"in all", seconds(p.Seconds), "limited by " + p.LimitingStage},
	})
	for _, t := range p.Tables {
		printf(w, "rows of %s: %s a step, %s of them from disk, %s read\n", t.Type, count(int64(t.InputRows)), count(int64(t.ColdRows)), size(int64(t.FeatureBytes)))
	}
	fmt.Fprintln(w)
	if p.Reason != "" {
		printf(w, "%s\n", p.Reason)
	} else {
		printf(w, "staleness %d: a step takes %s, and %s at 1; training waits for no state from %d on\n", p.K, seconds(p.Seconds), seconds(p.Plain), p.Best)
	}
	printf(w, "an epoch of %s steps: about %s; judged by %d steps that were rehearsed, and %d that were drawn\n", count(int64(p.Steps)), seconds(p.EpochSeconds),
		p.AutoStaleness.Steps, p.Drawn)
	if p.AutoEpochs != nil {
		printf(w, "%s\n", p.AutoEpochs.Reason)
	}
}
