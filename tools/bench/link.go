package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"

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
	args    []string
	Steps   series `json:"steps_a_second"`
	Drawing series `json:"drawing_ms_a_step"`
	Step    series `json:"step_ms"`
}

// manySteps is the factor by which the other sides have more steps than the sides with many
// negatives, which have many times as many roots.
const manySteps = 5

// compareLinks alternates training of links with training of nodes, with as many roots, and shared
// negatives with as many negatives of each positive. It also measures the cost of leaving out the
// links of a step.
func compareLinks(ctx context.Context, c *comparison) error {
	ds, err := store.Open(c.dataset)
	if err != nil {
		return err
	}
	defer ds.Close()
	r := linkReport{Dataset: filepath.Base(c.dataset), Batch: c.batch, Memory: c.memory}
	links, err := c.openLinks(ds)
	if err != nil {
		return err
	}
	if r.Steps = min(c.steps, links.Steps()); r.Steps < 1 {
		return fmt.Errorf("%s: no links to train on", c.dataset)
	}
	var without *linkDraws
	if without, err = newLinkDraws(ds, links, min(c.batches, r.Steps)); err != nil {
		return err
	}
	r.Roots = without.roots
	many, fewer := strconv.Itoa(c.negatives), strconv.Itoa(max(1, r.Steps/manySteps))
	link := []string{"--task", "link", "--eval-negatives", "pairs:1", "--eval-edges", "100"}
	r.Sides = []linkSide{
		{Name: "nodes", args: []string{"--task", "node", "--batch", strconv.Itoa(r.Roots)}},
		{Name: "links, uniform:1", args: link},
		{Name: "links, uniform:1, --keep-targets", args: append(link[:len(link):len(link)], "--keep-targets")},
		{Name: "links, shared:" + many, args: append(link[:len(link):len(link)], "--epoch-steps", fewer, "--negatives", "shared:"+many)},
		{Name: "links, uniform:" + many, args: append(link[:len(link):len(link)], "--epoch-steps", fewer, "--negatives", "uniform:"+many)},
	}
	c.steps = r.Steps
	memory := []string{}
	if c.memory != "" {
		memory = append(memory, "--memory", c.memory)
	}
	for range c.rounds {
		for i := range r.Sides {
			s := &r.Sides[i]
			e, err := c.secondEpoch(ctx, append(memory[:len(memory):len(memory)], s.args...)...)
			if err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			s.Steps = append(s.Steps, e.steps/e.stages.Run)
			s.Drawing, s.Step = append(s.Drawing, 1e3*e.stages.Sample/e.steps), append(s.Step, 1e3*e.stages.Step/e.steps)
		}
		drawing, share, err := without.turn(ctx)
		if err != nil {
			return err
		}
		r.Drawing, r.Exclusion = append(r.Drawing, drawing), append(r.Exclusion, share)
	}
	if c.json {
		out := json.NewEncoder(c.out)
		out.SetIndent("", "  ")
		return out.Encode(r)
	}
	r.print(c)
	return nil
}

func (r *linkReport) print(c *comparison) {
	memory := ""
	if r.Memory != "" {
		memory = ", --memory " + r.Memory
	}
	fmt.Fprintf(c.out, "%s: GraphSAGE, fanout 15,10,5, hidden %d; %d links a step, and %d nodes%s; epochs of at most %d steps, the second of each run, %d turns. "+
		"Median (smallest–largest):\n\n", r.Dataset, hidden, r.Batch, r.Roots, memory, r.Steps, c.rounds)
	tableHead(c.out, "| what | steps a second | of nodes' | drawing ms a step | step ms |")
	for _, s := range r.Sides {
		fmt.Fprintf(c.out, "| %s | %s | %s | %s | %s |\n", s.Name, s.Steps.spread("%.2f"), s.Steps.over(r.Sides[0].Steps).spread("%.2f"),
			s.Drawing.spread("%.1f"), s.Step.spread("%.1f"))
	}
	shared, uniform := r.Sides[3], r.Sides[4]
	fmt.Fprintf(c.out, "\n%s / %s: %s as many steps.\n", shared.Name, uniform.Name, shared.Steps.over(uniform.Steps).spread("%.2f"))
	ms := make(series, len(r.Drawing))
	for i, s := range r.Drawing {
		ms[i] = 1e3 * s
	}
	percent := make(series, len(r.Exclusion))
	for i, s := range r.Exclusion {
		percent[i] = 100 * s
	}
	fmt.Fprintf(c.out, "Drawing a step of links on one core takes %s ms with its links in the graph, and %s %% more without them.\n", ms.spread("%.1f"), percent.spread("%.1f"))
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
