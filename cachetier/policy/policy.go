// Package policy decides which rows of a table lie in the slots of a cache, one window of steps at
// a time. It is pure bookkeeping and never sees a feature byte: the caller holds the bytes, in a
// slot array of the same length.
//
// A [Cache] is told which rows the next window needs, a [Set], and, where known, which rows later
// windows will need, [Rows]. It evicts rows to make room, by its [Kind], and returns an [Index],
// which finds the slot of each row and knows which rows still have to be loaded. Sets are bitmaps
// over rows: scanning one gives file order for free, intersections and counts take 64 rows at a
// time, and no hash table, heap or array of four bytes per row of the table is needed.
//
// Memory: [New] allocates all memory of a Cache, outside the Go heap, and Close frees it;
// [Config.Bytes] returns the size beforehand. The same holds for [Pages], which store the sets of
// many later windows as [Packed] sets, in less memory than bitmaps. An Index is lent: it stays
// unchanged until the second change after it, so that one window may be used while the next is
// loaded.
//
// Concurrency: one goroutine at a time changes a Cache. Any number may read an Index, Use included.
//
// All results depend only on the calls made before. Start reading at [Cache.Window].
//
// # Why not
//
// Why not a heap on the next use of each row, as MIN is commonly built: it costs a cache miss or
// more for each row and step, and memory per row of the table. The future is known in groups of
// steps, or windows, and a row's next use is the first group that contains it. So counting the bits
// of intersections finds the victims of a whole window at once, and the search stops at the window
// whose rows fill the slots.
//
// Why not change the index in place: the previous window still finds its rows in it while the next
// is planned, and a merge in order of rows costs a few nanoseconds a row.
package policy

import "fmt"

// Kind names the rule that chooses the rows to evict.
type Kind string

const (
	// Belady evicts the rows whose next use is the furthest in the future: first the rows with no
	// known use. On a tie it evicts the highest numbers, which ingest has made the coldest (Belady,
	// A study of replacement algorithms for a virtual-storage computer, 1966; MIN, with bypass in
	// windows of one step).
	Belady Kind = "belady"
	// LRU evicts the rows whose last window is the longest ago; on a tie, the highest numbers.
	LRU Kind = "lru"
	// Sieve evicts rows in the order in which they came, but passes once over each row that was
	// used since the hand last reached it (Zhang et al., SIEVE is simpler than LRU, NSDI 2024,
	// section 3.1).
	Sieve Kind = "sieve"
	// Static evicts the highest numbers: in time the hottest rows, as ingest orders them, stay.
	Static Kind = "static"
	// None evicts everything: no row outlives its window.
	None Kind = "none"
)

// Kinds lists every Kind.
var Kinds = []Kind{Belady, LRU, Sieve, Static, None}

// Validate returns an error if k is not one of Kinds.
func (k Kind) Validate() error {
	for _, known := range Kinds {
		if k == known {
			return nil
		}
	}
	return fmt.Errorf("unknown cache policy %q: use belady, lru, sieve, static or none", string(k))
}
