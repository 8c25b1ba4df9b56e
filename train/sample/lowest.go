package sample

import (
	"math"
	"math/bits"
)

// lowestList is the length of the longest list that lowest chooses from. The scratch for such a
// list fits in the processor's first cache.
const lowestList = 2048

// lowest is scratch for choosing the lowest numbers of short lists. It selects in passes without
// branches on these numbers, since the processor would guess such branches wrong.
type lowest struct {
	number [lowestList + 1]uint64
	id     [lowestList + 1]uint32
}

// keep keeps the ids, in this order, whose number is not above limit, and returns their count.
func (l *lowest) keep(first uint64, ids []uint32, limit uint64) int {
	n := 0
	for _, id := range ids {
		number := mix(first + (uint64(id)+1)*golden)
		_, above := bits.Sub64(limit, number, 0)
		l.number[n], l.id[n] = number, id
		n += 1 - int(above)
	}
	return n
}

// keepMixed is keep for mixed numbers, of ids or of their places. Most numbers of a long list are
// too high, and their first bits show it. For the rest the branches are about as many as quantile
// has.
func (l *lowest) keepMixed(numbers *numbers, ids []uint32, byPlace bool, limit uint64) int {
	n, top := 0, unordered(limit)
	if limit == math.MaxUint64 { // no float has this integer
		top = math.Inf(1)
	}
	for i, id := range ids {
		x := id
		if byPlace {
			x = uint32(i)
		}
		at := (uint64(x) + 1) * golden
		a, b := mix(numbers.first+at), mix(numbers.next+at)
		if numbers.floor(a, b) > top {
			continue
		}
		number := numbers.mixture(a, b)
		_, above := bits.Sub64(limit, number, 0)
		l.number[n], l.id[n] = number, id
		n += 1 - int(above)
	}
	return n
}

// fill fills out with the ids of the lowest numbers of the n kept; of equal numbers the earlier
// come in. out has room for n ids or fewer. guess is near the highest number that fits.
func (l *lowest) fill(out []uint32, n int, guess uint64) {
	numbers, ids := l.number[:n], l.id[:n]
	limit, over := kth(numbers, len(out), guess)
	if over > 0 {
		l.fillEqual(out, n, limit)
		return
	}
	for i, e := 0, 0; e < len(out); i++ {
		_, above := bits.Sub64(limit, numbers[i], 0)
		out[e] = ids[i]
		e += 1 - int(above)
	}
}

// fillEqual is fill where only the earlier ones of the numbers at the limit have room.
func (l *lowest) fillEqual(out []uint32, n int, limit uint64) {
	equal := len(out)
	for _, number := range l.number[:n] {
		if number < limit {
			equal--
		}
	}
	e := 0
	for i, number := range l.number[:n] {
		if number == limit && equal > 0 {
			equal--
		} else if number >= limit {
			continue
		}
		out[e] = l.id[i]
		e++
	}
}

// kth returns the k-th lowest of numbers, or a limit just as good: the k lowest are not above it.
// over counts the other numbers that are not above it; they equal the limit. It begins at guess,
// and moves from one number to the next with a pass for each: some √k passes if guess is the
// quantile of k's share.
func kth(numbers []uint64, k int, guess uint64) (limit uint64, over int) {
	limit = guess
	var highest uint64
	for up, down := false, false; ; {
		n, below, above := around(numbers, limit)
		switch {
		case n == k || n > k && up:
			return limit, n - k
		case n < k && down: // some are equal to the last limit but one
			return highest, over
		case below == 0 && n > k: // all are 0
			return 0, n - k
		case n < k:
			limit, up = above, true
		default:
			highest, over, limit, down = below, n-k, below-1, true
		}
	}
}

// around counts the numbers that are not above limit. It finds the highest of these, and the lowest
// of the others.
func around(numbers []uint64, limit uint64) (n int, below, above uint64) {
	above = 1<<64 - 1
	beyond := uint64(0)
	for _, x := range numbers {
		_, b := bits.Sub64(limit, x, 0) // 1 if x is above
		beyond += b
		below = max(below, x&(b-1))
		above = min(above, x|(b-1))
	}
	return len(numbers) - int(beyond), below, above
}
