package train

import (
	"fmt"
	"strconv"

	"github.com/gnnstore/gnnstore/train/optim"
)

// What Epochs of Auto makes. A network on few labels has some steps an epoch, or one: Cora under 200 updates of --lr 0.003 is
// learnt, and under 10 is not.
const (
	autoUpdates  = 500  // at least
	autoMost     = 5000 // updates at most, or
	autoEpochs   = 50   // so many epochs where these are more
	autoPatience = 20   // epochs without a better validation, which end it
	autoFixed    = 10   // epochs at least, where no validation ends it
)

// AutoEpochs is what Options.Epochs of Auto comes to on a dataset. A run that is resumed keeps it.
type AutoEpochs struct {
	Updates int `json:"updates"`      // that Least comes to, at least
	Steps   int `json:"steps"`        // of an epoch
	Least   int `json:"least_epochs"` // before which Patience ends nothing
	Most    int `json:"most_epochs"`
	// Patience is how many evaluations without a better one end the run; 0: it makes Most epochs.
	Patience int    `json:"patience"`
	Reason   string `json:"reason"`          // a line
	Ended    string `json:"ended,omitempty"` // why it ended; a line
}

// decideEpochs says when a run of o ends that has so many steps an epoch; validated is what validation measures, empty without
// validation nodes. It is nil where o says how many epochs.
func (o Options) decideEpochs(steps int, validated string) *AutoEpochs {
	if o.Epochs != Auto {
		return nil
	}
	up := func(n, by int) int { return (n + by - 1) / by }
	least := up(autoUpdates, steps)
	a := &AutoEpochs{Updates: autoUpdates, Steps: steps, Least: least, Most: max(up(autoMost, steps), autoEpochs), Patience: o.Patience}
	begun := fmt.Sprintf("epochs auto: %d updates are %s of %s", autoUpdates, counted(least, "epoch"), counted(steps, "step"))
	why := ""
	switch {
	case validated == "":
		why = "without validation nodes it ends there"
	case o.Patience == 0:
		why = "with --patience 0 it ends there"
	case o.Schedule.Kind == optim.Cosine:
		why = "--schedule cosine ends there"
	case o.Patience == Auto:
		a.Patience = up(autoPatience, o.EvalEvery)
		a.Reason = fmt.Sprintf("%s; then until %s without a better valid %s, %s at most", begun,
			counted(a.Patience*o.EvalEvery, "epoch"), validated, counted(a.Most, "epoch"))
		return a
	default:
		a.Least = 0
		a.Reason = fmt.Sprintf("epochs auto: until %s without a better valid %s, as --patience says, %s at most",
			counted(o.Patience, "evaluation"), validated, counted(a.Most, "epoch"))
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

// counted is "1 epoch" or "2 epochs".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// EpochsText is how many epochs a run of o makes, as in "10", or "50+" where it may go on after them; a is what Auto came to.
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

// mostEpochs is how many epochs the run makes where nothing ends it before.
func (t *trainer) mostEpochs() int {
	if t.auto != nil {
		return t.auto.Most
	}
	return t.Epochs
}

// expectedEpochs is how many it makes where no evaluation to come is better than those so far.
func (t *trainer) expectedEpochs() int {
	if t.auto == nil || t.auto.Patience == 0 {
		return t.mostEpochs()
	}
	n := t.auto.Least
	if best := t.result.Best.Epoch; best > 0 {
		n = max(n, best+t.auto.Patience*t.EvalEvery)
	}
	return max(min(n, t.auto.Most), len(t.result.Epochs))
}

// enough tells whether the run ends before mostEpochs. It goes by what a checkpoint has.
func (t *trainer) enough() bool {
	if t.auto == nil {
		return t.Patience > 0 && t.worse >= t.Patience
	}
	n := len(t.result.Epochs)
	if t.auto.Patience == 0 || n < t.auto.Least {
		return false
	}
	return t.worse >= t.auto.Patience || t.unmeasured(n)
}

// unmeasured tells, after n epochs, that validation has no value to wait for, as ROC-AUC has none on nodes of one class.
func (t *trainer) unmeasured(n int) bool {
	return t.result.Best.Epoch == 0 && n >= t.EvalEvery && n*t.auto.Steps >= t.auto.Updates
}

// ended is t.auto with why the run ended.
func (t *trainer) ended() *AutoEpochs {
	if t.auto == nil {
		return nil
	}
	a := *t.auto
	n := len(t.result.Epochs)
	why := "which is what " + counted(a.Updates, "update") + " take; --epochs N makes more"
	switch {
	case a.Patience == 0:
	case t.worse >= a.Patience:
		why = fmt.Sprintf("%s without a better valid %s than that of epoch %d", counted(n-t.result.Best.Epoch, "epoch"),
			t.task.kind, t.result.Best.Epoch)
	case n < a.Most:
		why = fmt.Sprintf("valid %s has no value to wait for", t.task.kind)
	default:
		why = "the most that it makes; --epochs N makes more"
	}
	a.Ended = fmt.Sprintf("epochs auto: ended after %s, %s: %s", counted(n, "epoch"), counted(t.optim.Steps(), "update"), why)
	return &a
}

// Covers tells whether a run that has finished with r has made the epochs that o asks for; what else o says is the same.
func (r *Result) Covers(o Options) bool {
	switch {
	case r.Status == StoppedEarly: // and --patience may not change
		return true
	case o.Epochs == Auto:
		return r.Options.Epochs == Auto
	}
	return len(r.Epochs) >= o.Epochs
}
