package kernels

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// allCPUs has a CPU of every set that this machine runs, for each precision of products.
func allCPUs(threads int) []*CPU {
	var all []*CPU
	for _, p := range []Precision{Float32, BF16} {
		for _, set := range SetsOf(p) {
			all = append(all, NewCPU(CPUOptions{Threads: threads, Set: set, Products: p}))
		}
	}
	return all
}

// called names a CPU in messages.
func called(c *CPU) string { return fmt.Sprintf("%s with products in %s", c.Name(), productsOf(c)) }

func productsOf(c *CPU) Precision {
	if c.bf16 {
		return BF16
	}
	return Float32
}

// product is MatMul of slices.
func (c *CPU) product(dst, a, b []float32, m, n, k int, transA, transB, accumulate bool) {
	if c.panels == nil {
		c.matMul(dst, a, b, m, n, k, transA, transB, accumulate)
		return
	}
	s := productShape{m, n, k, transA, transB, accumulate}
	p := s.of(c.panels, dst, a, b)
	p.threads = c.threads
	p.compute(&c.rounded)
}

// productShape is a kind of product and its sizes.
type productShape struct {
	m, n, k                    int
	transA, transB, accumulate bool
}

func (s productShape) String() string {
	return fmt.Sprintf("m=%d n=%d k=%d transA=%v transB=%v accumulate=%v",
		s.m, s.n, s.k, s.transA, s.transB, s.accumulate)
}

// of is a product of this shape on one thread.
func (s productShape) of(p *panels, dst, a, b []float32) *panelProduct {
	left, right := factor{f32: a, row: s.k}, factor{f32: b, row: s.n}
	if s.transA {
		left.row = s.m
	}
	if s.transB {
		right.row = s.k
	}
	return &panelProduct{
		panels: p, dst: dst, m: s.m, n: s.n, terms: []panelTerm{{left, right, s.k}},
		transA: s.transA, transB: s.transB, accumulate: s.accumulate, threads: 1,
	}
}

// modelOf returns the definition of what a set adds up, or nil for the portable set.
func modelOf(set Set) func(sum float32, a, b []float32) float32 {
	switch set {
	case AMX:
		return tileModel
	case AVX512BF16:
		return dotModel
	}
	return nil
}

// modelValues draws values of factors and sums, by what they bring about.
var modelValues = map[string]func(rng *rand.Rand) (factor, sum float32){
	"alike": func(rng *rand.Rand) (factor, sum float32) {
		return float32(rng.NormFloat64()), float32(rng.NormFloat64())
	},
	"far apart": func(rng *rand.Rand) (factor, sum float32) {
		draw := func() float32 { return float32(math.Ldexp(rng.NormFloat64(), rng.IntN(80)-40)) }
		return draw(), draw()
	},
	"denormal": func(rng *rand.Rand) (factor, sum float32) {
		draw := func(least, span int) float32 {
			return float32(math.Ldexp(float64(rng.IntN(512)-256), least+rng.IntN(span)))
		}
		return draw(-78, 16), draw(-145, 20)
	},
	"of few bits": func(rng *rand.Rand) (factor, sum float32) { // sums cancel
		draw := func() float32 { return float32(math.Ldexp(float64(rng.IntN(5)-2), rng.IntN(3)*12-77)) }
		return draw(), draw() * 0x1p-76
	},
	"at the smallest": func(rng *rand.Rand) (factor, sum float32) {
		sum = math.Float32frombits(1<<23 + uint32(rng.IntN(3)))
		// Products are 2⁻¹²⁶, or about half of its last bit.
		exponent := []int{-63, -63, -87, -88, -89, -90}[rng.IntN(6)]
		return float32(math.Ldexp(1-2*float64(rng.IntN(2)), exponent)), sum
	},
	"any bits": func(rng *rand.Rand) (factor, sum float32) { return anyFloat(rng), anyFloat(rng) },
	"not finite": func(rng *rand.Rand) (factor, sum float32) {
		draw := func() float32 {
			if rng.IntN(300) == 0 {
				return specialFloats[rng.IntN(len(specialFloats))]
			}
			return float32(math.Ldexp(rng.NormFloat64(), rng.IntN(100)-50))
		}
		return draw(), draw()
	},
}

// anyFloat draws a float32 that is not NaN.
func anyFloat(rng *rand.Rand) float32 {
	for {
		if v := math.Float32frombits(rng.Uint32()); v == v {
			return v
		}
	}
}

// specialFloats are values that rounding to bfloat16 treats in another way than their neighbours.
var specialFloats = func() (values []float32) {
	for _, bits := range []uint32{
		0, 1, 0x7fff, 0x8000, 0xffff, 0x0001_0000, 0x007f_7fff, 0x007f_8000, 0x007f_ffff, 0x0080_0000, // denormal
		0x3f80_0000, 0x3f80_7fff, 0x3f80_8000, 0x3f80_8001, 0x3f81_7fff, 0x3f81_8000, 0x3f81_8001, // ties
		0x7f7f_0000, 0x7f7f_7fff, 0x7f7f_8000, 0x7f7f_ffff, 0x7f80_0000, // the largest
		0x7f80_0001, 0x7f80_ffff, 0x7f81_0000, 0x7fbf_ffff, 0x7fc0_0000, 0x7fc0_0001, 0x7fff_ffff, // NaN
	} {
		values = append(values, math.Float32frombits(bits), math.Float32frombits(bits|1<<31))
	}
	return values
}()

// TestProductsInBF16FollowTheirDefinition compares products with the models, element by element.
func TestProductsInBF16FollowTheirDefinition(t *testing.T) {
	const chunk = 640 // of the longest shape, where it is cut
	shapes := [][3]int{
		{1, 1, 1}, {3, 5, 2}, {17, 33, 31}, {33, 17, 65}, {16, 16, 32}, {15, 47, 100}, {5, 3, 1000}, {3, 4, 2500},
	}
	for _, c := range allCPUs(2) {
		model := modelOf(c.set)
		if model == nil {
			continue
		}
		for _, values := range slices.Sorted(maps.Keys(modelValues)) {
			rng := rand.New(rand.NewPCG(5, 1))
			for i, s := range shapes {
				for flags := range 8 {
					p := modelled{c: c, sum: model, values: values}
					p.productShape = productShape{s[0], s[1], s[2], flags&1 != 0, flags&2 != 0, flags&4 != 0}
					if p.m*p.n*p.k > 1<<14 && flags%4 != i%4 { // a large shape in one layout alone
						continue
					}
					if p.k >= longFrom && !p.transB {
						p.chunk = chunk
					}
					p.check(t, rng)
				}
			}
		}
	}
}

// modelled is a product that is compared with a model.
type modelled struct {
	c *CPU
	productShape
	sum    func(sum float32, a, b []float32) float32
	chunk  int
	values string
}

func (p modelled) check(t *testing.T, rng *rand.Rand) {
	a, b, dst := make([]float32, p.m*p.k), make([]float32, p.k*p.n), make([]float32, p.m*p.n)
	for _, s := range [][]float32{a, b} {
		for i := range s {
			s[i], _ = modelValues[p.values](rng)
		}
	}
	for i := range dst {
		_, dst[i] = modelValues[p.values](rng)
	}
	got := slices.Clone(dst)
	p.c.product(got, a, b, p.m, p.n, p.k, p.transA, p.transB, p.accumulate)
	row, column := make([]float32, p.k), make([]float32, p.k)
	for i := range p.m {
		for j := range p.n {
			for l := range p.k {
				row[l], column[l] = a[i*p.k+l], b[l*p.n+j]
				if p.transA {
					row[l] = a[l*p.m+i]
				}
				if p.transB {
					column[l] = b[j*p.k+l]
				}
			}
			var sum float32
			if p.accumulate {
				sum = dst[i*p.n+j]
			}
			want, is := modelProduct(p.sum, sum, row, column, p.chunk), got[i*p.n+j]
			if wantBits, bits := math.Float32bits(want), math.Float32bits(is); wantBits != bits && (want == want || is == is) {
				require.Fail(t, "not as defined", "%s: %v of values %s: row %d column %d is %v (%#x), not %v (%#x)",
					called(p.c), p.productShape, p.values, i, j, is, bits, want, wantBits)
			}
		}
	}
}

// TestProductsInBF16RoundFactors holds the portable set to its definition: float32's product of
// factors that are rounded.
func TestProductsInBF16RoundFactors(t *testing.T) {
	const m, n, k = 7, 9, 70
	rng := rand.New(rand.NewPCG(5, 2))
	for _, draw := range modelValues {
		a, b := make([]float32, m*k), make([]float32, k*n)
		for _, s := range [][]float32{a, b} {
			for i := range s {
				s[i], _ = draw(rng)
			}
		}
		got, want := make([]float32, m*n), make([]float32, m*n)
		NewCPU(CPUOptions{Threads: 2, Set: Portable, Products: BF16}).product(got, a, b, m, n, k, false, false, false)
		roundBF16(a, a)
		roundBF16(b, b)
		NewCPU(CPUOptions{Threads: 1, Set: Portable}).product(want, a, b, m, n, k, false, false, false)
		for i := range want {
			if want[i] == want[i] || got[i] == got[i] {
				require.Equal(t, want[i], got[i], "element %d", i)
			}
		}
	}
}

// TestRoundToBF16 rounds what lies around every tie, and the ends.
func TestRoundToBF16(t *testing.T) {
	for _, c := range []struct {
		from uint32
		want uint16
	}{
		{0, 0}, {1 << 31, 0x8000}, {0x007f_ffff, 0}, {0x807f_ffff, 0x8000}, {0x0080_0000, 0x0080},
		{0x3f80_7fff, 0x3f80}, {0x3f80_8000, 0x3f80}, {0x3f80_8001, 0x3f81},
		{0x3f81_8000, 0x3f82}, {0xbf81_8000, 0xbf82}, {0x3fff_8000, 0x4000},
		{0x7f7f_7fff, 0x7f7f}, {0x7f7f_8000, 0x7f80}, {0xff7f_ffff, 0xff80}, {0x7f80_0000, 0x7f80}, // to infinity
		{0x7f80_0001, 0x7fc0}, {0x7fff_ffff, 0x7fff}, {0xff81_0000, 0xffc1}, // NaN
	} {
		require.Equal(t, c.want, roundToBF16(math.Float32frombits(c.from)), "%#08x", c.from)
	}
	rng := rand.New(rand.NewPCG(5, 3))
	for range 10_000 {
		v := anyFloat(rng)
		got := widenBF16(roundToBF16(v))
		if math.Abs(float64(v)) < 0x1p-126 || math.IsInf(float64(got), 0) {
			continue
		}
		_, exponent := math.Frexp(float64(v))
		require.LessOrEqual(t, math.Abs(float64(got)-float64(v)), math.Ldexp(1, exponent-9), "%v becomes %v", v, got)
	}
}
