//go:build cuda && linux

package cuda

import (
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// columnSums adds the sums of columns to into. It launches a kernel (parts, args..., chunk) that
// sums chunks of rows, and defers the sums over chunks, which share a launch with others.
func (b *Backend) columnSums(name string, rows, cols int, into []operand, args ...any) {
	if rows == 0 || cols == 0 {
		return
	}
	perBlock := 32
	if strings.HasSuffix(name, "_wide") {
		perBlock = 128
	}
	b.settleArgs(args)
	for _, to := range into {
		b.settle(to)
	}
	b.deferred.mu.Lock()
	defer b.deferred.mu.Unlock()
	b.launchColumns(name, perBlock, rows, cols, into, args...)
}

// mostChunks bounds the number of chunks that rows are summed in. Each chunk has a block of threads
// for every perBlock columns. With 1024 chunks, and lists read ahead, an H100 took as long for a
// chain without LayerNormGrad, and an eighth longer for one with it (tools/results/gpu-trainer.md).
const mostChunks = 512

// launchColumns is launchParts for a kernel (parts, args..., chunk) that sums columns over chunks
// of rows. A block of threads has perBlock columns.
func (b *Backend) launchColumns(name string, perBlock, rows, cols int, into []operand, args ...any) {
	chunk := max(64, (rows+mostChunks-1)/mostChunks)
	chunks := (rows + chunk - 1) / chunk
	grid := driver.Dim{X: uint32((cols + perBlock - 1) / perBlock), Y: uint32(chunks)}
	b.launchParts(name, grid, into, cols, chunks, append(args, chunk)...)
}

// ColumnSumGrad implements [kernels.Backend].
func (b *Backend) ColumnSumGrad(drow, src kernels.Tensor) {
	b.shapes.ColumnSumGrad(drow, src)
	d, s := b.f32("ColumnSumGrad", "drow", drow), b.f32("ColumnSumGrad", "src", src)
	if src.Len() > 0 && b.takesColumnSum(d, s, src.Rows, src.Cols) {
		return
	}
	name := b.wide("column_sum_parts", src.Cols%4 == 0, s)
	b.columnSums(name, src.Rows, src.Cols, []operand{d}, s, src.Rows, src.Cols)
}

// TimeEncodeGrad implements [kernels.Backend].
func (b *Backend) TimeEncodeGrad(dw, db, dy, times, w, shift kernels.Tensor) {
	const op = "TimeEncodeGrad"
	b.shapes.TimeEncodeGrad(dw, db, dy, times, w, shift)
	gw, gb, gy := b.f32(op, "dw", dw), b.f32(op, "db", db), b.f32(op, "dy", dy)
	t, rate, at := b.f32(op, "times", times), b.f32(op, "w", w), b.f32(op, "b", shift)
	name := b.wide("time_encode_parts", dy.Cols%4 == 0, gy, rate, at)
	b.columnSums(name, dy.Rows, dy.Cols, []operand{gw, gb}, gy, t, rate, at, dy.Rows, dy.Cols)
}

// LayerNorm implements [kernels.Backend].
func (b *Backend) LayerNorm(dst, stats, x, gain, bias kernels.Tensor, eps float32) {
	const op = "LayerNorm"
	b.shapes.LayerNorm(dst, stats, x, gain, bias, eps)
	d, st, v := b.f32(op, "dst", dst), b.f32(op, "stats", stats), b.f32(op, "x", x)
	g, at := b.f32(op, "gain", gain), b.f32(op, "bias", bias)
	if x.Len() > 0 {
		b.deferNorm(norm{dst: d, stats: st, x: v, gain: g, bias: at, rows: x.Rows, cols: x.Cols, eps: eps})
	}
}

// LayerNormGrad implements [kernels.Backend].
func (b *Backend) LayerNormGrad(dx, dgain, dbias, dy, x, stats, gain kernels.Tensor, fresh bool) {
	const op = "LayerNormGrad"
	b.shapes.LayerNormGrad(dx, dgain, dbias, dy, x, stats, gain, fresh)
	gx, gg, gb, gy := b.f32(op, "dx", dx), b.f32(op, "dgain", dgain), b.f32(op, "dbias", dbias), b.f32(op, "dy", dy)
	v, st, g := b.f32(op, "x", x), b.f32(op, "stats", stats), b.f32(op, "gain", gain)
	if x.Len() == 0 {
		return
	}
	fits := x.Cols%4 == 0
	add := 1
	if b.takesZero(gx) || fresh {
		add = 0
	}
	if x.Cols <= chainColumns {
		b.deferNormGrad(normGrad{
			dx: gx, dgain: gg, dbias: gb, dy: gy, x: v, stats: st, gain: g, rows: x.Rows, cols: x.Cols, add: add,
		})
		return
	}
	b.run(b.wide("layer_norm_grad", fits, gx, gy, v, g), b.warps(x.Rows), gx, gy, v, st, g, x.Rows, x.Cols, add)
	name := b.wide("layer_norm_parts", fits, gy, v)
	b.columnSums(name, x.Rows, x.Cols, []operand{gg, gb}, gy, v, st, x.Rows, x.Cols)
}

// SoftmaxCrossEntropy implements [kernels.Backend].
func (b *Backend) SoftmaxCrossEntropy(loss, dlogits, logits, labels kernels.Tensor, scale float32) {
	const op = "SoftmaxCrossEntropy"
	b.shapes.SoftmaxCrossEntropy(loss, dlogits, logits, labels, scale)
	l, d, x := b.f32(op, "loss", loss), b.f32(op, "dlogits", dlogits), b.f32(op, "logits", logits)
	label := b.u32(op, "labels", labels)
	if logits.Len() > 0 {
		name := b.wide("softmax_cross_entropy", logits.Cols%4 == 0, d, x)
		b.run(name, b.warps(logits.Rows), l, d, x, label, logits.Rows, logits.Cols, scale, b.failures)
	}
}

// SigmoidCrossEntropy implements [kernels.Backend].
func (b *Backend) SigmoidCrossEntropy(loss, dlogits, logits, targets kernels.Tensor, scale float32) {
	b.shapes.SigmoidCrossEntropy(loss, dlogits, logits, targets, scale)
	b.lossOf("SigmoidCrossEntropy", "sigmoid_cross_entropy", loss, dlogits, logits, targets, scale)
}

// SquaredError implements [kernels.Backend].
func (b *Backend) SquaredError(loss, dpredictions, predictions, targets kernels.Tensor, scale float32) {
	b.shapes.SquaredError(loss, dpredictions, predictions, targets, scale)
	b.lossOf("SquaredError", "squared_error", loss, dpredictions, predictions, targets, scale)
}

// lossOf launches a loss of x against targets.
func (b *Backend) lossOf(op, name string, loss, dx, x, targets kernels.Tensor, scale float32) {
	l, d, v, y := b.f32(op, "loss", loss), b.f32(op, "dx", dx), b.f32(op, "x", x), b.f32(op, "targets", targets)
	if x.Rows > 0 {
		b.run(b.wide(name, x.Cols%4 == 0, d, v, y), b.warps(x.Rows), l, d, v, y, x.Rows, x.Cols, scale)
	}
}

// ArgMax implements [kernels.Backend].
func (b *Backend) ArgMax(dst, src kernels.Tensor) {
	b.shapes.ArgMax(dst, src)
	d, s := b.u32("ArgMax", "dst", dst), b.f32("ArgMax", "src", src)
	if src.Len() > 0 {
		b.run(b.wide("arg_max", src.Cols%4 == 0, s), b.warps(src.Rows), d, s, src.Rows, src.Cols)
	}
}
