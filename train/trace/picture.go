package trace

import (
	"fmt"
	"html"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/train/sample"
)

// SVG draws the report as one picture: how many rows a batch reads for each of its seeds, over its
// size and both on a logarithmic scale, and for each sampler the miss rates over κ. With workers it
// draws, over their number, the rows, edges, bytes and cold rows of a worker.
func (r *Report) SVG() []byte {
	panels := r.panels()
	columns := min(len(panels), 2)
	rows, legend := (len(panels)+columns-1)/columns, 0
	for i := range panels {
		legend = max(legend, panels[i].layOut())
	}
	d := drawing{}
	height := plotTop + plotHeight + 50 + legend*legendLine + 16
	d.open(columns*panelWidth, titleHeight+rows*height, r.title(), r.subtitle())
	for i, p := range panels {
		d.panel(p, i%columns*panelWidth, titleHeight+i/columns*height)
	}
	d.printf("</svg>\n")
	return []byte(d.String())
}

// panels returns the charts of the report.
func (r *Report) panels() (panels []panel) {
	if len(r.Growth) > 0 || r.Workers == nil {
		panels = append(panels, r.growthPanel())
	}
	panels = append(panels, r.workersPanels()...)
	for _, kind := range r.samplers() {
		if len(r.Traces) > 0 && len(r.Traces[0].Caches) > 0 {
			panels = append(panels, r.missPanel(kind))
		}
	}
	return panels
}

func (r *Report) title() string {
	numbers := func(fanouts []int) string {
		return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(fanouts), "[]")), ",")
	}
	fanout := numbers(r.Fanouts)
	for _, name := range slices.Sorted(maps.Keys(r.RelationFanouts)) {
		fanout += " " + name + "=" + numbers(r.RelationFanouts[name])
	}
	return fmt.Sprintf("%s: fanout %s, batch %d", filepath.Base(r.Dataset), fanout, r.Batch)
}

func (r *Report) subtitle() string {
	if r.Workers != nil && len(r.Growth) == 0 {
		return fmt.Sprintf("means of %d steps; hidden rows have %d columns, and gradients of weights are not counted", r.Steps, r.Workers.Hidden)
	}
	return fmt.Sprintf("%s: means of %d independent batches, and their 95 %% confidence intervals; "+
		"misses: %d batches, %s, after the caches have filled", r.counted(), trials, r.Steps, r.Dependent)
}

// counted returns what the growth curve counts, nodes or rows.
func (r *Report) counted() string {
	if r.NodeTypes() > 1 {
		return "nodes"
	}
	return "rows"
}

func (r *Report) samplers() (all []sample.Kind) {
	for _, g := range r.Growth {
		if !slices.Contains(all, g.Sampler) {
			all = append(all, g.Sampler)
		}
	}
	return all
}

// Sizes in the picture, in its units.
const (
	panelWidth  = 560
	titleHeight = 64
	plotLeft    = 70 // in a panel
	plotTop     = 34
	plotWidth   = 460
	plotHeight  = 300
	legendLine  = 20
	letter      = 6.6 // mean width of one
)

// colours tell eight things apart, for the colour-blind as well (Okabe and Ito 2008, with a grey
// for their yellow, which is lost on white); dashes tell apart what shares one.
var (
	colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#888888"}
	dashes  = []string{"", "7 4", "2 3", "9 3 2 3"}
)

// panel is one chart.
type panel struct {
	title, xName, yName string
	x, y                axis
	curves              []curve
	places              []place // of the legend's entries
}

type curve struct {
	name         string
	colour, dash string
	points       []point
}

type point struct{ x, y, spread float64 }

type place struct{ x, line int }

// axis is a range of values, on a logarithmic scale or a linear one, with its ticks.
type axis struct {
	low, high float64
	log       bool
	ticks     []tick
}

type tick struct {
	at   float64
	text string
}

// of returns the place of v on the axis, from 0 to 1.
func (a axis) of(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		low, high, v = math.Log(low), math.Log(high), math.Log(v)
	}
	if high == low {
		return 0.5
	}
	return (v - low) / (high - low)
}

func (r *Report) growthPanel() panel {
	title := "Rows that a batch reads for each seed"
	if r.NodeTypes() > 1 {
		title = "Nodes of all types in a batch for each seed"
	}
	p := panel{
		title: title, xName: "seeds a batch",
		yName: fmt.Sprintf("E|S%s| / |S⁰|", raised(len(r.Fanouts))),
		x:     axis{low: math.Inf(1), log: true}, y: axis{low: math.Inf(1), log: true},
	}
	every := 1 + len(r.Growth)/max(len(r.samplers()), 1)/8 // so that no tick's text lies on another
	for i, g := range r.Growth {
		last := g.Hops[len(g.Hops)-1]
		if i == 0 || r.Growth[i-1].Sampler != g.Sampler {
			p.curves = append(p.curves, curve{name: string(g.Sampler), colour: colours[len(p.curves)%len(colours)]})
		}
		c := &p.curves[len(p.curves)-1]
		c.points = append(c.points, point{float64(g.Batch), last.PerSeed, last.CI95 / float64(g.Batch)})
		p.x.low, p.x.high = min(p.x.low, float64(g.Batch)), max(p.x.high, float64(g.Batch))
		spread := last.CI95 / float64(g.Batch)
		p.y.low, p.y.high = min(p.y.low, max(last.PerSeed-spread, last.PerSeed/4)), max(p.y.high, last.PerSeed+spread)
		if len(p.curves) == 1 && len(c.points)%every == 0 {
			p.x.ticks = append(p.x.ticks, tick{float64(g.Batch), strconv.Itoa(g.Batch)})
		}
	}
	p.y.decades()
	return p
}

// decades widens a logarithmic axis to numbers that begin with 1, 2 or 5, and puts a tick at each.
func (a *axis) decades() {
	var nice []float64
	for e := math.Floor(math.Log10(a.low)); e <= math.Ceil(math.Log10(a.high)); e++ {
		for _, m := range []float64{1, 2, 5} {
			nice = append(nice, m*math.Pow(10, e))
		}
	}
	from, to := 0, len(nice)-1
	for from+1 < len(nice) && nice[from+1] <= a.low {
		from++
	}
	for to > from+1 && nice[to-1] >= a.high {
		to--
	}
	a.low, a.high = nice[from], nice[to]
	for _, v := range nice[from : to+1] {
		a.ticks = append(a.ticks, tick{v, strconv.FormatFloat(v, 'g', 6, 64)})
	}
}

func (r *Report) missPanel(kind sample.Kind) panel {
	p := panel{
		title: "Cache misses under " + string(kind), xName: "κ, batches that share their draws", yName: "miss rate",
		x: axis{low: 1, high: 1, log: true},
	}
	var traces []Trace
	for _, t := range r.Traces {
		if t.Sampler == kind {
			traces = append(traces, t)
		}
	}
	for _, t := range traces {
		p.x.high = max(p.x.high, float64(t.Kappa))
	}
	forever := 4 * p.x.high // where infinity is drawn
	var types []string
	for _, t := range traces {
		at := float64(t.Kappa)
		if t.Kappa == sample.Forever {
			at, p.x.high = forever, forever
		}
		if text := sample.KappaText(t.Kappa); !slices.ContainsFunc(p.x.ticks, func(have tick) bool { return have.text == text }) {
			p.x.ticks = append(p.x.ticks, tick{at, text})
		}
		if !slices.Contains(types, t.Type) {
			types = append(types, t.Type)
			p.curves = append(p.curves, r.missCurves(t, len(p.curves))...)
		}
		first := slices.Index(types, t.Type) * len(t.Caches)
		for i, c := range t.Caches {
			of := &p.curves[first+i]
			of.points = append(of.points, point{x: at, y: 1 - c.HitRate})
			p.y.high = max(p.y.high, 1-c.HitRate)
		}
	}
	for _, c := range p.curves {
		slices.SortFunc(c.points, func(a, b point) int { return int(a.x - b.x) })
	}
	step := 0.01
	for _, s := range []float64{0.01, 0.02, 0.05, 0.1, 0.2} {
		if step = s; p.y.high <= 8*s {
			break
		}
	}
	for n := 0.0; ; n++ {
		p.y.ticks = append(p.y.ticks, tick{n * step, fmt.Sprintf("%.0f %%", 100*n*step)})
		if n > 0 && n*step >= p.y.high {
			p.y.high = n * step
			return p
		}
	}
}

// missCurves returns a curve without points for each cache of t; behind counts the curves before
// them. Each policy of a type has a colour. If there are more of these than colours, colours come
// again with other dashes.
func (r *Report) missCurves(t Trace, behind int) (all []curve) {
	for i, c := range t.Caches {
		policy, size := (behind+i)/len(r.Caches), i%len(r.Caches)
		all = append(all, curve{
			name:   strings.TrimSpace(fmt.Sprintf("%s %s %s", t.Type, c.Policy, r.Caches[size].Asked)),
			colour: colours[policy%len(colours)], dash: dashes[(policy/len(colours)*len(r.Caches)+size)%len(dashes)],
		})
	}
	return all
}

// raised writes a number above the line.
func raised(n int) string {
	digits := []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")
	s := ""
	for _, c := range strconv.Itoa(n) {
		s += string(digits[c-'0'])
	}
	return s
}

// layOut places the legend, and returns how many lines it takes.
func (p *panel) layOut() (lines int) {
	x := 0
	for _, c := range p.curves {
		width := 36 + int(letter*float64(len([]rune(c.name)))) + 18
		if x > 0 && x+width > plotWidth {
			x = 0
			lines++
		}
		p.places = append(p.places, place{x, lines})
		x += width
	}
	return lines + 1
}

// drawing is an SVG file in the making.
type drawing struct{ strings.Builder }

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(d, format, args...) }

func (d *drawing) open(width, height int, title, below string) {
	d.printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "+
		"font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#222\">\n", width, height, width, height)
	d.printf("<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n", html.EscapeString(title))
	d.text(plotLeft, 28, "font-size=\"17\" font-weight=\"bold\"", title)
	d.text(plotLeft, 48, "fill=\"#555\"", below)
}

func (d *drawing) text(x, y float64, attributes, s string) {
	d.printf("<text x=\"%.1f\" y=\"%.1f\" %s>%s</text>\n", x, y, attributes, html.EscapeString(s))
}

func (d *drawing) line(x1, y1, x2, y2 float64, stroke string) {
	d.printf("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1, x2, y2, stroke)
}

func (d *drawing) panel(p panel, left, top int) {
	x0, y0 := float64(left+plotLeft), float64(top+plotTop+plotHeight) // the corner of the plot at the bottom left
	const inset = 14                                                  // of the first and the last point
	at := func(v point) (x, y float64) {
		return x0 + inset + p.x.of(v.x)*(plotWidth-2*inset), y0 - p.y.of(v.y)*plotHeight
	}
	d.text(x0, float64(top+plotTop-14), "font-size=\"14\" font-weight=\"bold\"", p.title)
	for _, t := range p.y.ticks {
		_, y := at(point{p.x.low, t.at, 0})
		d.line(x0, y, x0+plotWidth, y, "#ddd")
		d.text(x0-8, y+4, "text-anchor=\"end\"", t.text)
	}
	for _, t := range p.x.ticks {
		x, _ := at(point{t.at, p.y.low, 0})
		d.line(x, y0, x, y0+5, "#222")
		d.text(x, y0+19, "text-anchor=\"middle\"", t.text)
	}
	d.line(x0, y0, x0+plotWidth, y0, "#222")
	d.line(x0, y0, x0, y0-plotHeight, "#222")
	d.text(x0+plotWidth/2, y0+38, "text-anchor=\"middle\"", p.xName)
	middle := y0 - plotHeight/2
	upright := fmt.Sprintf("text-anchor=\"middle\" transform=\"rotate(-90 %.1f %.1f)\"", x0-52, middle)
	d.text(x0-52, middle, upright, p.yName)
	for i, c := range p.curves {
		var path []string
		for _, v := range c.points {
			x, y := at(v)
			path = append(path, fmt.Sprintf("%.1f,%.1f", x, y))
			if v.spread > 0 {
				_, from := at(point{v.x, max(v.y-v.spread, p.y.low), 0})
				_, to := at(point{v.x, v.y + v.spread, 0})
				d.line(x, from, x, to, c.colour)
			}
			d.printf("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" fill=\"%s\"/>\n", x, y, c.colour)
		}
		d.stroke(strings.Join(path, " "), c)
		x, y := x0+float64(p.places[i].x), y0+58+float64(p.places[i].line*legendLine)
		d.stroke(fmt.Sprintf("%.1f,%.1f %.1f,%.1f", x, y, x+30, y), c)
		d.printf("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" fill=\"%s\"/>\n", x+15, y, c.colour)
		d.text(x+36, y+4, "", c.name)
	}
}

func (d *drawing) stroke(points string, c curve) {
	dash := ""
	if c.dash != "" {
		dash = fmt.Sprintf(" stroke-dasharray=\"%s\"", c.dash)
	}
	d.printf("<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s/>\n", points, c.colour, dash)
}
