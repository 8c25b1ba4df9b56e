package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/sweep"
)

// sweepResult is the output of a sweep; its JSON keys are stable.
type sweepResult struct {
	Run      string          `json:"run"` // directory
	Dataset  string          `json:"dataset"`
	Metric   string          `json:"metric"`
	Settings []*sweptSetting `json:"settings"` // the best by validation first
	RunCount int             `json:"runs"`
	Failed   int             `json:"failed"` // runs
	// Chosen is the setting that validation chose; null: all runs failed. Valid and Test are its
	// figures.
	Chosen *sweptSetting  `json:"chosen"`
	Valid  *metric.Spread `json:"valid"`
	Test   *metric.Spread `json:"test"`
	// Command trains the chosen setting again.
	Command string `json:"command,omitempty"`

	alike []string
	kind  metric.Kind
}

// sweptSetting is a setting in the output of a sweep.
type sweptSetting struct {
	Trial   int               `json:"trial"`
	Options map[string]string `json:"options"` // only options that vary
	Rung    int               `json:"rung"`    // the last one it trained in; without halving 1
	Failed  int               `json:"failed"`  // runs
	// Valid and Test are over the runs that did not fail. Only the chosen setting has Test.
	Valid   *metric.Spread `json:"valid"`
	Test    *metric.Spread `json:"test,omitempty"`
	Epochs  int            `json:"epochs"`  // of the longest run
	Seconds float64        `json:"seconds"` // of all runs
	Runs    []sweep.Ran    `json:"runs"`

	texts []string // of the options, in their order
}

// result returns the output for an outcome.
func (s *sweeping) result(out *sweep.Outcome) *sweepResult {
	r := &sweepResult{
		Run: s.dir, Dataset: s.grid.Dataset, Metric: string(out.Metric), Settings: []*sweptSetting{},
		RunCount: len(s.settings) * s.grid.Seeds, kind: out.Metric,
	}
	for _, t := range out.Tried {
		one := &sweptSetting{
			Trial: t.Number, Options: optionsOf(t.Setting), Rung: t.Rung, Failed: t.Failures(), Runs: t.Runs,
			Valid: t.Valid, Test: t.Test,
		}
		for _, c := range t.Choices {
			one.texts = append(one.texts, c.Text)
		}
		for _, ran := range t.Runs {
			one.Epochs, one.Seconds = max(one.Epochs, ran.Epochs), one.Seconds+ran.Seconds
		}
		r.Settings, r.Failed = append(r.Settings, one), r.Failed+one.Failed
		if t == out.Chosen {
			r.Chosen, r.Valid, r.Test, r.Command = one, t.Valid, t.Test, s.command(t.Setting)
		}
	}
	slices.SortStableFunc(r.Settings, func(a, b *sweptSetting) int {
		none := func(t *sweptSetting) int { return map[bool]int{true: 1}[t.Valid == nil] }
		order := cmp.Or(cmp.Compare(none(a), none(b)), cmp.Compare(b.Rung, a.Rung),
			cmp.Compare(min(a.Failed, 1), min(b.Failed, 1)))
		if order != 0 || a.Valid == nil {
			return order
		}
		return better(r.kind, &a.Valid.Mean, &b.Valid.Mean)
	})
	for _, pair := range out.Alike() {
		r.alike = append(r.alike, fmt.Sprintf("trials %d and %d have the same weights, so the options that differ have no effect there", pair[0].Number,
			pair[1].Number))
	}
	return r
}

// print writes the table, and the chosen setting with its command.
func (r *sweepResult) print(w io.Writer, s *sweeping) {
	head := append([]string{"trial"}, s.columns()...)
	if len(s.ladder) > 1 {
		head = append(head, "rung")
	}
	head = append(head, "runs", "epochs", column("valid", r.kind), "seconds")
	rows := [][]string{head}
	for _, t := range r.Settings {
		row := append([]string{strconv.Itoa(t.Trial)}, t.texts...)
		if len(s.ladder) > 1 {
			row = append(row, strconv.Itoa(t.Rung))
		}
		runs := strconv.Itoa(len(t.Runs))
		if t.Failed > 0 {
			runs = fmt.Sprintf("%d of %d", len(t.Runs)-t.Failed, len(t.Runs))
		}
		valid := meanText(r.kind, t.Valid, len(t.Runs)-t.Failed)
		rows = append(rows, append(row, runs, strconv.Itoa(t.Epochs), valid, seconds(t.Seconds)))
	}
	fmt.Fprintln(w)
	tabulate(w, rows)
	fmt.Fprintln(w)
	for i, text := range r.alike {
		if i == mostAlike {
			printf(w, "note: and %d more\n", len(r.alike)-i)
			break
		}
		printf(w, "note: %s\n", text)
	}
	if r.Failed > 0 && r.Chosen != nil {
		printf(w, "note: %d of %d runs failed, and means are over the others\n", r.Failed, r.RunCount)
	}
	if c := r.Chosen; c != nil {
		n := len(c.Runs) - c.Failed
		over := ""
		if n > 1 {
			over = fmt.Sprintf(" over %d seeds", n)
		}
		printf(w, "best: trial %d, chosen by validation: %s %s, %s %s%s; the test part was measured for it alone\n  %s\n", c.Trial,
			column("valid", r.kind), meanText(r.kind, c.Valid, n), column("test", r.kind), meanText(r.kind, c.Test, n), over, r.Command)
	}
}

// mostAlike bounds the notes about settings with the same weights.
const mostAlike = 5

// meanText returns the mean and the deviation of n values as text, or the value if there is one.
func meanText(k metric.Kind, s *metric.Spread, n int) string {
	switch {
	case s == nil:
		return "-"
	case n < 2:
		return measured(k, &s.Mean)
	case k.OfNumbers():
		return fmt.Sprintf("%.4g ± %.2g", s.Mean, s.Deviation)
	}
	return fmt.Sprintf("%.2f ± %.2f %%", 100*s.Mean, 100*s.Deviation)
}
