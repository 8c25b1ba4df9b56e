package triples

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/ingest"
)

// kept holds the triples of some relations in memory, so that one reading of the files serves them
// all. With thousands of relations, reading the files once for each would take hours.
type kept struct {
	of    map[string]*keptRelation
	bytes int64 // about what it takes
	room  int64
}

type keptRelation struct {
	heads, tails ingest.Texts
	files        []uint32 // of each triple
}

// eachKept is the bytes of a triple beside its texts, and relationKept the bytes of a relation.
const (
	eachKept     = 12
	relationKept = 256
)

func (o Options) newKept() *kept {
	return &kept{of: map[string]*keptRelation{}, room: o.Memory / 16}
}

// keptBytes returns the bytes that a triple takes. Texts grow by doubling, so they may take twice
// their size.
func keptBytes(t *triple) int64 { return 2 * (int64(len(t.head)+len(t.tail)) + eachKept) }

// add keeps a triple of a file. It returns false if there is no room.
func (k *kept) add(t *triple, file int) bool {
	r := k.of[string(t.relation)]
	if r == nil {
		r = &keptRelation{}
		k.of[string(t.relation)] = r
		k.bytes += relationKept + int64(len(t.relation))
	}
	if k.bytes += keptBytes(t); k.bytes > k.room {
		return false
	}
	r.heads.Append(t.head)
	r.tails.Append(t.tail)
	r.files = append(r.files, uint32(file))
	return true
}

// each visits the triples that a file has of a relation, in the order of the file.
func (k *kept) each(relation string, file int, visit func(head, tail []byte) error) error {
	r := k.of[relation]
	for i, of := range r.files {
		if of != uint32(file) {
			continue
		}
		if err := visit(r.heads.At(i), r.tails.At(i)); err != nil {
			return err
		}
	}
	return nil
}

// keep loads the triples of a relation, unless they are in memory. It also loads the relations that
// follow and fit, since the builder reads relations in order. It returns false if the relation does
// not fit, or no other does.
func (s *Source) keep(ctx context.Context, relation int) (bool, error) {
	if s.kept != nil && s.kept.of[s.relations[relation]] != nil {
		return true, nil
	}
	k := s.o.newKept()
	if s.sizes[relation] > k.room { // others stay in memory
		return false, nil
	}
	for i := relation; i < len(s.relations); i++ {
		if k.bytes+s.sizes[i] <= k.room {
			k.bytes += s.sizes[i]
			k.of[s.relations[i]] = &keptRelation{}
		}
	}
	if len(k.of) < 2 {
		return false, nil // holding one relation spares no reading
	}
	s.kept, k.bytes = nil, 0
	for i := range s.files {
		_, err := s.eachIn(ctx, i, nil, func(t *triple) error {
			if k.of[string(t.relation)] != nil && !s.leaves(t, s.files[i].part) && !k.add(t, i) {
				return fmt.Errorf("%s: the file changed while it was read; ingest it again", s.files[i].path)
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	s.kept = k
	return true, nil
}
