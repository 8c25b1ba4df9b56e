package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/store/internal/mapping"
)

// sumBytes is the size of the checksum of one page.
const sumBytes = 4

// pages is the number of pages that the payload fills.
func (f *File) pages() int64 { return (f.payload() + PageSize - 1) / PageSize }

// sumsAt is where the page checksums of a section begin in its file.
func (f *File) sumsAt() int64 { return PageSize + f.pages()*PageSize }

// pageSums are the checksums of one section's payload, a CRC-32C a page. They are read when the
// first page is checked, into memory outside the Go heap. A nil *pageSums is that of a section
// without: it finds nothing wrong.
type pageSums struct {
	dataset string
	spec    *File
	file    *os.File
	want    uint64 // XXH3 of the checksums and their padding, as the header has it

	loaded atomic.Pointer[loadedSums]
	mu     sync.Mutex // of load
	err    error      // why they cannot be read, once that was found
}

// loadedSums is pageSums in memory.
type loadedSums struct {
	memory []byte
	sums   []uint32        // of each page
	seen   []atomic.Uint32 // a bit for each page of the map that was compared with its checksum
}

// sumRoutine is a way to compute the CRC-32C of a page: of its first PageSize bytes, wherever they
// begin in memory.
type sumRoutine struct {
	name string
	sum  func(page []byte) uint32
}

// sumRoutines are all that this processor has, the fastest first. All agree with the last,
// hash/crc32.
func sumRoutines() []sumRoutine {
	return append(nativeSumRoutines(), sumRoutine{"hash/crc32", portablePageSum})
}

// pageSum is the CRC-32C of a page.
var pageSum = sumRoutines()[0].sum

// portablePageSum goes by halves: of 4032 bytes and more hash/crc32 works at three places at once,
// a third of the page apart, which the processor does not fetch ahead. From memory this makes 15
// GB/s instead of 6.
func portablePageSum(page []byte) uint32 {
	return crc32.Update(crc32.Checksum(page[:PageSize/2], castagnoli), castagnoli, page[PageSize/2:PageSize])
}

// bytes is what the checksums take in memory once they are loaded: 4 bytes and a bit a page, or a
// thousandth of the data.
func (p *pageSums) bytes() int64 {
	if p == nil {
		return 0
	}
	n := p.spec.pages()
	return roundUp(n*sumBytes, PageSize) + (n+31)/32*4
}

// load reads the checksums and compares them with the header's hash. It may be called by several
// goroutines at once.
func (p *pageSums) load() (*loadedSums, error) {
	if l := p.loaded.Load(); l != nil {
		return l, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.loaded.Load(); l != nil || p.err != nil {
		return l, p.err
	}
	n := p.spec.pages()
	memory, err := mapping.Anonymous(int(max(p.bytes(), sumBytes)))
	if err != nil {
		return nil, fmt.Errorf("%s: page checksums of %s: %w", p.dataset, p.spec.Path, err)
	}
	b := memory[:roundUp(n*sumBytes, PageSize)]
	if _, err := p.file.ReadAt(b, p.spec.sumsAt()); err != nil {
		return nil, errors.Join(p.unread(err), mapping.Free(memory))
	}
	if sum := xxh3.Hash(b); sum != p.want {
		p.err = errors.Join(&SectionError{p.dataset, p.spec.Path, p.spec.sumsAt(), fmt.Errorf(
			"the page checksums hash to %016x, and the header says %016x: %s", sum, p.want, restore)}, mapping.Free(memory))
		return nil, p.err
	}
	l := &loadedSums{memory: memory, sums: cast[uint32](b)[:n], seen: atomics(memory[len(b):])}
	p.loaded.Store(l)
	return l, nil
}

// unread is the error of checksums that could not be read.
func (p *pageSums) unread(err error) error {
	if info, serr := p.file.Stat(); serr == nil && info.Size() < p.spec.Bytes {
		return &SectionError{p.dataset, p.spec.Path, info.Size(), fmt.Errorf(
			"the file ends here, and had %d bytes: it was truncated while in use; restore it and run gnnstore verify", p.spec.Bytes)}
	}
	return fmt.Errorf("%s: page checksums of %s: %w", p.dataset, p.spec.Path, err)
}

// restore is the remedy for damaged bytes.
const restore = "the file is damaged; restore it from a copy, or ingest again"

// check compares pages that were read, of which b holds all bytes, with their checksums. The first
// is page number first of the payload.
func (p *pageSums) check(first int64, b []byte) error {
	if p == nil || len(b) == 0 {
		return nil
	}
	l, err := p.load()
	if err != nil {
		return err
	}
	for i := first; len(b) > 0; i, b = i+1, b[PageSize:] {
		if sum := pageSum(b); sum != l.sums[i] {
			return p.mismatch(i, sum, l.sums[i])
		}
	}
	return nil
}

func (p *pageSums) mismatch(page int64, sum, want uint32) *SectionError {
	return &SectionError{p.dataset, p.spec.Path, PageSize + page*PageSize, fmt.Errorf(
		"the checksum of this page is %08x, and %08x was sealed: %s", sum, want, restore)}
}

// close gives the memory back.
func (p *pageSums) close() error {
	if p == nil {
		return nil
	}
	if l := p.loaded.Swap(nil); l != nil {
		return mapping.Free(l.memory)
	}
	return nil
}

// touch checks the mapped pages that bytes lo to hi of the payload lie on, each before it is lent
// for the first time. A page that the system drops and reads again from the disk is not checked
// again. What is wrong panics with an error that [Guard] returns; so touch is called where mapped
// memory may be read. Nothing is known of the pages of no section.
func (s *section) touch(lo, hi int64) {
	if s == nil || s.sums == nil || lo >= hi {
		return
	}
	l := s.sums.loaded.Load()
	if l == nil {
		var err error
		if l, err = s.sums.load(); err != nil {
			panic(guarded{err})
		}
	}
	for page := lo / PageSize; page <= (hi-1)/PageSize; page++ {
		if l.seen[page>>5].Load()&(1<<(page&31)) == 0 {
			s.checkMapped(l, page)
		}
	}
}

func (s *section) checkMapped(l *loadedSums, page int64) {
	at := PageSize + page*PageSize
	if sum := pageSum(s.m.Bytes()[at:]); sum != l.sums[page] {
		panic(guarded{s.sums.mismatch(page, sum, l.sums[page])})
	}
	l.seen[page>>5].Or(1 << (page & 31))
}

// whole is the payload, all of it checked. It panics as touch does.
func (s *section) whole() []byte {
	s.touch(0, s.spec.payload())
	return s.payload()
}

// sumWriter computes page checksums of bytes that come one behind the other.
type sumWriter struct {
	sums []byte
	crc  uint32
	have int // bytes of the page that crc is of
}

func (w *sumWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if w.have == 0 && len(rest) >= PageSize {
			w.sums = binary.LittleEndian.AppendUint32(w.sums, pageSum(rest))
			rest = rest[PageSize:]
			continue
		}
		n := min(len(rest), PageSize-w.have)
		w.crc = crc32.Update(w.crc, castagnoli, rest[:n])
		rest = rest[n:]
		if w.have += n; w.have == PageSize {
			w.sums = binary.LittleEndian.AppendUint32(w.sums, w.crc)
			w.crc, w.have = 0, 0
		}
	}
	return len(p), nil
}

// padded are the checksums, with zeros up to the end of their last page. The bytes written were
// whole pages.
func (w *sumWriter) padded() []byte {
	return append(w.sums, make([]byte, roundUp(int64(len(w.sums)), PageSize)-int64(len(w.sums)))...)
}
