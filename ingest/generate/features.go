package generate

import (
	"math"
)

// normals are the quantiles of the standard normal distribution at the middle of each of their
// equal shares. They are multiples of 2⁻¹⁶, so that it does not matter how a machine rounds
// logarithms.
var normals = func() (table [1 << 12]float32) { // 16 KiB: half of the smallest first-level cache
	for i := range table {
		z := math.Sqrt2 * math.Erfinv((2*float64(i)+1)/float64(len(table))-1)
		table[i] = float32(math.Round(z*(1<<16)) / (1 << 16))
	}
	return table
}()

// lane is the place of a normal value in the lowest bits of a hash.
const lane = uint64(len(normals) - 1)

// features makes the feature rows of one node type.
type features struct {
	nodes *population
	dim   int
	key   uint64
	means []float32 // a row a class
}

// newFeatures draws the classes' means, of about the length signal each.
func newFeatures(nodes *population, dim int, signal float64, seed uint64) *features {
	means := vectors(seed, forMeans, nodes.communities.count(), dim, signal)
	return &features{nodes: nodes, dim: dim, key: key(seed, forNoise, 0), means: means}
}

// vectors returns n random vectors of about this length, one after the other.
func vectors(seed, purpose uint64, n, dim int, length float64) []float32 {
	v := make([]float32, n*dim)
	k, each := key(seed, purpose, 0), length/math.Sqrt(float64(dim))
	for i := range v {
		v[i] = float32(math.Round(each*float64(normals[draw(k, uint64(i))&lane])*(1<<16)) / (1 << 16))
	}
	return v
}

// row fills dst with the features of a node. It is safe for concurrent use.
func (f *features) row(dst []float32, id uint32) {
	c := f.nodes.of(f.nodes.ids.rank(id))
	noise(dst, f.means[c*f.dim:(c+1)*f.dim], draw(f.key, uint64(id)))
}

// noise fills dst with mean and normal noise. Four columns share a hash, 16 bits each.
func noise(dst, mean []float32, k uint64) {
	mean = mean[:len(dst)]
	for len(dst) >= 4 && len(mean) >= 4 {
		h := mix(k)
		d, m := dst[:4:4], mean[:4:4]
		d[0] = m[0] + normals[h&lane]
		d[1] = m[1] + normals[h>>16&lane]
		d[2] = m[2] + normals[h>>32&lane]
		d[3] = m[3] + normals[h>>48&lane]
		dst, mean = dst[4:], mean[4:]
		k += golden
	}
	for i, h := 0, mix(k); i < len(dst); i++ {
		dst[i] = mean[i] + normals[h&lane]
		h >>= 16
	}
}
