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
func (k *Links) lossShared(t *tape.Tape, f *step.Feed, out model.Rows, number int, x *examples) (tally func() step.Tally) {
	r, n, each := k.relation, len(x.links), k.negatives.Of
	all, _ := k.sizes(number, len(x.sides))
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
	positives := f.Fetch(own.Value)
	var ofOwn []float32
	if !softmax {
		ones := slices.Repeat([]float32{1}, n)
		ofOwn = f.FetchLoss(t.SigmoidCrossEntropy(own, f.UploadFloats(ones, 1), 1/float32(all)))
	}
	scale, sides := 1/(float64(all)*float64(len(x.sides))), len(x.sides)
	var penalties []float64
	var ofSides [][]float32
	var measured []sharedScores
	for i, s := range x.sides {
		p, from, to := model.Pairs{Nodes: dst, Relations: pairs[0].Relations, Reversed: true, Count: pairs[0].Count}, r.Dst, r.Src
		if s.dst {
			p.Nodes, p.Reversed = src, false
			from, to = r.Src, r.Dst
		}
		q := k.model.Query(t, out[from], p)
		shared := tape.Shared{X: out[to], IDs: ints[2+i], Chunk: k.links.Chunk, Each: each, Seen: func(lo int, scores kernels.Tensor) {
			if read := min(scores.Rows, max(mostMeasured/each, 1)-lo); read > 0 {
				measured = append(measured, sharedScores{lo, f.Fetch(scores.Slice(0, read))})
			}
		}}
		var losses kernels.Tensor
		if softmax {
			losses = t.SoftmaxShared(own, q, shared, zeros, ints[len(ints)-1], float32(scale))
		} else {
			losses = t.SigmoidShared(q, shared, float32(scale/float64(each)))
		}
		ofSides = append(ofSides, f.FetchLoss(losses))
	}
	if k.links.N3 > 0 {
		penalties = k.penalty(t, f, out, model.Pairs{Nodes: src, Relations: pairs[0].Relations}, dst, float64(all))
	}
	return func() step.Tally {
		loss := step.Sum(ofOwn) + sumOf(ofSides)/float64(each*sides)
		if softmax {
			loss = sumOf(ofSides) / float64(sides)
		}
		a := step.Tally{Loss: penalised(loss, penalties), Weight: float64(n)}
		k.trained.Reset()
		negatives := 0
		for _, s := range measured {
			negatives += k.measureShared(positives[s.lo:], s.scores, each, softmax)
		}
		k.measured(negatives, &a)
		return a
	}
}

// sharedScores are the scores of some positives with the negatives that they share, a row each. The
// first is positive lo.
type sharedScores struct {
	lo     int
	scores []float32
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

// measureShared adds rows of scores, each for one of positives, to the metric. The first of a row
// holds a place if placed is set. It returns the number of negatives that it added.
func (k *Links) measureShared(positives, scores []float32, each int, placed bool) (negatives int) {
	for i := range len(scores) / each {
		own := scores[i*each : (i+1)*each]
		if placed {
			own = own[1:]
		}
		k.trained.Add(positives[i:i+1], own)
		negatives += len(own)
	}
	return negatives
}
