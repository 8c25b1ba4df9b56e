package graph

import (
	"encoding/json"
	"fmt"

	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Keys of a checkpoint's metadata, beside run.Result.Meta. Resuming needs the tensors and the value
// of progressKey: batches, dropout and shuffles are functions of (seed, epoch, step), so nothing
// else has state.
const (
	scheduleKey = "gnnstore.schedule" // drawing
	progressKey = "gnnstore.progress"
)

// drawing is the schedule of the seeds that batches are drawn from, and the step it has reached.
// Step i, counted over all epochs, uses seed number i div κ. Smoothed, it has gone (i mod κ)/κ of
// the way to the next seed.
type drawing struct {
	Seed      uint64 `json:"seed"`
	Kappa     int    `json:"kappa"` // sample.Forever: all steps
	Dependent string `json:"dependent"`
	Step      int    `json:"step"`
}

func drawingAt(o *run.Options, step int) drawing { return drawing{o.Seed, o.Kappa, o.Dependent, step} }

// matches checks that a schedule agrees with the step that the run has reached.
func (d drawing) matches(now drawing) error {
	switch {
	case d.Seed != now.Seed:
		return fmt.Errorf("it draws from {seed} %d, and the run from %d", d.Seed, now.Seed)
	case d.Kappa != now.Kappa:
		return fmt.Errorf("it draws with {kappa} %s, and the run with %s", sample.KappaText(d.Kappa), sample.KappaText(now.Kappa))
	case d.Dependent != now.Dependent:
		return fmt.Errorf("it draws with {dependent} %s, and the run with %s", d.Dependent, now.Dependent)
	case d.Step != now.Step:
		return fmt.Errorf("it has drawn %d steps and made %d updates; remove the file to resume from the one before it",
			d.Step, now.Step)
	}
	return nil
}

// Parts implements run.Workload. Beside the Driver's parts, a checkpoint has the schedule of the
// seeds of batches, learnt rows, and hidden rows that are used again.
func (t *trainer) Parts(at *run.Progress) (checkpoint.Parts, any) {
	return checkpoint.Parts{counters{t, at}, schedule{t.core, at}, learntState{t.learnt, at}, reused{t.core, at}}, at
}

// counters restores the counters of a run that is resumed. It saves nothing, since they are in the
// checkpoint's progress.
type counters struct {
	t  *trainer
	at *run.Progress
}

func (p counters) Save(*checkpoint.State) error { return nil }

func (p counters) Check(*checkpoint.State) error { return nil }

func (p counters) Load(*checkpoint.State) error {
	r := &p.at.SoFar
	p.t.before = before{tables: r.TableStats(), stages: r.Stages, evaluated: r.Evaluation.Disk, learnt: r.Embeddings, spill: r.Spill}
	return nil
}

// schedule is the part of a checkpoint that has the schedule of the seeds of batches.
type schedule struct {
	c  *core
	at *run.Progress
}

func (p schedule) Save(s *checkpoint.State) error {
	return s.Put(scheduleKey, drawingAt(&p.c.Options, p.c.Updates()))
}

func (p schedule) Check(s *checkpoint.State) error {
	now := drawingAt(&p.c.Options, p.at.Updates)
	text, ok := s.Meta[scheduleKey]
	if !ok { // independent batches were all there was
		err := drawing{p.c.Seed, 1, p.c.Dependent, now.Step}.matches(now)
		if err == nil && p.c.Kind.All() != 0 {
			p.c.Note("the checkpoint is of an earlier version, which drew other batches: " +
				"the run does not end as it would have there")
		}
		return err
	}
	var d drawing
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return fmt.Errorf("no schedule to draw by: %s: %w; remove the file to resume from the one before it", scheduleKey, err)
	}
	return d.matches(now)
}

func (p schedule) Load(*checkpoint.State) error { return nil }
