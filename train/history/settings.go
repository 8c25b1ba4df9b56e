package history

import (
	"errors"

	"github.com/gnnstore/gnnstore/train/sample"
)

// Auto is a setting that Resolve chooses. Rest is a HistoryBytes that takes the memory other parts
// leave. Whoever splits the memory replaces it with a number before calling Slots.
const (
	Auto = -1
	Rest = -2
)

// Settings say how a run uses the hidden rows of earlier steps again. The zero value uses none.
type Settings struct {
	// PGrad is FreshGNN's p_grad: of the nodes of a layer in a step, the share with the smallest
	// gradients whose rows are kept.
	PGrad float64 `json:"p_grad,omitempty"`
	// TStale is t_stale: the most steps from the step that computes a row to one that uses it. Auto
	// is a fifth of an epoch's steps, 200 at most, and 0 in epochs of less than five, which uses
	// none.
	TStale int `json:"t_stale,omitempty"`
	// HistoryStart is the first step, of the run, that keeps rows. Auto is an epoch.
	HistoryStart int `json:"history_start,omitempty"`
	// HistoryLag is K: the gradients of step i are known to the plans of step i + K and later ones.
	// Auto is half of TStale, from 1 to 100.
	HistoryLag int `json:"history_lag,omitempty"`
	// HistoryBytes bounds the rows that are kept, with their index. Auto takes the rows that save
	// more than they take, or 64 MiB if that is more, and at most the nodes that TStale steps meet.
	// Rest takes what other parts of the memory leave.
	HistoryBytes int64 `json:"history_bytes,omitempty"`
}

// Defaults are the settings of a run that asks for history and for no more. FreshGNN has a p_grad
// of 0.9. 0.7 is the largest of 0.5, 0.7 and 0.9 whose loss on Amazon Computers is below 1.5 points
// at the upper end of its 95 % interval (ten seeds).
func Defaults() Settings {
	return Settings{PGrad: 0.7, TStale: Auto, HistoryStart: Auto, HistoryLag: Auto, HistoryBytes: Auto}
}

// Validate reports every setting that no run can follow.
func (s Settings) Validate() error {
	var errs sample.Problems
	fail := errs.If
	fail(!(s.PGrad >= 0 && s.PGrad <= 1), "{p_grad} %v: from 0, which keeps nothing, to 1", s.PGrad)
	fail(s.TStale < Auto, "{t_stale} %d: at least 0, which keeps nothing, or auto", s.TStale)
	fail(s.HistoryStart < Auto, "{history_start} %d: at least 0, or auto", s.HistoryStart)
	fail(s.HistoryLag < 1 && s.HistoryLag != Auto, "{history_lag} %d: at least 1, or auto", s.HistoryLag)
	fail(s.HistoryBytes < Rest, "{history_bytes} %d: at least 0, auto or rest", s.HistoryBytes)
	return errors.Join(errs...)
}

// usualStale is t_stale where an epoch is long: the paper's.
const usualStale = 200

// Resolve is s with numbers in the place of Auto, but for HistoryBytes, in a run whose epochs have
// so many steps.
func (s Settings) Resolve(steps int) Settings {
	if s.TStale == Auto {
		s.TStale = min(usualStale, steps/5)
	}
	if s.HistoryStart == Auto {
		s.HistoryStart = steps
	}
	if s.HistoryLag == Auto {
		s.HistoryLag = max(1, min(s.TStale, usualStale)/2) // of inf gradients would never decide
	}
	return s
}

// Reuses reports whether rows are ever used again. s is resolved.
func (s Settings) Reuses() bool { return s.PGrad > 0 && s.TStale > 0 }
