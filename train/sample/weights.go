package sample

import (
	"math"
	"slices"
)

// loop drops the self loops that each of dst drew, and closes the gaps. It puts each destination at
// the end of its own list, into the place that fill left, with a weight of 1. Nbr holds ids.
func (b *Block) loop(dst []uint32) {
	n := uint32(0)
	weighs := len(b.Weight) > 0
	for i, v := range dst {
		start := n
		for e := b.Start[i]; e < b.End[i]; e++ {
			if u := b.Nbr[e]; u != v {
				b.Nbr[n] = u
				if weighs {
					b.Weight[n] = b.Weight[e]
				}
				n++
			}
		}
		b.Nbr[n] = v
		if weighs {
			b.Weight[n] = 1
		}
		n++
		b.Start[i], b.End[i] = start, n
	}
	b.Nbr, b.Weight = b.Nbr[:n], b.Weight[:min(len(b.Weight), int(n))]
}

// squeeze closes the gaps behind lists that have fewer neighbours than places.
func (b *Block) squeeze() {
	n := 0
	for i := range b.Start {
		start, end := b.Start[i], b.End[i]
		if start == uint32(n) { // no gap before it
			n = int(end)
			continue
		}
		b.Start[i] = uint32(n)
		if len(b.Weight) > 0 {
			copy(b.Weight[n:], b.Weight[start:end])
		}
		if b.brings {
			copy(b.places[n:], b.places[start:end])
		}
		n += copy(b.Nbr[n:], b.Nbr[start:end])
		b.End[i] = uint32(n)
	}
	b.Nbr, b.Weight = b.Nbr[:n], b.Weight[:min(len(b.Weight), n)]
	if b.brings {
		b.places = b.places[:n]
	}
}

// addUp scales the weights of each destination to add up to 1. Hájek's estimate of a mean is the
// weighted sum of the drawn neighbours over the sum of their weights. Without neighbours the sum is
// 0.
func (b *Block) addUp() {
	for i := range b.Start {
		w := b.values(i)
		sum := 0.0
		for _, x := range w {
			sum += float64(x)
		}
		for e, x := range w {
			w[e] = float32(float64(x) / sum)
		}
	}
}

// normalize sets the weights of b to GCN's (see Options.GCN), for fanout k, in a graph without the
// edges in without. Both ends of b are in f.
func (d *drawer) normalize(b *Block, f *Frontier, k int, without Without) {
	d.norm, d.factor = resize(d.norm, len(f.Src)), resize(d.factor, f.Dst)
	for p, u := range f.Src {
		degree, selves := d.degree(p, u)
		if p < len(b.lost) && b.lost[p] > 0 { // u is a seed, and so was drawn from
			degree -= int(b.lost[p])
			if slices.Contains(without.Of(p), u) {
				selves = 0
			}
		}
		d.norm[p] = 1 / math.Sqrt(float64(degree-selves+1))
		if p < f.Dst {
			d.factor[p] = float64(degree) / float64(max(drawn(degree, k), 1))
		}
	}
	weighs := d.weighs()
	b.Weight = resize(b.Weight, len(b.Nbr))
	for i := range b.Start {
		self, norm, factor := b.End[i]-1, d.norm[i], d.factor[i]
		for e := b.Start[i]; e < self; e++ {
			if weighs {
				factor = float64(b.Weight[e])
			}
			b.Weight[e] = float32(factor * norm * d.norm[b.Nbr[e]])
		}
		b.Weight[self] = float32(norm * norm)
	}
}
