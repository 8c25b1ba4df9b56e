package sample

// chunkBytes bounds what the batches of a group keep together of walks, and of lists for LABOR-*. When a hop wants more, it
// draws fewer batches at a time, at least one, so that lists may be read more than once.
const chunkBytes = 128 << 20

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
		if i > 0 && bytes > g.chunkBytes {
			return i
		}
	}
	return len(jobs)
}

// Scratch is what a Group of so many workers keeps to draw batches like b, from nodes of these degrees: so many bytes for each
// batch that is drawn together, and so many once.
func (c Config) Scratch(b *Batch, degree func(v uint32) int, workers int) (each, once int64) {
	widest, walks, lists := 0, int64(0), int64(0)
	for i := range b.Blocks {
		block := &b.Blocks[i]
		widest = max(widest, block.Dst)
		if c.Kind == RW {
			walks = max(walks, c.walkBytes(block.Dst))
		}
		if c.Kind == LaborStar {
			n := int64(0)
			for _, v := range block.Src[:block.Dst] {
				n += int64(degree(v))
			}
			lists = max(lists, 4*n)
		}
	}
	switch c.Kind {
	case RW:
		return 0, max(walks, chunkBytes) + GroupBytes
	case LaborStar:
		// Of each worker: edges, and for the different neighbours, at most as many, a slot or two of a table and the numbers of star.
		return int64(widest) * (PairBytes + 32), max(lists, chunkBytes) + int64(workers)*lists*(1+(24+4+3*8)/4)
	}
	return int64(widest) * PairBytes, 0
}
