package kernels

import (
	"slices"
	"sync"
	"sync/atomic"
)

// chain has operations that wait for the next ones, so that one pass over memory does the work of
// several, some rows at a time. That changes no bit of a result:
//
//   - LayerNorm takes up a ReLU and a Dropout in place behind it.
//   - Dropout in place, a ReLUMask, or both in this order, are taken up by the LayerNormGrad that
//     reads their result.
//
// What waits is done before any other operation, in Mark, and before anything else touches its
// tensors. It is safe for concurrent use, since uploads touch memory too.
type chain struct {
	waits atomic.Bool // norm or slope is set

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

// A waitingSlope takes a gradient back through Dropout and ReLU: a Dropout of d in place unless ids
// is empty, then a ReLUMask of d by y unless y is empty.
type waitingSlope struct {
	d, ids, y Tensor
	key       uint64
	p         float32
}

func (w *waitingSlope) drops() bool { return w.ids.Buf != nil }
func (w *waitingSlope) masks() bool { return w.y.Buf != nil }

// tileElements is about how many elements of a tensor the operations of a chain take at a time, so
// that these stay in the first-level cache.
const tileElements = 1 << 12

// tiles calls work on rows lo to hi, some of n columns at a time.
func tiles(lo, hi, n int, work func(lo, hi int)) {
	step := max(1, tileElements/max(1, n))
	for ; lo < hi; lo += step {
		work(lo, min(lo+step, hi))
	}
}

// defers has operations wait: set stores them.
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
	norm, slope := c.chain.take()
	if norm != nil {
		c.normalise(norm, nil, 0, 0)
	}
	if slope != nil {
		c.descend(slope)
	}
}

// take returns what waits. It waits no longer.
func (w *chain) take() (norm *waitingNorm, slope *waitingSlope) {
	norm, slope = w.norm, w.slope
	w.norm, w.slope = nil, nil
	w.waits.Store(false)
	return norm, slope
}

// takesReLU has the LayerNorm that waits take up a ReLU in place.
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

// takesDropout has the LayerNorm that waits take up a Dropout in place, and does all of it.
func (c *CPU) takesDropout(dst, src Tensor, ids []uint32, key uint64, p float32) bool {
	if dst != src || !c.chain.waits.Load() {
		return false
	}
	c.chain.mu.Lock()
	defer c.chain.mu.Unlock()
	if w := c.chain.norm; w == nil || w.dst != dst {
		return false
	}
	norm, _ := c.chain.take()
	c.normalise(norm, ids, key, p)
	return true
}

// takesMask has the Dropout that waits take up a ReLUMask.
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

// takesSlope returns what waits for the LayerNormGrad of dy, or nil. It waits no longer.
func (c *CPU) takesSlope(dy Tensor) *waitingSlope {
	if !c.chain.waits.Load() {
		return nil
	}
	c.chain.mu.Lock()
	defer c.chain.mu.Unlock()
	if w := c.chain.slope; w == nil || w.d != dy {
		return nil
	}
	_, slope := c.chain.take()
	return slope
}

// normalise does what waits, and a Dropout behind it unless ids is nil.
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

// descend does what waits.
func (c *CPU) descend(w *waitingSlope) {
	do := c.slopes(w)
	c.rows(w.d.Rows, w.d.Cols, func(lo, hi int) { tiles(lo, hi, w.d.Cols, do) })
}

// slopes returns a function that does what waits for some rows.
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
