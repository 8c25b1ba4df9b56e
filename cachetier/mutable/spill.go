package mutable

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// spill collects the rows that windows evict. In a row file they lie far apart, and a write of a
// page for each is the worst case for a disk. So they are appended to the spill: a file in the form
// of a row file, whose records are in the order in which they came. A checkpoint moves them to
// their places in the file of its generation, in one pass with the rows that are only in memory. No
// list ever names the spill, so a crash loses it with all else that was written since the last
// checkpoint.
type spill struct {
	rows   int      // capacity in records
	file   *rowFile // nil before the first row
	memory *kernels.HostBuf
	at     []uint32 // by row: the number of its record, if newest is spilled
	end    uint32   // number of the record after the last one
	live   int      // rows whose newest record is in the spill
}

// The slot of the spill, and the serial number of its file: no row file of a generation has either.
const (
	spilled     = 255
	spillSerial = 0
)

// spillRows returns the capacity of the spill in records: the most rows that the run writes, and at
// least 65,536 or all rows. A smaller spill would be full more often, and each time rows are
// written to the row file.
func (o Options) spillRows() int { return max(cmp.Or(o.Touched, o.Rows), min(o.Rows, 1<<16)) }

// append appends n rows to the spill, and returns the bytes written. A full spill is settled first.
func (t *rows) append(n int, row func(i int) (uint32, []byte)) (bytes int64, err error) {
	s := &t.spill
	if s.file == nil {
		shape := t.shape
		shape.rows = t.spill.rows
		if s.file, err = createRows(t.fs, t.dir, shape, spillSerial, true); err != nil {
			return 0, err
		}
		t.slots[spilled] = s.file
		if err := t.reopen(); err != nil {
			return 0, err
		}
	}
	if err := t.put.reserve(t.stride); err != nil {
		return 0, err
	}
	for i := 0; i < n; {
		first := s.next()
		base := s.file.offset(first) &^ (store.PageSize - 1)
		k := int((base + int64(len(t.put.memory.Bytes())) - s.file.offset(first)) / t.stride)
		k = min(k, n-i, s.file.rows-int(min(int64(first), int64(s.file.rows))))
		if k == 0 { // it is full
			if err := t.settle(0, nil); err != nil {
				return bytes, err
			}
			continue
		}
		size := roundUp(s.file.offset(first+uint32(k)) - base)
		memory := t.put.memory.Lend()
		clear(memory[:size])
		for j := range k {
			v, b := row(i + j)
			s.file.encode(memory[s.file.offset(first+uint32(j))-base:][:t.stride], v, b)
		}
		err := t.putPieces(s.file, memory[:size], base)
		t.put.memory.Return()
		if err != nil {
			return bytes, err
		}
		bytes += size
		t.state.Lock()
		for j := range k {
			v, _ := row(i + j)
			t.note(v, spilled)
			s.at[v] = first + uint32(j)
		}
		t.state.Unlock()
		s.end = first + uint32(k)
		i += k
	}
	return bytes, nil
}

// next returns the first record that begins on a page without records.
func (s *spill) next() uint32 {
	used := roundUp(s.file.offset(s.end))
	return uint32((used - headerSize + s.file.stride - 1) / s.file.stride)
}

func roundUp(offset int64) int64 { return (offset + store.PageSize - 1) &^ (store.PageSize - 1) }

// pieceBytes is the size of one of several concurrent writes.
const pieceBytes = 512 << 10

// putPieces writes memory to f in pieces, several at once.
func (t *rows) putPieces(f *rowFile, memory []byte, offset int64) error {
	var g errgroup.Group
	g.SetLimit(writers)
	for at := 0; at < len(memory); at += pieceBytes {
		g.Go(func() error { return f.writeAt(memory[at:min(at+pieceBytes, len(memory))], offset+int64(at)) })
	}
	return g.Wait()
}

// note records that a slot has the newest record of row v. The caller holds state.
func (t *rows) note(v uint32, slot byte) {
	at := &t.newest[v]
	if *at == 0 {
		t.counts.RowsTouched++
	}
	if *at == spilled {
		t.spill.live--
	}
	if slot == spilled {
		t.spill.live++
	}
	*at = slot
}

// settle writes n rows, in ascending order, and all rows in the spill to their places in the
// generation that is being written. After an error, rows that were not written stay where they are.
func (t *rows) settle(n int, row func(i int) (uint32, []byte)) error {
	if n == 0 && t.spill.live == 0 {
		t.spill.end = 0
		return nil
	}
	g := &t.next
	if g.slot == 0 {
		if err := t.start(g); err != nil {
			return err
		}
	}
	most := max(1, min(int(copyBytes)/t.rowBytes, n+t.spill.live))
	t.copied = slices.Grow(t.copied[:0], most*t.rowBytes)[:most*t.rowBytes]
	memory := t.copied
	var batch []uint32 // rows
	var given []int    // for each row of batch: its index among the n, or -1 if it is in the spill
	var back []uint32  // indices in batch of the rows in the spill
	flush := func() error {
		place := func(i uint32) []byte { return memory[int(i)*t.rowBytes:][:t.rowBytes] }
		order, _ := t.sorted(nil, len(back), func(i int) uint32 { return batch[back[i]] })
		_, err := t.read(context.Background(), len(back), func(i int) (byte, uint32) { return spilled, batch[back[order[i]]] },
			func(i int, b []byte) { copy(place(back[order[i]]), b) })
		if err != nil {
			return err
		}
		bytes, err := t.write(g.slot, len(batch), func(i int) (uint32, []byte) {
			if given[i] < 0 {
				return batch[i], place(uint32(i))
			}
			return row(given[i])
		}, func(v uint32) bool { return t.newest[v] == g.slot })
		if err != nil {
			return err
		}
		t.state.Lock()
		defer t.state.Unlock()
		for _, v := range batch {
			t.note(v, g.slot)
		}
		t.counts.RowsWritten += int64(len(batch))
		t.counts.BytesWritten += bytes
		batch, back, given = batch[:0], back[:0], given[:0]
		return nil
	}
	add := func(v uint32, from int) error {
		if batch, given = append(batch, v), append(given, from); from < 0 {
			back = append(back, uint32(len(batch)-1))
		}
		if len(batch) == most {
			return flush()
		}
		return nil
	}
	next := 0 // index among the n
	if t.spill.live > 0 {
		for v, slot := range t.newest {
			for ; next < n; next++ {
				w, _ := row(next)
				if int(w) > v {
					break
				}
				if err := add(w, next); err != nil {
					return err
				}
				if int(w) == v {
					slot = 0
				}
			}
			if slot == spilled {
				if err := add(uint32(v), -1); err != nil {
					return err
				}
			}
		}
	}
	for ; next < n; next++ {
		v, _ := row(next)
		if err := add(v, next); err != nil {
			return err
		}
	}
	if err := flush(); err != nil {
		return err
	}
	t.spill.end = 0
	return nil
}

// forget empties the spill. The caller holds state.
func (s *spill) forget() { s.end, s.live = 0, 0 }
