package live

import (
	"fmt"
	"strings"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
)

// Load has how busy each part of a run is, as shares of the time that steps worked or waited for
// rows.
type Load struct {
	// Limiting is the stage that the others wait for; empty where no step was done.
	Limiting string
	// Sample is drawing and planning. State is the part of Gather for rows that steps rewrite. Wait
	// is the step's. Disk is reading feature rows from disk, while windows were loaded or steps
	// gathered. Lists is reading neighbour lists, over the whole run.
	Sample, Load, Gather, State, Step, Write, Wait, Disk, Lists float64
	// Seconds is the time that they are shares of, and Stats what the tiers did in it.
	Seconds float64
	Stats   cachetier.Stats
}

// LoadOf returns the recent load of a run, or the load of the whole run if it has ended.
func LoadOf(r *run.Result) Load {
	stages, stats := r.Stages, r.Stats
	if r.Live != nil && r.Live.Recent.Stages.Step > 0 {
		stages, stats = r.Live.Recent.Stages, r.Live.Recent.Stats
	}
	seconds := stages.Step + stages.Wait
	if seconds <= 0 {
		return Load{Stats: stats}
	}
	share := func(s float64) float64 { return min(s/seconds, 1) } // stages run ahead, and are counted as they end
	l := Load{
		Limiting: stages.Limiting(), Seconds: seconds, Stats: stats,
		Sample: share(stages.Sample + stages.Plan), Load: share(stages.Load), Gather: share(stages.Gather),
		State: share(stages.State), Step: share(stages.Step), Write: share(stages.Write), Wait: share(stages.Wait), Disk: share(stats.Disk.Seconds),
	}
	if all := r.Stages.Step + r.Stages.Wait; r.Topology != nil && all > 0 {
		l.Lists = min(r.Topology.Disk.Seconds/all, 1)
	}
	return l
}

// Hits returns the share of rows that needed no disk read.
func (l Load) Hits() float64 {
	if l.Stats.InputRows == 0 {
		return 0
	}
	return 1 - float64(l.Stats.Disk.Rows)/float64(l.Stats.InputRows)
}

// Shares that Advise goes by.
const (
	full       = 0.95 // of a tier's room: the rest is too small for a row, or rounding
	overlapped = 0.7  // busy for less, the busiest stage itself waits for others
	mostly     = 0.5
)

// Advise returns a sentence or two: the tier or stage that limits a run by its recent load, and
// what to change; before the first step, what the run is doing. It returns "" for a run that ended
// without a step.
func Advise(r *run.Result) string {
	l := LoadOf(r)
	if l.Limiting == "" {
		return beginning(r)
	}
	if r.Options.Streams() {
		return adviseStream(r, l)
	}
	busiest := max(l.Sample, l.Load, l.Gather, l.Step, l.Write)
	reading, gathering := l.Disk+l.Lists >= overlapped, l.Limiting == pipeline.Gather || l.Limiting == pipeline.State
	switch {
	case busiest < overlapped && !reading && r.Window != nil:
		steps := "its one step"
		if r.Window.Steps != 1 {
			steps = fmt.Sprintf("its %d steps", r.Window.Steps)
		}
		return fmt.Sprintf("reading a window (%s of the time) and computing %s (%s) take turns: the longer windows are, "+
			"the less is read for a step, and a larger %s makes them longer", percent(l.Load), steps, percent(l.Step), memoryOption(r))
	case busiest < overlapped && !reading:
		return fmt.Sprintf("no stage is busy all the time (sample %s, gather %s, step %s), so they wait for each other; "+
			"a larger {batch_bytes} lets more batches be under way, and more cores let stages run at once",
			percent(l.Sample), percent(l.Gather), percent(l.Step))
	case l.Limiting == pipeline.Sample && l.Lists >= l.Disk, reading && l.Lists > l.Disk && l.Step < overlapped:
		return samplingLimits(r, l)
	case l.Limiting == pipeline.Load, gathering && l.Disk >= mostly*l.Gather, reading && l.Step < overlapped:
		return diskLimits(r, l)
	case gathering:
		return copyingLimits(l)
	case l.Limiting == pipeline.Sample:
		return samplingLimits(r, l)
	case l.Limiting == pipeline.Step && l.Wait < 1-overlapped:
		return fmt.Sprintf("the step limits: it computes %s of the time, and its rows are there when it wants them; "+
			"more cores, a smaller {hidden} or fewer rows a batch ({fanout}) would help, more memory would not", percent(l.Step))
	}
	return fmt.Sprintf("%s limits: it is busy %s of the time", l.Limiting, percent(busiest))
}

// beginning returns what a run is doing before its first step, or "" for a run that has ended.
func beginning(r *run.Result) string {
	switch {
	case r.Live == nil || r.Live.Step > 0:
		return ""
	case r.Window != nil:
		size := kernels.FormatBytes(r.Window.Rows * r.RowBytes)
		if r.RowBytes == 0 { // of several tables
			size = fmt.Sprint(r.Window.Rows)
		}
		return fmt.Sprintf("the %s of rows that the first %d steps want are being read; the next ones are read while steps compute",
			size, r.Window.Steps)
	case r.Topology != nil && r.Topology.Disk.BytesRead > 0:
		return fmt.Sprintf("the first steps are being drawn together, for which %s of neighbour lists were read so far",
			kernels.FormatBytes(r.Topology.Disk.BytesRead))
	}
	return "caches are being filled, or the first steps drawn"
}

// adviseStream is Advise of a run on a stream after its first step. Its steps are in order, and
// each reads state that others left.
func adviseStream(r *run.Result, l Load) string {
	busiest, lag := max(l.Sample, l.Load, l.Gather, l.Step, l.Write), max(r.Options.Staleness, 1)
	if r.Stream != nil {
		lag = r.Stream.Staleness.K
	}
	state, step, written := percent(l.State), percent(l.Step), percent(l.Write)
	switch {
	case l.Disk >= overlapped, l.Limiting == pipeline.Load, l.Limiting == pipeline.Gather && l.Disk >= mostly*l.Gather:
		return diskLimits(r, l)
	case busiest < overlapped && lag == 1:
		return fmt.Sprintf("reading state (%s of the time), computing (%s) and writing state (%s) take turns, since at {staleness} 1 a step sees what the one "+
			"before it left; {staleness} auto finds how far they may overlap, with other results", state, step, written)
	case busiest < overlapped:
		return fmt.Sprintf("no stage is busy all the time (sample %s, state %s, step %s, write %s), so they wait for each other; a larger {inflight} or "+
			"{staleness} lets more steps be under way, and more cores let stages run at once", percent(l.Sample), state, step, written)
	case l.Limiting == pipeline.Step:
		text := fmt.Sprintf("the step limits: it computes %s of the time; more cores, a smaller {hidden} or fewer neighbours ({fanout}) would help, more memory would not", step)
		if lag == 1 {
			text += ", and {staleness} 1 costs next to nothing"
		}
		return text
	case l.Limiting == pipeline.State:
		return fmt.Sprintf("reading state limits: it takes %s of the time; a larger %s keeps more of it in memory, a smaller {fanout} reads less of it", state, memoryOption(r))
	case l.Limiting == pipeline.Gather:
		return copyingLimits(l)
	case l.Limiting == pipeline.Write:
		return fmt.Sprintf("writing state limits: it takes %s of the time; a larger %s keeps more of it in memory, and {publish} early has nobody wait for it", written,
			memoryOption(r))
	case l.Limiting == pipeline.Sample:
		return fmt.Sprintf("sampling limits: it is busy %s of the time; a smaller {fanout} helps", percent(l.Sample))
	}
	return fmt.Sprintf("%s limits: it is busy %s of the time", l.Limiting, percent(busiest))
}

func copyingLimits(l Load) string {
	return fmt.Sprintf("copying rows limits: gathering is busy %s of the time and reads the disk for little of it; "+
		"fewer rows a batch ({fanout}) or faster memory would help, larger caches would not", percent(l.Gather))
}

func diskLimits(r *run.Result, l Load) string {
	d, t := l.Stats.Disk, r.Tiers
	var b strings.Builder
	fmt.Fprintf(&b, "the disk limits: it is busy %s of the time", percent(l.Disk))
	if l.Lists >= 0.05 {
		fmt.Fprintf(&b, " with rows and %s with neighbour lists", percent(l.Lists))
	}
	if d.Reads > 0 {
		fmt.Fprintf(&b, ", in reads of %s", kernels.FormatBytes(d.BytesRead/d.Reads))
	}
	if d.Amplification >= 1.5 {
		fmt.Fprintf(&b, " that bring %.1f bytes for each one wanted", d.Amplification)
	}
	b.WriteString("; ")

	room, held, table := t.Device.CapacityBytes+t.Host.CapacityBytes, t.Device.UsedBytes+t.Host.UsedBytes, t.Disk.UsedBytes
	switch {
	case room == 0:
		b.WriteString("no rows are kept in memory, and what " + memoryOption(r) + " gives the host cache is not read again")
	case float64(held) < full*float64(room):
		fmt.Fprintf(&b, "the caches are still filling (%s of %s), so it will get better by itself", kernels.FormatBytes(held), kernels.FormatBytes(room))
	case held >= table:
		b.WriteString("the caches hold every row by now, so it will get better by itself")
	default:
		fmt.Fprintf(&b, "the caches are full with %s of the rows, and serve %s of what is asked for: a larger %s",
			percent(float64(held)/float64(table)), percent(l.Hits()), memoryOption(r))
		if r.Window != nil {
			fmt.Fprintf(&b, ", which makes windows longer than their %d steps,", r.Window.Steps)
		}
		b.WriteString(" would help most")
		if r.Memory != nil && r.Live != nil {
			fmt.Fprintf(&b, "; %s of %s are used", kernels.FormatBytes(r.Live.ResidentBytes), kernels.FormatBytes(r.Memory.BudgetBytes))
		}
	}
	return b.String()
}

func samplingLimits(r *run.Result, l Load) string {
	if l.Lists >= mostly*l.Sample && l.Lists > 0 {
		t := r.Topology
		return fmt.Sprintf("reading neighbour lists limits: the disk is busy with them %s of the time, and %s of %s lists are in memory; "+
			"a larger %s, or {topology_bytes} where most would fit, would help most",
			percent(l.Lists), percent(float64(t.UsedRows)/float64(max(t.Lists, 1))), count(t.Lists), memoryOption(r))
	}
	return fmt.Sprintf("sampling limits: it is busy %s of the time, drawing %d batches at once; more {workers} help while cores are "+
		"idle, a smaller {fanout} always does", percent(l.Sample), r.Stages.Samplers)
}

// memoryOption returns the key of the option that gives caches room.
func memoryOption(r *run.Result) string {
	if r.Memory != nil {
		return "{memory_bytes}"
	}
	return "{host_bytes}"
}

// count returns a number to three digits.
func count(n int64) string {
	for _, u := range []struct {
		name  string
		value int64
	}{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if n >= u.value {
			return fmt.Sprintf("%.3g %s", float64(n)/float64(u.value), u.name)
		}
	}
	return fmt.Sprint(n)
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
