// Refnums holds gnnstore's networks against PyTorch Geometric. The numbers that the tests of
// train/model compare with are recorded by refnums.py, typed.py and temporal.py, by hand. This
// program and roundtrip.py are for whole runs: it writes what the network of a finished run says
// about nodes of its dataset, and roundtrip.py loads the run's weights into PyTorch Geometric and
// compares.
//
//	gnnstore train cs.gnn --model gat --run runs/cs
//	go run ./tools/refnums -run runs/cs -out cs.out
//	env/bin/python tools/refnums/roundtrip.py runs/cs/best.safetensors cs.out
//
// It writes the whole graph and all features in float32, so it is for graphs that fit in memory.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/tape"
)

func main() {
	dir := flag.String("run", "", "run `directory`")
	weights := flag.String("weights", "best", "weights of the `best` or the last epoch")
	dataset := flag.String("dataset", "", "`directory` of the dataset; default that of the run")
	set := flag.String("kernels", "auto", "kernel `set`")
	nodes := flag.Int("nodes", 2000, "predict every so many-th node, `N` in all")
	out := flag.String("out", "", "`directory` to write to")
	flag.Parse()
	if *dir == "" || *out == "" || *nodes < 1 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := export(ctx, *dir, *weights, *dataset, *set, *nodes, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "refnums:", err)
		os.Exit(1)
	}
}

// export writes nodes.npy, logits.npy (a row for each of nodes), features.npy and edges.npy
// (sources above destinations).
func export(ctx context.Context, path, weights, dataset, set string, count int, out string) error {
	result, err := run.Read(path)
	if err != nil {
		return err
	}
	if dataset == "" {
		dataset = result.Dataset
	}
	kernelSet, err := kernels.ParseSet(set, kernels.Float32)
	if err != nil {
		return err
	}
	ds, err := store.Open(dataset)
	if err != nil {
		return err
	}
	defer ds.Close()
	if seal := ds.Manifest().Seal; seal != result.Seal {
		return fmt.Errorf("%s has seal %s, and the run was on %s; name its dataset with -dataset", dataset, seal, result.Seal)
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	return store.Guard(func() error {
		g := ds.Graph(0)
		n := g.Nodes()
		nodes := make([]uint32, min(count, n))
		for i := range nodes {
			nodes[i] = uint32(i * n / len(nodes))
		}
		x := readFeatures(ds.Features(0))
		be := kernels.NewCPU(kernels.CPUOptions{Set: kernelSet})
		p := predictor{be: be, graph: g, features: x, dim: ds.Features(0).Dim(), classes: ds.Labels(0).Classes()}
		logits, err := p.predict(ctx, filepath.Join(path, weights+".safetensors"), result.Options.Config, nodes)
		if err != nil {
			return err
		}
		var sources, destinations []int64
		for v := range uint32(n) {
			for _, u := range g.Neighbors(v) {
				sources, destinations = append(sources, int64(u)), append(destinations, int64(v))
			}
		}
		wide := make([]int64, len(nodes))
		for i, v := range nodes {
			wide[i] = int64(v)
		}
		return errors.Join(
			writeArray(filepath.Join(out, "nodes.npy"), "<i8", wide, len(wide)),
			writeArray(filepath.Join(out, "logits.npy"), "<f4", logits, len(nodes), len(logits)/len(nodes)),
			writeArray(filepath.Join(out, "features.npy"), "<f4", x, n, p.dim),
			writeArray(filepath.Join(out, "edges.npy"), "<i8", append(sources, destinations...), 2, len(sources)),
		)
	})
}

// readFeatures is the whole table in float32.
func readFeatures(f *store.Features) []float32 {
	x := make([]float32, f.Rows()*f.Dim())
	half := make([]uint16, f.Dim())
	for v := range f.Rows() {
		b, row := f.Row(store.NodeID(v)), x[v*f.Dim():][:f.Dim()]
		if f.Elem() == store.F16 {
			for i := range half {
				half[i] = binary.LittleEndian.Uint16(b[2*i:])
			}
			kernels.HalfToFloat32(row, half)
			continue
		}
		for i := range row {
			row[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	}
	return x
}

// predictor computes logits from every neighbour at every hop.
type predictor struct {
	be       kernels.Backend
	graph    *store.Graph
	features []float32
	dim      int // columns of features
	classes  int
}

// chunk is the number of nodes that are predicted at once.
const chunk = 256

func (p *predictor) predict(ctx context.Context, file string, c model.Config, nodes []uint32) ([]float32, error) {
	m := model.New(p.be, c, model.Shape{In: []int{p.dim}, Out: p.classes}, 1)
	defer m.Close()
	if err := p.load(m, file); err != nil {
		return nil, err
	}
	fanouts := make([]int, c.Layers)
	for i := range fanouts {
		fanouts[i] = c.Kind.All()
	}
	sampler := sample.NewSampler(sample.AtHand(p.graph), sample.Config{Fanouts: fanouts, Options: c.Kind.Sampling()}, 1)
	t := tape.New(p.be)
	defer t.Close()
	var b sample.Batch
	logits := make([]float32, 0, len(nodes)*p.classes)
	for ; len(nodes) > 0; nodes = nodes[min(chunk, len(nodes)):] {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := sampler.SampleOne(ctx, &b, sample.BatchSeed{}, nodes[:min(chunk, len(nodes))]); err != nil {
			return nil, err
		}
		x := p.floats(nil, len(b.Inputs()[0]), p.dim)
		for i, v := range b.Inputs()[0] {
			p.be.UploadF32(x.Slice(i, i+1), p.features[int(v)*p.dim:][:p.dim])
		}
		graphs := make([]model.Graph, len(b.Layers))
		for l := range graphs {
			nodes, k := &b.Layers[l].Nodes[0], &b.Layers[l].Blocks[0]
			graphs[l] = model.Graph{
				Nodes: []model.Frontier{{Dst: nodes.Dst, IDs: p.uints(nodes.Src)}},
				Edges: []model.Edges{{Weight: p.floats(k.Weight, len(k.Weight), 1),
					Adjacency: kernels.Adjacency{Start: p.uints(k.Start), End: p.uints(k.End), Nbr: p.uints(k.Nbr)}}},
			}
		}
		t.Reset(false)
		y := m.Forward(t, model.Rows{t.Leaf(x)}, graphs, model.Pass{})[0].Value
		logits = logits[:len(logits)+y.Len()]
		p.be.DownloadF32(logits[len(logits)-y.Len():], y)
		p.be.Free(x.Buf)
		for _, g := range graphs {
			e := g.Edges[0]
			for _, u := range []kernels.Tensor{g.Nodes[0].IDs, e.Weight, e.Start, e.End, e.Nbr} {
				p.be.Free(u.Buf)
			}
		}
	}
	return logits, nil
}

// load fills m from a checkpoint; what a checkpoint has besides, as the optimizer's state, is left
// alone.
func (p *predictor) load(m *model.Model, file string) error {
	tensors, _, err := checkpoint.Load(vfs.Default, file)
	if err != nil {
		return err
	}
	byName := map[string][]float32{}
	for _, t := range tensors {
		byName[t.Name] = t.Data
	}
	for _, param := range m.Params {
		data, ok := byName[param.Name]
		if !ok || len(data) != param.Value.Len() {
			return fmt.Errorf("%s: no parameter %s of shape %v", file, param.Name, param.Shape)
		}
		p.be.UploadF32(param.Value, data)
	}
	return nil
}

func (p *predictor) floats(v []float32, rows, cols int) kernels.Tensor {
	t := kernels.Tensor{Buf: p.be.Alloc(kernels.F32, rows*cols), Type: kernels.F32, Rows: rows, Cols: cols}
	if v != nil {
		p.be.UploadF32(t, v)
	}
	return t
}

func (p *predictor) uints(v []uint32) kernels.Tensor {
	t := kernels.Tensor{Buf: p.be.Alloc(kernels.U32, len(v)), Type: kernels.U32, Rows: len(v), Cols: 1}
	p.be.UploadU32(t, v)
	return t
}

// writeArray writes values as a NumPy array of version 1.0, row-major.
func writeArray[T int64 | float32](path, descr string, values []T, shape ...int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	dims := ""
	for _, d := range shape {
		dims += fmt.Sprintf("%d, ", d)
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims)
	for (10+len(header)+1)%64 != 0 { // the format aligns the data with spaces
		header += " "
	}
	w := bufio.NewWriter(f)
	fmt.Fprintf(w, "\x93NUMPY\x01\x00%s%s\n", binary.LittleEndian.AppendUint16(nil, uint16(len(header)+1)), header)
	if err := binary.Write(w, binary.LittleEndian, values); err != nil {
		return err
	}
	return w.Flush()
}
