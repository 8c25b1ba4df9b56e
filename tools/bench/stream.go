package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/stream"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// streamTolerance is the tolerance of a batch's loss. PyTorch's side takes cosines of times in
// float32, as TGL does, which are off where times are large.
const streamTolerance = 1e-2

// streamReady is the message of stream.py when it has chosen its variants.
type streamReady struct {
	Torch    string             `json:"torch"`
	Variants map[string]float64 `json:"variants"` // ms a step while choosing
	Rivals   []string           `json:"rivals"`
}

// compareStreamSteps alternates a step of TGN with PyTorch's, on the same batches of a stream's
// middle, from the same weights, without dropout.
func compareStreamSteps(ctx context.Context, c *comparison) error {
	s, err := newStreamSteps(ctx, c, c.ds)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.export(c.tmp); err != nil {
		return err
	}
	var ready streamReady
	torch, err := c.startPython(ctx, &ready, "stream.py", c.tmp)
	if err != nil {
		return err
	}
	defer torch.close() //nolint:errcheck // what matters was read
	prefix, agree := "PyTorch, ", streamTolerance
	if c.products == kernels.BF16 {
		prefix, agree = "PyTorch autocast, ", bf16Tolerance
	}
	turns, err := c.raceSteps(ctx, s.be, s.turn, torch, ready.Rivals, prefix, agree)
	if err != nil {
		return err
	}
	var rows, roots, neighbors, nodes float64
	for _, b := range s.batches {
		n := float64(len(s.batches))
		rows, roots, neighbors, nodes = rows+float64(len(b.RowNode))/n, roots+float64(len(b.Roots))/n, neighbors+float64(len(b.NearRow))/n, nodes+float64(len(b.Nodes))/n
	}
	fmt.Fprintf(c.out, "%s: TGN of %d, fanout %d, batches of %d events: on average %.0f nodes, %.0f rows, %.0f roots with %.0f neighbours. "+
		"PyTorch %s, %d threads; ms a step while choosing: %v.\n",
		c.base(), s.config.Hidden, streamFanout, s.batch, nodes, rows, roots, neighbors, ready.Torch, c.threads, ready.Variants)
	c.printSteps(turns, agree)
	return nil
}

const streamFanout = 10

// streamSteps are our side: batches with made state and the features of their events, and a network
// that starts over at each turn.
type streamSteps struct {
	be       kernels.Backend
	config   model.TemporalConfig
	shape    model.TemporalShape
	batch    int
	products kernels.Precision
	batches  []*temporal.Batch
	state    []kernels.Tensor
	features []kernels.Tensor
	mails    [][]float32 // of each batch, by node
	ages     [][]float64 // by row
	events   [][]float32 // features in float32
	step     *temporal.Stepper
	initial  [][]float32
}

func newStreamSteps(ctx context.Context, c *comparison, ds *store.Dataset) (*streamSteps, error) {
	events, err := stream.Find(ds, "")
	if err != nil {
		return nil, err
	}
	table, ok := ds.StreamTable(events.Stream.Name, "feat")
	if !ok {
		return nil, fmt.Errorf("%s: its events have no features, and they are needed: ingest it with --edge-features", ds.Path())
	}
	o := run.DefaultStreamOptions(model.TGN).FilledStream(0)
	o.Batch, o.Dropout, o.AttnDropout = 600, 0, 0
	be, err := kernels.Open(kernels.Options{Threads: c.threads, Products: c.products})
	if err != nil {
		return nil, err
	}
	s := &streamSteps{be: be, config: o.Temporal(), shape: model.TemporalShape{Event: table.Dim()}, batch: o.Batch, products: c.products}
	sampler, err := temporal.NewSampler(ctx, events, temporal.SamplerOptions{Fanout: streamFanout, Workers: c.threads})
	if err != nil {
		return nil, err
	}
	defer sampler.Close()
	population, err := temporal.Destinations(events, 0, events.Stream.Split.Train)
	if err != nil {
		return nil, err
	}
	first := events.Stream.Split.Train / 2
	if first+int64(c.batches*s.batch) > events.Len() {
		return nil, fmt.Errorf("%s: %d events are too few for %d batches of %d from event %d on; lower -batches", ds.Path(), events.Len(), c.batches, s.batch, first)
	}
	if err := sampler.Seek(ctx, first); err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	record := temporal.RecordOf(s.config, s.shape)
	for i := range c.batches {
		b := new(temporal.Batch)
		from := first + int64(i*s.batch)
		p := temporal.Step{From: from, To: from + int64(s.batch), Negatives: temporal.Negatives{Population: population, Each: 1, Key: 1}}
		if err := sampler.Draw(ctx, []temporal.Step{p}, []*temporal.Batch{b}); err != nil {
			return nil, err
		}
		s.batches = append(s.batches, b)
		s.addRows(b, record, table, rng)
	}
	s.step = temporal.NewStepper(s.be, model.NewTemporal(s.be, s.config, s.shape, 1), optim.Options{})
	for _, p := range s.step.Model.Params {
		host := make([]float32, p.Value.Len())
		s.be.DownloadF32(host, p.Value)
		s.initial = append(s.initial, host)
	}
	return s, nil
}

// addRows makes the state of a batch's nodes, and copies the features of its events.
func (s *streamSteps) addRows(b *temporal.Batch, record temporal.Record, table *store.Features, rng *rand.Rand) {
	earliest := make([]float64, len(b.Nodes))
	for n := range earliest {
		earliest[n] = math.Inf(1)
	}
	for r, n := range b.RowNode {
		earliest[n] = min(earliest[n], b.RowTime[r])
	}
	cols := s.config.Mail(s.shape)
	mails, last := make([]float32, 0, len(b.Nodes)*cols), make([]float64, len(b.Nodes))
	state := kernels.Tensor{Buf: s.be.Alloc(kernels.F32, len(b.Nodes)*record.Cols()), Type: kernels.F32, Rows: len(b.Nodes), Cols: record.Cols()}
	host, _ := s.be.Host(state)
	for n := range b.Nodes {
		r := host[n*record.Bytes():][:record.Bytes()]
		for c := range cols {
			x := float32(0.5 * rng.NormFloat64())
			mails = append(mails, x)
			binary.LittleEndian.PutUint32(r[4*c:], math.Float32bits(x))
		}
		last[n] = math.Trunc(earliest[n] * rng.Float64())
		record.SetTime(r, last[n])
	}
	var ages []float64
	for r, n := range b.RowNode {
		ages = append(ages, b.RowTime[r]-last[n])
	}
	elem := kernels.F32
	if table.Elem() == store.F16 {
		elem = kernels.F16
	}
	features := kernels.Tensor{Buf: s.be.Alloc(elem, len(b.Events)*table.Dim()), Type: elem, Rows: len(b.Events), Cols: table.Dim()}
	bytes, _ := s.be.Host(features)
	for i, e := range b.Events {
		copy(bytes[i*table.RowBytes():], table.Row(e))
	}
	wide := kernels.Tensor{Buf: s.be.Alloc(kernels.F32, features.Len()), Type: kernels.F32, Rows: features.Rows, Cols: features.Cols}
	defer s.be.Free(wide.Buf)
	s.be.Convert(wide, features)
	values := make([]float32, features.Len())
	s.be.DownloadF32(values, wide)
	s.state, s.features = append(s.state, state), append(s.features, features)
	s.mails, s.ages, s.events = append(s.mails, mails), append(s.ages, ages), append(s.events, values)
}

// turn trains on every batch once, from the initial weights on.
func (s *streamSteps) turn() (t turn, err error) {
	for i, p := range s.step.Model.Params {
		s.be.UploadF32(p.Value, s.initial[i])
	}
	s.step.Optim.Close()
	var params []optim.Param
	for _, p := range s.step.Model.Params {
		params = append(params, optim.Param{Name: p.Name, Shape: p.Shape, Value: p.Value, Grad: p.Grad})
	}
	s.step.Optim = optim.New(s.be, params, optim.Options{})
	start, before := time.Now(), kernels.ProcessorSeconds()
	for i, b := range s.batches {
		out, err := s.step.Compute(temporal.Input{Batch: b, State: s.state[i], Features: s.features[i], Key: 1})
		if err == nil {
			err = s.step.Update(streamRate, nil)
		}
		if err != nil {
			return t, err
		}
		t.Losses = append(t.Losses, out.Loss)
	}
	t.Seconds, t.Processor = time.Since(start).Seconds(), kernels.ProcessorSeconds()-before
	return t, nil
}

const streamRate = 1e-3

// export writes batches and weights as stream.py reads them.
func (s *streamSteps) export(dir string) error {
	w := npyWriter{dir: dir}
	for i, b := range s.batches {
		ints := func(name string, v []uint32) { w.write(fmt.Sprintf("%d.%s", i, name), "<i4", []int{len(v)}, v) }
		doubles := func(name string, v []float64) { w.write(fmt.Sprintf("%d.%s", i, name), "<f8", []int{len(v)}, v) }
		ints("node", b.RowNode)
		ints("root", b.Roots)
		ints("start", b.NearStart)
		ints("end", b.NearEnd)
		ints("near", b.NearRow)
		ints("event", b.NearEvent)
		ints("src", b.Src)
		ints("dst", b.Dst)
		ints("negative", b.Negatives)
		doubles("age", s.ages[i])
		doubles("since", b.Since)
		w.write(fmt.Sprintf("%d.mail", i), "<f4", []int{len(b.Nodes), s.config.Mail(s.shape)}, s.mails[i])
		w.write(fmt.Sprintf("%d.features", i), "<f4", []int{len(b.Events), s.shape.Event}, s.events[i])
	}
	for i, p := range s.step.Model.Params {
		w.write(p.Name, "<f4", p.Shape, s.initial[i])
	}
	_, err := w.job(map[string]any{
		"batches": len(s.batches), "hidden": s.config.Hidden, "time": s.config.Time, "heads": s.config.Heads, "event": s.shape.Event, "fanout": streamFanout, "rate": streamRate,
		"bf16": s.products == kernels.BF16,
	})
	return err
}

func (s *streamSteps) close() {
	for i := range s.state {
		s.be.Free(s.state[i].Buf)
		s.be.Free(s.features[i].Buf)
	}
	s.step.Close()
}
