package stream

import (
	"context"
	"fmt"
	"os"

	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// Plan is the expected cost of a run. It is judged by steps from the middle of the training
// part; graph.Plan uses the first steps. Its JSON keys are stable, and equal to the keys of
// graph.Plan where they mean the same.
type Plan struct {
	Dataset string      `json:"dataset"`
	Options run.Options `json:"options"`
	Memory  plan.Budget `json:"memory"`
	Steps   int         `json:"steps"`  // of an epoch
	Window  int         `json:"window"` // steps that are drawn and read together
	Drawn   int         `json:"drawn"`  // steps that the rows come from

	// Of a step:
	Rows float64 `json:"rows"` // nodes at times that it computes
	// The reads of state of nodes, as if every node had some on disk, and of features of events.
	plan.Reads
	// The times, and the staleness of the options, or the one that Auto finds on this machine.
	run.AutoStaleness

	EpochSeconds  float64 `json:"epoch_seconds"` // without evaluation
	LimitingStage string  `json:"limiting_stage"`
	// Tables has InputRows, ColdRows and FeatureBytes of each table.
	Tables     []plan.Reading  `json:"tables,omitempty"`
	AutoEpochs *run.AutoEpochs `json:"auto_epochs,omitempty"`
}

// MakePlan estimates what Run would take with the same options. It writes nothing but state in a
// temporary directory, which it removes.
func MakePlan(ctx context.Context, ds *store.Dataset, o run.Options, h run.Hooks) (_ *Plan, err error) {
	defer kernels.RecoverMemory(&err)
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c, err := newCore(ctx, ds, o, h, internal{scratch: true})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	dir, err := os.MkdirTemp("", "gnnstore-plan-")
	if err != nil {
		return nil, fmt.Errorf("state of the steps to judge by: %w", err)
	}
	defer os.RemoveAll(dir)
	r := newRehearsal(c)
	a, err := r.find(ctx, mutable.Place{Dir: dir})
	if err != nil {
		return nil, err
	}
	c.closeRows()
	c.lag = a.K
	if err := c.openRows(ctx); err != nil {
		return nil, err
	}
	p := &Plan{
		Dataset: ds.Path(), Options: c.Options, Memory: c.budget, Steps: c.steps(), Window: c.budget.Group, AutoStaleness: *a, AutoEpochs: c.Ends.Auto,
		EpochSeconds: a.Seconds * float64(c.steps()), LimitingStage: limiting(&a.Rehearsal, c.Publish),
	}
	return p, r.countRows(ctx, p)
}

// countRows sets the reads of a step in p.
func (r *rehearsal) countRows(ctx context.Context, p *Plan) error {
	before := r.draw.sampler.Stats().Near
	tables, drawn, err := r.forecast(ctx)
	if err != nil {
		return err
	}
	p.Drawn, p.Tables = len(drawn), tables
	n := float64(max(1, p.Drawn))
	for _, d := range drawn {
		p.Rows += float64(len(d.Batch.(*temporal.Batch).RowTime)) / n
	}
	p.TopologyBytes = float64(r.draw.sampler.Stats().Near.BytesRead-before.BytesRead) / n
	for _, t := range tables {
		p.Add(t)
	}
	return nil
}

// limiting returns the stage that the others wait for, by its name in package pipeline.
func limiting(r *run.Rehearsal, publish string) string {
	busiest, most := pipeline.Step, r.Train
	if r.Cores > 0 {
		most = max(most, r.Compute/float64(r.Cores)) // processors, which steps have the most of
	}
	written := 0.0
	if publish == run.Late {
		written = r.Publish
	}
	for _, stage := range []struct {
		name    string
		seconds float64
	}{{pipeline.Sample, r.Sample}, {pipeline.Load, r.Page}, {pipeline.Gather, r.Features + r.State}, {pipeline.Write, written}} {
		if stage.seconds > most {
			busiest, most = stage.name, stage.seconds
		}
	}
	return busiest
}
