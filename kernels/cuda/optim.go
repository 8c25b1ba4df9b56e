//go:build cuda && linux

package cuda

import "github.com/gnnstore/gnnstore/kernels"

// Elements that a block takes at a time: of gradients whose squares are summed, and of parameters.
const (
	squaresChunk = 8192
	adamChunk    = 1024
)

// ClipFactor implements [kernels.Backend].
func (b *Backend) ClipFactor(factor, squares kernels.Tensor, grads []kernels.Tensor, most float64) {
	const op = "ClipFactor"
	b.shapes.ClipFactor(factor, squares, grads, most)
	f, s := b.f32(op, "factor", factor), b.f32(op, "squares", squares)
	var all []operand
	var words []uint64
	chunks := 0
	for _, grad := range grads {
		g := b.f32(op, "grad", grad)
		all, words = append(all, g), append(words, uint64(g.at), uint64(grad.Len()), uint64(chunks))
		chunks += (grad.Len() + squaresChunk - 1) / squaresChunk
	}
	table, parts := b.table(op, words), b.temporary(8 * chunks)[0]
	if chunks > 0 {
		name := b.wide("sum_squares", true, all...)
		b.reading(all, func() { b.run(name, b.flat(threads*chunks), parts, table, len(grads), chunks) })
	}
	b.run("clip_factor", b.flat(1), f, s, parts, table, len(grads), chunks, most)
}

// reading calls run, which launches a kernel that takes the addresses of operands from a table. It
// does for them what launch does for arguments.
func (b *Backend) reading(operands []operand, run func()) {
	var args []any
	for _, o := range operands {
		args = append(args, o)
	}
	b.settleArgs(args)
	b.before(args)
	run()
	b.after(args)
}

// Adam implements [kernels.Backend].
func (b *Backend) Adam(params []kernels.AdamParam, keep float32, s kernels.AdamStep, g kernels.Guard) {
	const op = "Adam"
	b.shapes.Adam(params, keep, s, g)
	void, scale := b.u32(op, "void", g.Void), b.f32(op, "scale", g.Scale)
	var all []operand
	var words []uint64
	chunks := 0
	for _, p := range params {
		value, grad := b.f32(op, "value", p.Value), b.f32(op, "grad", p.Grad)
		m, v := b.f32(op, "m", p.M), b.f32(op, "v", p.V)
		all = append(all, value, grad, m, v)
		words = append(words, uint64(value.at), uint64(grad.at), uint64(m.at), uint64(v.at),
			uint64(p.Value.Len()), uint64(chunks))
		chunks += (p.Value.Len() + adamChunk - 1) / adamChunk
	}
	if chunks == 0 {
		return
	}
	table := b.table(op, words)
	name := b.wide("adam", true, all...)
	b.reading(all, func() {
		b.run(name, b.flat(threads*chunks), table, len(params), chunks, keep, s.LR, s.Beta1, s.Beta2, s.Eps,
			s.WeightDecay, s.Correct1, s.Correct2, void, scale)
	})
}

// UpdateRecords implements [kernels.Backend].
func (b *Backend) UpdateRecords(rec, grad kernels.Tensor, s kernels.RowStep, g kernels.Guard) {
	const op = "UpdateRecords"
	b.shapes.UpdateRecords(rec, grad, s, g)
	r, d := b.f32(op, "rec", rec), b.f32(op, "grad", grad)
	void, scale := b.u32(op, "void", g.Void), b.f32(op, "scale", g.Scale)
	if rec.Rows == 0 {
		return
	}
	grid, rows, cols := b.warps(rec.Rows), grad.Rows, grad.Cols
	switch s.Rule {
	case kernels.RowAdam:
		name := b.wide("records_adam", cols%4 == 0, r, d)
		b.run(name, grid, r, d, rows, cols, s.LR, s.Beta1, s.Beta2, s.Eps, s.WeightDecay, s.Correct1, s.Correct2,
			void, scale)
	case kernels.RowAdamSteps:
		b.run("records_adam_steps", grid, r, d, rows, cols, s.LR, s.Beta1, s.Beta2, s.Eps, s.WeightDecay, void, scale)
	case kernels.RowAdagrad:
		b.run("records_adagrad", grid, r, d, rows, cols, s.LR, s.Eps, void, scale)
	}
}
