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
	"github.com/gnnstore/gnnstore/train/run"
)

// joinSide is a way to bring the rows of an epoch.
type joinSide struct {
	name  string // in -ways
	args  []string
	steps int // of an epoch; 0: -steps
	turns []joinTurn
}

// joinTurn has the figures of an epoch, without the steps up to its first logged one. Seconds and
// bytes are of a step.
type joinTurn struct {
	steps, seconds, busy, processor, read, written float64
	first                                          float64 // seconds until that step
	group                                          int64   // bytes that the cgroup had at most, page cache included; 0: there is none
	result                                         run.Result
}

var joinColumns = []struct {
	name, format string
	of           func(t joinTurn) float64
}{
	{"s a step", "%.3f", func(t joinTurn) float64 { return t.seconds }},
	{"device s a step", "%.3f", func(t joinTurn) float64 { return t.busy }},
	{"processor s a step", "%.3f", func(t joinTurn) float64 { return t.processor }},
	{"MB read a step", "%.1f", func(t joinTurn) float64 { return t.read / 1e6 }},
	{"MB written a step", "%.1f", func(t joinTurn) float64 { return t.written / 1e6 }},
	{"s to the first step", "%.1f", func(t joinTurn) float64 { return t.first }},
}

// joinSides are the ways to bring rows that there are.
func (c *comparison) joinSides() (sides []*joinSide, err error) {
	for _, s := range []*joinSide{
		{name: "rows", args: []string{"--spill", "0", "--window", "1", "--lookahead", "0", "--policy", "none", "--host-memory", "0"}, steps: 20},
		{name: "windows", args: []string{"--spill", "0"}},
		{name: "history", args: []string{"--spill", "0", "--history", "--history-start", "0", "--t-stale", c.stale}},
		{name: "join", args: []string{"--spill", c.spill}},
	} {
		if c.rate != "" {
			s.args = append(s.args, "--disk-rate", c.rate)
			if s.steps > 0 {
				s.steps = 3 // each takes a minute
			}
		}
		if slices.Contains(c.ways, s.name) {
			sides = append(sides, s)
		}
	}
	if len(sides) != len(c.ways) {
		return nil, fmt.Errorf("-ways %s: some of rows, windows, history and join, each once", strings.Join(c.ways, ","))
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
	for range c.rounds {
		for _, s := range sides {
			t, err := c.joinTurn(ctx, s)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			s.turns = append(s.turns, t)
			r := t.result
			fmt.Fprintf(os.Stderr, "%s: %.3f s a step, weights %s\n", s.name, t.seconds, r.ParamsXXH3)
			if kept := r.History != nil; s.steps == 0 && cmp.Or(weights[kept], r.ParamsXXH3) != r.ParamsXXH3 {
				return fmt.Errorf("%s comes to weights %s, and others to %s", s.name, r.ParamsXXH3, weights[kept])
			} else if s.steps == 0 {
				weights[kept] = r.ParamsXXH3
			}
		}
	}
	base := sides[max(0, slices.IndexFunc(sides, func(s *joinSide) bool { return s.name == "windows" }))]
	fmt.Fprintf(c.out, "%s: GraphSAGE, fanout 15,10,5, hidden %d, %d nodes a step, --memory %s, --spill %s%s; %d turns. "+
		"Medians, in brackets of what %s have:\n\n", filepath.Base(c.dataset), hidden, c.batch, c.memory, c.spill, ifAny(", --disk-rate ", c.rate),
		c.rounds, base.name)
	head := "| way |"
	for _, column := range joinColumns {
		head += " " + column.name + " |"
	}
	tableHead(c.out, head)
	values := func(s *joinSide, of func(joinTurn) float64) (all series) {
		for _, t := range s.turns {
			all = append(all, of(t))
		}
		return all
	}
	for _, s := range sides {
		fmt.Fprintf(c.out, "| %s |", s.name)
		for _, column := range joinColumns {
			v, w := values(s, column.of), values(base, column.of)
			fmt.Fprintf(c.out, " "+column.format+" (%.2f) |", v.median(), v.over(w).median())
		}
		fmt.Fprintln(c.out)
	}
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

// joinTurn is an epoch of s.
func (c *comparison) joinTurn(ctx context.Context, s *joinSide) (t joinTurn, err error) {
	dir := filepath.Join(c.tmp, "run")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	args := c.train(s.args...)
	if s.steps > 0 {
		args = append(args, "--epoch-steps", strconv.Itoa(s.steps))
	}
	if s.steps == 0 {
		args = append(args, "--eval-nodes", strconv.Itoa(c.evalNodes))
	}
	memory, err := bytesOf(c.memory)
	if err != nil {
		return t, err
	}
	group, err := cli.NewCgroup(fmt.Sprint(os.Getpid()), memory/10*11)
	if err != nil {
		fmt.Fprintf(os.Stderr, "note: %v\n", err)
	}
	defer group.Close()
	cmd := group.Command(ctx, string(c.binary), append(args, "--memory", c.memory, "--log-every", "1", "--run", dir, "--json")...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return t, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var first, last moment
	var size int64 // of the record
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
			if step, ok := lastStep(filepath.Join(dir, "metrics.jsonl"), &size); ok && step > last.step {
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

// lastStep returns the last step in the record of a run so far. It reads the record only if it has
// another size than before, and updates size.
func lastStep(record string, size *int64) (step int, ok bool) {
	const tail = 256 << 10 // a line takes a few KiB
	f, err := os.Open(record)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == *size {
		return 0, false
	}
	*size = info.Size()
	from := max(0, *size-tail)
	text := make([]byte, *size-from)
	n, _ := f.ReadAt(text, from)                 // what there is of it
	lines := bytes.Split(text[:n], []byte{'\n'}) // the last one is not whole
	for _, line := range slices.Backward(lines[:len(lines)-1]) {
		var l run.Line
		if json.Unmarshal(line, &l) == nil && l.Step != nil {
			return l.Step.Step, true
		}
	}
	return 0, false
}
