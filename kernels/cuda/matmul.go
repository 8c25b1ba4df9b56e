//go:build cuda && linux

package cuda

import (
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// Flags of products, as src/matmul.cu has them.
const (
	addsTo  = 1
	withMax = 2 // the larger of the result and 0
)

// product computes op(x)·op(y) + bias, m×n, by sums of k terms. Where the tiles of dst are too few
// for the device, slices of the terms are summed apart, and then added up in order. How a product
// is cut depends on its sizes alone.
func (b *Backend) product(dst, x, y, bias operand, m, n, k int, transX, transY, fits bool, flags int) {
	if m == 0 || n == 0 {
		return
	}
	letter := map[bool]string{true: "t", false: "n"}
	name, tile := "matmul_"+letter[transX]+letter[transY], 128
	if m <= 64 || n <= 64 || transX && transY {
		name, tile = name+"_small", 64
	}
	name = b.wide(name, fits, x, y, dst)
	grid := driver.Dim{X: uint32((n + tile - 1) / tile), Y: uint32((m + tile - 1) / tile), Z: 1}
	slice := k
	if tiles := int(grid.X * grid.Y); tiles < fewTiles && k >= 2*leastSlice {
		slices := min((fewTiles+tiles-1)/tiles, k/leastSlice, mostSlices)
		slice = (k/slices + 15) &^ 15
		grid.Z = uint32((k + slice - 1) / slice)
	}
	if grid.Z == 1 {
		b.run(name, grid, dst, x, y, bias, m, n, k, max(k, 1), flags)
		return
	}
	parts := b.temporary(4 * int(grid.Z) * m * n)[0]
	b.run(name, grid, parts, x, y, operand{}, m, n, k, slice, 0)
	b.run("add_parts", b.flat(m*n), dst, parts, bias, m, n, grid.Z, flags)
}

const (
	fewTiles   = 132 // multiprocessors of an H100: below, slices of the terms fill the device
	leastSlice = 256
	mostSlices = 64
)

// MatMul implements [kernels.Backend].
func (b *Backend) MatMul(dst, x, y kernels.Tensor, transX, transY, accumulate bool) {
	b.shapes.MatMul(dst, x, y, transX, transY, accumulate)
	d, p, q := b.f32("MatMul", "dst", dst), b.f32("MatMul", "a", x), b.f32("MatMul", "b", y)
	k, flags := x.Cols, 0
	if transX {
		k = x.Rows
	}
	if accumulate {
		flags = addsTo
	}
	b.product(d, p, q, operand{}, dst.Rows, dst.Cols, k, transX, transY, x.Cols%4 == 0 && y.Cols%4 == 0, flags)
}

// Affine implements [kernels.Backend].
func (b *Backend) Affine(dst, bias kernels.Tensor, relu bool, terms ...kernels.Term) {
	const op = "Affine"
	b.shapes.Affine(dst, bias, relu, terms...)
	d, row := b.f32(op, "dst", dst), b.f32(op, "bias", bias)
	if len(terms) == 0 {
		terms = make([]kernels.Term, 1)
	}
	for i, t := range terms {
		x, w, at, flags := b.f32(op, "x", t.X), b.f32(op, "w", t.W), operand{}, 0
		if i > 0 {
			flags = addsTo
		}
		if i == len(terms)-1 {
			if at = row; relu {
				flags |= withMax
			}
		}
		b.product(d, x, w, at, dst.Rows, dst.Cols, t.X.Cols, false, true, t.X.Cols%4 == 0, flags)
	}
}
