package kernels

import "math"

// LayerNorm normalises each row of x to mean 0 and variance 1 (Ba, Kiros, Hinton 2016), multiplies
// by gain and adds bias. x has len(gain) columns. stats receives mean and 1/sqrt(var+eps) of every
// row.
func LayerNorm(dst, stats, x, gain, bias []float32, eps float32) {
	cols := len(gain)
	for r := range len(stats) / 2 {
		d, v := dst[r*cols:][:cols], x[r*cols:][:cols]
		mean := sum(v) / float32(cols)
		// The second pass costs little, the row being in cache, and does not cancel as E[x²]-E[x]²
		// does.
		inverse := 1 / float32(math.Sqrt(float64(squaredDistance(v, mean)/float32(cols)+eps)))
		stats[2*r], stats[2*r+1] = mean, inverse
		d, g, b := d[:len(v)], gain[:len(v)], bias[:len(v)]
		for c := range v {
			d[c] = (v[c]-mean)*inverse*g[c] + b[c]
		}
	}
}

// sum adds in four lanes, since one would wait for each addition to finish before the next.
func sum(x []float32) float32 {
	var s0, s1, s2, s3 float32
	for ; len(x) >= 4; x = x[4:] {
		s0 += x[0]
		s1 += x[1]
		s2 += x[2]
		s3 += x[3]
	}
	for _, v := range x {
		s0 += v
	}
	return s0 + s1 + (s2 + s3)
}

// squaredDistance is the sum of (x-mean)², in four lanes like sum.
func squaredDistance(x []float32, mean float32) float32 {
	var s0, s1, s2, s3 float32
	for ; len(x) >= 4; x = x[4:] {
		d0, d1, d2, d3 := x[0]-mean, x[1]-mean, x[2]-mean, x[3]-mean
		s0 += d0 * d0
		s1 += d1 * d1
		s2 += d2 * d2
		s3 += d3 * d3
	}
	for _, v := range x {
		s0 += (v - mean) * (v - mean)
	}
	return s0 + s1 + (s2 + s3)
}

// LayerNormGrad adds the gradients of LayerNorm. With h = (x-mean)/sqrt(var+eps) and g = dy·gain:
//
//	dx += (g - mean(g) - h·mean(g·h)) / sqrt(var+eps)    dgain += Σ dy·h    dbias += Σ dy
//
// where the means are over the row and the sums over the rows, in order. If fresh, dx is set, not
// added to.
func LayerNormGrad(dx, dgain, dbias, dy, x, stats, gain []float32, fresh bool) {
	cols := len(gain)
	if fresh {
		clear(dx[:len(stats)/2*cols])
	}
	dgain, dbias = dgain[:cols], dbias[:cols]
	for r := range len(stats) / 2 {
		mean, inverse := stats[2*r], stats[2*r+1]
		dxr, dyr, xr := dx[r*cols:][:cols], dy[r*cols:][:cols], x[r*cols:][:cols]
		var sumG, sumGH float32
		for c := range gain {
			h := (xr[c] - mean) * inverse
			g := dyr[c] * gain[c]
			dgain[c] += dyr[c] * h
			dbias[c] += dyr[c]
			sumG += g
			sumGH += g * h
		}
		meanG, meanGH := sumG/float32(cols), sumGH/float32(cols)
		for c := range gain {
			h := (xr[c] - mean) * inverse
			dxr[c] += (dyr[c]*gain[c] - meanG - h*meanGH) * inverse
		}
	}
}
