package policy

import (
	"encoding/binary"
	"math/bits"
	"sync"

	"github.com/gnnstore/gnnstore/kernels"
)

// Rows is a read-only set of rows: a Set, or a Packed.
type Rows interface {
	// Words lends the words [lo, hi) of the set as a bitmap. They may lie in dst, which has
	// WordsRoom(hi-lo) words. They are valid until dst is used again, and no longer than the set
	// is.
	Words(dst []uint64, lo, hi int) []uint64
}

// Words lends s[lo:hi] itself and does not use dst.
func (s Set) Words(_ []uint64, lo, hi int) []uint64 { return s[lo:hi] }

// spanWords is the number of words that are packed and searched together: 4096 rows.
const spanWords = 64

// slackWords bounds the words that whole blocks have beyond a range, at both of its ends.
const slackWords = 2 * blockWords

// WordsRoom returns the length of dst for a range of so many words: Words writes whole blocks.
func WordsRoom(words int) int { return words + slackWords }

const (
	blockWords = 4              // of a block: 256 rows, whose numbers differ only in the lowest byte
	blockBytes = 8 * blockWords // of the bitmap of a block
	blocks     = spanWords / blockWords
	mostPacked = blocks * (1 + blockBytes) // bytes of a span at most
	pageBytes  = 64 << 10
)

// Packed is a Set in less memory, for the sets of later windows: an eighth of a bitmap if it has
// one row in a hundred. Spans of 4096 rows lie one after the other. Each begins with the numbers of
// rows in its 16 blocks, a byte each. The blocks follow: each is the lowest bytes of its rows, or,
// from 32 rows on, a bitmap.
//
// A Packed is valid until Pages.Return or Pages.Close. Any number of goroutines may read it.
type Packed struct {
	pages *Pages
	have  []uint32 // pages
	at    []uint32 // by span: its offset in the pages of have, one after the other; or emptySpan
}

const emptySpan = 1<<32 - 1

// Pages is memory for Packed sets. Any number of goroutines may use it.
type Pages struct {
	memory *kernels.HostBuf
	spans  int // in a set
	all    int

	mu     sync.Mutex
	free   []uint32
	tables [][]uint32 // for Packed.at: the tables not in use
}

// PackedBytes returns the memory of Pages for this number of sets, each of at most count rows, of a
// table of rows rows.
func PackedBytes(rows, count, sets int) int64 {
	return int64(sets) * (int64(packedPages(rows, count))*pageBytes + 4*int64(spansOf(rows)))
}

// packedPages returns the most pages that a set takes.
func packedPages(rows, count int) int {
	most := min(spansOf(rows)*mostPacked, spansOf(rows)*blocks+count)
	return (most+mostPacked)/(pageBytes-mostPacked) + 1
}

func spansOf(rows int) int { return (SetWords(rows) + spanWords - 1) / spanWords }

// NewPages allocates memory for this number of sets, each of at most count rows, of a table of rows
// rows. The error is a *kernels.MemoryError.
func NewPages(rows, count, sets int) (*Pages, error) {
	m, err := kernels.NewHostBuf(int(PackedBytes(rows, count, sets)))
	if err != nil {
		return nil, err
	}
	p := &Pages{memory: m, spans: spansOf(rows), all: sets * packedPages(rows, count)}
	for i := range p.all {
		p.free = append(p.free, uint32(p.all-1-i))
	}
	for tables := m.Uint32s()[p.all*(pageBytes/4):]; len(p.tables) < sets; tables = tables[p.spans:] {
		p.tables = append(p.tables, tables[:p.spans:p.spans])
	}
	return p, nil
}

// Close frees the memory. A second Close does nothing.
func (p *Pages) Close() { p.memory.Close() }

// All returns the number of pages, and Free the number that is not in use.
func (p *Pages) All() int { return p.all }

// Free: see All.
func (p *Pages) Free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.free)
}

// take removes the last element of a list and returns it.
func take[T any](p *Pages, list *[]T) (x T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(*list) - 1
	if n < 0 {
		return x, false
	}
	x, *list = (*list)[n], (*list)[:n]
	return x, true
}

// page returns the memory of page i.
func (p *Pages) page(i uint32) []byte { return p.memory.Bytes()[int(i)*pageBytes:][:pageBytes] }

// Pack packs s into at most this number of pages. ok is false if s does not fit into them, if too
// few pages are free, or if all sets are in use.
func (p *Pages) Pack(s Set, pages int) (_ *Packed, ok bool) {
	table, ok := take(p, &p.tables)
	if !ok {
		return nil, false
	}
	x := &Packed{pages: p, at: table}
	var page []byte
	used := pageBytes
	for i := range x.at {
		words := s[i*spanWords : min((i+1)*spanWords, len(s))]
		x.at[i] = emptySpan
		if empty(words) {
			continue
		}
		if used+mostPacked > pageBytes {
			next, ok := uint32(0), len(x.have) < pages
			if ok {
				next, ok = take(p, &p.free)
			}
			if !ok {
				p.Return(x)
				return nil, false
			}
			x.have = append(x.have, next)
			page, used = p.page(next), 0
		}
		x.at[i] = uint32((len(x.have)-1)*pageBytes + used)
		used += pack(page[used:], words)
	}
	return x, true
}

// Return frees the memory of x, which is not used any more.
func (p *Pages) Return(x *Packed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, x.have...)
	p.tables = append(p.tables, x.at)
	x.have, x.at = nil, nil
}

// Pages returns the number of pages that the set takes.
func (x *Packed) Pages() int { return len(x.have) }

func empty(words []uint64) bool {
	all := uint64(0)
	for _, w := range words {
		all |= w
	}
	return all == 0
}

// pack writes a span to dst, and returns the number of bytes written.
func pack(dst []byte, words []uint64) int {
	clear(dst[:blocks])
	used := blocks
	for i := 0; i < len(words); i += blockWords {
		block, count := words[i:i+blockWords], 0
		for _, w := range block {
			count += bits.OnesCount64(w)
		}
		if dst[i/blockWords] = byte(min(count, blockBytes)); count >= blockBytes {
			for _, w := range block {
				binary.LittleEndian.PutUint64(dst[used:], w)
				used += 8
			}
			continue
		}
		for j, w := range block {
			for ; w != 0; w &= w - 1 {
				dst[used] = byte(j<<6 + bits.TrailingZeros64(w))
				used++
			}
		}
	}
	return used
}

// Words: see Rows.
func (x *Packed) Words(dst []uint64, lo, hi int) []uint64 {
	first := lo / blockWords * blockWords
	for at := first; at < hi; {
		end := min((at/spanWords+1)*spanWords, (hi+blockWords-1)/blockWords*blockWords)
		words := dst[at-first : end-first]
		clear(words)
		if from := x.at[at/spanWords]; from != emptySpan {
			unpack(words, x.pages.page(x.have[from/pageBytes])[from%pageBytes:], at%spanWords/blockWords)
		}
		at = end
	}
	return dst[lo-first : hi-first]
}

// unpack fills words, which are zero, from the span in src, from this block on.
func unpack(words []uint64, src []byte, block int) {
	used := blocks
	for _, count := range src[:block] {
		used += int(count)
	}
	for at := 0; at < len(words); at += blockWords {
		count := int(src[block])
		block++
		to, from := words[at:at+blockWords], src[used:used+count]
		used += count
		if count == blockBytes {
			for i := range to {
				to[i] = binary.LittleEndian.Uint64(from[8*i:])
			}
			continue
		}
		for _, b := range from {
			to[b>>6] |= 1 << (b & 63)
		}
	}
}
