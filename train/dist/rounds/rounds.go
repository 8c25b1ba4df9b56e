// Package rounds divides an exchange of all workers with all into rounds: in a round, no two
// messages pass the same link.
//
// Two types to know. A [Topology] has the links among workers, and the path of links from each
// worker to each other; [Parse] reads one from a file, and functions such as [PCIe] model usual
// machines. A [Round] has the pairs that exchange at the same time. [Schedule] makes the rounds;
// [Topology.Seconds] and [Topology.OneShot] estimate what rounds take, and what it takes to send
// everything at once. All of them are pure functions: every worker that calls them gets the same.
//
// Memory: results are the caller's, unless a method says otherwise. A Topology does not change, and
// is safe for concurrent use.
//
// FreshGNN (VLDB 2024, §6) has such rounds: five for four GPUs under two PCIe switches, where every
// pair has the same bytes. Schedule makes as many.
//
// # Why not
//
//   - Both directions of a pair in the same round: with random bytes such rounds took 7 to 28 %
//     longer on models whose pairs share links, since the shorter message waits for the longer one.
//   - The fastest of all schedules: finding it is NP-hard, as for open shops.
package rounds

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Pair is a sender and a receiver.
type Pair struct{ From, To int }

// Round has pairs that exchange at the same time. Their paths have no lane in common.
type Round []Pair

// Schedule returns rounds in which every pair that has bytes sends them once. bytes[p][q] is the
// number of bytes from worker p to worker q. The pair that takes longest comes first, and among
// equal ones the pair with the smaller numbers. Each goes into the first round in which all lanes
// of its path are free.
func Schedule(t *Topology, bytes [][]int64) []Round {
	pairs := Pairs(bytes)
	slices.SortStableFunc(pairs, func(a, b Pair) int {
		return cmp.Compare(t.alone(b, bytes), t.alone(a, bytes))
	})
	return Place(t, pairs)
}

// Fixed returns rounds for messages whose lengths are not known beforehand. Pairs whose path has
// the busiest lane come first: four GPUs under two PCIe switches take four rounds then.
func Fixed(t *Topology) []Round {
	bytes := Equal(t.Size(), 1)
	loads := t.loads(bytes)
	busiest := func(pair Pair) (seconds float64) {
		for _, lane := range t.Path(pair.From, pair.To) {
			seconds = max(seconds, loads[lane].seconds)
		}
		return seconds
	}
	pairs := Pairs(bytes)
	slices.SortStableFunc(pairs, func(a, b Pair) int { return cmp.Compare(busiest(b), busiest(a)) })
	return Place(t, pairs)
}

// Pairs returns the pairs that have bytes, by number.
func Pairs(bytes [][]int64) (pairs []Pair) {
	for p := range bytes {
		for q, n := range bytes[p] {
			if p != q && n > 0 {
				pairs = append(pairs, Pair{p, q})
			}
		}
	}
	return pairs
}

// Equal returns the bytes of n workers where each sends so many to each other one.
func Equal(n int, each int64) [][]int64 {
	bytes := make([][]int64, n)
	for p := range bytes {
		bytes[p] = slices.Repeat([]int64{each}, n)
		bytes[p][p] = 0
	}
	return bytes
}

// Place puts the pairs, in their order, each into the first round in which all lanes of its path
// are free.
func Place(t *Topology, pairs []Pair) (rounds []Round) {
	taken := make([]set, t.lanes()) // rounds, by lane
	for _, pair := range pairs {
		path := t.Path(pair.From, pair.To)
		r := firstFree(taken, path)
		if r == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[r] = append(rounds[r], pair)
		for _, lane := range path {
			taken[lane].add(r)
		}
	}
	return rounds
}

// set is a set of numbers, a bit each.
type set []uint64

func (s *set) add(n int) {
	for n/64 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[n/64] |= 1 << (n % 64)
}

// firstFree returns the first round that no lane of the path is taken in.
func firstFree(taken []set, path []int) int {
	for w := 0; ; w++ {
		var word uint64
		for _, lane := range path {
			if w < len(taken[lane]) {
				word |= taken[lane][w]
			}
		}
		if ^word != 0 {
			return 64*w + bits.TrailingZeros64(^word)
		}
	}
}

// Seconds estimates the time of the rounds: each takes as long as its slowest pair.
func (t *Topology) Seconds(rounds []Round, bytes [][]int64) (seconds float64) {
	for _, round := range rounds {
		slowest := 0.0
		for _, pair := range round {
			slowest = max(slowest, t.alone(pair, bytes))
		}
		seconds += slowest
	}
	return seconds
}

// alone returns the seconds that the bytes of a pair take on the slowest link of their path.
func (t *Topology) alone(pair Pair, bytes [][]int64) (seconds float64) {
	n := float64(bytes[pair.From][pair.To])
	for _, lane := range t.Path(pair.From, pair.To) {
		seconds = max(seconds, n/t.speed(lane))
	}
	return seconds
}

// OneShot estimates the time in which all workers send everything at once. The slowest lane
// decides. n messages that pass one lane together take 1 + contention·(n-1) times as long as one
// after the other. With a contention of 0 no schedule is faster.
func (t *Topology) OneShot(bytes [][]int64, contention float64) (seconds float64) {
	for _, l := range t.loads(bytes) {
		seconds = max(seconds, l.seconds*(1+contention*float64(max(l.messages-1, 0))))
	}
	return seconds
}

// BreakEven returns the contention at which sending everything at once takes so many seconds: from
// there on rounds of that time are faster. It is infinite if no lane carries two messages.
func (t *Topology) BreakEven(bytes [][]int64, seconds float64) float64 {
	contention := math.Inf(1)
	for _, l := range t.loads(bytes) {
		if l.messages > 1 {
			contention = min(contention, max(seconds/l.seconds-1, 0)/float64(l.messages-1))
		}
	}
	return contention
}

// load has the messages that pass a lane, and the seconds that they take one after the other.
type load struct {
	messages int
	seconds  float64
}

// loads returns the load of each lane.
func (t *Topology) loads(bytes [][]int64) []load {
	loads := make([]load, t.lanes())
	for _, pair := range Pairs(bytes) {
		for _, lane := range t.Path(pair.From, pair.To) {
			loads[lane].messages++
			loads[lane].seconds += float64(bytes[pair.From][pair.To]) / t.speed(lane)
		}
	}
	return loads
}
