package dist

import (
	"fmt"

	"github.com/gnnstore/gnnstore/train/dist/rounds"
)

// mostAtOnce bounds an exchange without turns: no message in it is larger. At 10 Gbit/s such a
// message takes 52 µs, about as long as an exchange of small messages, and each turn is an
// exchange.
const mostAtOnce = 64 << 10

// turn is one worker's part of a rounds.Round: the workers that it sends to, and those that it
// receives from.
type turn struct{ to, from []int }

// SetTopology makes exchanges of large messages go in the rounds of a topology. Nil: all messages
// go at once. Results are the same. Call it after SetWorkers and before Run, with the same topology
// in all processes. The rounds are rounds.Fixed's: lengths are often equal, and a worker does not
// know the lengths of others' messages.
func (h *Host) SetTopology(t *rounds.Topology) error {
	h.turns = nil
	if t == nil {
		return nil
	}
	if t.Size() != h.workers {
		return fmt.Errorf("{topology} %s: it has %d workers, and the run has %d; give a file for as many, or {topology} none",
			t.Name(), t.Size(), h.workers)
	}
	h.turns = turnsOf(rounds.Fixed(t), h.workers)
	return nil
}

// turnsOf returns the turns of each worker, one for each round. A worker's message to itself goes
// in its first turn.
func turnsOf(all []rounds.Round, workers int) [][]turn {
	turns := make([][]turn, workers)
	for p := range turns {
		turns[p] = make([]turn, len(all))
		turns[p][0] = turn{to: []int{p}, from: []int{p}}
	}
	for r, round := range all {
		for _, pair := range round {
			to, from := &turns[pair.From][r], &turns[pair.To][r]
			to.to, from.from = append(to.to, pair.To), append(from.from, pair.From)
		}
	}
	return turns
}

// only returns the messages to or from some workers, in the memory of into. The others are nil.
func only(messages [][]byte, workers []int, into [][]byte) [][]byte {
	clear(into)
	for _, p := range workers {
		into[p] = messages[p]
	}
	return into
}
