// Package tape records operations as they run and plays their gradients backwards: reverse-mode
// differentiation over kernels.Backend.
//
// Two types to know. A [Tape] lives as long as a training run and is reset every step; results and
// gradients come from its arena, so that a step allocates nothing that grows with the batch. A
// [Var] is a matrix on the tape, valid until the next Reset. A frugal tape, such as the tape of
// streams, reuses memory within a step once the step is done with it. A parameter is a Var whose
// value and gradient outlive the step ([NewParam]).
//
// Dropout and ReLU write over their input where no other operation reads it: see [Tape.Dropout].
// [Tape.Keep] prevents that for one Var.
//
// A Tape and its Vars are used by one goroutine. Start at [Tape.Affine] for the shape of an
// operation: run forward, append a closure that adds to the gradients of its inputs.
package tape

import (
	"github.com/gnnstore/gnnstore/kernels"
)

// Var is a matrix on the tape.
type Var struct {
	Value kernels.Tensor
	// Grad is d loss / d Value, made when an operation first adds to it. Only parameters and what
	// depends on them have one.
	Grad      kernels.Tensor
	unset     int // rows of Grad from here on have not been written yet; 0: all have
	needsGrad bool
	whole     *Var // Value is a window of whole's, and Grad one of its gradient
	fixed     bool // no operation may write over Value: it is the caller's, its own operation reads it in Backward, or it is kept
	kept      bool // no operation may write over Grad, and a frugal tape gives neither it nor Value up
	lent      bool // Value is shared with a kept Var
}

// NewParam makes a parameter of value and grad, which the caller owns; Backward adds to grad.
func NewParam(value, grad kernels.Tensor) *Var {
	return &Var{Value: value, Grad: grad, needsGrad: true, fixed: true}
}

// NewConstant makes a parameter of value, which the caller owns, that no gradient flows to.
func NewConstant(value kernels.Tensor) *Var { return &Var{Value: value, fixed: true} }

// Tape records a step.
type Tape struct {
	// Frugal has Backward give up what each operation made as soon as it has gone back through it,
	// for the gradients of those before: a step takes little more than its forward pass. Nothing
	// but parameters, leaves and what Keep keeps can be read after Backward then. It changes no
	// bit.
	Frugal bool

	be       kernels.Backend
	arena    arena
	backward []operation
	off      bool // do not record: for evaluation
}

// operation is one that was recorded.
type operation struct {
	result   *Var
	backward func()
}

// New makes a tape that computes on be. Close gives its memory back.
func New(be kernels.Backend) *Tape { return &Tape{be: be, arena: arena{be: be}} }

// Backend returns the backend that the tape computes on.
func (t *Tape) Backend() kernels.Backend { return t.be }

// Reset forgets the step: the values of every Var but leaves and parameters are invalid. With
// record false nothing is recorded, and Backward does nothing.
func (t *Tape) Reset(record bool) {
	clear(t.backward) // drop what the closures hold
	t.backward = t.backward[:0]
	t.arena.reset()
	t.off = !record
}

// Close frees the arena.
func (t *Tape) Close() { t.arena.close() }

// Bytes is the size of the arena.
func (t *Tape) Bytes() int64 { return 4 * int64(t.arena.size()) }

// Leaf is an input that needs no gradient. Its memory stays the caller's.
func (t *Tape) Leaf(v kernels.Tensor) *Var { return &Var{Value: v, fixed: true} }

// LearntLeaf is an input that gradients flow to: the first cols columns of records, whose memory
// stays the caller's. See [Tape.Gradient].
func (t *Tape) LearntLeaf(records kernels.Tensor, cols int) *Var {
	v := t.result(records.Rows, cols)
	t.be.Columns(v.Value, records, 0)
	v.needsGrad = !t.off
	return v
}

// Gradient is d loss / d v once Backward has run: zeros where no operation has read v. It is valid
// until the next Reset.
func (t *Tape) Gradient(v *Var) kernels.Tensor { return t.grad(v) }

// Keep makes v stay as it is: Value until the next Reset, and Grad once Backward has run, which is
// the zero Tensor if no operation read v. Without Keep, operations may write over both. v is the
// result of an operation, not a Head, and no other operation has taken it yet.
func (t *Tape) Keep(v *Var) {
	if v.whole != nil && v.whole.Value.Rows != v.Value.Rows {
		panic("tape: Keep: a Head has no memory of its own")
	}
	for of := v.whole; of != nil; of = of.whole {
		of.lent = true
	}
	v.fixed, v.kept = true, true
	v.whole = nil // the gradient gets memory of its own
}

// Backward runs the recorded operations in reverse. The gradient of the last result was set by the
// loss.
func (t *Tape) Backward() {
	for i := len(t.backward) - 1; i >= 0; i-- {
		op := &t.backward[i]
		op.backward()
		if t.Frugal {
			t.giveUp(op.result)
		}
	}
}

// giveUp gives up the memory of a result whose backward has run. Every operation that read it was
// recorded behind it. A Var that shares memory is given up with the owner of that memory.
func (t *Tape) giveUp(v *Var) {
	if v.whole != nil || v.kept {
		return
	}
	if !v.lent {
		t.arena.give(v.Value)
	}
	t.arena.give(v.Grad)
	v.Value, v.Grad = kernels.Tensor{}, kernels.Tensor{}
}

// Done says that the value of v is read no more: by no operation to come, and by no Backward. So it
// suits a result of Affine that only GatherRows or AddRows have read, as a table. A frugal tape
// gives its memory to later results.
func (t *Tape) Done(v *Var) {
	if !t.Frugal || v.whole != nil || v.fixed {
		return
	}
	t.arena.give(v.Value)
	v.Value.Buf = nil
}

// result allocates an output and records its backward, if any input needs a gradient.
func (t *Tape) result(rows, cols int, inputs ...*Var) *Var {
	v := &Var{Value: t.arena.alloc(rows, cols)}
	for _, in := range inputs {
		v.needsGrad = v.needsGrad || in.needsGrad
	}
	v.needsGrad = v.needsGrad && !t.off
	return v
}

// over makes the result of an operation that works element by element: over x, their gradients in
// one place too, unless x is fixed.
func (t *Tape) over(x *Var) *Var {
	if x.fixed {
		return t.result(x.Value.Rows, x.Value.Cols, x)
	}
	return &Var{Value: x.Value, needsGrad: x.needsGrad, whole: x}
}

func (t *Tape) record(v *Var, backward func()) {
	if v.needsGrad {
		t.backward = append(t.backward, operation{v, backward})
	}
}

// grad is where v's gradient is added to, zero at first.
func (t *Tape) grad(v *Var) kernels.Tensor {
	if v.Grad.Buf == nil {
		if v.whole != nil {
			v.Grad = v.within(t.grad(v.whole))
		} else {
			v.Grad = t.arena.alloc(v.Value.Rows, v.Value.Cols)
			t.be.Fill(v.Grad, 0)
		}
	}
	if v.unset > 0 {
		t.be.Fill(v.Grad.Slice(v.unset, v.Grad.Rows), 0)
		v.unset = 0
	}
	return v.Grad
}

// within is the window of whole's gradient that v is of its Value.
func (v *Var) within(grad kernels.Tensor) kernels.Tensor {
	grad.Off += v.Value.Off - v.whole.Value.Off
	grad.Rows, grad.Cols = v.Value.Rows, v.Value.Cols
	return grad
}

// copy is a copy of v.
func (t *Tape) copy(v kernels.Tensor) kernels.Tensor {
	c := t.arena.alloc(v.Rows, v.Cols)
	t.be.Convert(c, v)
	return c
}

// into is grad for an operation that can either add to the gradient or set it. If fresh, nothing
// has been added yet: the memory is not zeroed, and the operation must set it.
func (t *Tape) into(v *Var) (grad kernels.Tensor, fresh bool) {
	root := v.headOf()
	if root == nil || root.Grad.Buf != nil || v.Value.Rows == 0 && root.Value.Rows > 0 {
		return t.grad(v), false
	}
	root.Grad = t.arena.alloc(root.Value.Rows, root.Value.Cols)
	if root != v {
		v.Grad = v.within(root.Grad)
	}
	if v.Value.Rows < root.Value.Rows {
		root.unset = v.Value.Rows
	}
	return v.Grad, true
}

// intoRows is into for an operation that can set some rows and add to others: it must set the rows
// from fresh on.
func (t *Tape) intoRows(v *Var) (grad kernels.Tensor, fresh int) {
	root := v.headOf()
	if root != nil && root.unset > 0 && v.Value.Rows == root.Value.Rows {
		fresh, root.unset = root.unset, 0
		return t.grad(v), fresh
	}
	if grad, all := t.into(v); !all {
		return grad, grad.Rows
	}
	return v.Grad, 0
}

// headOf returns the Var whose gradient begins with v's rows, in the same memory: v itself, if its
// gradient has its own. It returns nil where v has other rows, or columns.
func (v *Var) headOf() *Var {
	for ; v.whole != nil; v = v.whole {
		if v.Value.Off != v.whole.Value.Off || v.Value.Cols != v.whole.Value.Cols {
			return nil
		}
	}
	return v
}

// arena hands out float32 matrices and takes all of them back at once, or some of them before. It
// grows to the largest step, and an eighth more, and stays there.
type arena struct {
	be     kernels.Backend
	chunks []kernels.Buffer
	used   int // elements of the last chunk
	taken  int // elements since the last reset, without those that were given back before
	free   []span
}

// span is elements of a chunk that were given back.
type span struct {
	buf     kernels.Buffer
	off, to int
}

const minChunk = 1 << 16

// lineUp is n, and so much more that the next matrix starts on a cache line of its own.
func lineUp(n int) int { return (n + 15) &^ 15 }

// give takes back a matrix.
func (a *arena) give(x kernels.Tensor) {
	if x.Buf == nil || x.Len() == 0 {
		return
	}
	s := span{x.Buf, x.Off, min(x.Off+lineUp(x.Len()), x.Buf.Len())}
	for i := len(a.free) - 1; i >= 0; i-- { // with its neighbours it is one
		if f := a.free[i]; f.buf == s.buf && (f.to == s.off || s.to == f.off) {
			s.off, s.to = min(f.off, s.off), max(f.to, s.to)
			a.free[i] = a.free[len(a.free)-1]
			a.free = a.free[:len(a.free)-1]
		}
	}
	a.free = append(a.free, s)
}

// again is n elements of what was given back, of the least span that has them.
func (a *arena) again(n int) (buf kernels.Buffer, off int, ok bool) {
	least := -1
	for i, f := range a.free {
		if f.to-f.off >= n && (least < 0 || f.to-f.off < a.free[least].to-a.free[least].off) {
			least = i
		}
	}
	if least < 0 {
		return nil, 0, false
	}
	f := &a.free[least]
	buf, off = f.buf, f.off
	f.off = min(f.off+lineUp(n), f.to)
	return buf, off, true
}

func (a *arena) alloc(rows, cols int) kernels.Tensor {
	n := rows * cols
	if buf, off, ok := a.again(n); ok && n > 0 {
		return kernels.Tensor{Buf: buf, Type: kernels.F32, Off: off, Rows: rows, Cols: cols}
	}
	last := len(a.chunks) - 1
	if last < 0 || a.used+n > a.chunks[last].Len() {
		a.chunks = append(a.chunks, a.be.Alloc(kernels.F32, max(minChunk, n, a.size()/4)))
		last, a.used = last+1, 0
	}
	t := kernels.Tensor{Buf: a.chunks[last], Type: kernels.F32, Off: a.used, Rows: rows, Cols: cols}
	n = lineUp(n)
	a.used += n
	a.taken += n
	return t
}

// reset keeps one chunk, with room for all that the step took. Chunks are a quarter of those before
// while a step finds out how much that is.
func (a *arena) reset() {
	a.free = a.free[:0]
	if len(a.chunks) > 1 {
		n := max(minChunk, a.taken+a.taken/8)
		a.close()
		a.chunks = append(a.chunks, a.be.Alloc(kernels.F32, n))
	}
	a.used, a.taken = 0, 0
}

func (a *arena) size() int {
	n := 0
	for _, c := range a.chunks {
		n += c.Len()
	}
	return n
}

func (a *arena) close() {
	for _, c := range a.chunks {
		a.be.Free(c)
	}
	a.chunks, a.free, a.used, a.taken = nil, nil, 0, 0
}
