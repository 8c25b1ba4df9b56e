package kerneltest

import (
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

func testLeakyReLU(r *rig) {
	for _, s := range shapes {
		for _, slope := range []float32{0.2, 0, 1, -0.5} {
			r.at("%d×%d, slope %v", s[0], s[1], slope)
			n := s[0] * s[1]
			dst, x, dx, dy := r.normal(s[0], s[1]), r.floats(s[0], s[1], r.spread(n)), r.normal(s[0], s[1]), r.floats(s[0], s[1], r.sparseSpecials(n))
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) {
				b.LeakyReLU(on(dst), on(x), slope)
				b.LeakyReLUGrad(on(dx), on(dy), on(x), slope)
			})
			r.close(1e-6, dst, dx)
			r.unchanged(x, dy)
		}
	}
}

func testStateRefusals(r *rig) {
	f := func(rows, cols int) kernels.Tensor { return r.normal(rows, cols).tensor }
	b := r.b
	for name, op := range map[string]func(){
		"LeakyReLU":     func() { b.LeakyReLU(f(2, 3), f(3, 2), 0.2) },
		"LeakyReLUGrad": func() { b.LeakyReLUGrad(f(2, 3), f(2, 3), f(2, 2), 0.2) },
	} {
		require.Panics(r.t, op, name)
	}
}
