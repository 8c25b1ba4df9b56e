package policy

import "math/bits"

// leastRecent leaves in rows, which have slots and are not needed, the excess ones whose last use
// is the longest ago, of equal ones the highest. A step may have to refuse slots to rows that it
// needs itself, then the highest.
func (x *Index) leastRecent(rows Set, clock uint32, d demand) {
	excess := d.excess
	if n := rows.Len(); excess >= n { // only in a step, unless it is just enough
		excess -= n
		for w := len(rows) - 1; w >= 0 && excess > 0; w-- {
			rows[w] |= highest(d.need[w], &excess)
		}
		return
	}
	oldest := uint32(0)
	x.ages(rows, clock, func(age uint32) { oldest = max(oldest, age) })
	// The age at which rows start to stay is found a byte at a time, the uppermost first.
	var limit, stay uint32 // of that age, the lowest stay
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

// ages calls do with the age of each of rows, in windows.
func (x *Index) ages(rows Set, clock uint32, do func(age uint32)) {
	rank := 0
	for w, had := range x.rows {
		for m := rows[w]; m != 0; m &= m - 1 {
			do(clock - x.seen[rank+bits.OnesCount64(had&(m&-m-1))])
		}
		rank += bits.OnesCount64(had)
	}
}

// touch takes note that need was used now, under LRU.
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
