package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/bench"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// The network that both sides train: DESIGN's, and on a graph of several types the R-GraphSAGE of
// OGB's baselines on MAG240M, without dropout and normalisation, so that the losses can be
// compared.
const (
	hidden    = 256
	batchSize = 1000
	rate      = 0.003
	tolerance = 1e-3 // of a batch's loss, relative
	// bf16Tolerance is tolerance for products in bf16: autocast rounds activations, too.
	bf16Tolerance = 2e-2
)

var (
	fanouts      = []int{15, 10, 5}
	network      = model.Config{Kind: model.SAGE, Layers: len(fanouts), Hidden: hidden, Norm: "none"}
	stepFanouts  = []int{25, 15} // on a graph of several types, for each relation
	typedNetwork = model.Config{Kind: model.RSAGE, Layers: len(stepFanouts), Hidden: hidden, Norm: "none"}
)

// compareSteps alternates our step with PyTorch's on the same batches, from the same weights.
func compareSteps(ctx context.Context, c *comparison) error {
	d, err := data.Open(c.ds, data.Options{})
	if err != nil {
		return err
	}
	config, draws := network, sample.Config{Fanouts: fanouts}
	if isTyped(d) {
		config, draws = typedNetwork, sample.Config{Fanouts: stepFanouts}
	}
	shape := shapeOf(d, draws)
	draws.Options = config.Blocks(shape)
	be, err := kernels.Open(kernels.Options{Threads: c.threads, Products: c.products})
	if err != nil {
		return err
	}
	batches, err := drawBatches(be, d, draws, batchSize, c.batches)
	if err != nil {
		return err
	}
	ours := newSteps(be, config, shape, batches)
	if err := export(c.tmp, be, batches, ours.trainer.Model.Params); err != nil {
		return err
	}
	torch, ready, err := c.startSteps(ctx, d, shape)
	if err != nil {
		return err
	}
	defer torch.close() //nolint:errcheck // what matters was read
	c.printSkipped(ready.Skipped)
	if len(ready.Rivals) == 0 {
		return fmt.Errorf("%s: none of PyTorch's ways to take a step works there", c.python)
	}
	var also []*side[turn]
	agree := tolerance
	if c.products == kernels.BF16 {
		f32 := kernels.NewCPU(kernels.CPUOptions{Threads: c.threads})
		in32 := newSteps(f32, config, shape, batches)
		also = []*side[turn]{{name: "gnnstore in f32, " + f32.Name(), turn: func(context.Context) (turn, error) { return in32.turn() }}}
		agree = bf16Tolerance
	}
	turns, err := c.raceSteps(ctx, be, ours.turn, torch, ready.Rivals, "", agree, also...)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s: %s, %s of %d layers, hidden %d, fanouts %s, batches of %d seeds. "+
		"PyTorch %s, %d threads, OPENBLAS_CORETYPE unset; processor ms a step while choosing: %v.\n",
		c.base(), extent(d), config.Kind, config.Layers, config.Hidden, setting.FormatInts(draws.Fanouts), batchSize, ready.Torch, c.threads, ready.Variants)
	c.printSteps(turns, agree)
	return nil
}

// raceSteps alternates our turns with the turns of rivals in a Python, whose names get a prefix. It
// fails where the loss of a batch differs from ours by more than a share.
func (c *comparison) raceSteps(ctx context.Context, be kernels.Backend, ours func() (turn, error), torch *python, rivals []string, prefix string,
	tolerance float64, also ...*side[turn]) (*turns[turn], error) {
	us := &side[turn]{name: "gnnstore, " + be.Name(), turn: func(context.Context) (turn, error) { return ours() }}
	t := &turns[turn]{
		sides: append([]*side[turn]{us}, also...),
		columns: []column[turn]{
			{name: "ms", format: "%.1f", of: func(t turn) float64 { return 1e3 * t.Seconds / float64(len(t.Losses)) }},
			{name: "ms of processor time", format: "%.1f", of: func(t turn) float64 { return 1e3 * t.Processor / float64(len(t.Losses)) }},
		},
		check: func(_ *side[turn], t turn) error { return us.turns[0].same(t, tolerance) },
	}
	for _, name := range rivals {
		t.sides = append(t.sides, &side[turn]{name: prefix + name, turn: asks[turn](torch, name)})
	}
	if _, err := ours(); err != nil { // to warm up
		return nil, err
	}
	return t, t.run(ctx, c.rounds)
}

// printSteps prints what raceSteps has measured: ours, and after each rival its ratios to ours.
func (c *comparison) printSteps(t *turns[turn], tolerance float64) {
	us := t.sides[0]
	fmt.Fprintf(c.out, "%d turns of %d batches each; losses agree to %g. Median (smallest–largest):\n\n", c.rounds, len(us.turns[0].Losses), tolerance)
	t.head(c.out, "a step")
	for _, s := range t.sides {
		t.row(c.out, s)
		if s != us {
			ratios(c.out, s.name+" / gnnstore", t.over(s, us, 0), t.over(s, us, 1))
		}
	}
}

// shapeOf returns the shape of a network on d whose batches are drawn by draws.
func shapeOf(d *data.Data, draws sample.Config) model.Shape {
	schema := d.Schema()
	s := model.Shape{Out: d.Labels.Classes(), Target: d.Target, Reach: draws.Reach(schema, d.Target)}
	for i, t := range d.Types {
		s.In, s.Types = append(s.In, d.Types[i].Dim()), append(s.Types, t.Name)
	}
	for i, r := range d.Relations {
		name := strings.Join([]string{r.Relation.Src, r.Relation.Name, r.Relation.Dst}, "___")
		s.Relations = append(s.Relations, model.Relation{Name: name, Relation: schema.Relations[i]})
	}
	return s
}

// stepsReady is the message of step.py when it has chosen its variants.
type stepsReady struct {
	Torch    string             `json:"torch"`
	Variants map[string]float64 `json:"variants"`
	Rivals   []string           `json:"rivals"` // the fastest variant of each library: "LIBRARY, VARIANT"
	Skipped  []string           `json:"skipped"`
}

// startSteps starts step.py on what export has written.
func (c *comparison) startSteps(ctx context.Context, d *data.Data, s model.Shape) (*python, stepsReady, error) {
	var relations []map[string]any
	for i, r := range d.Relations {
		key := [3]string{r.Relation.Src, r.Relation.Name, r.Relation.Dst}
		relations = append(relations, map[string]any{"key": key, "src": s.Relations[i].Src, "dst": s.Relations[i].Dst})
	}
	job := map[string]any{
		"typed": isTyped(d), "types": s.Types, "relations": relations, "target": s.Target,
		"columns": s.In, "hidden": hidden, "classes": s.Out, "makes": s.Reach.Types[1:], "draws": s.Reach.Relations,
		"bf16": c.products == kernels.BF16, "batches": c.batches, "layers": len(s.Reach.Relations), "threads": c.threads, "rate": rate,
	}
	var ready stepsReady
	if _, err := (&npyWriter{dir: c.tmp}).job(job); err != nil {
		return nil, ready, err
	}
	p, err := c.startPython(ctx, &ready, "step.py", c.tmp)
	return p, ready, err
}

// steps are our side: a network that starts over at each turn.
type steps struct {
	be      kernels.Backend
	trainer *bench.Trainer
	initial [][]float32
	batches []*batch
}

func newSteps(be kernels.Backend, config model.Config, shape model.Shape, batches []*batch) *steps {
	s := &steps{be: be, batches: batches, trainer: bench.NewTrainer(be, config, shape, 1)}
	for _, p := range s.trainer.Model.Params {
		host := make([]float32, p.Value.Len())
		be.DownloadF32(host, p.Value)
		s.initial = append(s.initial, host)
	}
	return s
}

// turn is one side's training on every batch: wall and processor time in seconds, and the loss of
// each batch.
type turn struct {
	Seconds   float64   `json:"seconds"`
	Processor float64   `json:"processor"`
	Losses    []float64 `json:"losses"`
}

// same returns an error if another turn was other work than t: if a loss differs by more than a
// share.
func (t turn) same(other turn, tolerance float64) error {
	if len(other.Losses) != len(t.Losses) {
		return fmt.Errorf("trained on %d batches, and gnnstore on %d", len(other.Losses), len(t.Losses))
	}
	for i, l := range t.Losses {
		if !(math.Abs(l-other.Losses[i]) <= tolerance*other.Losses[i]) { // NaN is other work, too
			return fmt.Errorf("batch %d has loss %v, and %v in gnnstore: that is other work", i, other.Losses[i], l)
		}
	}
	return nil
}

// turn trains on every batch once, from the initial weights on.
func (s *steps) turn() (t turn, err error) {
	s.trainer.Restart()
	for i, p := range s.trainer.Model.Params {
		s.be.UploadF32(p.Value, s.initial[i])
	}
	start, before := time.Now(), kernels.ProcessorSeconds()
	for _, b := range s.batches {
		t.Losses = append(t.Losses, s.trainer.Step(&b.Batch, b.rows, b.labels, rate, 1))
	}
	t.Seconds, t.Processor = time.Since(start).Seconds(), kernels.ProcessorSeconds()-before
	return t, nil
}
