package kernels

// strips multiplies with the routines of one kernel set, which its generator, _gen/matmul, describes. A strip reads its
// operands where they lie, so nothing is packed but a transposed b. What is cut here:
//
//   - dst into blocks of rows that one thread computes, and these into strips, next to each other, that read the same rows
//     of a and each its own columns of b: a's rows stay in the second-level cache for all of them.
//   - the inner dimension into pieces for which that is so. They are added up in order.
//   - where dst is small and the inner dimension long, as in the gradient of a layer's weights, the inner dimension into
//     chunks that threads compute side by side; then their products are added up in order.
//
// None of it depends on the number of threads where it decides the order of additions, and no call of a routine is longer
// than 168 rows × 32 columns × 384: 4 million multiplications and additions, 40 µs even at half of what AVX2 reaches.
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
	stripRows  = 168 // of a call: a multiple of both tiles, 14 and 6
	flatDeep   = 384 // inner dimension of a call: 168 rows of it are 258 KiB of a, and a wide strip of it 48 KiB of b
	longDeep   = 128 // the same where a and b are as long: this much of both, and as much of what comes next, is in the cache
	longChunk  = 1024
	maxChunks  = 16
	maxPartial = 1 << 23 // elements of all partial products
	maxPacked  = 1 << 22 // elements of b that are packed at a time
	tasks      = 8       // at least so many, where there is work for them, so that threads end together
	serialWork = 1 << 18 // multiplications, some microseconds: what other threads would not be worth starting for
)

// stripProduct is one product in progress.
type stripProduct struct {
	*strips
	dst        []float32
	n          int // columns of dst
	a          []float32
	aRow, aCol int // op(a)[i][l] is a[i*aRow+l*aCol]
	b          []float32
	bRow       int // elements from one row of op(b) to the next
	bPanel     int // 1, or the rows of b that are packed: then a wide strip's columns lie together, and bRow is their number
}

// matMul is MatMul on several threads. It returns the scratch, grown if need be, for the next call.
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
	if !transB {
		if chunks := longChunks(m, n, k); chunks > 1 {
			return p.long(m, k, chunks, accumulate, scratch, threads)
		}
		p.flat(m, k, accumulate, threads)
		return scratch
	}
	padded := (n + 2*s.lanes - 1) / (2 * s.lanes) * (2 * s.lanes)
	deep := min(k, max(maxPacked/padded/flatDeep, 1)*flatDeep)
	scratch = grow(scratch, padded*deep)
	p.b, p.bRow = scratch, 2*s.lanes
	for l := 0; l < k; l += deep {
		p.bPanel = min(deep, k-l)
		s.pack(scratch, b[l:], n, k, p.bPanel, threads)
		p.a = a[l*p.aCol:]
		p.flat(m, p.bPanel, accumulate || l > 0, threads)
	}
	return scratch
}

func grow(s []float32, n int) []float32 {
	if len(s) < n {
		return make([]float32, n)
	}
	return s
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
	})
}

// longChunks is in how many chunks an inner dimension of k is computed side by side.
func longChunks(m, n, k int) int {
	if m > tasks*stripRows {
		return 1
	}
	return min(k/longChunk, maxChunks, maxPartial/(m*n))
}

// long computes dst by chunks of the inner dimension.
func (p *stripProduct) long(m, k, chunks int, accumulate bool, scratch []float32, threads int) []float32 {
	size := m * p.n
	scratch = grow(scratch, (chunks-1)*size)
	chunk := (k + chunks - 1) / chunks
	parallelFor(threads, chunks, 1, func(c, _ int) {
		b := block{dst: p.dst, i1: m, j1: p.n}
		add := accumulate
		if c > 0 {
			b.dst, add = scratch[(c-1)*size:c*size], false
		}
		end := min((c+1)*chunk, k)
		for l := c * chunk; l < end; l += longDeep {
			b.l0, b.l1 = l, min(l+longDeep, end)
			var h ahead
			if next := min(b.l1+longDeep, end); p.aCol == m {
				h = ahead{first: p.a[b.l1*m : next*m], second: p.b[b.l1*p.n : next*p.n], strips: p.stripCount(b)}
			}
			p.block(b, h, add)
			add = true
		}
	})
	parallelFor(threads, size, chunkElements, func(lo, hi int) {
		whole := (hi - lo) / 8
		if whole > 0 {
			p.add8(&p.dst[lo], &scratch[lo], 4*size, chunks-1, whole)
		}
		for i := lo + 8*whole; i < hi; i++ {
			for c := range chunks - 1 {
				p.dst[i] += scratch[c*size+i]
			}
		}
	})
	return scratch
}

// block is a part of a product: rows i0 to i1 and columns j0 to j1 of dst, summed over l0 to l1 of the inner dimension.
type block struct {
	dst                    []float32 // of the whole product
	i0, i1, j0, j1, l0, l1 int
}

// stripCount is the number of strips of a block.
func (p *stripProduct) stripCount(b block) int {
	cols := b.j1 - b.j0
	across := cols/(2*p.lanes) + (cols%(2*p.lanes)+p.lanes-1)/p.lanes
	return across * ((b.i1 - b.i0 + stripRows - 1) / stripRows)
}

// ahead is memory that will be read soon. The next so many strips fetch equal shares of it.
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
	step = min((4*total/h.strips+steps-1)/steps, 64)
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
			left := &p.a[i*p.aRow+b.l0*p.aCol]
			at, step := h.share((rows + p.tile - 1) / p.tile * k)
			if at == nil {
				at = left
			}
			routine(&b.dst[i*p.n+j], 4*p.n, left, 4*p.aRow, 4*p.aCol, 4*p.aRow*p.tile, right, 4*p.bRow, at, step, rows, cols, k, add)
		}
		j += cols
	}
}

// pack copies the first k columns of b, which has n rows of stride elements, to wide strips, transposed.
func (s *strips) pack(dst, b []float32, n, stride, k, threads int) {
	const piece = 64 // columns of a call: 64 rows of a strip are 8 KiB, written eight columns at a time
	wide := 2 * s.lanes
	parallelFor(threads, n, wide, func(lo, hi int) {
		for l := 0; l < k; l += piece {
			end := min(l+piece, k)
			for r := lo; r < hi; r += 8 {
				to, done := dst[lo*k+r-lo:], l
				if blocks := (end - l) / 8; blocks > 0 && hi-r >= 8 {
					s.pack8(&to[l*wide], 4*wide, &b[r*stride+l], 4*stride, blocks)
					done += 8 * blocks
				}
				for rest := r; rest < min(r+8, hi); rest++ {
					for at := done; at < end; at++ {
						to[at*wide+rest-r] = b[rest*stride+at]
					}
				}
			}
		}
	})
}
