package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/task"
)

// linkReport is the result of bench link.
type linkReport struct {
	Dataset string     `json:"dataset"`
	Batch   int        `json:"batch"`
	Roots   int        `json:"roots"` // of a step of links with uniform:1, and of one of nodes
	Steps   int        `json:"steps"`
	Memory  string     `json:"memory,omitempty"`
	Sides   []linkSide `json:"sides"`
	// Exclusion is the share by which drawing takes longer without the links of a step than with
	// them. It includes finding the seeds and the links to leave out, on one core, in process.
	Exclusion series `json:"exclusion"`
	Drawing   series `json:"drawing_seconds"` // of a batch, with all links
}

// linkSide is a way to train, turn by turn.
type linkSide struct {
	Name    string `json:"name"`
	Steps   series `json:"steps_a_second"`
	Drawing series `json:"drawing_ms_a_step"`
	Step    series `json:"step_ms"`
}

// linkColumns are the figures of a linkSide, in their order, after the first and its ratio.
var linkColumns = []column[epochCounts]{
	{name: "steps a second", format: "%.2f", of: stepsASecond},
	{name: "of nodes'", format: "%.2f", show: ratio, of: stepsASecond},
	{name: "drawing ms a step", format: "%.1f", of: func(e epochCounts) float64 { return 1e3 * e.stages.Sample / e.steps }},
	{name: "step ms", format: "%.1f", of: func(e epochCounts) float64 { return 1e3 * e.stages.Step / e.steps }},
}

func stepsASecond(e epochCounts) float64 { return e.steps / e.stages.Run }

// manySteps is the factor by which the other sides have more steps than the sides with many
// negatives, which have many times as many roots.
const manySteps = 5

// compareLinks alternates training of links with training of nodes, with as many roots, and shared
// negatives with as many negatives of each positive. It also measures the cost of leaving out the
// links of a step.
func compareLinks(ctx context.Context, c *comparison) error {
	r := linkReport{Dataset: c.base(), Batch: c.batch, Memory: c.memory}
	links, err := c.openLinks(c.ds)
	if err != nil {
		return err
	}
	if r.Steps = min(c.steps, links.Steps()); r.Steps < 1 {
		return fmt.Errorf("%s: no links to train on", c.dataset)
	}
	draws, err := newLinkDraws(c.ds, links, min(c.batches, r.Steps))
	if err != nil {
		return err
	}
	r.Roots, c.steps = draws.roots, r.Steps
	many, fewer := strconv.Itoa(c.negatives), strconv.Itoa(max(1, r.Steps/manySteps))
	t := turns[epochCounts]{columns: linkColumns, after: func(ctx context.Context) error {
		drawing, share, err := draws.turn(ctx)
		r.Drawing, r.Exclusion = append(r.Drawing, drawing), append(r.Exclusion, share)
		return err
	}}
	const link = "--task link --eval-negatives pairs:1 --eval-edges 100"
	for _, s := range [][2]string{
		{"nodes", "--task node --batch " + strconv.Itoa(r.Roots)},
		{"links, uniform:1", link},
		{"links, uniform:1, --keep-targets", link + " --keep-targets"},
		{"links, shared:" + many, link + " --epoch-steps " + fewer + " --negatives shared:" + many},
		{"links, uniform:" + many, link + " --epoch-steps " + fewer + " --negatives uniform:" + many},
	} {
		args := strings.Fields(s[1])
		if c.memory != "" {
			args = append(args, "--memory", c.memory)
		}
		t.sides = append(t.sides, c.trains(s[0], args...))
	}
	for _, s := range t.sides {
		s.base = t.sides[0]
	}
	if err := t.run(ctx, c.rounds); err != nil {
		return err
	}
	if c.json {
		for _, s := range t.sides {
			r.Sides = append(r.Sides, linkSide{s.name, t.figures(s, 0), t.figures(s, 2), t.figures(s, 3)})
		}
		out := json.NewEncoder(c.out)
		out.SetIndent("", "  ")
		return out.Encode(r)
	}
	r.print(c, &t)
	return nil
}

func (r *linkReport) print(c *comparison, t *turns[epochCounts]) {
	fmt.Fprintf(c.out, "%s: GraphSAGE, fanout 15,10,5, hidden %d; %d links a step, and %d nodes%s; epochs of at most %d steps, the second of each run, %d turns. "+
		"Median (smallest–largest):\n\n", r.Dataset, hidden, r.Batch, r.Roots, ifAny(", --memory ", r.Memory), r.Steps, c.rounds)
	t.print(c.out, "what")
	shared, uniform := t.sides[3], t.sides[4]
	fmt.Fprintf(c.out, "\n%s / %s: %s as many steps.\n", shared.name, uniform.name, t.over(shared, uniform, 0).spread("%.2f"))
	fmt.Fprintf(c.out, "Drawing a step of links on one core takes %s ms with its links in the graph, and %s %% more without them.\n",
		r.Drawing.times(1e3).spread("%.1f"), r.Exclusion.times(100).spread("%.1f"))
}

// openLinks is the task of links that train has by default.
func (c *comparison) openLinks(ds *store.Dataset) (*task.Links, error) {
	d, err := data.Open(ds, data.Options{Links: true})
	if err != nil {
		return nil, err
	}
	return task.NewLinks(d, task.Options{Batch: c.batch, Seed: 1}, task.LinkOptions{}, model.Dot)
}

// linkDraws draws the same steps of links with these in the graph and without.
type linkDraws struct {
	links   *task.Links
	sampler *sample.Sampler
	steps   int
	roots   int // of a step
	batch   sample.Batch
}

func newLinkDraws(ds *store.Dataset, links *task.Links, steps int) (*linkDraws, error) {
	d, err := data.Open(ds, data.Options{Links: true})
	if err != nil {
		return nil, err
	}
	w := &linkDraws{links: links, steps: steps, sampler: newDrawn(d, sample.Config{Fanouts: fanouts}, nil).sampler}
	links.Begin(1)
	for step := range steps {
		for _, seeds := range links.Seeds(step) {
			w.roots += len(seeds)
		}
	}
	w.roots /= steps
	return w, nil
}

// turn draws each step in both ways, one after the other, and takes the processor seconds of a step
// with all links, and the share by which the others took longer.
func (w *linkDraws) turn(ctx context.Context) (seconds, share float64, err error) {
	schedule := sample.Schedule{Seed: 1, Kappa: 1}
	took := [2]float64{}
	w.links.Begin(1)
	for step := range w.steps {
		for i := range took {
			i = (i + step) % len(took) // neither is always the one whose lists the other has brought into the caches
			began := kernels.ProcessorSeconds()
			seeds := w.links.Seeds(step)
			if w.batch.Without = nil; i == 1 {
				w.batch.Without = w.links.Without(step)
			}
			if err := w.sampler.SampleOne(ctx, &w.batch, schedule.At(step), seeds...); err != nil {
				return 0, 0, err
			}
			took[i] += kernels.ProcessorSeconds() - began
		}
	}
	return took[0] / float64(w.steps), took[1]/took[0] - 1, nil
}
