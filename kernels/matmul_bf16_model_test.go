package kernels

import "math"

// What products in bfloat16 compute, an element at a time: the definition that matmul_bf16_test.go
// holds each set to, bit for bit.

// multiplyAdd is x·y + z, rounded once, to nearest even. Factors and sums that are denormal are
// zeros of their sign, and so is a result that is below the smallest normal number once it is
// rounded to 24 bits.
func multiplyAdd(x, y, z float32) float32 {
	// The product is exact: factors have 8 bits, or 24 and 1. To round the sum to float64's 53 bits
	// first changes nothing, since 53 ≥ 2·24 + 2 (Figueroa 1995).
	sum := float64(flushed(x))*float64(flushed(y)) + float64(flushed(z))
	const up = 0x1p64
	if math.Abs(sum) < 0x1p-125 { // to 24 bits, however small
		sum = float64(float32(sum*up)) / up
		if math.Abs(sum) < 0x1p-126 {
			sum = math.Copysign(0, sum)
		}
	}
	return float32(sum)
}

// flushed is v, or a zero of its sign if v is denormal.
func flushed(v float32) float32 {
	if math.Abs(float64(v)) < 0x1p-126 {
		return float32(math.Copysign(0, float64(v)))
	}
	return v
}

// dotModel adds the product of the second element of each pair and then the product of the first,
// as VDPBF16PS does. The length of a and b is even.
func dotModel(sum float32, a, b []float32) float32 {
	for l := 0; l < len(a); l += 2 {
		sum = multiplyAdd(a[l+1], b[l+1], sum)
		sum = multiplyAdd(a[l], b[l], sum)
	}
	return sum
}

// tileModel adds one number for every 32 elements, the sum of two sums, as TDPBF16PS does. The
// length of a and b is a multiple of 32.
func tileModel(sum float32, a, b []float32) float32 {
	for l := 0; l < len(a); l += 32 {
		var even, odd float32
		for i := l; i < l+32; i += 2 {
			even = multiplyAdd(a[i], b[i], even)
			odd = multiplyAdd(a[i+1], b[i+1], odd)
		}
		sum = multiplyAdd(1, multiplyAdd(1, odd, even), sum)
	}
	return sum
}

// modelProduct computes an element of a product from a row of op(a) and a column of op(b),
// beginning from sum. So many elements as chunk says are added up by themselves; 0 means all. The
// inner dimension ends with zeros up to a multiple of 32 elements.
func modelProduct(model func(sum float32, a, b []float32) float32, sum float32, a, b []float32, chunk int) float32 {
	x, y := make([]float32, padded(len(a))), make([]float32, padded(len(a)))
	roundBF16(x, a)
	roundBF16(y, b)
	if chunk == 0 {
		chunk = len(x)
	}
	for l := 0; l < len(x); l += chunk {
		end := min(l+chunk, len(x))
		if l == 0 {
			sum = model(sum, x[:end], y[:end])
		} else {
			sum += model(0, x[l:end], y[l:end])
		}
	}
	return sum
}
