package kernels

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A chain holds an operation that waits for the next one. Both are then done in one pass over
// memory, some rows at a time. Results keep their bits.
//
//   - A LayerNorm waits for a ReLU in place, a Dropout in place, or both in this order.
//   - A Dropout in place, a ReLUMask, or both in this order, wait for the LayerNormGrad that reads
//     their result.
//
// What waits is done before any other operation, in Mark, and before an upload, a download, Host or
// Free of one of its buffers. Other goroutines make these calls too, so there is a lock. It is held
// while what waits is done.
type chain struct {
	waits atomic.Bool // norm or slope is set, or being done

	mu    sync.Mutex
	norm  *waitingNorm
	slope *waitingSlope
}

// A waitingNorm is a LayerNorm, and a ReLU of its result if relu is set.
type waitingNorm struct {
	dst, stats, x, gain, bias Tensor
	eps                       float32
	relu                      bool
}

// A waitingSlope is a Dropout of the gradient d in place, unless ids is empty, and then a ReLUMask
// of d by y, unless y is empty.
type waitingSlope struct {
	d, ids, y Tensor
	key       uint64
	p         float32
}

func (w *waitingSlope) drops() bool { return w.ids.Buf != nil }
func (w *waitingSlope) masks() bool { return w.y.Buf != nil }

// tileElements is about the number of elements of a tensor that a chain works on at a time: so few
// that those just written are still in the first-level cache.
const tileElements = 1 << 12

// tiles calls work on rows lo to hi, of n columns each, some rows at a time.
func tiles(lo, hi, n int, work func(lo, hi int)) {
	step := max(1, tileElements/max(1, n))
	for ; lo < hi; lo += step {
		work(lo, min(lo+step, hi))
	}
}

// defers calls set, which stores an operation that then waits. Nothing else may wait.
func (c *CPU) defers(set func(*chain)) {
	c.chain.mu.Lock()
	defer c.chain.mu.Unlock()
	set(&c.chain)
	c.chain.waits.Store(true)
}

// settle does what waits.
func (c *CPU) settle() {
	if !c.chain.waits.Load() {
		return
	}
	c.chain.mu.Lock()
	defer c.chain.mu.Unlock()
	c.settleLocked()
}

// settleAt does what waits if it reads or writes b.
func (c *CPU) settleAt(b Buffer) {
	if !c.chain.waits.Load() {
		return
	}
	c.chain.mu.Lock()
	defer c.chain.mu.Unlock()
	var at []Buffer
	if w := c.chain.norm; w != nil {
		at = append(at, w.dst.Buf, w.stats.Buf, w.x.Buf, w.gain.Buf, w.bias.Buf)
	}
	if w := c.chain.slope; w != nil {
		at = append(at, w.d.Buf, w.ids.Buf, w.y.Buf)
	}
	if slices.Contains(at, b) {
		c.settleLocked()
	}
}

func (c *CPU) settleLocked() {
	defer c.chain.end()
	if w := c.chain.norm; w != nil {
		c.normalise(w, nil, 0, 0)
	}
	if w := c.chain.slope; w != nil {
		c.descend(w)
	}
}

// end records that nothing waits any more. The caller holds w.mu.
func (w *chain) end() {
	w.norm, w.slope = nil, nil
	w.waits.Store(false)
}

// takesReLU adds a ReLU in place to the LayerNorm that waits. It returns false if none waits for
// it.
func (c *CPU) takesReLU(dst, src Tensor) bool {
	if dst != src || !c.chain.waits.Load() {
		return false
	}
	c.chain.mu.Lock()
	defer c.chain.mu.Unlock()
	w := c.chain.norm
	if w == nil || w.dst != dst || w.relu {
		return false
	}
	w.relu = true
	return true
}

// takesDropout does the LayerNorm that waits and a Dropout in place of its result. It returns false
// if none waits for it.
func (c *CPU) takesDropout(dst Tensor, ids []uint32, key uint64, p float32) bool {
	if !c.chain.waits.Load() {
		return false
	}
	c.chain.mu.Lock()
	defer c.chain.mu.Unlock()
	w := c.chain.norm
	if w == nil || w.dst != dst {
		return false
	}
	defer c.chain.end()
	c.normalise(w, ids, key, p)
	return true
}

// takesMask adds a ReLUMask to the Dropout of d that waits. It returns false if none does.
func (c *CPU) takesMask(d, y Tensor) bool {
	if !c.chain.waits.Load() {
		return false
	}
	c.chain.mu.Lock()
	defer c.chain.mu.Unlock()
	w := c.chain.slope
	if w == nil || w.d != d || w.masks() {
		return false
	}
	w.y = y
	return true
}

// takesSlope returns a function that does what waits for the LayerNormGrad of dy, for rows lo to
// hi. The caller calls done when it has done so for all rows, and no operation before. If nothing
// waits for dy, do is nil.
func (c *CPU) takesSlope(dy Tensor) (do func(lo, hi int), done func()) {
	if !c.chain.waits.Load() {
		return nil, nil
	}
	c.chain.mu.Lock()
	w := c.chain.slope
	if w == nil || w.d != dy {
		c.chain.mu.Unlock()
		return nil, nil
	}
	return c.slopes(w), func() {
		c.chain.end()
		c.chain.mu.Unlock()
	}
}

// normalise does w, then a Dropout unless ids is nil.
func (c *CPU) normalise(w *waitingNorm, ids []uint32, key uint64, p float32) {
	d, st, v, n := c.lent(w.dst), c.lent(w.stats), c.lent(w.x), w.x.Cols
	g, b := c.lent(w.gain), c.lent(w.bias)
	c.rows(w.x.Rows, n, func(lo, hi int) {
		tiles(lo, hi, n, func(lo, hi int) {
			d := d[lo*n : hi*n]
			c.layerNorm(d, st[2*lo:2*hi], v[lo*n:hi*n], g, b, w.eps)
			if w.relu {
				c.relu(d, d)
			}
			if ids != nil {
				c.dropout(d, d, ids[lo:hi], n, key, p)
			}
		})
	})
}

// descend does w.
func (c *CPU) descend(w *waitingSlope) {
	do := c.slopes(w)
	c.rows(w.d.Rows, w.d.Cols, func(lo, hi int) { tiles(lo, hi, w.d.Cols, do) })
}

// slopes returns a function that does w for rows lo to hi.
func (c *CPU) slopes(w *waitingSlope) func(lo, hi int) {
	d, n := c.lent(w.d), w.d.Cols
	var ids []uint32
	var y []float32
	if w.drops() {
		ids = c.inHost.uints("Dropout", "ids", w.ids)
	}
	if w.masks() {
		y = c.lent(w.y)
	}
	return func(lo, hi int) {
		d := d[lo*n : hi*n]
		if ids != nil {
			c.dropout(d, d, ids[lo:hi], n, w.key, w.p)
		}
		if y != nil {
			c.reluMask(d, y[lo*n:hi*n])
		}
	}
}

// lent lends the elements of a tensor that was checked before, and counts no bytes.
func (c *CPU) lent(t Tensor) []float32 { return c.inHost.floats("", "", t) }
