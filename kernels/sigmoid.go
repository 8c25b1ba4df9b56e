package kernels

import "math"

// SigmoidCrossEntropy is the loss of multi-label classification. For logit x and target y, 0 or 1
// or between, an element's loss is -y·log σ(x) - (1-y)·log(1-σ(x)) and its gradient σ(x) - y. It
// writes to loss the sum over each row's elements, and to dlogits each gradient times scale. An
// element whose target is NaN is not known: it has loss 0 and gradient 0. There is a row for every
// element of loss.
func SigmoidCrossEntropy(loss, dlogits, logits, targets []float32, cols int, scale float32) {
	sigmoidCrossEntropy(loss, dlogits, logits, targets, cols, scale, nil)
}

// sigmoidCrossEntropy is SigmoidCrossEntropy with the exponentials of exp, rounded to float32; nil:
// in float64.
func sigmoidCrossEntropy(loss, dlogits, logits, targets []float32, cols int, scale float32, exp func(dst, src []float32)) {
	if exp != nil { // of all rows at once, which may have one column
		all := dlogits[:len(loss)*cols]
		for i, v := range logits[:len(all)] {
			all[i] = -float32(math.Abs(float64(v)))
		}
		exp(all, all)
	}
	for r := range loss {
		x, y, d := logits[r*cols:][:cols], targets[r*cols:][:cols], dlogits[r*cols:][:cols]
		// The loss is max(x, 0) - x·y + log(1 + e^-|x|). The logarithms are taken of products,
		// whose factors are at most 2: one of these for every 512 elements instead of one for each.
		var total float64
		product := 1.0
		for c := range x {
			target := float64(y[c])
			if target != target {
				d[c] = 0
				continue
			}
			v := float64(x[c])
			e := float64(d[c])
			if exp == nil {
				e = math.Exp(-math.Abs(v))
			}
			// No branch predictor foresees the signs of logits, so both cases are chosen by bits.
			bits := math.Float64bits(v)
			negative := uint64(int64(bits) >> 63)
			total += math.Float64frombits(bits&^negative) - v*target // max(v, 0), or of NaN what v·target makes it
			product *= 1 + e
			if product > 0x1p512 {
				total += math.Log(product)
				product = 1
			}
			numerator := math.Float64frombits(math.Float64bits(e)&negative | math.Float64bits(1)&^negative)
			d[c] = float32((numerator/(1+e) - target) * float64(scale))
		}
		loss[r] = float32(total + math.Log(product))
	}
}

func checkSigmoidCrossEntropy(loss, dlogits, logits, targets Tensor) {
	if !sameShape(dlogits, logits) || !sameShape(targets, logits) || !isColumn(loss, logits.Rows) {
		refuse("SigmoidCrossEntropy", "loss", loss, "dlogits", dlogits, "logits", logits, "targets", targets)
	}
}

// SigmoidCrossEntropy implements [Backend].
func (c *CPU) SigmoidCrossEntropy(loss, dlogits, logits, targets Tensor, scale float32) {
	const op = "SigmoidCrossEntropy"
	checkSigmoidCrossEntropy(loss, dlogits, logits, targets)
	l, d, n := c.floats(op, "loss", loss), c.floats(op, "dlogits", dlogits), logits.Cols
	x, y := c.floats(op, "logits", logits), c.floats(op, "targets", targets)
	// As in SoftmaxCrossEntropy, an exponential costs about as much as eight elements of anything
	// else.
	c.rows(logits.Rows, 8*n, func(lo, hi int) {
		c.sigmoidCrossEntropy(l[lo:hi], d[lo*n:hi*n], x[lo*n:hi*n], y[lo*n:hi*n], n, scale)
	})
}

// SigmoidCrossEntropy implements [Backend].
func (r *Reference) SigmoidCrossEntropy(loss, dlogits, logits, targets Tensor, scale float32) {
	const op = "SigmoidCrossEntropy"
	checkSigmoidCrossEntropy(loss, dlogits, logits, targets)
	sigmoidCrossEntropyRef(r.floats(op, "loss", loss), r.floats(op, "dlogits", dlogits),
		r.floats(op, "logits", logits), r.floats(op, "targets", targets), logits.Rows, logits.Cols, float64(scale))
}
