package task

import (
	"github.com/gnnstore/gnnstore/kernels"
)

// Scores are those of pairs of rows that the network made of nodes: of row from[i] of x, the
// source's, and row to[i] of y. Where several relations are learnt, of says which of them each pair
// is of, by its place in data.Links.All. They are what an evaluation gives the same pairs, and
// valid until the next call.
func (k *Links) Scores(x, y kernels.Tensor, from, to, of []uint32) []float32 {
	k.lists = k.lists[:0]
	l := k.list(k.relation.Src, k.relation.Dst, from)
	l.of = of
	for _, v := range to {
		l.add(v)
		l.end()
	}
	return k.scoresOf(x, y)
}

// scoresOf is the scores of the one list that there is.
func (k *Links) scoresOf(x, y kernels.Tensor) []float32 {
	pairs, _, _ := k.upload(k.feed, k.lists, func(int) int { return y.Rows }, 0)
	k.tape.Reset(false)
	return k.feed.Download(k.model.Score(k.tape, k.tape.Leaf(x), k.tape.Leaf(y), pairs[0]).Value)
}
