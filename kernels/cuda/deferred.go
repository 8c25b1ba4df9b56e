//go:build cuda && linux

package cuda

import (
	"slices"
	"sync"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// deferred has operations that wait for the next ones, so that a launch does the work of several.
// That changes no bit of a result:
//
//   - LayerNorm takes up a ReLU and a Dropout in place behind it.
//   - Dropout in place takes up a ReLUMask behind it.
//   - NeighborMeanGrad takes up a Dropout in place, a ReLUMask and a ColumnSumGrad behind it.
//     LayerNormGrad takes up a ColumnSumGrad behind it, and the NeighborMeanGrad before it with all
//     that has taken up. chains.go has both.
//   - Fill with 0 is left out before a LayerNormGrad, MatMul or NeighborMeanGrad that adds to the
//     same elements.
//   - Sums over chunks, of gradients of parameters, are made together.
//
// What waits is launched before anything else touches its windows, and in Mark. It is safe for
// concurrent use, since uploads touch memory too.
type deferred struct {
	mu     sync.Mutex
	params *driver.Params

	norm     *norm
	drop     *drop
	zero     *zero
	meanGrad *meanGrad
	normGrad *normGrad
	sums     []sum

	parts  *block // what the sums add up, one behind the other
	filled int    // bytes of parts
	wanted int    // bytes that sums have wanted since the last settleAll
}

// A norm is a LayerNorm.
type norm struct {
	dst, stats, x, gain, bias operand
	rows, cols                int
	eps                       float32
	relu                      bool
}

func (n *norm) windows() []operand { return []operand{n.dst, n.stats, n.x, n.gain, n.bias} }

// A drop is a Dropout in place.
type drop struct {
	x, ids     operand
	rows, cols int
	key        uint64
	p          float32
}

func (of *drop) windows() []operand { return []operand{of.x, of.ids} }

// A zero is a Fill with 0.
type zero struct {
	dst operand
	n   int
}

// A sum adds count parts, of stride elements each, to n elements of dst.
type sum struct {
	dst, parts       operand
	n, count, stride int
}

// Bits of block.waits: a bit for each kind of operation that can wait on a block.
const (
	forNorm = 1 << iota
	forDrop
	forZero
	forMeanGrad
	forNormGrad
	forSums
)

// allKinds has the bits in the order of launches. Sums come last, since other launches may add
// some.
var allKinds = []uint8{forNorm, forDrop, forZero, forMeanGrad, forNormGrad, forSums}

// mark sets the bit of a kind on the blocks of operands if an operation waits on them, else it
// clears the bit.
func mark(bit uint8, waits bool, operands ...operand) {
	for _, o := range operands {
		switch {
		case o.block == nil:
		case waits:
			o.block.waits |= bit
		default:
			o.block.waits &^= bit
		}
	}
}

// windows returns the windows on which operations of one kind wait.
func (d *deferred) windows(bit uint8) (all []operand) {
	switch {
	case bit == forNorm && d.norm != nil:
		return d.norm.windows()
	case bit == forDrop && d.drop != nil:
		return d.drop.windows()
	case bit == forZero && d.zero != nil:
		return []operand{d.zero.dst}
	case bit == forMeanGrad && d.meanGrad != nil:
		return d.meanGrad.windows()
	case bit == forNormGrad && d.normGrad != nil:
		return d.normGrad.windows()
	case bit == forSums:
		for _, s := range d.sums {
			all = append(all, s.dst)
		}
	}
	return all
}

// settle launches what waits on windows that overlap o. Whoever touches memory calls it first.
func (b *Backend) settle(o operand) {
	if o.block == nil {
		return
	}
	b.deferred.mu.Lock()
	defer b.deferred.mu.Unlock()
	b.settleLocked(o)
}

func (b *Backend) settleLocked(o operand) {
	d := &b.deferred
	for _, bit := range allKinds {
		if o.block.waits&bit != 0 && slices.ContainsFunc(d.windows(bit), o.overlaps) {
			b.settleKind(bit)
		}
	}
}

// settleAll launches all that waits.
func (b *Backend) settleAll() {
	d := &b.deferred
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, bit := range allKinds {
		b.settleKind(bit)
	}
	// Once there is room for all of a step, its sums are one launch.
	if wanted := min(d.wanted, mostParts); d.parts != nil && wanted > int(d.parts.size) {
		b.release(d.parts)
		d.parts = nil
		d.parts = b.allocate("sums", uint64(wanted))
	}
	d.wanted = 0
}

// settleKind launches the operations of one kind that wait.
func (b *Backend) settleKind(bit uint8) {
	switch bit {
	case forNorm:
		b.launchNorm(operand{}, 0, 0)
	case forDrop:
		b.launchDrop()
	case forZero:
		b.launchZero()
	case forMeanGrad:
		b.launchMeanGrad(operand{})
	case forNormGrad:
		b.launchNormGrad(operand{})
	case forSums:
		b.launchSums()
	}
}

// settleArgs is settle for the operands among args.
func (b *Backend) settleArgs(args []any) {
	for _, arg := range args {
		if o, ok := arg.(operand); ok {
			b.settle(o)
		}
	}
}

// deferring has an operation on these windows wait. First it launches the operation of its kind
// that waits, and all that waits on the windows; then it calls set, which keeps the operation.
func (b *Backend) deferring(bit uint8, windows []operand, set func(d *deferred)) {
	for _, o := range windows {
		b.settle(o)
	}
	d := &b.deferred
	d.mu.Lock()
	defer d.mu.Unlock() // also where a launch panics
	b.settleKind(bit)
	mark(bit, true, windows...)
	set(d)
}

// deferNorm has a LayerNorm wait.
func (b *Backend) deferNorm(n norm) {
	b.deferring(forNorm, n.windows(), func(d *deferred) { d.norm = &n })
}

// takesReLU has the LayerNorm that waits take up a ReLU in place of n elements.
func (b *Backend) takesReLU(dst, src operand, n int) bool {
	d := &b.deferred
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.norm == nil || dst.at != src.at || d.norm.dst.at != dst.at || d.norm.rows*d.norm.cols != n || d.norm.relu {
		return false
	}
	d.norm.relu = true
	return true
}

// takesDropout has the LayerNorm that waits take up a Dropout in place, and launches it.
func (b *Backend) takesDropout(of drop) bool {
	d := &b.deferred
	b.settle(of.ids)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.norm == nil || d.norm.dst.at != of.x.at || d.norm.rows != of.rows || d.norm.cols != of.cols {
		return false
	}
	b.launchNorm(of.ids, of.key, of.p)
	return true
}

// launchNorm launches the LayerNorm that waits, with dropout where ids is not null.
func (b *Backend) launchNorm(ids operand, key uint64, p float32) {
	n := b.deferred.norm
	if n == nil {
		return
	}
	b.deferred.norm = nil
	mark(forNorm, false, n.windows()...)
	relu, threshold, factor := 0, uint32(0), float32(1)
	if n.relu {
		relu = 1
	}
	if ids.at != 0 {
		threshold, factor = kernels.Dropping(p)
	}
	b.launch(b.deferred.params, b.wide("layer_norm", n.cols%4 == 0, n.dst, n.x, n.gain, n.bias), b.warps(n.rows),
		n.dst, n.stats, n.x, n.gain, n.bias, n.rows, n.cols, n.eps, relu, ids, key, threshold, factor)
}

// deferDrop has a Dropout in place wait.
func (b *Backend) deferDrop(of drop) {
	b.deferring(forDrop, of.windows(), func(d *deferred) { d.drop = &of })
}

// takesMask has the Dropout that waits take up a ReLUMask of n elements, and launches both.
func (b *Backend) takesMask(x, y operand, n int) bool {
	b.settle(y)
	d := &b.deferred
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.drop
	if of == nil || of.x.at != x.at || of.rows*of.cols != n {
		return false
	}
	d.drop = nil
	threshold, factor := kernels.Dropping(of.p)
	b.launch(d.params, b.wide("dropout_mask", of.cols%4 == 0, x, y), b.flat(n/4),
		x, y, of.ids, of.rows, of.cols, of.key, threshold, factor)
	mark(forDrop, false, of.windows()...)
	return true
}

func (b *Backend) launchDrop() {
	of := b.deferred.drop
	if of == nil {
		return
	}
	b.deferred.drop = nil
	mark(forDrop, false, of.windows()...)
	threshold, factor := kernels.Dropping(of.p)
	b.launch(b.deferred.params, b.wide("dropout", of.cols%4 == 0, of.x), b.flat(of.rows*of.cols/4),
		of.x, of.x, of.ids, of.rows, of.cols, of.key, threshold, factor)
}

// deferZero has a Fill with 0 wait.
func (b *Backend) deferZero(of zero) {
	b.deferring(forZero, []operand{of.dst}, func(d *deferred) { d.zero = &of })
}

// takesZero reports whether all of dst waits for zeros. It waits no longer then: the caller
// overwrites it instead of adding to it. Elements behind dst go on waiting.
func (b *Backend) takesZero(dst operand) bool {
	d := &b.deferred
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.zero
	if of == nil || !of.dst.beginsWith(dst) || dst.bytes > of.dst.bytes {
		return false
	}
	of.dst = of.dst.plus(dst.bytes)
	of.n -= dst.bytes / 4
	if of.n == 0 {
		d.zero = nil
		mark(forZero, false, of.dst)
	}
	return true
}

// takesZeroRows returns the first row of dst from which on all rows wait for zeros, or rows if
// there is none. They wait no longer: the caller overwrites them, and adds to the rows before.
func (b *Backend) takesZeroRows(dst operand, rows, cols int) int {
	d := &b.deferred
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.zero
	if of == nil || cols == 0 || !of.dst.overlaps(dst) || of.dst.at < dst.at {
		return rows
	}
	before := int(of.dst.at - dst.at)
	if before%(4*cols) != 0 || before+of.dst.bytes != dst.bytes {
		return rows
	}
	d.zero = nil
	mark(forZero, false, of.dst)
	return before / (4 * cols)
}

func (b *Backend) launchZero() {
	of := b.deferred.zero
	if of == nil {
		return
	}
	b.deferred.zero = nil
	mark(forZero, false, of.dst)
	b.launch(b.deferred.params, b.wide("fill", true, of.dst), b.flat(of.n), of.dst, of.n, float32(0))
}

// launchParts launches a kernel (parts, args...), and has the sums of the parts wait. There are
// count parts. Each has n elements for each of into, one behind the other. Where into is empty,
// parts is null. The caller has settled args and into, and holds the lock of b.deferred.
func (b *Backend) launchParts(name string, grid driver.Dim, into []operand, n, count int, args ...any) {
	d := &b.deferred
	var parts operand
	stride := len(into) * n
	if stride > 0 {
		parts = b.partsFor(4 * count * stride)
	}
	b.launch(d.params, name, grid, append([]any{parts}, args...)...)
	for i, to := range into {
		d.sums = append(d.sums, sum{dst: to, parts: parts.plus(4 * i * n), n: n, count: count, stride: stride})
		mark(forSums, true, to)
	}
}

// partsFor returns so many bytes of memory for parts. They stay until launchSums, which it calls
// itself where room is short.
func (b *Backend) partsFor(bytes int) operand {
	d := &b.deferred
	bytes = lineUp(bytes)
	if d.parts == nil || d.filled+bytes > int(d.parts.size) {
		b.launchSums()
	}
	d.wanted += bytes
	if d.parts == nil || bytes > int(d.parts.size) {
		b.release(d.parts)
		d.parts = nil
		d.parts = b.allocate("sums", uint64(bytes+bytes/4))
	}
	at := d.parts.whole().plus(d.filled)
	d.filled += bytes
	return at
}

// mostParts is the most memory that is kept for parts.
const mostParts = 256 << 20

func (b *Backend) launchSums() {
	d := &b.deferred
	if len(d.sums) == 0 {
		return
	}
	sums := d.sums
	d.sums = nil
	for len(sums) > 0 {
		now := sums[:min(len(sums), mostSums)]
		sums = sums[len(now):]
		var args []any
		chunks := 0
		for _, s := range now {
			mark(forSums, false, s.dst)
			args = append(args, s.dst, s.parts, s.n, s.count, s.stride)
			chunks += (s.n + sumChunk - 1) / sumChunk
		}
		for range mostSums - len(now) {
			args = append(args, operand{}, operand{}, 0, 0, 0)
		}
		b.launch(d.params, "sum_all", b.flat(threads*chunks), append(args, chunks)...)
	}
	d.filled = 0
}

const (
	sumChunk = 32 // elements that a block of sum_all sums at a time
	mostSums = 16 // of a launch
)
