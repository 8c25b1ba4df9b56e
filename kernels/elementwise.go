package kernels

// Fill sets every element of dst to v.
func Fill(dst []float32, v float32) {
	for i := range dst {
		dst[i] = v
	}
}

// Add computes dst += src.
func Add(dst, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] += src[i]
	}
}

// AddRow adds row to every row of dst, which has len(row) columns.
func AddRow(dst, row []float32) {
	if len(row) == 0 {
		return
	}
	for ; len(dst) > 0; dst = dst[len(row):] {
		Add(dst[:len(row)], row)
	}
}

// ColumnSumGrad adds the sum of src's rows, in order, to drow. src has len(drow) columns.
func ColumnSumGrad(drow, src []float32) {
	cols := len(drow)
	if cols == 0 {
		return
	}
	// Four rows at a time: one load and store of the sum for four additions.
	for ; len(src) >= 4*cols; src = src[4*cols:] {
		r0, r1, r2, r3 := src[:cols], src[cols:2*cols], src[2*cols:3*cols], src[3*cols:4*cols]
		r0, r1, r2, r3 = r0[:len(drow)], r1[:len(drow)], r2[:len(drow)], r3[:len(drow)]
		for c := range drow {
			drow[c] = drow[c] + r0[c] + r1[c] + r2[c] + r3[c]
		}
	}
	for ; len(src) > 0; src = src[cols:] {
		Add(drow, src[:cols])
	}
}
