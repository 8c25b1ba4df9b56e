package kernels

// panelGrad is an AffineGrad in progress, for a dy that is long: it is cut into chunks of rows, as
// a long product is, and each row of dy is read once for all that is made of it.
type panelGrad struct {
	*CPU
	dy, y   []float32 // y may be nil
	rows, n int       // of dy
	terms   []gradTerm
	sums    bool // of columns
	anyDX   bool

	chunk, chunks int // rows, number
	weights       int // elements of all DW
	partial       []float32
}

// gradTerm is a term of a panelGrad.
type gradTerm struct {
	x, w   factor
	dw, dx []float32 // may be nil
	in     int
	add    bool
	packed []uint16 // w in panels
}

const (
	gradDeep = 256  // rows of dy that are packed at a time
	gradMost = 1024 // columns of dy and of x
)

// gradByPanels computes an AffineGrad, and returns true, if it is long and narrow enough.
func (c *CPU) gradByPanels(dy, y, dbias Tensor, terms []TermGrad) bool {
	const op = "AffineGrad"
	fits := dy.Rows >= longFrom && dy.Cols > 0 && dy.Cols <= gradMost
	for _, t := range terms {
		fits = fits && !t.Across && t.X.Cols > 0 && t.X.Cols <= gradMost
	}
	if !fits {
		return false
	}
	g := panelGrad{CPU: c, dy: c.floats(op, "dy", dy), rows: dy.Rows, n: dy.Cols}
	if y.Buf != nil {
		g.y = c.floats(op, "y", y)
	}
	var sum []float32
	if g.sums = dbias.Buf != nil; g.sums {
		sum = c.floats(op, "dbias", dbias)
	}
	widest, forW := 0, 0
	for _, t := range terms {
		one := gradTerm{x: c.factor(op, "x", t.X), w: c.factor(op, "w", t.W), in: t.X.Cols, add: t.Add}
		if t.DW.Buf != nil {
			one.dw = c.floats(op, "dw", t.DW)
			g.weights += len(one.dw)
			widest = max(widest, wide(one.in))
		}
		if t.DX.Buf != nil {
			one.dx = c.floats(op, "dx", t.DX)
			forW += padded(g.n) * wide(one.in)
			g.anyDX = true
		}
		for _, d := range [][]float32{one.dw, one.dx} {
			if d != nil {
				c.countProduct(g.rows, g.n, one.in)
			}
		}
		g.terms = append(g.terms, one)
	}
	g.chunks = max(min(g.rows/longChunk, maxChunks, maxPartial/max(g.weights, 1)), 1)
	g.chunk = (padded((g.rows + g.chunks - 1) / g.chunks))
	g.chunks = (g.rows + g.chunk - 1) / g.chunk
	each := g.weights + g.n // elements of a chunk's sums
	c.rounded.partial = grow(c.rounded.partial, g.chunks*each)
	g.partial = c.rounded.partial

	// A worker packs dy twice, as rows and transposed, and the x of a term at a time.
	forRows, forTurned, forX := 0, 0, widest*gradDeep
	if g.anyDX {
		forRows = gradDeep * padded(g.n)
	}
	if g.weights > 0 {
		forTurned = wide(g.n) * gradDeep
	}
	workers := min(c.threads, g.chunks)
	c.rounded.packed = growHalves(c.rounded.packed, forW+workers*(forRows+forTurned+forX))
	room := c.rounded.packed[forW:]
	at := 0
	for i := range g.terms {
		if t := &g.terms[i]; t.dx != nil {
			t.packed = c.rounded.packed[at:][:padded(g.n)*wide(t.in)]
			at += len(t.packed)
			p := panelProduct{panels: c.panels}
			p.packB(t.packed, padded(g.n)*panelCols, t.w, 0, g.n, 0, t.in)
		}
	}
	p := panelProduct{panels: c.panels, threads: c.threads}
	p.forTasks(workers, g.chunks, func(worker, task int) {
		own := room[worker*(forRows+forTurned+forX):]
		g.run(task, own[:forRows], own[forRows:forRows+forTurned], own[forRows+forTurned:][:forX])
	})
	done := 0
	for _, t := range g.terms {
		if t.dw != nil {
			c.elements(len(t.dw), func(lo, hi int) { g.gather(t.dw[lo:hi], done+lo) })
			done += len(t.dw)
		}
	}
	if g.sums {
		g.gather(sum, g.weights)
	}
	return true
}

// wide is n columns filled up to whole panels.
func wide(n int) int { return (n + panelCols - 1) / panelCols * panelCols }

// gather adds to dst what all chunks have for it, in order; it is so far into their sums.
func (g *panelGrad) gather(dst []float32, at int) {
	for c := range g.chunks {
		g.add(dst, g.partial[c*(g.weights+g.n)+at:][:len(dst)])
	}
}

// run computes one chunk, packing in the memory given.
func (g *panelGrad) run(task int, rows, turned, right []uint16) {
	own := g.partial[task*(g.weights+g.n):][:g.weights+g.n]
	sums := own[g.weights:]
	clear(sums)
	p := panelProduct{panels: g.panels, transA: true}
	straight := panelProduct{panels: g.panels}
	deepRow := padded(g.n)
	for l, end := task*g.chunk, min((task+1)*g.chunk, g.rows); l < end; l += gradDeep {
		deep := min(gradDeep, end-l)
		dy := g.dy[l*g.n : (l+deep)*g.n]
		if g.y != nil {
			g.reluMask(dy, g.y[l*g.n:(l+deep)*g.n])
		}
		if g.sums {
			g.columnSumGrad(sums, dy)
		}
		all := factor{f32: dy, row: g.n}
		if g.weights > 0 {
			p.packA(turned, padded(deep), 0, all, 0, g.n, 0, deep)
		}
		if g.anyDX {
			straight.packA(rows, deepRow, 0, all, 0, deep, 0, g.n)
		}
		dw := own
		for _, t := range g.terms {
			if t.dw != nil {
				p.packB(right, gradDeep*panelCols, t.x.at(l, 0), 0, deep, 0, t.in)
				g.panels.block(dw, t.in, turned, right, gradDeep*panelCols, g.n, t.in, deep, l > task*g.chunk)
				dw = dw[len(t.dw):]
			}
			if t.dx != nil {
				g.panels.block(t.dx[l*t.in:], t.in, rows, t.packed, deepRow*panelCols, deep, t.in, g.n, t.add)
			}
		}
	}
}
