package kernels

import (
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// gonum multiplies fastest, by a factor of two, when b alone is transposed: then both operands lie
// along the inner dimension and every element of dst is one dot product. It is also the one case in
// which gonum multiplies by a's zeros instead of skipping them, which would turn the NaN of 0·Inf
// into 0. So operands that lie otherwise are copied into that layout first, a piece of the inner
// dimension at a time, which bounds the scratch.
const (
	tileRows = 64
	tileCols = 64  // gonum starts goroutines of its own from four blocks of 64×64 up; a tile is one
	tileDeep = 256 // a tile's columns of b are then 64 KiB
	packDeep = 1024
	// gonum's dot product adds in another order if a row of b does not start at a multiple of
	// alignedRow bytes. matMul copies such rows to aligned places. So a product depends on its
	// factors, not on their addresses.
	alignedRow = 16
	alignedLen = alignedRow / 4
)

// matMul computes dst = op(a)·op(b), or dst += … with accumulate. op(a) is m×k and op(b) k×n;
// transA says that a is stored as k×m, transB that b is stored as n×k. It returns the scratch,
// grown if need be, for the next call.
func matMul(dst, a, b []float32, m, n, k int, transA, transB, accumulate bool, scratch []float32, threads int) []float32 {
	dst = dst[:m*n]
	if !accumulate {
		parallelFor(threads, len(dst), chunkElements, func(lo, hi int) { clear(dst[lo:hi]) })
	}
	if len(dst) == 0 {
		return scratch
	}
	deep := min(k, packDeep)
	packs := !transB || k%alignedLen != 0 || uintptr(unsafe.Pointer(unsafe.SliceData(b)))%alignedRow != 0
	var needA, needB int
	if transA {
		needA = m * deep
	}
	if packs {
		needB = n*alignedUp(deep) + alignedLen
	}
	scratch = grow(scratch, needA+needB)
	packA, packB := scratch[:needA], scratch[needA:needA+needB]
	if packs {
		start := uintptr(unsafe.Pointer(unsafe.SliceData(packB)))
		packB = packB[(-start%alignedRow)/4:]
	}
	for l0 := 0; l0 < k; l0 += packDeep {
		l1 := min(l0+packDeep, k)
		p := product{dst: dst, n: n, a: operand{a[l0:], k}, b: operand{b[l0:], k}}
		if transA {
			p.a = operand{packA, l1 - l0}
			transpose(packA, l1-l0, a[l0*m:l1*m], l1-l0, m, threads)
		}
		switch depth := l1 - l0; {
		case !transB:
			p.b = operand{packB, alignedUp(depth)}
			transpose(packB, p.b.stride, b[l0*n:l1*n], depth, n, threads)
		case packs:
			p.b = operand{packB, alignedUp(depth)}
			parallelFor(threads, n, chunkRows(depth), func(lo, hi int) {
				for j := lo; j < hi; j++ {
					copy(packB[j*p.b.stride:], b[j*k+l0:j*k+l1])
				}
			})
		}
		p.run(m, l1-l0, threads)
	}
	return scratch
}

// alignedUp returns the least stride from n on that keeps rows aligned.
func alignedUp(n int) int { return (n + alignedLen - 1) / alignedLen * alignedLen }

// transpose copies the rows×cols matrix src to dst as cols×rows. Rows of dst start stride elements
// apart.
func transpose(dst []float32, stride int, src []float32, rows, cols, threads int) {
	// Sixteen columns of src are one cache line of each row.
	parallelFor(threads, cols, 16, func(lo, hi int) {
		for r := range rows {
			line := src[r*cols+lo : r*cols+hi]
			for c, v := range line {
				dst[(lo+c)*stride+r] = v
			}
		}
	})
}

// operand is a matrix whose rows lie along the inner dimension, stride elements apart.
type operand struct {
	data   []float32
	stride int
}

// product is dst += a·bᵀ.
type product struct {
	dst  []float32
	n    int // columns of dst
	a, b operand
}

// run computes the tiles of a dst with m rows, over an inner dimension of k. Their grid depends on
// the shape alone.
func (p *product) run(m, k, threads int) {
	rows := tileRows
	if (m+tileRows-1)/tileRows*((p.n+tileCols-1)/tileCols) < 16 {
		rows = tileRows / 4 // the gradient of a narrow layer's weights: few tiles, but each a long way down
	}
	across := (p.n + tileCols - 1) / tileCols
	parallelFor(threads, (m+rows-1)/rows*across, 1, func(tile, _ int) {
		i, j := tile/across*rows, tile%across*tileCols
		for l := 0; l < k; l += tileDeep {
			gonum.Implementation{}.Sgemm(blas.NoTrans, blas.Trans,
				min(rows, m-i), min(tileCols, p.n-j), min(tileDeep, k-l),
				1, p.a.data[i*p.a.stride+l:], p.a.stride, p.b.data[j*p.b.stride+l:], p.b.stride,
				1, p.dst[i*p.n+j:], p.n)
		}
	})
}
