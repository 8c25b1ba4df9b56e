package kernels

// Sizing wraps a Backend and computes nothing while Dry is set. It still allocates, frees, uploads
// and downloads. So a dry step maps the memory that the step needs, and [HostBytes] counts it. The
// system gives little of it, since mapped memory that nobody writes to costs nothing.
type Sizing struct {
	Backend
	Dry bool // no operation may be under way where it is set
}

var _ Backend = (*Sizing)(nil)

// Fill implements [Backend].
func (z *Sizing) Fill(dst Tensor, v float32) {
	if !z.Dry {
		z.Backend.Fill(dst, v)
	}
}

// Convert implements [Backend].
func (z *Sizing) Convert(dst, src Tensor) {
	if !z.Dry {
		z.Backend.Convert(dst, src)
	}
}

// Add implements [Backend].
func (z *Sizing) Add(dst, src Tensor) {
	if !z.Dry {
		z.Backend.Add(dst, src)
	}
}

// Scale implements [Backend].
func (z *Sizing) Scale(dst Tensor, factor float32) {
	if !z.Dry {
		z.Backend.Scale(dst, factor)
	}
}

// ScaleRows implements [Backend].
func (z *Sizing) ScaleRows(dst, factors Tensor) {
	if !z.Dry {
		z.Backend.ScaleRows(dst, factors)
	}
}

// SumSquares implements [Backend].
func (z *Sizing) SumSquares(dst, src Tensor) {
	if !z.Dry {
		z.Backend.SumSquares(dst, src)
	}
}

// RowNorms implements [Backend].
func (z *Sizing) RowNorms(dst, src Tensor) {
	if !z.Dry {
		z.Backend.RowNorms(dst, src)
	}
}

// GatherRows implements [Backend].
func (z *Sizing) GatherRows(dst, src, ids Tensor) {
	if !z.Dry {
		z.Backend.GatherRows(dst, src, ids)
	}
}

// GatherRowsGrad implements [Backend].
func (z *Sizing) GatherRowsGrad(dsrc, ddst, ids Tensor) {
	if !z.Dry {
		z.Backend.GatherRowsGrad(dsrc, ddst, ids)
	}
}

// ScatterRows implements [Backend].
func (z *Sizing) ScatterRows(dst, src, ids Tensor) {
	if !z.Dry {
		z.Backend.ScatterRows(dst, src, ids)
	}
}

// AssembleRows implements [Backend].
func (z *Sizing) AssembleRows(dst, x, slots, at Tensor) {
	if !z.Dry {
		z.Backend.AssembleRows(dst, x, slots, at)
	}
}

// StoreRows implements [Backend].
func (z *Sizing) StoreRows(slots, lost, x, rows, to Tensor) {
	if !z.Dry {
		z.Backend.StoreRows(slots, lost, x, rows, to)
	}
}

// AddEdges implements [Backend].
func (z *Sizing) AddEdges(dst, src, w, to, from Tensor) {
	if !z.Dry {
		z.Backend.AddEdges(dst, src, w, to, from)
	}
}

// MatMul implements [Backend].
func (z *Sizing) MatMul(dst, a, b Tensor, transA, transB, accumulate bool) {
	if !z.Dry {
		z.Backend.MatMul(dst, a, b, transA, transB, accumulate)
	}
}

// Affine implements [Backend].
func (z *Sizing) Affine(dst, bias Tensor, relu bool, terms ...Term) {
	if !z.Dry {
		z.Backend.Affine(dst, bias, relu, terms...)
	}
}

// AddRow implements [Backend].
func (z *Sizing) AddRow(dst, row Tensor) {
	if !z.Dry {
		z.Backend.AddRow(dst, row)
	}
}

// ColumnSumGrad implements [Backend].
func (z *Sizing) ColumnSumGrad(drow, src Tensor) {
	if !z.Dry {
		z.Backend.ColumnSumGrad(drow, src)
	}
}

// NeighborMean implements [Backend].
func (z *Sizing) NeighborMean(dst, src Tensor, g Adjacency) {
	if !z.Dry {
		z.Backend.NeighborMean(dst, src, g)
	}
}

// NeighborMeanGrad implements [Backend].
func (z *Sizing) NeighborMeanGrad(dsrc, ddst Tensor, g Adjacency) {
	if !z.Dry {
		z.Backend.NeighborMeanGrad(dsrc, ddst, g)
	}
}

// WeightedSum implements [Backend].
func (z *Sizing) WeightedSum(dst, src, w Tensor, g Adjacency) {
	if !z.Dry {
		z.Backend.WeightedSum(dst, src, w, g)
	}
}

// WeightedSumGrad implements [Backend].
func (z *Sizing) WeightedSumGrad(dsrc, ddst, w Tensor, g Adjacency) {
	if !z.Dry {
		z.Backend.WeightedSumGrad(dsrc, ddst, w, g)
	}
}

// WeightedSumWeightGrad implements [Backend].
func (z *Sizing) WeightedSumWeightGrad(dw, ddst, src Tensor, g Adjacency) {
	if !z.Dry {
		z.Backend.WeightedSumWeightGrad(dw, ddst, src, g)
	}
}

// HeadDot implements [Backend].
func (z *Sizing) HeadDot(dst, src, a Tensor) {
	if !z.Dry {
		z.Backend.HeadDot(dst, src, a)
	}
}

// HeadDotGrad implements [Backend].
func (z *Sizing) HeadDotGrad(dsrc, da, ddst, src, a Tensor) {
	if !z.Dry {
		z.Backend.HeadDotGrad(dsrc, da, ddst, src, a)
	}
}

// EdgeSoftmax implements [Backend].
func (z *Sizing) EdgeSoftmax(dst, srcScore, dstScore, w Tensor, g Adjacency, slope float32) {
	if !z.Dry {
		z.Backend.EdgeSoftmax(dst, srcScore, dstScore, w, g, slope)
	}
}

// EdgeSoftmaxGrad implements [Backend].
func (z *Sizing) EdgeSoftmaxGrad(dsrcScore, ddstScore, dedge, dalpha, alpha, srcScore, dstScore Tensor, g Adjacency, slope float32) {
	if !z.Dry {
		z.Backend.EdgeSoftmaxGrad(dsrcScore, ddstScore, dedge, dalpha, alpha, srcScore, dstScore, g, slope)
	}
}

// EdgeDot implements [Backend].
func (z *Sizing) EdgeDot(dst, q, k Tensor, g Adjacency, scale float32) {
	if !z.Dry {
		z.Backend.EdgeDot(dst, q, k, g, scale)
	}
}

// EdgeDotGrad implements [Backend].
func (z *Sizing) EdgeDotGrad(dq, dk, ddst, q, k Tensor, g Adjacency, scale float32) {
	if !z.Dry {
		z.Backend.EdgeDotGrad(dq, dk, ddst, q, k, g, scale)
	}
}

// EdgeSoftmaxOf implements [Backend].
func (z *Sizing) EdgeSoftmaxOf(alpha, scores, w []Tensor, g []Adjacency) {
	if !z.Dry {
		z.Backend.EdgeSoftmaxOf(alpha, scores, w, g)
	}
}

// EdgeSoftmaxOfGrad implements [Backend].
func (z *Sizing) EdgeSoftmaxOfGrad(dscores, dalpha, alpha []Tensor, g []Adjacency) {
	if !z.Dry {
		z.Backend.EdgeSoftmaxOfGrad(dscores, dalpha, alpha, g)
	}
}

// EdgeDropout implements [Backend].
func (z *Sizing) EdgeDropout(dst, src, srcIDs, dstIDs Tensor, g Adjacency, key uint64, p float32) {
	if !z.Dry {
		z.Backend.EdgeDropout(dst, src, srcIDs, dstIDs, g, key, p)
	}
}

// EdgeDropoutGrad implements [Backend].
func (z *Sizing) EdgeDropoutGrad(dx, dy, srcIDs, dstIDs Tensor, g Adjacency, key uint64, p float32) {
	if !z.Dry {
		z.Backend.EdgeDropoutGrad(dx, dy, srcIDs, dstIDs, g, key, p)
	}
}

// ReLU implements [Backend].
func (z *Sizing) ReLU(dst, src Tensor) {
	if !z.Dry {
		z.Backend.ReLU(dst, src)
	}
}

// ReLUGrad implements [Backend].
func (z *Sizing) ReLUGrad(dx, dy, y Tensor) {
	if !z.Dry {
		z.Backend.ReLUGrad(dx, dy, y)
	}
}

// ReLUMask implements [Backend].
func (z *Sizing) ReLUMask(d, y Tensor) {
	if !z.Dry {
		z.Backend.ReLUMask(d, y)
	}
}

// ELU implements [Backend].
func (z *Sizing) ELU(dst, src Tensor) {
	if !z.Dry {
		z.Backend.ELU(dst, src)
	}
}

// ELUGrad implements [Backend].
func (z *Sizing) ELUGrad(dx, dy, y Tensor) {
	if !z.Dry {
		z.Backend.ELUGrad(dx, dy, y)
	}
}

// GELU implements [Backend].
func (z *Sizing) GELU(dst, src Tensor) {
	if !z.Dry {
		z.Backend.GELU(dst, src)
	}
}

// GELUGrad implements [Backend].
func (z *Sizing) GELUGrad(dx, dy, x Tensor) {
	if !z.Dry {
		z.Backend.GELUGrad(dx, dy, x)
	}
}

// LeakyReLU implements [Backend].
func (z *Sizing) LeakyReLU(dst, src Tensor, slope float32) {
	if !z.Dry {
		z.Backend.LeakyReLU(dst, src, slope)
	}
}

// LeakyReLUGrad implements [Backend].
func (z *Sizing) LeakyReLUGrad(dx, dy, x Tensor, slope float32) {
	if !z.Dry {
		z.Backend.LeakyReLUGrad(dx, dy, x, slope)
	}
}

// Tanh implements [Backend].
func (z *Sizing) Tanh(dst, src Tensor) {
	if !z.Dry {
		z.Backend.Tanh(dst, src)
	}
}

// TanhGrad implements [Backend].
func (z *Sizing) TanhGrad(dx, dy, y Tensor) {
	if !z.Dry {
		z.Backend.TanhGrad(dx, dy, y)
	}
}

// GRUCell implements [Backend].
func (z *Sizing) GRUCell(dst, gates, x, h, s Tensor) {
	if !z.Dry {
		z.Backend.GRUCell(dst, gates, x, h, s)
	}
}

// GRUCellGrad implements [Backend].
func (z *Sizing) GRUCellGrad(dx, dh, ds, dy, gates, h, s Tensor) {
	if !z.Dry {
		z.Backend.GRUCellGrad(dx, dh, ds, dy, gates, h, s)
	}
}

// TimeEncode implements [Backend].
func (z *Sizing) TimeEncode(dst, times, w, b Tensor) {
	if !z.Dry {
		z.Backend.TimeEncode(dst, times, w, b)
	}
}

// TimeEncodeGrad implements [Backend].
func (z *Sizing) TimeEncodeGrad(dw, db, dy, times, w, b Tensor) {
	if !z.Dry {
		z.Backend.TimeEncodeGrad(dw, db, dy, times, w, b)
	}
}

// Gate implements [Backend].
func (z *Sizing) Gate(dst, a, x, s Tensor) {
	if !z.Dry {
		z.Backend.Gate(dst, a, x, s)
	}
}

// GateGrad implements [Backend].
func (z *Sizing) GateGrad(da, dx, ds, dy, a, x, s Tensor) {
	if !z.Dry {
		z.Backend.GateGrad(da, dx, ds, dy, a, x, s)
	}
}

// Dropout implements [Backend].
func (z *Sizing) Dropout(dst, src, ids Tensor, key uint64, p float32) {
	if !z.Dry {
		z.Backend.Dropout(dst, src, ids, key, p)
	}
}

// DropoutGrad implements [Backend].
func (z *Sizing) DropoutGrad(dx, dy, ids Tensor, key uint64, p float32) {
	if !z.Dry {
		z.Backend.DropoutGrad(dx, dy, ids, key, p)
	}
}

// LayerNorm implements [Backend].
func (z *Sizing) LayerNorm(dst, stats, x, gain, bias Tensor, eps float32) {
	if !z.Dry {
		z.Backend.LayerNorm(dst, stats, x, gain, bias, eps)
	}
}

// LayerNormGrad implements [Backend].
func (z *Sizing) LayerNormGrad(dx, dgain, dbias, dy, x, stats, gain Tensor) {
	if !z.Dry {
		z.Backend.LayerNormGrad(dx, dgain, dbias, dy, x, stats, gain)
	}
}

// SoftmaxCrossEntropy implements [Backend].
func (z *Sizing) SoftmaxCrossEntropy(loss, dlogits, logits, labels Tensor, scale float32) {
	if !z.Dry {
		z.Backend.SoftmaxCrossEntropy(loss, dlogits, logits, labels, scale)
	}
}

// SigmoidCrossEntropy implements [Backend].
func (z *Sizing) SigmoidCrossEntropy(loss, dlogits, logits, targets Tensor, scale float32) {
	if !z.Dry {
		z.Backend.SigmoidCrossEntropy(loss, dlogits, logits, targets, scale)
	}
}

// SquaredError implements [Backend].
func (z *Sizing) SquaredError(loss, dpredictions, predictions, targets Tensor, scale float32) {
	if !z.Dry {
		z.Backend.SquaredError(loss, dpredictions, predictions, targets, scale)
	}
}

// ArgMax implements [Backend].
func (z *Sizing) ArgMax(dst, src Tensor) {
	if !z.Dry {
		z.Backend.ArgMax(dst, src)
	}
}

// Adam implements [Backend].
func (z *Sizing) Adam(param, grad, m, v Tensor, s AdamStep) {
	if !z.Dry {
		z.Backend.Adam(param, grad, m, v, s)
	}
}

// UpdateRecords implements [Backend].
func (z *Sizing) UpdateRecords(rec, grad Tensor, s RowStep) {
	if !z.Dry {
		z.Backend.UpdateRecords(rec, grad, s)
	}
}

// Columns implements [Backend].
func (z *Sizing) Columns(dst, src Tensor, from int) {
	if !z.Dry {
		z.Backend.Columns(dst, src, from)
	}
}

// ColumnsGrad implements [Backend].
func (z *Sizing) ColumnsGrad(dsrc, ddst Tensor, from int) {
	if !z.Dry {
		z.Backend.ColumnsGrad(dsrc, ddst, from)
	}
}
