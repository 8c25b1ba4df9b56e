package infer

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// A hub is a node with more neighbours than a chunk has edges. It is a chunk of its own, and where the network has nothing but sums of
// neighbours, they are added up a part of the list after the other, in the order of the list: what is added up so far stands before
// the next part. So the rows of a part are all that is in memory of them, and the bits are those of a list that is taken at once.

// hub tells whether nodes are a hub whose neighbours are added up in parts.
func (e *Evaluator) hub(l, t int, nodes []uint32) bool {
	if len(nodes) != 1 || !e.step.Model.Kind.Sums() {
		return false
	}
	n, _ := e.edges(l, t, nodes[0])
	return n > e.most.hub
}

// checkHub refuses a hub of a network that takes lists at once, where the rows of the list are more than there may be.
func (e *Evaluator) checkHub(l, t int, nodes []uint32) error {
	n, _ := e.edges(l, t, nodes[0])
	if len(nodes) > 1 || n <= e.most.hub {
		return nil
	}
	need := attentionRows * 4 * int64(n) * int64(e.step.Model.Hidden)
	if most := max(e.Bytes, e.most.whole); need > most {
		return fmt.Errorf("%s: node %s of type %s has %d neighbours, whose rows take %s at once under {model} %s, and %s are allowed; raise "+
			"{eval_bytes}, or take a network of means: %s, %s, %s, %s", e.data.Set.Path(), e.data.Name(t, nodes[0]), e.data.Types[t].Name, n,
			kernels.FormatBytes(need), e.step.Model.Kind, kernels.FormatBytes(most), model.SAGE, model.GCN, model.RSAGE, model.RGCN)
	}
	return nil
}

// attentionRows is how many rows networks of attention make of each source: itself, keys, values.
const attentionRows = 3

// inParts computes layer l for v of type t, a hub. hidden is as compute has it.
func (e *Evaluator) inParts(ctx context.Context, l, t int, v uint32, hidden hiddenRows) (y kernels.Tensor, err error) {
	if err := e.draw(ctx, &e.block, l, t, []uint32{v}); err != nil {
		return y, err
	}
	be, layer, inputs := e.step.Tape.Backend(), &e.block.Layers[0], e.block.Inputs()
	given := make([]kernels.Tensor, len(layer.Blocks))
	defer func() {
		for _, sum := range given {
			if sum.Buf != nil {
				be.Free(sum.Buf)
			}
		}
	}()
	for r := range layer.Blocks {
		if k := &layer.Blocks[r]; len(k.Nbr) > 0 {
			from := e.data.Relations[r].Src
			if err := e.sum(ctx, &given[r], l, from, inputs[from], k, hidden); err != nil {
				return y, err
			}
		}
	}
	e.step.Tape.Reset(false)
	x := make(model.Rows, len(inputs))
	if err := e.bring(ctx, l, t, inputs[t][:1], x, hidden); err != nil { // destinations come first
		return y, err
	}
	return e.layerGiven(l, t, x, layer, given), nil
}

// sum makes total what the network reads of the one list of k: the sum of the rows of sources, by their weights, or where there are
// none their mean. ids are the sources, of type from.
func (e *Evaluator) sum(ctx context.Context, total *kernels.Tensor, l, from int, ids []uint32, k *sample.Block, hidden hiddenRows) error {
	be, tape := e.step.Tape.Backend(), e.step.Tape
	list := k.Nbr[k.Start[0]:k.End[0]]
	size := min(e.most.part, len(list))
	ints := kernels.Tensor{Buf: be.Alloc(kernels.U32, size+3), Type: kernels.U32, Rows: size + 3, Cols: 1}
	defer be.Free(ints.Buf)
	numbers := kernels.Tensor{Buf: be.Alloc(kernels.F32, size+1), Type: kernels.F32, Rows: size + 1, Cols: 1}
	defer be.Free(numbers.Buf)
	var terms kernels.Tensor // what is added up so far, and the rows of a part
	defer func() {
		if terms.Buf != nil {
			be.Free(terms.Buf)
		}
	}()
	var part, places []uint32
	var weights []float32
	for lo := 0; lo < len(list); lo += size {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(size, len(list)-lo)
		part, places, weights = part[:0], append(places[:0], 0, uint32(n+1), 0), append(weights[:0], 1)
		for i, at := range list[lo : lo+n] {
			part, places, weights = append(part, ids[at]), append(places, uint32(i+1)), append(weights, 1)
			if len(k.Weight) > 0 {
				weights[i+1] = k.Weight[int(k.Start[0])+lo+i]
			}
		}
		tape.Reset(false)
		x := make(model.Rows, len(e.data.Types))
		if err := e.bring(ctx, l, from, part, x, hidden); err != nil {
			return err
		}
		rows := e.step.Model.Sources(tape, l, from, n, x[from])
		if total.Buf == nil {
			*total = kernels.Tensor{Buf: be.Alloc(kernels.F32, rows.Cols), Type: kernels.F32, Rows: 1, Cols: rows.Cols}
			terms = kernels.Tensor{Buf: be.Alloc(kernels.F32, (size+1)*rows.Cols), Type: kernels.F32, Rows: size + 1, Cols: rows.Cols}
		}
		be.Convert(terms.Slice(0, 1), *total)
		be.Convert(terms.Slice(1, n+1), rows)
		be.UploadU32(ints.Slice(0, n+3), places)
		be.UploadF32(numbers.Slice(0, n+1), weights)
		be.WeightedSum(*total, terms.Slice(0, n+1), numbers.Slice(0, n+1), kernels.Adjacency{
			Start: ints.Slice(0, 1), End: ints.Slice(1, 2), Nbr: ints.Slice(2, n+3),
		})
		e.look()
	}
	if len(k.Weight) == 0 && len(list) > 1 {
		be.Scale(*total, 1/float32(len(list)))
	}
	return nil
}
