package kernels

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// A tile of dst is the unit of work: its size depends on the shape alone. gonum starts goroutines of its own from four
// blocks of 64×64 up; three blocks keep it serial, so that the caller's number of threads is what runs.
const (
	tileRows = 64
	tileCols = 192
	tileDeep = 256 // of the inner dimension at a time: that much of b stays in the second-level cache
)

// MatMul computes dst = op(a)·op(b), or dst += … with accumulate. op(a) is m×k and op(b) k×n; transA says that a is
// stored as k×m, transB that b is stored as n×k.
func MatMul(dst, a, b []float32, m, n, k int, transA, transB, accumulate bool) {
	p := product{dst: dst, a: a, b: b, m: m, n: n, k: k, transA: transA, transB: transB, accumulate: accumulate}
	p.plain = p.skipsZeros() && !allFinite(b)
	for t := range p.tiles() {
		p.tile(t)
	}
}

// product is one MatMul, cut into tiles that may be computed in any order and at the same time.
type product struct {
	dst, a, b                  []float32
	m, n, k                    int
	transA, transB, accumulate bool

	plain bool // compute by the whiteboard loop; see skipsZeros
}

// skipsZeros reports that gonum skips the products of a's zeros, as it does unless b alone is transposed. A zero times Inf
// or NaN is NaN, so a b that is not finite must take the plain way, or a diverged model would look healthy behind a ReLU.
func (p *product) skipsZeros() bool { return p.transA || !p.transB }

// allFinite reports that s holds no Inf and no NaN.
func allFinite(s []float32) bool {
	const exponent = 0x7f80_0000
	for _, v := range s {
		if math.Float32bits(v)&exponent == exponent {
			return false
		}
	}
	return true
}

// rowsPerTile is less than tileRows where there would be too few tiles to share out: the gradient of a narrow layer's
// weights is a small matrix with a long inner dimension.
func (p *product) rowsPerTile() int {
	if (p.m+tileRows-1)/tileRows*((p.n+tileCols-1)/tileCols) < 16 {
		return tileRows / 4
	}
	return tileRows
}

func (p *product) tiles() int {
	h := p.rowsPerTile()
	return (p.m + h - 1) / h * ((p.n + tileCols - 1) / tileCols)
}

// tile computes tile t of dst, counted along its rows.
func (p *product) tile(t int) {
	across := (p.n + tileCols - 1) / tileCols
	h := p.rowsPerTile()
	i0, j0 := t/across*h, t%across*tileCols
	i1, j1 := min(i0+h, p.m), min(j0+tileCols, p.n)
	if !p.accumulate {
		for i := i0; i < i1; i++ {
			clear(p.dst[i*p.n+j0 : i*p.n+j1])
		}
	}
	if p.plain {
		matMulTileRef(p.dst, p.a, p.b, p.m, p.n, p.k, p.transA, p.transB, i0, i1, j0, j1)
		return
	}
	for l0 := 0; l0 < p.k; l0 += tileDeep {
		p.gemm(i0, i1, j0, j1, l0, min(l0+tileDeep, p.k))
	}
}

// gemm adds to the tile of rows [i0, i1) and columns [j0, j1) what the inner range [l0, l1) contributes.
func (p *product) gemm(i0, i1, j0, j1, l0, l1 int) {
	transA, lda, a := blas.NoTrans, p.k, i0*p.k+l0
	if p.transA {
		transA, lda, a = blas.Trans, p.m, l0*p.m+i0
	}
	transB, ldb, b := blas.NoTrans, p.n, l0*p.n+j0
	if p.transB {
		transB, ldb, b = blas.Trans, p.k, j0*p.k+l0
	}
	gonum.Implementation{}.Sgemm(transA, transB, i1-i0, j1-j0, l1-l0,
		1, p.a[a:], lda, p.b[b:], ldb, 1, p.dst[i0*p.n+j0:], p.n)
}
