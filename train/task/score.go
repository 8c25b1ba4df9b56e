package task

import (
	"github.com/gnnstore/gnnstore/kernels"
)

// Scores returns a score for each pair: row from[i] of x, the source, with row to[i] of y. If
// several relations are learnt, of[i] is the place of the pair's relation in data.Links.All. An
// evaluation gives the same scores. They are valid until the next call.
func (k *Links) Scores(x, y kernels.Tensor, from, to, of []uint32) []float32 {
	k.lists = k.lists[:0]
	l := k.list(k.relation.Src, k.relation.Dst, from)
	l.of, _ = k.decoded(of, len(from), false)
	for _, v := range to {
		l.add(v)
		l.end()
	}
	return k.scoresOf(x, y)
}

// scoresOf returns the scores of the only list in k.lists.
func (k *Links) scoresOf(x, y kernels.Tensor) []float32 {
	pairs, _, _ := k.upload(k.feed, k.lists, func(int) int { return y.Rows }, 0)
	k.tape.Reset(false)
	return k.feed.Download(k.model.Score(k.tape, k.tape.Leaf(x), k.tape.Leaf(y), pairs[0]).Value)
}
