// Package rounds divides an exchange of all workers with all into rounds: in a round, no two
// messages pass the same link in the same direction.
//
// Two types to know. A [Topology] has the links between workers, and the path of links from each
// worker to each other. [Parse] reads one from a file; functions such as [PCIe] model usual
// machines. A [Round] has the pairs that exchange at the same time. [Fixed] makes the rounds that
// training takes, without the lengths of messages. [Schedule] makes rounds from these lengths.
// [Topology.Seconds] estimates the time of rounds, and [Topology.OneShot] the time of sending
// everything at once. All of these are pure functions: every worker that calls them gets the same.
//
// Memory: results are the caller's, unless a method says otherwise. A Topology does not change, and
// is safe for concurrent use.
//
// FreshGNN (VLDB 2024, §6) has such rounds. For four GPUs under two PCIe switches, where every pair
// has the same bytes, it has five. Schedule makes as many.
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

// Round lists pairs that exchange at the same time. No two of their paths have a lane in common. A
// lane is one direction of a link: see Topology.Path.
type Round []Pair

// Schedule returns rounds for messages of known lengths, one for each pair that has bytes.
// bytes[p][q] is the number of bytes from worker p to worker q. The pair that takes longest comes
// first; among equal ones, the pair with the smaller numbers. Each goes into the first round in
// which all lanes of its path are free.
func Schedule(t *Topology, bytes [][]int64) []Round {
	pairs := Pairs(bytes)
	slices.SortStableFunc(pairs, func(a, b Pair) int {
		return cmp.Compare(t.alone(b, bytes), t.alone(a, bytes))
	})
	return Place(t, pairs)
}

// Fixed returns rounds for messages of unknown lengths, one for each pair. It places pairs as
// Schedule does, but first those whose path has the busiest lane, as if all messages had the same
// length. Four GPUs under two PCIe switches take four rounds then.
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

// Pairs returns the pairs that have bytes, by sender and then by receiver.
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

// Equal returns the bytes for n workers that each send so many to every other one.
func Equal(n int, each int64) [][]int64 {
	bytes := make([][]int64, n)
	for p := range bytes {
		bytes[p] = slices.Repeat([]int64{each}, n)
		bytes[p][p] = 0
	}
	return bytes
}

// Place takes the pairs in their order, and puts each into the first round in which all lanes of
// its path are free.
func Place(t *Topology, pairs []Pair) (rounds []Round) {
	taken := make([]set, t.lanes()) // by lane: the rounds that use it
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

// set is a set of numbers, with a bit for each.
type set []uint64

func (s *set) add(n int) {
	for n/64 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[n/64] |= 1 << (n % 64)
}

// firstFree returns the first round in which all lanes of the path are free.
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

// OneShot estimates the time of sending everything at once. The slowest lane decides.
// n messages on one lane take 1 + contention·(n-1) times as long together as one after the other.
// With a contention of 0 no rounds are faster.
func (t *Topology) OneShot(bytes [][]int64, contention float64) (seconds float64) {
	for _, l := range t.loads(bytes) {
		seconds = max(seconds, l.seconds*(1+contention*float64(max(l.messages-1, 0))))
	}
	return seconds
}

// BreakEven returns the contention at which sending everything at once takes so many seconds. With
// more contention, rounds that take these seconds are faster. The result is infinite if no lane
// carries two messages.
func (t *Topology) BreakEven(bytes [][]int64, seconds float64) float64 {
	contention := math.Inf(1)
	for _, l := range t.loads(bytes) {
		if l.messages > 1 {
			contention = min(contention, max(seconds/l.seconds-1, 0)/float64(l.messages-1))
		}
	}
	return contention
}

// load has the number of messages that pass a lane, and the seconds they take one after the other.
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
