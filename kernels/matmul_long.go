package kernels

const (
	longFrom     = 1024      // inner dimension from which it is cut into chunks
	longChunk    = 512       // of a chunk, at least: adding its product to the others is then a fiftieth of the work
	maxChunks    = 16        // and about as many tasks; more threads have no work
	maxPartial   = 8 << 20   // elements of the chunks' products
	longDeep     = 128       // of a piece: 256 columns of a and b are 256 KiB, and as much of the next piece is on its way
	longInPlace  = 96 << 10  // elements of dst, up to which a and b are read where they lie; twice as deep when they are packed
	longElements = 192 << 10 // of a block of dst, about
	longRows     = 672       // of a block, at most, and a multiple of both tiles
	longCols     = 256       // of a block, at least
	packReuse    = 128       // rows or columns of a block: what packing the other operand is worth while for
)

// longProduct is a product in progress whose inner dimension is long, and b not transposed. A task
// is a block of dst, of a chunk of the inner dimension, which it goes through in pieces.
type longProduct struct {
	stripProduct
	m, k           int
	rows, cols     int // of a block
	down, across   int // blocks
	chunks, chunk  int // number and size
	deep           int // of a piece
	packsA, packsB bool
	partial        []float32 // the products of all chunks but the first, which is dst
}

// long computes all of dst, and returns the scratch.
func (p stripProduct) long(m, k int, accumulate bool, scratch []float32, threads int) []float32 {
	q := longProduct{stripProduct: p, m: m, k: k}
	forA, forB := q.plan()
	size, count := len(p.dst), q.chunks*q.down*q.across
	workers := min(threads, count)
	scratch = grow(scratch, (q.chunks-1)*size+workers*(forA+forB))
	q.partial = scratch[:(q.chunks-1)*size]
	packed := scratch[len(q.partial):]
	forTasks(threads, workers, count, func(worker, task int) {
		own := packed[worker*(forA+forB):][:forA+forB]
		q.run(task, own[:forA], own[forA:], accumulate)
	})
	if q.chunks > 1 {
		parallelFor(threads, size, chunkElements, func(lo, hi int) {
			addPartials(q.add8, q.dst, q.partial, q.chunks-1, lo, hi)
		})
	}
	return scratch
}

// plan decides how the product is cut, by its shape alone, and returns the elements that a worker
// packs of a and of b.
func (p *longProduct) plan() (forA, forB int) {
	wide, size := 2*p.lanes, len(p.dst)
	p.rows, p.cols = p.m, p.n
	if down := (p.m + longRows - 1) / longRows; down > 1 {
		p.rows = (p.m + down*p.tile - 1) / (down * p.tile) * p.tile
	}
	if across := p.n / max(longCols, longElements/p.rows); across > 1 {
		p.cols = (p.n + across*wide - 1) / (across * wide) * wide
	}
	p.down, p.across = (p.m+p.rows-1)/p.rows, (p.n+p.cols-1)/p.cols
	blocks := p.down * p.across
	p.chunks = max(min(p.k/longChunk, (maxChunks+blocks-1)/blocks, maxPartial/size), 1)
	p.chunk = (p.k + p.chunks - 1) / p.chunks
	p.deep = longDeep
	if size > longInPlace {
		p.packsA, p.packsB = p.aRow == 1 && p.cols >= packReuse, p.rows >= packReuse
		p.deep *= 2
	}
	if p.packsA {
		forA = (p.rows + p.tile - 1) / p.tile * p.tile * p.deep
	}
	if p.packsB {
		forB = (p.cols + wide - 1) / wide * wide * p.deep
	}
	return forA, forB
}

// run does one task, packing in the memory given.
func (p *longProduct) run(task int, forA, forB []float32, accumulate bool) {
	c, i, j := task/(p.down*p.across), task/p.across%p.down*p.rows, task%p.across*p.cols
	dst, add := p.dst, accumulate
	if c > 0 {
		dst, add = p.partial[(c-1)*len(p.dst):c*len(p.dst)], false
	}
	rows, cols := min(p.rows, p.m-i), min(p.cols, p.n-j)
	for l, end := c*p.chunk, min((c+1)*p.chunk, p.k); l < end; l += p.deep {
		// The block is all of a smaller product.
		b := block{dst: dst[i*p.n+j:], i1: rows, j1: cols, l1: min(p.deep, end-l)}
		q := p.stripProduct
		q.a, q.b = p.a[i*p.aRow+l*p.aCol:], p.b[l*p.n+j:]
		if p.packsA {
			p.packA(forA, q.a, rows, p.aCol, b.l1)
			q.a, q.aCol, q.aTile = forA, p.tile, p.tile*b.l1
		}
		if p.packsB {
			p.packB(forB, q.b, cols, p.n, b.l1, b.l1)
			q.b, q.bRow, q.bPanel = forB, 2*p.lanes, b.l1
		}
		var h ahead
		if soon, later := l+b.l1, min(l+b.l1+p.deep, end); len(p.dst) <= longInPlace && p.aRow == 1 {
			h = ahead{first: p.a[soon*p.m : later*p.m], second: p.b[soon*p.n : later*p.n], strips: p.stripCount(b)}
		}
		q.block(b, h, add)
		add = true
	}
}

// addPartials adds so many products of dst's size, which lie one behind the other, to elements lo
// to hi of dst.
func addPartials(add8 func(dst, src *float32, srcRow, rows, blocks int), dst, partial []float32, count, lo, hi int) {
	blocks := (hi - lo) / 8
	if blocks > 0 {
		add8(&dst[lo], &partial[lo], 4*len(dst), count, blocks)
	}
	for i := lo + 8*blocks; i < hi; i++ {
		for c := range count {
			dst[i] += partial[c*len(dst)+i]
		}
	}
}
