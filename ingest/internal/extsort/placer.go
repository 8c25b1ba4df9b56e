package extsort

import (
	"encoding/binary"
	"fmt"

	"github.com/gnnstore/gnnstore/kernels"
)

// Placer takes rows of equal width in any order and gives them back in the order of their places,
// which are 0…rows-1. What fits in memory stays there; more goes through an [Area]. Rows that were
// never put are zeros.
//
// One goroutine calls Put, then Close, then Each once. If rows were spilled, [Area.Placed] may be
// called as often as wanted.
type Placer struct {
	area    *Area
	rows    int64
	width   int
	memory  int64
	mem     *kernels.HostBuf // nil when spilling
	w       *Writer
	to      *Appender
	all     *Ranges
	rec     []byte
	spilled []Bucket
}

// placement divides rows into parts that fit in memory, and sizes a Placer's blocks.
func placement(rows int64, width int, memory int64) (parts, block int) {
	parts = int((rows*int64(width)+memory-1)/max(1, memory)) + 1
	block = int(memory / int64(parts+writers+1) / sector * sector)
	return parts, max(min(block, MaxBlock), minPlaceBlock)
}

// minPlaceBlock is the least block of a Placer in little memory: slow, and it works.
const minPlaceBlock = 16 << 10

// PlacerFits reports whether a Placer will stay in memory.
func PlacerFits(rows int64, width int, memory int64) bool { return rows*int64(width) <= memory }

// PlacerMemory is the least memory in which rows of a width can be placed.
func PlacerMemory(rows int64, width int) int64 {
	least := int64(1 << 20)
	for ; least < rows*int64(width); least += least / 8 {
		if parts, block := placement(rows, width, least); WriterBytes(parts, block)+int64(parts)*stageBytes <= least+least/8 {
			break
		}
	}
	return least
}

// NewPlacer begins. It takes about memory bytes, and the buckets are named after name.
func (a *Area) NewPlacer(name string, rows int64, width int, memory int64) (*Placer, error) {
	p := &Placer{area: a, rows: rows, width: width, memory: memory}
	var err error
	if PlacerFits(rows, width, memory) {
		p.mem, err = kernels.NewHostBuf(int(rows) * width)
		return p, err
	}
	parts, block := placement(rows, width, memory)
	p.all = EvenRanges(uint64(rows), parts)
	p.rec = make([]byte, 4+width)
	if p.w, err = a.NewWriter(name, p.all.Len(), block); err != nil {
		return nil, err
	}
	p.to = p.w.NewAppender()
	return p, nil
}

// Put puts a row, which is copied.
func (p *Placer) Put(place uint32, row []byte) {
	if len(row) != p.width || int64(place) >= p.rows {
		panic("extsort: Put of a row that does not belong")
	}
	if p.mem != nil {
		copy(p.mem.Bytes()[int64(place)*int64(p.width):], row)
		return
	}
	binary.LittleEndian.PutUint32(p.rec, place)
	copy(p.rec[4:], row)
	p.to.Put(p.all.Find(place), p.rec)
}

// Err is the first error of a write so far.
func (p *Placer) Err() error {
	if p.w == nil {
		return nil
	}
	return p.w.Err()
}

// Close ends the putting. The buckets are nil when the rows are in memory.
func (p *Placer) Close() (spilled []Bucket, err error) {
	if p.w != nil {
		p.to.Flush()
		p.spilled, err = p.w.Close()
	}
	return p.spilled, err
}

// Each calls emit with all rows in order, some at a time, and then frees the memory. emit must not
// keep rows.
func (p *Placer) Each(emit func(first int64, rows []byte) error) error {
	if p.mem == nil {
		return p.area.Placed(p.spilled, p.rows, p.width, p.memory, emit)
	}
	defer p.Free()
	return emit(0, p.mem.Bytes())
}

// Free drops rows in memory that nobody wants any more.
func (p *Placer) Free() {
	if p.mem != nil {
		p.mem.Close()
	}
}

// Placed gives back the rows that a Placer of the same rows, width and memory spilled, some at a
// time.
func (a *Area) Placed(buckets []Bucket, rows int64, width int, memory int64, emit func(first int64, rows []byte) error) error {
	parts, _ := placement(rows, width, memory)
	all := EvenRanges(uint64(rows), parts)
	if all.Len() != len(buckets) {
		panic("extsort: Placed of another Placer's buckets")
	}
	widest := int64(0)
	for i := range buckets {
		lo, end := all.Bounds(i)
		widest = max(widest, int64(end-lo))
	}
	mem, err := kernels.NewHostBuf(int(widest) * width)
	if err != nil {
		return err
	}
	defer mem.Close()
	buf, err := Buffer(4+width, 4<<20)
	if err != nil {
		return err
	}
	defer buf.Close()
	for i, b := range buckets {
		lo, end := all.Bounds(i)
		out := mem.Bytes()[:int(end-lo)*width]
		clear(out)
		err := a.Each(b, 4+width, buf.Bytes(), func(records []byte) error {
			for ; len(records) > 0; records = records[4+width:] {
				place := uint64(binary.LittleEndian.Uint32(records))
				if place < lo || place >= end {
					return fmt.Errorf("%s: has a row that does not belong there: something else changed it", a.path(b.Name))
				}
				copy(out[int(place-lo)*width:], records[4:4+width])
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := emit(int64(lo), out); err != nil {
			return err
		}
	}
	return nil
}
