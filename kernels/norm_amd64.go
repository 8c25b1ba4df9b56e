//go:build amd64 && !purego

package kernels

func (r *routines) norms(
	layerNorm func(dst, stats, x, gain, bias *float32, rows, cols int, eps float32),
	layerNormGrad func(dx, dgain, dbias, dy, x, stats, gain *float32, rows, cols, keep int),
) {
	r.layerNorm = func(dst, stats, x, gain, bias []float32, eps float32) {
		rows, cols := len(stats)/2, len(gain)
		dst, x, bias = dst[:rows*cols], x[:rows*cols], bias[:cols]
		if !cutRows(rows, cols, func(lo, n int) {
			layerNorm(&dst[lo*cols], &stats[2*lo], &x[lo*cols], &gain[0], &bias[0], n, cols, eps)
		}) {
			LayerNorm(dst, stats, x, gain, bias, eps)
		}
	}
	r.layerNormGrad = func(dx, dgain, dbias, dy, x, stats, gain []float32, fresh bool) {
		rows, cols := len(stats)/2, len(gain)
		dx, dy, x = dx[:rows*cols], dy[:rows*cols], x[:rows*cols]
		dgain, dbias = dgain[:cols], dbias[:cols]
		keep := 1
		if fresh {
			keep = 0
		}
		if !cutRows(rows, cols, func(lo, n int) {
			at := lo * cols
			layerNormGrad(&dx[at], &dgain[0], &dbias[0], &dy[at], &x[at], &stats[2*lo], &gain[0], n, cols, keep)
		}) {
			LayerNormGrad(dx, dgain, dbias, dy, x, stats, gain, fresh)
		}
	}
}
