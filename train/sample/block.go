package sample

// Block is one layer of a batch: Dst destinations, and the sources whose rows they are computed from.
//
// The destinations are the first Dst of Src, in the same order, so a destination's own row needs no look-up. Edges are
// in CSR2 form (FreshGNN §4.2): destination i has the sources Nbr[Start[i]:End[i]], as positions in Src; pruning it is
// End[i] = Start[i]. Positions are given in the order in which nodes first appear.
type Block struct {
	Dst        int
	Src        []uint32 // node ids, as stored
	Start, End []uint32
	Nbr        []uint32

	// Weight is beside Nbr: what each neighbour counts in a sum over them. With Options.GCN these are GCN's weights. Else, where
	// the sampler chose some neighbours more readily than others, they are Hájek's: the inverse of how readily, for RW how often
	// it was visited, made to add up to 1; with Options.SelfLoops as they are, and 1 for the loop, which attention divides by
	// their sum. Where all count the same Weight is empty, and a mean is right.
	Weight []float32

	// RevStart and RevDst are the edges by source, for the backward pass: source u is used by the destinations
	// RevDst[RevStart[u]:RevStart[u+1]], ascending. RevEdge, where there are weights or Options.RevEdges asked for it, is
	// beside RevDst and says which positions of Nbr these are. The input layer has no reverse, since no gradient flows to
	// features, unless Options.RevInput asked for one.
	RevStart, RevDst, RevEdge []uint32

	places []uint32 // of neighbours whose lists are still to come
}

// reverse fills RevStart, RevDst and, with edges or where they have weights, RevEdge by a counting sort.
func (b *Block) reverse(edges bool) {
	edges = edges || len(b.Weight) > 0
	b.RevStart = resize(b.RevStart, len(b.Src)+1)
	b.RevDst = resize(b.RevDst, len(b.Nbr))
	if edges {
		b.RevEdge = resize(b.RevEdge, len(b.Nbr))
	}
	clear(b.RevStart)
	for _, u := range b.Nbr {
		b.RevStart[u+1]++
	}
	for u := range b.Src {
		b.RevStart[u+1] += b.RevStart[u]
	}
	for i := range b.Dst {
		for e := b.Start[i]; e < b.End[i]; e++ {
			u := b.Nbr[e]
			at := b.RevStart[u]
			b.RevDst[at] = uint32(i)
			if edges {
				b.RevEdge[at] = e
			}
			b.RevStart[u]++
		}
	}
	copy(b.RevStart[1:], b.RevStart[:len(b.Src)]) // each start has moved to its end
	b.RevStart[0] = 0
}

// resize returns s with length n, its contents undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

// Batch is the blocks of one step: Blocks[0] reads features, the last one produces the seeds.
type Batch struct {
	Seeds  []uint32
	Blocks []Block
}

// Inputs are the nodes whose feature rows the batch reads, each once.
func (b *Batch) Inputs() []uint32 { return b.Blocks[0].Src }

// Bytes is what the batch's blocks take.
func (b *Batch) Bytes() int64 {
	n := 0
	for i := range b.Blocks {
		k := &b.Blocks[i]
		n += len(k.Src) + len(k.Start) + len(k.End) + len(k.Nbr) + len(k.RevStart) + len(k.RevDst) + len(k.RevEdge) + len(k.Weight) + len(k.places)
	}
	return 4 * int64(n)
}
