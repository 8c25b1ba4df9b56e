package task

import (
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/tape"
)

// With negatives Shared the queries of a chunk are scored with the negatives of the chunk, by
// products of matrices or by distances: see tape.Shared. Each score equals what Score computes, up
// to the order of its sum. PairMLP scores pair by pair, in lists.

// products reports whether negatives are shared and are scored with queries.
func (k *Links) products() bool { return k.negatives.Way == Shared && k.model.Decoder != model.PairMLP }

// denseLists has a list for each of rows nodes. Each list names all others, from 0 to others-1.
type denseLists struct {
	rows, others int
	block        sample.Block
}

// grow makes sure that there are rows lists of others nodes each, and returns Start, End and Nbr of
// the first rows lists. Lists of an earlier call stay if they are as long.
func (l *denseLists) grow(rows, others int) [][]uint32 {
	b := &l.block
	if l.others != others {
		b.Start, b.End, b.Nbr = b.Start[:0], b.End[:0], b.Nbr[:0]
		l.rows, l.others = 0, others
	}
	for ; l.rows < rows; l.rows++ {
		b.Start, b.End = append(b.Start, uint32(l.rows*others)), append(b.End, uint32((l.rows+1)*others))
		for u := range others {
			b.Nbr = append(b.Nbr, uint32(u))
		}
	}
	return [][]uint32{b.Start[:rows], b.End[:rows], b.Nbr[:rows*others]}
}

// dense returns the denseLists of this size. Steps need the same lists, so it keeps the newest.
func (k *Links) dense(rows, others int) *denseLists {
	for _, l := range k.joined {
		if l.rows == rows && l.others == others {
			return l
		}
	}
	l := new(denseLists)
	l.grow(rows, others)
	l.block.Reverse(others)
	if len(k.joined) == mostDense {
		k.joined = k.joined[1:]
	}
	k.joined = append(k.joined, l)
	return l
}

// mostDense is the number of denseLists that are kept. A step needs one for whole chunks, and
// smaller ones for the remaining rows.
const mostDense = 4

// arrays are the lists as arrays of integers.
func (l *denseLists) arrays() [][]uint32 {
	b := &l.block
	return [][]uint32{b.Start, b.End, b.Nbr, b.RevStart, b.RevDst, b.RevEdge}
}

// adjacency is the lists in the tensors that arrays came to.
func adjacency(x []kernels.Tensor) kernels.Adjacency {
	return kernels.Adjacency{Start: x[0], End: x[1], Nbr: x[2], RevStart: x[3], RevDst: x[4], RevEdge: x[5]}
}

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
	distance := k.model.Distance()
	shared := tape.Shared{Chunk: k.links.Chunk, Each: each, Distance: distance, Temperature: float32(k.links.Adversarial)}
	var sizes []int
	dense := len(others) // place of the lists among others
	if distance != nil || shared.Temperature > 0 {
		sizes = shared.Sizes(n)
		for _, rows := range sizes {
			others = append(others, k.dense(rows, each).arrays()...)
		}
	}
	relations := len(others)
	others = append(others, k.bothWays(x)...)
	pairs, zeros, ints := k.upload(f, k.lists, func(t int) int { return out[t].Value.Rows }, n, others...)
	src, dst := ints[0], ints[1]
	shared.Lists = func(rows int) kernels.Adjacency {
		return adjacency(ints[dense+6*slices.Index(sizes, rows):])
	}
	var own []*tape.Var
	var positives, ofOwn [][]float32
	var ones kernels.Tensor
	if !softmax {
		ones = f.UploadFloats(slices.Repeat([]float32{1}, n), 1)
	}
	for i, p := range pairs {
		own = append(own, k.model.Score(t, out[k.lists[i].from], out[k.lists[i].to], p))
		positives = append(positives, f.Fetch(own[i].Value))
		if !softmax {
			ofOwn = append(ofOwn, f.FetchLoss(t.SigmoidCrossEntropy(own[i], ones, 1/float32(all*len(pairs)))))
		}
	}
	scale, sides := 1/(float64(all)*float64(len(x.sides))), len(x.sides)
	var penalties []float64
	var ofSides [][]float32
	var measured []sharedScores
	counted := float64(each) // negatives whose mean is a positive's loss; 1 where their weights add up to 1
	if shared.Temperature > 0 {
		counted = 1
	}
	for i, s := range x.sides {
		way := 0 // among pairs
		p, from, to := model.Pairs{Nodes: src, Count: pairs[0].Count}, r.Src, r.Dst
		if !s.dst {
			way = len(pairs) - 1
			p.Nodes, p.Reversed = dst, !k.links.Reciprocal
			from, to = r.Dst, r.Src
		}
		p.Relations = pairs[way].Relations
		q := k.model.Query(t, out[from], p)
		shared.X, shared.IDs, shared.Seen = out[to], ints[2+i], func(lo int, scores kernels.Tensor) {
			if read := min(scores.Rows, max(mostMeasured/each, 1)-lo); read > 0 {
				measured = append(measured, sharedScores{way, lo, f.Fetch(scores.Slice(0, read))})
			}
		}
		var losses kernels.Tensor
		if softmax {
			losses = t.SoftmaxShared(own[way], q, shared, zeros, ints[dense-1], float32(scale))
		} else {
			losses = t.SigmoidShared(q, shared, float32(scale/counted))
		}
		ofSides = append(ofSides, f.FetchLoss(losses))
	}
	if k.links.N3 > 0 {
		penalties = k.penalty(t, f, out, src, dst, ints[relations:], float64(all))
	}
	return func() step.Tally {
		loss := sumOf(ofOwn)/float64(len(pairs)) + sumOf(ofSides)/(counted*float64(sides))
		if softmax {
			loss = sumOf(ofSides) / float64(sides)
		}
		a := step.Tally{Loss: penalised(loss, penalties), Weight: float64(n)}
		k.trained.Reset()
		negatives := 0
		for _, s := range measured {
			negatives += k.measureShared(positives[s.way][s.lo:], s.scores, each, softmax)
		}
		k.measured(negatives, &a)
		return a
	}
}

// sharedScores are the scores of some positives with the negatives that they share, a row each. The
// first is positive lo, of list way of positives.
type sharedScores struct {
	way, lo int
	scores  []float32
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
		negatives += k.addTrained(positives[i:i+1], own)
	}
	return negatives
}
