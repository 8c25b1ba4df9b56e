package pipeline

import (
	"sync/atomic"
	"time"
)

// Stage names.
const (
	Sample = "sample"
	Load   = "load"
	Gather = "gather"
	State  = "state" // Gather, where it is more of it than all else
	Step   = "step"
	Write  = "write"
)

// Stats counts the seconds of all Runs in which each stage was at work.
type Stats struct {
	Sample float64 `json:"sample"`          // drawing groups, neighbour lists read from disk included
	Plan   float64 `json:"plan"`            // deciding what is read and kept
	Load   float64 `json:"load"`            // reading the rows of windows
	Gather float64 `json:"gather"`          // copying the rows of steps, and reading those that no window did
	State  float64 `json:"state,omitempty"` // of Gather, rows that steps rewrite
	Step   float64 `json:"step"`            // in use
	Write  float64 `json:"write,omitempty"` // in writers
	Wait   float64 `json:"wait"`            // in which use had no batch
	// StateWait is the time that gathering waited for earlier steps to be written back, with all
	// other rows of its step copied. The time that use waited for it is part of Wait.
	StateWait float64 `json:"state_wait,omitempty"`
	Run       float64 `json:"run"` // in Run, which the stages share
	// Samplers is the number of batches that were drawn at once.
	Samplers int `json:"samplers"`
}

// Limiting names the stage that was busy for the largest share of the time, which is the one that
// the others wait for; it is empty where nothing ran. Drawing and planning are one stage.
func (s Stats) Limiting() string {
	busiest, share := "", 0.0
	for _, stage := range []struct {
		name string
		busy float64
	}{{Step, s.Step}, {Gather, s.Gather}, {Load, s.Load}, {Sample, s.Sample + s.Plan}, {Write, s.Write}} {
		if stage.busy > share {
			busiest, share = stage.name, stage.busy
		}
	}
	if busiest == Gather && s.State > s.Gather/2 {
		return State
	}
	return busiest
}

// Add returns the sum of two counts of one pipeline's work.
func (s Stats) Add(t Stats) Stats {
	return Stats{
		Sample: s.Sample + t.Sample, Plan: s.Plan + t.Plan, Load: s.Load + t.Load, Gather: s.Gather + t.Gather,
		State: s.State + t.State, Write: s.Write + t.Write, Step: s.Step + t.Step,
		Wait: s.Wait + t.Wait, StateWait: s.StateWait + t.StateWait, Run: s.Run + t.Run, Samplers: max(s.Samplers, t.Samplers),
	}
}

// Sub returns what was counted since earlier.
func (s Stats) Sub(earlier Stats) Stats {
	return Stats{
		Sample: s.Sample - earlier.Sample, Plan: s.Plan - earlier.Plan, Load: s.Load - earlier.Load, Gather: s.Gather - earlier.Gather,
		State: s.State - earlier.State, Write: s.Write - earlier.Write, Step: s.Step - earlier.Step,
		Wait: s.Wait - earlier.Wait, StateWait: s.StateWait - earlier.StateWait, Run: s.Run - earlier.Run, Samplers: s.Samplers,
	}
}

// clock counts nanoseconds.
type clock struct {
	load, gather, rewritten, use, write, wait, stateWait, running atomic.Int64
}

// Stats may be called at any time. A Run counts when it ends, its stages as they go.
func (p *Pipeline) Stats() Stats {
	seconds := func(n *atomic.Int64) float64 { return time.Duration(n.Load()).Seconds() }
	drawing, deciding := p.Planner.Worked()
	return Stats{
		Sample: drawing.Seconds(), Plan: deciding.Seconds(), Load: seconds(&p.clock.load), Gather: seconds(&p.clock.gather),
		State: seconds(&p.clock.rewritten), Write: seconds(&p.clock.write), Step: seconds(&p.clock.use),
		Wait: seconds(&p.clock.wait), StateWait: seconds(&p.clock.stateWait), Run: seconds(&p.clock.running), Samplers: p.Planner.Parallel,
	}
}
