package sweep

import (
	"context"
	"fmt"
	"strconv"

	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/run"
)

// Sweep tries the settings of a grid.
type Sweep struct {
	Settings []Setting
	Seed     uint64 // the first of Seeds seeds
	Seeds    int
	Ladder   []Rung // nil: each run trains to its end

	// Train trains a run up to Trial.Epochs epochs, from its newest checkpoint if it has one. It
	// returns at once if the run has made these epochs. If the run fails, Train sets Ran.Failed. An
	// error ends the sweep.
	Train func(ctx context.Context, t Trial) (Ran, error)
	// Tell is called after each run, with the figures up to the rung's epochs; nil: no call.
	Tell func(t Trial, r *Ran)
}

// Trial is a run of a sweep, up to a number of epochs.
type Trial struct {
	Setting
	Seed   uint64
	Rung   int  // from 1
	Epochs int  // 0: as the options say
	Test   bool // measure the test part too
}

// Name returns the name of the run's directory. last is the number of the last setting.
func (t Trial) Name(last int) string {
	width := len(strconv.Itoa(last))
	return fmt.Sprintf("trial-%0*d-seed-%d", width, t.Number, t.Seed)
}

// Ran is the result of a run of a sweep so far.
type Ran struct {
	Seed   uint64      `json:"seed"`
	Run    string      `json:"run"` // directory
	Failed string      `json:"failed,omitempty"`
	Result *run.Result `json:"-"` // nil: it failed before it began
	// Valid is the best validation in the first Epochs epochs, and Seconds the time of their
	// training. Test is set in the runs of the chosen setting alone.
	Valid   *float64 `json:"valid"`
	Test    *float64 `json:"test,omitempty"`
	Epochs  int      `json:"epochs"`
	Seconds float64  `json:"seconds"`
	Params  string   `json:"params_xxh3,omitempty"`
}

// Tried is a setting with its runs, by seed.
type Tried struct {
	Setting
	Runs []Ran
	Rung int // the last one it trained in, from 1
	// Valid and Test are over the runs that did not fail; nil: all failed. Only the chosen setting
	// has Test.
	Valid, Test *metric.Spread
}

// Failures counts the runs that failed.
func (t *Tried) Failures() (n int) {
	for _, r := range t.Runs {
		if r.Failed != "" {
			n++
		}
	}
	return n
}

// Outcome has the result of a sweep.
type Outcome struct {
	Metric metric.Kind
	Tried  []*Tried // by number
	Chosen *Tried   // nil: all runs failed
}

// Do trains the runs, and measures the test part for the setting that validation chose. Of settings
// with the same validation it chooses the first. Settings with a failed run come after all other
// settings. If Train returns an error, the outcome has the runs so far.
func (s *Sweep) Do(ctx context.Context) (*Outcome, error) {
	out := &Outcome{}
	for _, one := range s.Settings {
		out.Tried = append(out.Tried, &Tried{Setting: one, Runs: make([]Ran, s.Seeds)})
	}
	ladder := s.Ladder
	if ladder == nil {
		ladder = []Rung{{0, len(s.Settings)}}
	}
	on := out.Tried
	for i, rung := range ladder {
		on = out.goOn(on, rung.Settings)
		for _, t := range on {
			t.Rung = i + 1
			if err := s.try(ctx, out, t, rung.Epochs); err != nil {
				return out, err
			}
		}
	}
	if on = out.goOn(on, 1); len(on) == 0 || on[0].Valid == nil {
		return out, nil
	}
	return out, s.test(ctx, out, on[0], ladder[len(ladder)-1].Epochs)
}

// goOn returns the keep best settings, in the order of their numbers. Before the first rung it
// returns all settings.
func (out *Outcome) goOn(on []*Tried, keep int) (left []*Tried) {
	if len(on) == 0 || on[0].Rung == 0 {
		return on
	}
	scores := make([]Score, len(on))
	for i, t := range on {
		scores[i] = Score{None: t.Valid == nil, Whole: t.Failures() == 0}
		if t.Valid != nil {
			scores[i].Value = t.Valid.Mean
		}
	}
	stays := make([]bool, len(on))
	for _, i := range best(scores, keep, out.Metric.Better) {
		stays[i] = true
	}
	for i, t := range on {
		if stays[i] {
			left = append(left, t)
		}
	}
	return left
}

// try trains the runs of a setting up to epochs.
func (s *Sweep) try(ctx context.Context, out *Outcome, t *Tried, epochs int) error {
	var values []float64
	for k := range t.Runs {
		r := &t.Runs[k]
		trial := Trial{Setting: t.Setting, Seed: s.Seed + uint64(k), Rung: t.Rung, Epochs: epochs}
		if r.Failed != "" { // in an earlier rung
			continue
		}
		ran, err := s.Train(ctx, trial)
		if err != nil {
			return err
		}
		*r = ran
		r.Seed = trial.Seed
		r.take(epochs)
		if r.Result != nil && r.Failed == "" {
			if r.Valid == nil {
				return fmt.Errorf("run %s: nothing was validated, and validation chooses the setting; the dataset needs a validation part that "+
					"{metric} can measure", r.Run)
			}
			out.Metric = r.Result.Best.Metric
			values = append(values, *r.Valid)
		}
		if s.Tell != nil {
			s.Tell(trial, r)
		}
	}
	t.Valid = metric.SpreadOf(values)
	return nil
}

// take sets the figures from the first epochs of the run; 0: from all. It clears Failed if the run
// failed after these epochs: before the sweep was resumed, the run may have trained further.
func (r *Ran) take(epochs int) {
	if r.Result == nil {
		return
	}
	made := r.Result.Epochs
	if epochs > 0 && len(made) >= epochs {
		made, r.Failed = made[:epochs], ""
	}
	r.Valid, r.Seconds, r.Epochs = nil, 0, len(made)
	for _, e := range made {
		r.Seconds += e.Seconds
		if v := e.ValidAcc; v != nil && (r.Valid == nil || e.Metric.Better(*v, *r.Valid)) {
			r.Valid = v
		}
	}
	r.Params = r.Result.ParamsXXH3
}

// test measures the test part by the runs of the chosen setting.
func (s *Sweep) test(ctx context.Context, out *Outcome, t *Tried, epochs int) error {
	var values []float64
	for k := range t.Runs {
		r := &t.Runs[k]
		if r.Failed != "" {
			continue
		}
		ran, err := s.Train(ctx, Trial{Setting: t.Setting, Seed: r.Seed, Rung: t.Rung, Epochs: epochs, Test: true})
		switch {
		case err != nil:
			return err
		case ran.Failed != "":
			return fmt.Errorf("run %s: %s", ran.Run, ran.Failed)
		}
		r.Result, r.Test = ran.Result, ran.Result.Best.TestAcc
		if r.Test != nil {
			values = append(values, *r.Test)
		}
	}
	t.Test = metric.SpreadOf(values)
	out.Chosen = t
	return nil
}

// Alike returns pairs of settings whose runs by the first seed have the same weights and figures.
// The options in which such settings differ have no effect on them.
func (out *Outcome) Alike() (pairs [][2]*Tried) {
	first := map[string]*Tried{}
	for _, t := range out.Tried {
		r := t.Runs[0]
		if r.Params == "" || r.Failed != "" || r.Valid == nil {
			continue
		}
		key := fmt.Sprint(r.Params, r.Epochs, *r.Valid)
		if before := first[key]; before != nil {
			pairs = append(pairs, [2]*Tried{before, t})
		} else {
			first[key] = t
		}
	}
	return pairs
}
