package policy

import "math/bits"

// farthest leaves in rows the excess ones that are needed the furthest from now, of equal ones the highest. A row is needed
// when the first set of future, which has the nearest first, has it; those that none has are the furthest.
func farthest(rows Set, future []Set, excess int) {
	counts := make([]int, len(future)+1)
	for w, left := range rows {
		for i := 0; i < len(future) && left != 0; i++ {
			counts[i] += bits.OnesCount64(left & future[i][w])
			left &^= future[i][w]
		}
		counts[len(future)] += bits.OnesCount64(left)
	}
	last := len(future) // the nearest use at which rows are given up
	for ; excess > counts[last]; last-- {
		excess -= counts[last]
	}
	for w := len(rows) - 1; w >= 0; w-- {
		left := rows[w]
		for i := 0; i < last && left != 0; i++ {
			left &^= future[i][w]
		}
		at := left
		if last < len(future) {
			at &= future[last][w]
		}
		rows[w] = left&^at | highest(at, &excess)
	}
}
