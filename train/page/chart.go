package page

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Form is the way in which a chart draws its series.
type Form int

// The forms.
const (
	Lines     Form = iota
	Stack          // areas on top of each other, whose upper edge is their sum
	Histogram      // a column for each value of the first series
)

// Chart is a drawing of series over a common horizontal axis.
type Chart struct {
	Title  string
	Note   string
	Form   Form
	X, Y   Axis
	Series []Series
	Empty  string // shown if there are no values

	points int // of the longest series, before thinning
}

// Series is a line of a chart. X ascends. The line leaves out points that have no place on an axis,
// such as NaN.
type Series struct {
	Name   string
	X, Y   []float64
	Spread []float64 // half the width of the interval around each Y; nil: no intervals
}

// plane is the width and the height of a chart's drawing, in units of SVG. The page stretches it.
const plane = 1000

// drawn is a chart as the template writes it.
type drawn struct {
	ID, Title, Note, Empty string
	XName                  string
	Summary                string // for screen readers
	XTicks, YTicks         []mark
	Grid                   string // the path of lines behind the chart
	Lines                  []drawnSeries
	XTexts                 string // the text of each X, for the cursor, separated by "|"
	XPlaces                string // the place of each X, separated by blanks
	LastX                  string
	Area                   bool
}

// mark is a text beside an axis. Narrow pages hide minor marks.
type mark struct {
	At, Text string
	Minor    bool
}

type drawnSeries struct {
	Name, Class, Path, Dots string
	Texts                   string // the text of each Y, for the cursor, separated by "|"
	Last                    string
}

// seriesClass returns the CSS classes of the nth series, counted from 0: its colour, and its dashes
// once all colours are used.
func seriesClass(n int) string {
	const colours, dashes = 8, 4
	class := fmt.Sprintf("c%d", n%colours)
	if d := n / colours % dashes; d > 0 {
		class += fmt.Sprintf(" d%d", d)
	}
	return class
}

// table has the values of all series of a chart, for each X that any of them has. A value that a
// series lacks is NaN.
type table struct {
	x []float64
	y [][]float64
}

func (c *Chart) table() (t table) {
	for _, s := range c.Series {
		for i, x := range s.X {
			if i < len(s.Y) && c.X.shows(x) {
				t.x = append(t.x, x)
			}
		}
	}
	slices.Sort(t.x)
	t.x = slices.Compact(t.x)
	for _, s := range c.Series {
		row := make([]float64, len(t.x))
		for i := range row {
			row[i] = math.NaN()
		}
		at := 0
		for i, x := range s.X {
			if i >= len(s.Y) || !c.X.shows(x) {
				continue
			}
			for at < len(t.x) && t.x[at] < x {
				at++
			}
			if at < len(t.x) && t.x[at] == x && c.Y.shows(s.Y[i]) {
				row[at] = s.Y[i]
			}
		}
		t.y = append(t.y, row)
	}
	return t
}

// Values returns the values of a chart as a folded table, with a row for each X and a column for
// each series.
func (c *Chart) Values() Table {
	t := Table{Title: "Values: " + c.Title, Folded: true, Head: Columns("#" + c.X.Name)}
	all := c.table()
	for _, s := range c.Series {
		t.Head = append(t.Head, Column{s.Name, true})
	}
	for i, x := range all.x {
		row := Cells(c.X.text(x))
		for s := range all.y {
			row = append(row, Cell{Text: c.Y.text(all.y[s][i])})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// thin reduces the table to about most X. It cuts the X into equal parts, and keeps the lowest and
// the highest value of each series in each part. It also keeps the first and the last X.
func (t table) thin(most int) table {
	if len(t.x) <= most {
		return t
	}
	parts := max(most/(2*max(len(t.y), 1)), 1)
	keep := map[int]bool{0: true, len(t.x) - 1: true}
	for _, row := range t.y {
		for p := range parts {
			low, high := -1, -1
			for i := p * len(t.x) / parts; i < (p+1)*len(t.x)/parts; i++ {
				if math.IsNaN(row[i]) {
					continue
				}
				if low < 0 || row[i] < row[low] {
					low = i
				}
				if high < 0 || row[i] > row[high] {
					high = i
				}
			}
			if low >= 0 {
				keep[low], keep[high] = true, true
			}
		}
	}
	var out table
	out.y = make([][]float64, len(t.y))
	for i, x := range t.x {
		if keep[i] {
			out.x = append(out.x, x)
			for s := range t.y {
				out.y[s] = append(out.y[s], t.y[s][i])
			}
		}
	}
	return out
}

// thinned returns the series, reduced by table.thin to about most points. A series with intervals
// stays whole.
func (s Series) thinned(most int) Series {
	n := min(len(s.X), len(s.Y))
	if n <= most || s.Spread != nil {
		return s
	}
	t := table{s.X[:n], [][]float64{s.Y[:n]}}.thin(most)
	return Series{Name: s.Name, X: t.x, Y: t.y[0]}
}

// bounds returns the lowest and the highest number; ok is false if there is no number.
func bounds(rows ...[]float64) (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, row := range rows {
		for _, v := range row {
			if !math.IsNaN(v) {
				low, high, ok = min(low, v), max(high, v), true
			}
		}
	}
	return low, high, ok
}

// draw lays out the chart, with about so many points in each series at most.
func (c *Chart) draw(id string, points int) drawn {
	d := drawn{ID: id, Title: c.Title, Note: c.Note, XName: c.X.Name, Empty: c.Empty, Area: c.Form != Lines}
	all := c.table()
	low, high, ok := bounds(all.y...)
	if !ok {
		if d.Empty == "" {
			d.Empty = "There are no numbers yet."
		}
		return d
	}
	d.Empty = ""
	if c.Form == Stack {
		_, high, _ = bounds(stacked(all.y)...)
	}
	for i, s := range c.Series {
		for k, spread := range s.Spread {
			if k < len(s.Y) && c.Y.shows(s.Y[k]+spread) && c.Y.shows(s.Y[k]-spread) {
				low, high = min(low, s.Y[k]-spread), max(high, s.Y[k]+spread)
			}
		}
		d.Lines = append(d.Lines, drawnSeries{Name: s.Name, Class: seriesClass(i)})
	}
	y := c.Y.fit(low, high, 5, true)
	x := c.X.fit(all.x[0], all.x[len(all.x)-1], 5, false)
	if c.Form == Histogram && !c.X.Log { // room for half a column at both ends
		x.low, x.high = x.low-0.5, x.high+0.5
		x.ticks = nil
		for _, t := range c.X.fit(all.x[0], all.x[len(all.x)-1], 5, false).ticks {
			v := all.x[0] + t.at*(all.x[len(all.x)-1]-all.x[0])
			x.ticks = append(x.ticks, tick{x.of(v), t.text})
		}
	}
	for i, t := range x.ticks {
		d.XTicks = append(d.XTicks, mark{percent(t.at), t.text, len(x.ticks) > 6 && i%2 == 1})
	}
	var grid strings.Builder
	for _, t := range y.ticks {
		d.YTicks = append(d.YTicks, mark{percent(1 - t.at), t.text, false})
		fmt.Fprintf(&grid, "M0 %dH%d", down(t.at), plane)
	}
	d.Grid = grid.String()

	shown := all.thin(points)
	tops := shown.y
	if c.Form == Stack {
		tops = stacked(shown.y)
	}
	var places, texts []string
	for _, v := range shown.x {
		places = append(places, fmt.Sprint(across(x.of(v))))
		texts = append(texts, c.X.text(v))
	}
	d.XPlaces, d.XTexts, d.LastX = strings.Join(places, " "), strings.Join(texts, "|"), texts[len(texts)-1]
	for i := range d.Lines {
		l := &d.Lines[i]
		texts = texts[:0]
		for _, v := range shown.y[i] {
			text := ""
			if !math.IsNaN(v) {
				text = c.Y.Unit.Text(v)
				l.Last = text
			}
			texts = append(texts, text)
		}
		l.Texts = strings.Join(texts, "|")
		switch c.Form {
		case Stack:
			var below []float64
			if i > 0 {
				below = tops[i-1]
			}
			l.Path = area(x, y, shown.x, below, tops[i])
		case Histogram:
			l.Path = columns(x, y, shown.x, shown.y[i])
		default:
			var points int
			if l.Path, l.Dots, points = line(x, y, shown.x, shown.y[i]); len(shown.x) > 12 && points > 1 {
				l.Dots = ""
			}
			l.Path += spreads(x, y, &c.Series[i])
		}
	}
	d.Lines = slices.DeleteFunc(d.Lines, func(l drawnSeries) bool { return l.Last == "" })
	d.Summary = c.summary(all)
	if n := max(len(all.x), c.points); n > len(shown.x) {
		d.Note = strings.TrimSpace(d.Note + fmt.Sprintf(" Of %s points %s are drawn: the lowest and the highest of each part.",
			count(float64(n)), count(float64(len(shown.x)))))
	}
	return d
}

// stacked returns the sums of each row and the rows before it. NaN counts as 0.
func stacked(rows [][]float64) (sums [][]float64) {
	for i, row := range rows {
		sum := make([]float64, len(row))
		for k, v := range row {
			sum[k] = finite(v)
			if i > 0 {
				sum[k] += sums[i-1][k]
			}
		}
		sums = append(sums, sum)
	}
	return sums
}

func percent(at float64) string { return fmt.Sprintf("%.4g%%", 100*at) }

// across and down turn a place on an axis, from 0 to 1, into a coordinate on the plane.
func across(at float64) int { return int(math.Round(min(max(at, -1), 2) * plane)) }
func down(at float64) int   { return int(math.Round((1 - min(max(at, -1), 2)) * plane)) }

// line returns the path of a line, and of a dot at each of its n points.
func line(x, y *scale, xs, ys []float64) (path, dots string, n int) {
	var p, d strings.Builder
	for i, v := range ys {
		if math.IsNaN(v) {
			continue
		}
		letter := "L"
		if n == 0 {
			letter = "M"
		}
		n++
		fmt.Fprintf(&p, "%s%d %d", letter, across(x.of(xs[i])), down(y.of(v)))
		fmt.Fprintf(&d, "M%d %dh0", across(x.of(xs[i])), down(y.of(v)))
	}
	return p.String(), d.String(), n
}

// spreads returns the path of the intervals around the points of a series.
func spreads(x, y *scale, s *Series) string {
	var p strings.Builder
	for i, spread := range s.Spread {
		if i < len(s.Y) && spread > 0 && x.shows(s.X[i]) && y.shows(s.Y[i]+spread) && y.shows(s.Y[i]-spread) {
			fmt.Fprintf(&p, "M%d %dV%d", across(x.of(s.X[i])), down(y.of(s.Y[i]-spread)), down(y.of(s.Y[i]+spread)))
		}
	}
	return p.String()
}

// area returns the path around the area between two lines. If below is nil, the axis is the lower
// line.
func area(x, y *scale, xs, below, above []float64) string {
	var p strings.Builder
	at := func(letter string, i int, v float64) {
		fmt.Fprintf(&p, "%s%d %d", letter, across(x.of(xs[i])), down(y.of(v)))
	}
	for i, v := range above {
		if i == 0 {
			at("M", i, v)
		} else {
			at("L", i, v)
		}
	}
	if len(xs) == 1 { // the area of a single point is as wide as the chart
		p.Reset()
		low := 0.0
		if below != nil {
			low = below[0]
		}
		fmt.Fprintf(&p, "M0 %dH%dV%dH0Z", down(y.of(above[0])), plane, down(y.of(low)))
		return p.String()
	}
	for i := len(xs) - 1; i >= 0; i-- {
		v := 0.0
		if below != nil {
			v = below[i]
		}
		at("L", i, v)
	}
	return p.String() + "Z"
}

// columns returns the path of a column for each number.
func columns(x, y *scale, xs, ys []float64) string {
	var p strings.Builder
	width := plane / max(len(xs), 1)
	for i := range xs[1:] {
		if between := across(x.of(xs[i+1])) - across(x.of(xs[i])); between > 0 {
			width = min(width, between)
		}
	}
	half := max(width*2/5, 1)
	for i, v := range ys {
		if !math.IsNaN(v) {
			at := across(x.of(xs[i]))
			fmt.Fprintf(&p, "M%d %dV%dH%dV%dZ", at-half, plane, down(y.of(v)), at+half, plane)
		}
	}
	return p.String()
}

// summary describes the first six series of the chart in words.
func (c *Chart) summary(t table) string {
	var parts []string
	for i, s := range c.Series {
		if len(parts) == 6 {
			parts = append(parts, fmt.Sprintf("and %d more", len(c.Series)-i))
			break
		}
		first, last, lowest, highest := -1, -1, -1, -1
		for k, v := range t.y[i] {
			if math.IsNaN(v) {
				continue
			}
			if first < 0 {
				first, lowest, highest = k, k, k
			}
			last = k
			if v < t.y[i][lowest] {
				lowest = k
			}
			if v > t.y[i][highest] {
				highest = k
			}
		}
		if first < 0 {
			continue
		}
		at := func(k int) string { return c.Y.Unit.Text(t.y[i][k]) }
		parts = append(parts, fmt.Sprintf("%s: from %s to %s, lowest %s at %s, highest %s at %s", s.Name, at(first), at(last),
			at(lowest), c.X.text(t.x[lowest]), at(highest), c.X.text(t.x[highest])))
	}
	return c.Title + " over " + c.X.Name + ". " + strings.Join(parts, "; ")
}
