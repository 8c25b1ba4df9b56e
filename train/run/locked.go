package run

import (
	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
)

// LockedMemory is the memory of the host that was page-locked for the device, and how rows get from
// there to it. Its JSON keys are stable.
type LockedMemory struct {
	Rows  kernels.Locked `json:"rows"`  // that the host tier keeps for steps
	Slots kernels.Locked `json:"slots"` // that copies to and from the device go through
	// Gather has the rates that were measured, if the device could read rows itself: it can where
	// the host keeps all that are not on the device, and none changes.
	Gather *kernels.GatherRates `json:"gather,omitempty"`
}

// LockMemory page-locks the rows that stacks keep on the host, if the backend can, and has the
// device read them itself where that is faster. What is refused stays as it is. A workload calls it
// in Place, once its tables are open for good.
func (d *Driver) LockMemory(stacks []*cachetier.Stack) {
	by := kernels.LockerOf(d.Backend)
	if by == nil {
		return
	}
	d.locked = &LockedMemory{}
	static := false
	for _, s := range stacks {
		l := s.Lock(by)
		d.locked.Rows = d.locked.Rows.Add(l)
		static = static || l.Bytes > 0 && s.StaticAlone()
	}
	reader := kernels.HostGathererOf(d.Backend)
	if reader == nil || !static {
		return
	}
	rates := reader.GatherRates()
	d.locked.Gather = &rates
	for _, s := range stacks {
		if rates.Reads {
			s.ReadBy(reader)
		}
	}
}

// lockedSoFar returns what is locked now, or nil if the backend locks nothing. Nobody writes to it
// again.
func (d *Driver) lockedSoFar() *LockedMemory {
	if d.locked == nil {
		return nil
	}
	now := *d.locked
	if d.Backend != nil {
		now.Slots = kernels.LockerOf(d.Backend).LockedSlots()
	}
	return &now
}

// noteLocked tells the user, once, if less memory is locked than should be.
func (d *Driver) noteLocked() {
	now := d.lockedSoFar()
	if now == nil {
		return
	}
	if all := now.Rows.Add(now.Slots); all.Bytes < all.Of {
		d.Note("locked memory: %s of the %s that the device reads on the host; the rest takes longer to copy (%s)",
			kernels.FormatBytes(all.Bytes), kernels.FormatBytes(all.Of), all.Why)
	}
}
