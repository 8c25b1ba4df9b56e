package rawfile

import (
	"encoding/binary"
	"io"
	"math"
	"math/bits"
)

// Pickler writes a pickle of protocol 2, the default of torch.save (PEP 307; opcodes as in Python's
// pickletools). The first error of its writer stays, and comes back from every method after it.
type Pickler struct {
	w   io.Writer
	buf []byte
	err error
}

// op writes opcodes and their arguments.
func (p *Pickler) op(b ...byte) *Pickler {
	if p.err == nil {
		_, p.err = p.w.Write(b)
	}
	return p
}

func (p *Pickler) global(module, name string) *Pickler {
	return p.op([]byte("c" + module + "\n" + name + "\n")...)
}

// Dict writes a dict: entries calls Text and one other method for each pair.
func (p *Pickler) Dict(entries func()) error {
	p.op('}', '(')
	entries()
	return p.op('u').err
}

// Text writes a string.
func (p *Pickler) Text(s string) *Pickler {
	return p.op(append(binary.LittleEndian.AppendUint32([]byte{'X'}, uint32(len(s))), s...)...)
}

// Int writes an integer.
func (p *Pickler) Int(n int64) *Pickler {
	switch {
	case n >= 0 && n < 256:
		return p.op('K', byte(n))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		return p.op(binary.LittleEndian.AppendUint32([]byte{'J'}, uint32(n))...)
	}
	return p.op(binary.LittleEndian.AppendUint64([]byte{0x8a, 8}, uint64(n))...)
}

// encoded writes bytes as protocol 2 knows them: a text of their latin-1 characters, to be encoded
// again.
func (p *Pickler) encoded(utf8Len uint64, text func()) {
	p.global("_codecs", "encode").op(binary.LittleEndian.AppendUint32([]byte{'X'}, uint32(utf8Len))...)
	text()
	p.Text("latin1").op(0x86, 'R')
}

// Int64s writes a NumPy array of one dimension and n elements, which each streams, twice: their
// text's length stands before it.
func (p *Pickler) Int64s(n int64, each func(emit func([]int64) error) error) error {
	length := uint64(8 * n)
	err := each(func(values []int64) error {
		for _, v := range values {
			length += uint64(bits.OnesCount64(uint64(v) & 0x8080808080808080)) // bytes beyond ASCII take two
		}
		return p.err
	})
	if err != nil {
		return err
	}
	p.global("numpy.core.multiarray", "_reconstruct").global("numpy", "ndarray").Int(0).op(0x85)
	p.encoded(1, func() { p.op('b') })
	p.op(0x87, 'R', '(').Int(1).Int(n).op(0x85)
	p.global("numpy", "dtype").Text("i8").op(0x89, 0x88, 0x87, 'R', '(').Int(3).Text("<").op('N', 'N', 'N').Int(-1).Int(-1).Int(0).op('t', 'b')
	p.op(0x89)
	p.encoded(length, func() {
		err = each(func(values []int64) error {
			p.buf = p.buf[:0]
			for _, v := range values {
				for range 8 {
					if c := byte(v); c < 0x80 {
						p.buf = append(p.buf, c)
					} else {
						p.buf = append(p.buf, 0xc0|c>>6, 0x80|c&0x3f)
					}
					v >>= 8
				}
			}
			return p.op(p.buf...).err
		})
	})
	if err != nil {
		return err
	}
	return p.op('t', 'b').err
}

// Float32s writes a tensor whose elements are in the storage of that key, in C order.
func (p *Pickler) Float32s(storage string, shape ...int64) error {
	n := int64(1)
	strides := make([]int64, len(shape))
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = n
		n *= shape[i]
	}
	p.global("torch._utils", "_rebuild_tensor_v2").op('(', '(').Text("storage").global("torch", "FloatStorage")
	p.Text(storage).Text("cpu").Int(n).op('t', 'Q').Int(0)
	for _, dims := range [][]int64{shape, strides} {
		p.op('(')
		for _, d := range dims {
			p.Int(d)
		}
		p.op('t')
	}
	return p.op(0x89).global("collections", "OrderedDict").op(')', 'R', 't', 'R').err
}
