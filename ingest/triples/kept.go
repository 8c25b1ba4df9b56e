package triples

import "github.com/gnnstore/gnnstore/ingest"

// kept are the triples of a graph that is small, by relation: with thousands of relations, reading the files once for each takes hours.
type kept struct {
	of    map[string]*keptRelation
	bytes int64 // that they take, about
	room  int64
}

type keptRelation struct {
	heads, tails ingest.Texts
	files        []uint32 // of each triple
}

// eachKept is what a triple takes beside its texts, and relationKept what a relation does.
const (
	eachKept     = 12
	relationKept = 256
)

// add keeps a triple of a file, and says whether there was room. Texts grow by doubling, so that they may take twice their size.
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

// each visits the triples of a relation in one file, in its order.
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
