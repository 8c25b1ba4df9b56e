package sample

const defaultBytes = 128 << 20

// bytes returns the bytes that a batch keeps at a hop for these destinations of r, as Bytes counts
// them.
func (s *Sampler) bytes(r *relation, dst []uint32) int64 {
	if own := s.how().own; own != nil {
		return own.bytes(s, r, dst)
	}
	return 0
}

// Scratch returns the bytes that a Sampler keeps to draw batches like b: for each batch that is
// drawn together, and once.
func (s *Sampler) Scratch(b *Batch) (each, once int64) {
	for l := range b.Layers {
		for _, set := range s.sets[len(b.Layers)-1-l] {
			batch, lists, joined := int64(0), int64(0), int64(0)
			for _, r := range set {
				nodes := b.Layers[l].Nodes[r.Dst].destinations()
				of, neighbors, join := int64(len(nodes))*pairBytes, int64(0), int64(0)
				if own := s.how().own; own != nil {
					of, neighbors, join = own.scratch(s, r, nodes, len(set))
				}
				batch += of + s.heldBytes(r, b, nodes)
				lists, joined = lists+neighbors, joined+join
			}
			each = max(each, batch+4*lists)
			once = max(once, int64(len(s.drawers))*(lists*starBytes+joined))
		}
	}
	for i := range s.relations { // at the end, of all hops
		r, pairs := &s.relations[i], int64(0)
		for l := range b.Layers {
			if r.brings() {
				pairs += int64(len(b.Layers[l].Nodes[r.Dst].destinations())) * pairBytes
			}
		}
		each = max(each, pairs)
	}
	return each, once
}

const (
	listBytes = 7 * 8 // of a list
	// starBytes is the memory of LABOR-* for each neighbour, if all are different: its place, two
	// slots of a table, an id and the numbers of star.
	starBytes = 4 + 2*8 + 4 + 3*4 + 8
)
