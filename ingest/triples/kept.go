package triples

import "github.com/gnnstore/gnnstore/ingest"

// kept holds the triples of a small graph, by relation. With thousands of relations, reading the
// files once for each would take hours.
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

// add keeps a triple of a file. It returns false if there is no room. Texts grow by doubling, so
// they may take twice their size.
func (k *kept) add(t *triple, file int) bool {
	r := k.of[string(t.relation)]
	if r == nil {
		r = &keptRelation{}
		k.of[string(t.relation)] = r
		k.bytes += relationKept + int64(len(t.relation))
	}
	if k.bytes += 2 * (int64(len(t.head)+len(t.tail)) + eachKept); k.bytes > k.room {
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
