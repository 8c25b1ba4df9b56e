// Package data is what a run needs of a dataset: a graph, a table, a label, the parts of a split and the names that users know.
//
// A [Data] is opened once ([Open]), and training, plans and evaluation share it. Its methods may be called by several goroutines
// at once; those that read mapped memory do so inside store.Guard, their own or the caller's.
package data

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

// Data is the one graph, table, label and split of a dataset that a run uses. It borrows the dataset, which stays open for as
// long as the Data is used.
type Data struct {
	Set      *store.Dataset
	Graph    *store.Graph
	Features *store.Features
	Labels   *store.Labels
	Weights  *store.EdgeColumn // of the edges, nil unless Options asked for them
	Split    string            // its name
	// Train, Valid and Test are the parts of the split, less the nodes without a label, of which there are Unlabelled.
	Train, Valid, Test []uint32
	Unlabelled         int
}

// Options says which part of a dataset a run wants.
type Options struct {
	Split    string // empty where the dataset has just one
	Weighted bool   // the weights of the edges, too
}

// maxClasses bounds the logits of a batch: a thousand seeds take 4 GB of them.
const maxClasses = 1 << 20

// Open finds what a run on one type of nodes needs, or says what is missing and what to do. Where a label, the split or a section
// that it reads is damaged, it says that.
func Open(ds *store.Dataset, o Options) (*Data, error) {
	m := ds.Manifest()
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: %s", ds.Path(), fmt.Sprintf(format, args...))
	}
	if len(m.NodeTypes) != 1 || len(m.Relations) != 1 {
		return nil, fail("%d node types and %d relations; networks train on one of each", len(m.NodeTypes), len(m.Relations))
	}
	features := slices.IndexFunc(m.Tables, func(t store.Table) bool { return t.Relation == "" }) // those of edges are not trained on
	if features < 0 {
		return nil, fail("no features; ingest it again with {features} degree, random:D or fastrp:D")
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
	names, chosen := choose(m.Splits, o.Split)
	if chosen < 0 {
		if o.Split == "" && len(names) == 0 {
			return nil, fail("no split; ingest it again with {split} random:0.6/0.2/0.2 or per-class:20/30")
		}
		return nil, fail("no split %q; {split} takes one of: %s", o.Split, strings.Join(names, ", "))
	}
	d := &Data{Set: ds, Graph: ds.Graph(0), Features: ds.Features(features), Labels: ds.Labels(0), Split: names[chosen]}
	err := store.Guard(func() (err error) {
		sets := ds.Split(chosen)
		for _, p := range []struct {
			dst *[]uint32
			src []uint32
		}{{&d.Train, sets.Train}, {&d.Valid, sets.Valid}, {&d.Test, sets.Test}} {
			if *p.dst, err = ds.Labelled(p.src, d.Graph.Nodes(), d.Labels); err != nil {
				return err
			}
			d.Unlabelled += len(p.src) - len(*p.dst)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(d.Train) == 0 {
		return nil, fail("split %s has no training node with a label", m.Splits[chosen].Name)
	}
	if o.Weighted {
		err = d.useWeights()
	}
	return d, err
}

// weightColumn is the column that ingest keeps the weights of edges in.
const weightColumn = "weight"

// useWeights finds the weights of edges.
func (d *Data) useWeights() error {
	r := d.Graph.Relation
	c := d.Graph.Column(weightColumn)
	switch {
	case c == nil:
		return fmt.Errorf("%s: {weighted}: the edges of relation %s have no column %s; ingest them with their weights "+
			"({weight} names the column of a CSV), or leave {weighted} out", d.Set.Path(), r.Key(), weightColumn)
	case c.Column.Elem != store.F32:
		return fmt.Errorf("%s: {weighted}: column %s of relation %s is %v, and weights are f32; ingest them as numbers with a "+
			"fraction, or leave {weighted} out", d.Set.Path(), weightColumn, r.Key(), c.Column.Elem)
	}
	d.Weights = c
	return nil
}

// UnusedColumns are the columns of the edges that a run makes nothing of.
func (d *Data) UnusedColumns() (names []string) {
	for _, c := range d.Graph.Relation.Columns {
		if c.Name != store.EdgeID && (c.Name != weightColumn || d.Weights == nil) {
			names = append(names, c.Name)
		}
	}
	return names
}

// Lists are those of the graph, with the weights of its edges where they count.
func (d *Data) Lists() sample.Lists {
	if d.Weights == nil {
		return d.Graph
	}
	return weightedGraph{d.Graph, d.Weights}
}

// weightedGraph is sample.Lists with weights.
type weightedGraph struct {
	*store.Graph
	weights *store.EdgeColumn
}

func (g weightedGraph) Weights(v uint32) []float32 { return store.EdgeValues[float32](g.weights, v) }

// corrupt is what reading found that opening does not look for.
func (d *Data) corrupt(format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s; run gnnstore verify", d.Set.Path(), store.ErrCorrupt, fmt.Sprintf(format, args...))
}

// Place gives the error of a sampler the place of what it found in the dataset.
func (d *Data) Place(err error) error {
	var neighbor *sample.NeighborError
	var weight *sample.WeightError
	switch {
	case errors.As(err, &neighbor):
		return d.Graph.CorruptNeighbor(neighbor.Node, neighbor.Neighbor)
	case errors.As(err, &weight):
		return d.Weights.CheckWeights(weight.Node, weight.Place, []float32{weight.Weight})
	}
	return err
}

// Classes appends the class of each node, all of which have one.
func (d *Data) Classes(dst []uint32, nodes []uint32) ([]uint32, error) {
	for _, v := range nodes {
		c := d.Labels.Class(v)
		if c < 0 || int(c) >= d.Labels.Classes() {
			return nil, d.corrupt("node %d has class %d of %d", v, c, d.Labels.Classes())
		}
		dst = append(dst, uint32(c))
	}
	return dst, nil
}

// Name is the id by which users know a node, or the stored one where that cannot be read.
func (d *Data) Name(v uint32) (name string) {
	err := store.Guard(func() error {
		name = strconv.FormatInt(d.Set.IDs(0).Original(v), 10)
		return nil
	})
	if err != nil {
		name = fmt.Sprintf("%d as stored", v)
	}
	return name
}

// SumBytes is the memory outside the Go heap that the page checksums of topology, weights, features and labels take.
func (d *Data) SumBytes() (n int64) {
	offsets, neighbors := d.Graph.Sections()
	files := []store.SectionFile{offsets, neighbors}
	if d.Weights != nil {
		files = append(files, d.Weights.Section())
	}
	for _, s := range d.Features.Shards() {
		files = append(files, s.SectionFile)
	}
	files = append(files, d.Labels.Section())
	for i := range files {
		n += files[i].SumBytes()
	}
	return n
}

// DType is the element type of the feature rows on a backend.
func (d *Data) DType() kernels.DType {
	if d.Features.Elem() == store.F16 {
		return kernels.F16
	}
	return kernels.F32
}
