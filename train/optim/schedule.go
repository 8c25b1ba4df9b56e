package optim

import (
	"errors"
	"fmt"
	"math"
)

// ScheduleKind names how the learning rate changes during a run.
type ScheduleKind string

const (
	// Constant is the same rate throughout. It is the default: an empty ScheduleKind means
	// Constant.
	Constant ScheduleKind = "constant"
	// Cosine falls from the base rate along half a cosine, to MinLR after the last step (Loshchilov
	// and Hutter 2017, equation 5, without restarts).
	Cosine ScheduleKind = "cosine"
	// Step multiplies the rate by Gamma every Every epochs, or at each of Milestones.
	Step ScheduleKind = "step"
)

// Schedule sets how the learning rate follows the steps. The zero value is Constant.
type Schedule struct {
	Kind ScheduleKind `json:"schedule"`
	// Warmup is the number of steps at the start, under any kind, in which the rate rises linearly:
	// from 1/Warmup of the scheduled rate in the first step to all of it in the last. Cosine starts
	// to fall after them. Default 0: none.
	Warmup int `json:"warmup"`
	// MinLR is the rate at which Cosine ends. Default 0.
	MinLR float64 `json:"min_lr"`
	// Gamma is the factor of Step. Default 0: a tenth.
	Gamma float64 `json:"lr_gamma"`
	// Step drops the rate either after every Every epochs, or at the start of each epoch in
	// Milestones: ascending, counted from 0.
	Every      int   `json:"lr_every"`
	Milestones []int `json:"lr_milestones,omitempty"`
}

const defaultGamma = 0.1

// Validate reports every problem.
func (s Schedule) Validate() error {
	var errs []error
	fail := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	step := s.Kind == Step
	fail(s.Kind != "" && s.Kind != Constant && s.Kind != Cosine && !step, "{schedule} %s: there are constant, cosine and step", s.Kind)
	fail(s.Warmup < 0, "{warmup} %d: at least 0 steps", s.Warmup)
	fail(!(s.MinLR >= 0 && s.MinLR < 1e6), "{min_lr} %v: at least 0", s.MinLR)
	fail(s.MinLR > 0 && s.Kind != Cosine, "{min_lr} %v: only {schedule} cosine ends there", s.MinLR)
	fail(!(s.Gamma >= 0 && s.Gamma < 1e6), "{lr_gamma} %v: above 0, or 0 for %v", s.Gamma, defaultGamma)
	fail(s.Every < 0, "{lr_every} %d: at least 1 epoch", s.Every)
	fail(!step && (s.Gamma != 0 || s.Every != 0 || len(s.Milestones) > 0), "{lr_gamma}, {lr_every}, {lr_milestones}: only {schedule} step has them")
	fail(step && (s.Every > 0) == (len(s.Milestones) > 0), "{schedule} step: give either {lr_every} or {lr_milestones}")
	for i, m := range s.Milestones {
		if m < 1 || i > 0 && m <= s.Milestones[i-1] {
			fail(true, "{lr_milestones} %v: ascending epochs, from 1", s.Milestones)
			break
		}
	}
	return errors.Join(errs...)
}

// Rate is the learning rate of a step, counted from 0, in a run of total steps, perEpoch an epoch,
// with the base rate base. It depends on these numbers alone: nothing is remembered between steps.
// s is valid.
func (s Schedule) Rate(base float64, step, total, perEpoch int) float64 {
	rate := base
	switch s.Kind {
	case Cosine:
		if done, of := step-s.Warmup, total-s.Warmup; done >= of {
			rate = s.MinLR
		} else if done > 0 {
			rate = s.MinLR + (base-s.MinLR)*(1+math.Cos(math.Pi*float64(done)/float64(of)))/2
		}
	case Step:
		gamma := s.Gamma
		if gamma == 0 {
			gamma = defaultGamma
		}
		rate *= math.Pow(gamma, float64(s.drops(step/max(1, perEpoch))))
	}
	if step < s.Warmup {
		rate *= float64(step+1) / float64(s.Warmup)
	}
	return rate
}

// drops returns how often Step has lowered the rate when this epoch starts. Epochs count from 0.
func (s Schedule) drops(epoch int) int {
	if s.Every > 0 {
		return epoch / s.Every
	}
	n := 0
	for _, m := range s.Milestones {
		if m <= epoch {
			n++
		}
	}
	return n
}
