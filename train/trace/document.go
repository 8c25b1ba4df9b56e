package trace

import (
	"fmt"
	"time"

	"github.com/gnnstore/gnnstore/train/page"
)

// Document describes the report for a page: the charts of [Report.SVG], and their values as tables.
func (r *Report) Document() *page.Document {
	d := &page.Document{Kind: "trace", Title: r.title(), Lead: r.subtitle(), Made: time.Now()}
	add := func(name, value, note string) {
		d.Facts = append(d.Facts, page.Fact{Name: name, Value: value, Note: note})
	}
	add("Nodes", page.Integer.Text(float64(r.Nodes)), fmt.Sprintf("by %s", r.Order))
	add("Edges", page.Integer.Text(float64(r.Edges)), "")
	seeds := "all nodes"
	if r.Split != "" {
		seeds = "of split " + r.Split
	}
	add("Seeds", page.Integer.Text(float64(r.Seeds)), seeds)
	s := page.Section{Name: "charts", Title: "Samplers and caches"}
	for _, p := range r.panels() {
		c := p.chart()
		s.Charts, s.Tables = append(s.Charts, c), append(s.Tables, c.Values())
	}
	d.Sections = append(d.Sections, s)
	return d
}

// chart returns a panel as a chart of a page.
func (p *panel) chart() page.Chart {
	c := page.Chart{
		Title: p.title, X: page.Axis{Name: p.xName, Log: p.x.log}, Y: page.Axis{Name: p.yName, Log: p.y.log, Zero: !p.y.log},
		Note: "Vertical: " + p.yName + ".",
	}
	if !p.y.log {
		c.Y.Unit = page.Share // a miss rate
	}
	for _, t := range p.x.ticks {
		c.X.Ticks = append(c.X.Ticks, page.Tick{At: t.at, Text: t.text})
	}
	for _, curve := range p.curves {
		s := page.Series{Name: curve.name}
		for _, v := range curve.points {
			s.X, s.Y, s.Spread = append(s.X, v.x), append(s.Y, v.y), append(s.Spread, v.spread)
		}
		c.Series = append(c.Series, s)
	}
	return c
}
