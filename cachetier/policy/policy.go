// Package policy decides which rows of a table lie in the slots of a cache, a window of steps at a
// time. It is pure bookkeeping and never sees a feature byte: whoever holds the bytes keeps them in
// as many slots.
//
// A [Cache] is told what the next window needs, a [Set], and what later ones will need as far as
// that is known, [Rows]. It chooses the rows that make room, by its [Kind], and hands out an
// [Index], which finds the slot of each row and knows which rows have yet to be brought. Sets are
// bitmaps over rows: a scan of one gives file order for nothing, intersections and counts go 64
// rows at a time, and no hash table, heap or array of four bytes per row of the table is needed.
//
// Memory: a Cache allocates when it is made, outside the Go heap, and gives that up in Close;
// [Bytes] says beforehand how much. So do [Pages], which have sets of many later windows in less
// memory than bitmaps, as [Packed] ones. An Index is lent: it stays as it is until the second
// change after it, so that one window may be used while the next is loaded.
//
// Concurrency: one goroutine at a time changes a Cache. An Index may be read by many at once, Use
// included.
//
// All answers depend on nothing but the calls made before. Start reading at [Cache.Window].
//
// # Why not
//
// Why not a heap on the next use of each row, as MIN is commonly built: it costs a cache miss or
// more for each row and step, and memory per row of the table. What is foreseen are groups of
// steps, or windows, and a row's next use is the first that has it: counting the bits of
// intersections finds the victims of a whole window at once, and of many windows only as many are
// looked at as it takes to fill the slots.
//
// Why not change the index in place: the window before still finds its rows by it while the next is
// planned, and a merge in order of rows costs a few nanoseconds a row.
package policy

import "fmt"

// Kind names how the rows that make room are chosen.
type Kind string

const (
	// Belady gives up the rows that are needed the furthest from now: first those of which no use
	// is foreseen, and of these the highest numbers, which ingest has made the coldest (Belady, A
	// study of replacement algorithms for a virtual-storage computer, 1966; MIN, with bypass where
	// a window has one step).
	Belady Kind = "belady"
	// LRU gives up the rows whose last window is the longest ago, and of these the highest numbers.
	LRU Kind = "lru"
	// Sieve gives up rows in the order in which they came, but each that was used since it was last
	// looked at is passed over once (Zhang et al., SIEVE is simpler than LRU, NSDI 2024, section
	// 3.1).
	Sieve Kind = "sieve"
	// Static gives up the highest numbers: what stays becomes the hottest rows, as ingest orders
	// them.
	Static Kind = "static"
	// None gives up everything: no row outlives its window.
	None Kind = "none"
)

// Kinds are all there are.
var Kinds = []Kind{Belady, LRU, Sieve, Static, None}

// Validate refuses a name that is no Kind.
func (k Kind) Validate() error {
	for _, known := range Kinds {
		if k == known {
			return nil
		}
	}
	return fmt.Errorf("unknown cache policy %q: use belady, lru, sieve, static or none", string(k))
}
