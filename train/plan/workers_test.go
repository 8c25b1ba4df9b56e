package plan_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/plan"
)

// seconds returns the seconds of a stage.
func secondsOf(t *testing.T, s plan.Shared, name string) float64 {
	t.Helper()
	for _, stage := range s.Stages {
		if stage.Name == name {
			return stage.Seconds
		}
	}
	require.Fail(t, name)
	return 0
}

// byParts is a step of one of four workers that own nodes: 3 MB are sent, and 1 MB of gradients.
func byParts() plan.WorkerStep {
	t := plan.Traffic{IDs: 200e3, Lists: 300e3, Rows: 2.5e6, Gradients: 1e6}
	return plan.WorkerStep{
		Drawing: 0.02, Computing: 0.1, InputRows: 10e3, Sent: t, Received: t,
		Reads: plan.Way{Device: 0.05, ListSeconds: 0.01, RowBytes: 4e6, ListBytes: 1e6, Read: 5e6},
	}
}

// TestEstimate: each stage, by hand. Four workers have a machine each, or share one.
func TestEstimate(t *testing.T) {
	s := plan.Spread{
		Link: plan.Link{BytesPerSecond: 10e6, Latency: 0.001}, Machine: 1, Cores: 2, Drawers: 4,
		Exchanges: plan.Exchanges{Drawing: 2, Rows: 1, Steps: 3},
	}
	for range 4 {
		s.Workers = append(s.Workers, byParts())
	}
	e := s.Estimate("parts")
	for name, want := range map[string]float64{
		plan.Processors: 0.1 + 0.01 + 4e6*0.8e-9/2, // a worker sends messages to itself, too
		plan.Disk:       0.05,
		plan.Network:    0.4,
		plan.Computing:  0.1 + 0.1 + 0.003,
		plan.Drawing:    0.02/2 + 0.01 + 0.05 + 0.002,
		plan.Gathering:  0.25 + 0.001,
	} {
		require.InDelta(t, want, secondsOf(t, e, name), 1e-12, name)
	}
	require.Equal(t, "parts", e.Way)
	require.Equal(t, plan.Network, e.LimitingStage)
	require.InDelta(t, 0.4, e.Seconds, 1e-12)
	require.InDelta(t, 10e3, e.InputRows, 1e-9)
	require.InDelta(t, 4e6, e.MostSent, 1e-6)
	require.InDelta(t, 4e6, e.Sent.Total(), 1e-6)
	require.Equal(t, []float64{4e6, 1e6, 5e6}, []float64{e.RowBytes, e.ListBytes, e.MostRead})

	alone := s
	alone.Workers = slices.Clone(s.Workers)
	alone.Workers[1].Gathers = true
	require.InDelta(t, 0.25+0.001+0.04, secondsOf(t, alone.Estimate("parts"), plan.Gathering), 1e-12, "reads, then sends")

	s.Machine = 4
	shared := s.Estimate("parts")
	require.InDelta(t, 4*secondsOf(t, e, plan.Processors), secondsOf(t, shared, plan.Processors), 1e-12)
	require.InDelta(t, 0.2, secondsOf(t, shared, plan.Disk), 1e-12)
	require.InDelta(t, 0.4+0.1+0.003, secondsOf(t, shared, plan.Computing), 1e-12)
	require.InDelta(t, secondsOf(t, e, plan.Drawing), secondsOf(t, shared, plan.Drawing), 1e-12)
	s.OwnDisk = true
	require.InDelta(t, 0.05, secondsOf(t, s.Estimate("parts"), plan.Disk), 1e-12)

	s.Machine = 1
	s.Workers[2].Reads.Device, s.Workers[1].Computing, s.Workers[3].Received.Rows = 1, 0.7, 20e6
	slow := s.Estimate("parts")
	require.InDelta(t, 1, secondsOf(t, slow, plan.Disk), 1e-12, "all wait for the slowest")
	require.InDelta(t, 0.7+0.1+0.003, secondsOf(t, slow, plan.Computing), 1e-12)
	require.InDelta(t, 21.5e6/10e6, secondsOf(t, slow, plan.Network), 1e-12)
}

// TestEstimateBySteps: many steps that go through the stages one after the other, each stage with
// one step at a time, take as long as the slowest stage.
func TestEstimateBySteps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		s := plan.Spread{
			Link:    plan.Link{BytesPerSecond: 1e6 * (1 + 100*r.Float64()), Latency: 1e-3 * r.Float64()},
			Machine: 1 + r.IntN(3), Cores: 1 + r.IntN(8), Drawers: 1 + r.IntN(4), OwnDisk: r.IntN(2) == 0,
			Exchanges: plan.Exchanges{Drawing: r.Float64(), Rows: r.Float64(), Steps: 2},
		}
		for range 1 + r.IntN(6) {
			w := byParts()
			for _, x := range []*float64{
				&w.Drawing, &w.Computing, &w.Reads.Device, &w.Reads.ListSeconds, &w.Sent.Rows, &w.Received.Lists,
			} {
				*x *= 3 * r.Float64()
			}
			s.Workers = append(s.Workers, w)
		}
		e := s.Estimate("parts")
		const steps = 1000
		ends := make([]float64, len(e.Stages)) // when each stage is free
		for range steps {
			now := 0.0
			for i, stage := range e.Stages {
				now = max(now, ends[i]) + stage.Seconds
				ends[i] = now
			}
		}
		last := ends[len(ends)-1]
		require.InEpsilon(t, e.Seconds, last/steps, 0.01)
		require.Equal(t, e.Seconds, secondsOf(t, e, e.LimitingStage))
	}
}

// TestEstimateByWindows: an epoch whose windows are drawn, read and computed in turn, each stage
// with one window at a time.
func TestEstimateByWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		windows, steps := 1+r.IntN(6), 1+r.IntN(9) // steps of a window
		w := byParts()
		for _, x := range []*float64{&w.Drawing, &w.Computing, &w.Reads.Device, &w.Sent.Rows} {
			*x *= 3 * r.Float64()
		}
		w.Reads.ListSeconds, w.First, w.Last = 0, 1/float64(windows), 1/float64(windows)
		s := plan.Spread{
			Link: plan.Link{BytesPerSecond: 1e8 * r.Float64()}, Machine: 1, Cores: 100, Drawers: 1,
			Workers: []plan.WorkerStep{w, byParts()},
		}
		e := s.Estimate("parts")
		using := max(secondsOf(t, e, plan.Network), secondsOf(t, e, plan.Gathering), secondsOf(t, e, plan.Computing))
		drawn, read, used := 0.0, 0.0, 0.0
		for range windows {
			drawn += float64(steps) * secondsOf(t, e, plan.Drawing)
			read = max(read, drawn) + float64(steps)*secondsOf(t, e, plan.Disk)
			used = max(used, read) + float64(steps)*using
		}
		want := max(used/float64(windows*steps), secondsOf(t, e, plan.Processors))
		require.InEpsilon(t, want, e.Seconds, 1e-9)
	}
}

// TestWaysOfWorkers: where each way is the faster one, by the formulas for steps that one resource
// limits.
func TestWaysOfWorkers(t *testing.T) {
	const v, rows, row = 8, 25e3, 256.0 // of a worker; it owns 10.6 thousand of all
	alone := plan.Spread{Machine: 1, Cores: 16, Drawers: 2}
	parts := alone
	gradients := plan.GradientTraffic(200e3, v)
	require.InDelta(t, 8*200e3*7/8, gradients.Gradients, 1e-9)
	for range v {
		a := plan.WorkerStep{Computing: 0.02, InputRows: rows, Sent: gradients, Received: gradients}
		a.Reads.Device = rows * 0.8 / 100e3
		p := a
		p.InputRows, p.Reads.Device = 10.6e3, 10.6e3*0.4/100e3
		p.Sent.Rows, p.Sent.Lists, p.Sent.IDs = rows*7/8*row, 46e3*4, 28e3*4
		p.Received = p.Sent
		alone.Workers, parts.Workers = append(alone.Workers, a), append(parts.Workers, p)
	}
	for _, c := range []struct {
		rate string
		want string
	}{{"100Mbit,0s", "independent"}, {"1Gbit,0s", "parts"}, {"10Gbit,0s", "parts"}} {
		link, err := plan.ParseLink(c.rate)
		require.NoError(t, err)
		alone.Link, parts.Link = link, link
		ways := []plan.Shared{alone.Estimate("independent"), parts.Estimate("parts")}
		require.InDelta(t, max(0.2, 0.02+gradients.Gradients/link.BytesPerSecond), ways[0].Seconds, 0.001)
		wire := (rows*7/8*row + 46e3*4 + 28e3*4 + gradients.Gradients) / link.BytesPerSecond
		require.InDelta(t, max(wire, 0.0424), ways[1].Seconds, 0.001)
		require.Equal(t, c.want, ways[plan.Choose(ways)].Way, c.rate)
	}
}

func TestChoose(t *testing.T) {
	a, b := plan.Shared{Way: "a", Seconds: 1}, plan.Shared{Way: "b", Seconds: 2}
	about := plan.Shared{Way: "about b", Seconds: 1.8}
	no := plan.Shared{Way: "c", Refused: "why"}
	require.Equal(t, -1, plan.Choose(nil))
	require.Equal(t, -1, plan.Choose([]plan.Shared{no}))
	require.Equal(t, 2, plan.Choose([]plan.Shared{no, b, a}))
	require.Equal(t, 0, plan.Choose([]plan.Shared{a, a, no}), "the first of equals")
	require.Equal(t, 0, plan.Choose([]plan.Shared{b, about}), "it is not worth it")
	require.Equal(t, 2, plan.Choose([]plan.Shared{b, about, a}))
}

func TestParseLink(t *testing.T) {
	for text, want := range map[string]plan.Link{
		"10Gbit":         {BytesPerSecond: 0.94 * 1.25e9, Latency: 100e-6},
		"1Gbit,200us":    {BytesPerSecond: 0.94 * 125e6, Latency: 200e-6},
		" 25 Gbit/s, 0s": {BytesPerSecond: 0.94 * 3.125e9},
		"100Mbit,1ms":    {BytesPerSecond: 0.94 * 12.5e6, Latency: 1e-3},
		"64kbit":         {BytesPerSecond: 0.94 * 8e3, Latency: 100e-6},
	} {
		l, err := plan.ParseLink(text)
		require.NoError(t, err, text)
		require.InEpsilon(t, want.BytesPerSecond, l.BytesPerSecond, 1e-12, text)
		require.InDelta(t, want.Latency, l.Latency, 1e-12, text)
	}
	for _, text := range []string{
		"", "10", "Gbit", "0Gbit", "-1Gbit", "NaNGbit", "InfGbit", "1Gbit,", "1Gbit,5", "1Gbit,-1s", "1GB", "1Gbit,1s,1s",
	} {
		_, err := plan.ParseLink(text)
		require.ErrorContains(t, err, "such as 10Gbit or 1Gbit,200us", text)
	}
}

// TestWaysOfRuns: items in runs that lie apart take a read each at least, unless reading through
// what lies between is cheaper; then more bytes.
func TestWaysOfRuns(t *testing.T) {
	d, b := papers()
	d.Rows[0].Inputs = 20_000
	together := waysOf(d, b, 100, 0).Rows
	d.Rows[0].Runs, d.Rows[0].Apart = 64, 64*256*3
	apart := waysOf(d, b, 100, 0).Rows
	require.GreaterOrEqual(t, apart.Device, together.Device)
	require.Equal(t, together.RowBytes, apart.RowBytes)
	d.Disk.SecondsPerRead *= 1000
	through := waysOf(d, b, 100, 0).Rows
	d.Rows[0].Runs = 0
	require.Greater(t, through.RowBytes, waysOf(d, b, 100, 0).Rows.RowBytes)
	one := waysOf(d, b, 100, 0).Rows
	require.InEpsilon(t, one.Device, one.Of(4).Device*4, 1e-9)
	require.InEpsilon(t, one.Read, one.Of(4).Read*4, 1e-9)
	d.Timed = d.Disk
	d.Timed.BytesPerSecond /= 2
	slower := waysOf(d, b, 100, 0).Rows
	require.Greater(t, slower.Device, one.Device)
	require.Equal(t, one.Read, slower.Read)
}
