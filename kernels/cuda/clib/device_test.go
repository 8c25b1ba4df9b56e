//go:build cuda && linux

package clib

import (
	"math/bits"
	"sync"

	"github.com/gnnstore/gnnstore/kernels"
)

// A device is a kernels.Backend whose operations are launches of the library's kernels, for the
// conformance suite. Beside it a CPU computes the same, since it refuses shapes and ids as the
// contract asks; its results are not used.
type device struct {
	kernels.Backend // the CPU

	lib   *library
	mode  mode
	word  address // the error word
	mu    sync.Mutex
	spare []address // freed after the operation
}

// A mode decides which variants run.
type mode int

const (
	natural  mode = iota // wide where operands happen to lie at multiples of 16 bytes
	elements             // never wide
	aligned              // operands are moved to multiples of 16 bytes first
)

var _ kernels.Backend = (*device)(nil)

func newDevice(l *library, m mode) *device {
	return &device{Backend: kernels.NewCPU(kernels.CPUOptions{Threads: 1}), lib: l, mode: m, word: l.alloc(8)}
}

// block is a Buffer. Its elements begin skip bytes into memory that is 16 bytes longer.
type block struct {
	t      kernels.DType
	n      int
	memory address
	skip   int
	host   kernels.Buffer
}

func (b *block) Len() int { return b.n }

func (b *block) bytes() []byte { return bytesAt(b.memory+address(b.skip), b.n*b.t.Size()) }

func (d *device) Name() string { return "host kernels" }

func (d *device) Alloc(t kernels.DType, n int) kernels.Buffer {
	return &block{t: t, n: n, memory: d.lib.alloc(n*t.Size() + 16), host: d.Backend.Alloc(t, n)}
}

func (d *device) Free(b kernels.Buffer) {
	of := b.(*block)
	d.Backend.Free(of.host)
	d.lib.release(of.memory)
	of.memory = 0
}

// onCPU returns the CPU's twin of a tensor.
func onCPU(t kernels.Tensor) kernels.Tensor {
	if t.Buf != nil {
		t.Buf = t.Buf.(*block).host
	}
	return t
}

func onCPUs(all []kernels.Tensor) []kernels.Tensor {
	twins := make([]kernels.Tensor, len(all))
	for i, t := range all {
		twins[i] = onCPU(t)
	}
	return twins
}

func graphOnCPU(g kernels.Adjacency) kernels.Adjacency {
	return kernels.Adjacency{Start: onCPU(g.Start), End: onCPU(g.End), Nbr: onCPU(g.Nbr),
		RevStart: onCPU(g.RevStart), RevDst: onCPU(g.RevDst), RevEdge: onCPU(g.RevEdge)}
}

func graphsOnCPU(all []kernels.Adjacency) []kernels.Adjacency {
	twins := make([]kernels.Adjacency, len(all))
	for i, g := range all {
		twins[i] = graphOnCPU(g)
	}
	return twins
}

// at returns the address of a tensor's window, or 0 of the zero Tensor.
func at(t kernels.Tensor) address {
	if t.Buf == nil {
		return 0
	}
	b := t.Buf.(*block)
	return b.memory + address(b.skip+t.Off*b.t.Size())
}

func window[T any](t kernels.Tensor) []T { return slice[T](at(t), t.Len()) }

// wide returns name with _wide where that variant may run: fits says so of the columns, and
// operands lie right. In mode aligned it moves them there.
func (d *device) wide(name string, fits bool, operands ...kernels.Tensor) string {
	if d.mode == elements || !fits {
		return name
	}
	for _, t := range operands {
		if d.mode == aligned && t.Buf != nil {
			b := t.Buf.(*block)
			from := b.bytes()
			b.skip = (16 - (int(b.memory)+t.Off*b.t.Size())%16) % 16
			copy(b.bytes(), from)
		}
	}
	for _, t := range operands {
		if at(t)%16 != 0 {
			return name
		}
	}
	return name + "_wide"
}

// temp returns memory that lives until the operation is done.
func (d *device) temp(size int) address {
	at := d.lib.alloc(size)
	d.spare = append(d.spare, at)
	return at
}

// table copies words to memory that lives until the operation is done.
func (d *device) table(words []uint64) address {
	at := d.temp(8 * len(words))
	copy(slice[uint64](at, len(words)), words)
	return at
}

// begin starts an operation, and the function that it returns ends it. The kernels refuse no id
// that the CPU has accepted.
func (d *device) begin() (end func()) {
	d.mu.Lock()
	slice[uint64](d.word, 1)[0] = 0
	return func() {
		defer d.mu.Unlock()
		for _, at := range d.spare {
			d.lib.release(at)
		}
		d.spare = nil
		if w := slice[uint64](d.word, 1)[0]; w != 0 && recover() == nil {
			panic("a kernel refuses what the CPU took")
		}
	}
}

// flat is a grid that is too small for n elements in most cases, so that threads loop.
func flat(n int) grid { return grid{max(1, min(7, (n+255)/256)), 1, 1} }

// shift returns the parameter of lanes kernels for cols columns, n at a time.
func shift(cols, n int) int {
	groups := max(1, (cols+n-1)/n)
	return min(5, bits.Len(uint(groups-1)))
}

func (d *device) UploadF32(dst kernels.Tensor, src []float32) {
	d.Backend.UploadF32(onCPU(dst), src)
	d.mu.Lock()
	defer d.mu.Unlock()
	copy(window[float32](dst), src)
}

func (d *device) UploadU32(dst kernels.Tensor, src []uint32) {
	d.Backend.UploadU32(onCPU(dst), src)
	d.mu.Lock()
	defer d.mu.Unlock()
	copy(window[uint32](dst), src)
}

func (d *device) UploadHalf(dst kernels.Tensor, src []uint16) {
	d.Backend.UploadHalf(onCPU(dst), src)
	d.mu.Lock()
	defer d.mu.Unlock()
	copy(window[uint16](dst), src)
}

func (d *device) DownloadF32(dst []float32, src kernels.Tensor) {
	d.Backend.DownloadF32(make([]float32, len(dst)), onCPU(src))
	d.mu.Lock()
	defer d.mu.Unlock()
	copy(dst, window[float32](src))
}

func (d *device) DownloadU32(dst []uint32, src kernels.Tensor) {
	d.Backend.DownloadU32(make([]uint32, len(dst)), onCPU(src))
	d.mu.Lock()
	defer d.mu.Unlock()
	copy(dst, window[uint32](src))
}

func (d *device) FetchF32(dst []float32, src kernels.Tensor) { d.DownloadF32(dst, src) }
func (d *device) FetchU32(dst []uint32, src kernels.Tensor)  { d.DownloadU32(dst, src) }
func (d *device) Mark() (wait func())                        { return func() {} }
func (d *device) Behind() bool                               { return false }
func (d *device) Host(kernels.Tensor) ([]byte, bool)         { return nil, false }
