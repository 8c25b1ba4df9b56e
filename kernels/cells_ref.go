package kernels

import "math"

// gruCellRef is PyTorch's GRUCell behind its two products: r = σ(x_r+h_r), z = σ(x_z+h_z), n =
// tanh(x_n+r·h_n), (1-z)·n + z·s.
func gruCellRef[T float](dst, gates, x, h, s []T, rows, d int) {
	for i := range rows {
		xi, hi, gi := x[3*i*d:], h[3*i*d:], gates[3*i*d:]
		for c := range d {
			r, z := sigmoidRef(xi[c]+hi[c]), sigmoidRef(xi[d+c]+hi[d+c])
			n := T(math.Tanh(float64(xi[2*d+c] + r*hi[2*d+c])))
			gi[c], gi[d+c], gi[2*d+c] = r, z, n
			dst[i*d+c] = (1-z)*n + z*s[i*d+c]
		}
	}
}

func gruCellGradRef[T float](dx, dh, ds, dy, gates, h, s []T, rows, d int) {
	for i := range rows {
		for c := range d {
			at := 3*i*d + c // of r; z and n are d and 2·d behind
			r, z, n, g := gates[at], gates[at+d], gates[at+2*d], dy[i*d+c]
			dn := g * (1 - z) * (1 - n*n)
			dz := g * (s[i*d+c] - n) * z * (1 - z)
			dr := dn * h[at+2*d] * r * (1 - r)
			for k, v := range []T{dr, dz, dn} {
				dx[at+k*d] += v
			}
			for k, v := range []T{dr, dz, dn * r} {
				dh[at+k*d] += v
			}
			ds[i*d+c] += g * z
		}
	}
}

func tanhRef[T float](dst, src []T) {
	for i, v := range src {
		dst[i] = T(math.Tanh(float64(v)))
	}
}

func tanhGradRef[T float](dx, dy, y []T) {
	for i, v := range y {
		dx[i] += dy[i] * (1 - v*v)
	}
}
