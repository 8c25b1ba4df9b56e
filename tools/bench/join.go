package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/tools/cli"
	"github.com/gnnstore/gnnstore/tools/resume"
	"github.com/gnnstore/gnnstore/train/run"
)

// joinTurn has the figures of an epoch, without the steps up to its first logged one. Seconds and
// bytes are of a step.
type joinTurn struct {
	steps, seconds, busy, processor, read, written float64
	first                                          float64 // seconds until that step
	group                                          int64   // bytes that the cgroup had at most, page cache included; 0: there is none
	result                                         run.Result
}

// joinColumns are of a step, beside the same of windows.
var joinColumns = []column[joinTurn]{
	{name: "s a step", format: "%.3f", show: beside, of: func(t joinTurn) float64 { return t.seconds }},
	{name: "device s a step", format: "%.3f", show: beside, of: func(t joinTurn) float64 { return t.busy }},
	{name: "processor s a step", format: "%.3f", show: beside, of: func(t joinTurn) float64 { return t.processor }},
	{name: "MB read a step", format: "%.1f", show: beside, of: func(t joinTurn) float64 { return t.read / 1e6 }},
	{name: "MB written a step", format: "%.1f", show: beside, of: func(t joinTurn) float64 { return t.written / 1e6 }},
	{name: "s to the first step", format: "%.1f", show: beside, of: func(t joinTurn) float64 { return t.first }},
}

// joinSides are the ways to bring the rows of an epoch, of those in -ways.
func (c *comparison) joinSides() (sides []*side[joinTurn], err error) {
	for _, way := range [][2]string{
		{"rows", "--spill 0 --window 1 --lookahead 0 --policy none --host-memory 0"},
		{"windows", "--spill 0"},
		{"history", "--spill 0 --history --history-start 0 --t-stale " + c.stale},
		{"join", "--spill " + c.spill},
	} {
		args := append(c.train(strings.Fields(way[1])...), "--eval-nodes", strconv.Itoa(c.evalNodes))
		if c.rate != "" {
			args = append(args, "--disk-rate", c.rate)
		}
		if way[0] == "rows" {
			steps := "20"
			if c.rate != "" {
				steps = "3" // each takes a minute
			}
			args = append(args, "--epoch-steps", steps, "--eval-nodes", "100")
		}
		if slices.Contains(c.ways, way[0]) {
			sides = append(sides, &side[joinTurn]{name: way[0], turn: func(ctx context.Context) (joinTurn, error) { return c.joinTurn(ctx, args) }})
		}
	}
	if len(sides) != len(c.ways) {
		return nil, fmt.Errorf("-ways %s: some of rows, windows, history and join, each once", strings.Join(c.ways, ","))
	}
	base := sides[max(0, slices.IndexFunc(sides, func(s *side[joinTurn]) bool { return s.name == "windows" }))]
	for _, s := range sides {
		s.base = base
	}
	return sides, nil
}

// compareJoins alternates epochs that bring their rows one by one, by windows, and by a join of
// windows with the table, under one budget, and in a memory cgroup of a tenth more. What the device
// did is the system's own count (/sys/dev/block), so that nothing else may use it meanwhile.
func compareJoins(ctx context.Context, c *comparison) error {
	sides, err := c.joinSides()
	if err != nil {
		return err
	}
	weights := map[bool]string{} // with history, and without
	t := turns[joinTurn]{sides: sides, columns: joinColumns, check: func(s *side[joinTurn], t joinTurn) error {
		r := t.result
		fmt.Fprintf(os.Stderr, "%s: %.3f s a step, weights %s\n", s.name, t.seconds, r.ParamsXXH3)
		kept := r.History != nil
		if s.name == "rows" { // it has fewer steps
			return nil
		}
		if want := cmp.Or(weights[kept], r.ParamsXXH3); want != r.ParamsXXH3 {
			return fmt.Errorf("comes to weights %s, and others to %s", r.ParamsXXH3, want)
		}
		weights[kept] = r.ParamsXXH3
		return nil
	}}
	if err := t.run(ctx, c.rounds); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s: GraphSAGE, fanout 15,10,5, hidden %d, %d nodes a step, --memory %s, --spill %s%s; %d turns. "+
		"Medians, in brackets of what %s have:\n\n",
		c.base(), hidden, c.batch, c.memory, c.spill, ifAny(", --disk-rate ", c.rate), c.rounds, sides[0].base.name)
	t.print(c.out, "way")
	fmt.Fprintln(c.out)
	for _, s := range sides {
		s.turns[0].print(c.out, s.name)
	}
	return nil
}

// print prints the figures of a turn.
func (t *joinTurn) print(w io.Writer, name string) {
	r := t.result
	fmt.Fprintf(w, "%s: epoch of %d steps in %.0f s; rows read %.1f GB, lists %.1f GB; peak %d MiB of its own, with the page cache %d.", name, r.Epochs[0].Steps,
		r.Epochs[0].Seconds, float64(r.Disk.BytesRead)/1e9, float64(r.Topology.Disk.BytesRead)/1e9, r.PeakRSSBytes>>20, t.group>>20)
	if j, s := r.Join, r.Spill; j != nil && s != nil {
		fmt.Fprintf(w, " %d horizons, %d rows to their first window, %d on to the next; the spill held %.2f GB at most.", j.Horizons, j.Spilled, j.Forwarded,
			float64(s.PeakBytes)/1e9)
	}
	if h := r.History; h != nil {
		fmt.Fprintf(w, " %.1f %% of hidden rows used again, slots of %s.", 100*h.Reuse, kernels.FormatBytes(h.Slots*h.SlotBytes))
	}
	if a := r.Best.TestAcc; a != nil {
		fmt.Fprintf(w, " Test accuracy %.2f %%.", 100**a)
	}
	fmt.Fprintln(w)
}

func ifAny(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// joinTurn trains for an epoch.
func (c *comparison) joinTurn(ctx context.Context, args []string) (t joinTurn, err error) {
	dir := filepath.Join(c.tmp, "run")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	group, err := cli.NewCgroup(fmt.Sprint(os.Getpid()), c.limit/10*11)
	if err != nil {
		fmt.Fprintf(os.Stderr, "note: %v\n", err)
	}
	defer group.Close()
	cmd := group.Command(ctx, string(c.binary), append(args[:len(args):len(args)], "--memory", c.memory, "--log-every", "1", "--run", dir, "--json")...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return t, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var first, last moment
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				return t, fmt.Errorf("%w: %s", err, cli.LastLine(stderr.Bytes()))
			}
			running = false
		case <-tick.C:
			if step, err := resume.LastUpdate(filepath.Join(dir, "metrics.jsonl")); err == nil && step > last.step {
				last = momentOf(step, c.dataset, cmd.Process.Pid)
				if first.step == 0 {
					first = last
				}
			}
		}
	}
	n := float64(last.step - first.step)
	if n <= 0 {
		return t, errors.New("an epoch of one step")
	}
	t = joinTurn{
		steps: n, seconds: last.at.Sub(first.at).Seconds() / n, busy: (last.busy - first.busy) / n, processor: (last.processor - first.processor) / n,
		read: (last.read - first.read) / n, written: (last.written - first.written) / n, first: first.at.Sub(began).Seconds(),
	}
	t.group, _ = group.Peak()
	return t, json.Unmarshal(stdout.Bytes(), &t.result)
}

// moment has the counters at the end of a step: seconds in which the device was busy, bytes that it
// moved, and seconds of the processors.
type moment struct {
	step                           int
	at                             time.Time
	busy, read, written, processor float64
}

func momentOf(step int, dataset string, pid int) moment {
	m := moment{step: step, at: time.Now()}
	var st syscall.Stat_t
	if syscall.Stat(dataset, &st) == nil {
		dev := uint64(st.Dev)
		name := fmt.Sprintf("/sys/dev/block/%d:%d/stat", dev>>8&0xfff, dev&0xff|dev>>12&0xfff00)
		if f := fields(name); len(f) > 10 { // see Documentation/block/stat.rst of the kernel
			m.read, m.written, m.busy = 512*f[2], 512*f[6], f[9]/1e3
		}
	}
	if f := fields(fmt.Sprintf("/proc/%d/stat", pid)); len(f) > 15 { // in hundredths; the name of the program has no blanks
		m.processor = (f[13] + f[14]) / 100
	}
	return m
}

// fields are the numbers of a file, 0 for what is none.
func fields(name string) (all []float64) {
	text, _ := os.ReadFile(name) // none of a file that is not there
	for _, word := range strings.Fields(string(text)) {
		v, _ := strconv.ParseFloat(word, 64)
		all = append(all, v)
	}
	return all
}
