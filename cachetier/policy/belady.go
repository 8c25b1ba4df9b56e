package policy

import "math/bits"

// farthest leaves in rows the excess ones that are needed the furthest from now, of equal ones the
// highest. A row is needed when the first set of future, which has the nearest first, has it; those
// that none has are the furthest.
func farthest(rows Set, future []Rows, excess int) {
	stay := rows.Len() - excess // how many of rows still have to keep their slots
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

// eachSpan calls do with the spans of rows that are not empty, from the last to the first, and
// where they begin.
func eachSpan(rows Set, do func(lo int, words []uint64)) {
	for lo := (len(rows) - 1) / spanWords * spanWords; lo >= 0; lo -= spanWords {
		if words := rows[lo:min(lo+spanWords, len(rows))]; !empty(words) {
			do(lo, words)
		}
	}
}
