package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/page"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
)

// MostDrawn is the largest number of runs whose curves a page draws. Its table has the other runs
// too.
const MostDrawn = 12

// compare describes several runs side by side.
func compare(runs []*run.Result) *page.Document {
	d := &page.Document{Kind: "training runs", Title: fmt.Sprintf("%d runs", len(runs)), Made: time.Now()}
	running, names := 0, labels(runs)
	for _, r := range runs {
		if r.Status == run.Running {
			running++
		}
	}
	if running > 0 {
		d.Status, d.Tone = fmt.Sprintf("%d running", running), page.Active
	}
	datasets := map[string]bool{}
	for _, r := range runs {
		datasets[r.Dataset] = true
	}
	d.Lead = "dataset " + strings.Join(slices.Sorted(maps.Keys(datasets)), ", ")
	drawn := runs[:min(len(runs), MostDrawn)]
	d.Sections = append(d.Sections, summaryOf(runs, names), curvesOf(drawn, names), sideBySide(drawn, names))
	if s := differencesOf(runs, names); len(s.Tables) > 0 {
		d.Sections = append(d.Sections, s)
	}
	return d
}

// summaryOf returns the section with the table of all runs.
func summaryOf(runs []*run.Result, names []string) page.Section {
	t := page.Table{Head: page.Columns("run", "status", "#epochs", "#best", "metric", "#validation", "#test", "#time", "#from disk",
		"#peak memory")}
	best := map[metric.Kind]*float64{}
	for _, r := range runs {
		if v := r.Best.ValidAcc; v != nil && (best[r.Metric] == nil || r.Metric.Better(*v, *best[r.Metric])) {
			best[r.Metric] = v
		}
	}
	for i, r := range runs {
		bestEpoch := "–"
		if r.Best.Epoch > 0 {
			bestEpoch = fmt.Sprint(r.Best.Epoch)
		}
		row := page.Cells(names[i], r.Status, whole(len(r.Epochs)), bestEpoch, nameOf(r.Metric),
			measureOf(r.Metric, r.Best.ValidAcc), measureOf(r.Metric, r.Best.TestAcc), duration(r.EpochSeconds()),
			size(r.Disk.BytesRead), size(r.PeakRSSBytes))
		if i < MostDrawn {
			row[0].Series = i + 1
		}
		row[5].Strong = r.Best.ValidAcc != nil && *r.Best.ValidAcc == *best[r.Metric]
		if r.Error != "" {
			row[1].Text += ": " + r.Error
		}
		t.Rows = append(t.Rows, row)
	}
	s := page.Section{Name: "runs", Title: "Runs", Tables: []page.Table{t}}
	if len(runs) > MostDrawn {
		s.Text = fmt.Sprintf("The charts draw the first %d runs.", MostDrawn)
	}
	return s
}

// curvesOf returns the charts over epochs, with a line for each run.
func curvesOf(runs []*run.Result, names []string) page.Section {
	each := func(value func(e *run.Epoch) *float64) (all []page.Series) {
		for i, r := range runs {
			all = append(all, overEpochs(names[i], r.Epochs, value))
		}
		return all
	}
	s := page.Section{Name: "curves", Title: "Epochs side by side"}
	s.Charts = append(s.Charts, byEpoch("Loss", lossAxis(runs...), each(lossOf)...))
	var kinds []metric.Kind
	for _, r := range runs {
		if !slices.Contains(kinds, r.Metric) {
			kinds = append(kinds, r.Metric)
		}
	}
	for _, k := range kinds {
		c := byEpoch("Validation "+nameOf(k), page.Axis{Unit: unitOf(k)}, each(validOf)...)
		c.Empty = "Nothing was validated yet."
		for i, r := range runs { // an empty series keeps the place of a run, which decides its colour
			if r.Metric != k {
				c.Series[i] = page.Series{}
			}
		}
		s.Charts = append(s.Charts, c)
	}
	s.Charts = append(s.Charts,
		byEpoch("Rows without a disk read", page.Axis{Unit: page.Share}, each(hitsOf)...),
		byEpoch("Read from disk in an epoch", page.Axis{Unit: page.Bytes, Zero: true}, each(diskOf)...),
		byEpoch("Time of an epoch", page.Axis{Unit: page.Seconds, Zero: true}, each(secondsOf)...))
	return s
}

// sideBySide shows the stages of each run in a row, and the advice.
func sideBySide(runs []*run.Result, names []string) page.Section {
	s := page.Section{Name: "limits", Title: "What limits them"}
	t := page.Table{Title: "Stages", Head: page.Columns("run", "#sample", "#load", "#gather", "#step", "#write", "#wait", "limit"),
		Note: stagesNote}
	for i, r := range runs {
		l := LoadOf(r)
		row := []page.Cell{{Text: names[i], Series: i + 1}}
		for _, st := range []stage{
			{name: pipeline.Sample, share: l.Sample}, {name: pipeline.Load, share: l.Load},
			{name: pipeline.Gather, share: l.Gather},
			{name: pipeline.Step, share: l.Step}, {name: pipeline.Write, share: l.Write}, {name: "wait", share: l.Wait},
		} {
			row = append(row, page.Cell{Text: page.Share.Text(st.share), Strong: st.name == l.Limiting})
		}
		t.Rows = append(t.Rows, append(row, page.Cell{Text: cmp.Or(l.Limiting, "–")}))
		if r.Advice != "" {
			s.Points = append(s.Points, names[i]+": "+r.Advice)
		}
	}
	s.Tables = append(s.Tables, t)
	return s
}

// differencesOf shows the options whose values differ among the runs.
func differencesOf(runs []*run.Result, names []string) page.Section {
	s := page.Section{Name: "options", Title: "Options that differ"}
	if len(runs) == 0 {
		return s
	}
	values := map[string][]string{} // by flag, the value of each run
	flags := run.Table.Flags()
	for i, r := range runs {
		for _, d := range run.Table.Diff(&r.Options, &runs[0].Options) {
			flag := cmp.Or(flags[d.Key], d.Key)
			if values[flag] == nil {
				values[flag] = slices.Repeat([]string{d.Then}, len(runs))
			}
			values[flag][i] = d.Now
		}
	}
	if len(values) == 0 {
		return s
	}
	keys := slices.Sorted(maps.Keys(values))
	t := page.Table{Head: page.Columns(append([]string{"run"}, keys...)...)}
	for i := range runs {
		row := []page.Cell{{Text: names[i]}}
		if i < MostDrawn {
			row[0].Series = i + 1
		}
		for _, k := range keys {
			row = append(row, page.Cell{Text: values[k][i]})
		}
		t.Rows = append(t.Rows, row)
	}
	s.Tables = append(s.Tables, t)
	return s
}
