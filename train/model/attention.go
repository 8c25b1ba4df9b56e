package model

import (
	"math"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/tape"
)

// attends is a layer that weighs the rows of its sources by a softmax of scores. For a destination
// with more sources than memory holds, it computes the scores first, a part at a time, then the
// softmax of all of them, and then their sum, a part at a time.
type attends interface {
	// score returns the scores that the softmax reads of sources x of relation r, a row each. own
	// is the row of the destination, list its list of sources.
	score(t *tape.Tape, r int, own, x *tape.Var, list kernels.Adjacency) *tape.Var
	// alpha returns the softmax of the scores of relations. edges has, for each relation, the list
	// of one destination over its scores in order.
	alpha(t *tape.Tape, own *tape.Var, relations []int, scores []*tape.Var, edges []Edges) []*tape.Var
	// weighed returns the rows of sources x of relation r that alpha weighs.
	weighed(t *tape.Tape, r int, x *tape.Var) *tape.Var
}

// Attends reports whether layers weigh the rows of their sources by a softmax. [Model.Scores],
// [Model.Alpha] and [Model.Weighed] are for such networks.
func (m *Model) Attends() bool {
	_, ok := m.layers[0].(attends)
	return ok
}

// Scores returns the scores of sources x of relation r for layer l's softmax, a row each, at the
// destination whose row is own. x and own come from Sources. list has all of x for its one
// destination.
func (m *Model) Scores(t *tape.Tape, l, r int, own, x kernels.Tensor, list kernels.Adjacency) kernels.Tensor {
	return m.layers[l].(attends).score(t, r, t.Leaf(own), t.Leaf(x), list).Value
}

// Alpha returns the weights of all sources of a destination, by relation: the softmax of their
// scores. Each of edges is the list of one destination over its scores, in their order.
func (m *Model) Alpha(t *tape.Tape, l int, own kernels.Tensor, relations []int, scores []kernels.Tensor, edges []Edges) (alpha []kernels.Tensor) {
	leaves := make([]*tape.Var, len(scores))
	for i, s := range scores {
		leaves[i] = t.Leaf(s)
	}
	for _, a := range m.layers[l].(attends).alpha(t, t.Leaf(own), relations, leaves, edges) {
		alpha = append(alpha, a.Value)
	}
	return alpha
}

// Weighed returns the rows of sources x of relation r that layer l's weights multiply. Their
// weighted sum goes to Edges.Given.
func (m *Model) Weighed(t *tape.Tape, l, r int, x kernels.Tensor) kernels.Tensor {
	return m.layers[l].(attends).weighed(t, r, t.Leaf(x)).Value
}

// ValueScores returns the terms that values of edges of relation r, a row each, add to the edges'
// scores, for Edges.GivenValues. Only rgat has it.
func (m *Model) ValueScores(t *tape.Tape, l, r int, values kernels.Tensor) kernels.Tensor {
	layer := m.layers[l].(*rgatLayer)
	return layer.scoreValues(t, layer.attention[r], t.Leaf(values)).Value
}

func (l *gatLayer) score(t *tape.Tape, _ int, _, x *tape.Var, _ kernels.Adjacency) *tape.Var {
	return t.HeadDot(l.weighed(t, 0, x), l.attSrc)
}

func (l *gatLayer) alpha(t *tape.Tape, own *tape.Var, _ []int, scores []*tape.Var, edges []Edges) []*tape.Var {
	dst := t.HeadDot(l.weighed(t, 0, own), l.attDst)
	return []*tape.Var{t.EdgeSoftmax(scores[0], dst, edges[0].Weight, edges[0].Adjacency, attentionSlope)}
}

func (l *gatLayer) weighed(t *tape.Tape, _ int, x *tape.Var) *tape.Var {
	return t.Affine(nil, tape.Term{X: x, W: l.weight})
}

func (l *rgatLayer) score(t *tape.Tape, r int, _, x *tape.Var, _ kernels.Adjacency) *tape.Var {
	return t.HeadDot(l.weighed(t, r, x), l.attention[r].attSrc)
}

func (l *rgatLayer) alpha(t *tape.Tape, own *tape.Var, relations []int, scores []*tape.Var, edges []Edges) (alpha []*tape.Var) {
	for i, r := range relations {
		a, e := l.attention[r], edges[i]
		dst := t.HeadDot(t.Affine(nil, tape.Term{X: own, W: a.dst}), a.attDst)
		alpha = append(alpha, l.softmax(t, a, scores[i], dst, e))
	}
	return alpha
}

func (l *rgatLayer) weighed(t *tape.Tape, r int, x *tape.Var) *tape.Var {
	return t.Affine(nil, tape.Term{X: x, W: l.attention[r].src})
}

func (l *hgtLayer) score(t *tape.Tape, r int, own, x *tape.Var, list kernels.Adjacency) *tape.Var {
	q := l.part(t, 1, l.relations[r].Dst, own)
	return l.scoreOf(t, r, q, l.part(t, 0, l.relations[r].Src, x), l.onDiagonal(t, l.keys), list)
}

func (l *hgtLayer) alpha(t *tape.Tape, _ *tape.Var, _ []int, scores []*tape.Var, edges []Edges) []*tape.Var {
	var weights []kernels.Tensor
	var lists []kernels.Adjacency
	for _, e := range edges {
		weights, lists = append(weights, e.Weight), append(lists, e.Adjacency)
	}
	return t.EdgeSoftmaxOf(scores, weights, lists)
}

func (l *hgtLayer) weighed(t *tape.Tape, r int, x *tape.Var) *tape.Var {
	return l.part(t, 2, l.relations[r].Src, x)
}

// scoreOf returns the scores of edges of relation r, for queries q and keys k.
func (l *hgtLayer) scoreOf(t *tape.Tape, r int, q, k, keys *tape.Var, list kernels.Adjacency) *tape.Var {
	asked := t.Affine(nil, tape.Term{X: q, W: l.of(t, keys, r)})
	score := t.EdgeDot(asked, k, l.heads, list, float32(1/math.Sqrt(float64(l.out/l.heads))))
	return t.HeadDot(score, t.Reshape(l.factors[r], l.heads, 1))
}
