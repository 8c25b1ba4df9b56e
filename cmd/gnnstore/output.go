package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/metric"
)

// printJSON writes one object.
func printJSON(w io.Writer, v any) error { return writeJSON(w, v, "  ") }

// writeJSON writes an object, and escapes what a terminal would obey beyond what JSON itself does.
func writeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	var safe strings.Builder
	for _, c := range b.String() {
		if obeyed(c) && c != '\n' {
			fmt.Fprintf(&safe, `\u%04x`, c) // inside a string: outside there is none
		} else {
			safe.WriteRune(c)
		}
	}
	_, err := io.WriteString(w, safe.String())
	return err
}

// tabulate aligns rows of cells; the first row is its head.
func tabulate(w io.Writer, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	for _, r := range rows {
		for _, cell := range r {
			printf(t, "%s\t", cell)
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

// size prints bytes with a binary unit.
func size(n int64) string { return kernels.FormatBytes(n) }

// number prints large counts with a decimal unit, as in 3.1 M.
func number(v float64) string {
	unit := ""
	for _, u := range []string{" k", " M", " G"} {
		if math.Abs(v) < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	return fmt.Sprintf("%.*f%s", precision(v), v, unit)
}

func precision(v float64) int {
	if math.Abs(v) < 10 && v != math.Trunc(v) {
		return 1
	}
	return 0
}

// count prints an integer with thousands separators.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

// measured prints a value of a metric, which may not have been measured.
func measured(k metric.Kind, v *float64) string {
	switch {
	case v == nil:
		return "-"
	case k.OfNumbers():
		return fmt.Sprintf("%.4g", *v)
	}
	return fmt.Sprintf("%.2f %%", 100**v)
}

// seconds prints a duration; below one, in milliseconds.
func seconds(s float64) string {
	if s > 0 && s < 1 {
		return fmt.Sprintf("%.*f ms", precision(1000*s), 1000*s)
	}
	return fmt.Sprintf("%.*f s", precision(s), s)
}

// progress shows how far a command is: on a terminal a line that redraws itself, elsewhere a line a
// stage and one every few seconds.
type progress struct {
	w     io.Writer
	tty   *os.File // the terminal behind it, or nil
	stage string
	began time.Time
	last  time.Time
	drawn bool
}

// plainEvery is the interval between progress lines of a stage where there is no terminal.
const plainEvery = 5 * time.Second

func newProgress(w io.Writer) *progress { return &progress{w: w, tty: screenOf(w)} }

// show reports done of total (-1: not known) units of a stage.
func (p *progress) show(stage string, done, total int64, unit string) {
	now := time.Now()
	fresh := stage != p.stage
	if fresh {
		p.clear()
		p.stage, p.began = stage, now
	}
	interval := plainEvery
	if p.tty != nil {
		interval = 100 * time.Millisecond
	}
	if !fresh && now.Sub(p.last) < interval {
		return
	}
	p.last = now
	if fresh && p.tty == nil {
		printf(p.w, "%s\n", stage)
		return
	}
	line := fmt.Sprintf("%s: %s %s", stage, count(done), unit)
	elapsed := now.Sub(p.began).Seconds()
	if rate := float64(done) / elapsed; elapsed > 0.5 && done > 0 {
		line += fmt.Sprintf("   %s %s/s", number(rate), unit)
		if total > 0 {
			line += "   " + time.Duration(float64(total-done)/rate*float64(time.Second)).Round(time.Second).String() + " left"
		}
	}
	if total > 0 {
		line += fmt.Sprintf("   %.0f %%", 100*float64(done)/float64(total))
	}
	if p.tty != nil {
		fmt.Fprintf(p.tty, "\r\x1b[K%s", clean(line))
		p.drawn = true
		return
	}
	printf(p.w, "%s\n", line)
}

// line prints a whole line, above what is being redrawn.
func (p *progress) line(format string, args ...any) {
	p.clear()
	printf(p.w, format+"\n", args...)
}

// clear removes the line being redrawn.
func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.tty, "\r\x1b[K")
		p.drawn = false
	}
}
