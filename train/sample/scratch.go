package sample

const defaultBytes = 128 << 20

// bytes is what a batch keeps of a hop for these destinations, as Bytes counts it.
func (g *Group) bytes(dst []uint32) int64 {
	n := int64(0)
	switch g.Kind {
	case RW:
		n = g.walkBytes(len(dst))
	case LaborStar:
		for _, v := range dst {
			if v >= g.resident {
				n += 4 * int64(g.topo.Degree(v))
			}
		}
	}
	return n
}

// Scratch is what a Group of so many workers keeps to draw batches like b, from nodes of these degrees: so many bytes for each
// batch that is drawn together, and so many once.
func (c Config) Scratch(b *Batch, degree func(v uint32) int, workers int) (each, once int64) {
	for i := range b.Blocks {
		block := &b.Blocks[i]
		dst := int64(block.Dst)
		switch c.Kind {
		case RW:
			each = max(each, c.walkBytes(block.Dst)+dst*int64(c.Walk.Walks)*pairBytes)
		case LaborStar:
			lists := int64(0)
			for _, v := range block.Src[:dst] {
				lists += int64(degree(v))
			}
			each = max(each, 4*lists+dst*(pairBytes+listBytes))
			once = max(once, int64(workers)*lists*starBytes)
		default:
			each = max(each, dst*pairBytes)
		}
	}
	return each, once
}

const (
	listBytes = 7 * 8 // of a list
	// starBytes is what LABOR-* takes for each neighbour, if all are different: its place, and two slots of a table, an id and the
	// numbers of star.
	starBytes = 4 + 2*8 + 4 + 3*4 + 8
)
