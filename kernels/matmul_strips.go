package kernels

// strips multiplies with the routines of one kernel set, which its generator, _gen/matmul,
// describes. A strip reads its operands where they lie, unless that is slow: then they are packed
// first, so that what is read next lies next. What is cut here:
//
//   - dst into blocks of rows that one thread computes, and these into strips, side by side, that read the same rows of a
//     and each its own columns of b: a's rows stay in the second-level cache for all of them.
//   - the inner dimension into pieces for which that is so, added up in order: flat, below.
//   - where the inner dimension is long, as in the gradient of a layer's weights, it into chunks that threads compute side
//     by side, and whose products are added up in order: longProduct.
//
// Where additions are cut depends on the shape alone, never on the number of threads. No call of a
// routine is longer than 168 rows × 32 columns × 384: 4 million times multiply and add, 40 µs where
// AVX2 reaches 100 GFLOP/s.
type strips struct {
	tile         int // rows that a routine computes at a time
	lanes        int // columns of a narrow strip, at most; a wide one has twice as many
	wide, narrow stripRoutine
	pack8        func(dst *float32, dstRow int, src *float32, srcRow int, blocks int)
	add8         func(dst, src *float32, srcRow, rows, blocks int)
}

type stripRoutine func(dst *float32, dstRow int, a *float32, aRow, aStep, aTile int, b *float32, bStep int,
	ahead *float32, aheadStep, rows, cols, k int, add bool)

const (
	stripRows  = 168     // of a call: a multiple of both tiles, 14 and 6
	flatDeep   = 384     // inner dimension of a call: 168 rows of it are 258 KiB of a, and a wide strip of it 48 KiB of b
	tasks      = 8       // at least so many, where there is work for them, so that threads end together
	serialWork = 1 << 18 // multiplications, some microseconds: what other threads are not worth starting for
	packFrom   = 1024    // columns: rows of b so far apart fall on few places of a cache (1.15× at 1433, 1.5× at 4096)
	packRows   = 256     // of dst: what packing b is worth while for
	maxPacked  = 4 << 20 // elements of b that are packed at a time
)

// stripProduct is one product in progress.
type stripProduct struct {
	*strips
	dst        []float32
	n          int // columns of dst
	a          []float32
	aRow, aCol int // elements from one row of op(a) to the next, in a tile, and from one column to the next
	aTile      int // elements from one tile to the next
	b          []float32
	bRow       int                      // elements from one row of op(b) to the next
	bPanel     int                      // 1, or the rows of b that are packed: then the columns of a wide strip lie together
	after      func(i0, i1, j0, j1 int) // if not nil, called once for each block of dst, while it is in a cache
}

// matMul computes the same product as the function matMul, with vector routines. It returns the
// scratch, grown if need be, for the next call.
func (s *strips) matMul(dst, a, b []float32, m, n, k int, transA, transB, accumulate bool, scratch []float32, threads int) []float32 {
	dst, a, b = dst[:m*n], a[:m*k], b[:n*k]
	if len(dst) == 0 {
		return scratch
	}
	if k == 0 {
		if !accumulate {
			clear(dst)
		}
		return scratch
	}
	if m*n*k < serialWork {
		threads = 1
	}
	p := stripProduct{strips: s, dst: dst, n: n, a: a, aRow: k, aCol: 1, b: b, bRow: n, bPanel: 1}
	if transA {
		p.aRow, p.aCol = 1, m
	}
	p.aTile = s.tile * p.aRow
	if !transB && k >= longFrom && (transA || m <= tasks*stripRows) {
		return p.long(m, k, accumulate, scratch, threads)
	}
	if !transB && (n < packFrom || m < packRows) {
		p.flat(m, k, accumulate, threads)
		return scratch
	}
	return p.packed(m, k, transB, accumulate, nil, scratch, threads)
}

// affine is matMul with b transposed, for k > 0, and after called with rows and columns of each
// block of dst when it is done.
func (s *strips) affine(dst, a, b []float32, m, n, k int, accumulate bool, after func(i0, i1, j0, j1 int), scratch []float32, threads int) []float32 {
	if m*n == 0 {
		return scratch
	}
	if m*n*k < serialWork {
		threads = 1
	}
	p := stripProduct{strips: s, dst: dst[:m*n], n: n, a: a[:m*k], aRow: k, aCol: 1, aTile: s.tile * k, b: b[:n*k]}
	return p.packed(m, k, true, accumulate, after, scratch, threads)
}

// packed computes all of dst from b that is packed a piece of the inner dimension at a time.
func (p *stripProduct) packed(m, k int, transB, accumulate bool, after func(i0, i1, j0, j1 int), scratch []float32, threads int) []float32 {
	wide, n, a, b := 2*p.lanes, p.n, p.a, p.b
	padded := (n + wide - 1) / wide * wide
	deep := min(k, max(maxPacked/padded/flatDeep, 1)*flatDeep)
	scratch = grow(scratch, padded*deep)
	p.b, p.bRow = scratch, wide
	for l := 0; l < k; l += deep {
		p.a, p.bPanel = a[l*p.aCol:], min(deep, k-l)
		if l+deep >= k {
			p.after = after
		}
		if transB {
			p.packTransposed(scratch, b[l:], n, k, p.bPanel, threads)
		} else {
			parallelFor(threads, p.bPanel, 16, func(lo, hi int) { p.packB(scratch[lo*wide:], b[(l+lo)*n:], n, n, p.bPanel, hi-lo) })
		}
		p.flat(m, p.bPanel, accumulate || l > 0, threads)
	}
	return scratch
}

// flat computes all of dst, over an inner dimension of k.
func (p *stripProduct) flat(m, k int, accumulate bool, threads int) {
	rows := min(stripRows, (m+tasks*p.tile-1)/(tasks*p.tile)*p.tile)
	down := (m + rows - 1) / rows
	wide := 2 * p.lanes
	cols := (p.n + wide - 1) / wide * wide
	if down < tasks {
		across := (tasks + down - 1) / down
		cols = (p.n + across*wide - 1) / (across * wide) * wide
	}
	across := (p.n + cols - 1) / cols
	pieces := (k + flatDeep - 1) / flatDeep
	deep := (k + pieces - 1) / pieces
	parallelFor(threads, down*across, 1, func(task, _ int) {
		b := block{dst: p.dst, i0: task / across * rows, j0: task % across * cols}
		b.i1, b.j1 = min(b.i0+rows, m), min(b.j0+cols, p.n)
		for l := 0; l < k; l += deep {
			b.l0, b.l1 = l, min(l+deep, k)
			var h ahead
			switch {
			case p.aCol != 1 || l > 0:
			case pieces == 1: // the next tile, just before its turn
				h = ahead{first: p.a[min(b.i0+p.tile, b.i1-1)*p.aRow : (b.i1-1)*p.aRow+k], strips: 1}
			default: // what the next pieces read of these rows lies between what this one reads
				h = ahead{first: p.a[b.i0*p.aRow : (b.i1-1)*p.aRow+k], strips: p.stripCount(b)}
			}
			p.block(b, h, accumulate || l > 0)
		}
		if p.after != nil {
			p.after(b.i0, b.i1, b.j0, b.j1)
		}
	})
}

// block is a part of a product: rows i0 to i1 and columns j0 to j1 of dst, summed over l0 to l1 of
// the inner dimension.
type block struct {
	dst                    []float32 // of the whole product
	i0, i1, j0, j1, l0, l1 int
}

// stripCount is the number of strips of a block.
func (p *stripProduct) stripCount(b block) int {
	cols, wide := b.j1-b.j0, 2*p.lanes
	across := cols/wide + (cols%wide+p.lanes-1)/p.lanes
	return across * ((b.i1 - b.i0 + stripRows - 1) / stripRows)
}

// ahead is memory that will be read soon: so many strips fetch equal shares of it while they
// compute.
type ahead struct {
	first, second []float32
	strips, taken int
}

// share is where the next strip fetches, and how many bytes further at each of its steps.
func (h *ahead) share(steps int) (at *float32, step int) {
	total := len(h.first) + len(h.second)
	if h.taken == h.strips || total == 0 {
		return nil, 0
	}
	start := total * h.taken / h.strips
	h.taken++
	step = min((4*total/h.strips+steps-1)/steps, 64) // a line
	if start < len(h.first) {
		return &h.first[start], step
	}
	return &h.second[start-len(h.first)], step
}

// block computes a block, or adds it.
func (p *stripProduct) block(b block, h ahead, add bool) {
	wide, k := 2*p.lanes, b.l1-b.l0
	for j := b.j0; j < b.j1; {
		routine, cols := p.wide, wide
		if b.j1-j < wide {
			routine, cols = p.narrow, min(p.lanes, b.j1-j)
		}
		right := &p.b[j+(j-j%wide)*(p.bPanel-1)+b.l0*p.bRow]
		for i := b.i0; i < b.i1; i += stripRows {
			rows := min(stripRows, b.i1-i)
			left := &p.a[i/p.tile*p.aTile+b.l0*p.aCol]
			at, step := h.share((rows + p.tile - 1) / p.tile * k)
			if at == nil {
				at = left
			}
			routine(&b.dst[i*p.n+j], 4*p.n, left, 4*p.aRow, 4*p.aCol, 4*p.aTile, right, 4*p.bRow, at, step, rows, cols, k, add)
		}
		j += cols
	}
}
