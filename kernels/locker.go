package kernels

import (
	"cmp"
	"fmt"
	"sync"
)

// Locker is a [Backend] that page-locks memory of the host, so that its device copies and reads it
// without the processor. It is safe for concurrent use.
type Locker interface {
	// LockMemory page-locks b until unlock is called. b begins at a page and nobody else locks a
	// page of it. unlock waits for the device to have read b. After an error of unlock the device
	// may still read it. A system that allows too little locked memory is an error.
	LockMemory(b []byte) (unlock func() error, err error)
	// LockedSlots returns how much of the memory that copies go through is page-locked.
	LockedSlots() Locked
}

// HostGatherer is a [Locker] whose device reads rows of locked memory itself, over the bus.
type HostGatherer interface {
	Locker
	// GatherHost fills dst, of any type, with rows of table: row ids[i] of table becomes row i, bit
	// for bit. table is memory that LockMemory has locked, or a part of it. It stays as it is until
	// the operations that use dst have run. ids is the caller's once the call returns. It may be
	// called wherever an upload may. ok is false if the device cannot read these rows: nothing was
	// done then, and the caller uploads them.
	GatherHost(dst Tensor, table []byte, ids []uint32) (ok bool)
	// GatherRates returns what was measured when the backend was opened.
	GatherRates() GatherRates
}

// GatherRates compares the two ways by which rows of the host get to a device. Both bring the same
// bits. Its JSON keys are stable.
type GatherRates struct {
	// Staged is the bytes of rows in a second that the host gathered and the device copied, one
	// after the other; Read, those that the device read itself. 0: the device cannot.
	Staged float64 `json:"staged_bytes_per_second"`
	Read   float64 `json:"read_bytes_per_second"`
	// Reads is set if the device is to read rows itself.
	Reads bool   `json:"device_reads"`
	Why   string `json:"why"`
}

// Locked describes memory of the host that is meant to be page-locked. Its JSON keys are stable.
type Locked struct {
	Bytes int64  `json:"bytes"`         // that are locked
	Of    int64  `json:"of_bytes"`      // that were to be
	Why   string `json:"why,omitempty"` // not the rest
}

// Add returns the sum of both, with the first reason.
func (l Locked) Add(m Locked) Locked {
	return Locked{l.Bytes + m.Bytes, l.Of + m.Of, cmp.Or(l.Why, m.Why)}
}

// LockerOf returns the Locker in a backend, or nil if it locks no memory.
func LockerOf(be Backend) Locker {
	l, _ := under(be).(Locker)
	return l
}

// HostGathererOf returns the HostGatherer in a backend, or nil.
func HostGathererOf(be Backend) HostGatherer {
	g, _ := under(be).(HostGatherer)
	return g
}

// Lock has by page-lock the memory until Close. Before that, nobody else gets it, even if unlocking
// fails. It is an error for less than a page, which shares its page with other memory. A second
// Lock panics.
func (h *HostBuf) Lock(by Locker) (err error) {
	if h.unlock != nil {
		panic("kernels: HostBuf: a second Lock")
	}
	if len(h.bytes) < pageSize {
		return fmt.Errorf("kernels: %d bytes are less than a page, and cannot be page-locked alone", len(h.bytes))
	}
	h.unlock, err = by.LockMemory(h.all())
	return err
}

// IsLocked reports whether the memory is page-locked.
func (h *HostBuf) IsLocked() bool { return h.unlock != nil }

// all returns the memory with what was allocated beyond it.
func (h *HostBuf) all() []byte {
	if h.whole != nil {
		return h.whole
	}
	return h.bytes
}

// release unlocks the memory. ok is false if that failed: the memory must not be used again.
func (h *HostBuf) release() (ok bool) {
	if h.unlock == nil {
		return true
	}
	err := h.unlock()
	h.unlock = nil
	if err != nil {
		stuck.Lock()
		defer stuck.Unlock()
		stuck.all = append(stuck.all, h.all())
	}
	return err == nil
}

// stuck is memory that a device may still read: it stays allocated, and counted.
var stuck struct {
	sync.Mutex
	all [][]byte
}

// LockAll has by page-lock buffers, as far as it can. It leaves out nil, and buffers below a page.
func LockAll(by Locker, buffers ...*HostBuf) (l Locked) {
	for _, h := range buffers {
		if h == nil || len(h.bytes) < pageSize {
			continue
		}
		n := int64(len(h.bytes))
		l.Of += n
		if err := h.Lock(by); err != nil {
			l.Why = cmp.Or(l.Why, err.Error())
			continue
		}
		l.Bytes += n
	}
	return l
}
