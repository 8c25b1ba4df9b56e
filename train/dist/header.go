package dist

import (
	"encoding/binary"
	"fmt"
)

// header goes from each worker to each before an exchange. In bytes, little-endian:
//
//	00-03 magic   04    kind    05    status   06    large    07    zero
//	08-15 seq     16-19 epoch   20-23 step     24-27 zero   28-31 rounds
//	32-39 numbers 40-55 zero    56-63 bytes
type header struct {
	kind   kind
	status status
	seq    uint64 // exchanges of the lane so far
	at     At
	rounds uint32 // that the largest message of the sender takes
	large  bool   // the largest message of the sender has more than mostAtOnce bytes
	// count of numbers to add up; the same on all workers
	numbers uint64
	bytes   uint64 // of the sender's message to the receiver
}

// At is where a run is.
type At struct{ Epoch, Step int }

// kind is the purpose of an exchange. Workers in one exchange must have the same kind.
type kind uint8

const (
	greeting kind = iota + 1
	results       // Group.Gather
	sums          // Group.Sum
	messages      // Channel.Exchange
	farewell
)

func (k kind) String() string {
	switch k {
	case greeting:
		return "the start"
	case sums:
		return "the sum of gradients"
	case messages:
		return "an exchange of parts"
	case farewell:
		return "the end"
	}
	return "an exchange of results"
}

type status uint8

const (
	well    status = iota
	stopped        // the sender was asked to stop
	failed         // its error follows
	gone           // the sender leaves, and has no error of its own to tell
)

const (
	headerBytes = 64
	magic       = 0x44534e47 // "GNSD"
)

func (h header) put(b []byte) {
	clear(b)
	le := binary.LittleEndian
	le.PutUint32(b, magic)
	b[4], b[5] = byte(h.kind), byte(h.status)
	if h.large {
		b[6] = 1
	}
	le.PutUint64(b[8:], h.seq)
	le.PutUint32(b[16:], uint32(h.at.Epoch))
	le.PutUint32(b[20:], uint32(h.at.Step))
	le.PutUint32(b[28:], h.rounds)
	le.PutUint64(b[32:], h.numbers)
	le.PutUint64(b[56:], h.bytes)
}

func (h *header) get(b []byte) error {
	le := binary.LittleEndian
	if m := le.Uint32(b); m != magic {
		return fmt.Errorf("its message begins with %#x and not %#x: it is of another version", m, uint32(magic))
	}
	h.kind, h.status, h.large = kind(b[4]), status(b[5]), b[6] != 0
	h.seq = le.Uint64(b[8:])
	h.at = At{int(le.Uint32(b[16:])), int(le.Uint32(b[20:]))}
	h.rounds, h.numbers, h.bytes = le.Uint32(b[28:]), le.Uint64(b[32:]), le.Uint64(b[56:])
	return nil
}

func (h header) String() string {
	s := fmt.Sprintf("%v, step %d of epoch %d, exchange %d", h.kind, h.at.Step, h.at.Epoch, h.seq)
	if h.kind == sums {
		s += fmt.Sprintf(", with %d numbers", h.numbers)
	}
	return s
}

// same reports whether both are of one exchange.
func (h header) same(of header) bool {
	return h.seq == of.seq && h.kind == of.kind && h.at == of.at && h.numbers == of.numbers
}
