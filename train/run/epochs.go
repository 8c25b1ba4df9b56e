package run

import (
	"fmt"
	"strconv"

	"github.com/gnnstore/gnnstore/train/optim"
)

// Limits of Epochs Auto. On few labels an epoch has some steps, or one: 200 updates at a rate of
// 0.003 learn Cora, and 10 do not.
const (
	autoUpdates  = 500  // at least
	autoMost     = 5000 // updates at most, or
	autoEpochs   = 50   // so many epochs where these are more
	autoPatience = 20   // epochs without a better validation, which end it
	autoFixed    = 10   // epochs at least, where no validation ends it

	// An epoch of more than autoLong steps is cut into rounds of autoUpdates steps, or into
	// autoRounds rounds if these are longer. Epochs of ogbn-arxiv (91 steps) and papers100M (1208)
	// stay as they are.
	autoLong   = 2000
	autoRounds = 20
)

// Round returns the steps of an epoch, given the steps of a pass over all examples. Passes of more
// than autoLong steps are cut into rounds, so that validation can end the run sooner. That needs
// Epochs and Patience auto, validation after each epoch, a constant rate, and nothing that the user
// counts in epochs; else an epoch is a pass.
func (o Options) Round(steps int, validated bool) int {
	byUpdates := o.Epochs == Auto && o.Patience == Auto && o.EvalEvery == 1 && o.Left["epoch_steps"] && o.Left["eval_every"] && validated &&
		(o.Schedule.Kind == "" || o.Schedule.Kind == optim.Constant)
	if !byUpdates || steps <= autoLong {
		return steps
	}
	return max(autoUpdates, (steps+autoRounds-1)/autoRounds)
}

// AutoEpochs is the decision on Options.Epochs Auto for a dataset. A resumed run keeps it.
type AutoEpochs struct {
	Updates int `json:"updates"`      // the least number of updates
	Steps   int `json:"steps"`        // of an epoch
	Least   int `json:"least_epochs"` // before which Patience ends nothing
	Most    int `json:"most_epochs"`
	// Patience evaluations without a better one end the run; 0: it makes Most epochs.
	Patience int    `json:"patience"`
	Reason   string `json:"reason"`          // a line
	Ended    string `json:"ended,omitempty"` // why it ended; a line
	// Whole is the number of steps through all examples, if Round cut the epoch.
	Whole int `json:"whole_steps,omitempty"`
}

// DecideEpochs decides when a run of o with steps a epoch ends. validated names the metric of
// validation, or is empty without validation nodes. whole is the number of steps through all
// examples, if Round cut the epoch. It returns nil if o gives the number of epochs.
func (o Options) DecideEpochs(steps, whole int, validated string) *AutoEpochs {
	if o.Epochs != Auto {
		return nil
	}
	up := func(n, by int) int { return (n + by - 1) / by }
	least := up(autoUpdates, steps)
	a := &AutoEpochs{Updates: autoUpdates, Steps: steps, Least: least, Most: max(up(autoMost, steps), autoEpochs), Patience: o.Patience}
	begun := fmt.Sprintf("epochs auto: %d updates are %s of %s", autoUpdates, Counted(least, "epoch"), Counted(steps, "step"))
	if whole > steps {
		a.Most, a.Whole = max(up(autoMost, steps), up(autoEpochs*whole, steps)), whole
		begun = fmt.Sprintf("epochs auto: all examples are %d steps, so an epoch ends, and is validated, after %d", whole, steps)
	}
	why := ""
	switch {
	case validated == "":
		why = "without validation nodes it ends there"
	case o.Patience == 0:
		why = "with {patience} 0 it ends there"
	case o.Schedule.Kind == optim.Cosine:
		why = "{schedule} cosine ends there"
	case o.Patience == Auto:
		a.Patience = up(autoPatience, o.EvalEvery)
		a.Reason = fmt.Sprintf("%s; then until %s without a better valid %s, %s at most", begun,
			Counted(a.Patience*o.EvalEvery, "epoch"), validated, Counted(a.Most, "epoch"))
		return a
	default:
		a.Least = 0
		a.Reason = fmt.Sprintf("epochs auto: until %s without a better valid %s, as {patience} says, %s at most",
			Counted(o.Patience, "evaluation"), validated, Counted(a.Most, "epoch"))
		return a
	}
	a.Least, a.Most, a.Patience = 0, max(least, autoFixed), 0
	if validated != "" {
		a.Patience = max(o.Patience, 0)
	}
	if a.Most > least {
		begun += fmt.Sprintf(", and %d epochs are the least", autoFixed)
	}
	a.Reason = begun + "; " + why
	return a
}

// Counted returns "1 epoch" or "2 epochs".
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// EpochsText returns the number of epochs of a run of o as text: "10", or "50+" if it may go on
// after them. a is the decision for Auto.
func EpochsText(o Options, a *AutoEpochs) string {
	switch {
	case a == nil && o.Epochs == Auto: // not decided yet
		return "auto"
	case a == nil:
		return strconv.Itoa(o.Epochs)
	case a.Patience > 0 && a.Least > 0:
		return strconv.Itoa(a.Least) + "+"
	}
	return strconv.Itoa(a.Most)
}

// ended returns a with the reason why a run ended after epochs and updates. best is the number
// of the best epoch, or 0 without any. worse evaluations of measured followed it.
func (a AutoEpochs) ended(epochs, updates, best, worse int, measured string) *AutoEpochs {
	why := "which is what " + Counted(a.Updates, "update") + " take; {epochs} N makes more"
	switch {
	case a.Patience == 0:
	case worse >= a.Patience:
		why = fmt.Sprintf("%s without a better valid %s than that of epoch %d", Counted(epochs-best, "epoch"), measured, best)
	case epochs < a.Most:
		why = fmt.Sprintf("valid %s has no value to wait for", measured)
	default:
		why = "the most that it makes; {epochs} N makes more"
	}
	a.Ended = fmt.Sprintf("epochs auto: ended after %s, %s: %s", Counted(epochs, "epoch"), Counted(updates, "update"), why)
	return &a
}

// Ending decides when a run ends: after the given number of epochs or the number that Auto comes
// to, or earlier, when Patience is spent.
type Ending struct {
	Auto  *AutoEpochs // nil where Options.Epochs is a number
	Worse int         // evaluations since the best epoch

	epochs, patience, every int
	text                    func(string) string
}

// Ending returns the Ending of a run of o: see DecideEpochs for the arguments. text rewrites texts
// for the record, as Hooks.Text.
func (o Options) Ending(steps, whole int, validated string, text func(string) string) Ending {
	e := Ending{Auto: o.DecideEpochs(steps, whole, validated), epochs: o.Epochs, patience: o.Patience, every: o.EvalEvery, text: text}
	if e.Auto != nil {
		e.Auto.Reason = text(e.Auto.Reason)
	}
	return e
}

// Most returns the number of epochs that the run makes if nothing ends it before.
func (e *Ending) Most() int {
	if e.Auto != nil {
		return e.Auto.Most
	}
	return e.epochs
}

// Expected returns the number of epochs that the run makes if no later evaluation beats those in r.
func (e *Ending) Expected(r *Result) int {
	if e.Auto == nil || e.Auto.Patience == 0 {
		return e.Most()
	}
	n := e.Auto.Least
	if best := r.Best.Epoch; best > 0 {
		n = max(n, best+e.Auto.Patience*e.every)
	}
	return max(min(n, e.Auto.Most), len(r.Epochs))
}

// evaluates reports whether an evaluation follows epoch n.
func (e *Ending) evaluates(n int) bool { return n%e.every == 0 || n == e.Most() }

// Measured takes the validation of an epoch, and reports whether it is the best so far. If it is,
// it becomes r.Best.
func (e *Ending) Measured(r *Result, epoch *Epoch) bool {
	if best := r.Best.ValidAcc; best != nil && !epoch.Metric.Better(*epoch.ValidAcc, *best) {
		e.Worse++
		return false
	}
	e.Worse = 0
	r.Best = Best{Metric: epoch.Metric, Epoch: epoch.Epoch, ValidAcc: epoch.ValidAcc, TestAcc: epoch.TestAcc}
	return true
}

// enough reports whether the run ends before Most. It uses only values that a checkpoint has.
func (e *Ending) enough(r *Result) bool {
	if e.Auto == nil {
		return e.patience > 0 && e.Worse >= e.patience
	}
	n := len(r.Epochs)
	if e.Auto.Patience == 0 || n < e.Auto.Least {
		return false
	}
	return e.Worse >= e.Auto.Patience || e.unmeasured(r)
}

// unmeasured reports whether validation still gave no value after Auto.Updates updates, as ROC-AUC
// gives none on nodes of one class.
func (e *Ending) unmeasured(r *Result) bool {
	n := len(r.Epochs)
	return r.Best.Epoch == 0 && n >= e.every && n*e.Auto.Steps >= e.Auto.Updates
}

// End sets in r that the run has ended after this many updates, and why.
func (e *Ending) End(r *Result, updates int) {
	r.Status, r.AutoEpochs = Done, nil
	if e.patience > 0 && e.enough(r) && len(r.Epochs) < e.Most() {
		r.Status = StoppedEarly
	}
	if e.Auto != nil {
		r.AutoEpochs = e.Auto.ended(len(r.Epochs), updates, r.Best.Epoch, e.Worse, string(r.Best.Metric))
		r.AutoEpochs.Ended = e.text(r.AutoEpochs.Ended)
	}
}

// Covers reports whether a run that finished with r has made the epochs that o asks for, and the
// test. It assumes that the other options of o are the run's.
func (r *Result) Covers(o Options) bool {
	switch {
	case r.Options.EvalTest == TestNone && o.EvalTest != TestNone:
		return false
	case r.Status == StoppedEarly: // and Patience may not change
		return true
	case o.Epochs == Auto:
		return r.Options.Epochs == Auto
	}
	return len(r.Epochs) >= o.Epochs
}
