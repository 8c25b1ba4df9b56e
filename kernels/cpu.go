package kernels

import (
	"runtime"
	"sync/atomic"
)

// CPU is the Backend that computes in host memory, on several threads, with the fastest loops that
// the machine has. Use [NewCPU].
type CPU struct {
	inHost[float32]
	routines
	threads int
	bf16    bool // products

	flops, bytes atomic.Int64 // see Work

	chain chain

	// Scratch, kept between calls.
	partial []float32 // sums of fixed chunks of rows
	packed  []float32 // pieces of matrices, transposed
	weights []float32 // of rows, or of edges by source
	rounded panelScratch
}

var _ Backend = (*CPU)(nil)

// CPUOptions configures NewCPU. The zero value works.
type CPUOptions struct {
	Threads int // goroutines in an operation, at most; 0 means GOMAXPROCS at this moment. Results do not depend on it
	Set     Set // one of SetsOf(Products); empty or "auto" means its first
	// Products is Float32, the default, or BF16.
	Products Precision
}

// NewCPU returns a CPU backend. It panics when this machine cannot run o.Set: see [ParseSet].
func NewCPU(o CPUOptions) *CPU {
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	set, err := ParseSet(string(o.Set), o.Products)
	if err != nil {
		panic("kernels: NewCPU: " + err.Error())
	}
	return &CPU{routines: routinesOf(set), threads: o.Threads, bf16: o.Products == BF16}
}

// Name implements [Backend]: it is the kernel set.
func (c *CPU) Name() string { return string(c.set) }

// Alloc implements [Backend]. Buffers of 64 KiB and more are a [HostBuf].
func (*CPU) Alloc(t DType, n int) Buffer { return newHostMemory(t, n) }

// Work implements [Worker].
func (c *CPU) Work() Work { return Work{c.flops.Load(), c.bytes.Load()} }

// floats, halves, uints and adjacency lend operands, and count their bytes. They settle first.
func (c *CPU) floats(op, name string, t Tensor) []float32 {
	c.settle()
	return c.counted(op, name, t)
}

// counted is floats without settle.
func (c *CPU) counted(op, name string, t Tensor) []float32 {
	s := c.inHost.floats(op, name, t)
	c.bytes.Add(4 * int64(len(s)))
	return s
}

func (c *CPU) halves(op, name string, t Tensor) []uint16 {
	c.settle()
	s := c.inHost.halves(op, name, t)
	c.bytes.Add(2 * int64(len(s)))
	return s
}

func (c *CPU) uints(op, name string, t Tensor) []uint32 {
	c.settle()
	return c.countedIDs(op, name, t)
}

// countedIDs is uints without settle.
func (c *CPU) countedIDs(op, name string, t Tensor) []uint32 {
	s := c.inHost.uints(op, name, t)
	c.bytes.Add(4 * int64(len(s)))
	return s
}

func (c *CPU) adjacency(op string, g Adjacency) (start, end, nbr []uint32) {
	return c.uints(op, "Start", g.Start), c.uints(op, "End", g.End), c.uints(op, "Nbr", g.Nbr)
}

// UploadF32 implements [Backend].
func (c *CPU) UploadF32(dst Tensor, src []float32) {
	checkLen("UploadF32", dst, len(src))
	c.settleAt(dst.Buf)
	copy(c.inHost.floats("UploadF32", "dst", dst), src)
}

// DownloadF32 implements [Backend].
func (c *CPU) DownloadF32(dst []float32, src Tensor) {
	checkLen("DownloadF32", src, len(dst))
	c.settleAt(src.Buf)
	copy(dst, c.inHost.floats("DownloadF32", "src", src))
}

// FetchF32 implements [Backend].
func (c *CPU) FetchF32(dst []float32, src Tensor) { c.DownloadF32(dst, src) }

// UploadU32 implements [Backend].
func (c *CPU) UploadU32(dst Tensor, src []uint32) {
	c.settleAt(dst.Buf)
	c.inHost.UploadU32(dst, src)
}

// Free implements [Backend].
func (c *CPU) Free(b Buffer) {
	c.settleAt(b)
	c.inHost.Free(b)
}

// Mark implements [Backend]. It does what waits.
func (c *CPU) Mark() (wait func()) {
	c.settle()
	return c.inHost.Mark()
}

// CheckFinite implements [Backend].
func (c *CPU) CheckFinite(void, src Tensor) {
	c.settle()
	c.inHost.CheckFinite(void, src)
}

// Host implements [Backend].
func (c *CPU) Host(t Tensor) (b []byte, ok bool) {
	c.settleAt(t.Buf)
	if t.Type == F32 {
		return bytesOf(c.inHost.floats("Host", "tensor", t))
	}
	return c.inHost.Host(t)
}

// grow returns scratch of n elements at least: s, or more in its place without what s held.
func grow(s []float32, n int) []float32 {
	if len(s) < n {
		return make([]float32, n)
	}
	return s
}

// each calls f to compute the elements of dst from the elements of src.
func (c *CPU) each(op string, dst, src Tensor, f func(dst, src []float32)) {
	checkSame(op, "dst", dst, "src", src)
	d, s := c.floats(op, "dst", dst), c.floats(op, "src", src)
	c.elements(len(d), func(lo, hi int) { f(d[lo:hi], s[lo:hi]) })
}

// eachGrad calls f to add dy times a slope to dx, element by element. f finds the slope from at,
// which panics call name.
func (c *CPU) eachGrad(op string, dx, dy Tensor, name string, at Tensor, f func(dx, dy, at []float32)) {
	checkSame(op, "dx", dx, "dy", dy)
	checkSame(op, "dx", dx, name, at)
	d, g, v := c.floats(op, "dx", dx), c.floats(op, "dy", dy), c.floats(op, name, at)
	c.elements(len(d), func(lo, hi int) { f(d[lo:hi], g[lo:hi], v[lo:hi]) })
}

// rows splits the rows of a tensor with this many columns.
func (c *CPU) rows(rows, cols int, work func(lo, hi int)) {
	parallelFor(c.threads, rows, chunkRows(cols), work)
}

// elements splits n elements where rows do not matter.
func (c *CPU) elements(n int, work func(lo, hi int)) {
	parallelFor(c.threads, n, chunkElements, work)
}

// maxPartials bounds the scratch of a sum over rows: at most this many partial sums, however many
// rows there are.
const maxPartials = 64

// sumRows runs work over fixed chunks of rows, each with a zeroed partial sum of width elements,
// then adds the partial sums in the order of the chunks to what into names.
func (c *CPU) sumRows(rows, width int, work func(partial []float32, lo, hi int), into func(partial []float32)) {
	chunk := max(chunkRows(width), (rows+maxPartials-1)/maxPartials)
	chunks := (rows + chunk - 1) / chunk
	c.partial = grow(c.partial, chunks*width)
	partials := c.partial[:chunks*width]
	clear(partials)
	parallelFor(c.threads, rows, chunk, func(lo, hi int) {
		i := lo / chunk
		work(partials[i*width:(i+1)*width], lo, hi)
	})
	for ; len(partials) > 0 && width > 0; partials = partials[width:] {
		into(partials[:width])
	}
}

// Fill implements [Backend].
func (c *CPU) Fill(dst Tensor, v float32) {
	d := c.floats("Fill", "dst", dst)
	c.elements(len(d), func(lo, hi int) { c.fill(d[lo:hi], v) })
}

// Convert implements [Backend].
func (c *CPU) Convert(dst, src Tensor) {
	checkSame("Convert", "dst", dst, "src", src)
	d := c.floats("Convert", "dst", dst)
	if src.Type == F16 {
		s := c.halves("Convert", "src", src)
		c.elements(len(d), func(lo, hi int) { c.widen(d[lo:hi], s[lo:hi]) })
		return
	}
	s := c.floats("Convert", "src", src)
	c.elements(len(d), func(lo, hi int) { copy(d[lo:hi], s[lo:hi]) })
}

// Add implements [Backend].
func (c *CPU) Add(dst, src Tensor) { c.each("Add", dst, src, c.add) }

// AddRow implements [Backend].
func (c *CPU) AddRow(dst, row Tensor) {
	checkRow("AddRow", "dst", dst, "row", row)
	d, r, n := c.floats("AddRow", "dst", dst), c.floats("AddRow", "row", row), dst.Cols
	c.rows(dst.Rows, n, func(lo, hi int) { c.addRow(d[lo*n:hi*n], r) })
}

// ColumnSumGrad implements [Backend].
func (c *CPU) ColumnSumGrad(drow, src Tensor) {
	checkRow("ColumnSumGrad", "src", src, "drow", drow)
	n := src.Cols
	d, s := c.floats("ColumnSumGrad", "drow", drow), c.floats("ColumnSumGrad", "src", src)
	c.sumRows(src.Rows, n, func(partial []float32, lo, hi int) {
		c.columnSumGrad(partial, s[lo*n:hi*n])
	}, func(partial []float32) { c.add(d, partial) })
}

// NeighborMean implements [Backend].
func (c *CPU) NeighborMean(dst, src Tensor, g Adjacency) {
	const op = "NeighborMean"
	checkNeighborMean(dst, src, g)
	d, n := c.floats(op, "dst", dst), dst.Cols
	start, end, nbr := c.adjacency(op, g)
	if src.Type == F16 {
		s := c.halves(op, "src", src)
		c.lists(dst.Rows, n, func(lo, hi int) { c.neighborMeanHalf(d[lo*n:hi*n], s, n, start[lo:hi], end[lo:hi], nbr) })
		return
	}
	s := c.floats(op, "src", src)
	c.lists(dst.Rows, n, func(lo, hi int) { c.neighborMean(d[lo*n:hi*n], s, n, start[lo:hi], end[lo:hi], nbr) })
}

// lists splits the rows of an aggregation. A row is worth four elsewhere: it may add ten
// neighbours, of fewer bytes each.
func (c *CPU) lists(rows, cols int, work func(lo, hi int)) {
	parallelFor(c.threads, rows, chunkRows(4*cols), work)
}

// NeighborMeanGrad implements [Backend].
func (c *CPU) NeighborMeanGrad(dsrc, ddst Tensor, g Adjacency, fresh int) {
	const op = "NeighborMeanGrad"
	checkNeighborMeanGrad(dsrc, ddst, g, fresh)
	ds, dd, n := c.floats(op, "dsrc", dsrc), c.floats(op, "ddst", ddst), dsrc.Cols
	start, end := c.uints(op, "Start", g.Start), c.uints(op, "End", g.End)
	revStart, revDst := c.uints(op, "RevStart", g.RevStart), c.uints(op, "RevDst", g.RevDst)
	c.weights = grow(c.weights, len(start))
	inverseDegrees(c.weights, start, end)
	c.lists(dsrc.Rows, n, func(lo, hi int) {
		sums := func(lo, hi int, fresh bool) {
			from, to := revStart[lo:hi], revStart[lo+1:hi+1]
			c.rowWeightedSum(ds[lo*n:hi*n], dd, n, from, to, revDst, c.weights[:len(start)], fresh)
		}
		from := min(max(lo, fresh), hi)
		sums(lo, from, false)
		sums(from, hi, true)
	})
}

// ReLU implements [Backend].
func (c *CPU) ReLU(dst, src Tensor) {
	checkSame("ReLU", "dst", dst, "src", src)
	d, s := c.counted("ReLU", "dst", dst), c.counted("ReLU", "src", src)
	if !c.takesReLU(dst, src) {
		c.settle()
		c.elements(len(d), func(lo, hi int) { c.relu(d[lo:hi], s[lo:hi]) })
	}
}

// ReLUGrad implements [Backend].
func (c *CPU) ReLUGrad(dx, dy, y Tensor) {
	c.eachGrad("ReLUGrad", dx, dy, "y", y, c.reluGrad)
}

// ReLUMask implements [Backend].
func (c *CPU) ReLUMask(d, y Tensor) {
	checkSame("ReLUMask", "d", d, "y", y)
	c.counted("ReLUMask", "d", d)
	c.counted("ReLUMask", "y", y)
	if !c.takesMask(d, y) {
		c.settle()
		c.defers(func(w *chain) { w.slope = &waitingSlope{d: d, y: y} })
	}
}

// Dropout implements [Backend].
func (c *CPU) Dropout(dst, src, ids Tensor, key uint64, p float32) {
	checkDropout("Dropout", dst, src, ids, p)
	d, id, n := c.counted("Dropout", "dst", dst), c.countedIDs("Dropout", "ids", ids), dst.Cols
	if dst == src && dst.Type == F32 {
		c.counted("Dropout", "src", src)
		if !c.takesDropout(dst, id, key, p) {
			c.settle()
			c.defers(func(w *chain) { w.slope = &waitingSlope{d: dst, ids: ids, key: key, p: p} })
		}
		return
	}
	c.settle()
	if src.Type == F16 {
		s := c.halves("Dropout", "src", src)
		c.rows(dst.Rows, n, func(lo, hi int) { c.dropoutHalf(d[lo*n:hi*n], s[lo*n:hi*n], id[lo:hi], n, key, p) })
		return
	}
	s := c.floats("Dropout", "src", src)
	c.rows(dst.Rows, n, func(lo, hi int) { c.dropout(d[lo*n:hi*n], s[lo*n:hi*n], id[lo:hi], n, key, p) })
}

// DropoutGrad implements [Backend].
func (c *CPU) DropoutGrad(dx, dy, ids Tensor, key uint64, p float32) {
	checkDropout("DropoutGrad", dx, dy, ids, p)
	d, s, n := c.floats("DropoutGrad", "dx", dx), c.floats("DropoutGrad", "dy", dy), dx.Cols
	id := c.uints("DropoutGrad", "ids", ids)
	c.rows(dx.Rows, n, func(lo, hi int) { c.dropoutGrad(d[lo*n:hi*n], s[lo*n:hi*n], id[lo:hi], n, key, p) })
}

// LayerNorm implements [Backend].
func (c *CPU) LayerNorm(dst, stats, x, gain, bias Tensor, eps float32) {
	const op = "LayerNorm"
	checkLayerNorm(dst, stats, x, gain, bias)
	c.floats(op, "dst", dst)
	c.floats(op, "stats", stats)
	c.floats(op, "x", x)
	c.floats(op, "gain", gain)
	c.floats(op, "bias", bias)
	if x.Cols == 0 {
		return
	}
	c.defers(func(w *chain) { w.norm = &waitingNorm{dst: dst, stats: stats, x: x, gain: gain, bias: bias, eps: eps} })
}

// LayerNormGrad implements [Backend].
func (c *CPU) LayerNormGrad(dx, dgain, dbias, dy, x, stats, gain Tensor, fresh bool) {
	const op = "LayerNormGrad"
	checkLayerNormGrad(dx, dgain, dbias, dy, x, stats, gain)
	before, done := c.takesSlope(dy)
	if before != nil {
		defer done()
	} else {
		c.settle()
	}
	d, v, up, n := c.counted(op, "dx", dx), c.counted(op, "x", x), c.counted(op, "dy", dy), x.Cols
	dg, db := c.counted(op, "dgain", dgain), c.counted(op, "dbias", dbias)
	st, g := c.counted(op, "stats", stats), c.counted(op, "gain", gain)
	c.sumRows(x.Rows, 2*n, func(partial []float32, lo, hi int) {
		tiles(lo, hi, n, func(lo, hi int) {
			if before != nil {
				before(lo, hi)
			}
			d, up, v := d[lo*n:hi*n], up[lo*n:hi*n], v[lo*n:hi*n]
			c.layerNormGrad(d, partial[:n], partial[n:], up, v, st[2*lo:2*hi], g, fresh)
		})
	}, func(partial []float32) {
		c.add(dg, partial[:n])
		c.add(db, partial[n:])
	})
}

// SoftmaxCrossEntropy implements [Backend].
func (c *CPU) SoftmaxCrossEntropy(loss, dlogits, logits, labels Tensor, scale float32) {
	const op = "SoftmaxCrossEntropy"
	checkSoftmaxCrossEntropy(loss, dlogits, logits, labels)
	l, d, x, n := c.floats(op, "loss", loss), c.floats(op, "dlogits", dlogits), c.floats(op, "logits", logits), logits.Cols
	label := c.uints(op, "labels", labels)
	if n == 0 {
		return
	}
	checkLabels(label, n)
	// An exponential costs about as much as eight elements of anything else.
	c.rows(logits.Rows, 8*n, func(lo, hi int) {
		c.softmaxCrossEntropy(l[lo:hi], d[lo*n:hi*n], x[lo*n:hi*n], label[lo:hi], n, scale)
	})
}

// ArgMax implements [Backend].
func (c *CPU) ArgMax(dst, src Tensor) {
	checkArgMax(dst, src)
	d, s, n := c.uints("ArgMax", "dst", dst), c.floats("ArgMax", "src", src), src.Cols
	if n == 0 {
		return
	}
	c.rows(src.Rows, n, func(lo, hi int) { c.argMax(d[lo:hi], s[lo*n:hi*n], n) })
}

// Adam implements [Backend].
func (c *CPU) Adam(params []AdamParam, keep float32, s AdamStep, of Guard) {
	checkAdam(params)
	void, scale := c.guard("Adam", of)
	for _, p := range params {
		w, g := c.floats("Adam", "value", p.Value), c.floats("Adam", "grad", p.Grad)
		m, v := c.floats("Adam", "m", p.M), c.floats("Adam", "v", p.V)
		c.elements(len(w), func(lo, hi int) {
			if !void {
				if scale != 1 {
					Scale(g[lo:hi], scale)
				}
				if keep != 1 {
					Scale(w[lo:hi], keep)
				}
				c.adam(w[lo:hi], g[lo:hi], m[lo:hi], v[lo:hi], s)
			}
			clear(g[lo:hi])
		})
	}
}
