package trace

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/gnnstore/gnnstore/train/sample"
)

// workersPanels returns four panels for each sampler, over the number of workers.
func (r *Report) workersPanels() (panels []panel) {
	if r.Workers == nil {
		return nil
	}
	for _, kind := range r.Workers.samplers() {
		reads := r.workersPanel(kind, "Rows that a worker reads under "+string(kind), "rows, of the worker with most")
		edges := r.workersPanel(kind, "Edges that a worker computes under "+string(kind), "edges, likewise")
		sent := r.workersPanel(kind, "Bytes that a worker sends under "+string(kind), "MB, of the worker with most")
		cold := r.workersPanel(kind, "Cold rows under "+string(kind), "rows of all workers")
		for _, c := range r.Workers.Counts {
			if c.Sampler != kind {
				continue
			}
			at, reader, computer := float64(c.Workers), "each for itself", "each its share"
			if c.Parallel != Independent {
				reader = "owners"
			}
			if c.Parallel == Cooperative {
				computer = "owners"
			}
			if c.Kappa == r.Workers.Counts[0].Kappa { // the counts hardly depend on κ
				drawn := 0.0
				for _, h := range c.Hops {
					drawn += h.Edges.Largest
				}
				reads.point(reader, at, c.Rows.Largest)
				edges.point(computer, at, drawn)
				sent.point(string(c.Parallel), at, c.SentBytes.Largest/1e6)
			}
			for _, n := range c.Cold {
				name := fmt.Sprintf("%s, κ = %s, %s %s", reader, sample.KappaText(c.Kappa), n.Policy, n.Asked)
				cold.point(name, at, n.All)
			}
		}
		for _, p := range []panel{reads, edges, sent, cold} {
			if len(p.curves) > 0 {
				p.y.decades()
				panels = append(panels, p)
			}
		}
	}
	return panels
}

// samplers returns the samplers that were counted.
func (r *WorkersReport) samplers() (all []sample.Kind) {
	for _, c := range r.Counts {
		if !slices.Contains(all, c.Sampler) {
			all = append(all, c.Sampler)
		}
	}
	return all
}

// workersPanel returns a panel without curves, whose horizontal axis is the number of workers.
func (r *Report) workersPanel(kind sample.Kind, title, yName string) panel {
	p := panel{
		title: title, xName: "workers", yName: yName,
		x: axis{low: 1, high: 1, log: true}, y: axis{low: math.Inf(1), log: true},
	}
	for _, c := range r.Workers.Counts {
		at := float64(c.Workers)
		if c.Sampler == kind && !slices.ContainsFunc(p.x.ticks, func(t tick) bool { return t.at == at }) {
			p.x.ticks, p.x.high = append(p.x.ticks, tick{at, strconv.Itoa(c.Workers)}), max(p.x.high, at)
		}
	}
	return p
}

// point adds a point to the curve of a name, unless the curve already has one at x. It leaves out
// 0, which has no place on a logarithmic axis.
func (p *panel) point(name string, x, y float64) {
	if y <= 0 {
		return
	}
	n := slices.IndexFunc(p.curves, func(c curve) bool { return c.name == name })
	if n < 0 {
		n = len(p.curves)
		p.curves = append(p.curves, curve{
			name: name, colour: colours[n%len(colours)], dash: dashes[n/len(colours)%len(dashes)],
		})
	}
	if slices.ContainsFunc(p.curves[n].points, func(have point) bool { return have.x == x }) {
		return
	}
	p.curves[n].points = append(p.curves[n].points, point{x: x, y: y})
	p.y.low, p.y.high = min(p.y.low, y), max(p.y.high, y)
}
