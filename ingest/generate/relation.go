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
	shift     int // see home
	key       uint64
	leaves    leaves
	// inOrder and outOrder scatter the places of the degrees' curves over each community's nodes.
	// Without them the two degrees of a node fall together.
	inOrder, outOrder []bijection
}

// home is the community that edges to community c come from: c itself, or the one whose number
// differs from c's by an exclusive or with the shift, unless there is none. Then c's edges come
// from that one and its edges from c. With 2ⁿ communities, and as many columns, DistMult can say so
// exactly: by Walsh functions of the communities' numbers for rows, and of the shift for the
// relation.
func (r *relation) home(c int) int {
	if h := c ^ r.shift; h < r.src.communities.count() {
		return h
	}
	return c
}

// leaves are the shares of the nodes that no edge leads to, and one edge.
type leaves struct{ none, one float64 }

// of returns how many of a community's nodes follow the curve, and how many edges lead to one leaf
// each.
func (l leaves) of(size uint32, edges int64) (core uint32, ones int64) {
	none, one := uint32(l.none*float64(size)), uint32(l.one*float64(size))
	return max(1, size-none-one), min(int64(one), edges/2)
}

// scatter makes an order of each community's nodes.
func scatter(cs *communities, seed, purpose uint64) (orders []bijection) {
	for c := range cs.count() {
		orders = append(orders, newBijection(cs.size(c), key(seed, purpose, uint64(c))))
	}
	return orders
}

// ranked is the rank of the j-th node of community c in its order; first is where the community's
// ranks begin.
func ranked(orders []bijection, first uint32, c int, j uint32) uint32 {
	if orders != nil {
		j = orders[c].id(j)
	}
	return first + j
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
	home := r.home(c)
	srcFirst, srcSize := r.src.first[home], r.src.size(home)
	homophily := r.homophily
	if srcSize == 0 {
		homophily = 0
	}
	core, ones := r.leaves.of(dstSize, r.first[c+1]-r.first[c])
	curve := r.first[c] + ones // edge that the curve begins at
	perEdge := 1 / float64(r.first[c+1]-curve)
	near, away := 1/max(homophily, 0x1p-53), 1/max(1-homophily, 0x1p-53)
	all := float64(r.src.count)
	last, lastID := ^uint32(0), int64(0)
	for i := range dst {
		edge := lo + int64(i)
		j := core + uint32(edge-r.first[c])
		if edge >= curve {
			j = place(r.in.at((float64(edge-curve)+0.5)*perEdge), core)
		}
		if j != last {
			last, lastID = j, int64(r.dst.ids.id(ranked(r.inOrder, dstFirst, c, j)))
		}
		dst[i] = lastID
		u := unit(draw(r.key, uint64(edge)))
		if u < homophily {
			src[i] = int64(r.src.ids.id(ranked(r.outOrder, srcFirst, home, place(r.out.at(u*near), srcSize))))
			continue
		}
		// A random rank finds a community in proportion to its size, and what is left of it the
		// quantile within.
		x := float64(float64((u-homophily)*away) * all)
		community := r.src.of(min(uint32(x), r.src.count-1))
		first, size := r.src.first[community], r.src.size(community)
		rank := place(r.out.at((x-float64(first))/float64(size)), size)
		src[i] = int64(r.src.ids.id(ranked(r.outOrder, first, community, rank)))
	}
}

// place is the node at a share of n nodes.
func place(share float64, n uint32) uint32 { return min(uint32(share*float64(n)), n-1) }
