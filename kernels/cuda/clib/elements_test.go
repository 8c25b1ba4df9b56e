//go:build cuda && linux

package clib

import "github.com/gnnstore/gnnstore/kernels"

// map1 launches a kernel (dst, src, n, more...).
func (d *device) map1(name string, dst, src kernels.Tensor, more ...any) {
	if dst.Len() > 0 {
		d.lib.run(d.wide(name, true, dst, src), flat(dst.Len()), append([]any{at(dst), at(src), dst.Len()}, more...)...)
	}
}

// map2 launches a kernel (dst, a, b, n, more...).
func (d *device) map2(name string, dst, a, b kernels.Tensor, more ...any) {
	if dst.Len() > 0 {
		name = d.wide(name, true, dst, a, b)
		d.lib.run(name, flat(dst.Len()), append([]any{at(dst), at(a), at(b), dst.Len()}, more...)...)
	}
}

func (d *device) Fill(dst kernels.Tensor, v float32) {
	d.Backend.Fill(onCPU(dst), v)
	defer d.begin()()
	if dst.Len() > 0 {
		d.lib.run(d.wide("fill", true, dst), flat(dst.Len()), at(dst), dst.Len(), v)
	}
}

func (d *device) Convert(dst, src kernels.Tensor) {
	d.Backend.Convert(onCPU(dst), onCPU(src))
	defer d.begin()()
	if src.Type == kernels.F16 {
		d.map1("convert_half", dst, src)
		return
	}
	d.map1("copy", dst, src)
}

func (d *device) Add(dst, src kernels.Tensor) {
	d.Backend.Add(onCPU(dst), onCPU(src))
	defer d.begin()()
	d.map1("add", dst, src)
}

func (d *device) Scale(dst kernels.Tensor, factor float32) {
	d.Backend.Scale(onCPU(dst), factor)
	defer d.begin()()
	if dst.Len() > 0 {
		d.lib.run(d.wide("scale", true, dst), flat(dst.Len()), at(dst), dst.Len(), factor)
	}
}

func (d *device) ScaleRows(dst, factors kernels.Tensor) {
	d.Backend.ScaleRows(onCPU(dst), onCPU(factors))
	defer d.begin()()
	if dst.Rows > 0 {
		d.lib.run(d.wide("scale_rows", dst.Cols%4 == 0, dst), flat(dst.Len()), at(dst), at(factors), dst.Rows, dst.Cols)
	}
}

func (d *device) AddRow(dst, row kernels.Tensor) {
	d.Backend.AddRow(onCPU(dst), onCPU(row))
	defer d.begin()()
	if dst.Rows > 0 {
		d.lib.run(d.wide("add_row", dst.Cols%4 == 0, dst, row), flat(dst.Len()), at(dst), at(row), dst.Rows, dst.Cols)
	}
}

func (d *device) CheckFinite(void, src kernels.Tensor) {
	d.Backend.CheckFinite(onCPU(void), onCPU(src))
	defer d.begin()()
	if src.Len() > 0 {
		d.lib.run(d.wide("check_finite", true, src), flat(src.Len()), at(void), at(src), src.Len())
	}
}

func (d *device) ReLU(dst, src kernels.Tensor) {
	d.Backend.ReLU(onCPU(dst), onCPU(src))
	defer d.begin()()
	d.map1("relu", dst, src)
}

func (d *device) ReLUGrad(dx, dy, y kernels.Tensor) {
	d.Backend.ReLUGrad(onCPU(dx), onCPU(dy), onCPU(y))
	defer d.begin()()
	d.map2("relu_grad", dx, dy, y)
}

func (d *device) ReLUMask(g, y kernels.Tensor) {
	d.Backend.ReLUMask(onCPU(g), onCPU(y))
	defer d.begin()()
	d.map1("relu_mask", g, y)
}

func (d *device) ELU(dst, src kernels.Tensor) {
	d.Backend.ELU(onCPU(dst), onCPU(src))
	defer d.begin()()
	d.map1("elu", dst, src)
}

func (d *device) ELUGrad(dx, dy, y kernels.Tensor) {
	d.Backend.ELUGrad(onCPU(dx), onCPU(dy), onCPU(y))
	defer d.begin()()
	d.map2("elu_grad", dx, dy, y)
}

func (d *device) GELU(dst, src kernels.Tensor) {
	d.Backend.GELU(onCPU(dst), onCPU(src))
	defer d.begin()()
	d.map1("gelu", dst, src)
}

func (d *device) GELUGrad(dx, dy, x kernels.Tensor) {
	d.Backend.GELUGrad(onCPU(dx), onCPU(dy), onCPU(x))
	defer d.begin()()
	d.map2("gelu_grad", dx, dy, x)
}

func (d *device) LeakyReLU(dst, src kernels.Tensor, slope float32) {
	d.Backend.LeakyReLU(onCPU(dst), onCPU(src), slope)
	defer d.begin()()
	d.map1("leaky_relu", dst, src, slope)
}

func (d *device) LeakyReLUGrad(dx, dy, x kernels.Tensor, slope float32) {
	d.Backend.LeakyReLUGrad(onCPU(dx), onCPU(dy), onCPU(x), slope)
	defer d.begin()()
	d.map2("leaky_relu_grad", dx, dy, x, slope)
}

func (d *device) Tanh(dst, src kernels.Tensor) {
	d.Backend.Tanh(onCPU(dst), onCPU(src))
	defer d.begin()()
	d.map1("tanh_cell", dst, src)
}

func (d *device) TanhGrad(dx, dy, y kernels.Tensor) {
	d.Backend.TanhGrad(onCPU(dx), onCPU(dy), onCPU(y))
	defer d.begin()()
	d.map2("tanh_grad", dx, dy, y)
}

func (d *device) dropout(name string, dst, src, ids kernels.Tensor, n int, key uint64, p float32) {
	if dst.Rows > 0 {
		threshold, factor := dropping(p)
		d.lib.run(d.wide(name, dst.Cols%n == 0, dst, src), flat(dst.Len()/4), at(dst), at(src), at(ids), dst.Rows,
			dst.Cols, key,
			threshold, factor)
	}
}

func (d *device) Dropout(dst, src, ids kernels.Tensor, key uint64, p float32) {
	d.Backend.Dropout(onCPU(dst), onCPU(src), onCPU(ids), key, p)
	defer d.begin()()
	name, n := half("dropout", src)
	d.dropout(name, dst, src, ids, n, key, p)
}

func (d *device) DropoutGrad(dx, dy, ids kernels.Tensor, key uint64, p float32) {
	d.Backend.DropoutGrad(onCPU(dx), onCPU(dy), onCPU(ids), key, p)
	defer d.begin()()
	d.dropout("dropout_grad", dx, dy, ids, 4, key, p)
}

func (d *device) GRUCell(dst, gates, x, h, s kernels.Tensor) {
	d.Backend.GRUCell(onCPU(dst), onCPU(gates), onCPU(x), onCPU(h), onCPU(s))
	defer d.begin()()
	if dst.Rows > 0 {
		d.lib.run(d.wide("gru_cell", dst.Cols%4 == 0, dst, gates, x, h, s), flat(dst.Len()), at(dst), at(gates), at(x),
			at(h), at(s),
			dst.Rows, dst.Cols)
	}
}

func (d *device) GRUCellGrad(dx, dh, ds, dy, gates, h, s kernels.Tensor) {
	d.Backend.GRUCellGrad(onCPU(dx), onCPU(dh), onCPU(ds), onCPU(dy), onCPU(gates), onCPU(h), onCPU(s))
	defer d.begin()()
	if dy.Rows > 0 {
		d.lib.run(d.wide("gru_cell_grad", dy.Cols%4 == 0, dx, dh, ds, dy, gates, h, s), flat(dy.Len()), at(dx), at(dh),
			at(ds), at(dy),
			at(gates), at(h), at(s), dy.Rows, dy.Cols)
	}
}

func (d *device) TimeEncode(dst, times, w, b kernels.Tensor) {
	d.Backend.TimeEncode(onCPU(dst), onCPU(times), onCPU(w), onCPU(b))
	defer d.begin()()
	if dst.Rows > 0 {
		d.lib.run(d.wide("time_encode", dst.Cols%4 == 0, dst, w, b), flat(dst.Len()), at(dst), at(times), at(w), at(b),
			dst.Rows, dst.Cols)
	}
}

func (d *device) Gate(dst, a, x, s kernels.Tensor) {
	d.Backend.Gate(onCPU(dst), onCPU(a), onCPU(x), onCPU(s))
	defer d.begin()()
	if dst.Len() > 0 {
		d.lib.run(d.wide("gate", true, dst, a, x), flat(dst.Len()), at(dst), at(a), at(x), at(s), dst.Len())
	}
}

func (d *device) GateGrad(da, dx, ds, dy, a, x, s kernels.Tensor) {
	d.Backend.GateGrad(onCPU(da), onCPU(dx), onCPU(ds), onCPU(dy), onCPU(a), onCPU(x), onCPU(s))
	defer d.begin()()
	chunks := (dy.Len() + 8191) / 8192
	parts := d.temp(8 * chunks)
	if chunks > 0 {
		d.lib.run(d.wide("gate_grad", true, da, dx, dy, a, x), grid{min(chunks, 3), 1, 1}, at(da), at(dx), parts, at(dy),
			at(a), at(x), at(s),
			dy.Len(), chunks)
	}
	d.lib.run("gate_finish", grid{1, 1, 1}, at(ds), at(s), parts, chunks)
}
