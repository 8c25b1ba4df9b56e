package kernels

import "unsafe"

// Products in bfloat16. A bfloat16 is the upper half of a float32: its sign and exponent, and 7 of
// its 23 bits of mantissa.
//
// What is rounded: both factors of a product, as they are packed, to nearest, ties to even. A NaN
// stays one and becomes quiet; a value from 2¹²⁸·(1-2⁻⁹) on becomes infinite; a denormal becomes a
// zero of its sign. float16 factors are widened first, which is exact. Nothing else is rounded: a
// product of two bfloat16 is exact in float32, and sums are float32.
//
// In which order it is added: an element of dst starts from 0, or from what it has with accumulate.
// The inner dimension is taken in order. Behind its end it is filled with zeros.
//
//   - avx512bf16 takes elements in pairs, 2p and 2p+1, and adds the product of 2p+1 first and then
//     the product of 2p, as VDPBF16PS does.
//   - amx adds, for every 32 elements, one number: the products of even elements are summed in
//     order, and so are the odd ones, and the number is the sum of the two, as TDPBF16PS has it.
//   - portable adds as it does in float32, with factors that are rounded.
//
// amx and avx512bf16 read a denormal as a zero of its sign. A result below the smallest normal
// number, after rounding to 24 bits, becomes zero. A long inner dimension is cut into chunks whose
// products are added up in order, as float32 are. Where it is cut depends on the shape alone. In
// AffineGrad each chunk of a gradient of weights starts from 0, and is added to the gradient.
//
// How factors are packed: a row of op(a) lies along the inner dimension, filled up to a multiple of
// 32 elements. op(b) lies in panels of 32 columns, as rows of pairs: row p has elements 2p and 2p+1
// of each column side by side. A pair is 32 bits in both, so transposing a
// factor moves whole pairs.

// factor is an operand in memory, float32 or float16, whose rows start row elements apart.
type factor struct {
	f32 []float32
	f16 []uint16
	row int
}

// at is the factor from row r and column c on.
func (f factor) at(r, c int) factor {
	from := r*f.row + c
	if f.f16 != nil {
		return factor{f16: f.f16[from:], row: f.row}
	}
	return factor{f32: f.f32[from:], row: f.row}
}

// panels has the routines of one kernel set for products in bfloat16. Its generator, _gen/bf16,
// describes them. Sizes are in elements, distances in bytes.
type panels struct {
	roundRows      func(dst *uint16, dstRow, dstStep int, src *float32, srcRow, rows, cols int)
	roundRowsHalf  func(dst *uint16, dstRow, dstStep int, src *uint16, srcRow, rows, cols int)
	roundPairs     func(dst *uint16, panel int, src *float32, srcRow, rows, cols int)
	roundPairsHalf func(dst *uint16, panel int, src *uint16, srcRow, rows, cols int)
	turnRows       func(dst *uint16, src *float32, srcRow, rows, cols int)
	turnPairs      func(dst *uint16, dstRow int, src *float32, srcRow, rows, cols int)
	turnPairsHalf  func(dst *uint16, dstRow int, src *uint16, srcRow, rows, cols int)
	add8           func(dst, src *float32, srcRow, rows, blocks int)

	// multiply computes rows×cols elements of dst from packed factors, over k elements.
	multiply func(dst *float32, dstRow int, a, b *uint16, panel, rows, cols, k int, add bool)
	most     int  // multiplications of a call, at most: 100 µs of work
	blocked  bool // op(a) is packed in blocks of 32 rows: 32 elements of each row, then the next 32 of each
}

const (
	panelCols  = 32
	panelDeep  = 1024    // elements of the inner dimension that are packed at a time
	panelRows  = 128     // of a block of dst: with panelDeep, 256 KiB of a
	packMost   = 1 << 16 // elements that a call rounds, at most: some 10 µs
	panelBlock = 1 << 18 // elements of b that are packed at a time, 512 KiB, for the second-level cache
	turnedDeep = 256     // elements of a long inner dimension that are packed at a time
	turnedRows = 256     // of a block of dst, there
	turnedCols = 512
)

// panelTerm is one product of a sum of them: op(a)·op(b), over k elements.
type panelTerm struct {
	a, b factor
	k    int
}

// panelProduct is a sum of products in progress: dst = Σ op(a)·op(b), or dst += … with accumulate.
type panelProduct struct {
	*panels
	dst            []float32
	m, n           int
	terms          []panelTerm
	transA, transB bool
	accumulate     bool
	after          func(i0, i1, j0, j1 int) // if not nil, called once for each block of dst, while it is in a cache
	threads        int
}

// panelScratch is memory that is kept between products.
type panelScratch struct {
	packed  []uint16
	partial []float32

	left, right []float32 // rounded factors, of the portable set
}

// compute computes the product.
func (p *panelProduct) compute(s *panelScratch) {
	if p.m*p.n == 0 {
		return
	}
	total := 0
	for _, t := range p.terms {
		total += t.k
	}
	if total == 0 {
		if !p.accumulate {
			clear(p.dst)
		}
		if p.after != nil {
			p.after(0, p.m, 0, p.n)
		}
		return
	}
	if p.m*p.n*total < serialWork {
		p.threads = 1
	}
	if len(p.terms) == 1 && !p.transB && total >= longFrom && (p.transA || p.m <= tasks*panelRows) {
		p.long(s)
		return
	}
	p.flat(s)
}

// pieceOf is a part of the inner dimension of one term.
type pieceOf struct {
	panelTerm
	l0, k int
}

// passes cuts the inner dimension into parts that are packed at a time: few terms, or a piece of
// one.
func (p *panelProduct) passes() [][]pieceOf {
	var all [][]pieceOf
	room := 0
	for _, t := range p.terms {
		if t.k == 0 {
			continue
		}
		pieces := (t.k + panelDeep - 1) / panelDeep
		deep := padded((t.k + pieces - 1) / pieces)
		for l := 0; l < t.k; l += deep {
			one := pieceOf{t, l, min(deep, t.k-l)}
			if len(all) == 0 || padded(one.k) > room {
				all, room = append(all, nil), panelDeep
			}
			room -= padded(one.k)
			all[len(all)-1] = append(all[len(all)-1], one)
		}
	}
	return all
}

// padded is the length of a packed row: k filled up with zeros.
func padded(k int) int { return (k + 31) &^ 31 }

// wholePanels is n columns filled up to whole panels.
func wholePanels(n int) int { return (n + panelCols - 1) / panelCols * panelCols }

// flat computes all of dst: b is packed a block of columns at a time, and a by the task that reads
// it.
func (p *panelProduct) flat(s *panelScratch) {
	passes := p.passes()
	for i, pieces := range passes {
		deep := 0
		for _, one := range pieces {
			deep += padded(one.k)
		}
		cols := max(panelBlock/deep/panelCols, 1) * panelCols
		for j0 := 0; j0 < p.n; j0 += cols {
			b := panelPass{panelProduct: p, pieces: pieces, deep: deep, j0: j0, j1: min(j0+cols, p.n),
				add: p.accumulate || i > 0, last: i == len(passes)-1}
			b.run(s)
		}
	}
}

// panelPass computes some columns of dst, over some pieces of the inner dimension.
type panelPass struct {
	*panelProduct
	pieces    []pieceOf
	deep      int // elements of a packed row
	j0, j1    int
	add, last bool
}

func (p *panelPass) run(s *panelScratch) {
	width := p.j1 - p.j0
	rows := min(panelRows, (p.m+tasks*panelCols-1)/(tasks*panelCols)*panelCols)
	down := (p.m + rows - 1) / rows
	cols := wholePanels(width)
	whole := cols
	if down < tasks {
		across := (tasks + down - 1) / down
		cols = (width + across*panelCols - 1) / (across * panelCols) * panelCols
	}
	across := (width + cols - 1) / cols
	count := down * across
	workers := min(p.threads, count)
	s.packed = growHalves(s.packed, (whole+workers*rows)*p.deep)
	packedB := s.packed[:whole*p.deep]
	parallelFor(p.threads, whole/panelCols, max(1, (1<<14)/(p.deep*panelCols)), func(lo, hi int) {
		l := 0
		for _, one := range p.pieces {
			to := packedB[lo*panelCols*p.deep+l*panelCols:]
			p.packB(to, p.deep*panelCols, one.b, one.l0, one.k, p.j0+lo*panelCols, min(p.j0+hi*panelCols, p.j1))
			l += padded(one.k)
		}
	})
	forTasks(p.threads, workers, count, func(worker, task int) {
		i0, j0 := task/across*rows, task%across*cols
		i1, j1 := min(i0+rows, p.m), min(j0+cols, width)
		a := s.packed[whole*p.deep+worker*rows*p.deep:][:rows*p.deep]
		l := 0
		for _, one := range p.pieces {
			p.packA(a, p.deep, l, one.a, i0, i1, one.l0, one.k)
			l += padded(one.k)
		}
		p.block(p.dst[i0*p.n+p.j0+j0:], p.n, a, packedB[j0*p.deep:], p.deep*panelCols, i1-i0, j1-j0, p.deep, p.add)
		if p.last && p.after != nil {
			p.after(i0, i1, p.j0+j0, p.j0+j1)
		}
	})
}

// block multiplies packed factors, at most so much a call that Go can preempt in time.
func (p *panels) block(dst []float32, dstRow int, a, b []uint16, panel, rows, cols, k int, add bool) {
	down := min(rows, max(p.most/(k*panelCols)&^31, 32))
	across := max(p.most/(down*k)/panelCols, 1) * panelCols
	for i := 0; i < rows; i += down {
		for j := 0; j < cols; j += across {
			p.multiply(&dst[i*dstRow+j], 4*dstRow, &a[i*padded(k)], &b[j/panelCols*panel], 2*panel,
				min(down, rows-i), min(across, cols-j), k, add)
		}
	}
}

// packA rounds rows i0 to i1 of op(a), k elements from l0 on, to rows of deep elements, from their
// element at on.
func (p *panelProduct) packA(dst []uint16, deep, at int, a factor, i0, i1, l0, k int) {
	group, row, step := min(i1-i0, max(packMost/k, 1)), deep, 32
	if p.blocked {
		group, row, step = 32, 32, 32*32
	}
	for i := i0; i < i1; i += group {
		to, rows := dst[(i-i0)*deep+at/32*step:], min(group, i1-i)
		if !p.transA {
			if from := a.at(i, l0); from.f16 != nil {
				p.roundRowsHalf(&to[0], 2*row, 2*step, &from.f16[0], 2*a.row, rows, k)
			} else {
				p.roundRows(&to[0], 2*row, 2*step, &from.f32[0], 4*a.row, rows, k)
			}
			continue
		}
		for l := 0; l < k; l += 32 {
			to := &to[l/32*step]
			if from := a.at(l0+l, i); from.f16 != nil {
				p.turnPairsHalf(to, 2*row, &from.f16[0], 2*a.row, min(32, k-l), rows)
			} else {
				p.turnPairs(to, 2*row, &from.f32[0], 4*a.row, min(32, k-l), rows)
			}
		}
	}
}

// packB rounds columns j0 to j1 of op(b), k elements from l0 on, to panels that are panel elements
// apart.
func (p *panelProduct) packB(dst []uint16, panel int, b factor, l0, k, j0, j1 int) {
	if p.transB {
		for j := j0; j < j1; j += panelCols / 2 {
			at := (j-j0)/panelCols*panel + (j-j0)%panelCols*2
			p.turnRows(&dst[at], &b.at(j, l0).f32[0], 4*b.row, min(panelCols/2, j1-j), k)
		}
		return
	}
	step := max(packMost/(j1-j0)&^1, 2)
	for l := 0; l < k; l += step {
		to, rows := &dst[l*panelCols], min(step, k-l)
		if from := b.at(l0+l, j0); from.f16 != nil {
			p.roundPairsHalf(to, 2*panel, &from.f16[0], 2*b.row, rows, j1-j0)
		} else {
			p.roundPairs(to, 2*panel, &from.f32[0], 4*b.row, rows, j1-j0)
		}
	}
	if done, all := (k+1)/2*2, padded(k); done < all {
		for at := 0; at < (j1-j0+panelCols-1)/panelCols; at++ {
			clear(dst[at*panel+done*panelCols : at*panel+all*panelCols])
		}
	}
}

// long computes dst where the inner dimension is long: it is cut into chunks that threads compute
// side by side.
func (p *panelProduct) long(s *panelScratch) {
	a, b, k := p.terms[0].a, p.terms[0].b, p.terms[0].k
	size := len(p.dst)
	rows, cols := min(p.m, turnedRows), min(p.n, turnedCols)
	down, across := (p.m+rows-1)/rows, (p.n+cols-1)/cols
	blocks := down * across
	chunks := max(min(k/longChunk, (maxChunks+blocks-1)/blocks, maxPartial/size), 1)
	chunk := padded((k + chunks - 1) / chunks)
	chunks = (k + chunk - 1) / chunk
	count := chunks * blocks
	workers := min(p.threads, count)
	wide, high := wholePanels(cols), wholePanels(rows)
	s.partial = grow(s.partial, (chunks-1)*size)
	s.packed = growHalves(s.packed, workers*(high+wide)*turnedDeep)
	forTasks(p.threads, workers, count, func(worker, task int) {
		c, i0, j0 := task/blocks, task/across%down*rows, task%across*cols
		i1, j1 := min(i0+rows, p.m), min(j0+cols, p.n)
		dst, add := p.dst, p.accumulate
		if c > 0 {
			dst, add = s.partial[(c-1)*size:c*size], false
		}
		own := s.packed[worker*(high+wide)*turnedDeep:][:(high+wide)*turnedDeep]
		packedA, packedB := own[:high*turnedDeep], own[high*turnedDeep:]
		for l, end := c*chunk, min((c+1)*chunk, k); l < end; l += turnedDeep {
			deep := min(turnedDeep, end-l)
			p.packA(packedA, padded(deep), 0, a, i0, i1, l, deep)
			p.packB(packedB, turnedDeep*panelCols, b, l, deep, j0, j1)
			p.block(dst[i0*p.n+j0:], p.n, packedA, packedB, turnedDeep*panelCols, i1-i0, j1-j0, deep, add)
			add = true
		}
	})
	if chunks > 1 {
		parallelFor(p.threads, size, chunkElements, func(lo, hi int) {
			addPartials(p.add8, p.dst, s.partial, chunks-1, lo, hi)
		})
	}
}

// growHalves is grow, for memory whose start is aligned to a cache line.
func growHalves(s []uint16, n int) []uint16 {
	if len(s) >= n {
		return s
	}
	const line = 64
	s = make([]uint16, n+line/2)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(s))) % line / 2)
	return s[off:][:n]
}
