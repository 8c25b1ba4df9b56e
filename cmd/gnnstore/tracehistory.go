package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/trace"
)

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
	if err := setting.Bytes(&s.Bytes).Or("auto", history.Auto).Set(text); err != nil {
		return s, fmt.Errorf("%q is neither auto nor all, nor a share such as 0.5%%, nor a size such as 0, 1MiB or 4GiB", text)
	}
	return s, nil
}

// staleText returns a t_stale as --t-stale takes it.
func staleText(n int) string { return run.StaleValue(&n).String() }

// printTraceHistory prints how much reused rows save.
func printTraceHistory(w io.Writer, r *trace.Report) {
	h := r.History
	printf(w, "\nhidden rows used again, fanout %s, batches of %s; a step of the steps %s to %s:\n", run.FanoutText(r.Fanouts, r.RelationFanouts), count(int64(r.Batch)),
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
	if slices.ContainsFunc(h.Draws, func(d trace.HistoryDraws) bool { return d.Sampler.Walks() }) {
		fmt.Fprintln(w, "note: the neighbour lists that walks of rw read are not counted")
	}
	printTraceSlots(w, h)
}

// windowCells returns the figures of windows as cells of a row, or nil if none were planned.
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
