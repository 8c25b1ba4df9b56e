package step

import (
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Shown has the labels that the network may see, where labels are input.
type Shown interface {
	// Classes returns the classes that node v of the target type shows.
	Classes(v uint32) []uint32
	// Hide hides the labels of nodes, until Show.
	Hide(nodes []uint32)
	Show()
}

// graphs brings a batch's layers to the backend, with the labels that its inputs show. The labels
// of its seeds are hidden everywhere, even where seeds are neighbours of each other.
func (s *Stepper) graphs(in Input, backward bool) []model.Graph {
	graphs := s.Feed.Blocks(in.Layers, in.Rows[min(len(in.Rows), len(s.Model.In)):]...)
	if s.Shown != nil {
		hidden := in.Hidden
		if hidden == nil {
			hidden = in.Seeds[s.Model.Target]
		}
		s.Shown.Hide(hidden)
		defer s.Shown.Show()
		s.label(&graphs[0], &in.Layers[0], backward)
	}
	return graphs
}

// Label adds to g, the first layer, the labels that the sources of layer show, all but the hidden
// ones. It adds nothing where the network has no labels for input.
func (s *Stepper) Label(g *model.Graph, layer *sample.Layer) {
	if s.Shown != nil {
		s.label(g, layer, false)
	}
}

func (s *Stepper) label(g *model.Graph, layer *sample.Layer, backward bool) {
	relations := make([]sample.Relation, len(s.Model.Relations))
	for i, r := range s.Model.Relations {
		relations[i] = r.Relation
	}
	s.lists.Make(layer, relations, s.Model.Target, s.Model.Out, s.Shown.Classes, backward)
	g.Labels = s.Feed.upload(&s.lists)
}

// LabelBytes returns the bytes of the lists of labels outside the backend's memory.
func (s *Stepper) LabelBytes() int64 { return s.lists.Bytes() }

// upload brings labels to the backend. They are valid until the next call.
func (f *Feed) upload(l *sample.Labels) *model.Labels {
	f.ids, f.weights = f.ids[:0], f.weights[:0]
	add := func(b *sample.Block) {
		f.ids = append(f.ids, b.Start, b.End, b.Nbr, b.RevStart, b.RevDst, b.RevEdge)
		f.weights = append(f.weights, b.Weight)
	}
	add(&l.Own)
	for r := range l.Of {
		add(&l.Of[r])
	}
	ids, weights := total(f.ids), total(f.weights)
	ints, floats := f.room(labelInts, kernels.U32, ids), f.room(labelFloats, kernels.F32, weights)
	f.staging.JoinU32(kernels.Tensor{Buf: ints, Type: kernels.U32, Rows: ids, Cols: 1}, f.ids...)
	f.staging.JoinF32(kernels.Tensor{Buf: floats, Type: kernels.F32, Rows: weights, Cols: 1}, f.weights...)

	ids, weights = 0, 0
	next := func(v []uint32) kernels.Tensor {
		t := kernels.Tensor{Buf: ints, Type: kernels.U32, Off: ids, Rows: len(v), Cols: 1}
		ids += len(v)
		return t
	}
	edges := func(b *sample.Block) model.Edges {
		w := kernels.Tensor{Buf: floats, Type: kernels.F32, Off: weights, Rows: len(b.Weight), Cols: 1}
		weights += len(b.Weight)
		return model.Edges{Weight: w, Adjacency: kernels.Adjacency{
			Start: next(b.Start), End: next(b.End), Nbr: next(b.Nbr),
			RevStart: next(b.RevStart), RevDst: next(b.RevDst), RevEdge: next(b.RevEdge),
		}}
	}
	f.labels.Own, f.labels.Of = edges(&l.Own), f.labels.Of[:0]
	for r := range l.Of {
		f.labels.Of = append(f.labels.Of, edges(&l.Of[r]))
	}
	return &f.labels
}
