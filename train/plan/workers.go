package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Link describes the network between workers. Its JSON keys are stable.
type Link struct {
	// BytesPerSecond is the speed at which each worker sends to the others, while it receives as
	// much.
	BytesPerSecond float64 `json:"bytes_per_second"`
	// Latency is the time of an exchange of small messages among all workers, in seconds.
	Latency float64 `json:"latency_seconds"`
}

// Traffic counts bytes that a worker sends to the others, or receives. Its JSON keys are stable.
type Traffic struct {
	IDs       float64 `json:"ids"`       // of nodes to draw from, and of rows
	Lists     float64 `json:"lists"`     // drawn neighbours
	Rows      float64 `json:"rows"`      // features
	Hidden    float64 `json:"hidden"`    // rows between layers, and their gradients
	Gradients float64 `json:"gradients"` // and their sums
}

// Total returns the bytes of all kinds.
func (t Traffic) Total() float64 { return t.IDs + t.Lists + t.Rows + t.Hidden + t.Gradients }

// drawing returns the bytes that are exchanged while batches are drawn.
func (t Traffic) drawing() float64 { return t.IDs + t.Lists }

func (t Traffic) plus(u Traffic) Traffic {
	return Traffic{t.IDs + u.IDs, t.Lists + u.Lists, t.Rows + u.Rows, t.Hidden + u.Hidden, t.Gradients + u.Gradients}
}

func (t Traffic) times(n float64) Traffic {
	return Traffic{n * t.IDs, n * t.Lists, n * t.Rows, n * t.Hidden, n * t.Gradients}
}

// WorkerStep has the work of one worker in a step, on average.
type WorkerStep struct {
	Drawing   float64 // seconds of one thread, without reading lists
	Computing float64 // seconds with all processors of its machine
	InputRows float64 // rows that it reads through its caches
	Reads     Way     // what it reads from disk, of a step
	// First and Last are the shares of an epoch's steps in its first and in its last window. The
	// first step waits until the first window is drawn and read. When the last window is read, its
	// steps are still to be computed.
	First, Last float64
	// Gathers: each step reads its own rows when they are gathered, as a window of one step does.
	// Then a step's rows are first read and then exchanged.
	Gathers bool
	// Sent and Received are exchanged with other workers.
	Sent, Received Traffic
}

// Exchanges counts the exchanges for a step: Drawing while batches are drawn, Rows while feature
// rows are gathered, and Steps while it computes, of hidden rows and for the sum of gradients.
type Exchanges struct{ Drawing, Rows, Steps float64 }

// Spread is one way in which workers share a step.
type Spread struct {
	Workers []WorkerStep
	Exchanges
	Link Link
	// Machine is the number of workers that share the processors and the disk of a machine. OwnDisk
	// says that each of them has a disk of its own.
	Machine int
	OwnDisk bool
	Cores   int // of a machine
	Drawers int // threads of a worker that draw
}

// Stages of Shared.
const (
	Processors = "processors"
	Disk       = "disk"
	Network    = "network"
	Computing  = "computing"
	Drawing    = "drawing"
	Gathering  = "gathering"
)

// Shared estimates a step that workers share in one way. Its JSON keys are stable.
type Shared struct {
	Way string `json:"way"`
	// Refused says why the run cannot take this way. Then the fields below are 0.
	Refused string `json:"refused,omitempty"`
	// Seconds of a step, on average over an epoch. They are at least the largest of Stages. An
	// epoch of few windows takes longer: see Estimate.
	Seconds float64 `json:"seconds"`
	// LimitingStage is the largest of Stages.
	LimitingStage string  `json:"limiting_stage"`
	Stages        []Stage `json:"stages"`
	// Of a worker, on average:
	InputRows float64 `json:"input_rows"` // that it reads through its caches
	Sent      Traffic `json:"sent_bytes"`
	RowBytes  float64 `json:"row_bytes"` // from disk
	ListBytes float64 `json:"list_bytes"`
	// MostSent and MostRead are bytes of the worker that sends, and that reads from disk, most.
	MostSent float64 `json:"most_sent_bytes"`
	MostRead float64 `json:"most_read_bytes"`
}

// Stage is a part of a step that runs beside the other parts.
type Stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// dealProcessor is the time that one processor takes for a byte of ids, lists or rows that goes
// from a worker to a worker, at both ends together. A worker sends itself messages, too. In one
// process, 2 workers took 0.9 ns a byte more by parts than independently, and 4 workers 0.5;
// ogbn-arxiv in memory, two threads of one core of an AMD EPYC, user and system time, 2026-11-29.
const dealProcessor = 0.8e-9

// Estimate returns the seconds of a step, and what a worker sends and reads in it. The stages run
// beside each other, and the slowest one decides. All workers wait for the slowest worker.
//
// An epoch of few windows takes longer, since a window is drawn, then read, then computed. Nothing
// is computed before the first window is read. Nothing is read while the last one is computed.
//
// Computing includes the sum of gradients, which cannot begin before they are computed, and the
// exchanges of hidden rows, during which nothing is computed. Drawing and
// gathering are ahead of the step that computes, so what they exchange delays nothing as long as it
// takes less time than a step. All exchanges share the network, and workers of a machine share its
// processors and disk.
func (s Spread) Estimate(way string) Shared {
	e := Shared{Way: way}
	n, machine := float64(max(len(s.Workers), 1)), float64(max(s.Machine, 1))
	cores, drawers := float64(max(s.Cores, 1)), float64(max(min(s.Drawers, s.Cores), 1))
	var busy, disk, computing, network, draw, gather amount
	for _, w := range s.Workers {
		moved := (w.Sent.Total() - w.Sent.Gradients) * n / max(n-1, 1)
		busy.add(w.Computing + (w.Drawing+w.Reads.Processor+moved*dealProcessor)/cores)
		disk.add(w.Reads.Device)
		computing.add(w.Computing)
		network.add(max(w.Sent.Total(), w.Received.Total()))
		drawing := s.Link.seconds(max(w.Sent.drawing(), w.Received.drawing()))
		draw.add(w.Drawing/drawers + w.Reads.ListSeconds + drawing)
		rows := s.Link.seconds(max(w.Sent.Rows, w.Received.Rows))
		if w.Gathers {
			rows += w.Reads.Device - w.Reads.ListSeconds
		}
		gather.add(rows)
		e.InputRows += w.InputRows / n
		e.Sent = e.Sent.plus(w.Sent.times(1 / n))
		e.RowBytes, e.ListBytes = e.RowBytes+w.Reads.RowBytes/n, e.ListBytes+w.Reads.ListBytes/n
		e.MostSent, e.MostRead = max(e.MostSent, w.Sent.Total()), max(e.MostRead, w.Reads.Read)
	}
	disks := machine
	if s.OwnDisk {
		disks = 1
	}
	inStep := 0.0
	for _, w := range s.Workers {
		inStep = max(inStep, w.Sent.Hidden+w.Sent.Gradients, w.Received.Hidden+w.Received.Gradients)
	}
	e.Stages = []Stage{
		{Processors, busy.of(machine, n)},
		{Disk, disk.of(disks, n)},
		{Network, s.Link.seconds(network.most)},
		{Computing, computing.of(machine, n) + s.Link.seconds(inStep) + s.Steps*s.Link.Latency},
		{Drawing, draw.most + s.Exchanges.Drawing*s.Link.Latency},
		{Gathering, gather.most + s.Exchanges.Rows*s.Link.Latency},
	}
	seconds, largest := map[string]float64{}, 0.0
	for _, stage := range e.Stages {
		if seconds[stage.Name] = stage.Seconds; stage.Seconds > largest {
			largest, e.LimitingStage = stage.Seconds, stage.Name
		}
	}
	first, last, gathers := 0.0, 0.0, false
	for _, w := range s.Workers {
		first, last, gathers = max(first, w.First), max(last, w.Last), gathers || w.Gathers
	}
	drawing, reading := seconds[Drawing], seconds[Disk]
	using := max(seconds[Network], seconds[Gathering], seconds[Computing])
	if gathers { // each step's rows are read when they are gathered, not window by window before
		using, reading = max(using, reading), 0
	}
	e.Seconds = max(seconds[Processors],
		drawing+last*(reading+using), first*drawing+reading+last*using, first*(drawing+reading)+using)
	return e
}

// amount is the sum over workers, and the most of one.
type amount struct{ sum, most float64 }

func (a *amount) add(x float64) { a.sum, a.most = a.sum+x, max(a.most, x) }

// of returns the amount of some of the n workers together: their number times the mean, or the
// largest amount of one worker if that is more.
func (a amount) of(together, n float64) float64 { return max(a.sum/n*min(together, n), a.most) }

// seconds returns the time for so many bytes.
func (l Link) seconds(bytes float64) float64 {
	if bytes == 0 {
		return 0
	}
	return bytes / l.BytesPerSecond
}

// GradientTraffic returns what each of so many workers sends for the sum of a network's gradients,
// and receives: see dist.Group.Sum.
func GradientTraffic(weights int64, workers int) Traffic {
	return Traffic{Gradients: 8 * float64(weights) * float64(workers-1) / float64(workers)}
}

// worthwhile is a margin: a way that exchanges more is chosen if its seconds are less than this
// share of the other way's. Estimates err by about as much, and other work on one machine delays
// all workers at every exchange. With 0.7, 14 of the 15 settings in tools/results/workers.md are
// judged right; with 0.85, 13 are.
const worthwhile = 0.7

// Choose returns the place of the way to take, or -1 if all are refused. Ways come in the order of
// how much their workers exchange. Choose goes through them, and replaces the best so far by a way
// that is faster by a margin.
func Choose(ways []Shared) int {
	best := -1
	for i, w := range ways {
		if w.Refused == "" && (best < 0 || w.Seconds < worthwhile*ways[best].Seconds) {
			best = i
		}
	}
	return best
}

// wireShare is the share of a wire that messages get, between TCP's headers: see
// tools/results/workers.md, two machines.
const wireShare = 0.94

// usualLatency is the time of an exchange of small messages on a network that was not measured.
const usualLatency = 100e-6

// ParseLink parses the rate of a network, and the time of an exchange of small messages if it is
// given: 10Gbit or 1Gbit,200us.
func ParseLink(text string) (Link, error) {
	rate, latency, found := strings.Cut(text, ",")
	rate = strings.TrimSuffix(strings.TrimSpace(rate), "/s")
	l := Link{Latency: usualLatency}
	wrong := fmt.Errorf("%q: a rate and, if known, the time of a small exchange, such as 10Gbit or 1Gbit,200us", text)
	if found {
		d, err := time.ParseDuration(strings.TrimSpace(latency))
		if err != nil || d < 0 {
			return l, wrong
		}
		l.Latency = d.Seconds()
	}
	for _, unit := range []struct {
		name string
		bits float64
	}{{"Gbit", 1e9}, {"Mbit", 1e6}, {"kbit", 1e3}} {
		if n, ok := strings.CutSuffix(rate, unit.name); ok {
			bits, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
			if err != nil || !(bits > 0) || math.IsInf(bits, 1) {
				return l, wrong
			}
			l.BytesPerSecond = wireShare * bits * unit.bits / 8
			return l, nil
		}
	}
	return l, wrong
}
