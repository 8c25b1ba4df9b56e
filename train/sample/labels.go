package sample

// Labels are the labels that the sources of a layer show, for a network that has labels for input:
// lists of classes by destination. Its slices serve one layer after the other.
type Labels struct {
	// Own has the classes of the destinations of the labelled type, each with weight 1.
	Own Block
	// Of has by relation the classes of each destination's sources. Each has the weight of its
	// source in the mean over all sources, also those that show nothing. It is empty of relations
	// from other types.
	Of []Block

	first, known []uint32 // the classes of source i of the labelled type are known[first[i]:first[i+1]]
}

// Make fills l with the labels of layer, whose sources of type target show the classes that shown
// lists for them, below classes. Blocks have their reverse, by class, only if backward.
func (l *Labels) Make(layer *Layer, relations []Relation, target, classes int, shown func(v uint32) []uint32, backward bool) {
	nodes := &layer.Nodes[target]
	l.first, l.known = append(l.first[:0], 0), l.known[:0]
	for _, v := range nodes.Src {
		l.known = append(l.known, shown(v)...)
		l.first = append(l.first, uint32(len(l.known)))
	}
	l.Own.empty()
	for i := range nodes.Dst {
		l.Own.Start = append(l.Own.Start, uint32(len(l.Own.Nbr)))
		l.Own.End = append(l.Own.End, uint32(len(l.Own.Nbr))+l.first[i+1]-l.first[i])
		for _, class := range l.known[l.first[i]:l.first[i+1]] {
			l.Own.Nbr, l.Own.Weight = append(l.Own.Nbr, class), append(l.Own.Weight, 1)
		}
	}
	l.Of = resize(l.Of, len(relations))
	for r, ends := range relations {
		l.Of[r].empty()
		if ends.Src == target {
			l.neighbors(&l.Of[r], &layer.Blocks[r])
		}
	}
	if !backward {
		return
	}
	l.Own.reverse(classes, true)
	for r := range l.Of {
		if relations[r].Src == target {
			l.Of[r].reverse(classes, true)
		}
	}
}

// neighbors fills to with the classes of the sources of each destination of from.
func (l *Labels) neighbors(to, from *Block) {
	nbr, weights := to.Nbr, to.Weight
	for i, lo := range from.Start {
		hi := from.End[i]
		to.Start = append(to.Start, uint32(len(nbr)))
		weight := 1 / float32(hi-lo)
		for e := lo; e < hi; e++ {
			if len(from.Weight) > 0 {
				weight = from.Weight[e]
			}
			u := from.Nbr[e]
			for _, class := range l.known[l.first[u]:l.first[u+1]] {
				nbr, weights = append(nbr, class), append(weights, weight)
			}
		}
		to.End = append(to.End, uint32(len(nbr)))
	}
	to.Nbr, to.Weight = nbr, weights
}

// Bytes returns the bytes of memory that l takes.
func (l *Labels) Bytes() int64 {
	n := cap(l.first) + cap(l.known)
	for _, b := range append(l.Of[:len(l.Of):len(l.Of)], l.Own) {
		n += cap(b.Start) + cap(b.End) + cap(b.Nbr) + cap(b.Weight) + cap(b.RevStart) + cap(b.RevDst) + cap(b.RevEdge)
	}
	return 4 * int64(n)
}

// empty makes b a block without destinations.
func (b *Block) empty() {
	b.Start, b.End, b.Nbr, b.Weight = b.Start[:0], b.End[:0], b.Nbr[:0], b.Weight[:0]
	b.RevStart, b.RevDst, b.RevEdge = b.RevStart[:0], b.RevDst[:0], b.RevEdge[:0]
}
