package extsort

import (
	"bytes"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
)

// Texts are kept in buckets as records of two bytes of length, the text, and a value of four bytes,
// little-endian.

// MaxText is the length of the longest text.
const MaxText = 1<<16 - 1

// AppendText appends the record of a text to b.
func AppendText(b, text []byte, value uint32) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	b = append(b, text...)
	return binary.LittleEndian.AppendUint32(b, value)
}

// CutText cuts the first record off b, which holds whole ones.
func CutText(b []byte) (text []byte, value uint32, rest []byte) {
	n := 2 + int(binary.LittleEndian.Uint16(b))
	return b[2:n], binary.LittleEndian.Uint32(b[n:]), b[n+4:]
}

// EachText streams the records of a bucket. text is lent for the call.
func (a *Area) EachText(b Bucket, visit func(text []byte, value uint32) error) error {
	r, err := a.textReader(b, int(min(max(RoundUp(b.Bytes), sector), 1<<20)))
	if err != nil {
		return err
	}
	defer r.close()
	for {
		switch err := r.next(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := visit(r.text, r.value); err != nil {
			return err
		}
	}
}

// textReader is a bucket of texts being read.
type textReader struct {
	area  *Area
	b     Bucket
	at    int64
	mem   *kernels.HostBuf
	have  []byte // not yet used
	carry []byte // the first part of a record that was cut
	text  []byte
	value uint32
}

func (a *Area) textReader(b Bucket, bytes int) (*textReader, error) {
	mem, err := kernels.NewHostBuf(bytes)
	return &textReader{area: a, b: b, mem: mem}, err
}

func (r *textReader) close() { r.mem.Close() }

// next fills text and value from the next record.
func (r *textReader) next() error {
	for {
		b := r.have
		if len(b) >= 2 {
			if n := 2 + int(binary.LittleEndian.Uint16(b)) + 4; len(b) >= n {
				r.text, r.value, r.have = CutText(b)
				return nil
			}
		}
		if r.at == r.b.Bytes {
			if len(b) > 0 {
				return fmt.Errorf("%s: ends within a record: something else changed it", r.area.path(r.b.Name))
			}
			return io.EOF
		}
		r.carry = append(r.carry[:0], b...)
		n := min(int64(len(r.mem.Bytes())), r.b.Bytes-r.at)
		part, err := r.area.Load(r.b, r.at, n, r.mem.Bytes())
		if err != nil {
			return err
		}
		r.at += n
		if len(r.carry) > 0 {
			part = append(r.carry, part...)
			r.carry = nil // it is lent now
		}
		r.have = part
	}
}

// TextSorter sorts texts with a value each: it fills memory, sorts, writes a run, and merges the
// runs. One goroutine uses it.
type TextSorter struct {
	area   *Area
	name   string
	memory int
	arena  []byte
	places []place
	runs   []Bucket
	made   int
}

// place is a text in the arena: its first eight bytes for quick comparison, and where its record
// begins.
type place struct {
	first uint64
	at    uint32
}

const (
	placeBytes = 16
	// runBuffer is the size of a run's buffer while it is merged.
	runBuffer = 256 << 10
)

// NewTextSorter takes about memory bytes; its files are named after name.
func (a *Area) NewTextSorter(name string, memory int64) *TextSorter {
	return &TextSorter{area: a, name: name, memory: int(min(memory, 1<<31-1))}
}

// Add copies a text.
func (s *TextSorter) Add(text []byte, value uint32) error {
	const around = 6 // of a text in its record
	if used := len(s.arena) + len(text) + around; len(s.places) > 0 && max(2*used, used+(len(s.places)+1)*placeBytes) > s.memory {
		if err := s.spill(); err != nil {
			return err
		}
	}
	if need := len(s.arena) + len(text) + around; need > cap(s.arena) {
		size := max(2*cap(s.arena), need, 64<<10)
		if size > s.memory/8 { // doubled once more, both together would be too much
			size = max(s.memory/2, need)
		}
		s.arena = append(make([]byte, 0, size), s.arena...)
	}
	at := len(s.arena)
	s.arena = AppendText(s.arena, text, value)
	var first [8]byte
	copy(first[:], text)
	s.places = append(s.places, place{binary.BigEndian.Uint64(first[:]), uint32(at)})
	return nil
}

func (s *TextSorter) sort() {
	slices.SortFunc(s.places, func(a, b place) int {
		if a.first != b.first {
			return cmp.Compare(a.first, b.first)
		}
		x, xv, _ := CutText(s.arena[a.at:])
		y, yv, _ := CutText(s.arena[b.at:])
		return cmp.Or(bytes.Compare(x, y), cmp.Compare(xv, yv))
	})
}

// spill writes what is in memory as a run.
func (s *TextSorter) spill() error {
	s.sort()
	run, err := s.write(func(put func(text []byte, value uint32) error) error {
		for _, p := range s.places {
			text, value, _ := CutText(s.arena[p.at:])
			if err := put(text, value); err != nil {
				return err
			}
		}
		return nil
	})
	s.runs = append(s.runs, run)
	s.arena, s.places = s.arena[:0], s.places[:0]
	return err
}

// write makes a run of what each gives.
func (s *TextSorter) write(each func(put func(text []byte, value uint32) error) error) (Bucket, error) {
	s.made++
	w, err := s.area.NewTextWriter(fmt.Sprintf("%s-run%d", s.name, s.made))
	if err != nil {
		return Bucket{}, err
	}
	err = each(w.Put)
	return CloseAfter(err, w.Close)
}

// Sorted visits every text in ascending order, equal ones by their values, and ends the sorting.
// text is lent for the call.
func (s *TextSorter) Sorted(visit func(text []byte, value uint32) error) error {
	if len(s.runs) == 0 {
		s.sort()
		for _, p := range s.places {
			text, value, _ := CutText(s.arena[p.at:])
			if err := visit(text, value); err != nil {
				return err
			}
		}
		s.arena, s.places = nil, nil
		return nil
	}
	if err := s.spill(); err != nil {
		return err
	}
	s.arena, s.places = nil, nil
	ways := max(2, s.memory/runBuffer)
	for len(s.runs) > ways {
		first := s.runs[:ways]
		run, err := s.write(func(put func(text []byte, value uint32) error) error { return s.merge(first, put) })
		if err != nil {
			return err
		}
		if err := s.area.Remove(first...); err != nil {
			return err
		}
		s.runs = append(slices.Clone(s.runs[ways:]), run)
	}
	err := s.merge(s.runs, visit)
	return errors.Join(err, s.area.Remove(s.runs...))
}

func (s *TextSorter) merge(runs []Bucket, visit func(text []byte, value uint32) error) error {
	var h textHeap
	defer func() {
		for _, r := range h {
			r.close()
		}
	}()
	for _, b := range runs {
		r, err := s.area.textReader(b, runBuffer)
		if err != nil {
			return err
		}
		if err := r.next(); err == io.EOF {
			r.close()
			continue
		} else if err != nil {
			r.close()
			return err
		}
		h = append(h, r)
	}
	heap.Init(&h)
	for len(h) > 0 {
		r := h[0]
		if err := visit(r.text, r.value); err != nil {
			return err
		}
		switch err := r.next(); {
		case err == io.EOF:
			r.close()
			heap.Pop(&h)
		case err != nil:
			return err
		default:
			heap.Fix(&h, 0)
		}
	}
	return nil
}

type textHeap []*textReader

func (h textHeap) Len() int { return len(h) }
func (h textHeap) Less(i, j int) bool {
	return cmp.Or(bytes.Compare(h[i].text, h[j].text), cmp.Compare(h[i].value, h[j].value)) < 0
}
func (h textHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *textHeap) Push(x any)   { *h = append(*h, x.(*textReader)) }
func (h *textHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// TextWriter writes texts to one bucket. One goroutine uses it.
type TextWriter struct {
	w   *Writer
	buf []byte
}

// NewTextWriter begins a bucket.
func (a *Area) NewTextWriter(name string) (*TextWriter, error) {
	w, err := a.NewWriter(name, 1, MinBlock)
	return &TextWriter{w: w}, err
}

// Put appends a text.
func (t *TextWriter) Put(text []byte, value uint32) error {
	if t.buf = AppendText(t.buf, text, value); len(t.buf) > 64<<10 {
		t.flush()
	}
	return t.w.Err()
}

func (t *TextWriter) flush() {
	t.w.append(0, t.buf)
	t.buf = t.buf[:0]
}

// Close ends the bucket.
func (t *TextWriter) Close() (Bucket, error) {
	t.flush()
	b, err := t.w.Close()
	return b[0], err
}
