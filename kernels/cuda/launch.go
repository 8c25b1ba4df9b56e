//go:build cuda && linux

package cuda

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// operand is a window of a buffer. The zero operand is the null pointer.
type operand struct {
	at    driver.Ptr
	bytes int
	block *block
}

// overlaps reports whether two windows share memory.
func (o operand) overlaps(p operand) bool {
	return o.block != nil && o.block == p.block && o.at < p.at+driver.Ptr(p.bytes) && p.at < o.at+driver.Ptr(o.bytes)
}

// beginsWith reports whether two windows begin at the same element.
func (o operand) beginsWith(p operand) bool { return o.block == p.block && o.at == p.at }

// whole returns the window of a block.
func (of *block) whole() operand { return operand{of.at, int(of.size), of} }

// operandOf returns the beginning of a buffer.
func (b *Backend) operandOf(buf kernels.Buffer) operand {
	return buf.(*buffer).block.whole()
}

// plus returns the place so many bytes further on.
func (o operand) plus(bytes int) operand {
	o.at += driver.Ptr(bytes)
	o.bytes -= bytes
	return o
}

// operand returns the window of t, which must be of one of the types. name is for messages.
func (b *Backend) operand(op, name string, t kernels.Tensor, types ...kernels.DType) operand {
	if t.Rows < 0 || t.Cols < 0 || t.Off < 0 {
		panic(fmt.Sprintf("kernels: %s: %s %d×%d at %d", op, name, t.Rows, t.Cols, t.Off))
	}
	if t.Buf == nil && t.Len() == 0 {
		return operand{}
	}
	buf, ok := t.Buf.(*buffer)
	if !ok {
		panic(fmt.Sprintf("kernels: %s: the buffer of %s is %T, of another backend", op, name, t.Buf))
	}
	fits := false
	for _, typ := range types {
		fits = fits || t.Type == typ && buf.typ == typ
	}
	if !fits {
		panic(fmt.Sprintf("kernels: %s: %s is %v in a buffer of %v, want %v", op, name, t.Type, buf.typ, types))
	}
	if buf.block == nil {
		panic(fmt.Sprintf("kernels: %s: the buffer of %s is freed", op, name))
	}
	if t.Off > buf.n || t.Len() > buf.n-t.Off {
		panic(fmt.Sprintf("kernels: %s: %s has elements %d to %d, its buffer %d", op, name, t.Off, t.Off+t.Len(), buf.n))
	}
	return operand{buf.block.at + driver.Ptr(t.Off*t.Type.Size()), t.Len() * t.Type.Size(), buf.block}
}

// f32, halves and u32 return the window of a tensor of that type, f32OrHalf of either float type.
func (b *Backend) f32(op, name string, t kernels.Tensor) operand {
	return b.operand(op, name, t, kernels.F32)
}

func (b *Backend) halves(op, name string, t kernels.Tensor) operand {
	return b.operand(op, name, t, kernels.F16)
}

func (b *Backend) u32(op, name string, t kernels.Tensor) operand {
	return b.operand(op, name, t, kernels.U32)
}

func (b *Backend) f32OrHalf(op, name string, t kernels.Tensor) operand {
	return b.operand(op, name, t, kernels.F32, kernels.F16)
}

// wide returns name with _wide if that variant may run: if fits, which says that the columns allow
// it, and all operands lie at multiples of 16 bytes.
func (b *Backend) wide(name string, fits bool, operands ...operand) string {
	if !fits || b.options.Narrow {
		return name
	}
	for _, o := range operands {
		if o.at%16 != 0 {
			return name
		}
	}
	return name + "_wide"
}

// ofType returns name, with _half if t holds halves, and how many columns the kernel's wide variant
// reads at a time.
func ofType(name string, t kernels.Tensor) (string, int) {
	if t.Type == kernels.F16 {
		return name + "_half", 8
	}
	return name, 4
}

// threads is the number of threads of a block.
const threads = 256

// flat returns a grid for n elements, each of a thread. Kernels loop, so it may be smaller.
func (b *Backend) flat(n int) driver.Dim {
	return driver.Dim{X: uint32(max(1, min(b.blocks, (n+threads-1)/threads)))}
}

// warps returns a grid for n rows, each of 32 threads.
func (b *Backend) warps(n int) driver.Dim { return b.flat(32 * n) }

// lanes returns a grid for n rows of cols columns, where a thread takes per columns at a time. It
// also returns the kernels' parameter shift: a row has 1<<shift threads.
func (b *Backend) lanes(n, cols, per int) (driver.Dim, int) {
	groups := max(1, (cols+per-1)/per)
	shift := min(5, bits.Len(uint(groups-1)))
	return b.flat(n << shift), shift
}

// run launches a kernel, and before it what waits on its operands. An int fits a parameter of
// either size.
func (b *Backend) run(name string, grid driver.Dim, args ...any) {
	b.settleArgs(args)
	b.launch(b.params, name, grid, args...)
}

// launch is run where nothing waits. The arguments are packed in p.
func (b *Backend) launch(p *driver.Params, name string, grid driver.Dim, args ...any) {
	k := b.kernels[name]
	if k == nil {
		panic("cuda: no kernel " + name)
	}
	p.Start(k.list)
	for i, arg := range args {
		switch v := arg.(type) {
		case operand:
			p.Ptr(v.at)
		case int:
			if i < len(k.list.Params) && k.list.Params[i].Size == 8 {
				p.U64(uint64(v))
			} else {
				p.U32(uint32(v))
			}
		case uint32:
			p.U32(v)
		case uint64:
			p.U64(v)
		case float32:
			p.F32(v)
		case float64:
			p.F64(v)
		default:
			panic(fmt.Sprintf("cuda: %s: an argument %T", name, arg))
		}
	}
	b.before(args)
	b.do(name, func(c *driver.Calls) error {
		return c.LaunchKernel(k.function, grid, driver.Dim{X: threads}, 0, b.compute, p)
	})
	b.after(args)
}

// before has the compute stream wait for the uploads to the operands among args.
func (b *Backend) before(args []any) {
	for _, arg := range args {
		if o, ok := arg.(operand); ok && o.block != nil {
			b.awaitUpload(o.block)
		}
	}
}

// after notes that an operation has touched the operands among args.
func (b *Backend) after(args []any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, arg := range args {
		if o, ok := arg.(operand); ok && o.block != nil {
			o.block.used = b.span
		}
	}
}

// temporary returns a window of device memory for each of sizes, in bytes. The windows are
// undefined at first, and belong to one operation: the next call lends the same memory.
func (b *Backend) temporary(sizes ...int) []operand {
	total := 0
	for _, n := range sizes {
		total += lineUp(n)
	}
	if b.scratch.block == nil || int(b.scratch.block.size) < total {
		b.release(b.scratch.block)
		b.scratch = operand{}
		of := b.allocate("scratch", uint64(total+total/4))
		b.scratch = of.whole()
	}
	all, at := make([]operand, len(sizes)), 0
	for i, n := range sizes {
		all[i] = b.scratch.plus(at)
		at += lineUp(n)
	}
	return all
}

// lineUp rounds bytes up so that what follows may be read 16 bytes at a time.
func lineUp(bytes int) int { return (bytes + 255) &^ 255 }

// refusal returns the message of an error word.
func refusal(operation string, place uint32) string {
	what := "an id or a position"
	if strings.HasSuffix(operation, "CrossEntropy") {
		what = "a label"
	}
	return fmt.Sprintf("kernels: %s: %s is out of range, at %d", operation, what, place)
}
