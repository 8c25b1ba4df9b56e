package kernels

func rowsOfRef[T float | uint16](dst, hot, came []T, cols int, at []uint32) {
	for i, from := range at {
		for c := range cols {
			if from >= InSlot {
				dst[i*cols+c] = came[int(from-InSlot)*cols+c]
			} else {
				dst[i*cols+c] = hot[int(from)*cols+c]
			}
		}
	}
}

func keepRowsRef[T float | uint16](hot, came []T, cols int, from, to []uint32) {
	for i, u := range from {
		for c := range cols {
			hot[int(to[i])*cols+c] = came[int(u)*cols+c]
		}
	}
}
