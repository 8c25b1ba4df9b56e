package policy

import "math/bits"

// farthest reduces rows to the excess ones whose next use is the furthest in the future; on a tie,
// to the highest. The next use of a row is the first set of future that contains it, and future has
// the nearest set first; rows in no set are the furthest.
func farthest(rows Set, future []Rows, excess int) {
	stay := rows.Len() - excess // number of rows that have yet to be chosen to keep their slots
	room := make([]uint64, WordsRoom(spanWords))
	for _, f := range future {
		if stay == 0 {
			return
		}
		n := 0
		eachSpan(rows, func(lo int, left []uint64) {
			for i, w := range f.Words(room, lo, lo+len(left)) {
				n += bits.OnesCount64(w & left[i])
			}
		})
		give := n - stay
		eachSpan(rows, func(lo int, left []uint64) {
			words := f.Words(room, lo, lo+len(left))
			for i := len(left) - 1; i >= 0; i-- {
				at := left[i] & words[i]
				left[i] &^= at
				if give > 0 {
					left[i] |= highest(at, &give)
				}
			}
		})
		if stay -= n; stay < 0 {
			return
		}
	}
	for w := len(rows) - 1; w >= 0; w-- {
		rows[w] = highest(rows[w], &excess)
	}
}

// eachSpan calls do with each span of rows that is not empty, and the index lo of its first word,
// from the last span to the first.
func eachSpan(rows Set, do func(lo int, words []uint64)) {
	for lo := (len(rows) - 1) / spanWords * spanWords; lo >= 0; lo -= spanWords {
		if words := rows[lo:min(lo+spanWords, len(rows))]; !empty(words) {
			do(lo, words)
		}
	}
}
