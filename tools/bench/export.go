package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// batch is one step's input in memory.
type batch struct {
	sample.Batch
	rows   kernels.Tensor // float16, as they are stored
	labels []uint32
}

// drawBatches samples so many batches of ds, and copies the rows of their inputs to be.
func drawBatches(be kernels.Backend, ds *store.Dataset, fanouts []int, size, count int) ([]*batch, error) {
	features, labels, seeds := ds.Features(0), ds.Labels(0), append([]uint32(nil), ds.Split(0).Train...)
	if features.Elem() != store.F16 || len(seeds) < size*count {
		return nil, fmt.Errorf("%s: %d training nodes with %s features; %d × %d with float16 are needed", ds.Path(), len(seeds), features.Elem(), count, size)
	}
	sample.Shuffle(seeds, 1, 1)
	sampler := sample.NewSampler(sample.AtHand(ds.Graph(0)), sample.Config{Fanouts: fanouts}, 1)
	var batches []*batch
	for i := range count {
		b := new(batch)
		if err := sampler.SampleOne(context.Background(), &b.Batch, sample.Alone(1, 1, i), seeds[i*size:(i+1)*size]); err != nil {
			return nil, err
		}
		for _, v := range b.Seeds[0] {
			b.labels = append(b.labels, uint32(labels.Class(v)))
		}
		n, dim := len(b.Inputs()[0]), features.Dim()
		b.rows = kernels.Tensor{Buf: be.Alloc(kernels.F16, n*dim), Type: kernels.F16, Rows: n, Cols: dim}
		host, ok := be.Host(b.rows)
		if !ok {
			return nil, errors.New("the backend's memory cannot be addressed")
		}
		for r, v := range b.Inputs()[0] {
			copy(host[r*features.RowBytes():], features.Row(v))
		}
		batches = append(batches, b)
	}
	return batches, nil
}

// export writes batches and weights to dir as step.py reads them.
func export(dir string, be kernels.Backend, batches []*batch, params []*model.Param) error {
	w := npyWriter{dir: dir}
	for i, b := range batches {
		rows, _ := be.Host(b.rows) // drawBatches has asked
		w.write(fmt.Sprintf("%d.rows", i), "<f2", []int{b.rows.Rows, b.rows.Cols}, rows)
		w.write(fmt.Sprintf("%d.labels", i), "<i4", []int{len(b.labels)}, b.labels)
		for l := range b.Layers {
			nodes, k := &b.Layers[l].Nodes[0], &b.Layers[l].Blocks[0]
			offsets := append(append([]uint32(nil), k.Start...), uint32(len(k.Nbr)))
			w.write(fmt.Sprintf("%d.%d.offsets", i, l), "<i4", []int{len(offsets)}, offsets)
			w.write(fmt.Sprintf("%d.%d.neighbors", i, l), "<i4", []int{len(k.Nbr)}, k.Nbr)
			w.write(fmt.Sprintf("%d.%d.sources", i, l), "<i4", []int{1}, []uint32{uint32(len(nodes.Src))})
		}
	}
	for _, p := range params {
		data := make([]float32, p.Value.Len())
		be.DownloadF32(data, p.Value)
		w.write(p.Name, "<f4", p.Shape, data)
	}
	return w.err
}

// npyWriter writes NumPy files, version 1.0 of the format, and remembers the first error.
type npyWriter struct {
	dir string
	err error
}

func (w *npyWriter) write(name, descr string, shape []int, data any) {
	if w.err != nil {
		return
	}
	f, err := os.Create(filepath.Join(w.dir, name+".npy"))
	if err != nil {
		w.err = err
		return
	}
	out := bufio.NewWriterSize(f, 1<<20)
	_, err = out.WriteString(npyHeader(descr, shape))
	w.err = errors.Join(err, binary.Write(out, binary.LittleEndian, data), out.Flush(), f.Close())
}

// npyHeader is what stands before the data: magic, version, and a dictionary padded to a multiple of 64 bytes.
func npyHeader(descr string, shape []int) string {
	var dims strings.Builder
	for _, n := range shape {
		fmt.Fprintf(&dims, "%d,", n)
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, &dims)
	dict += strings.Repeat(" ", 63-(10+len(dict))%64) + "\n"
	return "\x93NUMPY\x01\x00" + string(binary.LittleEndian.AppendUint16(nil, uint16(len(dict)))) + dict
}
