package temporal

import (
	"math/bits"

	"github.com/gnnstore/gnnstore/store"
)

// Destinations are the places of the destinations of events from to to-1, each once, ascending.
func Destinations(e *store.Events, from, to int64) (places []uint32, err error) {
	if err := numbered(e); err != nil {
		return nil, err
	}
	seen, n := make([]uint64, (e.Destinations+63)/64), 0
	err = store.Guard(func() error {
		for ; from < to; from += scan {
			_, dst := e.Ends(from, min(from+scan, to))
			for _, v := range dst {
				if bit := uint64(1) << (v % 64); seen[v/64]&bit == 0 {
					seen[v/64] |= bit
					n++
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	places = make([]uint32, 0, n)
	first := uint32(e.Place(0))
	for i, word := range seen {
		for ; word != 0; word &= word - 1 {
			places = append(places, first+uint32(64*i+bits.TrailingZeros64(word)))
		}
	}
	return places, nil
}

// AllNodes are all places of a stream, ascending.
func AllNodes(e *store.Events) []uint32 {
	places := make([]uint32, e.Places())
	for i := range places {
		places[i] = uint32(i)
	}
	return places
}
