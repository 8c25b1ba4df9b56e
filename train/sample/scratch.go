package sample

const defaultBytes = 128 << 20

// bytes is what a batch keeps of a hop for these destinations of r, as Bytes counts it.
func (s *Sampler) bytes(r *relation, dst []uint32) int64 {
	n := int64(0)
	switch s.Kind {
	case RW:
		n = s.walkBytes(len(dst))
	case LaborStar:
		for _, v := range dst {
			if v >= r.resident {
				n += 4 * int64(r.topo.Degree(v))
			}
		}
	}
	return n
}

// Scratch is what a Sampler keeps to draw batches like b: so many bytes for each batch that is
// drawn together, and so many once.
func (s *Sampler) Scratch(b *Batch) (each, once int64) {
	for l := range b.Layers {
		for _, set := range s.sets[len(b.Layers)-1-l] {
			batch, lists, joined := int64(0), int64(0), int64(0)
			for _, r := range set {
				nodes := b.Layers[l].Nodes[r.Dst].destinations()
				dst := int64(len(nodes))
				switch s.Kind {
				case RW:
					batch += s.walkBytes(len(nodes)) + dst*int64(s.Walk.Walks)*pairBytes
				case LaborStar:
					for _, v := range nodes {
						lists += int64(r.topo.Degree(v))
					}
					batch += dst * (pairBytes + listBytes)
					if len(set) > 1 {
						joined += dst * listBytes
					}
				default:
					batch += dst * pairBytes
				}
				batch += s.heldBytes(r, b, nodes)
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
	// starBytes is what LABOR-* takes for each neighbour, if all are different: its place, and two
	// slots of a table, an id and the numbers of star.
	starBytes = 4 + 2*8 + 4 + 3*4 + 8
)
