package dist

import (
	"fmt"

	"github.com/gnnstore/gnnstore/train/dist/rounds"
)

// mostAtOnce is the largest message that takes no turns. At 10 Gbit/s it takes 52 µs, about as long
// as an exchange of small messages, and each turn is an exchange.
const mostAtOnce = 64 << 10

// turn has the workers that a worker sends to, and receives from, in one of the rounds of an
// exchange.
type turn struct{ to, from []int }

// SetTopology makes exchanges of large messages go in the rounds of a topology, after SetWorkers
// and before Run; nil: all at once. Results are the same. All processes give the same topology.
// Messages are often of equal lengths, and a worker does not know the lengths of others: so the
// rounds follow from the topology alone.
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

// turnsOf returns the turns of each worker. A worker takes its message to itself in the first one.
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

// only returns the messages of some workers, in the memory of into. The others' are empty.
func only(messages [][]byte, workers []int, into [][]byte) [][]byte {
	clear(into)
	for _, p := range workers {
		into[p] = messages[p]
	}
	return into
}
