package kernels

// Sizing wraps a Backend and computes nothing while Dry is set. It still allocates, frees, uploads
// and downloads. So a dry step maps the memory that the step needs, and [HostBytes] counts it. The
// system gives little of it, since mapped memory that nobody writes to costs nothing.
type Sizing struct {
	Backend
	Dry bool // no operation may be under way where it is set
	// Operations counts the calls of operations. The goroutine that calls them reads it.
	Operations int64
}

var _ Backend = (*Sizing)(nil)

// run calls op unless Dry is set. Each method below passes its operation of [Backend] to run.
func (z *Sizing) run(op func()) {
	z.Operations++
	if !z.Dry {
		op()
	}
}

func (z *Sizing) Fill(dst Tensor, v float32)       { z.run(func() { z.Backend.Fill(dst, v) }) }
func (z *Sizing) Convert(dst, src Tensor)          { z.run(func() { z.Backend.Convert(dst, src) }) }
func (z *Sizing) Add(dst, src Tensor)              { z.run(func() { z.Backend.Add(dst, src) }) }
func (z *Sizing) Scale(dst Tensor, factor float32) { z.run(func() { z.Backend.Scale(dst, factor) }) }
func (z *Sizing) ScaleRows(dst, factors Tensor)    { z.run(func() { z.Backend.ScaleRows(dst, factors) }) }
func (z *Sizing) CheckFinite(void, src Tensor)     { z.run(func() { z.Backend.CheckFinite(void, src) }) }
func (z *Sizing) RowNorms(dst, src Tensor)         { z.run(func() { z.Backend.RowNorms(dst, src) }) }

func (z *Sizing) ClipFactor(factor, squares Tensor, grads []Tensor, most float64) {
	z.run(func() { z.Backend.ClipFactor(factor, squares, grads, most) })
}

func (z *Sizing) GatherRows(dst, src, ids Tensor) {
	z.run(func() { z.Backend.GatherRows(dst, src, ids) })
}

func (z *Sizing) GatherRowsGrad(dsrc, ddst, ids Tensor) {
	z.run(func() { z.Backend.GatherRowsGrad(dsrc, ddst, ids) })
}

func (z *Sizing) ScatterRows(dst, src, ids Tensor) {
	z.run(func() { z.Backend.ScatterRows(dst, src, ids) })
}

func (z *Sizing) AssembleRows(dst, x, slots, at Tensor) {
	z.run(func() { z.Backend.AssembleRows(dst, x, slots, at) })
}

func (z *Sizing) StoreRows(slots, lost, x, rows, to, void Tensor) {
	z.run(func() { z.Backend.StoreRows(slots, lost, x, rows, to, void) })
}

func (z *Sizing) AddEdges(dst, src, w, to, from Tensor) {
	z.run(func() { z.Backend.AddEdges(dst, src, w, to, from) })
}

func (z *Sizing) MatMul(dst, a, b Tensor, transA, transB, accumulate bool) {
	z.run(func() { z.Backend.MatMul(dst, a, b, transA, transB, accumulate) })
}

func (z *Sizing) Affine(dst, bias Tensor, relu bool, terms ...Term) {
	z.run(func() { z.Backend.Affine(dst, bias, relu, terms...) })
}

func (z *Sizing) AddRow(dst, row Tensor) { z.run(func() { z.Backend.AddRow(dst, row) }) }

func (z *Sizing) ColumnSumGrad(drow, src Tensor) {
	z.run(func() { z.Backend.ColumnSumGrad(drow, src) })
}

func (z *Sizing) NeighborMean(dst, src Tensor, g Adjacency) {
	z.run(func() { z.Backend.NeighborMean(dst, src, g) })
}

func (z *Sizing) NeighborMeanGrad(dsrc, ddst Tensor, g Adjacency) {
	z.run(func() { z.Backend.NeighborMeanGrad(dsrc, ddst, g) })
}

func (z *Sizing) WeightedSum(dst, src, w Tensor, g Adjacency) {
	z.run(func() { z.Backend.WeightedSum(dst, src, w, g) })
}

func (z *Sizing) WeightedSumGrad(dsrc, ddst, w Tensor, g Adjacency) {
	z.run(func() { z.Backend.WeightedSumGrad(dsrc, ddst, w, g) })
}

func (z *Sizing) WeightedSumWeightGrad(dw, ddst, src Tensor, g Adjacency) {
	z.run(func() { z.Backend.WeightedSumWeightGrad(dw, ddst, src, g) })
}

func (z *Sizing) HeadDot(dst, src, a Tensor) { z.run(func() { z.Backend.HeadDot(dst, src, a) }) }

func (z *Sizing) HeadDotGrad(dsrc, da, ddst, src, a Tensor) {
	z.run(func() { z.Backend.HeadDotGrad(dsrc, da, ddst, src, a) })
}

func (z *Sizing) EdgeSoftmax(dst, srcScore, dstScore, w Tensor, g Adjacency, slope float32) {
	z.run(func() { z.Backend.EdgeSoftmax(dst, srcScore, dstScore, w, g, slope) })
}

func (z *Sizing) EdgeSoftmaxGrad(dsrcScore, ddstScore, dedge, dalpha, alpha, srcScore, dstScore Tensor, g Adjacency, slope float32) {
	z.run(func() {
		z.Backend.EdgeSoftmaxGrad(dsrcScore, ddstScore, dedge, dalpha, alpha, srcScore, dstScore, g, slope)
	})
}

func (z *Sizing) EdgeDot(dst, q, k Tensor, g Adjacency, scale float32) {
	z.run(func() { z.Backend.EdgeDot(dst, q, k, g, scale) })
}

func (z *Sizing) EdgeDotGrad(dq, dk, ddst, q, k Tensor, g Adjacency, scale float32) {
	z.run(func() { z.Backend.EdgeDotGrad(dq, dk, ddst, q, k, g, scale) })
}

func (z *Sizing) EdgeSoftmaxOf(alpha, scores, w []Tensor, g []Adjacency) {
	z.run(func() { z.Backend.EdgeSoftmaxOf(alpha, scores, w, g) })
}

func (z *Sizing) EdgeSoftmaxOfGrad(dscores, dalpha, alpha []Tensor, g []Adjacency) {
	z.run(func() { z.Backend.EdgeSoftmaxOfGrad(dscores, dalpha, alpha, g) })
}

func (z *Sizing) EdgeDropout(dst, src, srcIDs, dstIDs Tensor, g Adjacency, key uint64, p float32) {
	z.run(func() { z.Backend.EdgeDropout(dst, src, srcIDs, dstIDs, g, key, p) })
}

func (z *Sizing) EdgeDropoutGrad(dx, dy, srcIDs, dstIDs Tensor, g Adjacency, key uint64, p float32) {
	z.run(func() { z.Backend.EdgeDropoutGrad(dx, dy, srcIDs, dstIDs, g, key, p) })
}

func (z *Sizing) ReLU(dst, src Tensor)      { z.run(func() { z.Backend.ReLU(dst, src) }) }
func (z *Sizing) ReLUGrad(dx, dy, y Tensor) { z.run(func() { z.Backend.ReLUGrad(dx, dy, y) }) }
func (z *Sizing) ReLUMask(d, y Tensor)      { z.run(func() { z.Backend.ReLUMask(d, y) }) }
func (z *Sizing) ELU(dst, src Tensor)       { z.run(func() { z.Backend.ELU(dst, src) }) }
func (z *Sizing) ELUGrad(dx, dy, y Tensor)  { z.run(func() { z.Backend.ELUGrad(dx, dy, y) }) }
func (z *Sizing) GELU(dst, src Tensor)      { z.run(func() { z.Backend.GELU(dst, src) }) }
func (z *Sizing) GELUGrad(dx, dy, x Tensor) { z.run(func() { z.Backend.GELUGrad(dx, dy, x) }) }

func (z *Sizing) LeakyReLU(dst, src Tensor, slope float32) {
	z.run(func() { z.Backend.LeakyReLU(dst, src, slope) })
}

func (z *Sizing) LeakyReLUGrad(dx, dy, x Tensor, slope float32) {
	z.run(func() { z.Backend.LeakyReLUGrad(dx, dy, x, slope) })
}

func (z *Sizing) Tanh(dst, src Tensor)      { z.run(func() { z.Backend.Tanh(dst, src) }) }
func (z *Sizing) TanhGrad(dx, dy, y Tensor) { z.run(func() { z.Backend.TanhGrad(dx, dy, y) }) }

func (z *Sizing) GRUCell(dst, gates, x, h, s Tensor) {
	z.run(func() { z.Backend.GRUCell(dst, gates, x, h, s) })
}

func (z *Sizing) GRUCellGrad(dx, dh, ds, dy, gates, h, s Tensor) {
	z.run(func() { z.Backend.GRUCellGrad(dx, dh, ds, dy, gates, h, s) })
}

func (z *Sizing) TimeEncode(dst, times, w, b Tensor) {
	z.run(func() { z.Backend.TimeEncode(dst, times, w, b) })
}

func (z *Sizing) TimeEncodeGrad(dw, db, dy, times, w, b Tensor) {
	z.run(func() { z.Backend.TimeEncodeGrad(dw, db, dy, times, w, b) })
}

func (z *Sizing) Gate(dst, a, x, s Tensor) { z.run(func() { z.Backend.Gate(dst, a, x, s) }) }

func (z *Sizing) GateGrad(da, dx, ds, dy, a, x, s Tensor) {
	z.run(func() { z.Backend.GateGrad(da, dx, ds, dy, a, x, s) })
}

func (z *Sizing) Dropout(dst, src, ids Tensor, key uint64, p float32) {
	z.run(func() { z.Backend.Dropout(dst, src, ids, key, p) })
}

func (z *Sizing) DropoutGrad(dx, dy, ids Tensor, key uint64, p float32) {
	z.run(func() { z.Backend.DropoutGrad(dx, dy, ids, key, p) })
}

func (z *Sizing) LayerNorm(dst, stats, x, gain, bias Tensor, eps float32) {
	z.run(func() { z.Backend.LayerNorm(dst, stats, x, gain, bias, eps) })
}

func (z *Sizing) LayerNormGrad(dx, dgain, dbias, dy, x, stats, gain Tensor) {
	z.run(func() { z.Backend.LayerNormGrad(dx, dgain, dbias, dy, x, stats, gain) })
}

func (z *Sizing) SoftmaxCrossEntropy(loss, dlogits, logits, labels Tensor, scale float32) {
	z.run(func() { z.Backend.SoftmaxCrossEntropy(loss, dlogits, logits, labels, scale) })
}

func (z *Sizing) SigmoidCrossEntropy(loss, dlogits, logits, targets Tensor, scale float32) {
	z.run(func() { z.Backend.SigmoidCrossEntropy(loss, dlogits, logits, targets, scale) })
}

func (z *Sizing) SquaredError(loss, dpredictions, predictions, targets Tensor, scale float32) {
	z.run(func() { z.Backend.SquaredError(loss, dpredictions, predictions, targets, scale) })
}

func (z *Sizing) ArgMax(dst, src Tensor) { z.run(func() { z.Backend.ArgMax(dst, src) }) }

func (z *Sizing) Adam(params []AdamParam, keep float32, s AdamStep, g Guard) {
	z.run(func() { z.Backend.Adam(params, keep, s, g) })
}

func (z *Sizing) UpdateRecords(rec, grad Tensor, s RowStep, g Guard) {
	z.run(func() { z.Backend.UpdateRecords(rec, grad, s, g) })
}

func (z *Sizing) Columns(dst, src Tensor, from int) {
	z.run(func() { z.Backend.Columns(dst, src, from) })
}

func (z *Sizing) ColumnsGrad(dsrc, ddst Tensor, from int) {
	z.run(func() { z.Backend.ColumnsGrad(dsrc, ddst, from) })
}
