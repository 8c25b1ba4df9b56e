package graph

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
)

// The predictions of a network for a node, or for an edge.
const (
	// Classes: one column with the number of the largest logit, as accuracy counts it; where a node
	// has several classes, a column a class, 1 where its logit is above 0.
	Classes = "classes"
	// Probabilities: a column a class, the softmax of the logits; where a node has several classes,
	// the sigmoid of each.
	Probabilities = "probabilities"
	Logits        = "logits"
	// Values: a column with the number, of networks that learn numbers.
	Values = "values"
	// Embeddings: the activations of a layer, or the input rows of nodes.
	Embeddings = "embeddings"
	// Scores: of pairs of nodes, where links are learnt: see [Network.Scores].
	Scores = "scores"
)

// Predictable lists all kinds of predictions.
var Predictable = []string{Classes, Probabilities, Logits, Values, Embeddings, Scores}

// DefaultLayer asks for embeddings without naming a layer: see [Network.Layer].
const DefaultLayer = -1

// Layer returns the layer whose rows make what; 1 is the first. For embeddings it is the asked
// layer, and 0 is the input of nodes. DefaultLayer takes the last hidden layer, whose rows the
// last layer reads. It takes the last layer if the network has only one, or if links or edges
// are learnt, because their decoder reads its rows.
func (n *Network) Layer(what string, asked int) (int, error) {
	last := n.c.Layers
	switch {
	case !slices.Contains(Predictable, what):
		return 0, fmt.Errorf("{what} %s: there are classes, probabilities, logits, values, embeddings and scores", what)
	case n.Links() && what != Embeddings && what != Scores:
		return 0, fmt.Errorf("{what} %s: the run learns links, whose nodes have no classes; take embeddings or scores", what)
	case !n.Links() && what == Scores:
		return 0, fmt.Errorf("{what} %s: the run learns %s, and scores are of links; take logits", what, n.learns())
	case n.Numbers() && (what == Classes || what == Probabilities):
		return 0, fmt.Errorf("{what} %s: the run learns %s, which have no classes; take values", what, n.learns())
	case !n.Numbers() && what == Values:
		return 0, fmt.Errorf("{what} %s: the run learns %s; take classes, probabilities or logits", what, n.learns())
	case what != Embeddings && asked != DefaultLayer:
		return 0, fmt.Errorf("{layer} %d: of embeddings alone; {what} is %s, which the last layer makes", asked, what)
	case asked < DefaultLayer || asked > last:
		return 0, fmt.Errorf("{layer} %d: the network has %d layers, of which 1 is the first; 0 is what nodes have for input", asked, last)
	case what != Embeddings || (n.Links() || n.Edges()) && asked == DefaultLayer:
		return last, nil
	case asked == DefaultLayer:
		return max(last-1, 1), nil
	}
	return asked, nil
}

// TypeOf returns the number of the node type to predict: the type of that name, or the target type
// if name is empty. It returns an error if layer has no rows of such nodes.
func (n *Network) TypeOf(name, what string, layer int) (int, error) {
	d := n.c.data
	if name == "" && d.Links != nil && len(d.SeedTypes()) > 1 {
		r := d.Relations[d.Links.Relation].Relation
		return 0, fmt.Errorf("edges of %s join nodes of the types %s and %s; say by {type} which of them to predict", r.Key(), r.Src, r.Dst)
	}
	t := d.Target
	if name != "" {
		if t = slices.IndexFunc(d.Types, func(t data.Type) bool { return t.Name == name }); t < 0 {
			return 0, fmt.Errorf("{type} %s: no such type of nodes", name)
		}
	}
	switch name = d.Types[t].Name; {
	case what != Embeddings && t != d.Target:
		return 0, fmt.Errorf("{type} %s: the network predicts %s of type %s; of others it has embeddings", name, what, d.Types[d.Target].Name)
	case layer > 0 && !n.c.eval.Makes(layer-1, t):
		return 0, fmt.Errorf("{type} %s: layer %d makes no rows of such nodes", name, layer)
	case layer == 0 && d.Types[t].Dim() == 0:
		return 0, fmt.Errorf("{type} %s: all of its nodes have one row for input, which is among the weights of the run", name)
	case layer == 0 && !n.c.eval.Reads(t):
		return 0, fmt.Errorf("{type} %s: the network reads no rows of such nodes", name)
	}
	return t, nil
}

// Layers returns the number of layers of the network.
func (n *Network) Layers() int { return n.c.Layers }

// errWalks explains why networks of random walks do not predict.
var errWalks = errors.New("{sampler} rw weighs the nodes that walks visit, and knows no weights for all neighbours: such a network can be " +
	"measured on sampled blocks, and does not predict")

// Columns returns how many numbers Predict gives for a node of type t.
func (n *Network) Columns(what string, layer, t int) int {
	switch {
	case what == Classes && !n.Several():
		return 1
	case layer == 0:
		return n.c.data.Types[t].Dim()
	}
	return n.c.model.Width(layer - 1)
}

// Predict calls do with predictions for nodes of type kind, which TypeOf gave, over all their
// neighbours: Columns numbers a node, of the layer that Layer gave. Nodes come once each, in
// ascending order, a chunk at a time, and both slices are lent for the length of the call. If
// labels are input, training nodes come after all others and see the labels of no training node, as
// in an evaluation of them; the others see all labels. The numbers of a node are the same bits
// whatever the other nodes are.
func (n *Network) Predict(ctx context.Context, what string, layer, kind int, nodes []uint32, do func(nodes []uint32, rows []float32) error) (err error) {
	defer kernels.RecoverMemory(&err)
	t := n.c
	if t.eval.Walks() && layer > 0 {
		return errWalks
	}
	convert := n.converter(what)
	each := func(nodes []uint32) error {
		if len(nodes) == 0 {
			return nil
		}
		use := func(chunk []uint32, y kernels.Tensor) error {
			t.tiers.FollowHeap()
			return do(chunk, convert(t.step.Feed.Download(y), y.Cols))
		}
		if layer == 0 {
			return t.eval.Inputs(ctx, kind, nodes, use)
		}
		return t.eval.EachOf(ctx, layer-1, kind, nodes, use)
	}
	if t.labels == nil || layer == 0 || kind != t.data.Target {
		err = each(nodes)
	} else {
		var others, training []uint32
		for _, v := range nodes {
			if _, trained := slices.BinarySearch(t.data.Train, v); trained {
				training = append(training, v)
			} else {
				others = append(others, v)
			}
		}
		if err = each(others); err == nil && len(training) > 0 {
			t.labels.Hide(t.data.Train)
			err = each(training)
		}
	}
	if err != nil {
		return err
	}
	return t.data.Set.Unchanged()
}

// Originals returns the ids by which users know nodes of type kind. Where each worker has a part of
// the dataset, all of them call it with the same nodes.
func (n *Network) Originals(ctx context.Context, kind int, nodes []uint32) (ids []int64, err error) {
	err = store.Guard(func() error {
		ids, err = n.c.eval.Originals(ctx, kind, nodes)
		return err
	})
	return ids, err
}

// Parts reports whether each worker has a part of the dataset.
func (n *Network) Parts() bool { return n.c.data.OwnPart() != nil }

// softmax replaces a row by its softmax.
func softmax(row []float32) {
	largest, sum := float64(slices.Max(row)), 0.0
	for _, x := range row {
		sum += math.Exp(float64(x) - largest)
	}
	for i, x := range row {
		row[i] = float32(math.Exp(float64(x)-largest) / sum)
	}
}
