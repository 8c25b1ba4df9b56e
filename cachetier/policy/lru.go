package policy

import "math/bits"

// leastRecent reduces rows, which have slots and are not needed, to the excess ones that were used
// the longest ago; on a tie, to the highest. In a step excess may exceed their number: then it adds
// the highest of the rows that the step needs.
func (x *Index) leastRecent(rows Set, clock uint32, d demand) {
	excess := d.excess
	if n := rows.Len(); excess >= n { // excess > n only in a step
		excess -= n
		for w := len(rows) - 1; w >= 0 && excess > 0; w-- {
			rows[w] |= highest(d.need[w], &excess)
		}
		return
	}
	oldest := uint32(0)
	x.ages(rows, clock, func(age uint32) { oldest = max(oldest, age) })
	// A radix search finds the age limit up to which rows stay, a byte at a time, highest first.
	var limit, stay uint32 // rows of age limit: the lowest stay ones keep their slots
	for shift := (bits.Len32(oldest|1) - 1) &^ 7; shift >= 0; shift -= 8 {
		var counts [256]int
		x.ages(rows, clock, func(age uint32) {
			if uint64(age)>>(shift+8) == uint64(limit)>>(shift+8) {
				counts[age>>shift&0xff]++
			}
		})
		digit := 255
		for ; counts[digit] < excess; digit-- {
			excess -= counts[digit]
		}
		limit |= uint32(digit) << shift
		stay = uint32(counts[digit] - excess)
	}
	rank := 0
	for w, had := range x.rows {
		for m := rows[w]; m != 0; m &= m - 1 {
			bit := m & -m
			switch age := clock - x.seen[rank+bits.OnesCount64(had&(bit-1))]; {
			case age == limit && stay > 0:
				stay--
				rows[w] &^= bit
			case age < limit:
				rows[w] &^= bit
			}
		}
		rank += bits.OnesCount64(had)
	}
}

// ages calls do with the age of each of rows: the number of changes since its last use.
func (x *Index) ages(rows Set, clock uint32, do func(age uint32)) {
	rank := 0
	for w, had := range x.rows {
		for m := rows[w]; m != 0; m &= m - 1 {
			do(clock - x.seen[rank+bits.OnesCount64(had&(m&-m-1))])
		}
		rank += bits.OnesCount64(had)
	}
}

// touch records that need is used now, under LRU.
func (c *Cache) touch(need Set) {
	x := c.now
	if x.seen == nil {
		return
	}
	rank := 0
	for w, rows := range x.rows {
		for m := rows & need[w]; m != 0; m &= m - 1 {
			x.seen[rank+bits.OnesCount64(rows&(m&-m-1))] = c.clock
		}
		rank += bits.OnesCount64(rows)
	}
}
