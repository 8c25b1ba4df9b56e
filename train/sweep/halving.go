package sweep

import (
	"cmp"
	"fmt"
	"slices"
)

// Halving configures successive halving (Jamieson and Talwalkar 2016): all settings train for some
// epochs, the best of them train further, and so on.
type Halving struct {
	Eta       int // one in Eta settings goes on; 0: 3
	MinEpochs int // of the first rung; 0: by the number of rungs
	Rungs     int // 0: by MinEpochs, or else by the number of settings
}

// Rung is a step of halving: Settings settings train up to Epochs epochs.
type Rung struct {
	Epochs   int `json:"epochs"`
	Settings int `json:"settings"`
}

const (
	defaultEta = 3
	mostRungs  = 64 // with eta 2, so many rungs leave one setting of any number
)

func (h Halving) validate() error {
	switch {
	case h.Eta != 0 && (h.Eta < 2 || h.Eta > MostRuns):
		return fmt.Errorf("eta %d: one in eta settings goes on; give 2 to %d", h.Eta, MostRuns)
	case h.MinEpochs < 0:
		return fmt.Errorf("min_epochs %d: give at least 1", h.MinEpochs)
	case h.Rungs < 0 || h.Rungs > mostRungs:
		return fmt.Errorf("rungs %d: give 1 to %d", h.Rungs, mostRungs)
	}
	return nil
}

func (h Halving) eta() int { return cmp.Or(h.Eta, defaultEta) }

// Ladder returns the rungs for a number of settings. The last rung ends after epochs. Each rung
// ends with an evaluation, and there are every epochs between evaluations. Once one setting is
// left, it trains to the end.
func (h Halving) Ladder(settings, epochs, every int) ([]Rung, error) {
	eta := h.eta()
	every = max(every, 1)
	if h.MinEpochs >= epochs && h.MinEpochs > 0 {
		return nil, fmt.Errorf("min_epochs %d: give less than epochs, which is %d", h.MinEpochs, epochs)
	}
	rungs := h.Rungs
	if rungs == 0 && h.MinEpochs == 0 {
		for n := settings; n > 0; n /= eta {
			rungs++
		}
	}
	least := h.MinEpochs
	if least == 0 {
		least = epochs
		for range rungs - 1 {
			least = max(least/eta, 1)
		}
	}
	var ladder []Rung
	for n, e := settings, least; ; n, e = max(n/eta, 1), min(e, epochs/eta+1)*eta {
		at := e - e%every // the last evaluation by then
		if at < e {
			at += every
		}
		if n == 1 || at >= epochs || rungs > 0 && len(ladder) == rungs-1 {
			return append(ladder, Rung{epochs, n}), nil
		}
		if k := len(ladder); k > 0 && ladder[k-1].Epochs == at { // so few epochs that two rungs would be alike
			ladder[k-1].Settings = max(ladder[k-1].Settings, n)
			continue
		}
		ladder = append(ladder, Rung{at, n})
	}
}

// Score is the validation of a setting.
type Score struct {
	Value float64
	Whole bool // no run of the setting failed
	None  bool // all runs failed, so there is no value
}

// best returns the indices of the keep best scores, the best first. Settings with a failed run come
// after all others. Of equal settings, the first one wins. Settings without a value are left out.
func best(scores []Score, keep int, better func(a, b float64) bool) []int {
	var order []int
	for i, s := range scores {
		if !s.None {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := scores[i], scores[j]
		switch {
		case a.Whole != b.Whole && a.Whole, a.Whole == b.Whole && better(a.Value, b.Value):
			return -1
		case a.Whole != b.Whole, better(b.Value, a.Value):
			return 1
		}
		return 0
	})
	return order[:min(keep, len(order))]
}
