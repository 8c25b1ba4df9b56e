// Package policy decides which rows stay in a cache. It is pure bookkeeping: a policy maps row ids to slots
// 0 … capacity-1 and never sees a feature byte; whoever holds the bytes keeps them in a slab of as many slots.
//
// [LRU] is the baseline and [None] keeps nothing. Both are told of every lookup (Get) and, after a miss, asked for a
// slot (Admit), which may throw another row out. Start reading at [LRU.Get].
//
// A policy allocates when it is made and never afterwards, so its memory is known beforehand: capacity times the
// policy's bytes per row. A policy is used by one goroutine at a time, and its answers depend on nothing but the
// calls made before.
package policy

// None keeps nothing: every lookup misses and no row is admitted.
type None struct{}

// Get misses.
func (None) Get(uint32) (slot int, ok bool) { return 0, false }

// Admit refuses.
func (None) Admit(uint32) (slot int, evicted, ok bool) { return 0, false, false }

// Len is 0.
func (None) Len() int { return 0 }

// Reset does nothing.
func (None) Reset() {}
