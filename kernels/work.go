package kernels

// Work counts the arithmetic of a backend's operations.
type Work struct {
	ProductFlops int64 `json:"product_flops"` // multiplications and additions of products
	// OperandBytes has each operand of each operation once, and of a table the rows that are read:
	// about what must be moved if nothing stays in a cache.
	OperandBytes int64 `json:"operand_bytes"`
}

// Sub returns w less what was counted before.
func (w Work) Sub(b Work) Work {
	return Work{w.ProductFlops - b.ProductFlops, w.OperandBytes - b.OperandBytes}
}

// Add returns the sum of both.
func (w Work) Add(b Work) Work {
	return Work{w.ProductFlops + b.ProductFlops, w.OperandBytes + b.OperandBytes}
}

// Worker is a [Backend] that counts its work since it was opened: [CPU] is one. Work is safe for
// concurrent use.
type Worker interface{ Work() Work }

// WorkOf returns the work of a backend. ok is false if it does not count it.
func WorkOf(be Backend) (w Work, ok bool) {
	if worker, ok := under(be).(Worker); ok {
		return worker.Work(), true
	}
	return w, false
}
