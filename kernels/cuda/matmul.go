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

// product computes op(x)·op(y) + bias, m×n, by sums of k terms: by the library, if there is one.
func (b *Backend) product(dst, x, y, bias operand, m, n, k int, transX, transY, fits bool, flags int) {
	if b.library == nil || k == 0 {
		b.ownProduct(dst, x, y, bias, m, n, k, transX, transY, fits, flags)
	} else if m > 0 && n > 0 {
		b.byLibrary(dst, x, y, bias, m, n, k, transX, transY, flags)
	}
}

// ownProduct is product by our own kernels. Where the tiles of dst are too few for the device,
// slices of the terms are summed apart, and then added up in order. How a product is cut depends on
// its sizes alone.
func (b *Backend) ownProduct(dst, x, y, bias operand, m, n, k int, transX, transY, fits bool, flags int) {
	if m == 0 || n == 0 {
		return
	}
	name, grid := tiles(productName(transX, transY), m, n)
	name = b.wide(name, fits, x, y, dst)
	slice := k
	if slices := slicesOf(grid, k); slices > 1 {
		slice = (k/slices + 15) &^ 15
		grid.Z = uint32((k + slice - 1) / slice)
	}
	first := func(to, bias operand, slice, flags int) {
		b.run(name, grid, append([]any{to, x, y, bias, m, n, k, slice, flags}, noSecond(transX, transY)...)...)
	}
	if grid.Z == 1 {
		if flags == addsTo && b.takesZero(dst) {
			flags = 0
		}
		first(dst, bias, max(k, 1), flags)
		return
	}
	if flags == addsTo && bias.at == 0 {
		b.settleArgs([]any{dst, x, y})
		b.deferred.mu.Lock()
		defer b.deferred.mu.Unlock()
		args := append([]any{x, y, operand{}, m, n, k, slice, 0}, noSecond(transX, transY)...)
		b.launchParts(name, grid, []operand{dst}, m*n, int(grid.Z), args...)
		return
	}
	parts := b.temporary(4 * int(grid.Z) * m * n)[0]
	first(parts, operand{}, slice, 0)
	b.run("add_parts", b.flat(m*n), dst, parts, bias, m, n, grid.Z, flags)
}

// productName returns the name of a product's kernels.
func productName(transX, transY bool) string {
	letter := map[bool]string{true: "t", false: "n"}
	return "matmul_" + letter[transX] + letter[transY]
}

// noSecond returns the arguments that stand for no second product, for kernels that can take two.
func noSecond(transX, transY bool) []any {
	if transX || !transY {
		return nil
	}
	return []any{operand{}, operand{}, 0}
}

const (
	fewTiles   = 132 // multiprocessors of an H100; with fewer tiles, slices of the terms fill it
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

// AffineGrad implements [kernels.Backend].
func (b *Backend) AffineGrad(dy, y, dbias kernels.Tensor, terms ...kernels.TermGrad) {
	b.shapes.AffineGrad(dy, y, dbias, terms...)
	kernels.AffineGradOf(b, dy, y, dbias, terms...)
}

// Affine implements [kernels.Backend].
func (b *Backend) Affine(dst, bias kernels.Tensor, relu bool, terms ...kernels.Term) {
	const op = "Affine"
	b.shapes.Affine(dst, bias, relu, terms...)
	d, row := b.f32(op, "dst", dst), b.f32(op, "bias", bias)
	if len(terms) == 0 {
		terms = make([]kernels.Term, 1)
	}
	if len(terms) == 2 && (b.library == nil || b.finishes(dst, terms[0].X.Cols)) && b.pair(d, row, relu, dst, terms) {
		return
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
		compute := b.product
		if i > 0 && i == len(terms)-1 && b.finishes(dst, t.X.Cols) {
			compute = b.ownProduct
		}
		compute(d, x, w, at, dst.Rows, dst.Cols, t.X.Cols, false, true, t.X.Cols%4 == 0, flags)
	}
}

// finishes reports whether our own kernels compute both of two terms, or the last of more, where
// there is a library. They add the bias and take the maximum as they store, which saves a launch
// that reads and writes dst. Their products reach 87 % of cuBLAS on an H100. There an Affine of two
// terms at 127,687 rows of 256 takes 443 µs by our own kernels in one launch, 541 µs with cuBLAS
// for the first term, and 612 µs by cuBLAS alone; at 13,890 rows 110, 115 and 115 µs. Where tiles
// fill less than half of the device, our own kernels lose: at 1000×172×256, which has 16 tiles,
// both terms take 66 µs, and 24 µs by cuBLAS. They have no TF32.
func (b *Backend) finishes(dst kernels.Tensor, k int) bool {
	_, grid := tiles("matmul_nt", dst.Rows, dst.Cols)
	return b.library != nil && !b.options.TF32 && grid.X*grid.Y >= fewTiles/2 && slicesOf(grid, k) == 1
}

// pair computes an Affine of two terms with one launch of our own kernels. It leaves out those that
// are better cut in slices, and then returns false.
func (b *Backend) pair(d, bias operand, relu bool, dst kernels.Tensor, terms []kernels.Term) bool {
	const op = "Affine"
	var o [4]operand
	fits, k := true, [2]int{}
	for i, t := range terms {
		o[2*i], o[2*i+1] = b.f32(op, "x", t.X), b.f32(op, "w", t.W)
		k[i] = t.X.Cols
		fits = fits && k[i]%4 == 0
	}
	name, grid := tiles("matmul_nt", dst.Rows, dst.Cols)
	if dst.Len() == 0 || k[0] == 0 || k[1] == 0 || slicesOf(grid, max(k[0], k[1])) > 1 {
		return false
	}
	flags := 0
	if relu {
		flags = withMax
	}
	b.run(b.wide(name, fits, o[0], o[1], o[2], o[3], d), grid,
		d, o[0], o[1], bias, dst.Rows, dst.Cols, k[0], k[0], flags, o[2], o[3], k[1])
	return true
}

// tiles returns the variant of a product's kernel for a result of m × n, and its grid.
func tiles(name string, m, n int) (string, driver.Dim) {
	tile := 128
	if m <= 64 || n <= 64 || name == "matmul_tt" {
		name, tile = name+"_small", 64
	}
	return name, driver.Dim{X: uint32((n + tile - 1) / tile), Y: uint32((m + tile - 1) / tile), Z: 1}
}

// slicesOf returns into how many slices the k terms of a product are cut.
func slicesOf(grid driver.Dim, k int) int {
	tiles := int(grid.X * grid.Y)
	if tiles >= fewTiles || k < 2*leastSlice {
		return 1
	}
	return min((fewTiles+tiles-1)/tiles, k/leastSlice, mostSlices)
}
