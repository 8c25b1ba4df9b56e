// Step times a training step on a batch of a dataset, and writes the batch's edges, so that
// tools/cuda/pyg.py can time the same step. It is stage 8 of tools/gpu:
//
//	go run -tags cuda ./tools/gpu/step -dataset FILE.gnn -out FOLDER
//
// The network is GraphSAGE of three layers, hidden 256, without normalisation and dropout. A step
// copies the lists of the blocks up, computes forward and backward, updates by Adam, and fetches
// the loss. Figure "step" is the time from its beginning until the loss is there. "step_in_a_row"
// is the time a step takes where steps follow one another as in training: each is launched before
// the loss of the one before is there. "upload_and_step" adds the copy of the input rows, in
// float16, from page-locked memory.
//
// FOLDER gets blocks.json, the numbers of nodes from the inputs to the seeds, and for each layer L
// the files L.src and L.dst: the ends of its edges, numbers of 32 bits, counted in the layer.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/bench"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
)

var fanouts = []int{15, 10, 5}

const (
	hidden = 256
	rate   = 0.003
	warmup = 5 // steps that are not timed
)

func main() {
	dataset := flag.String("dataset", "", "a sealed `file` whose nodes are of one type and have float16 features")
	out := flag.String("out", "", "`folder` of the blocks")
	device := flag.String("device", kernels.CUDADevice, "what computes: cuda or cpu")
	batch := flag.Int("batch", 1000, "seeds of the batch")
	steps := flag.Int("steps", 20, "steps to time")
	flag.Parse()
	if *dataset == "" || *out == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: step -dataset FILE.gnn -out FOLDER [-device cuda|cpu] [-batch 1000] [-steps 20]")
		os.Exit(2)
	}
	if err := run(os.Stdout, *dataset, *out, *device, *batch, *steps); err != nil {
		fmt.Fprintln(os.Stderr, "step:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, dataset, out, device string, batch, steps int) (err error) {
	defer kernels.RecoverMemory(&err)
	be, err := kernels.Open(kernels.Options{Device: device})
	if err != nil {
		return err
	}
	ds, err := store.Open(dataset)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	d, err := data.Open(ds, data.Options{})
	if err != nil {
		return err
	}
	b, err := draw(d, batch)
	if err != nil {
		return err
	}
	if err := writeBlocks(out, b.Layers); err != nil {
		return err
	}
	return b.time(w, be, steps)
}

// drawn is a batch with what a step reads beside its blocks.
type drawn struct {
	sample.Batch
	shape  model.Shape
	config model.Config
	rows   []uint16 // of the inputs
	labels []uint32
}

// draw draws the first batch of d.
func draw(d *data.Data, batch int) (*drawn, error) {
	if len(d.Types) != 1 || len(d.Relations) != 1 {
		return nil, errors.New("nodes or relations are of several types")
	}
	features := d.Types[0].Features
	if features == nil || features.Elem() != store.F16 {
		return nil, errors.New("there are no float16 features")
	}
	if len(d.Train) < batch {
		return nil, fmt.Errorf("%d training nodes are too few", len(d.Train))
	}
	b := &drawn{
		shape:  model.Shape{In: []int{features.Dim()}, Out: d.Labels.Classes()},
		config: model.Config{Kind: model.SAGE, Layers: len(fanouts), Hidden: hidden, Norm: "none"},
	}
	draws := sample.Config{Fanouts: fanouts}
	b.shape.Reach = draws.Reach(d.Schema(), d.Target)
	draws.Options = b.config.Blocks(b.shape)
	seeds := slices.Clone(d.Train)
	sample.Shuffle(seeds, 1, 1)
	sampler := sample.NewTyped(d.Schema(), []sample.Topology{d.Relations[0].AtHand(false)}, draws, 1)
	err := sampler.SampleOne(context.Background(), &b.Batch, sample.Alone(1, 1, 0), d.Seeds(seeds[:batch])...)
	if err != nil {
		return nil, err
	}
	for _, v := range b.Inputs()[0] {
		row := features.Row(v)
		for i := 0; i < len(row); i += 2 {
			b.rows = append(b.rows, binary.LittleEndian.Uint16(row[i:]))
		}
	}
	b.labels, err = d.Classes(nil, b.Seeds[d.Target])
	return b, err
}

// sizes returns the numbers of nodes from the inputs to the seeds.
func sizes(layers []sample.Layer) []int {
	all := []int{len(layers[0].Nodes[0].Src)}
	for _, l := range layers {
		all = append(all, l.Nodes[0].Dst)
	}
	return all
}

// writeBlocks writes the edges of layers.
func writeBlocks(folder string, layers []sample.Layer) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{"nodes": sizes(layers)})
	if err != nil {
		return err
	}
	errs := []error{os.WriteFile(filepath.Join(folder, "blocks.json"), text, 0o666)}
	for l, layer := range layers {
		k := &layer.Blocks[0]
		var src, dst []byte
		for i := range k.Start {
			for _, u := range k.Nbr[k.Start[i]:k.End[i]] {
				src = binary.LittleEndian.AppendUint32(src, u)
				dst = binary.LittleEndian.AppendUint32(dst, uint32(i))
			}
		}
		name := filepath.Join(folder, strconv.Itoa(l))
		errs = append(errs, os.WriteFile(name+".src", src, 0o666), os.WriteFile(name+".dst", dst, 0o666))
	}
	return errors.Join(errs...)
}

// time prints the milliseconds of a step alone and in a row, without and with the copy of its rows.
// Rows go to two tensors in turn, so that one is filled while a step reads the other.
func (b *drawn) time(w io.Writer, be kernels.Backend, steps int) error {
	var rows [2]kernels.Tensor
	var send [2]func()
	for i := range rows {
		rows[i] = kernels.NewTensor(be, kernels.F16, len(b.Inputs()[0]), b.shape.In[0])
		defer be.Free(rows[i].Buf)
		send[i] = b.sender(be, rows[i])
		send[i]()
	}
	trainer := bench.NewTrainer(be, b.config, b.shape, 1)
	key, first, last := uint64(0), 0.0, 0.0
	launch := func(sends bool) step.Launched {
		key++
		if sends {
			send[key%2]()
		}
		return trainer.Launch(&b.Batch, []kernels.Tensor{rows[key%2]}, b.labels, rate, key)
	}
	wait := func(l step.Launched) error {
		a, err := l.Wait()
		if last = a.Mean(); first == 0 {
			first = last
		}
		return err
	}
	edges := 0
	for _, l := range b.Layers {
		edges += len(l.Blocks[0].Nbr)
	}
	fmt.Fprintf(w, "nodes %v, %d edges\n", sizes(b.Layers), edges)
	for _, sends := range []bool{false, true} {
		name := "step"
		if sends {
			name = "upload_and_step"
		}
		times := make([]float64, warmup+steps)
		for i := range times {
			start := time.Now()
			if err := wait(launch(sends)); err != nil {
				return err
			}
			times[i] = time.Since(start).Seconds() * 1e3
		}
		times = times[warmup:]
		slices.Sort(times)
		fmt.Fprintf(w, "figure %s %.4g ms\n", name, times[steps/2])
		fmt.Fprintf(w, "figure %s_least %.4g ms\n", name, times[0])
		row := func() (milliseconds float64, err error) {
			start := time.Now()
			before := launch(sends)
			for range steps - 1 {
				next := launch(sends)
				if err := wait(before); err != nil {
					return 0, err
				}
				before = next
			}
			err = wait(before)
			return time.Since(start).Seconds() * 1e3 / float64(steps), err
		}
		var turns [4]float64 // the first allocates the memory of two steps, and does not count
		for i := range turns {
			var err error
			if turns[i], err = row(); err != nil {
				return err
			}
		}
		slices.Sort(turns[1:])
		fmt.Fprintf(w, "figure %s_in_a_row %.4g ms\n", name, turns[2])
	}
	fmt.Fprintf(w, "loss %.4f, then %.4f\n", first, last)
	if !(last < first) {
		return fmt.Errorf("%d steps on one batch: the loss is %v, and %v at first", key, last, first)
	}
	return nil
}

// sender returns a function that copies the rows to dst. Where the backend lends memory to copy
// from, the rows are written there once, as a loader would leave them in page-locked memory. The
// backend lends the same memory again, since nothing else that goes up is as large.
func (b *drawn) sender(be kernels.Backend, dst kernels.Tensor) func() {
	to, lends := be.(kernels.Stager)
	if !lends {
		return func() { be.UploadHalf(dst, b.rows) }
	}
	written := map[*byte]bool{}
	return func() {
		memory, send := to.Stage(dst)
		if !written[&memory[0]] {
			for i, v := range b.rows {
				binary.LittleEndian.PutUint16(memory[2*i:], v)
			}
			written[&memory[0]] = true
		}
		send(true)
	}
}
