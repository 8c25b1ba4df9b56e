package staleness

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// paper is the stages of fifteen runs in percent of a serial step (MSPipe, tables 1, 5 and 6), and
// what follows from them: the least staleness and steps in flight of full speed, and that speed
// over the serial loop's.
var paper = []struct {
	run            string
	stage          [Stages]float64
	best, inFlight int
	ideal          float64
}{
	{"TGN REDDIT", [Stages]float64{9.5, 0, 12.6, 5.7, 46.9, 25.3}, 2, 3, 2.13},
	{"TGN WIKI", [Stages]float64{6.6, 0, 5.8, 5.8, 51.5, 30.3}, 2, 2, 1.94},
	{"TGN MOOC", [Stages]float64{9.7, 0, 3.0, 2.5, 53.1, 31.7}, 2, 2, 1.88},
	{"TGN LASTFM", [Stages]float64{11.5, 0, 9.1, 8.5, 43.0, 26.8}, 2, 3, 2.30},
	{"TGN GDELT", [Stages]float64{17.6, 0, 12.8, 10.5, 37.5, 21.6}, 2, 3, 2.67},
	{"JODIE REDDIT", [Stages]float64{4.14, 0, 8.05, 7.36, 50.11, 30.34}, 2, 2, 2.00},
	{"JODIE WIKI", [Stages]float64{2.20, 0, 1.10, 4.95, 46.70, 45.05}, 3, 3, 2.14},
	{"JODIE MOOC", [Stages]float64{3.41, 0, 1.02, 5.80, 51.05, 38.71}, 2, 2, 1.96},
	{"JODIE LASTFM", [Stages]float64{4.29, 0, 1.14, 6.19, 44.95, 43.43}, 3, 3, 2.22},
	{"JODIE GDELT", [Stages]float64{3.25, 0, 8.56, 9.34, 38.75, 40.11}, 3, 3, 2.49},
	{"APAN REDDIT", [Stages]float64{12.94, 0, 5.75, 15.18, 39.14, 27.00}, 3, 3, 2.56},
	{"APAN WIKI", [Stages]float64{6.52, 0, 0.87, 9.13, 42.61, 40.87}, 3, 3, 2.35},
	{"APAN MOOC", [Stages]float64{10.60, 0, 0.83, 8.32, 45.11, 35.14}, 2, 3, 2.22},
	{"APAN LASTFM", [Stages]float64{11.12, 0, 1.02, 12.26, 41.77, 33.83}, 3, 3, 2.39},
	{"APAN GDELT", [Stages]float64{14.34, 0, 3.25, 20.31, 23.95, 38.15}, 3, 3, 2.62},
}

func TestPaper(t *testing.T) {
	for _, p := range paper {
		c := Costs{Stage: p.stage}
		require.Equal(t, p.best, c.Within(0), p.run)
		require.Equal(t, p.inFlight, c.InFlight(), p.run)
		require.InDelta(t, p.ideal, c.Serial()/c.Limit(), 0.0051, p.run)
		require.Equal(t, c.Serial()/c.Limit(), c.Speedup(c.Within(0)), p.run)
	}
}

// random returns the paper's costs and many others. Some of these publish early.
func random() (all []Costs) {
	for _, p := range paper {
		all = append(all, Costs{Stage: p.stage})
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 300 {
		var c Costs
		for j := range c.Stage {
			c.Stage[j] = math.Exp(2 * rng.NormFloat64())
		}
		if i%3 == 0 {
			c.Early, c.Forward, c.Publication = true, rng.Float64()*c.Stage[Train], rng.Float64()*c.Stage[Publish]
		}
		all = append(all, c)
	}
	return all
}

// period is the mean of a step's time over the second half of a schedule, in whole cycles of 1 to 4
// steps.
func period(s []step) float64 {
	n := len(s)
	return (s[n-1].End[Publish] - s[n-1-n/24*12].End[Publish]) / float64(n/24*12)
}

// inFlight returns the schedule of n steps without any wait for state, with at most p under way: a
// reference loop.
func inFlight(c Costs, n, p int) []step {
	s := make([]step, n)
	for i := range s {
		var last step
		start := 0.0
		if i > 0 {
			last = s[i-1]
		}
		if i >= p {
			start = s[i-p].End[Publish]
		}
		s[i].run(c, Sample, max(start, last.End[Sample]))
		s[i].run(c, Page, max(s[i].End[Sample], last.End[Page]))
		s[i].run(c, Features, max(s[i].End[Page], last.End[State]))
		s[i].run(c, State, s[i].End[Features])
		s[i].run(c, Train, max(s[i].End[State], last.End[Train]))
		s[i].run(c, Publish, max(s[i].End[Train], last.End[Publish]))
	}
	return s
}

// TestPeriods: schedules that are followed step by step have the period of the closed form.
func TestPeriods(t *testing.T) {
	for _, c := range random() {
		for k := 1; k <= 4; k++ {
			require.InEpsilon(t, c.Period(k), period(c.constant(720, k)), 1e-9, "%+v, staleness %d", c, k)
			require.InEpsilon(t, max(c.Limit(), c.Serial()/float64(k)), period(inFlight(c, 720, k)), 1e-9, "%+v, %d in flight", c, k)
		}
		best := c.Within(0)
		require.Equal(t, c.Limit(), c.Period(best), "%+v", c)
		near := c.Within(0.1)
		require.LessOrEqual(t, near, best)
		require.LessOrEqual(t, c.Period(near), 1.1*c.Limit()*(1+1e-9))
		require.True(t, near == 1 || c.Period(near-1) > 1.1*c.Limit(), "%+v: a smaller one is near enough", c)
		require.True(t, best == 1 || c.Period(best-1) > c.Limit(), "%+v: a smaller one is as fast", c)
	}
}

func TestEarlyPublication(t *testing.T) {
	late := Costs{Stage: [Stages]float64{1, 0, 1, 1, 4, 2}}
	early := late
	early.Early, early.Forward = true, 1
	require.Equal(t, 2, late.Within(0))
	require.Equal(t, 1, early.Within(0))
	s := early.constant(20, 1)
	for i := 1; i < len(s); i++ {
		require.Equal(t, s[i-1].Start[Train]+1, s[i].Start[State])
		require.Equal(t, s[i-1].End[Train], s[i].Start[Train], "training waits")
	}
}

// TestCores: processors that the stages share are a resource as well, and where they are the limit,
// k = 1 is often enough.
func TestCores(t *testing.T) {
	c := Costs{Stage: [Stages]float64{1, 0, 1, 1, 4, 2}, Compute: 8, Cores: 1}
	require.Equal(t, 8.0, c.Limit())
	require.Equal(t, 1, c.Within(0))
	require.Equal(t, 9.0/8, c.Speedup(1))
	c.Cores = 2
	require.Equal(t, Costs{Stage: c.Stage}.Limit(), c.Limit())
	require.Equal(t, 1, Costs{}.Within(0), "nothing costs anything")
	require.Equal(t, 1.0, Costs{}.Speedup(1))
	require.Equal(t, 1, Costs{Stage: [Stages]float64{1, 0, 5, 5, 2, 2}}.Within(0), "reading is the limit: the plain loop does not wait")
	paged := Costs{Stage: [Stages]float64{1, 7, 1, 1, 4, 2}}
	require.Equal(t, 7.0, paged.Limit())
	require.Equal(t, 1, paged.Within(0), "and so it is where rows come from disk")
}
