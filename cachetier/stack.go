// Package cachetier answers one question: given node ids, put their feature rows in this buffer, touching the disk as
// little as possible.
//
// A [Stack] has three tiers. The device region holds the first rows of the table, which ingest has made the hottest, so
// that "is row v there" is v < H. The host cache holds rows read before, under a [Policy]. What neither has is read from
// disk by package disk, in file order. [Options] gives each tier its budget; [Stats] says what each did.
//
// Memory: a Stack allocates its tiers in Open, outside the Go heap (kernels.HostBuf), and gives them up in Close, which
// nothing else does. Gather also keeps scratch lists, some 40 bytes per id of the largest call: they grow with the batch
// and not with the table. Rows are copied into the caller's buffer; nothing is lent.
//
// Start reading at [Stack.Gather].
//
// # Why not
//
// Why not a lock per shard of the cache: the decisions then depend on timing, and with them the counters and the disk
// traffic. One Gather decides at a time, at some 50 ns a row, and what takes long, copying and reading, is done by many
// goroutines.
package cachetier

import (
	"fmt"
	"math"
	"sync"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/kernels"
)

// keeper decides which rows the host cache keeps: a policy.LRU or policy.None, later one that knows the future. Slots
// number the rows of the slab.
type keeper interface {
	// Get finds the slot of id, and takes note of the use.
	Get(id uint32) (slot int, ok bool)
	// Admit gives id, which Get has just missed, a slot, which may be that of another row; or it refuses.
	Admit(id uint32) (slot int, evicted, ok bool)
	Len() int
	Reset()
}

// Stack is the tiers over one table. Its methods are safe for concurrent use; one Gather runs at a time, and others
// wait for it.
type Stack struct {
	table    Table
	rowBytes int
	reader   *rowReader

	hot int // rows [0, hot) are in the device region

	mu struct { // held by a Gather from its first decision to its last copy
		sync.Mutex
		closed bool
		device *kernels.HostBuf // the first hot rows; nil once closed
		slab   *kernels.HostBuf // the rows that keeper gave slots; nil once closed
		keeper keeper
		fresh  []bool // of a slot: given away in this Gather, its bytes are still to come; all false between Gathers
		plan   plan
	}

	stats struct {
		sync.Mutex
		Stats
	}
}

// Open makes the tiers over t and loads the device region. The table stays the caller's and must stay open until Close
// has returned.
func Open(t Table, o Options) (*Stack, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("cachetier: %w", err)
	}
	if int64(t.Rows()) > math.MaxUint32 {
		return nil, fmt.Errorf("cachetier: a table of %d rows: ids are 32 bits", t.Rows())
	}
	reader, err := openRows(t, disk.Options{Kind: o.Engine, Depth: o.Readers})
	if err != nil {
		return nil, fmt.Errorf("cachetier: %w", err)
	}
	s := &Stack{table: t, rowBytes: t.RowBytes(), reader: reader}
	s.hot = o.hotRows(t.Rows(), s.rowBytes)
	hostRows := o.hostRows(t.Rows(), s.hot, s.rowBytes)
	if s.mu.device, err = kernels.NewHostBuf(s.hot * s.rowBytes); err != nil {
		return nil, fmt.Errorf("cachetier: the device region of %d rows: %w", s.hot, err)
	}
	if s.mu.slab, err = kernels.NewHostBuf(hostRows * s.rowBytes); err != nil {
		s.mu.device.Close()
		return nil, fmt.Errorf("cachetier: the host cache of %d rows: %w", hostRows, err)
	}
	s.mu.fresh = make([]bool, hostRows)
	if s.mu.keeper = keeper(policy.None{}); hostRows > 0 {
		s.mu.keeper = policy.NewLRU(hostRows)
	}
	warmup, err := s.loadDevice()
	if err != nil {
		s.mu.device.Close()
		s.mu.slab.Close()
		return nil, fmt.Errorf("cachetier: load the first %d rows: %w", s.hot, err)
	}
	s.stats.Stats = newStats(t.Rows(), s.rowBytes, s.hot, hostRows, warmup)
	return s, nil
}

// loadDevice fills the device region, a portion at a time.
func (s *Stack) loadDevice() (disk.Traffic, error) {
	const portion = 1 << 14 // requests: 128 KiB of them
	wants := make([]request, 0, min(portion, s.hot))
	var total disk.Traffic
	device := s.mu.device.Lend()
	defer s.mu.device.Return()
	for lo := 0; lo < s.hot; lo += portion {
		wants = wants[:0]
		for i := range min(portion, s.hot-lo) {
			wants = append(wants, want(uint32(lo+i), uint32(i)))
		}
		t, err := s.reader.read(device[lo*s.rowBytes:], wants)
		if err != nil {
			return total, err
		}
		total.Add(t)
	}
	return total, nil
}

// Engine is the way the disk is read, and in a sentence why.
func (s *Stack) Engine() (kind disk.Kind, why string) { return s.reader.Kind(), s.reader.Why() }

// Close waits for a running Gather and gives up the memory of the tiers. The table stays open. Stats stays valid, Gather
// panics from here on, and a second Close does nothing.
func (s *Stack) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil
	}
	s.mu.closed = true
	s.reader.Close()
	s.mu.device.Close()
	s.mu.slab.Close()
	s.mu.device, s.mu.slab, s.mu.fresh, s.mu.keeper, s.mu.plan = nil, nil, nil, nil, plan{}
	return nil
}
