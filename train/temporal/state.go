package temporal

import (
	"encoding/binary"
	"math"

	"github.com/gnnstore/gnnstore/train/model"
)

// Record is the layout of a node's state in a row of a table: columns of float32, little-endian. D
// is the columns of a memory, V the columns of an event's features, S the number of mails of a
// node.
//
//	TGN, JODIE   mail 2D+V (its first D are the memory) | time 2
//	APAN         memory D | S mails of 2D+V each | times of the mails 2S | time 2 | slot of the next mail 1
//
// The mail that a node's own event leaves begins with the node's memory after that event, so a node
// with one mail needs no other copy of it. Two columns hold the bits of a time, a float64, and one
// the bits of a slot, a uint32: tables copy rows and never compute with them. (A backend that holds
// F32 in another type, as kernels.Reference does, may change the last bits of a time.) Times are
// scaled as in a [Batch].
//
// All zeros is the state of a node that had no event yet.
type Record struct {
	memory, mail int // columns: D, and 2D+V
	mails        int // S; 0: no state
	ring         bool
}

// RecordOf is the record of a network. One without state has no columns.
func RecordOf(c model.TemporalConfig, s model.TemporalShape) Record {
	if c.Stateless {
		return Record{}
	}
	_, several := c.Kind.KeepsMails()
	return Record{memory: c.Hidden, mail: c.Mail(s), mails: c.Mails, ring: several}
}

// Cols is the columns of a record.
func (r Record) Cols() int { return r.numbers() + r.bits() }

// Bytes is the size of a record.
func (r Record) Bytes() int { return 4 * r.Cols() }

// numbers is the columns that a network computes with. The bits are behind them.
func (r Record) numbers() int {
	if r.ring {
		return r.memory + r.mails*r.mail
	}
	return r.mail
}

// bits is the columns of times and slots.
func (r Record) bits() int {
	switch {
	case r.ring:
		return 2*r.mails + 3
	case r.mails > 0:
		return 2
	}
	return 0
}

// Times returns the place of the bytes of times and slots in a record: see Input.Times.
func (r Record) Times() (from, to int) { return 4 * r.numbers(), r.Bytes() }

// Memory is the memory in a record, D float32.
func (r Record) Memory(record []byte) []byte { return record[:4*r.memory] }

// Mail is the mail in a slot of a record: 2D+V float32. TGN and JODIE have slot 0 alone.
func (r Record) Mail(record []byte, slot int) []byte {
	at := 4 * r.mailColumn(slot)
	return record[at:][:4*r.mail]
}

func (r Record) mailColumn(slot int) int {
	if r.ring {
		return r.memory + slot*r.mail
	}
	return 0
}

// Time returns the time of the node's last event.
func (r Record) Time(record []byte) float64 { return timeAt(record, r.numbers()+r.timeBits()) }

// SetTime sets it.
func (r Record) SetTime(record []byte, t float64) { setTime(record, r.numbers()+r.timeBits(), t) }

// MailTime returns the time of the mail in a slot.
func (r Record) MailTime(record []byte, slot int) float64 {
	return timeAt(record, r.numbers()+r.mailTimeBits(slot))
}

// SetMailTime sets it. For TGN and JODIE it is the time of the node's last event.
func (r Record) SetMailTime(record []byte, slot int, t float64) {
	setTime(record, r.numbers()+r.mailTimeBits(slot), t)
}

// timeBits and mailTimeBits are columns among the bits.
func (r Record) timeBits() int {
	if r.ring {
		return 2 * r.mails
	}
	return 0
}

func (r Record) mailTimeBits(slot int) int {
	if r.ring {
		return 2 * slot
	}
	return 0
}

// Slot returns the slot of the next mail, which replaces the oldest one.
func (r Record) Slot(record []byte) int {
	if !r.ring {
		return 0
	}
	return int(binary.LittleEndian.Uint32(record[r.Bytes()-4:]))
}

// SetSlot sets it. TGN and JODIE have one slot, and nothing to set.
func (r Record) SetSlot(record []byte, slot int) {
	if r.ring {
		binary.LittleEndian.PutUint32(record[r.Bytes()-4:], uint32(slot))
	}
}

// A change is a batch's update of a record. For TGN and JODIE it is the new record. For APAN it
// leaves alone whatever the batch does not change, since the record may be newer than the state
// that the batch has seen (MSPipe, arXiv 2402.15113, section 3.2):
//
//	memory D | mail 2D+V | time 2 | time of the mail 2 | which of both there are 1
const (
	hasMemory = 1 << iota
	hasMail
)

// ChangeBytes is the size of a change.
func (r Record) ChangeBytes() int {
	if r.ring {
		return 4 * (r.memory + r.mail + 5)
	}
	return r.Bytes()
}

// Whole reports whether a change is the whole new record, so that Apply copies it.
func (r Record) Whole() bool { return !r.ring }

// changedMail returns the column of a change where its mail begins.
func (r Record) changedMail() int {
	if r.ring {
		return r.memory
	}
	return 0
}

// changedNumbers returns the number of columns of a change that are numbers. Bits follow them.
func (r Record) changedNumbers() int { return r.changedMail() + r.mail }

// setMemory notes that a change has a memory, of a time.
func (r Record) setMemory(change []byte, t float64) {
	if r.ring {
		setTime(change, r.memory+r.mail, t)
		change[len(change)-4] |= hasMemory
	}
}

// setMail notes that a change has mail, of a time.
func (r Record) setMail(change []byte, t float64) {
	if !r.ring {
		r.SetTime(change, t)
		return
	}
	setTime(change, r.memory+r.mail+2, t)
	change[len(change)-4] |= hasMail
}

// ChangedMemory returns the memory in a change; ok is false if it has none.
func (r Record) ChangedMemory(change []byte) (memory []byte, ok bool) {
	if r.ring && change[len(change)-4]&hasMemory == 0 {
		return nil, false
	}
	return change[:4*r.memory], true
}

// Apply makes the newest record of a node what a change says: new mail takes the place of the
// oldest one.
func (r Record) Apply(record, change []byte) {
	if !r.ring {
		copy(record, change)
		return
	}
	has := change[len(change)-4]
	if has&hasMemory != 0 {
		copy(r.Memory(record), change)
		r.SetTime(record, timeAt(change, r.memory+r.mail))
	}
	if has&hasMail != 0 {
		slot := r.Slot(record)
		copy(r.Mail(record, slot), change[4*r.memory:])
		r.SetMailTime(record, slot, timeAt(change, r.memory+r.mail+2))
		r.SetSlot(record, (slot+1)%r.mails)
	}
}

func timeAt(columns []byte, at int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(columns[4*at:]))
}

func setTime(columns []byte, at int, t float64) {
	binary.LittleEndian.PutUint64(columns[4*at:], math.Float64bits(t))
}
