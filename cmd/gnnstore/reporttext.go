package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/gnnstore/gnnstore/train/metric"
)

// printMeasures prints the measures of a report in one line, after prefix. It leaves out shown,
// which has been printed.
func printMeasures(w io.Writer, r *metric.Report, shown metric.Kind, prefix string) {
	if r == nil {
		return
	}
	var all []string
	for _, m := range []struct {
		kind  metric.Kind
		name  string
		value *float64
	}{
		{metric.Accuracy, "accuracy", r.Accuracy},
		{"", "balanced accuracy", r.BalancedAccuracy},
		{metric.MacroF1, "macro-F1", r.MacroF1},
		{metric.ROCAUC, "ROC-AUC", r.ROCAUC},
		{"", "PR-AUC", r.PRAUC},
		{"", "calibration error", r.CalibrationError},
	} {
		if m.value != nil && (m.kind == "" || m.kind != shown) {
			all = append(all, m.name+" "+percent(*m.value))
		}
	}
	printf(w, "%s%s\n", prefix, strings.Join(all, ", "))
}

// mostClassLines is the largest number of classes that printClasses prints: about a screen.
const mostClassLines = 40

// printClasses prints a table with a line for each class of a report.
func printClasses(w io.Writer, r *metric.Report) {
	if r == nil || len(r.Classes) == 0 {
		return
	}
	if len(r.Classes) > mostClassLines {
		printf(w, "--json has the %d classes\n", len(r.Classes))
		return
	}
	rows := [][]string{{"class", "rows", "predicted", "precision", "recall", "F1", "ROC-AUC", "PR-AUC"}}
	for i, c := range r.Classes {
		name := c.Name
		if name == "" {
			name = fmt.Sprint(i)
		}
		row := []string{clean(name), count(c.Count), count(c.Predicted)}
		for _, v := range []*float64{c.Precision, c.Recall, c.F1, c.ROCAUC, c.PRAUC} {
			if v == nil {
				row = append(row, "-")
			} else {
				row = append(row, percent(*v))
			}
		}
		rows = append(rows, row)
	}
	tabulate(w, rows)
}

// printRanks prints the shares of links that are ranked among the first ones, after prefix.
func printRanks(w io.Writer, within map[string]float64, prefix string) {
	if within != nil {
		printf(w, "%slinks ranked first %s, among the first 3 %s, among the first 10 %s\n", prefix, percent(within["1"]), percent(within["3"]),
			percent(within["10"]))
	}
}
