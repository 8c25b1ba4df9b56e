package live

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/page"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
)

// Document describes runs for a page: one run in full, or several side by side. It shows the Advice
// of runs unchanged. Strangers may have written the files that the results were read from.
func Document(runs []*run.Result) *page.Document {
	if len(runs) != 1 {
		return compare(runs)
	}
	r := runs[0]
	d := &page.Document{
		Kind: "training run", Title: r.Run, Status: r.Status, Tone: toneOf(r.Status), Lead: leadOf(r), Made: time.Now(),
		Facts: factsOf(r),
	}
	d.Sections = append(d.Sections, limitsOf(r), learningOf(r), tiersOf(r))
	if s := testOf(r); len(s.Tables) > 0 {
		d.Sections = append(d.Sections, s)
	}
	d.Sections = append(d.Sections, optionsOf(r), recordOf(r))
	return d
}

func toneOf(status string) page.Tone {
	switch status {
	case run.Running:
		return page.Active
	case run.Done, run.StoppedEarly:
		return page.Good
	case run.Failed, run.Died:
		return page.Bad
	}
	return page.Plain
}

// leadOf returns a line on how far the run is, or how it ended.
func leadOf(r *run.Result) string {
	parts := []string{"dataset " + r.Dataset, "model " + string(r.Options.Kind)}
	if where := whereOf(r); where != "" {
		parts = append(parts, where)
	}
	if l := r.Live; l != nil && l.ETASeconds != nil {
		parts = append(parts, duration(*l.ETASeconds)+" left")
	}
	if r.Error != "" {
		parts = append(parts, r.Error)
	}
	return strings.Join(parts, " · ")
}

// whereOf returns the epoch and the step that a run has reached.
func whereOf(r *run.Result) string {
	epochs := run.EpochsText(r.Options, r.AutoEpochs)
	switch l := r.Live; {
	case l != nil && l.Epoch == 0:
		return fmt.Sprintf("epoch %d of %s, no step is done yet", len(r.Epochs)+1, epochs)
	case l != nil:
		return fmt.Sprintf("epoch %d of %s, step %s of %s", l.Epoch, epochs, whole(l.Step), whole(l.Steps))
	case r.Status == run.Running:
		return fmt.Sprintf("epoch %d of %s", len(r.Epochs), epochs)
	}
	return fmt.Sprintf("%s epochs", whole(len(r.Epochs)))
}

// duration writes a time with at most two units: 3 min 20 s.
func duration(s float64) string {
	if s = min(max(s, 0), 1e9); s < 10 {
		return page.Seconds.Text(s)
	}
	n := int(s + 0.5)
	switch {
	case n < 60:
		return fmt.Sprintf("%d s", n)
	case n < 3600:
		return fmt.Sprintf("%d min %d s", n/60, n%60)
	case n < 48*3600:
		return fmt.Sprintf("%d h %d min", n/3600, n%3600/60)
	}
	return fmt.Sprintf("%d days %d h", n/86400, n%86400/3600)
}

// sentence returns text with a capital at its start and a full stop at its end.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return capital(strings.TrimSuffix(text, ".")) + "."
}

// capital returns text with its first letter in upper case.
func capital(text string) string {
	first, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[n:]
}

// whole writes a whole number.
func whole[N int | int64](n N) string { return page.Integer.Text(float64(n)) }

// size writes a number of bytes.
func size(n int64) string { return kernels.FormatBytes(n) }

// unitOf returns the unit of a metric.
func unitOf(k metric.Kind) page.Unit {
	if k.OfNumbers() {
		return page.Number
	}
	return page.Share
}

// measureOf returns a metric's value with its unit, or a dash.
func measureOf(k metric.Kind, v *float64) string {
	if v == nil {
		return "–"
	}
	return unitOf(k).Text(*v)
}

func nameOf(k metric.Kind) string { return cmp.Or(string(k), string(metric.Accuracy)) }

func factsOf(r *run.Result) (facts []page.Fact) {
	add := func(name, value, note string) { facts = append(facts, page.Fact{Name: name, Value: value, Note: note}) }
	if r.Best.ValidAcc != nil {
		add("Best validation "+nameOf(r.Metric), measureOf(r.Metric, r.Best.ValidAcc), fmt.Sprintf("epoch %d", r.Best.Epoch))
	}
	if r.Best.TestAcc != nil {
		note := ""
		if b := r.Baseline; b != nil && b.Test != nil {
			note = fmt.Sprintf("%s by %s", measureOf(r.Metric, b.Test), b.What)
		}
		add("Test "+nameOf(r.Metric), measureOf(r.Metric, r.Best.TestAcc), note)
	}
	last := len(r.Epochs) - 1
	switch {
	case r.Live != nil && r.Live.Loss != nil:
		add("Loss", page.Number.Text(*r.Live.Loss), "of the last step")
	case last >= 0:
		add("Loss", page.Number.Text(r.Epochs[last].Loss), fmt.Sprintf("of epoch %d", r.Epochs[last].Epoch))
	}
	if last >= 0 {
		total := r.EpochSeconds()
		add("Training time", duration(total), page.Seconds.Text(total/float64(last+1))+" an epoch")
	}
	if r.InputRows > 0 {
		add("Rows without a disk read", page.Share.Text(1-float64(r.Disk.Rows)/float64(r.InputRows)),
			"of "+whole(r.InputRows)+" rows")
	}
	if r.Disk.BytesRead > 0 || r.InputRows > 0 {
		note := ""
		if r.Disk.Amplification > 0 {
			note = fmt.Sprintf("%.2f bytes read for each byte needed", r.Disk.Amplification)
		}
		add("Read from disk", size(r.Disk.BytesRead), note)
	}
	if r.PeakRSSBytes > 0 {
		note := ""
		if r.Memory != nil {
			note = "of a budget of " + size(r.Memory.BudgetBytes)
		}
		add("Peak memory", size(r.PeakRSSBytes), note)
	}
	if s := r.Stream; s != nil {
		add("Staleness", fmt.Sprintf("%d steps", s.Staleness.K),
			page.Share.Text(s.Staleness.Realised)+" of reads were out of date")
	}
	if w := r.Workers; w != nil {
		add("Workers", fmt.Sprint(len(w.InputRows)), fmt.Sprintf("tiers and stages are shown for worker %d", w.Rank))
	}
	return facts
}

// stage is a row of the table of stages.
type stage struct {
	name  string
	share float64
	note  string
}

// stagesOf returns the stages of a run, in the order of the pipeline.
func stagesOf(r *run.Result, l Load) []stage {
	all := []stage{
		{pipeline.Sample, l.Sample, "draws batches"},
		{pipeline.Load, l.Load, "reads windows of rows"},
		{pipeline.Gather, l.Gather, "copies the rows of steps"},
		{pipeline.State, l.State, "part of gather: copies rows that steps rewrite"},
		{pipeline.Step, l.Step, "computes"},
		{pipeline.Write, l.Write, "writes rows back"},
		{"wait", l.Wait, "the step waits for rows"},
		{"disk", l.Disk, "reads of rows, in any stage"},
	}
	if r.Topology != nil {
		all = append(all, stage{"lists", l.Lists, "reads of neighbour lists, in any stage"})
	}
	var some []stage
	for _, s := range all {
		if (s.name == pipeline.State || s.name == pipeline.Write) && r.Stream == nil && s.share == 0 {
			continue // only runs on streams, or with learnt rows, have these stages
		}
		some = append(some, s)
	}
	return some
}

// stagesNote explains the shares in a table of stages.
const stagesNote = "Each share is of the time in which steps computed or waited. Stages work at the same time, so the shares can add up to more than 100 %."

// limitsOf returns the section with the stages as bars, and the advice.
func limitsOf(r *run.Result) page.Section {
	s := page.Section{Name: "limits", Title: "What limits it", Text: sentence(r.Advice)}
	l := LoadOf(r)
	if l.Limiting == "" {
		if s.Text == "" {
			s.Text = "No step was done yet."
		}
		return s
	}
	t := page.Table{Title: "Stages", Head: page.Columns("stage", "#busy", "what it does"),
		Note: stagesNote}
	if r.Live != nil && r.Live.Recent.Stages.Step > 0 {
		t.Title = fmt.Sprintf("Stages in the last %s", duration(r.Live.Recent.Wall))
	}
	for _, st := range stagesOf(r, l) {
		limits := st.name == l.Limiting
		if limits {
			st.note += "; it limits the others"
		}
		t.Rows = append(t.Rows, []page.Cell{
			{Text: st.name, Strong: limits},
			{Text: page.Share.Text(st.share), Bar: &st.share, Strong: limits},
			{Text: st.note, Strong: limits},
		})
	}
	s.Tables = append(s.Tables, t)
	if w := r.Workers; w != nil {
		s.Tables = append(s.Tables, workersTable(w))
	}
	return s
}

func workersTable(w *run.WorkersOf) page.Table {
	t := page.Table{Title: "Workers", Head: page.Columns("worker", "#rows read", "#from disk", "#sent", "#in exchanges"),
		Note: "Up to the newest checkpoint. The time in exchanges is waiting for other workers, and sending."}
	for p := range w.InputRows {
		t.Rows = append(t.Rows, page.Cells(fmt.Sprint(p), whole(w.InputRows[p]), size(at(w.DiskBytes, p)),
			size(at(w.SentBytes, p)), page.Seconds.Text(at(w.WaitSeconds, p))))
	}
	return t
}

// overEpochs returns a series of the epochs that have a value.
func overEpochs(name string, epochs []run.Epoch, value func(e *run.Epoch) *float64) page.Series {
	s := page.Series{Name: name}
	for i := range epochs {
		if v := value(&epochs[i]); v != nil {
			s.X, s.Y = append(s.X, float64(epochs[i].Epoch)), append(s.Y, *v)
		}
	}
	return s
}

// byEpoch returns a chart over epochs.
func byEpoch(title string, y page.Axis, series ...page.Series) page.Chart {
	return page.Chart{Title: title, X: page.Axis{Name: "epoch", Unit: page.Integer}, Y: y, Series: series, Empty: noEpoch}
}

func lossOf(e *run.Epoch) *float64      { return &e.Loss }
func trainOf(e *run.Epoch) *float64     { return &e.TrainAcc }
func validOf(e *run.Epoch) *float64     { return e.ValidAcc }
func testOfEpoch(e *run.Epoch) *float64 { return e.TestAcc }
func secondsOf(e *run.Epoch) *float64   { return &e.Seconds }
func hitsOf(e *run.Epoch) *float64      { return &e.HitRate }
func diskOf(e *run.Epoch) *float64      { v := float64(e.DiskBytes); return &v }

// noEpoch is the text of a chart before the first epoch has ended.
const noEpoch = "No epoch has ended yet."

// lossAxis returns the axis of losses: logarithmic if the highest is over 50 times the lowest.
func lossAxis(runs ...*run.Result) page.Axis {
	low, high := math.Inf(1), 0.0
	for _, r := range runs {
		for _, e := range r.Epochs {
			low, high = min(low, e.Loss), max(high, e.Loss)
		}
	}
	return page.Axis{Name: "loss", Log: low > 0 && high > 50*low}
}

func learningOf(r *run.Result) page.Section {
	loss := byEpoch("Loss", lossAxis(r), overEpochs("training", r.Epochs, lossOf))
	quality := byEpoch(capital(nameOf(r.Metric)), page.Axis{Unit: unitOf(r.Metric)}, overEpochs("training batches", r.Epochs, trainOf))
	for _, part := range []page.Series{
		overEpochs("validation", r.Epochs, validOf), overEpochs("test", r.Epochs, testOfEpoch),
	} {
		if len(part.X) > 0 {
			quality.Series = append(quality.Series, part)
		}
	}
	if len(r.Epochs) > 0 {
		quality.Empty = "Nothing was measured."
		if len(quality.Series) == 1 {
			quality.Note = "Nothing was validated."
		}
	}
	return page.Section{Name: "learning", Title: "Learning", Charts: []page.Chart{loss, quality}}
}

// tierShares returns the share of the rows that each tier served, by epoch.
func tierShares(r *run.Result) (all []page.Series) {
	recorded := false
	for _, e := range r.Epochs {
		recorded = recorded || e.DeviceRows > 0 || e.HostRows > 0
	}
	if !recorded && r.Tiers.Device.RowsHit+r.Tiers.Host.RowsHit > 0 {
		return nil // an earlier version wrote the result, and did not record this
	}
	share := func(rows func(e *run.Epoch) int64) func(e *run.Epoch) *float64 {
		return func(e *run.Epoch) *float64 {
			if e.InputRows <= 0 {
				return nil
			}
			v := float64(rows(e)) / float64(e.InputRows)
			return &v
		}
	}
	for _, tier := range []struct {
		name string
		rows func(e *run.Epoch) int64
	}{
		{"device", func(e *run.Epoch) int64 { return e.DeviceRows }},
		{"host", func(e *run.Epoch) int64 { return e.HostRows }},
		{"disk", func(e *run.Epoch) int64 { return e.InputRows - e.DeviceRows - e.HostRows }},
	} {
		all = append(all, overEpochs(tier.name, r.Epochs, share(tier.rows)))
	}
	return all
}

func tiersOf(r *run.Result) page.Section {
	s := page.Section{Name: "tiers", Title: "Tiers"}
	if shares := tierShares(r); shares != nil || len(r.Epochs) == 0 {
		stack := byEpoch("Rows served by each tier", page.Axis{Unit: page.Share, Zero: true, Full: true}, shares...)
		stack.Form = page.Stack
		s.Charts = append(s.Charts, stack)
	}
	s.Charts = append(s.Charts,
		byEpoch("Read from disk in an epoch", page.Axis{Unit: page.Bytes, Zero: true}, overEpochs("rows", r.Epochs, diskOf)),
		byEpoch("Rows without a disk read", page.Axis{Unit: page.Share}, overEpochs("hit share", r.Epochs, hitsOf)),
		byEpoch("Time of an epoch", page.Axis{Unit: page.Seconds, Zero: true}, overEpochs("training", r.Epochs, secondsOf)))
	t := page.Table{
		Title: "All epochs together",
		Head:  page.Columns("tier", "#room", "#used", "#rows served", "#share", "#bytes served", "#bytes read in", "#evictions"),
	}
	row := func(name string, tier cachetier.Tier, asked int64) {
		share := page.Cell{Text: "–"}
		if asked > 0 {
			v := float64(tier.RowsHit) / float64(asked)
			share = page.Cell{Text: page.Share.Text(v), Bar: &v}
		}
		cells := page.Cells(name, size(tier.CapacityBytes), size(tier.UsedBytes), whole(tier.RowsHit), "",
			size(tier.BytesOut), size(tier.BytesRead), whole(tier.Evictions))
		cells[4] = share
		t.Rows = append(t.Rows, cells)
	}
	row("device", r.Tiers.Device, r.InputRows)
	row("host", r.Tiers.Host, r.InputRows)
	row("disk", r.Tiers.Disk, r.InputRows)
	if r.Topology != nil {
		row("neighbour lists", r.Topology.Tier, r.Topology.RowsHit+r.Topology.RowsMissed)
	}
	s.Tables = append(s.Tables, t)
	if m := r.Memory; m != nil {
		split := page.Table{Title: "Memory budget of " + size(m.BudgetBytes), Head: page.Columns("part", "#size")}
		for _, p := range m.Parts {
			v := float64(p.Bytes) / float64(max(m.BudgetBytes, 1))
			split.Rows = append(split.Rows, []page.Cell{{Text: p.Name}, {Text: size(p.Bytes), Bar: &v}})
		}
		s.Tables = append(s.Tables, split)
	}
	return s
}

// testOf returns the section with the figures of each class in the test part.
func testOf(r *run.Result) page.Section {
	s := page.Section{Name: "test", Title: "Test part"}
	if r.Report == nil || len(r.Report.Classes) == 0 {
		return s
	}
	t := page.Table{Title: "Classes", Folded: len(r.Report.Classes) > 12,
		Head: page.Columns("class", "#rows", "#predicted", "#precision", "#recall", "#F1", "#ROC-AUC", "#PR-AUC")}
	for i, c := range r.Report.Classes {
		row := page.Cells(cmp.Or(c.Name, fmt.Sprint(i)), whole(c.Count), whole(c.Predicted))
		for _, v := range []*float64{c.Precision, c.Recall, c.F1, c.ROCAUC, c.PRAUC} {
			row = append(row, page.Cell{Text: measureOf("", v)})
		}
		t.Rows = append(t.Rows, row)
	}
	s.Tables = append(s.Tables, t)
	return s
}

// defaultsOf returns the defaults of the options of a run.
func defaultsOf(o *run.Options) run.Options {
	if o.Streams() {
		return run.DefaultStreamOptions(o.Kind)
	}
	return run.DefaultOptions()
}

func optionsOf(r *run.Result) page.Section {
	s := page.Section{Name: "options", Title: "Options"}
	defaults := defaultsOf(&r.Options)
	t := page.Table{Title: "Options that were given, or chosen by the data", Head: page.Columns("option", "value")}
	for _, c := range run.Table.Choices(&r.Options, &defaults) {
		t.Rows = append(t.Rows, page.Cells(cmp.Or(c.Flag, c.Key), c.Text))
	}
	about := page.Table{Title: "Run", Head: page.Columns("what", "value")}
	for _, row := range [][2]string{
		{"directory", r.Run}, {"dataset", r.Dataset}, {"seal of the dataset", r.Seal}, {"seed", fmt.Sprint(r.Seed)},
		{"device", strings.TrimSpace(r.Device + " " + r.DeviceName)}, {"kernels", r.Kernels}, {"reads by", r.DiskEngine},
		{"weights", r.ParamsXXH3},
	} {
		if row[1] != "" {
			about.Rows = append(about.Rows, page.Cells(row[0], row[1]))
		}
	}
	if len(t.Rows) > 0 {
		s.Tables = append(s.Tables, t)
	}
	s.Tables = append(s.Tables, about)
	return s
}

// mostEpochRows is the largest number of epochs in the table of epochs.
const mostEpochRows = 40

// recordOf returns the section with the figures of epochs as a table, for readers who cannot see
// charts.
func recordOf(r *run.Result) page.Section {
	s := page.Section{Name: "record", Title: "Epochs"}
	if len(r.Epochs) == 0 {
		s.Text = noEpoch
		return s
	}
	t := page.Table{Title: "Figures of epochs", Folded: true,
		Head: page.Columns("epoch", "#loss", "#training", "#validation", "#test", "#time", "#steps", "#rows", "#from disk",
			"#hit share", "limit")}
	n := len(r.Epochs)
	each := (n + mostEpochRows - 1) / mostEpochRows
	for i, e := range r.Epochs {
		best := e.Epoch == r.Best.Epoch
		if (n-1-i)%each != 0 && !best && i != 0 {
			continue
		}
		row := page.Cells(whole(e.Epoch), page.Number.Text(e.Loss), measureOf(r.Metric, &e.TrainAcc),
			measureOf(r.Metric, e.ValidAcc), measureOf(r.Metric, e.TestAcc), page.Seconds.Text(e.Seconds),
			whole(e.Steps), whole(e.InputRows),
			size(e.DiskBytes), page.Share.Text(e.HitRate), e.LimitingStage)
		for k := range row {
			row[k].Strong = best
		}
		t.Rows = append(t.Rows, row)
	}
	if each > 1 {
		t.Note = fmt.Sprintf("The table has one epoch in %d, and the first and the best epoch.", each)
	}
	s.Tables = append(s.Tables, t)
	return s
}

// labels returns a name for each run: the last part of its path, or the whole path if another run
// ends alike.
func labels(runs []*run.Result) (names []string) {
	seen := map[string]int{}
	for _, r := range runs {
		seen[filepath.Base(r.Run)]++
	}
	for _, r := range runs {
		name := filepath.Base(r.Run)
		if seen[name] > 1 {
			name = r.Run
		}
		names = append(names, name)
	}
	return names
}
