package train

import (
	"encoding/json"
	"fmt"
	"maps"

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

func (t *trainer) drawingAt(step int) drawing { return drawing{t.Seed, t.Kappa, t.Dependent, step} }

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

// identity is the part of a checkpoint that names its run: dataset, model and seed.
type identity struct{ *trainer }

func (p identity) Save(s *checkpoint.State) error {
	maps.Copy(s.Meta, p.result.Meta(p.optim.Steps()))
	return nil
}

func (p identity) Check(s *checkpoint.State) error { return p.result.CheckMeta(s.Meta) }

func (p identity) Load(*checkpoint.State) error { return nil }

// recorded is the part of a checkpoint that has the record of the run.
type recorded struct{ *trainer }

func (p recorded) Save(s *checkpoint.State) error { return saveJSON(s, run.RecordKey, p.record) }

func (p recorded) Check(s *checkpoint.State) error {
	saved, err := run.RecordIn(s.Meta)
	if err != nil {
		return err
	}
	if saved == nil {
		p.note("the checkpoint is of an earlier version, which kept no options in it: those of %s are taken as they are", run.RecordFile)
		return nil
	}
	if differs := p.record.Options.Differs(saved.Options); differs != "" {
		return fmt.Errorf("%s; remove whichever is not of this run", differs)
	}
	return nil
}

func (p recorded) Load(*checkpoint.State) error { return nil }

// soFar is the part of a checkpoint that has the run's progress. Loading it also cuts metrics.jsonl
// to that progress.
type soFar struct {
	*trainer
	at *run.Progress
}

func (p soFar) Save(s *checkpoint.State) (err error) {
	if *p.at, err = p.dir.SyncProgress(p.optim.Steps(), p.partial, p.ends.Worse, p.best != nil, p.result); err != nil {
		return err
	}
	return saveJSON(s, progressKey, p.at)
}

func (p soFar) Check(s *checkpoint.State) error {
	if err := json.Unmarshal([]byte(s.Meta[progressKey]), p.at); err != nil {
		return fmt.Errorf("no progress to resume from: %s: %w", progressKey, err)
	}
	if err := p.at.Valid(p.task.Steps()); err != nil {
		return fmt.Errorf("no progress to resume from: %s: %w; remove the file to resume from the one before it", progressKey, err)
	}
	return nil
}

func (p soFar) Load(*checkpoint.State) error {
	at, t := p.at, p.trainer
	r, err := t.dir.GoOn(at, t.result)
	if err != nil {
		return err
	}
	t.result, t.saved = r, at.Updates
	t.partial, t.ends.Worse = at.Partial, at.Worse
	t.before = before{tables: at.SoFar.TableStats(), stages: at.SoFar.Stages, evaluated: at.SoFar.Evaluation.Disk, learnt: at.SoFar.Embeddings, spill: at.SoFar.Spill}
	t.peak.Raise(at.SoFar.PeakRSSBytes, at.SoFar.PeakFileBytes)
	return nil
}

// schedule is the part of a checkpoint that has the schedule of the seeds of batches.
type schedule struct {
	*trainer
	at *run.Progress
}

func (p schedule) Save(s *checkpoint.State) error {
	return saveJSON(s, scheduleKey, p.drawingAt(p.at.Updates))
}

func (p schedule) Check(s *checkpoint.State) error {
	now := p.drawingAt(p.at.Updates)
	text, ok := s.Meta[scheduleKey]
	if !ok { // independent batches were all there was
		err := drawing{p.Seed, 1, p.Dependent, now.Step}.matches(now)
		if err == nil && p.Kind.All() != 0 {
			p.note("the checkpoint is of an earlier version, which drew other batches: " +
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

// weights is the part of a checkpoint that has the weights of the network.
type weights struct{ *trainer }

func (p weights) Save(s *checkpoint.State) error {
	before := len(s.Tensors)
	if err := p.model.Save(s); err != nil {
		return err
	}
	return p.dir.CheckWeights(s.Tensors[before:], p.optim.Steps())
}

func (p weights) Check(s *checkpoint.State) error { return p.model.Check(s) }

func (p weights) Load(s *checkpoint.State) error { return p.model.Load(s) }

// moments is the part of a checkpoint that has the optimizer's moments.
type moments struct {
	*trainer
	at *run.Progress
}

func (p moments) Save(s *checkpoint.State) error {
	s.Tensors = append(s.Tensors, p.optim.State()...)
	return nil
}

func (p moments) Check(s *checkpoint.State) error { return p.optim.Check(s.Tensors) }

func (p moments) Load(s *checkpoint.State) error { return p.optim.Restore(p.at.Updates, s.Tensors) }

// chosen is the part of a checkpoint that has the best weights so far by validation.
type chosen struct {
	*trainer
	at *run.Progress
}

// bestPrefix begins the names of their tensors.
const bestPrefix = "best."

func (p chosen) Save(s *checkpoint.State) error {
	for _, w := range p.best {
		w.Name = bestPrefix + w.Name
		s.Tensors = append(s.Tensors, w)
	}
	return nil
}

func (p chosen) Check(s *checkpoint.State) (err error) {
	if p.at.HasBest {
		_, err = p.model.Find(s.Tensors, bestPrefix)
	}
	return err
}

func (p chosen) Load(s *checkpoint.State) (err error) {
	if p.at.HasBest {
		p.best, err = p.model.Find(s.Tensors, bestPrefix)
	}
	return err
}

func saveJSON(s *checkpoint.State, key string, v any) error {
	text, err := json.Marshal(v)
	s.Meta[key] = string(text)
	return err
}
