package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
)

// planTrain prints what a run would take.
func planTrain(
	ctx context.Context, stdout, stderr io.Writer, path string, o *trainOptions, workers int, link *plan.Link,
) error {
	ds, err := o.open(stderr, path, nil)
	if err != nil {
		return err
	}
	defer ds.Close()
	if o.Streams() {
		return planStream(ctx, stdout, ds, o)
	}
	if workers > 1 {
		if _, err := readTopology(o.Topology); err != nil {
			return err
		}
		return planWorkers(ctx, stdout, ds, o, link)
	}
	o.WorkerOptions = run.WorkerOptions{}
	p, err := graph.MakePlan(ctx, ds, o.Options)
	if err != nil {
		return err
	}
	epochsWithFlags(p.AutoEpochs)
	if o.json {
		return printJSON(stdout, p)
	}
	drawing := "with the reading of lists"
	if draws := p.Options.Draws(); draws != "" {
		drawing = draws + "; " + drawing
	}
	fmt.Fprintln(stdout, p.Memory)
	if r := p.Region; r != nil {
		printf(stdout, "device region %s: %s slots for hidden rows %s, %s feature rows %s\n", size(r.SlotBytes+r.RowBytes), count(r.Slots), size(r.SlotBytes),
			count(r.Rows), size(r.RowBytes))
	}
	tabulate(stdout, [][]string{
		{"a step", "", ""},
		{"feature rows", count(int64(p.InputRows)), fmt.Sprintf("%s of them from disk (%s), %s read", count(int64(p.ColdRows)), percent(p.MissRate), size(int64(p.FeatureBytes)))},
		{"neighbour lists", seconds(p.ListSeconds), size(int64(p.TopologyBytes)) + " read"},
		{"loading", seconds(p.LoadSeconds), fmt.Sprintf("rows, %d steps at a time", p.Window)},
		{"drawing", seconds(p.SampleSeconds), drawing},
		{"computing", seconds(p.StepSeconds), ""},
		{"in all", seconds(p.Seconds), "limited by " + p.LimitingStage},
	})
	if w := p.Ways; w != nil {
		way := func(name string, v plan.Way, taken bool) []string {
			if taken {
				name += ", as it will be"
			}
			return []string{name, seconds(v.Seconds), seconds(v.Device), seconds(v.Processor), size(int64(v.RowBytes)), size(int64(v.ListBytes)),
				size(int64(v.SpillBytes)), size(int64(v.Read)), size(int64(v.Written))}
		}
		byWindows := p.Window > 1 && !p.Joined
		fmt.Fprintln(stdout, "\nrows and lists of an epoch, three ways:")
		tabulate(stdout, [][]string{
			{"", "takes", "disk busy", "processors", "rows read", "lists read", "spill read", "read in all", "written"},
			way("row by row", w.Rows, p.Window == 1 && !p.Joined),
			way(fmt.Sprintf("by %d windows", w.WindowCount), w.Windows, byWindows),
			way(fmt.Sprintf("by a join, %d horizons", w.Horizons), w.Join, p.Joined),
		})
		fmt.Fprintln(stdout, "the longer of disk and processors counts, without drawing and computing; what is written wears flash")
		if p.Spill != "" {
			fmt.Fprintln(stdout, withFlags(p.Spill))
		}
		if !p.Joined {
			printf(stdout, "the join would take %s of disk space (--spill)\n", size(w.SpillBytes))
		}
	}
	for _, t := range p.Tables {
		printf(stdout, "rows of %s: %s a step, %s of them from disk, %s read in %s\n", t.Type, count(int64(t.InputRows)), count(int64(t.ColdRows)),
			size(int64(t.FeatureBytes)), seconds(t.LoadSeconds))
	}
	for _, e := range p.EdgeInputs {
		printf(stdout, "values of the edges of %s: %s, %d bytes an edge, %s beside %s of neighbour lists\n", e.Relation,
			strings.Join(e.Columns, ", "), e.EdgeBytes, size(e.Bytes), size(e.ListBytes))
	}
	printf(stdout, "\nan epoch of %s steps: about %s; judged by %d steps that were drawn\n", count(int64(p.Steps)), seconds(p.EpochSeconds), p.Drawn)
	if p.AutoSettings != nil {
		printf(stdout, "%s\n", withFlags(p.AutoSettings.Reason))
	}
	if p.AutoEpochs != nil {
		printf(stdout, "%s\n", p.AutoEpochs.Reason)
	}
	if p.Evaluation != "" {
		printf(stdout, "%s\n", withFlags(p.Evaluation))
	}
	return nil
}
