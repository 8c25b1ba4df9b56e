package kernels

// Reference is the Backend that defines right results: the reference loops, on one thread, with
// every F32 tensor held in float64. Package kerneltest uses its results as the oracle. They are
// precise enough for finite differences. Use [NewReference].
type Reference struct {
	inHost[float64] // Host lends no F32, since a float64 holds it
}

var _ Backend = (*Reference)(nil)

// NewReference returns a Reference.
func NewReference() *Reference { return &Reference{} }

// Name implements [Backend].
func (*Reference) Name() string { return "reference" }

// Alloc implements [Backend].
func (*Reference) Alloc(t DType, n int) Buffer { return newMemory[float64](t, n) }

// UploadF32 implements [Backend].
func (r *Reference) UploadF32(dst Tensor, src []float32) {
	checkLen("UploadF32", dst, len(src))
	for i, d := 0, r.floats("UploadF32", "dst", dst); i < len(d); i++ {
		d[i] = float64(src[i])
	}
}

// UploadF64 is UploadF32 without rounding.
func (r *Reference) UploadF64(dst Tensor, src []float64) {
	checkLen("UploadF64", dst, len(src))
	copy(r.floats("UploadF64", "dst", dst), src)
}

// DownloadF32 implements [Backend]. It rounds.
func (r *Reference) DownloadF32(dst []float32, src Tensor) {
	checkLen("DownloadF32", src, len(dst))
	for i, v := range r.floats("DownloadF32", "src", src) {
		dst[i] = float32(v)
	}
}

// FetchF32 implements [Backend].
func (r *Reference) FetchF32(dst []float32, src Tensor) { r.DownloadF32(dst, src) }

// DownloadF64 is DownloadF32 without rounding.
func (r *Reference) DownloadF64(dst []float64, src Tensor) {
	checkLen("DownloadF64", src, len(dst))
	copy(dst, r.floats("DownloadF64", "src", src))
}

// input is src, widened if it holds halves.
func (r *Reference) input(op, name string, src Tensor) []float64 {
	if src.Type != F16 {
		return r.floats(op, name, src)
	}
	wide := make([]float64, src.Len())
	for i, h := range r.halves(op, name, src) {
		wide[i] = halfToFloatRef[float64](h)
	}
	return wide
}

// each and eachGrad do what CPU.each and CPU.eachGrad do, on one goroutine.
func (r *Reference) each(op string, dst, src Tensor, f func(dst, src []float64)) {
	checkSame(op, "dst", dst, "src", src)
	f(r.floats(op, "dst", dst), r.floats(op, "src", src))
}

func (r *Reference) eachGrad(op string, dx, dy Tensor, name string, at Tensor, f func(dx, dy, at []float64)) {
	checkSame(op, "dx", dx, "dy", dy)
	checkSame(op, "dx", dx, name, at)
	f(r.floats(op, "dx", dx), r.floats(op, "dy", dy), r.floats(op, name, at))
}

// Fill implements [Backend].
func (r *Reference) Fill(dst Tensor, v float32) {
	fillRef(r.floats("Fill", "dst", dst), float64(v))
}

// Convert implements [Backend].
func (r *Reference) Convert(dst, src Tensor) {
	checkSame("Convert", "dst", dst, "src", src)
	copy(r.floats("Convert", "dst", dst), r.input("Convert", "src", src))
}

// Add implements [Backend].
func (r *Reference) Add(dst, src Tensor) { r.each("Add", dst, src, addRef[float64]) }

// MatMul implements [Backend].
func (r *Reference) MatMul(dst, a, b Tensor, transA, transB, accumulate bool) {
	m, n, k := checkMatMul(dst, a, b, transA, transB)
	matMulRef(r.floats("MatMul", "dst", dst), r.floats("MatMul", "a", a), r.floats("MatMul", "b", b),
		m, n, k, transA, transB, accumulate)
}

// Affine implements [Backend].
func (r *Reference) Affine(dst, bias Tensor, relu bool, terms ...Term) {
	checkAffine(dst, bias, terms)
	r.Fill(dst, 0)
	for _, t := range terms {
		r.MatMul(dst, t.X, t.W, false, true, true)
	}
	if bias.Buf != nil {
		r.AddRow(dst, bias)
	}
	if relu {
		r.ReLU(dst, dst)
	}
}

// AffineGrad implements [Backend].
func (r *Reference) AffineGrad(dy, y, dbias Tensor, terms ...TermGrad) {
	checkAffineGrad(dy, y, dbias, terms)
	AffineGradOf(r, dy, y, dbias, terms...)
}

// AddRow implements [Backend].
func (r *Reference) AddRow(dst, row Tensor) {
	checkRow("AddRow", "dst", dst, "row", row)
	addRowRef(r.floats("AddRow", "dst", dst), r.floats("AddRow", "row", row), dst.Rows, dst.Cols)
}

// ColumnSumGrad implements [Backend].
func (r *Reference) ColumnSumGrad(drow, src Tensor) {
	checkRow("ColumnSumGrad", "src", src, "drow", drow)
	columnSumGradRef(r.floats("ColumnSumGrad", "drow", drow), r.floats("ColumnSumGrad", "src", src), src.Rows, src.Cols)
}

// NeighborMean implements [Backend].
func (r *Reference) NeighborMean(dst, src Tensor, g Adjacency) {
	const op = "NeighborMean"
	checkNeighborMean(dst, src, g)
	neighborMeanRef(r.floats(op, "dst", dst), r.input(op, "src", src), dst.Cols,
		r.uints(op, "Start", g.Start), r.uints(op, "End", g.End), r.uints(op, "Nbr", g.Nbr))
}

// NeighborMeanGrad implements [Backend].
func (r *Reference) NeighborMeanGrad(dsrc, ddst Tensor, g Adjacency, fresh int) {
	const op = "NeighborMeanGrad"
	checkNeighborMeanGrad(dsrc, ddst, g, fresh)
	revStart := r.uints(op, "RevStart", g.RevStart)
	if dsrc.Rows == 0 {
		return
	}
	r.Fill(dsrc.Slice(fresh, dsrc.Rows), 0)
	neighborMeanGradRef(r.floats(op, "dsrc", dsrc), r.floats(op, "ddst", ddst), dsrc.Cols,
		r.uints(op, "Start", g.Start), r.uints(op, "End", g.End), revStart, r.uints(op, "RevDst", g.RevDst))
}

// ReLU implements [Backend].
func (r *Reference) ReLU(dst, src Tensor) { r.each("ReLU", dst, src, reluRef[float64]) }

// ReLUGrad implements [Backend].
func (r *Reference) ReLUGrad(dx, dy, y Tensor) {
	r.eachGrad("ReLUGrad", dx, dy, "y", y, reluGradRef[float64])
}

// ReLUMask implements [Backend].
func (r *Reference) ReLUMask(d, y Tensor) {
	checkSame("ReLUMask", "d", d, "y", y)
	reluMaskRef(r.floats("ReLUMask", "d", d), r.floats("ReLUMask", "y", y))
}

// Dropout implements [Backend].
func (r *Reference) Dropout(dst, src, ids Tensor, key uint64, p float32) {
	checkDropout("Dropout", dst, src, ids, p)
	dropoutRef(r.floats("Dropout", "dst", dst), r.input("Dropout", "src", src), r.uints("Dropout", "ids", ids), dst.Cols, key, p)
}

// DropoutGrad implements [Backend].
func (r *Reference) DropoutGrad(dx, dy, ids Tensor, key uint64, p float32) {
	checkDropout("DropoutGrad", dx, dy, ids, p)
	dropoutGradRef(r.floats("DropoutGrad", "dx", dx), r.floats("DropoutGrad", "dy", dy),
		r.uints("DropoutGrad", "ids", ids), dx.Cols, key, p)
}

// LayerNorm implements [Backend].
func (r *Reference) LayerNorm(dst, stats, x, gain, bias Tensor, eps float32) {
	const op = "LayerNorm"
	checkLayerNorm(dst, stats, x, gain, bias)
	if x.Cols == 0 {
		return
	}
	layerNormRef(r.floats(op, "dst", dst), r.floats(op, "stats", stats), r.floats(op, "x", x),
		r.floats(op, "gain", gain), r.floats(op, "bias", bias), x.Rows, x.Cols, float64(eps))
}

// LayerNormGrad implements [Backend].
func (r *Reference) LayerNormGrad(dx, dgain, dbias, dy, x, stats, gain Tensor, fresh bool) {
	const op = "LayerNormGrad"
	checkLayerNormGrad(dx, dgain, dbias, dy, x, stats, gain)
	if fresh {
		r.Fill(dx, 0)
	}
	if x.Cols == 0 {
		return
	}
	layerNormGradRef(r.floats(op, "dx", dx), r.floats(op, "dgain", dgain), r.floats(op, "dbias", dbias),
		r.floats(op, "dy", dy), r.floats(op, "x", x), r.floats(op, "stats", stats),
		r.floats(op, "gain", gain), x.Rows, x.Cols)
}

// SoftmaxCrossEntropy implements [Backend].
func (r *Reference) SoftmaxCrossEntropy(loss, dlogits, logits, labels Tensor, scale float32) {
	const op = "SoftmaxCrossEntropy"
	checkSoftmaxCrossEntropy(loss, dlogits, logits, labels)
	label := r.uints(op, "labels", labels)
	if logits.Cols == 0 {
		return
	}
	checkLabels(label, logits.Cols)
	softmaxCrossEntropyRef(r.floats(op, "loss", loss), r.floats(op, "dlogits", dlogits),
		r.floats(op, "logits", logits), label, logits.Rows, logits.Cols, float64(scale))
}

// ArgMax implements [Backend].
func (r *Reference) ArgMax(dst, src Tensor) {
	checkArgMax(dst, src)
	if src.Cols == 0 {
		return
	}
	argMaxRef(r.uints("ArgMax", "dst", dst), r.floats("ArgMax", "src", src), src.Rows, src.Cols)
}

// Adam implements [Backend].
func (r *Reference) Adam(params []AdamParam, keep float32, s AdamStep, of Guard) {
	checkAdam(params)
	void, scale := r.guard("Adam", of)
	for _, p := range params {
		w, g := r.floats("Adam", "value", p.Value), r.floats("Adam", "grad", p.Grad)
		if !void {
			scaleRef(g, scale)
			scaleRef(w, float64(keep))
			adamRef(w, g, r.floats("Adam", "m", p.M), r.floats("Adam", "v", p.V), s)
		}
		clear(g)
	}
}
