package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

// shapeOf returns the shape of a network, as the data, the options and the draws determine it.
func shapeOf(d *data.Data, o *run.Options, draws *sample.Config) model.Shape {
	s := model.Shape{Out: o.Hidden, Target: d.Target}
	switch {
	case d.Links == nil:
		s.Out = max(d.Labels.Classes(), 1) // a number is one column
	case o.Layers == 0:
		s.Out = d.Types[d.Target].Dim()
	}
	if label := d.EdgeLabel; label != nil {
		s.EdgeOut, s.EdgeIn = max(len(label.Classes), 1), d.GivenDim()
	} else if d.Links != nil {
		if s.Decoded = len(d.Links.All); o.Reciprocal {
			s.Decoded *= 2
		}
	}
	for i := range d.Types {
		s.In, s.Types = append(s.In, d.Types[i].Dim()), append(s.Types, d.Types[i].Name)
		s.Learnt = append(s.Learnt, d.Types[i].Embed > 0)
	}
	schema := d.Schema()
	for i, r := range d.Relations {
		name := strings.Join([]string{r.Relation.Src, r.Relation.Name, r.Relation.Dst}, "___")
		s.Relations = append(s.Relations, model.Relation{Name: name, Relation: schema.Relations[i]})
		s.Edges = append(s.Edges, d.EdgeDim(i))
	}
	s.Reach = draws.Reach(schema, d.SeedTypes()...)
	return s
}

// drawsOf returns how batches are drawn from the data. It refuses a network for one type of nodes
// and one relation where there are more. used is set for a network that was trained on another
// dataset.
func drawsOf(d *data.Data, o *run.Options, used bool) (draws sample.Config, err error) {
	draws = o.Sampling()
	if n, m := len(d.Types), len(d.Relations); !o.Config.Typed() && (n != 1 || m != 1) {
		return draws, fmt.Errorf("%s: %d node types and %d relations, and {model} %s is for one of each; take {model} %s, or by {relation} "+
			"one relation within a type", d.Set.Path(), n, m, o.Kind, model.TypedKinds())
	}
	if t := &d.Types[d.Target]; !o.Links() && !o.Edges() && !o.Reads() && t.Features == nil && o.Inputs[t.Name] == "" && !used {
		return draws, fmt.Errorf("%s: no features, and {model} %s reads nothing but the rows of its nodes; ingest it again with {features} degree, random:D or fastrp:D",
			d.Set.Path(), o.Kind)
	}
	if err := checkRows(d, o, shapeOf(d, o, &draws).Out, used); err != nil {
		return draws, err
	}
	if l := d.Links; l != nil && o.Layers > 0 && o.Kind.All() == 0 && len(d.SeedTypes()) > 1 {
		r := d.Relations[l.Relation].Relation
		return draws, fmt.Errorf("%s: {model} %s is for nodes of one type, and links of %s join %s and %s; take rsage, rgcn, rgat or hgt",
			d.Set.Path(), o.Kind, r.Key(), r.Src, r.Dst)
	}
	if draws.OfRelation, err = d.OfRelation(o.RelationFanouts); err != nil {
		return draws, err
	}
	if !o.Reads() {
		draws.OfRelation = nil // an MLP draws nothing
	}
	if err := draws.Validate(); err != nil {
		return draws, err
	}
	if err := draws.Fits(d.Schema()); err != nil {
		return draws, d.Set.About(err)
	}
	if draws.Weighted {
		if err := d.CheckWeights(draws.Reach(d.Schema(), d.SeedTypes()...).Drawn()); err != nil {
			return draws, err
		}
	}
	if err := d.CheckEdgeInputs(o.EdgeInputs, draws.Reach(d.Schema(), d.SeedTypes()...).Drawn()); err != nil {
		return draws, err
	}
	draws.Options = o.Config.Blocks(shapeOf(d, o, &draws))
	return draws, nil
}

// checkRows refuses rows that the decoder cannot score.
func checkRows(d *data.Data, o *run.Options, width int, used bool) error {
	if d.Links == nil {
		return nil
	}
	for _, n := range d.SeedTypes() {
		switch t := &d.Types[n]; {
		case o.Layers > 0:
		case !t.HasRows():
			return fmt.Errorf("%s: {layers} 0 scores the rows of nodes, and those of type %s have none of their own; give {input} %s=embed:D, or a table",
				d.Set.Path(), t.Name, t.Name)
		case t.Dim() != width:
			return fmt.Errorf("%s: {layers} 0 scores rows as they are, and those of type %s have %d columns where those of %s have %d; give them as "+
				"many by {input}", d.Set.Path(), t.Name, t.Dim(), d.Types[d.Target].Name, width)
		}
	}
	learnt := slices.ContainsFunc(d.SeedTypes(), func(n int) bool { return d.Types[n].Embed > 0 })
	if o.Layers == 0 && o.Decoder == model.Dot && !learnt && !used {
		name := d.Types[d.Target].Name
		return fmt.Errorf("%s: {layers} 0 and {decoder} dot: the rows of a table are scored as they are, and nothing is "+
			"learnt; take {input} %s=embed:D, "+
			"or {decoder} distmult, complex, transe, rotate or mlp", d.Set.Path(), name)
	}
	if o.Decoder.Complex() && width%2 != 0 {
		of := "{hidden}"
		if o.Layers == 0 {
			of = "{input}"
		}
		return fmt.Errorf("{decoder} %s: rows of %d columns have no two halves; give an even number by %s",
			o.Decoder, width, of)
	}
	return nil
}

// checkLabels refuses labels for input that no seed would see, or whose terms would hardly learn: a
// step hides the labels of its seeds.
func checkLabels(d *data.Data, o *run.Options, s model.Shape, used bool) error {
	switch {
	case o.LabelInput == 0:
		return nil
	case used && len(d.Train) == 0:
		return fmt.Errorf("%s: {label_input} %d: the network reads labels of training nodes, and no node here is one with a label; give it a split "+
			"and labels of some", d.Set.Path(), o.LabelInput)
	case used:
		return nil
	}
	if !s.SeesLabels() {
		return fmt.Errorf("%s: {label_input} %d: nothing is drawn from nodes of type %s, so no seed would see a label; draw from a "+
			"relation that they are the source of, or leave {label_input} out", d.Set.Path(), o.LabelInput, d.Types[d.Target].Name)
	}
	if d.Labels.Label.Numbers {
		return fmt.Errorf("%s: {label_input} %d: label %s is a number of each node, and classes are input alone; leave {label_input} out", d.Set.Path(),
			o.LabelInput, d.Labels.Label.Name)
	}
	if all := len(d.Train); o.Batch > all/2 {
		return fmt.Errorf("%s: {label_input} %d: a step hides the labels of its seeds, and {batch} %d is more than half of the %d training "+
			"nodes that have one; %s", d.Set.Path(), o.LabelInput, o.Batch, all, fewer(all))
	}
	return nil
}

// fewer returns the advice on {batch} for this many training nodes.
func fewer(all int) string {
	if all < 2 {
		return "leave {label_input} out"
	}
	return fmt.Sprintf("give {batch} %d or less", all/2)
}
