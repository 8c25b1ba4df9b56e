package graph

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
)

// Plan estimates the memory, the reads and the time of a run from the first steps of its first
// epoch. They are drawn as the run draws them, and the reads of their windows are worked out
// without reading. Its JSON keys are stable.
type Plan struct {
	Dataset string      `json:"dataset"`
	Options run.Options `json:"options"`
	Memory  plan.Budget `json:"memory"`
	Region  *PlanRegion `json:"region,omitempty"`
	Steps   int         `json:"steps"`  // of an epoch
	Window  int         `json:"window"` // steps that are drawn and read together
	Drawn   int         `json:"drawn"`  // steps that the figures come from

	// Of a step:
	plan.Reads
	LoadSeconds   float64 `json:"load_seconds"`   // reading rows, by the measured costs of the disk
	ListSeconds   float64 `json:"list_seconds"`   // reading neighbour lists; measured
	SampleSeconds float64 `json:"sample_seconds"` // drawing, ListSeconds included; measured
	StepSeconds   float64 `json:"step_seconds"`   // forward, backward; measured
	Seconds       float64 `json:"seconds"`

	// Ways compares the ways to read the rows and lists of an epoch. Joined is true if the run will
	// read by the join.
	Ways   *plan.Ways `json:"ways,omitempty"`
	Joined bool       `json:"joined"`

	EpochSeconds  float64 `json:"epoch_seconds"`
	LimitingStage string  `json:"limiting_stage"`
	// Tables has InputRows, ColdRows, FeatureBytes and LoadSeconds of each table, for a graph of
	// several types or with tables of edges.
	Tables []plan.Reading `json:"tables,omitempty"`
	// EdgeInputs has the sizes of the edge values that the network reads.
	EdgeInputs []PlanEdges `json:"edge_inputs,omitempty"`
	// Evaluation is a sentence on how the run evaluates, and why not in full and in memory. It is
	// empty if it does, or if another way was asked for.
	Evaluation string `json:"-"`
	// Spill is tiers.SpillNote.
	Spill string `json:"-"`
	// AutoEpochs is the decision on Options.Epochs Auto.
	AutoEpochs *run.AutoEpochs `json:"auto_epochs,omitempty"`
	// AutoSettings has the values chosen for options that were not given.
	AutoSettings *run.AutoSettings `json:"auto_settings,omitempty"`
}

// PlanRegion has the contents of the device region, parts of Memory.History and Memory.Device:
// slots for hidden rows of earlier steps, from its start, and feature rows, from its end.
type PlanRegion struct {
	Slots     int64 `json:"slots"`
	SlotBytes int64 `json:"slot_bytes"` // of all of them, without their index
	Rows      int64 `json:"rows"`
	RowBytes  int64 `json:"row_bytes"` // of all of them
}

// region returns the contents of the device region, or nil if there are none.
func (c *core) region() *PlanRegion {
	r := &PlanRegion{SlotBytes: c.reuse.slotBytes()}
	if c.reuse.any() {
		for _, k := range c.reuse.options.Kept {
			r.Slots += int64(k.Slots)
		}
	}
	for _, s := range c.tiers.Stats() {
		r.Rows, r.RowBytes = r.Rows+s.Tiers.Device.CapacityRows, r.RowBytes+s.Tiers.Device.CapacityBytes
	}
	if r.SlotBytes+r.RowBytes == 0 {
		return nil
	}
	return r
}

// PlanEdges has the bytes of the values of a relation's edges, in the files and where its lists are
// in memory.
type PlanEdges struct {
	Relation  string   `json:"relation"` // its key
	Columns   []string `json:"columns"`
	EdgeBytes int64    `json:"edge_bytes"` // of one edge's values
	Bytes     int64    `json:"bytes"`      // of all edges' values
	ListBytes int64    `json:"list_bytes"` // of all neighbours, with their weights where they count
}

// MakePlan estimates what Run would take with the same options, by one worker. It writes nothing.
func MakePlan(ctx context.Context, ds *store.Dataset, o run.Options) (_ *Plan, err error) {
	defer kernels.RecoverMemory(&err)
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Spread() {
		return nil, fmt.Errorf("{dist} %s: a plan of several workers is made by MakeWorkersPlan", o.Dist)
	}
	c, err := newCore(ctx, ds, o, run.Hooks{}, internal{})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	p := &Plan{Dataset: ds.Path(), Options: c.Options, Memory: c.tiers.Budget, Steps: c.task.Steps(), Window: c.tiers.Budget.Group, AutoEpochs: c.Ends.Auto, AutoSettings: c.settled,
		Evaluation: c.howEvaluated()}
	p.Region = c.region()
	c.task.Begin(1)
	// Two groups: the first finds the cache empty, the second is like those that follow. A short
	// epoch has to do.
	c.tiers.Planner.Begin(plan.Steps{To: min(p.Steps, 2*p.Window), BatchSeed: c.BatchSeeds().At, Seeds: c.task.Seeds, Without: c.task.Without})
	defer c.tiers.Planner.Reset()
	var last []plan.Drawn
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		before, began := c.tiers.ListsRead(), time.Now()
		var drawn []plan.Drawn
		err := store.Guard(func() (err error) { // seeds of links are read
			drawn, err = c.tiers.Planner.Draw(ctx, p.Window)
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(drawn) == 0 {
			break
		}
		n := float64(len(drawn))
		p.SampleSeconds = time.Since(began).Seconds() / n
		cold := c.tiers.ListsRead().Sub(before)
		p.TopologyBytes, p.ListSeconds = float64(cold.BytesRead)/n, cold.Seconds/n
		p.Drawn += len(drawn)
		last = drawn
	}
	forecasts, err := c.tiers.Planner.Forecast()
	if err != nil {
		return nil, err
	}
	for i, f := range forecasts {
		rows := plan.ReadingOf(c.data.Input(c.tiers.Types[i]).Name, f, p.Drawn)
		p.Add(rows)
		p.LoadSeconds += rows.LoadSeconds
		if len(c.data.Types)+len(c.data.EdgeTables) > 1 {
			p.Tables = append(p.Tables, rows)
		}
	}
	drawn := c.tiers.Reach.Drawn()
	for i, r := range c.data.Relations {
		if len(r.Inputs) == 0 || !drawn[i] {
			continue
		}
		e := PlanEdges{Relation: r.Relation.Key(), ListBytes: topology.ListBytes(r.Graph, r.Weights)}
		for _, c := range r.Inputs {
			e.Columns, e.EdgeBytes = append(e.Columns, c.Column.Name), e.EdgeBytes+int64(c.Column.Elem.Size())
		}
		e.Bytes = e.EdgeBytes * r.Edges()
		p.EdgeInputs = append(p.EdgeInputs, e)
	}
	if p.ColdRows > 0 && !c.reuse.any() && !c.learnt.any() {
		cold := make([]float64, len(forecasts))
		for i, f := range forecasts {
			cold[i] = plan.ReadingOf("", f, p.Drawn).ColdRows
		}
		w := c.tiers.Ways(p.Steps, cold)
		if p.Ways, p.Joined, p.Spill = &w, c.tiers.Joins(), c.tiers.SpillNote(); p.Joined {
			p.join(w.Join)
		}
	}
	var began time.Time
	for range 2 { // the first is the first use of its memory
		began = time.Now()
		if err := c.rehearse(last[0].Batch.(*sample.Batch), last[0].Step); err != nil {
			return nil, err
		}
	}
	p.StepSeconds = time.Since(began).Seconds()
	threads := runtime.GOMAXPROCS(0)
	p.LimitingStage, p.Seconds = p.pace(float64(min(c.Workers, threads))/float64(threads), c.Cache.Policy == cachetier.None)
	p.EpochSeconds = p.Seconds * float64(p.Steps)
	return p, nil
}

// join replaces the reads of a step by its share of the join's. Drawing keeps its time without
// reading.
func (p *Plan) join(w plan.Way) {
	n := float64(p.Steps)
	p.SampleSeconds = max(0, p.SampleSeconds-p.ListSeconds) + w.ListSeconds/n
	p.LoadSeconds, p.ListSeconds = (w.Device-w.ListSeconds)/n, w.ListSeconds/n
	p.FeatureBytes, p.TopologyBytes = (w.RowBytes+w.SpillBytes)/n, w.ListBytes/n
}

// pace returns the stage that limits a step, and the seconds of a step. Drawing, loading and
// computing run side by side, but they share one disk, and one set of processors: drawing uses this
// share of them, and computing all. inTurns is set without a cache policy, where windows take turns
// with their steps.
func (p *Plan) pace(share float64, inTurns bool) (limiting string, seconds float64) {
	reading, computing := p.LoadSeconds+p.ListSeconds, p.StepSeconds+share*max(0, p.SampleSeconds-p.ListSeconds)
	if inTurns {
		computing += p.LoadSeconds
	}
	seconds = max(reading, computing, p.SampleSeconds)
	switch {
	case seconds == p.SampleSeconds, seconds == reading && p.ListSeconds > p.LoadSeconds:
		return pipeline.Sample, seconds
	case seconds == reading, inTurns && p.LoadSeconds > p.StepSeconds:
		return pipeline.Load, seconds
	}
	return pipeline.Step, seconds
}

// rehearse runs b, the batch of a step of the current epoch, forwards and backwards through the
// network, with rows of zeros. It leaves the weights as they are.
func (c *core) rehearse(b *sample.Batch, number int) error {
	rows := make([]kernels.Tensor, len(c.data.Types)+len(c.data.EdgeTables))
	for _, n := range c.tiers.Types {
		rows[n] = c.tiers.Zeros(n, len(b.Inputs()[n]))
		defer c.Backend.Free(rows[n].Buf)
	}
	in := step.InputOf(b, rows...)
	in.Step, in.Key = number, 1
	in.Layers, in.Held = c.reuse.rehearsal(b)
	return store.Guard(func() error {
		if err := c.step.Rehearse(in); err != nil {
			return fmt.Errorf("the first batch: %w", err)
		}
		return nil
	})
}
