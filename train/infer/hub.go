package infer

import (
	"context"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// A hub is a node with more neighbours than a chunk has edges. It is a chunk of its own. Its
// neighbours are added up in parts of the list, in the order of the list: the sum so far stands
// before the next part. Networks of attention first compute the scores of all neighbours, part by
// part, then their softmax, and then the sum with these weights. So only the rows of one part are
// in memory, and the bits equal the bits of a list that is taken at once, whatever the length of a
// part.

// hub reports whether nodes are a hub.
func (e *Evaluator) hub(l, t int, nodes []uint32) bool {
	if len(nodes) != 1 || !e.step.Model.Kind.Sums() && !e.step.Model.Attends() {
		return false
	}
	return e.many(e.degree(e.into(l, t), l, t, nodes[0]))
}

// many reports whether a node with so many neighbours, and so many bytes of rows to read, is a
// hub.
func (e *Evaluator) many(neighbors int, bytes int64) bool {
	return neighbors > e.most.hub || bytes > e.most.learnt
}

// inParts computes layer l for v of type t, a hub. hidden is as compute has it.
func (e *Evaluator) inParts(ctx context.Context, l, t int, v uint32, hidden hiddenRows) (y kernels.Tensor, err error) {
	if err := e.draw(ctx, &e.block, l, t, []uint32{v}); err != nil {
		return y, err
	}
	layer, inputs := &e.block.Layers[0], e.block.Inputs()[:len(e.data.Types)]
	given := make([]kernels.Tensor, len(layer.Blocks))
	defer func() { e.freeAll(given) }()
	var of *attention
	if !e.step.Model.Kind.Sums() {
		if of, err = e.attend(ctx, l, t, layer, inputs, hidden); err != nil {
			return y, err
		}
		defer of.free()
	}
	for r := range layer.Blocks {
		if k := &layer.Blocks[r]; len(k.Nbr) > 0 {
			if err := e.sum(ctx, &given[r], l, r, inputs[e.data.Relations[r].Src], k, of, hidden); err != nil {
				return y, err
			}
		}
	}
	means, err := e.meansOfRows(ctx, layer)
	if err != nil {
		return y, err
	}
	defer e.freeAll(means)
	e.step.Tape.Reset(false)
	x := make(model.Rows, len(inputs))
	if err := e.bring(ctx, l, t, inputs[t][:1], x, hidden); err != nil { // destinations come first
		return y, err
	}
	return e.layerGiven(ctx, l, t, x, layer, given, means)
}

// meansOfRows returns the means of the table rows of a hub's edges, by relation, for layer l. It
// adds them up a part of a list after the other. The mean is empty for relations without such rows,
// and for networks of attention, whose scores have read them.
func (e *Evaluator) meansOfRows(ctx context.Context, layer *sample.Layer) (means []kernels.Tensor, err error) {
	means = make([]kernels.Tensor, len(layer.Blocks))
	for r := range layer.Blocks {
		k := &layer.Blocks[r]
		if len(k.Rows) == 0 || !e.step.Model.Kind.Sums() {
			continue
		}
		err := e.addUp(&means[r], k, nil, e.rowPart(r), func(do func(lo int, rows kernels.Tensor)) error { return e.eachRows(ctx, r, k, do) })
		if err != nil {
			e.freeAll(means)
			return nil, err
		}
	}
	return means, nil
}

func (e *Evaluator) freeAll(all []kernels.Tensor) {
	kernels.FreeTensors(e.step.Tape.Backend(), all...)
}

// rowPart returns how many rows of edges of relation r are in memory together.
func (e *Evaluator) rowPart(r int) int {
	return max(1, min(e.most.part, int(e.most.learnt/max(1, e.edgeRow(r)))))
}

// eachRows calls do with the rows of some edges of the one list of k after the other, from the
// lo-th on, in float32. The tape is reset for each.
func (e *Evaluator) eachRows(ctx context.Context, r int, k *sample.Block, do func(lo int, rows kernels.Tensor)) error {
	n := len(e.data.Types) + k.Table
	list, ids, most := k.Rows[k.Start[0]:k.End[0]], e.block.Inputs()[n], e.rowPart(r)
	var part []uint32
	for lo := 0; lo < len(list); lo += most {
		if err := ctx.Err(); err != nil {
			return err
		}
		part = part[:0]
		for _, at := range list[lo:min(lo+most, len(list))] {
			part = append(part, ids[at])
		}
		e.step.Tape.Reset(false)
		x, err := e.edgeRows(ctx, k.Table, part)
		if err != nil {
			return err
		}
		do(lo, e.step.Tape.Convert(e.step.Tape.Leaf(x)).Value)
		e.look()
	}
	return nil
}

// eachPart calls do with some neighbours of the one list of k after the other, from the lo-th on,
// and their rows as layer l reads them, by relation r. ids are the sources. The tape is reset for
// each.
func (e *Evaluator) eachPart(ctx context.Context, l, r int, ids []uint32, k *sample.Block, hidden hiddenRows, do func(lo int, rows kernels.Tensor)) error {
	list, from := k.Nbr[k.Start[0]:k.End[0]], e.data.Relations[r].Src
	var part []uint32
	for lo := 0; lo < len(list); lo += e.most.part {
		if err := ctx.Err(); err != nil {
			return err
		}
		part = part[:0]
		for _, at := range list[lo:min(lo+e.most.part, len(list))] {
			part = append(part, ids[at])
		}
		e.step.Tape.Reset(false)
		x := make(model.Rows, len(e.data.Types))
		if err := e.bring(ctx, l, from, part, x, hidden); err != nil {
			return err
		}
		do(lo, e.step.Model.Sources(e.step.Tape, l, from, len(part), x[from]))
		e.look()
	}
	return nil
}

// attention is the weights of a hub's neighbours.
type attention struct {
	e     *Evaluator
	alpha []kernels.Tensor // by relation: a row a neighbour, a column a head
	lists kernels.Tensor   // of up to as many neighbours: 0, n, and 0 to n-1
	own   kernels.Tensor
}

func (a *attention) free() { a.e.freeAll(append(a.alpha, a.lists, a.own)) }

// list is a list of one destination over n rows in order.
func (a *attention) list(n int) kernels.Adjacency {
	be := a.e.step.Tape.Backend()
	if a.lists.Rows < n+2 {
		kernels.FreeTensors(be, a.lists)
		a.lists = kernels.NewTensor(be, kernels.U32, n+2, 1)
		host := make([]uint32, n+2)
		for i := range n {
			host[i+2] = uint32(i)
		}
		be.UploadU32(a.lists, host)
	}
	be.UploadU32(a.lists.Slice(0, 2), []uint32{0, uint32(n)})
	return kernels.Adjacency{Start: a.lists.Slice(0, 1), End: a.lists.Slice(1, 2), Nbr: a.lists.Slice(2, n+2)}
}

// copy is x in memory that lasts.
func (e *Evaluator) copy(x kernels.Tensor) kernels.Tensor {
	be := e.step.Tape.Backend()
	y := kernels.NewTensor(be, kernels.F32, x.Rows, x.Cols)
	be.Convert(y, x)
	return y
}

// attend is the weights of all neighbours of the one node of type t that layer was drawn for.
func (e *Evaluator) attend(ctx context.Context, l, t int, layer *sample.Layer, inputs [][]uint32, hidden hiddenRows) (a *attention, err error) {
	be, tape := e.step.Tape.Backend(), e.step.Tape
	a = &attention{e: e, alpha: make([]kernels.Tensor, len(layer.Blocks))}
	scores := make([]kernels.Tensor, len(layer.Blocks))
	defer func() {
		e.freeAll(scores)
		if err != nil {
			a.free()
		}
	}()
	tape.Reset(false)
	x := make(model.Rows, len(inputs))
	if err := e.bring(ctx, l, t, inputs[t][:1], x, hidden); err != nil {
		return a, err
	}
	a.own = e.copy(e.step.Model.Sources(tape, l, t, 1, x[t]))
	var relations []int
	var given []kernels.Tensor
	most := 0
	for r := range layer.Blocks {
		k := &layer.Blocks[r]
		n := len(k.Nbr)
		if n == 0 {
			continue
		}
		err := e.eachPart(ctx, l, r, inputs[e.data.Relations[r].Src], k, hidden, func(lo int, rows kernels.Tensor) {
			s := e.step.Model.Scores(tape, l, r, a.own, rows, a.list(rows.Rows))
			if scores[r].Buf == nil {
				scores[r] = kernels.NewTensor(be, kernels.F32, n, s.Cols)
			}
			be.Convert(scores[r].Slice(lo, lo+rows.Rows), s)
		})
		if err != nil {
			return a, err
		}
		relations, given, most = append(relations, r), append(given, scores[r]), max(most, n)
	}
	values := make([]kernels.Tensor, len(layer.Blocks))
	defer func() { e.freeAll(values) }()
	for _, r := range relations {
		k := &layer.Blocks[r]
		if len(k.Rows) == 0 {
			continue
		}
		err := e.eachRows(ctx, r, k, func(lo int, rows kernels.Tensor) {
			s := e.step.Model.ValueScores(tape, l, r, rows)
			if values[r].Buf == nil {
				values[r] = kernels.NewTensor(be, kernels.F32, len(k.Nbr), s.Cols)
			}
			be.Convert(values[r].Slice(lo, lo+s.Rows), s)
		})
		if err != nil {
			return a, err
		}
	}
	tape.Reset(false)
	drawn := e.graphWithoutRows(&e.block)
	var edges []model.Edges
	for _, r := range relations {
		k := drawn.Edges[r] // with the weights and values of its edges
		k.GivenValues = values[r]
		k.Adjacency = a.whole(len(layer.Blocks[r].Nbr), most, k.Adjacency)
		edges = append(edges, k)
	}
	for i, alpha := range e.step.Model.Alpha(tape, l, a.own, relations, given, edges) {
		a.alpha[relations[i]] = e.copy(alpha)
	}
	return a, nil
}

// whole is the list of drawn over the scores of its n neighbours in order; relations have up to
// most of them.
func (a *attention) whole(n, most int, drawn kernels.Adjacency) kernels.Adjacency {
	a.list(most) // so that what was given for another relation stays
	return kernels.Adjacency{Start: drawn.Start, End: drawn.End, Nbr: a.lists.Slice(2, n+2)}
}

// sum makes total what the network reads of the one list of k, of relation r: the sum of the rows
// of sources, by their weights or by attention's, or where there are none their mean. ids are the
// sources.
func (e *Evaluator) sum(
	ctx context.Context, total *kernels.Tensor, l, r int, ids []uint32, k *sample.Block, of *attention, hidden hiddenRows,
) error {
	var alpha *kernels.Tensor
	if of != nil {
		alpha = &of.alpha[r]
	}
	return e.addUp(total, k, alpha, e.most.part, func(do func(lo int, rows kernels.Tensor)) error {
		return e.eachPart(ctx, l, r, ids, k, hidden, func(lo int, rows kernels.Tensor) {
			if of != nil {
				rows = e.step.Model.Weighed(e.step.Tape, l, r, rows)
			}
			do(lo, rows)
		})
	})
}

// addUp makes total the sum of rows that belong to the one list of k, by alpha, a row of a number a
// head for each, or by the weights of the list, or where there are none their mean. each calls its
// argument with some of them after the other, from the lo-th on, up to part of them.
func (e *Evaluator) addUp(
	total *kernels.Tensor, k *sample.Block, alpha *kernels.Tensor, part int, each func(do func(lo int, rows kernels.Tensor)) error,
) error {
	be := e.step.Tape.Backend()
	n := len(k.Nbr[k.Start[0]:k.End[0]])
	size, heads := min(part, n), 1
	if alpha != nil {
		heads = alpha.Cols
	}
	ints := kernels.NewTensor(be, kernels.U32, size+3, 1)
	defer be.Free(ints.Buf)
	numbers := kernels.NewTensor(be, kernels.F32, size+1, heads)
	defer be.Free(numbers.Buf)
	var terms kernels.Tensor // what is added up so far, and the rows of a part
	defer func() { kernels.FreeTensors(be, terms) }()
	be.Fill(numbers, 1)
	var places []uint32
	var weights []float32
	err := each(func(lo int, rows kernels.Tensor) {
		part := rows.Rows
		if alpha != nil {
			be.Convert(numbers.Slice(1, part+1), alpha.Slice(lo, lo+part))
		}
		places, weights = append(places[:0], 0, uint32(part+1), 0), weights[:0]
		for i := range part {
			places = append(places, uint32(i+1))
			if alpha == nil && len(k.Weight) > 0 {
				weights = append(weights, k.Weight[int(k.Start[0])+lo+i])
			}
		}
		if total.Buf == nil {
			*total = kernels.NewTensor(be, kernels.F32, 1, rows.Cols)
			terms = kernels.NewTensor(be, kernels.F32, size+1, rows.Cols)
		}
		be.Convert(terms.Slice(0, 1), *total)
		be.Convert(terms.Slice(1, part+1), rows)
		be.UploadU32(ints.Slice(0, part+3), places)
		if len(weights) > 0 {
			be.UploadF32(numbers.Slice(1, part+1), weights)
		}
		be.WeightedSum(*total, terms.Slice(0, part+1), numbers.Slice(0, part+1), kernels.Adjacency{
			Start: ints.Slice(0, 1), End: ints.Slice(1, 2), Nbr: ints.Slice(2, part+3),
		})
	})
	if err == nil && alpha == nil && len(k.Weight) == 0 && n > 1 {
		be.Scale(*total, 1/float32(n))
	}
	return err
}
