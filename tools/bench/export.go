package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// batch is one step's input in memory.
type batch struct {
	sample.Batch
	rows   []kernels.Tensor // by type: float16, as they are stored
	labels []uint32
}

// drawBatches samples so many batches of d, and copies the rows of their inputs to be.
func drawBatches(be kernels.Backend, d *data.Data, config sample.Config, size, count int) ([]*batch, error) {
	if len(d.Train) < size*count {
		return nil, fmt.Errorf("%s: %d training nodes; %d × %d are needed", d.Set.Path(), len(d.Train), count, size)
	}
	seeds := slices.Clone(d.Train)
	sample.Shuffle(seeds, 1, 1)
	sampler := newDrawn(d, config, nil).sampler
	var batches []*batch
	for i := range count {
		b := new(batch)
		err := sampler.SampleOne(context.Background(), &b.Batch, sample.Alone(1, 1, i), d.Seeds(seeds[i*size:(i+1)*size])...)
		if err == nil {
			b.labels, err = d.Classes(nil, b.Seeds[d.Target])
		}
		if err != nil {
			return nil, err
		}
		for t, ids := range b.Inputs() {
			rows, err := copyRows(be, d, t, ids)
			if err != nil {
				return nil, err
			}
			b.rows = append(b.rows, rows)
		}
		batches = append(batches, b)
	}
	return batches, nil
}

// copyRows is the rows of nodes of type t on be; no tensor where there are no nodes.
func copyRows(be kernels.Backend, d *data.Data, t int, ids []uint32) (rows kernels.Tensor, err error) {
	features := d.Types[t].Features
	switch {
	case len(ids) == 0:
		return rows, nil
	case features == nil || features.Elem() != store.F16:
		return rows, fmt.Errorf("%s: type %s has no float16 features, and they are needed", d.Set.Path(), d.Types[t].Name)
	}
	dim := features.Dim()
	rows = kernels.Tensor{Buf: be.Alloc(kernels.F16, len(ids)*dim), Type: kernels.F16, Rows: len(ids), Cols: dim}
	host, ok := be.Host(rows)
	if !ok {
		return rows, errors.New("the backend's memory cannot be addressed")
	}
	for r, v := range ids {
		copy(host[r*features.RowBytes():], features.Row(v))
	}
	return rows, nil
}

// export writes batches and weights to dir as step.py reads them.
func export(dir string, be kernels.Backend, batches []*batch, params []*model.Param) error {
	w := npyWriter{dir: dir}
	for i, b := range batches {
		for t, rows := range b.rows {
			if rows.Rows > 0 {
				host, _ := be.Host(rows) // copyRows has asked
				w.write(fmt.Sprintf("%d.%d.rows", i, t), "<f2", []int{rows.Rows, rows.Cols}, host)
			}
		}
		w.write(fmt.Sprintf("%d.labels", i), "<i4", []int{len(b.labels)}, b.labels)
		for l := range b.Layers {
			var read, made []uint32 // by type: how many nodes
			for _, nodes := range b.Layers[l].Nodes {
				read, made = append(read, uint32(len(nodes.Src))), append(made, uint32(nodes.Dst))
			}
			w.write(fmt.Sprintf("%d.%d.read", i, l), "<i4", []int{len(read)}, read)
			w.write(fmt.Sprintf("%d.%d.made", i, l), "<i4", []int{len(made)}, made)
			for r := range b.Layers[l].Blocks {
				k := &b.Layers[l].Blocks[r]
				offsets := append(append([]uint32(nil), k.Start...), uint32(len(k.Nbr)))
				w.write(fmt.Sprintf("%d.%d.%d.offsets", i, l, r), "<i4", []int{len(offsets)}, offsets)
				w.write(fmt.Sprintf("%d.%d.%d.neighbors", i, l, r), "<i4", []int{len(k.Nbr)}, k.Nbr)
			}
		}
	}
	for _, p := range params {
		data := make([]float32, p.Value.Len())
		be.DownloadF32(data, p.Value)
		w.write(p.Name, "<f4", p.Shape, data)
	}
	return w.err
}

// npyWriter writes NumPy files, version 1.0 of the format, and a job in JSON that goes with them.
// It remembers the first error.
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

// job writes what a script is told, and returns the file's path.
func (w *npyWriter) job(about any) (path string, err error) {
	path = filepath.Join(w.dir, "job.json")
	text, err := json.Marshal(about)
	if err = errors.Join(w.err, err); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, text, 0o666)
}

// section is a part of a file, for a script that maps it.
type section struct {
	Path   string `json:"path"`
	Offset int64  `json:"offset"`
	First  int64  `json:"first"` // row of a table
	Rows   int64  `json:"rows"`
	Stride int64  `json:"stride"`
}

// shardsOf has the rows of f.
func shardsOf(f *store.Features) (shards []section) {
	for _, s := range f.Shards() {
		shards = append(shards, section{s.Path, s.DataOffset, s.FirstRow, s.Rows, s.Stride})
	}
	return shards
}

// listsOf returns where the neighbour lists of g lie: an offset for each node and one more, and the
// neighbours. Graphs that share sections have no such file of offsets, so listsOf writes it to
// dir.
func listsOf(g *store.Graph, dir string) (offsets, neighbors section, err error) {
	o, n := g.Sections()
	offsets = section{Path: o.Path, Offset: store.PageSize}
	neighbors = section{Path: n.Path, Offset: store.PageSize + 4*g.FirstEdge()}
	if g.Shares() {
		offsets, err = writeOffsets(g, dir)
	}
	return offsets, neighbors, err
}

// writeOffsets writes the offsets of g's lists to a new file in dir, as 64-bit numbers.
func writeOffsets(g *store.Graph, dir string) (section, error) {
	f, err := os.CreateTemp(dir, "offsets-*.u64")
	if err != nil {
		return section{}, err
	}
	w, some := bufio.NewWriterSize(f, 1<<20), make([]uint64, 1<<16)
	for at := 0; at <= g.Nodes() && err == nil; at += len(some) {
		some = some[:min(len(some), g.Nodes()+1-at)]
		if err = store.Guard(func() error { g.ListOffsets(at, some); return nil }); err == nil {
			err = binary.Write(w, binary.LittleEndian, some)
		}
	}
	return section{Path: f.Name()}, errors.Join(err, w.Flush(), f.Close())
}

// npyHeader returns the bytes before the data: magic, version, and a dictionary, padded to a
// multiple of 64 bytes.
func npyHeader(descr string, shape []int) string {
	var dims strings.Builder
	for _, n := range shape {
		fmt.Fprintf(&dims, "%d,", n)
	}
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, &dims)
	dict += strings.Repeat(" ", 63-(10+len(dict))%64) + "\n"
	return "\x93NUMPY\x01\x00" + string(binary.LittleEndian.AppendUint16(nil, uint16(len(dict)))) + dict
}
