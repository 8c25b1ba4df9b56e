package kernels

// panelGrad is an AffineGrad in progress, of a long dy. Threads take chunks of its rows. A chunk
// goes through its rows in pieces, and computes everything from a piece while that is in a cache.
// Each chunk has sums of its own, which are added up in order.
type panelGrad struct {
	*CPU
	dy, y   []float32 // y: the result of a ReLU, or nil
	rows, n int       // of dy
	dbias   []float32 // or nil
	terms   []gradTerm

	chunk, chunks int // rows, and how many
	weights       int // elements of all dw
	partial       []float32
}

// gradTerm is a term of a panelGrad, of in columns. dw and dx may be nil.
type gradTerm struct {
	x, w   factor
	dw, dx []float32
	in     int
	add    bool     // dx is added to
	packed []uint16 // w in panels, for dx
}

const (
	gradDeep = 256  // rows of a piece; with 256 columns, it and its packed copies take 640 KiB
	gradMost = 1024 // columns of dy and of x
)

// gradByPanels computes an AffineGrad that is long and narrow enough. Else it returns false.
func (c *CPU) gradByPanels(dy, y, dbias Tensor, terms []TermGrad) bool {
	weights := 0
	fits := dy.Rows >= tasks*longChunk && dy.Cols > 0 && dy.Cols <= gradMost
	for _, t := range terms {
		weights += t.W.Len()
		fits = fits && !t.Across && t.X.Cols > 0 && t.X.Cols <= gradMost
	}
	if !fits || weights > maxPartial/tasks {
		return false
	}
	lend := func(name string, t Tensor) []float32 {
		if t.Buf == nil {
			return nil
		}
		return c.floats("AffineGrad", name, t)
	}
	g := panelGrad{CPU: c, rows: dy.Rows, n: dy.Cols}
	g.dy, g.y, g.dbias = lend("dy", dy), lend("y", y), lend("dbias", dbias)
	for _, t := range terms {
		one := gradTerm{
			x: c.factor("AffineGrad", "x", t.X), w: factor{f32: c.floats("AffineGrad", "w", t.W), row: t.W.Cols},
			dw: lend("dw", t.DW), dx: lend("dx", t.DX), in: t.X.Cols, add: t.Add,
		}
		for _, d := range [][]float32{one.dw, one.dx} {
			if d != nil {
				c.countProduct(g.rows, g.n, one.in)
			}
		}
		g.weights += len(one.dw)
		g.terms = append(g.terms, one)
	}
	g.chunks = min(g.rows/longChunk, maxChunks, maxPartial/max(g.weights, 1))
	g.chunk = padded((g.rows + g.chunks - 1) / g.chunks)
	g.chunks = (g.rows + g.chunk - 1) / g.chunk
	g.compute()
	return true
}

// gradRoom has the elements that a worker packs: rows of dy as they are, and transposed; and the x
// of one term.
type gradRoom struct{ rows, turned, x int }

// compute packs the weights, does the chunks, and adds up their sums.
func (g *panelGrad) compute() {
	var room gradRoom
	weights := 0 // packed elements
	for _, t := range g.terms {
		if t.dx != nil {
			room.rows = gradDeep * padded(g.n)
			weights += padded(g.n) * wholePanels(t.in)
		}
		if t.dw != nil {
			room.turned = gradDeep * wholePanels(g.n)
			room.x = max(room.x, gradDeep*wholePanels(t.in))
		}
	}
	each, workers := room.rows+room.turned+room.x, min(g.threads, g.chunks)
	s := &g.rounded
	s.packed = growHalves(s.packed, weights+workers*each)
	s.partial = grow(s.partial, g.chunks*(g.weights+g.n))
	g.partial = s.partial
	straight, at := panelProduct{panels: g.panels}, 0
	for i := range g.terms {
		if t := &g.terms[i]; t.dx != nil {
			t.packed = s.packed[at:][:padded(g.n)*wholePanels(t.in)]
			at += len(t.packed)
			panel := padded(g.n) * panelCols
			parallelFor(g.threads, t.in, panelCols, func(lo, hi int) {
				straight.packB(t.packed[lo/panelCols*panel:], panel, t.w, 0, g.n, lo, hi)
			})
		}
	}
	forTasks(g.threads, workers, g.chunks, func(worker, task int) { g.run(task, s.packed[weights+worker*each:], room) })
	at = 0
	for _, t := range g.terms {
		if t.dw != nil {
			g.elements(len(t.dw), func(lo, hi int) { g.addChunks(t.dw[lo:hi], at+lo) })
			at += len(t.dw)
		}
	}
	if g.dbias != nil {
		g.addChunks(g.dbias, g.weights)
	}
}

// addChunks adds to dst what each chunk has for it, in order, from element at of its sums on.
func (g *panelGrad) addChunks(dst []float32, at int) {
	for c := range g.chunks {
		g.add(dst, g.partial[c*(g.weights+g.n)+at:][:len(dst)])
	}
}

// run does one chunk, packing in the memory given.
func (g *panelGrad) run(task int, own []uint16, room gradRoom) {
	rows, turned, right := own[:room.rows], own[room.rows:][:room.turned], own[room.rows+room.turned:][:room.x]
	sums := g.partial[task*(g.weights+g.n):][:g.weights+g.n]
	dbias := sums[g.weights:]
	clear(dbias)
	straight, across := panelProduct{panels: g.panels}, panelProduct{panels: g.panels, transA: true}
	first, end := task*g.chunk, min((task+1)*g.chunk, g.rows)
	for l := first; l < end; l += gradDeep {
		deep := min(gradDeep, end-l)
		dy := g.dy[l*g.n : (l+deep)*g.n]
		if g.y != nil {
			g.reluMask(dy, g.y[l*g.n:(l+deep)*g.n])
		}
		if g.dbias != nil {
			g.columnSumGrad(dbias, dy)
		}
		piece := factor{f32: dy, row: g.n}
		if len(turned) > 0 {
			across.packA(turned, padded(deep), 0, piece, 0, g.n, 0, deep)
		}
		if len(rows) > 0 {
			straight.packA(rows, padded(g.n), 0, piece, 0, deep, 0, g.n)
		}
		dw := sums
		for _, t := range g.terms {
			if t.dw != nil {
				straight.packB(right, gradDeep*panelCols, t.x.at(l, 0), 0, deep, 0, t.in)
				g.panels.block(dw, t.in, turned, right, gradDeep*panelCols, g.n, t.in, deep, l > first)
				dw = dw[len(t.dw):]
			}
			if t.dx != nil {
				g.panels.block(t.dx[l*t.in:], t.in, rows, t.packed, padded(g.n)*panelCols, deep, t.in, g.n, t.add)
			}
		}
	}
}
