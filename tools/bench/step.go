package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
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
	path, err := c.arxiv(ctx)
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
	var us, them, ourCPU, theirCPU series
	perStep := 1e3 / float64(c.batches)
	for range c.rounds {
		mine := ours.turn()
		var theirs turn
		if err := torch.turn(&theirs); err != nil {
			return err
		}
		if len(theirs.Losses) != len(mine.Losses) {
			return fmt.Errorf("PyTorch trained on %d batches, and gnnstore on %d", len(theirs.Losses), len(mine.Losses))
		}
		for i, l := range mine.Losses {
			if !(math.Abs(l-theirs.Losses[i]) <= tolerance*theirs.Losses[i]) { // NaN is other work, too
				return fmt.Errorf("batch %d has loss %v, and %v in PyTorch: that is other work", i, l, theirs.Losses[i])
			}
		}
		us, them = append(us, perStep*mine.Seconds), append(them, perStep*theirs.Seconds)
		ourCPU, theirCPU = append(ourCPU, perStep*mine.Processor), append(theirCPU, perStep*theirs.Processor)
	}
	fmt.Fprintf(c.out, "PyTorch %s, %d threads, OPENBLAS_CORETYPE unset; processor ms a step while choosing: %v.\n", ready.Torch, c.threads, ready.Variants)
	fmt.Fprintf(c.out, "%d turns of %d batches each; losses agree to %g. Median (smallest–largest):\n\n", c.rounds, c.batches, tolerance)
	fmt.Fprintf(c.out, "| a step | ms | ms of processor time |\n| --- | --- | --- |\n| gnnstore, %s | %s | %s |\n| PyTorch, %s | %s | %s |\n| PyTorch / gnnstore | %s | %s |\n",
		be.Name(), us.spread("%.1f"), ourCPU.spread("%.1f"), ready.Chosen, them.spread("%.1f"), theirCPU.spread("%.1f"),
		them.over(us).spread("%.2f"), theirCPU.over(ourCPU).spread("%.2f"))
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

// turn is one side's training on every batch: wall and processor time in seconds, and the loss of each batch.
type turn struct {
	Seconds   float64   `json:"seconds"`
	Processor float64   `json:"processor"`
	Losses    []float64 `json:"losses"`
}

// turn trains on every batch once, from the initial weights on.
func (s *steps) turn() turn {
	s.trainer.Restart()
	for i, p := range s.trainer.Model.Params {
		s.be.UploadF32(p.Value, s.initial[i])
	}
	var t turn
	start, before := time.Now(), processorSeconds()
	for _, b := range s.batches {
		t.Losses = append(t.Losses, s.trainer.Step(&b.Batch, b.rows, b.labels, rate, 1))
	}
	t.Seconds, t.Processor = time.Since(start).Seconds(), processorSeconds()-before
	return t
}

// processorSeconds is what this process has used of all cores.
func processorSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return math.NaN()
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
