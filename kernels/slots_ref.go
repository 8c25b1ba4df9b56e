package kernels

import "math"

func assembleRowsRef[T float](dst, x []T, cols int, slots []T, stride int, at []uint32) {
	for i, from := range at {
		for c := range cols {
			if from >= InSlot {
				dst[i*cols+c] = slots[int(from-InSlot)*stride+c]
			} else {
				dst[i*cols+c] = x[int(from)*cols+c]
			}
		}
	}
}

func storeRowsRef[T float](slots []uint16, stride int, lost []uint32, x []T, cols int, rows, to []uint32) {
	for i, from := range rows {
		lost[i] = 0
		for c := range cols {
			v := float64(x[int(from)*cols+c])
			if math.IsNaN(v) || math.Abs(v) >= 65520 { // from where float16 rounds to Inf
				lost[i] = 1
			}
			slots[int(to[i])*stride+c] = floatToHalfRef(max(-65504, min(65504, v))) // of NaN both are NaN
		}
	}
}
