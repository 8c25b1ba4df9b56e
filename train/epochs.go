package train

import (
	"github.com/gnnstore/gnnstore/train/run"
)

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
func (t *trainer) ended() *run.AutoEpochs {
	if t.auto == nil {
		return nil
	}
	a := t.auto.End(len(t.result.Epochs), t.optim.Steps(), t.result.Best.Epoch, t.worse, string(t.task.Kind()))
	a.Ended = t.text(a.Ended)
	return a
}
