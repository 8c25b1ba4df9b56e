package generate

// Parameters of graphs with traits; doc.go explains them. Lengths are in units of a column's noise.
const (
	periods     = 16  // of time
	growth      = 0.8 // at most: how much more or less of a community is new than old
	drift       = 0.7 // how far a community's mean moves over all of time, as a share of its length
	traitLength = 1.3 // of each trait's direction, as a share of a mean's length
	swapsFirst  = 0.1 // share of nodes whose own trait swaps their class, in the first period
	swapsLast   = 0.3 // and in the last
	strong      = 4   // directions in which noise is strong
	strongNoise = 4   // its standard deviation there
)

// traits make features, labels and times where a class is no community. Two pools in a row are the
// halves of a community: pool 2c+h is half h of community c.
type traits struct {
	nodes   *population
	dim     int
	classes int
	// Time: in a pool, nodes of one period are together: pool p's of period t begin at
	// bounds[p][t].
	bounds  [][periods + 1]uint32
	before  [][periods]uint32 // nodes of period t in the pools before p
	first   [periods + 1]uint32
	scatter [periods]bijection // of the nodes of a period over its time
	// Features.
	key, signs uint64
	means      []float32 // a row a community
	moves      []float32 // what is added to it from the first period to the last
	directions [1 << 3][]float32
	strong     [strong][]float32
}

func newTraits(nodes *population, classes, dim int, signal float64, seed uint64) *traits {
	f := &traits{nodes: nodes, dim: dim, classes: classes, key: key(seed, forNoise, 0), signs: key(seed, forTraits, 0)}
	f.setPeriods(seed)
	f.means = vectors(seed, forMeans, (classes+1)/2, dim, signal)
	f.moves = vectors(seed, forMoves, (classes+1)/2, dim, drift*signal)
	three := vectors(seed, forTraits, 3, dim, traitLength*signal)
	for signs := range f.directions {
		sum := make([]float32, dim)
		for t := range 3 {
			for i, x := range three[t*dim : (t+1)*dim] {
				if signs>>t&1 == 0 {
					x = -x
				}
				sum[i] += x
			}
		}
		f.directions[signs] = sum
	}
	all := vectors(seed, forStrong, strong, dim, strongNoise)
	for i := range f.strong {
		f.strong[i] = all[i*dim : (i+1)*dim]
	}
	return f
}

// setPeriods cuts the pools' nodes among the periods: both halves of a community by the same curve.
func (f *traits) setPeriods(seed uint64) {
	pools := f.nodes.communities.count()
	f.bounds, f.before = make([][periods + 1]uint32, pools), make([][periods]uint32, pools)
	k := key(seed, forGrowth, 0)
	var sums [periods]uint32
	for p := range pools {
		size := float64(f.nodes.size(p))
		g := growth * (2*unit(draw(k, uint64(p/2))) - 1)
		for t := range periods {
			x := float64(t+1) / periods
			f.bounds[p][t+1] = uint32(size * float64(x*(1+float64(g*(x-1)))))
			f.before[p][t] = sums[t]
			sums[t] += f.bounds[p][t+1] - f.bounds[p][t]
		}
	}
	for t, n := range sums {
		f.first[t+1] = f.first[t] + n
		f.scatter[t] = newBijection(n, key(seed, forSplit, uint64(t)))
	}
}

// home is where a node belongs: its pool, and the period that it appeared in. at is its place in
// time.
func (f *traits) home(id uint32) (pool, period int, at uint32) {
	rank := f.nodes.ids.rank(id)
	pool = f.nodes.of(rank)
	bounds := &f.bounds[pool]
	offset := rank - f.nodes.first[pool]
	for bounds[period+1] <= offset {
		period++
	}
	return pool, period, f.first[period] + f.scatter[period].id(f.before[pool][period]+offset-bounds[period])
}

// swaps reports whether a node's own trait swaps its class.
func (f *traits) swaps(id uint32, period int) bool {
	late := float64(swapsLast-swapsFirst) * (float64(period) / (periods - 1))
	return unit(draw(f.signs, 2*uint64(id))) < swapsFirst+float64(late)
}

// class returns a node's class. A community has one for each half, and the node's own trait may
// swap them.
func (f *traits) class(id uint32) int {
	pool, period, _ := f.home(id)
	if f.swaps(id, period) {
		pool ^= 1
	}
	return pool % f.classes // where their number is odd, the last class is the first
}

// row fills dst with the features of a node. It is safe for concurrent use. Every product is
// rounded by itself.
func (f *traits) row(dst []float32, id uint32) {
	pool, period, _ := f.home(id)
	c := pool / 2
	noise(dst, f.means[c*f.dim:(c+1)*f.dim], draw(f.key, uint64(id)))

	signs := int(draw(f.signs, 2*uint64(id)) & 1)
	signs |= (signs ^ pool&1) << 1 // alike in one half, opposite in the other
	if f.swaps(id, period) {
		signs |= 1 << 2
	}
	h := draw(f.signs, 2*uint64(id)+1)
	a, b, e, g := normals[h&lane], normals[h>>16&lane], normals[h>>32&lane], normals[h>>48&lane]
	when := float32(period) / (periods - 1)
	moves, directions := f.moves[c*f.dim:(c+1)*f.dim], f.directions[signs][:len(dst)]
	s0, s1, s2, s3 := f.strong[0][:len(dst)], f.strong[1][:len(dst)], f.strong[2][:len(dst)], f.strong[3][:len(dst)]
	for i := range dst {
		shared := float32(a*s0[i]) + float32(b*s1[i]) + float32(e*s2[i]) + float32(g*s3[i])
		dst[i] += float32(when*moves[i]) + directions[i] + shared
	}
}
