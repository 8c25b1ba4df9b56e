package kernels

// SquaredError is the loss of regression. It writes to loss the sum over each row's elements of (x
// - y)², with x in predictions and y in targets, and to dpredictions each gradient, 2·(x - y),
// times scale. An element whose target is NaN is not known: it has loss 0 and gradient 0. There is
// a row for every element of loss.
func SquaredError(loss, dpredictions, predictions, targets []float32, cols int, scale float32) {
	for r := range loss {
		x, y, d := predictions[r*cols:][:cols], targets[r*cols:][:cols], dpredictions[r*cols:][:cols]
		total := 0.0
		for c := range x {
			if y[c] != y[c] {
				d[c] = 0
				continue
			}
			off := float64(x[c]) - float64(y[c])
			total += off * off
			d[c] = float32(2 * off * float64(scale))
		}
		loss[r] = float32(total)
	}
}

func checkSquaredError(loss, dpredictions, predictions, targets Tensor) {
	if !sameShape(dpredictions, predictions) || !sameShape(targets, predictions) || !isColumn(loss, predictions.Rows) {
		refuse("SquaredError", "loss", loss, "dpredictions", dpredictions, "predictions", predictions, "targets", targets)
	}
}

// SquaredError implements [Backend].
func (c *CPU) SquaredError(loss, dpredictions, predictions, targets Tensor, scale float32) {
	const op = "SquaredError"
	checkSquaredError(loss, dpredictions, predictions, targets)
	l, d, n := c.floats(op, "loss", loss), c.floats(op, "dpredictions", dpredictions), predictions.Cols
	x, y := c.floats(op, "predictions", predictions), c.floats(op, "targets", targets)
	c.rows(predictions.Rows, n, func(lo, hi int) {
		SquaredError(l[lo:hi], d[lo*n:hi*n], x[lo*n:hi*n], y[lo*n:hi*n], n, scale)
	})
}

// SquaredError implements [Backend].
func (r *Reference) SquaredError(loss, dpredictions, predictions, targets Tensor, scale float32) {
	const op = "SquaredError"
	checkSquaredError(loss, dpredictions, predictions, targets)
	l, d := r.floats(op, "loss", loss), r.floats(op, "dpredictions", dpredictions)
	x, y := r.floats(op, "predictions", predictions), r.floats(op, "targets", targets)
	for i := range l {
		l[i] = 0
	}
	for i := range x {
		if d[i] = 0; y[i] == y[i] {
			l[i/predictions.Cols] += (x[i] - y[i]) * (x[i] - y[i])
			d[i] = 2 * (x[i] - y[i]) * float64(scale)
		}
	}
}
