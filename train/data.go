package train

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// data is the one graph, table, label and split of a dataset that a run uses.
type data struct {
	ds       *store.Dataset
	graph    *store.Graph
	features *store.Features
	labels   *store.Labels
	weights  *store.EdgeColumn // of the edges, where they count
	split    string
	// The parts of the split, less the nodes without a label.
	train, valid, test []uint32
	unlabelled         int // nodes of the split that were left out
}

// maxClasses bounds the logits of a batch: a thousand seeds take 4 GB of them.
const maxClasses = 1 << 20

// selectData finds what a run on one type of nodes needs, or says what is missing and what to do.
func selectData(ds *store.Dataset, split string) (*data, error) {
	m := ds.Manifest()
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: %s", ds.Path(), fmt.Sprintf(format, args...))
	}
	if len(m.NodeTypes) != 1 || len(m.Relations) != 1 {
		return nil, fail("%d node types and %d relations; networks train on one of each", len(m.NodeTypes), len(m.Relations))
	}
	features := slices.IndexFunc(m.Tables, func(t store.Table) bool { return t.Relation == "" }) // those of edges are not trained on
	if features < 0 {
		return nil, fail("no features; ingest it again with --features degree, random:D or fastrp:D")
	}
	if len(m.Labels) == 0 {
		return nil, fail("no labels, so nothing to learn")
	}
	if n := m.Labels[0].Classes; n < 1 {
		return nil, fail("label %s has no classes: every label is missing", m.Labels[0].Name)
	} else if n > maxClasses {
		return nil, fail("label %s has %d classes; at most %d are trained: labels that look like ids are no classes",
			m.Labels[0].Name, n, maxClasses)
	}
	var names []string
	chosen := -1
	for i, s := range m.Splits {
		names = append(names, s.Name)
		if s.Name == split || split == "" && len(m.Splits) == 1 {
			chosen = i
		}
	}
	if chosen < 0 {
		if split == "" && len(names) == 0 {
			return nil, fail("no split; ingest it again with --split random:0.6/0.2/0.2 or per-class:20/30")
		}
		return nil, fail("no split %q; --split takes one of: %s", split, strings.Join(names, ", "))
	}
	d := &data{ds: ds, graph: ds.Graph(0), features: ds.Features(features), labels: ds.Labels(0), split: names[chosen]}
	err := store.Guard(func() (err error) {
		sets := ds.Split(chosen)
		for _, p := range []struct {
			dst *[]uint32
			src []uint32
		}{{&d.train, sets.Train}, {&d.valid, sets.Valid}, {&d.test, sets.Test}} {
			if *p.dst, err = ds.Labelled(p.src, d.graph.Nodes(), d.labels); err != nil {
				return err
			}
			d.unlabelled += len(p.src) - len(*p.dst)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(d.train) == 0 {
		return nil, fail("split %s has no training node with a label", m.Splits[chosen].Name)
	}
	return d, nil
}

// weightColumn is the column that ingest keeps the weights of edges in.
const weightColumn = "weight"

// useWeights finds the weights of edges.
func (d *data) useWeights() error {
	r := d.graph.Relation
	c := d.graph.Column(weightColumn)
	switch {
	case c == nil:
		return fmt.Errorf("%s: --weighted: the edges of relation %s have no column %s; ingest them with their weights "+
			"(--weight names the column of a CSV), or leave --weighted out", d.ds.Path(), r.Key(), weightColumn)
	case c.Column.Elem != store.F32:
		return fmt.Errorf("%s: --weighted: column %s of relation %s is %v, and weights are f32; ingest them as numbers with a "+
			"fraction, or leave --weighted out", d.ds.Path(), weightColumn, r.Key(), c.Column.Elem)
	}
	d.weights = c
	return nil
}

// topology is the graph, with the weights of its edges where they count.
func (d *data) topology() sample.Topology {
	if d.weights == nil {
		return d.graph
	}
	return weightedGraph{d.graph, d.weights}
}

// weightedGraph is a sample.WeightedTopology.
type weightedGraph struct {
	*store.Graph
	weights *store.EdgeColumn
}

func (g weightedGraph) Weights(v uint32) []float32 { return store.EdgeValues[float32](g.weights, v) }

// corrupt is what reading found that opening does not look for.
func (d *data) corrupt(format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s; run gnnstore verify", d.ds.Path(), store.ErrCorrupt, fmt.Sprintf(format, args...))
}

// place gives the error of a sampler the place of what it found in the dataset.
func (d *data) place(err error) error {
	var neighbor *sample.NeighborError
	var weight *sample.WeightError
	switch {
	case errors.As(err, &neighbor):
		return d.graph.CorruptNeighbor(neighbor.Node, neighbor.Neighbor)
	case errors.As(err, &weight):
		return d.weights.CheckWeights(weight.Node, weight.Place, []float32{weight.Weight})
	}
	return err
}

// classes appends the class of each node, all of which have one.
func (d *data) classes(dst []uint32, nodes []uint32) ([]uint32, error) {
	for _, v := range nodes {
		c := d.labels.Class(v)
		if c < 0 || int(c) >= d.labels.Classes() {
			return nil, d.corrupt("node %d has class %d of %d", v, c, d.labels.Classes())
		}
		dst = append(dst, uint32(c))
	}
	return dst, nil
}

// name is the id by which users know a node, or the stored one where that cannot be read.
func (d *data) name(v uint32) (name string) {
	err := store.Guard(func() error {
		name = strconv.FormatInt(d.ds.IDs(0).Original(v), 10)
		return nil
	})
	if err != nil {
		name = fmt.Sprintf("%d as stored", v)
	}
	return name
}

// sumBytes is the memory outside the Go heap that the page checksums of topology, weights, features and labels take.
func (d *data) sumBytes() (n int64) {
	offsets, neighbors := d.graph.Sections()
	files := []store.SectionFile{offsets, neighbors}
	if d.weights != nil {
		files = append(files, d.weights.Section())
	}
	for _, s := range d.features.Shards() {
		files = append(files, s.SectionFile)
	}
	files = append(files, d.labels.Section())
	for i := range files {
		n += files[i].SumBytes()
	}
	return n
}

// dtype is the element type of the feature rows on a backend.
func (d *data) dtype() kernels.DType {
	if d.features.Elem() == store.F16 {
		return kernels.F16
	}
	return kernels.F32
}
