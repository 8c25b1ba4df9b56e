package generate

// population is the nodes of one type.
type population struct {
	name  string
	count uint32
	ids   bijection
	communities
}

// relation makes the edges of one relation, from any one to any other.
type relation struct {
	src, dst  *population
	edges     int64
	first     []int64 // edge that each community of destinations begins at
	in, out   quantile
	homophily float64
	key       uint64
}

// fill makes edges lo, lo+1, … len(src) of them. It is safe for concurrent use.
func (r *relation) fill(src, dst []int64, lo int64) {
	c := 0
	for len(src) > 0 {
		for r.first[c+1] <= lo {
			c++
		}
		n := int(min(int64(len(src)), r.first[c+1]-lo))
		r.fillCommunity(c, src[:n], dst[:n], lo)
		src, dst, lo = src[n:], dst[n:], lo+int64(n)
	}
}

// fillCommunity is fill for edges whose destinations are all of community c.
func (r *relation) fillCommunity(c int, src, dst []int64, lo int64) {
	dstFirst, dstSize := r.dst.first[c], r.dst.size(c)
	srcFirst, srcSize := r.src.first[c], r.src.size(c)
	homophily := r.homophily
	if srcSize == 0 {
		homophily = 0
	}
	perEdge := 1 / float64(r.first[c+1]-r.first[c])
	home, away := 1/max(homophily, 0x1p-53), 1/max(1-homophily, 0x1p-53)
	all := float64(r.src.count)
	last, lastID := ^uint32(0), int64(0)
	for i := range dst {
		edge := lo + int64(i)
		y := (float64(edge-r.first[c]) + 0.5) * perEdge
		if j := place(r.in.at(y), dstSize); j != last {
			last, lastID = j, int64(r.dst.ids.id(dstFirst+j))
		}
		dst[i] = lastID
		u := unit(draw(r.key, uint64(edge)))
		if u < homophily {
			src[i] = int64(r.src.ids.id(srcFirst + place(r.out.at(u*home), srcSize)))
			continue
		}
		// A random rank finds a community in proportion to its size, and what is left of it the quantile within.
		x := float64(float64((u-homophily)*away) * all)
		far := r.src.of(min(uint32(x), r.src.count-1))
		first, size := r.src.first[far], r.src.size(far)
		src[i] = int64(r.src.ids.id(first + place(r.out.at((x-float64(first))/float64(size)), size)))
	}
}

// place is the node at a share of n nodes.
func place(share float64, n uint32) uint32 { return min(uint32(share*float64(n)), n-1) }
