package kernels

// Shapes wraps a Backend. It refuses shapes that do not fit, as every backend does, and computes
// nothing. Memory is the wrapped Backend's. An implementation may begin an operation with the
// method of Shapes: values, element types and the bounds of buffers are left to it.
type Shapes struct{ Backend }

var _ Backend = Shapes{}

// checkGradOf checks the operands of an element by element gradient, which reads at, called name.
func checkGradOf(op string, dx, dy Tensor, name string, at Tensor) {
	checkSame(op, "dx", dx, "dy", dy)
	checkSame(op, "dx", dx, name, at)
}

func (Shapes) Fill(_ Tensor, _ float32)      {}
func (Shapes) Convert(dst, src Tensor)       { checkSame("Convert", "dst", dst, "src", src) }
func (Shapes) Add(dst, src Tensor)           { checkSame("Add", "dst", dst, "src", src) }
func (Shapes) Scale(_ Tensor, _ float32)     {}
func (Shapes) ScaleRows(dst, factors Tensor) { checkScaleRows(dst, factors) }
func (Shapes) CheckFinite(void, src Tensor)  { checkCheckFinite(void, src) }
func (Shapes) RowNorms(dst, src Tensor)      { checkRowNorms(dst, src) }
func (Shapes) ClipFactor(factor, squares Tensor, grads []Tensor, _ float64) {
	checkClipFactor(factor, squares, grads)
}

func (Shapes) GatherRows(dst, src, ids Tensor) { checkRows("GatherRows", "dst", dst, "src", src, ids) }
func (Shapes) GatherRowsGrad(dsrc, ddst, ids Tensor) {
	checkRows("GatherRowsGrad", "ddst", ddst, "dsrc", dsrc, ids)
}

func (Shapes) ScatterRows(dst, src, ids Tensor) {
	checkRows("ScatterRows", "src", src, "dst", dst, ids)
}
func (Shapes) AssembleRows(dst, x, slots, at Tensor) { checkAssembleRows(dst, x, slots, at) }
func (Shapes) RowsOf(dst, hot, came, at Tensor)      { checkRowsOf(dst, hot, came, at) }
func (Shapes) KeepRows(hot, came, from, to Tensor)   { checkKeepRows(hot, came, from, to) }
func (Shapes) StoreRows(slots, lost, x, rows, to, void Tensor) {
	checkStoreRows(slots, lost, x, rows, to, void)
}

func (Shapes) AddEdges(dst, src, w, to, from Tensor) { checkAddEdges(dst, src, w, to, from) }
func (Shapes) MatMul(dst, a, b Tensor, transA, transB, _ bool) {
	checkMatMul(dst, a, b, transA, transB)
}
func (Shapes) Affine(dst, bias Tensor, _ bool, terms ...Term) { checkAffine(dst, bias, terms) }
func (Shapes) AddRow(dst, row Tensor)                         { checkRow("AddRow", "dst", dst, "row", row) }
func (Shapes) ColumnSumGrad(drow, src Tensor)                 { checkRow("ColumnSumGrad", "src", src, "drow", drow) }
func (Shapes) NeighborMean(dst, src Tensor, g Adjacency)      { checkNeighborMean(dst, src, g) }
func (Shapes) NeighborMeanGrad(dsrc, ddst Tensor, g Adjacency, fresh int) {
	checkNeighborMeanGrad(dsrc, ddst, g, fresh)
}
func (Shapes) AffineGrad(dy, y, dbias Tensor, terms ...TermGrad) {
	checkAffineGrad(dy, y, dbias, terms)
}
func (Shapes) WeightedSum(dst, src, w Tensor, g Adjacency) { checkWeightedSum(dst, src, w, g) }
func (Shapes) WeightedSumGrad(dsrc, ddst, w Tensor, g Adjacency) {
	checkWeightedSumGrad(dsrc, ddst, w, g)
}
func (Shapes) WeightedSumWeightGrad(dw, ddst, src Tensor, g Adjacency) {
	checkWeightedSumWeightGrad(dw, ddst, src, g)
}

func (Shapes) HeadDot(dst, src, a Tensor)                { checkHeadDot(dst, src, a) }
func (Shapes) HeadDotGrad(dsrc, da, ddst, src, a Tensor) { checkHeadDotGrad(dsrc, da, ddst, src, a) }
func (Shapes) EdgeSoftmax(dst, srcScore, dstScore, w Tensor, g Adjacency, _ float32) {
	checkEdgeSoftmax(dst, srcScore, dstScore, w, g)
}

func (Shapes) EdgeSoftmaxGrad(
	dsrcScore, ddstScore, dedge, dalpha, alpha, srcScore, dstScore Tensor, g Adjacency, _ float32,
) {
	checkEdgeSoftmaxGrad(dsrcScore, ddstScore, dedge, dalpha, alpha, srcScore, dstScore, g)
}

func (Shapes) EdgeDot(dst, q, k Tensor, g Adjacency, _ float32) { checkEdgeDot(dst, q, k, g) }
func (Shapes) EdgeDotGrad(dq, dk, ddst, q, k Tensor, g Adjacency, _ float32) {
	checkEdgeDotGrad(dq, dk, ddst, q, k, g)
}

func (Shapes) EdgeDistance(dst, q, k Tensor, g Adjacency, complex bool, _ float32) {
	checkEdgeDistance(dst, q, k, g, complex)
}
func (Shapes) EdgeDistanceGrad(dq, dk, ddst, q, k Tensor, g Adjacency, complex bool, _ float32) {
	checkEdgeDistanceGrad(dq, dk, ddst, q, k, g, complex)
}

func (Shapes) EdgeSoftmaxOf(alpha, scores, w []Tensor, g []Adjacency) {
	checkEdgeSoftmaxOf(alpha, scores, w, g)
}

func (Shapes) EdgeSoftmaxOfGrad(dscores, dalpha, alpha []Tensor, g []Adjacency) {
	checkEdgeSoftmaxOfGrad(dscores, dalpha, alpha, g)
}

func (Shapes) EdgeDropout(dst, src, srcIDs, dstIDs Tensor, g Adjacency, _ uint64, p float32) {
	checkEdgeDropout("EdgeDropout", dst, src, srcIDs, dstIDs, g, p)
}

func (Shapes) EdgeDropoutGrad(dx, dy, srcIDs, dstIDs Tensor, g Adjacency, _ uint64, p float32) {
	checkEdgeDropout("EdgeDropoutGrad", dx, dy, srcIDs, dstIDs, g, p)
}

func (Shapes) ReLU(dst, src Tensor)                 { checkSame("ReLU", "dst", dst, "src", src) }
func (Shapes) ReLUGrad(dx, dy, y Tensor)            { checkGradOf("ReLUGrad", dx, dy, "y", y) }
func (Shapes) ReLUMask(d, y Tensor)                 { checkSame("ReLUMask", "d", d, "y", y) }
func (Shapes) ELU(dst, src Tensor)                  { checkSame("ELU", "dst", dst, "src", src) }
func (Shapes) ELUGrad(dx, dy, y Tensor)             { checkGradOf("ELUGrad", dx, dy, "y", y) }
func (Shapes) GELU(dst, src Tensor)                 { checkSame("GELU", "dst", dst, "src", src) }
func (Shapes) GELUGrad(dx, dy, x Tensor)            { checkGradOf("GELUGrad", dx, dy, "x", x) }
func (Shapes) LeakyReLU(dst, src Tensor, _ float32) { checkSame("LeakyReLU", "dst", dst, "src", src) }
func (Shapes) LeakyReLUGrad(dx, dy, x Tensor, _ float32) {
	checkGradOf("LeakyReLUGrad", dx, dy, "x", x)
}
func (Shapes) Tanh(dst, src Tensor)               { checkSame("Tanh", "dst", dst, "src", src) }
func (Shapes) TanhGrad(dx, dy, y Tensor)          { checkGradOf("TanhGrad", dx, dy, "y", y) }
func (Shapes) GRUCell(dst, gates, x, h, s Tensor) { checkGRUCell(dst, gates, x, h, s) }
func (Shapes) GRUCellGrad(dx, dh, ds, dy, gates, h, s Tensor) {
	checkGRUCellGrad(dx, dh, ds, dy, gates, h, s)
}

func (Shapes) TimeEncode(dst, times, w, b Tensor) { checkTimeEncode(dst, times, w, b) }
func (Shapes) TimeEncodeGrad(dw, db, dy, times, w, b Tensor) {
	checkTimeEncodeGrad(dw, db, dy, times, w, b)
}
func (Shapes) Gate(dst, a, x, s Tensor)                { checkGate(dst, a, x, s) }
func (Shapes) GateGrad(da, dx, ds, dy, a, x, s Tensor) { checkGateGrad(da, dx, ds, dy, a, x, s) }
func (Shapes) Dropout(dst, src, ids Tensor, _ uint64, p float32) {
	checkDropout("Dropout", dst, src, ids, p)
}

func (Shapes) DropoutGrad(dx, dy, ids Tensor, _ uint64, p float32) {
	checkDropout("DropoutGrad", dx, dy, ids, p)
}

func (Shapes) LayerNorm(dst, stats, x, gain, bias Tensor, _ float32) {
	checkLayerNorm(dst, stats, x, gain, bias)
}

func (Shapes) LayerNormGrad(dx, dgain, dbias, dy, x, stats, gain Tensor, _ bool) {
	checkLayerNormGrad(dx, dgain, dbias, dy, x, stats, gain)
}

func (Shapes) SoftmaxCrossEntropy(loss, dlogits, logits, labels Tensor, _ float32) {
	checkSoftmaxCrossEntropy(loss, dlogits, logits, labels)
}

func (Shapes) SigmoidCrossEntropy(loss, dlogits, logits, targets Tensor, _ float32) {
	checkSigmoidCrossEntropy(loss, dlogits, logits, targets)
}

func (Shapes) SquaredError(loss, dpredictions, predictions, targets Tensor, _ float32) {
	checkSquaredError(loss, dpredictions, predictions, targets)
}

func (Shapes) ArgMax(dst, src Tensor) { checkArgMax(dst, src) }
func (Shapes) Adam(params []AdamParam, _ float32, _ AdamStep, g Guard) {
	checkAdam(params)
	checkGuard("Adam", g)
}

func (Shapes) UpdateRecords(rec, grad Tensor, s RowStep, g Guard) {
	checkRecords(rec, grad, s)
	checkGuard("UpdateRecords", g)
}

func (Shapes) Columns(dst, src Tensor, from int) {
	checkColumns("Columns", "dst", dst, "src", src, from)
}
func (Shapes) ColumnsGrad(dsrc, ddst Tensor, from int) {
	checkColumns("ColumnsGrad", "ddst", ddst, "dsrc", dsrc, from)
}
