package triples

import (
	"fmt"

	"github.com/gnnstore/gnnstore/ingest"
)

// newcomers finds the entities that held-out triples have and training triples lack. The files of
// training triples come first.
type newcomers struct {
	seen    map[string]bool // entities of training triples; nil once there is no room for more
	names   map[string]bool // entities that held-out triples alone have
	triples int             // held-out triples with such an entity
	room    int64           // bytes that more may take
}

// look counts a triple. It reports whether the triple has an entity that training triples lack.
func (n *newcomers) look(t *triple, part ingest.Part) (lacks bool) {
	for _, name := range [][]byte{t.head, t.tail} {
		if n.seen == nil || n.seen[string(name)] {
			continue
		}
		to := n.seen
		if part != ingest.Train {
			to, lacks = n.names, true
		}
		if to[string(name)] {
			continue
		}
		const each = 64 // of the map, about
		if n.room -= int64(len(name)) + each; n.room < 0 {
			n.seen, n.names = nil, nil
			return false
		}
		to[string(name)] = true
	}
	if lacks {
		n.triples++
	}
	return lacks
}

// remark returns the remark on what was found, "" if that is nothing. It is an error if triples are
// to be dropped, and memory was short.
func (n *newcomers) remark(path string, rule Unseen) (string, error) {
	switch {
	case n.seen == nil && rule == UnseenDrop:
		return "", fmt.Errorf("{unseen} drop: the entities of %s take more than a sixteenth of {memory}; give it more",
			path)
	case n.seen == nil:
		return "entities that training triples lack were not counted: they take more than a sixteenth of {memory}", nil
	case n.triples == 0:
		return "", nil
	}
	what := "they are kept, and nothing is learnt of them; {unseen} drop leaves them out"
	if rule == UnseenDrop {
		what = "{unseen} drop leaves them out"
	}
	return fmt.Sprintf("%d held-out triples have an entity that no training triple has, %d entities in all: %s",
		n.triples, len(n.names), what), nil
}
