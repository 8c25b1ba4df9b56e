package sample

// DefaultBytes is Group.Bytes unless it is set.
const DefaultBytes = 128 << 20

// together is how many of jobs, from the first on, are drawn at a time.
func (g *Group) together(jobs []job) int {
	if g.Kind != RW && g.Kind != LaborStar {
		return len(jobs)
	}
	bytes := int64(0)
	for i, j := range jobs {
		if g.Kind == RW {
			bytes += g.walkBytes(len(j.dst))
		} else {
			for _, v := range j.dst {
				if v >= g.resident {
					bytes += 4 * int64(g.topo.Degree(v))
				}
			}
		}
		if i > 0 && bytes > g.Bytes {
			return i
		}
	}
	return len(jobs)
}

// Scratch is what a Group of so many workers keeps to draw batches like b, from nodes of these degrees: so many bytes for each
// batch that is drawn together, and so many once.
func (c Config) Scratch(b *Batch, degree func(v uint32) int, workers int) (each, once int64) {
	for i := range b.Blocks {
		block := &b.Blocks[i]
		dst := int64(block.Dst)
		switch c.Kind {
		case RW:
			each = max(each, c.walkBytes(block.Dst)+dst*int64(c.Walk.Walks)*PairBytes)
		case LaborStar:
			lists := int64(0)
			for _, v := range block.Src[:dst] {
				lists += int64(degree(v))
			}
			each = max(each, 4*lists+dst*(PairBytes+listBytes))
			once = max(once, int64(workers)*lists*starBytes)
		default:
			each = max(each, dst*PairBytes)
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
