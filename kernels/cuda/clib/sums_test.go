//go:build cuda && linux

package clib

import "github.com/gnnstore/gnnstore/kernels"

// columnSums launches a kernel (parts, args..., chunk) over rows of cols columns, and adds the sums
// that it makes to each of into.
func (d *device) columnSums(name string, rows, cols int, into []kernels.Tensor, args ...any) {
	chunk := max(64, (rows+511)/512)
	chunks, per := (rows+chunk-1)/chunk, 32
	if rows == 0 || cols == 0 {
		return
	}
	if name[len(name)-5:] == "_wide" {
		per = 128
	}
	parts := d.temp(4 * chunks * len(into) * cols)
	d.lib.run(name, grid{(cols + per - 1) / per, chunks, 1}, append(append([]any{parts}, args...), chunk)...)
	for i, t := range into {
		d.lib.run("sum_parts", grid{(cols + 31) / 32, 1, 1}, at(t), parts+address(4*i*cols), chunks, cols, len(into)*cols)
	}
}

func (d *device) ColumnSumGrad(drow, src kernels.Tensor) {
	d.Backend.ColumnSumGrad(onCPU(drow), onCPU(src))
	defer d.begin()()
	d.columnSums(d.wide("column_sum_parts", src.Cols%4 == 0, src), src.Rows, src.Cols, []kernels.Tensor{drow},
		at(src), src.Rows, src.Cols)
}

func (d *device) TimeEncodeGrad(dw, db, dy, times, w, b kernels.Tensor) {
	d.Backend.TimeEncodeGrad(onCPU(dw), onCPU(db), onCPU(dy), onCPU(times), onCPU(w), onCPU(b))
	defer d.begin()()
	d.columnSums(d.wide("time_encode_parts", dy.Cols%4 == 0, dy, w, b), dy.Rows, dy.Cols, []kernels.Tensor{dw, db},
		at(dy), at(times), at(w),
		at(b), dy.Rows, dy.Cols)
}

func (d *device) LayerNorm(dst, stats, x, gain, bias kernels.Tensor, eps float32) {
	d.Backend.LayerNorm(onCPU(dst), onCPU(stats), onCPU(x), onCPU(gain), onCPU(bias), eps)
	defer d.begin()()
	if x.Len() > 0 {
		d.lib.run(d.wide("layer_norm", x.Cols%4 == 0, dst, x, gain, bias), flat(32*x.Rows), at(dst), at(stats), at(x),
			at(gain), at(bias), x.Rows,
			x.Cols, eps)
	}
}

func (d *device) LayerNormGrad(dx, dgain, dbias, dy, x, stats, gain kernels.Tensor) {
	d.Backend.LayerNormGrad(onCPU(dx), onCPU(dgain), onCPU(dbias), onCPU(dy), onCPU(x), onCPU(stats), onCPU(gain))
	defer d.begin()()
	if x.Len() == 0 {
		return
	}
	d.lib.run(d.wide("layer_norm_grad", x.Cols%4 == 0, dx, dy, x, gain), flat(32*x.Rows), at(dx), at(dy), at(x),
		at(stats), at(gain), x.Rows, x.Cols)
	d.columnSums(d.wide("layer_norm_parts", x.Cols%4 == 0, dy, x), x.Rows, x.Cols, []kernels.Tensor{dgain, dbias},
		at(dy), at(x), at(stats),
		x.Rows, x.Cols)
}

func (d *device) SoftmaxCrossEntropy(loss, dlogits, logits, labels kernels.Tensor, scale float32) {
	d.Backend.SoftmaxCrossEntropy(onCPU(loss), onCPU(dlogits), onCPU(logits), onCPU(labels), scale)
	defer d.begin()()
	if logits.Len() > 0 {
		d.lib.run(d.wide("softmax_cross_entropy", logits.Cols%4 == 0, dlogits, logits), flat(32*logits.Rows), at(loss),
			at(dlogits), at(logits),
			at(labels), logits.Rows, logits.Cols, scale, d.word)
	}
}

func (d *device) SigmoidCrossEntropy(loss, dlogits, logits, targets kernels.Tensor, scale float32) {
	d.Backend.SigmoidCrossEntropy(onCPU(loss), onCPU(dlogits), onCPU(logits), onCPU(targets), scale)
	defer d.begin()()
	d.targets("sigmoid_cross_entropy", loss, dlogits, logits, targets, scale)
}

func (d *device) SquaredError(loss, dpredictions, predictions, targets kernels.Tensor, scale float32) {
	d.Backend.SquaredError(onCPU(loss), onCPU(dpredictions), onCPU(predictions), onCPU(targets), scale)
	defer d.begin()()
	d.targets("squared_error", loss, dpredictions, predictions, targets, scale)
}

func (d *device) targets(name string, loss, dx, x, targets kernels.Tensor, scale float32) {
	if x.Rows > 0 {
		d.lib.run(d.wide(name, x.Cols%4 == 0, dx, x, targets), flat(32*x.Rows), at(loss), at(dx), at(x), at(targets),
			x.Rows, x.Cols, scale)
	}
}

func (d *device) ArgMax(dst, src kernels.Tensor) {
	d.Backend.ArgMax(onCPU(dst), onCPU(src))
	defer d.begin()()
	if src.Len() > 0 {
		d.lib.run(d.wide("arg_max", src.Cols%4 == 0, src), flat(32*src.Rows), at(dst), at(src), src.Rows, src.Cols)
	}
}

// Flags of products, as matmul.cu has them.
const (
	accumulateFlag = 1
	reluFlag       = 2
)

// product launches a product, in slices where it is long, and with the large tile where there are
// many rows.
func (d *device) product(dst, a, b, bias kernels.Tensor, m, n, k int, transA, transB bool, flags int) {
	if m == 0 || n == 0 {
		return
	}
	letters := map[bool]string{true: "t", false: "n"}
	name, tile := "matmul_"+letters[transA]+letters[transB], 128
	if m < 70 || transA && transB {
		name, tile = name+"_small", 64
	}
	name = d.wide(name, a.Cols%4 == 0 && b.Cols%4 == 0, a, b, dst)
	blocks := grid{(n + tile - 1) / tile, (m + tile - 1) / tile, 1}
	if k < 300 {
		d.lib.run(name, blocks, at(dst), at(a), at(b), at(bias), m, n, k, k, flags)
		return
	}
	const slice = 256
	blocks.z = (k + slice - 1) / slice
	parts := d.temp(4 * blocks.z * m * n)
	d.lib.run(name, blocks, parts, at(a), at(b), 0, m, n, k, slice, 0)
	d.lib.run("add_parts", flat(m*n), at(dst), parts, at(bias), m, n, blocks.z, flags)
}

func (d *device) MatMul(dst, a, b kernels.Tensor, transA, transB, accumulate bool) {
	d.Backend.MatMul(onCPU(dst), onCPU(a), onCPU(b), transA, transB, accumulate)
	defer d.begin()()
	k, flags := a.Cols, 0
	if transA {
		k = a.Rows
	}
	if accumulate {
		flags = accumulateFlag
	}
	d.product(dst, a, b, kernels.Tensor{}, dst.Rows, dst.Cols, k, transA, transB, flags)
}

func (d *device) Affine(dst, bias kernels.Tensor, relu bool, terms ...kernels.Term) {
	twins := make([]kernels.Term, len(terms))
	for i, t := range terms {
		twins[i] = kernels.Term{X: onCPU(t.X), W: onCPU(t.W)}
	}
	d.Backend.Affine(onCPU(dst), onCPU(bias), relu, twins...)
	defer d.begin()()
	if len(terms) == 0 {
		terms = make([]kernels.Term, 1)
	}
	for i, t := range terms {
		flags, row := 0, kernels.Tensor{}
		if i > 0 {
			flags = accumulateFlag
		}
		if i == len(terms)-1 {
			row = bias
			if relu {
				flags |= reluFlag
			}
		}
		d.product(dst, t.X, t.W, row, dst.Rows, dst.Cols, t.X.Cols, false, true, flags)
	}
}

func (d *device) ClipFactor(factor, squares kernels.Tensor, grads []kernels.Tensor, most float64) {
	d.Backend.ClipFactor(onCPU(factor), onCPU(squares), onCPUs(grads), most)
	defer d.begin()()
	name := d.wide("sum_squares", true, grads...)
	var words []uint64
	chunks := 0
	for _, g := range grads {
		words = append(words, uint64(at(g)), uint64(g.Len()), uint64(chunks))
		chunks += (g.Len() + 8191) / 8192
	}
	parts, table := d.temp(8*chunks), d.table(words)
	if chunks > 0 {
		d.lib.run(name, grid{min(5, chunks), 1, 1}, parts, table, len(grads), chunks)
	}
	d.lib.run("clip_factor", grid{1, 1, 1}, at(factor), at(squares), parts, table, len(grads), chunks, most)
}

func guardOnCPU(g kernels.Guard) kernels.Guard {
	return kernels.Guard{Void: onCPU(g.Void), Scale: onCPU(g.Scale)}
}

func (d *device) Adam(params []kernels.AdamParam, keep float32, s kernels.AdamStep, g kernels.Guard) {
	twins := make([]kernels.AdamParam, len(params))
	var all []kernels.Tensor
	for i, p := range params {
		twins[i] = kernels.AdamParam{Value: onCPU(p.Value), Grad: onCPU(p.Grad), M: onCPU(p.M), V: onCPU(p.V)}
		all = append(all, p.Value, p.Grad, p.M, p.V)
	}
	d.Backend.Adam(twins, keep, s, guardOnCPU(g))
	defer d.begin()()
	name := d.wide("adam", true, all...)
	var words []uint64
	chunks := 0
	for _, p := range params {
		words = append(words, uint64(at(p.Value)), uint64(at(p.Grad)), uint64(at(p.M)), uint64(at(p.V)),
			uint64(p.Value.Len()), uint64(chunks))
		chunks += (p.Value.Len() + 1023) / 1024
	}
	if chunks > 0 {
		d.lib.run(name, grid{min(5, chunks), 1, 1}, d.table(words), len(params), chunks, keep, s.LR, s.Beta1, s.Beta2,
			s.Eps, s.WeightDecay,
			s.Correct1, s.Correct2, at(g.Void), at(g.Scale))
	}
}

func (d *device) UpdateRecords(rec, grad kernels.Tensor, s kernels.RowStep, g kernels.Guard) {
	before := append([]float32(nil), window[float32](grad)...)
	d.Backend.UpdateRecords(onCPU(rec), onCPU(grad), s, guardOnCPU(g))
	d.Backend.UploadF32(onCPU(grad), before)
	defer d.begin()()
	if rec.Rows == 0 {
		return
	}
	blocks, rows, cols, void, scale := flat(32*rec.Rows), grad.Rows, grad.Cols, at(g.Void), at(g.Scale)
	switch s.Rule {
	case kernels.RowAdam:
		name := d.wide("records_adam", cols%4 == 0, rec, grad)
		d.lib.run(name, blocks, at(rec), at(grad), rows, cols, s.LR, s.Beta1, s.Beta2, s.Eps, s.WeightDecay, s.Correct1,
			s.Correct2, void, scale)
	case kernels.RowAdamSteps:
		d.lib.run("records_adam_steps", blocks, at(rec), at(grad), rows, cols, s.LR, s.Beta1, s.Beta2, s.Eps,
			s.WeightDecay, void, scale)
	case kernels.RowAdagrad:
		d.lib.run("records_adagrad", blocks, at(rec), at(grad), rows, cols, s.LR, s.Eps, void, scale)
	}
}
