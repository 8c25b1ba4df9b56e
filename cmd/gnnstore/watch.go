package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/live"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
)

// screen shows results one after the other: in place on a terminal, as lines elsewhere.
type screen struct {
	w     io.Writer
	tty   *os.File // the terminal behind it, or nil
	json  bool
	drawn int // lines, which the next result overwrites
}

func newScreen(w io.Writer, asJSON bool) *screen {
	return &screen{w: w, tty: screenOf(w), json: asJSON}
}

func (s *screen) show(r *run.Result) error {
	switch {
	case s.json:
		return writeJSON(s.w, r, "")
	case s.tty == nil:
		_, err := fmt.Fprintln(s.w, line(r))
		return err
	}
	width, height, err := term.GetSize(int(s.tty.Fd()))
	if err != nil || width < 1 || height < 2 {
		width, height = viewWidth, viewHeight+1
	}
	return s.draw(s.tty, view(r, height-1), width, height)
}

// draw overwrites what was drawn before. Lines are cut to the terminal: a broken one would take the
// place of two.
func (s *screen) draw(w io.Writer, lines []string, width, height int) error {
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	lines = lines[:min(len(lines), height-1)]
	for _, l := range lines {
		if text := []rune(l); len(text) > width {
			l = string(text[:width])
		}
		fmt.Fprintf(&b, "\r\x1b[K%s\n", l) // cleared first: behind a line that is full, its last character would go
	}
	b.WriteString("\x1b[J")
	s.drawn = len(lines)
	_, err := io.WriteString(w, b.String())
	return err
}

// line describes a run in a line.
func line(r *run.Result) string {
	if r.Status != run.Running {
		return clean(outcome(r))
	}
	l := live.LoadOf(r)
	parts := []string{where(r)}
	if r.Live != nil && r.Live.Loss != nil {
		parts = append(parts, fmt.Sprintf("loss %.4f", *r.Live.Loss))
	}
	if l.Limiting != "" {
		parts = append(parts, rates(r, l), l.Limiting+" limits")
	}
	if h := r.History; h != nil && h.Hits > 0 {
		parts = append(parts, fmt.Sprintf("reuse %s of age %.1f", percent(h.Reuse), h.MeanAge))
	}
	if r.Stream != nil {
		parts = append(parts, fmt.Sprintf("staleness %d", r.Stream.Staleness.K))
	}
	if t := left(r); t != "" {
		parts = append(parts, t)
	}
	return clean(strings.Join(parts, "   "))
}

// where describes how far a run is: its epoch and step.
func where(r *run.Result) string {
	epochs := run.EpochsText(r.Options, r.AutoEpochs)
	if r.Live == nil {
		return fmt.Sprintf("epoch %d/%s", len(r.Epochs), epochs)
	}
	if r.Live.Epoch == 0 {
		return fmt.Sprintf("epoch %d/%s   no step is done yet", len(r.Epochs)+1, epochs)
	}
	step, steps := int64(r.Live.Step), int64(r.Live.Steps)
	s := fmt.Sprintf("epoch %d/%s   step %s/%s", r.Live.Epoch, epochs, count(step), count(steps))
	if step == steps {
		s += ", evaluating"
	}
	return s
}

// rates describes the recent work of training per second.
func rates(r *run.Result, l live.Load) string {
	if r.Stream != nil {
		return streamRates(r, l)
	}
	return fmt.Sprintf("rows %s/s   disk %s/s   hit %s", number(float64(l.Stats.InputRows)/l.Seconds),
		size(int64(float64(l.Stats.Disk.BytesRead)/l.Seconds)), percent(l.Hits()))
}

// left describes how long a run will still take. It returns "" if that is not known.
func left(r *run.Result) string {
	if r.Live == nil || r.Live.ETASeconds == nil {
		return ""
	}
	return duration(min(*r.Live.ETASeconds, 1e9)) + " left"
}

// A view fits in a terminal of 80 × 24, the line of the cursor included.
const (
	viewWidth  = 80
	viewHeight = 23
)

// view shows a run on a screen of this many lines: its progress, its tiers, its stages, and what
// limits it. A screen of more lines shows each layer of its history.
func view(r *run.Result, lines int) []string {
	l := live.LoadOf(r)
	var top, b strings.Builder
	if r.Status == run.Running {
		top.WriteString(where(r))
	} else {
		top.WriteString(outcome(r))
	}
	if r.Live != nil && r.Live.Loss != nil {
		printf(&top, "   loss %.4f", *r.Live.Loss)
	}
	if r.Stream != nil {
		printf(&top, "   staleness %d", r.Stream.Staleness.K)
	}
	printf(&top, "   run %s", r.Run) // last, for where there is no room for the path
	top.WriteByte('\n')
	if l.Limiting != "" {
		printf(&top, "%s", rates(r, l))
	}
	if r.Live != nil {
		printf(&top, "   %s so far   %s", duration(min(r.Live.Seconds, 1e9)), left(r))
	}
	top.WriteByte('\n')
	tierTable(&top, r)
	for _, stage := range []struct {
		name  string
		share float64
		note  string
	}{
		{pipeline.Sample, l.Sample, "lists from disk " + percent(l.Lists)},
		{pipeline.Load, l.Load, "rows from disk " + percent(l.Disk)},
		{pipeline.Gather, l.Gather, ""},
		{pipeline.State, l.State, "of gather"},
		{pipeline.Step, l.Step, ""},
		{pipeline.Write, l.Write, "of rewritten rows"},
		{"wait", l.Wait, "of the step, for rows"},
	} {
		if (stage.name == pipeline.State || stage.name == pipeline.Write) && r.Stream == nil && stage.name != l.Limiting {
			continue // of learnt rows it is little
		}
		if stage.name == l.Limiting {
			stage.note = strings.TrimPrefix(stage.note+", limits", ", ")
		}
		printf(&b, "%-6s  %s %8s  %s\n", stage.name, bar(stage.share), percent(stage.share), stage.note)
	}
	for _, text := range wrap(busText(r), viewWidth) {
		fmt.Fprintln(&b, text)
	}
	diskLines(&b, r)
	memoryLines(&b, r)
	advice := wrap(withFlags(r.Advice), viewWidth)
	room := func() int {
		return max(lines, viewHeight) - strings.Count(top.String(), "\n") - strings.Count(b.String(), "\n") - len(advice)
	}
	historyTable(&top, r, room())
	if r.Stream != nil && room() > 0 {
		stateLine(&top, r.Stream)
	}
	if len(advice) > 0 && room() > 0 {
		b.WriteByte('\n')
	}
	for _, text := range advice {
		fmt.Fprintln(&b, text)
	}
	text := strings.Split(strings.TrimRight(top.String()+b.String(), "\n"), "\n")
	for i := range text {
		text[i] = strings.TrimRight(clean(text[i]), " ")
	}
	return text
}

func tierTable(w io.Writer, r *run.Result) {
	tiers := tiersOf(r)
	if r.Topology != nil {
		tiers = append(tiers, namedTier{"topology", r.Topology.Tier})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "tier\troom\tused\trows out\tshare\tbytes out\tbytes in\tevicted\t")
	for i, tier := range tiers {
		asked := r.InputRows
		if i == 3 { // lists are asked of it alone
			asked = tier.RowsHit + tier.RowsMissed
		}
		share := "-"
		if asked > 0 {
			share = percent(float64(tier.RowsHit) / float64(asked))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", tier.name, size(tier.CapacityBytes), size(tier.UsedBytes),
			number(float64(tier.RowsHit)), share, size(tier.BytesOut), size(tier.BytesRead), number(float64(tier.Evictions)))
	}
	t.Flush()
}

// historyTable prints the counters of reused rows: a line for each layer if there are enough lines,
// else a line for all layers together, or nothing.
func historyTable(w io.Writer, r *run.Result, lines int) {
	h := r.History
	if h == nil || len(h.Layers) == 0 || lines < 2 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "history\tslots\tlive\thits\treuse\tage\tadmitted\trefused\tevicted\t")
	row := func(name string, slots, live int64, reuse, age float64, c *history.Counts) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%.1f\t%s\t%s\t%s\t\n", name, number(float64(slots)), number(float64(live)), number(float64(c.Hits)), percent(reuse), age,
			number(float64(c.Admitted)), number(float64(c.Refused)), number(float64(c.EvictedGrad)+float64(c.EvictedStale)))
	}
	if lines > len(h.Layers) {
		for i := range h.Layers {
			l := &h.Layers[i]
			row(fmt.Sprintf("%d %.8s", l.Layer, l.Type), int64(l.Slots), l.Live, l.Reuse, l.MeanAge, &l.Counts)
		}
	} else {
		live := int64(0)
		for _, l := range h.Layers {
			live += l.Live
		}
		row("all layers", h.Slots, live, h.Reuse, h.MeanAge, &h.Counts)
	}
	t.Flush()
}

func diskLines(w io.Writer, r *run.Result) {
	line := func(what string, d cachetier.Disk) {
		printf(w, "%s: %s read for %s (x %.1f), %s reads, %s", what, size(d.BytesRead), size(d.BytesWanted),
			d.Amplification, number(float64(d.Reads)), duration(d.Seconds))
	}
	line("disk", r.Disk)
	if r.Live != nil && r.Live.ReadsUnderWay != nil {
		printf(w, ", %d now", *r.Live.ReadsUnderWay)
	}
	if r.Topology != nil {
		fmt.Fprintln(w)
		line("topology", r.Topology.Disk)
	}
	if l := r.Latency; l != nil {
		printf(w, "\nlatency: half within %s, 90 %% %s, 99 %% %s, all %s",
			latency(l.P50), latency(l.P90), latency(l.P99), latency(l.Max))
	}
	fmt.Fprintln(w)
}

func latency(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(10 * time.Microsecond).String()
}

func memoryLines(w io.Writer, r *run.Result) {
	own, file, peak := r.PeakRSSBytes, r.PeakFileBytes, ""
	if r.Live != nil {
		own, file, peak = r.Live.ResidentBytes, r.Live.FileBytes, fmt.Sprintf(", peak %s", size(r.PeakRSSBytes))
	}
	printf(w, "memory: %s%s, mapped files %s", size(own), peak, size(file))
	if r.Window != nil {
		printf(w, "   window: %d steps, %s", r.Window.Steps, size(r.Window.Bytes))
	}
	fmt.Fprintln(w)
	if m := r.Memory; m != nil {
		var parts []string
		for _, p := range m.Parts {
			parts = append(parts, strings.ReplaceAll(p.Name+" "+size(p.Bytes), " ", tied))
		}
		beside := ""
		if m.OnDevice > 0 {
			beside = strings.ReplaceAll("; on the device "+size(m.OnDevice), " ", tied)
		}
		for _, text := range wrap("of "+size(m.BudgetBytes)+": "+strings.Join(parts, ", ")+beside, viewWidth) {
			fmt.Fprintln(w, text)
		}
	}
}

// bar draws a share in 30 cells. NaN, which no training sends but another server might, counts as
// 0.
func bar(share float64) string {
	const cells = 30
	if math.IsNaN(share) {
		share = 0
	}
	n := int(min(max(share, 0), 1)*cells + 0.5)
	return strings.Repeat("#", n) + strings.Repeat(".", cells-n)
}

// tied is a space as wide as a digit, which no text of ours has: wrap does not break there.
const tied = "\u2007"

// wrap breaks a text at spaces into lines of so many characters, or more where a word has more. A
// percent sign stays with its number.
func wrap(text string, width int) []string {
	var lines []string
	if text == "" {
		return lines
	}
	for _, word := range strings.Split(strings.ReplaceAll(text, " %", tied+"%"), " ") {
		word = strings.ReplaceAll(word, tied, " ")
		if n := len(lines); n > 0 && len(lines[n-1])+1+len(word) <= width {
			lines[n-1] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}
