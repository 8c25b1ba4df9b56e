package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/tools/cli"
	"github.com/gnnstore/gnnstore/train/bench"
	"github.com/gnnstore/gnnstore/train/model"
)

// What is trained, on both sides: DESIGN's network, without dropout and normalisation, so that the losses can be compared.
const (
	hidden    = 256
	batchSize = 1000
	rate      = 0.003
	tolerance = 1e-3 // of a batch's loss, relative
)

var (
	fanouts = []int{15, 10, 5}
	network = model.Config{Kind: model.SAGE, Layers: len(fanouts), Hidden: hidden, Norm: "none"}
)

// compareSteps alternates our step with PyTorch's on the same batches, from the same weights.
func compareSteps(ctx context.Context, c *comparison) error {
	gnnstore := cli.Binary("")
	if c.dataset == "" {
		var err error
		if gnnstore, err = cli.Build(ctx, c.tmp); err != nil {
			return err
		}
	}
	path, err := c.arxiv(ctx, gnnstore)
	if err != nil {
		return err
	}
	ds, err := store.Open(path)
	if err != nil {
		return err
	}
	defer ds.Close()
	be := kernels.NewCPU(kernels.CPUOptions{Threads: c.threads})
	batches, err := drawBatches(be, ds, fanouts, batchSize, c.batches)
	if err != nil {
		return err
	}
	ours := newSteps(be, batches, ds.Labels(0).Classes())
	if err := export(c.tmp, be, batches, ours.trainer.Model.Params); err != nil {
		return err
	}
	var ready struct {
		Torch    string             `json:"torch"`
		Variants map[string]float64 `json:"variants"`
		Chosen   string             `json:"chosen"`
	}
	torch, err := c.startPython(ctx, &ready, "step.py", c.tmp, strconv.Itoa(c.batches), strconv.Itoa(len(fanouts)), strconv.Itoa(c.threads), fmt.Sprint(rate))
	if err != nil {
		return err
	}
	defer torch.close() //nolint:errcheck // what matters was read
	ours.turn()         // to warm up
	var us, them series
	for range c.rounds {
		seconds, losses := ours.turn()
		var theirs struct {
			Seconds float64   `json:"seconds"`
			Losses  []float64 `json:"losses"`
		}
		if err := torch.turn(&theirs); err != nil {
			return err
		}
		for i, l := range losses {
			if math.Abs(l-theirs.Losses[i]) > tolerance*theirs.Losses[i] {
				return fmt.Errorf("batch %d has loss %v, and %v in PyTorch: that is other work", i, l, theirs.Losses[i])
			}
		}
		us, them = append(us, 1e3*seconds/float64(c.batches)), append(them, 1e3*theirs.Seconds/float64(c.batches))
	}
	fmt.Fprintf(c.out, "PyTorch %s, %d threads, OPENBLAS_CORETYPE unset; ms/step while choosing: %v.\n", ready.Torch, c.threads, ready.Variants)
	fmt.Fprintf(c.out, "%d turns of %d batches each; losses agree to %g. Median (smallest–largest):\n\n", c.rounds, c.batches, tolerance)
	fmt.Fprintf(c.out, "| step | ms |\n| --- | --- |\n| gnnstore, %s | %s |\n| PyTorch, %s | %s |\n| PyTorch / gnnstore | %s |\n",
		be.Name(), us.spread("%.1f"), ready.Chosen, them.spread("%.1f"), them.over(us).spread("%.2f"))
	return nil
}

// steps are our side: a network that starts over at each turn.
type steps struct {
	be      kernels.Backend
	trainer *bench.Trainer
	initial [][]float32
	batches []*batch
}

func newSteps(be kernels.Backend, batches []*batch, classes int) *steps {
	s := &steps{be: be, batches: batches, trainer: bench.NewTrainer(be, network, batches[0].rows.Cols, classes, 1)}
	for _, p := range s.trainer.Model.Params {
		host := make([]float32, p.Value.Len())
		be.DownloadF32(host, p.Value)
		s.initial = append(s.initial, host)
	}
	return s
}

// turn trains on every batch once, from the initial weights on.
func (s *steps) turn() (seconds float64, losses []float64) {
	s.trainer.Restart()
	for i, p := range s.trainer.Model.Params {
		s.be.UploadF32(p.Value, s.initial[i])
	}
	start := time.Now()
	for _, b := range s.batches {
		losses = append(losses, s.trainer.Step(&b.Batch, b.rows, b.labels, rate, 1))
	}
	return time.Since(start).Seconds(), losses
}
