package pipeline

import (
	"sync/atomic"
	"time"
)

// Stage names.
const (
	Sample = "sample"
	Gather = "gather"
	Step   = "step"
)

// Stats is where the time of all Runs went.
type Stats struct {
	Sample float64 `json:"sample"` // seconds of drawing, summed over the samplers
	Gather float64 `json:"gather"` // seconds of gathering
	Step   float64 `json:"step"`   // seconds in use
	Wait   float64 `json:"wait"`   // seconds in which use had no batch
	Run    float64 `json:"run"`    // seconds in Run, which the stages share
	// Samplers is how many drew at once.
	Samplers int `json:"samplers"`
}

// Limiting names the stage that was busy for the largest share of the time, which is the one that the others wait for;
// it is empty where nothing ran.
func (s Stats) Limiting() string {
	busiest, share := "", 0.0
	for _, stage := range []struct {
		name string
		busy float64
	}{{Step, s.Step}, {Gather, s.Gather}, {Sample, s.Sample / float64(max(s.Samplers, 1))}} {
		if stage.busy > share {
			busiest, share = stage.name, stage.busy
		}
	}
	return busiest
}

// Add is the sum of two counts of one pipeline's work.
func (s Stats) Add(t Stats) Stats {
	return Stats{
		Sample: s.Sample + t.Sample, Gather: s.Gather + t.Gather, Step: s.Step + t.Step, Wait: s.Wait + t.Wait,
		Run: s.Run + t.Run, Samplers: max(s.Samplers, t.Samplers),
	}
}

// Sub is what was counted since earlier.
func (s Stats) Sub(earlier Stats) Stats {
	return Stats{
		Sample: s.Sample - earlier.Sample, Gather: s.Gather - earlier.Gather, Step: s.Step - earlier.Step,
		Wait: s.Wait - earlier.Wait, Run: s.Run - earlier.Run, Samplers: s.Samplers,
	}
}

// clock counts nanoseconds.
type clock struct{ sample, gather, use, wait, running atomic.Int64 }

// Stats may be called at any time. A Run counts when it ends, its stages as they go.
func (p *Pipeline) Stats() Stats {
	seconds := func(n *atomic.Int64) float64 { return time.Duration(n.Load()).Seconds() }
	return Stats{
		Sample: seconds(&p.clock.sample), Gather: seconds(&p.clock.gather), Step: seconds(&p.clock.use),
		Wait: seconds(&p.clock.wait), Run: seconds(&p.clock.running), Samplers: len(p.Samplers),
	}
}
