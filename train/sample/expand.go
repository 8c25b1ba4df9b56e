package sample

import (
	"context"
	"fmt"
)

// Expander decides between hops which nodes are drawn further. It may leave out sources whose rows
// come from elsewhere, and add nodes that other workers asked for.
//
// Expand is called on the goroutine that called Sample, once a hop, when all batches of the group
// have drawn it: for hop 0 first, for the last hop too. found has the sources of each batch and
// type, as Frontier.Src; it is lent until Expand returns.
//
// next has nodes by batch and type, each once. They are the destinations of the next hop; after the
// last hop they are the rows that the batch reads, its Inputs. origins has one element for each of
// found. Both are copied. Without origins all of found are drawn further, in their order, and next
// is not looked at.
//
// An Expander is made for a group, so it knows which steps these batches are.
type Expander interface {
	Expand(ctx context.Context, hop int, found [][][]uint32 /* batch, type */) (next [][][]uint32, origins [][][]Origin, err error)
}

// Origin is the place that the row of a source comes from.
type Origin struct {
	From  From
	Index uint32 // of the row there
}

// From is the batch itself, the cache of historical embeddings, or a worker.
type From uint32

const (
	Below  From = iota // a destination of the layer below, or for the input layer one of Inputs, of the same type
	Slot               // a slot of the cache
	Worker             // Worker + n: rows that worker n sends, in the order of the requests
)

// expand asks e about a hop of batches, and sets their next destinations and their origins.
func (s *Sampler) expand(ctx context.Context, e Expander, batches []*Batch, hop int) error {
	at := len(s.Fanouts) - 1 - hop
	found := make([][][]uint32, len(batches))
	for i, b := range batches {
		for t := range s.schema.Types {
			found[i] = append(found[i], b.Layers[at].Nodes[t].Src)
		}
	}
	next, origins, err := e.Expand(ctx, hop, found)
	if err != nil {
		return err
	}
	if len(next) != len(batches) || len(origins) != len(batches) {
		panic(fmt.Sprintf("sample: Expand: %d batches, and the next nodes of %d and origins of %d", len(batches), len(next), len(origins)))
	}
	for i, b := range batches {
		for t := range s.schema.Types {
			f := &b.Layers[at].Nodes[t]
			f.Origin = append(f.Origin[:0], origins[i][t]...)
			further := next[i][t]
			switch {
			case origins[i][t] == nil && at > 0:
				further = f.Src
			case origins[i][t] == nil:
				further = nil // Inputs are the sources, which are there
			case len(f.Origin) != len(f.Src):
				panic(fmt.Sprintf("sample: Expand: %d sources of type %d at hop %d, and %d origins", len(f.Src), t, hop, len(f.Origin)))
			}
			if at > 0 {
				b.Layers[at-1].Nodes[t].start(further)
			} else {
				b.rows[t] = append(b.rows[t][:0], further...)
			}
		}
		b.expanded = true
	}
	for i := range s.drawers {
		s.drawers[i].last = finished{} // indexes hold the nodes that were found
	}
	return nil
}
