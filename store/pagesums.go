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

// pages returns the number of pages that the payload fills.
func (f *File) pages() int64 { return (f.payload() + PageSize - 1) / PageSize }

// sumsAt returns the offset of the page checksums in the section's file.
func (f *File) sumsAt() int64 { return PageSize + f.pages()*PageSize }

// pageSums holds the checksums of one section's payload, a CRC-32C for each page. They are read
// when the first page is checked, into memory outside the Go heap. A nil *pageSums stands for a
// section without page checksums, and finds no error.
type pageSums struct {
	dataset string
	spec    *File
	file    *os.File
	want    uint64 // XXH3 of the checksums and their padding, from the header

	loaded atomic.Pointer[loadedSums]
	mu     sync.Mutex // held while loading
	err    error      // set once the checksums turned out to be damaged; they stay unusable
}

// loadedSums is the checksums of one section in memory.
type loadedSums struct {
	memory []byte
	sums   []uint32        // of each page
	seen   []atomic.Uint32 // a bit for each page of the map, set once the page was checked
}

// sumRoutine is a way to compute the CRC-32C of a page: the first PageSize bytes of its argument,
// at any alignment.
type sumRoutine struct {
	name string
	sum  func(page []byte) uint32
}

// sumRoutines returns the routines that this processor supports, the fastest first. All agree with
// the last one, hash/crc32.
func sumRoutines() []sumRoutine {
	return append(nativeSumRoutines(), sumRoutine{"hash/crc32", portablePageSum})
}

// pageSum returns the CRC-32C of a page.
var pageSum = sumRoutines()[0].sum

// portablePageSum checksums the page in two halves. From 4032 bytes on, hash/crc32 works at three
// places at once, a third of the page apart, which defeats the processor's prefetching. Halves
// reach 15 GB/s from memory instead of 6.
func portablePageSum(page []byte) uint32 {
	return crc32.Update(crc32.Checksum(page[:PageSize/2], castagnoli), castagnoli, page[PageSize/2:PageSize])
}

// bytes returns the memory that the checksums take once they are loaded: 4 bytes and a bit for each
// page, a thousandth of the data.
func (p *pageSums) bytes() int64 {
	if p == nil {
		return 0
	}
	n := p.spec.pages()
	return roundUp(n*sumBytes, PageSize) + (n+31)/32*4
}

// load reads the checksums, unless that was done, and compares them with the header's hash. Safe
// for concurrent use.
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

// unread returns the error for checksums that could not be read.
func (p *pageSums) unread(err error) error {
	if info, serr := p.file.Stat(); serr == nil && info.Size() < p.spec.Bytes {
		return &SectionError{p.dataset, p.spec.Path, info.Size(), fmt.Errorf(
			"the file ends here, and had %d bytes: it was truncated while in use; restore it and run gnnstore verify", p.spec.Bytes)}
	}
	return fmt.Errorf("%s: page checksums of %s: %w", p.dataset, p.spec.Path, err)
}

// restore names the remedy for damaged bytes, in messages.
const restore = "the file is damaged; restore it from a copy, or ingest again"

// check compares whole pages, whose bytes are b, with their checksums. first is the payload's page
// that b begins with.
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

// close frees the memory.
func (p *pageSums) close() error {
	if p == nil {
		return nil
	}
	if l := p.loaded.Swap(nil); l != nil {
		return mapping.Free(l.memory)
	}
	return nil
}

// touch checks the mapped pages that bytes lo to hi-1 of the payload lie on, each before it is
// first lent. A page that the system drops and reads again from the disk is not checked again.
// touch panics with an error that [Guard] returns, so call it only where mapped memory may be read.
// A nil section, and one without checksums, is not checked.
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

// whole returns the payload after checking all of it. It panics as touch does.
func (s *section) whole() []byte {
	s.touch(0, s.spec.payload())
	return s.payload()
}

// sumWriter computes the page checksums of bytes written to it one after the other.
type sumWriter struct {
	sums []byte
	crc  uint32
	have int // bytes of the current page in crc
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

// padded returns the checksums, followed by zeros up to a whole page. Call it after whole pages
// were written.
func (w *sumWriter) padded() []byte {
	return append(w.sums, make([]byte, roundUp(int64(len(w.sums)), PageSize)-int64(len(w.sums)))...)
}
