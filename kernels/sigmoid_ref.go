package kernels

import "math"

func sigmoidCrossEntropyRef[T float](loss, dlogits, logits, targets []T, rows, cols int, scale T) {
	for r := range rows {
		total := 0.0
		for c := range cols {
			x, y := float64(logits[r*cols+c]), float64(targets[r*cols+c])
			dlogits[r*cols+c] = 0
			if math.IsNaN(y) {
				continue
			}
			total += math.Max(x, 0) - x*y + math.Log1p(math.Exp(-math.Abs(x)))
			dlogits[r*cols+c] = T(1/(1+math.Exp(-x))-y) * scale
		}
		loss[r] = T(total)
	}
}
