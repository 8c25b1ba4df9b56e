package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/trace"
)

// traceHistory has the flags of trace --history. They are the flags of train, and some take
// several settings here.
type traceHistory struct {
	on                  bool
	options             trace.History
	stale, lags, memory []string
	start               autoCount
	window              byteSize
	costs               string
}

// traceHistoryFlags are those that go with --history.
var traceHistoryFlags = []string{
	"p-grad", "t-stale", "history-start", "history-lag", "history-memory", "hidden", "window-memory", "window", "equal-bytes", "disk-costs",
}

func newTraceHistory() *traceHistory {
	o := trace.DefaultHistory()
	h := &traceHistory{options: o, start: autoCount(o.HistoryStart)}
	for _, n := range o.TStale {
		h.stale = append(h.stale, (&staleness{autoCount(n)}).String())
	}
	for _, n := range o.HistoryLag {
		lag := autoCount(n)
		h.lags = append(h.lags, lag.String())
	}
	for _, s := range o.Slots {
		h.memory = append(h.memory, s.String())
	}
	return h
}

func (h *traceHistory) flags(f *pflag.FlagSet) {
	f.BoolVar(&h.on, "history", false, "report what reusing hidden rows saves, as train --history does, for every t-stale, lag and memory below")
	f.Float64Var(&h.options.PGrad, "p-grad", h.options.PGrad, "history: share of a layer's nodes whose rows are kept; here chosen at random")
	f.StringSliceVar(&h.stale, "t-stale", h.stale, "history: most steps between computing a row and using it; inf: no limit; auto: a fifth of an epoch's steps, 200 at most")
	f.Var(&h.start, "history-start", "history: first step that keeps rows; auto: the first of the second epoch")
	f.StringSliceVar(&h.lags, "history-lag", h.lags, "history: steps until the gradients of a step decide on its rows; auto: half of --t-stale")
	f.StringSliceVar(&h.memory, "history-memory", h.memory, "history: memory for kept rows: sizes, shares of each layer's nodes such as 0.5%, or all; auto: room for the rows that save more "+
		"than they take, or up to 64MiB if that is more")
	f.IntVar(&h.options.Hidden, "hidden", h.options.Hidden, "history: columns of a hidden row")
	f.Var(&h.window, "window-memory", "history: memory for feature rows; with it, windows of steps are planned, with the disk reads that they make")
	f.IntVar(&h.options.Window, "window", 0, "history: most steps of a window (default as many as fit)")
	f.BoolVar(&h.options.EqualBytes, "equal-bytes", false, "history: take the bytes of kept rows from --window-memory, and compare with a static prefix of the same bytes")
	f.StringVar(&h.costs, "disk-costs", "", "history: reads and bytes a second of the disk, such as 70000,1.5e9 (default measured)")
}

// read is what the flags ask for, nil without --history.
func (h *traceHistory) read(given func(flag string) bool, fail func(flag string, err error)) *trace.History {
	if !h.on {
		for _, name := range traceHistoryFlags {
			if given(name) {
				fail("--"+name, fmt.Errorf("it goes with --history"))
			}
		}
		return nil
	}
	o := h.options
	o.TStale, o.HistoryLag, o.Slots = nil, nil, nil
	for _, text := range h.stale {
		var n staleness
		fail("--t-stale", n.Set(strings.TrimSpace(text)))
		o.TStale = append(o.TStale, int(n.autoCount))
	}
	for _, text := range h.lags {
		var n autoCount
		fail("--history-lag", n.Set(strings.TrimSpace(text)))
		o.HistoryLag = append(o.HistoryLag, int(n))
	}
	for _, text := range h.memory {
		s, err := parseSlots(strings.TrimSpace(text))
		fail("--history-memory", err)
		o.Slots = append(o.Slots, s)
	}
	o.HistoryStart, o.WindowBytes = int(h.start), int64(h.window)
	if h.costs != "" {
		var err error
		o.DiskCosts, err = disk.ParseCosts(h.costs)
		fail("--disk-costs", err)
	}
	return &o
}

// parseSlots reads "all", "0.5%", "64MiB" or "auto".
func parseSlots(text string) (s trace.Slots, err error) {
	if text == "all" {
		return trace.Slots{Share: 1}, nil
	}
	if number, ok := strings.CutSuffix(text, "%"); ok {
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(x > 0 && x <= 100) {
			return s, fmt.Errorf("%q is no share above 0%% and up to 100%%", text)
		}
		return trace.Slots{Share: x / 100}, nil
	}
	var size autoSize
	if err := size.Set(text); err != nil {
		return s, fmt.Errorf("%q is neither auto nor all, nor a share such as 0.5%%, nor a size such as 0, 1MiB or 4GiB", text)
	}
	return trace.Slots{Bytes: int64(size)}, nil
}

// staleText is a t_stale as --t-stale has it.
func staleText(n int) string { return (&staleness{autoCount(n)}).String() }

// printTraceHistory prints what rows that are used again save.
func printTraceHistory(w io.Writer, r *trace.Report) {
	h := r.History
	printf(w, "\nhidden rows used again, fanout %s, batches of %s; a step of the steps %s to %s:\n", fanoutsText(r.Fanouts, r.RelationFanouts), count(int64(r.Batch)),
		count(int64(h.WarmupSteps+1)), count(int64(r.Steps)))
	printf(w, "verdicts: %s; p_grad %v; rows kept from step %s on; a slot is %s bytes\n", h.Verdicts, h.PGrad, count(int64(h.Start+1)), count(h.SlotBytes))
	fmt.Fprintln(w, "reused is of the nodes that steps meet; provisional and rejected of those that were reused, refused of those that were not")
	if h.DiskCosts != nil {
		printf(w, "windows: %s for feature rows; the disk does %s reads and %s a second (%s)\n", kernels.FormatBytes(h.WindowBytes),
			count(int64(1/h.DiskCosts.SecondsPerRead+0.5)), kernels.FormatBytes(int64(h.DiskCosts.BytesPerSecond)), h.Disk)
	}
	head := []string{"sampler", "κ", "t_stale", "K", "slots", "take", "rows", "lists"}
	for l := range r.Fanouts {
		head = append(head, fmt.Sprintf("made by %d", l+1))
	}
	head = append(head, "reused", "provisional", "rejected", "refused", "age")
	if h.DiskCosts != nil {
		head = append(head, "slab", "steps a window", "ms rows", "ms lists", "ms")
	}
	rows := [][]string{head}
	for _, d := range h.Draws {
		drawn := []string{string(d.Sampler), sample.KappaText(d.Kappa)}
		line := func(setting []string, n trace.StepReads, used ...string) []string {
			row := append(append([]string(nil), drawn...), setting...)
			row = append(row, mean(n.Rows), mean(n.Lists))
			for _, c := range n.ComputedNodes {
				row = append(row, mean(c))
			}
			return append(row, used...)
		}
		none := []string{"", "", "", "", ""}
		rows = append(rows, append(line([]string{"", "", "none", ""}, d.Without, none...), windowCells(d.Without.Windows)...))
		for i := range d.Variants {
			v := &d.Variants[i]
			used := []string{
				percent(v.Reuse), percent(float64(v.ProvisionalHits) / float64(max(v.Hits, 1))), percent(float64(v.UsedRejected) / float64(max(v.Hits, 1))),
				percent(float64(v.Refused) / float64(max(v.Computed, 1))), mean(v.MeanAge),
			}
			setting := []string{staleText(v.TStale), count(int64(v.Lag)), v.Asked, kernels.FormatBytes(v.SlotsBytes)}
			rows = append(rows, append(line(setting, v.StepReads, used...), windowCells(v.Windows)...))
			if v.Prefix != nil {
				rows = append(rows, append(line([]string{"", "", "a prefix", kernels.FormatBytes(v.Prefix.PrefixBytes)}, d.Without, none...), windowCells(v.Prefix)...))
			}
		}
	}
	tabulate(w, rows)
	if slices.ContainsFunc(h.Draws, func(d trace.HistoryDraws) bool { return d.Sampler == sample.RW }) {
		fmt.Fprintln(w, "note: the neighbour lists that walks of rw read are not counted")
	}
	printTraceSlots(w, h)
}

// windowCells are how windows came out, in a line of the table; none where none were planned.
func windowCells(n *trace.Windows) []string {
	if n == nil {
		return nil
	}
	return []string{kernels.FormatBytes(n.SlabBytes), mean(n.Steps), fmt.Sprintf("%.2f", n.RowMS), fmt.Sprintf("%.2f", n.ListMS), fmt.Sprintf("%.2f", n.DeviceMS)}
}

// printTraceSlots prints which rows were kept, layer by layer and type by type.
func printTraceSlots(w io.Writer, h *trace.HistoryReport) {
	rows := [][]string{{"sampler", "κ", "t_stale", "K", "asked", "layer", "type", "slots", "take", "kept at the end", "reused", "refused", "age"}}
	for _, d := range h.Draws {
		for _, v := range d.Variants {
			for _, l := range v.Layers {
				rows = append(rows, []string{
					string(d.Sampler), sample.KappaText(d.Kappa), staleText(v.TStale), count(int64(v.Lag)), v.Asked, strconv.Itoa(l.Layer), l.Type,
					count(int64(l.Slots)), kernels.FormatBytes(l.Bytes), count(l.Live), percent(l.Reuse), count(l.Refused), mean(l.MeanAge),
				})
			}
		}
	}
	if len(rows) == 1 {
		fmt.Fprintln(w, "note: no variant keeps a row: --p-grad or --t-stale is 0, or --history-memory has no room for one")
		return
	}
	printf(w, "\nslots, by the layer that makes the rows:\n")
	tabulate(w, rows)
}
