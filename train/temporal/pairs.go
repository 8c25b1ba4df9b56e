package temporal

import (
	"math/bits"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
)

// pairs keeps a number for each pair of nodes, in an open table of 16 bytes a slot outside the Go
// heap. At most three in four slots are in use. The table doubles as it fills, and then needs the
// old table beside the new one. Both together stay below its limit.
type pairs struct {
	limit int64
	buf   *kernels.HostBuf
	slots []uint64 // two a slot: the pair, and its number; 0: the slot is free
	used  int
}

const (
	pairBytes  = 16
	firstPairs = 256 // slots: one page
)

// pairOf is one word for the two nodes.
func pairOf(src, dst uint32) uint64 { return uint64(src)<<32 | uint64(dst) }

// get is the number of a pair, 0 of one that has none.
func (p *pairs) get(pair uint64) uint32 {
	if len(p.slots) == 0 {
		return 0
	}
	return uint32(p.slots[p.find(pair)+1])
}

// set gives a pair a number other than 0. It is false where there is no room for the pair.
func (p *pairs) set(pair uint64, number uint32) (ok bool, err error) {
	if 4*p.used >= 3*(len(p.slots)/2) {
		if ok, err := p.grow(); !ok || err != nil {
			return false, err
		}
	}
	at := p.find(pair)
	if p.slots[at+1] == 0 {
		p.slots[at] = pair
		p.used++
	}
	p.slots[at+1] = uint64(number)
	return true, nil
}

// find is where the slot of a pair begins, or the free one where it would be.
func (p *pairs) find(pair uint64) int {
	mask := len(p.slots) - 1
	high, _ := bits.Mul64(sample.Fold(0, pair), uint64(len(p.slots)/2))
	at := 2 * int(high)
	for p.slots[at+1] != 0 && p.slots[at] != pair {
		at = (at + 2) & mask
	}
	return at
}

func (p *pairs) grow() (ok bool, err error) {
	slots := max(firstPairs, len(p.slots)) // twice the slots so far, which have two words each
	if pairBytes*int64(slots+len(p.slots)/2) > p.limit {
		return false, nil
	}
	buf, err := kernels.NewHostBuf(pairBytes * slots)
	if err != nil {
		return false, err
	}
	old := *p
	p.buf, p.slots = buf, buf.Uint64s()
	for i := 0; i < len(old.slots); i += 2 {
		if old.slots[i+1] != 0 {
			copy(p.slots[p.find(old.slots[i]):], old.slots[i:i+2])
		}
	}
	old.close()
	return true, nil
}

// close gives up the memory, and with it all pairs.
func (p *pairs) close() {
	if p.buf != nil {
		p.buf.Close()
	}
	p.buf, p.slots, p.used = nil, nil, 0
}
