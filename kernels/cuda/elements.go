//go:build cuda && linux

package cuda

import (
	"math"

	"github.com/gnnstore/gnnstore/kernels"
)

// map1 launches a kernel (dst, src, n, more...).
func (b *Backend) map1(name string, dst, src operand, n int, more ...any) {
	if n > 0 {
		b.run(b.wide(name, true, dst, src), b.flat(n), append([]any{dst, src, n}, more...)...)
	}
}

// map2 launches a kernel (dst, x, y, n, more...).
func (b *Backend) map2(name string, dst, x, y operand, n int, more ...any) {
	if n > 0 {
		b.run(b.wide(name, true, dst, x, y), b.flat(n), append([]any{dst, x, y, n}, more...)...)
	}
}

// Fill implements [kernels.Backend].
func (b *Backend) Fill(dst kernels.Tensor, v float32) {
	d := b.f32("Fill", "dst", dst)
	switch {
	case dst.Len() == 0:
	case math.Float32bits(v) == 0:
		b.deferZero(zero{d, dst.Len()})
	default:
		b.run(b.wide("fill", true, d), b.flat(dst.Len()), d, dst.Len(), v)
	}
}

// Convert implements [kernels.Backend].
func (b *Backend) Convert(dst, src kernels.Tensor) {
	b.shapes.Convert(dst, src)
	d, s := b.f32("Convert", "dst", dst), b.f32OrHalf("Convert", "src", src)
	if src.Type == kernels.F16 {
		b.map1("convert_half", d, s, dst.Len())
		return
	}
	b.map1("copy", d, s, dst.Len())
}

// Add implements [kernels.Backend].
func (b *Backend) Add(dst, src kernels.Tensor) {
	b.shapes.Add(dst, src)
	b.map1("add", b.f32("Add", "dst", dst), b.f32("Add", "src", src), dst.Len())
}

// Scale implements [kernels.Backend].
func (b *Backend) Scale(dst kernels.Tensor, factor float32) {
	if d := b.f32("Scale", "dst", dst); dst.Len() > 0 {
		b.run(b.wide("scale", true, d), b.flat(dst.Len()), d, dst.Len(), factor)
	}
}

// ScaleRows implements [kernels.Backend].
func (b *Backend) ScaleRows(dst, factors kernels.Tensor) {
	b.shapes.ScaleRows(dst, factors)
	d, f := b.f32("ScaleRows", "dst", dst), b.f32("ScaleRows", "factors", factors)
	if dst.Len() > 0 {
		b.run(b.wide("scale_rows", dst.Cols%4 == 0, d), b.flat(dst.Len()), d, f, dst.Rows, dst.Cols)
	}
}

// AddRow implements [kernels.Backend].
func (b *Backend) AddRow(dst, row kernels.Tensor) {
	b.shapes.AddRow(dst, row)
	d, r := b.f32("AddRow", "dst", dst), b.f32("AddRow", "row", row)
	if dst.Len() > 0 {
		b.run(b.wide("add_row", dst.Cols%4 == 0, d, r), b.flat(dst.Len()), d, r, dst.Rows, dst.Cols)
	}
}

// CheckFinite implements [kernels.Backend].
func (b *Backend) CheckFinite(void, src kernels.Tensor) {
	b.shapes.CheckFinite(void, src)
	v, s := b.u32("CheckFinite", "void", void), b.f32("CheckFinite", "src", src)
	if src.Len() > 0 {
		b.run(b.wide("check_finite", true, s), b.flat(src.Len()), v, s, src.Len())
	}
}

// activation checks an element by element operation and launches its kernel.
func (b *Backend) activation(op, name string, dst, src kernels.Tensor, more ...any) {
	b.map1(name, b.f32(op, "dst", dst), b.f32(op, "src", src), dst.Len(), more...)
}

// activationGrad does likewise with its gradient, which reads at, called atName.
func (b *Backend) activationGrad(
	op, name string, dx, dy kernels.Tensor, atName string, at kernels.Tensor, more ...any,
) {
	b.map2(name, b.f32(op, "dx", dx), b.f32(op, "dy", dy), b.f32(op, atName, at), dx.Len(), more...)
}

// ReLU implements [kernels.Backend].
func (b *Backend) ReLU(dst, src kernels.Tensor) {
	b.shapes.ReLU(dst, src)
	if b.takesReLU(b.f32("ReLU", "dst", dst), b.f32("ReLU", "src", src), dst.Len()) {
		return
	}
	b.activation("ReLU", "relu", dst, src)
}

// ReLUGrad implements [kernels.Backend].
func (b *Backend) ReLUGrad(dx, dy, y kernels.Tensor) {
	b.shapes.ReLUGrad(dx, dy, y)
	b.activationGrad("ReLUGrad", "relu_grad", dx, dy, "y", y)
}

// ReLUMask implements [kernels.Backend].
func (b *Backend) ReLUMask(d, y kernels.Tensor) {
	b.shapes.ReLUMask(d, y)
	x, out := b.f32("ReLUMask", "d", d), b.f32("ReLUMask", "y", y)
	if !b.takesMask(x, out, d.Len()) && !b.meanGradTakesMask(x, out, d.Len()) {
		b.map1("relu_mask", x, out, d.Len())
	}
}

// ELU implements [kernels.Backend].
func (b *Backend) ELU(dst, src kernels.Tensor) {
	b.shapes.ELU(dst, src)
	b.activation("ELU", "elu", dst, src)
}

// ELUGrad implements [kernels.Backend].
func (b *Backend) ELUGrad(dx, dy, y kernels.Tensor) {
	b.shapes.ELUGrad(dx, dy, y)
	b.activationGrad("ELUGrad", "elu_grad", dx, dy, "y", y)
}

// GELU implements [kernels.Backend].
func (b *Backend) GELU(dst, src kernels.Tensor) {
	b.shapes.GELU(dst, src)
	b.activation("GELU", "gelu", dst, src)
}

// GELUGrad implements [kernels.Backend].
func (b *Backend) GELUGrad(dx, dy, x kernels.Tensor) {
	b.shapes.GELUGrad(dx, dy, x)
	b.activationGrad("GELUGrad", "gelu_grad", dx, dy, "x", x)
}

// LeakyReLU implements [kernels.Backend].
func (b *Backend) LeakyReLU(dst, src kernels.Tensor, slope float32) {
	b.shapes.LeakyReLU(dst, src, slope)
	b.activation("LeakyReLU", "leaky_relu", dst, src, slope)
}

// LeakyReLUGrad implements [kernels.Backend].
func (b *Backend) LeakyReLUGrad(dx, dy, x kernels.Tensor, slope float32) {
	b.shapes.LeakyReLUGrad(dx, dy, x, slope)
	b.activationGrad("LeakyReLUGrad", "leaky_relu_grad", dx, dy, "x", x, slope)
}

// Tanh implements [kernels.Backend].
func (b *Backend) Tanh(dst, src kernels.Tensor) {
	b.shapes.Tanh(dst, src)
	b.activation("Tanh", "tanh_cell", dst, src)
}

// TanhGrad implements [kernels.Backend].
func (b *Backend) TanhGrad(dx, dy, y kernels.Tensor) {
	b.shapes.TanhGrad(dx, dy, y)
	b.activationGrad("TanhGrad", "tanh_grad", dx, dy, "y", y)
}

// Dropout implements [kernels.Backend].
func (b *Backend) Dropout(dst, src, ids kernels.Tensor, key uint64, p float32) {
	b.shapes.Dropout(dst, src, ids, key, p)
	name, per := ofType("dropout", src)
	b.dropout("Dropout", name, per, dst, src, ids, key, p)
}

// DropoutGrad implements [kernels.Backend].
func (b *Backend) DropoutGrad(dx, dy, ids kernels.Tensor, key uint64, p float32) {
	b.shapes.DropoutGrad(dx, dy, ids, key, p)
	b.f32("DropoutGrad", "dy", dy)
	b.dropout("DropoutGrad", "dropout_grad", 4, dx, dy, ids, key, p)
}

func (b *Backend) dropout(op, name string, per int, dst, src, ids kernels.Tensor, key uint64, p float32) {
	d, s, id := b.f32(op, "dst", dst), b.f32OrHalf(op, "src", src), b.u32(op, "ids", ids)
	of := drop{x: d, ids: id, rows: dst.Rows, cols: dst.Cols, key: key, p: p}
	switch {
	case dst.Len() == 0:
	case d.at == s.at && name == "dropout":
		if !b.takesDropout(of) && !b.meanGradTakesDropout(of) {
			b.deferDrop(of)
		}
	default:
		threshold, factor := kernels.Dropping(p)
		b.run(b.wide(name, dst.Cols%per == 0, d, s), b.flat(dst.Len()/4),
			d, s, id, dst.Rows, dst.Cols, key, threshold, factor)
	}
}

// GRUCell implements [kernels.Backend].
func (b *Backend) GRUCell(dst, gates, x, h, s kernels.Tensor) {
	const op = "GRUCell"
	b.shapes.GRUCell(dst, gates, x, h, s)
	d, g, v := b.f32(op, "dst", dst), b.f32(op, "gates", gates), b.f32(op, "x", x)
	hidden, state := b.f32(op, "h", h), b.f32(op, "s", s)
	if dst.Len() > 0 {
		name := b.wide("gru_cell", dst.Cols%4 == 0, d, g, v, hidden, state)
		b.run(name, b.flat(dst.Len()), d, g, v, hidden, state, dst.Rows, dst.Cols)
	}
}

// GRUCellGrad implements [kernels.Backend].
func (b *Backend) GRUCellGrad(dx, dh, ds, dy, gates, h, s kernels.Tensor) {
	const op = "GRUCellGrad"
	b.shapes.GRUCellGrad(dx, dh, ds, dy, gates, h, s)
	gx, gh, gs, gy := b.f32(op, "dx", dx), b.f32(op, "dh", dh), b.f32(op, "ds", ds), b.f32(op, "dy", dy)
	g, hidden, state := b.f32(op, "gates", gates), b.f32(op, "h", h), b.f32(op, "s", s)
	if dy.Len() > 0 {
		name := b.wide("gru_cell_grad", dy.Cols%4 == 0, gx, gh, gs, gy, g, hidden, state)
		b.run(name, b.flat(dy.Len()), gx, gh, gs, gy, g, hidden, state, dy.Rows, dy.Cols)
	}
}

// TimeEncode implements [kernels.Backend].
func (b *Backend) TimeEncode(dst, times, w, shift kernels.Tensor) {
	const op = "TimeEncode"
	b.shapes.TimeEncode(dst, times, w, shift)
	d, t, rate, at := b.f32(op, "dst", dst), b.f32(op, "times", times), b.f32(op, "w", w), b.f32(op, "b", shift)
	if dst.Len() > 0 {
		b.run(b.wide("time_encode", dst.Cols%4 == 0, d, rate, at), b.flat(dst.Len()), d, t, rate, at, dst.Rows, dst.Cols)
	}
}

// Gate implements [kernels.Backend].
func (b *Backend) Gate(dst, a, x, s kernels.Tensor) {
	const op = "Gate"
	b.shapes.Gate(dst, a, x, s)
	d, first, second, gate := b.f32(op, "dst", dst), b.f32(op, "a", a), b.f32(op, "x", x), b.f32(op, "s", s)
	if dst.Len() > 0 {
		b.run(b.wide("gate", true, d, first, second), b.flat(dst.Len()), d, first, second, gate, dst.Len())
	}
}

// gateChunk is the number of elements whose sum gate_grad makes.
const gateChunk = 8192

// GateGrad implements [kernels.Backend].
func (b *Backend) GateGrad(da, dx, ds, dy, a, x, s kernels.Tensor) {
	const op = "GateGrad"
	b.shapes.GateGrad(da, dx, ds, dy, a, x, s)
	ga, gx, gs, gy := b.f32(op, "da", da), b.f32(op, "dx", dx), b.f32(op, "ds", ds), b.f32(op, "dy", dy)
	first, second, gate := b.f32(op, "a", a), b.f32(op, "x", x), b.f32(op, "s", s)
	chunks := (dy.Len() + gateChunk - 1) / gateChunk
	parts := b.temporary(8 * chunks)[0]
	if chunks > 0 {
		name := b.wide("gate_grad", true, ga, gx, gy, first, second)
		b.run(name, b.flat(threads*chunks), ga, gx, parts, gy, first, second, gate, dy.Len(), chunks)
	}
	b.run("gate_finish", b.flat(1), gs, gate, parts, chunks)
}
