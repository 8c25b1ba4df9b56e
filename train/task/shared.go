package task

import (
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/tape"
)

// With negatives Shared the scores of a chunk of positives are one product of matrices, of its
// queries and its negatives: see tape.Shared. Each element is computed as Score would, but for the
// order of its sum. PairMLP scores pair by pair, in lists.

// products reports whether negatives are shared and their scores are products.
func (k *Links) products() bool { return k.negatives.Way == Shared && k.model.Decoder != model.PairMLP }

// lossShared does for shared negatives what Loss does.
func (k *Links) lossShared(t *tape.Tape, f *step.Feed, out model.Rows, x *examples) (a step.Tally) {
	r, n, each := k.relation, len(x.links), k.negatives.Of
	k.lists = k.lists[:0]
	k.listPositives(x)
	softmax := k.links.Loss == CE
	others := [][]uint32{x.src, x.dst}
	for i := range x.sides {
		s := &x.sides[i]
		others = append(others, s.nodes)
		if softmax {
			others[len(others)-1] = s.placed()
		}
	}
	if softmax {
		each++
		k.first = k.first[:0]
		for i := range uint32(min(k.links.Chunk, n)) {
			k.first = append(k.first, i*uint32(each)) // see tape.SoftmaxShared; values that overflow are not used
		}
		others = append(others, k.first)
	}
	pairs, zeros, ints := k.upload(f, k.lists, func(t int) int { return out[t].Value.Rows }, n, others...)
	src, dst := ints[0], ints[1]
	own := k.model.Score(t, out[r.Src], out[r.Dst], pairs[0])
	a.Weight = float64(n)
	k.trained.Reset()
	k.positives = append(k.positives[:0], f.Download(own.Value)...)
	if !softmax {
		ones := slices.Repeat([]float32{1}, n)
		f.AddUp(&a.Loss, t.SigmoidCrossEntropy(own, f.UploadFloats(ones, 1), 1/float32(n)))
	}
	scale, sum, measured := 1/(a.Weight*float64(len(x.sides))), 0.0, 0
	for i, s := range x.sides {
		p, from, to := model.Pairs{Nodes: dst, Relations: pairs[0].Relations, Reversed: true, Count: pairs[0].Count}, r.Dst, r.Src
		if s.dst {
			p.Nodes, p.Reversed = src, false
			from, to = r.Src, r.Dst
		}
		q := k.model.Query(t, out[from], p)
		shared := tape.Shared{X: out[to], IDs: ints[2+i], Chunk: k.links.Chunk, Each: each, Seen: func(lo int, scores kernels.Tensor) {
			measured += k.measureShared(f, lo, scores, softmax)
		}}
		var losses kernels.Tensor
		if softmax {
			losses = t.SoftmaxShared(own, q, shared, zeros, ints[len(ints)-1], float32(scale))
		} else {
			losses = t.SigmoidShared(q, shared, float32(scale/float64(each)))
		}
		f.AddUp(&sum, losses)
	}
	if softmax {
		a.Loss = sum / float64(len(x.sides))
	} else {
		a.Loss += sum / float64(each*len(x.sides))
	}
	k.measured(measured, &a)
	if k.links.N3 > 0 {
		k.penalty(t, f, out, model.Pairs{Nodes: src, Relations: pairs[0].Relations}, dst, &a)
	}
	return a
}

// placed returns nodes with a placeholder before the nodes of each chunk.
func (s *side) placed() []uint32 {
	var all []uint32
	for i := range len(s.start) - 1 {
		own := s.nodes[s.start[i]:s.start[i+1]]
		all = append(append(all, own[0]), own...)
	}
	return all
}

// measureShared adds the scores of the first positives of a batch, from positive lo on, to its
// metric. It returns the number of negatives that it added.
func (k *Links) measureShared(f *step.Feed, lo int, scores kernels.Tensor, placed bool) (negatives int) {
	each := scores.Cols
	n := min(scores.Rows, max(mostMeasured/each, 1)-lo)
	if n <= 0 {
		return 0
	}
	all := f.Download(scores.Slice(0, n))
	for i := range n {
		own := all[i*each : (i+1)*each]
		if placed {
			own = own[1:]
		}
		k.trained.Add(k.positives[lo+i:lo+i+1], own)
		negatives += len(own)
	}
	return negatives
}
