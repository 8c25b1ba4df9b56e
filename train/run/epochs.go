package run

import (
	"fmt"
	"strconv"

	"github.com/gnnstore/gnnstore/train/optim"
)

// What Epochs of Auto makes. A network on few labels has some steps an epoch, or one: Cora under 200 updates at a rate of 0.003 is
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

// DecideEpochs says when a run of o ends that has so many steps an epoch; validated is what validation measures, empty without
// validation nodes. It is nil where o says how many epochs.
func (o Options) DecideEpochs(steps int, validated string) *AutoEpochs {
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
		why = "with {patience} 0 it ends there"
	case o.Schedule.Kind == optim.Cosine:
		why = "{schedule} cosine ends there"
	case o.Patience == Auto:
		a.Patience = up(autoPatience, o.EvalEvery)
		a.Reason = fmt.Sprintf("%s; then until %s without a better valid %s, %s at most", begun,
			counted(a.Patience*o.EvalEvery, "epoch"), validated, counted(a.Most, "epoch"))
		return a
	default:
		a.Least = 0
		a.Reason = fmt.Sprintf("epochs auto: until %s without a better valid %s, as {patience} says, %s at most",
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

// End is a with why a run ended after so many epochs and updates: the best epoch was that of number best, 0 if there is none,
// and worse evaluations of what validation measures followed it.
func (a AutoEpochs) End(epochs, updates, best, worse int, measured string) *AutoEpochs {
	why := "which is what " + counted(a.Updates, "update") + " take; {epochs} N makes more"
	switch {
	case a.Patience == 0:
	case worse >= a.Patience:
		why = fmt.Sprintf("%s without a better valid %s than that of epoch %d", counted(epochs-best, "epoch"), measured, best)
	case epochs < a.Most:
		why = fmt.Sprintf("valid %s has no value to wait for", measured)
	default:
		why = "the most that it makes; {epochs} N makes more"
	}
	a.Ended = fmt.Sprintf("epochs auto: ended after %s, %s: %s", counted(epochs, "epoch"), counted(updates, "update"), why)
	return &a
}

// Covers tells whether a run that has finished with r has made the epochs that o asks for; what else o says is the same.
func (r *Result) Covers(o Options) bool {
	switch {
	case r.Status == StoppedEarly: // and Patience may not change
		return true
	case o.Epochs == Auto:
		return r.Options.Epochs == Auto
	}
	return len(r.Epochs) >= o.Epochs
}
