package rawfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"runtime"

	"github.com/klauspost/compress/flate"
)

// deflateBlock is compressed on its own: larger ones compress no better, since DEFLATE looks back
// 32 KiB.
const deflateBlock = 512 << 10

// finalBlock is an empty stored block that ends a DEFLATE stream (RFC 1951, 3.2.4).
var finalBlock = []byte{1, 0, 0, 0xff, 0xff}

// deflater is a DEFLATE stream whose blocks are compressed by as many goroutines as there are
// processors. Blocks end on a byte (a sync flush), so that they can be written one after another.
type deflater struct {
	w      io.Writer
	fill   *block
	queue  []*block // under way, oldest first
	spare  []*block
	blocks int
	err    error
	closed bool
}

type block struct {
	raw    []byte
	packed bytes.Buffer
	w      *flate.Writer
	err    error
	done   chan struct{}
}

func newDeflater(w io.Writer) *deflater { return &deflater{w: w} }

// block returns an empty block: a new one, a spare one, or the oldest when it is written.
func (d *deflater) block() *block {
	if len(d.spare) == 0 && d.blocks == 2*runtime.GOMAXPROCS(0) {
		d.writeOldest()
	}
	if n := len(d.spare); n > 0 {
		b := d.spare[n-1]
		d.spare = d.spare[:n-1]
		return b
	}
	d.blocks++
	b := &block{raw: make([]byte, 0, deflateBlock), done: make(chan struct{}, 1)}
	b.w, b.err = flate.NewWriter(&b.packed, flate.BestSpeed)
	return b
}

func (b *block) compress() {
	defer func() { b.done <- struct{}{} }()
	if b.err == nil {
		b.packed.Reset()
		b.w.Reset(&b.packed)
		_, err := b.w.Write(b.raw)
		b.err = errors.Join(err, b.w.Flush())
	}
}

func (d *deflater) writeOldest() {
	b := d.queue[0]
	d.queue = d.queue[1:]
	<-b.done
	if d.err == nil {
		d.err = b.err
	}
	if d.err == nil {
		_, d.err = d.w.Write(b.packed.Bytes())
	}
	b.raw = b.raw[:0]
	d.spare = append(d.spare, b)
}

func (d *deflater) submit() {
	b := d.fill
	d.fill = nil
	d.queue = append(d.queue, b)
	go b.compress()
}

func (d *deflater) Write(p []byte) (n int, err error) {
	for n < len(p) && d.err == nil {
		if d.fill == nil {
			d.fill = d.block()
		}
		k := copy(d.fill.raw[len(d.fill.raw):deflateBlock], p[n:])
		d.fill.raw = d.fill.raw[:len(d.fill.raw)+k]
		n += k
		if len(d.fill.raw) == deflateBlock {
			d.submit()
		}
	}
	return n, d.err
}

// Close ends the stream and waits for all blocks.
func (d *deflater) Close() error {
	if d.closed {
		return d.err
	}
	d.closed = true
	if d.fill != nil {
		d.submit()
	}
	for len(d.queue) > 0 {
		d.writeOldest()
	}
	if d.err == nil {
		_, d.err = d.w.Write(finalBlock)
	}
	return d.err
}

// gzipWriter is a gzip file of one member (RFC 1952).
type gzipWriter struct {
	w    io.Writer
	d    *deflater
	crc  uint32
	size uint32 // modulo 2³², as the format has it
}

// NewGzip writes a gzip file to w, which its caller closes after it.
func NewGzip(w io.Writer) io.WriteCloser {
	d := newDeflater(w)
	_, d.err = w.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255})
	return &gzipWriter{w: w, d: d}
}

func (g *gzipWriter) Write(p []byte) (int, error) {
	n, err := g.d.Write(p)
	g.crc = crc32.Update(g.crc, crc32.IEEETable, p[:n])
	g.size += uint32(n)
	return n, err
}

func (g *gzipWriter) Close() error {
	if g.d.closed {
		return g.d.err
	}
	if err := g.d.Close(); err != nil {
		return err
	}
	end := binary.LittleEndian.AppendUint32(nil, g.crc)
	_, g.d.err = g.w.Write(binary.LittleEndian.AppendUint32(end, g.size))
	return g.d.err
}
