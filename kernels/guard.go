package kernels

import "math"

// Guard makes an update depend on numbers that only the backend has yet, so that the host need not
// wait for them. The zero value changes nothing.
type Guard struct {
	// Void (U32, 1×1) is a flag that [Backend].CheckFinite sets. While it is not 0, updates leave
	// values and moments as they are.
	Void Tensor
	// Scale (1×1) multiplies every gradient first: see [Backend].ClipFactor.
	Scale Tensor
}

// ClipNorm returns the norm of all gradients together from the sum of squares of each, in the
// order that Backend.ClipFactor uses.
func ClipNorm(squares []float32) float64 { return normOf(squares) }

func normOf[T float](squares []T) (norm float64) {
	for _, s := range squares {
		norm += float64(s)
	}
	return math.Sqrt(norm)
}

// clipFactor returns the factor that scales gradients of so large a norm to the norm most, as
// PyTorch's clip_grad_norm_ does, and 1 for a smaller one.
func clipFactor(norm, most float64) float64 {
	if factor := most / (norm + 1e-6); !(factor >= 1) { // a NaN stays NaN
		return factor
	}
	return 1
}

func isFlag(t Tensor) bool { return t.Rows == 1 && t.Cols == 1 && t.Type == U32 }

func checkClipFactor(factor, squares Tensor, grads []Tensor) {
	if factor.Rows != 1 || factor.Cols != 1 || !isColumn(squares, len(grads)) {
		refuse("ClipFactor", "factor", factor, "squares", squares)
	}
}

func checkCheckFinite(void, src Tensor) {
	if !isFlag(void) {
		refuse("CheckFinite", "void", void, "src", src)
	}
}

func checkGuard(op string, g Guard) {
	if g.Void.Buf != nil && !isFlag(g.Void) || g.Scale.Buf != nil && (g.Scale.Rows != 1 || g.Scale.Cols != 1) {
		refuse(op, "void", g.Void, "scale", g.Scale)
	}
}

// isVoid reports whether the flag at t is set.
func (m inHost[F]) isVoid(op string, t Tensor) bool {
	return t.Buf != nil && m.uints(op, "void", t)[0] != 0
}

// guard returns what g says: whether updates change nothing, and the factor of gradients.
func (m inHost[F]) guard(op string, g Guard) (void bool, scale F) {
	checkGuard(op, g)
	scale = 1
	if g.Scale.Buf != nil {
		scale = m.floats(op, "scale", g.Scale)[0]
	}
	return m.isVoid(op, g.Void), scale
}

// CheckFinite implements [Backend].
func (m inHost[F]) CheckFinite(void, src Tensor) {
	checkCheckFinite(void, src)
	flag := m.uints("CheckFinite", "void", void)
	for _, x := range m.floats("CheckFinite", "src", src) {
		if x-x != 0 {
			flag[0] = 1
			return
		}
	}
}

// ClipFactor implements [Backend].
func (c *CPU) ClipFactor(factor, squares Tensor, grads []Tensor, most float64) {
	const op = "ClipFactor"
	checkClipFactor(factor, squares, grads)
	f, s := c.floats(op, "factor", factor), c.floats(op, "squares", squares)
	for i, grad := range grads {
		g := c.floats(op, "grad", grad)
		s[i] = float32(c.sumChunks(len(g), func(lo, hi int) float64 { return SumSquares(g[lo:hi]) }))
	}
	f[0] = float32(clipFactor(normOf(s), most))
}

// ClipFactor implements [Backend].
func (r *Reference) ClipFactor(factor, squares Tensor, grads []Tensor, most float64) {
	const op = "ClipFactor"
	checkClipFactor(factor, squares, grads)
	f, s := r.floats(op, "factor", factor), r.floats(op, "squares", squares)
	for i, grad := range grads {
		s[i] = sumSquaresRef(r.floats(op, "grad", grad))
	}
	f[0] = clipFactor(normOf(s), most)
}
