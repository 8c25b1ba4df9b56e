package stream

import (
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// identities has the users' ids of the nodes of a stream: whole numbers, or rows of the source if
// nodes have names.
type identities struct {
	src, dst store.IDs
	types    bool // src and dst are of two types, and the places of dst's nodes begin at firstDst
	firstDst uint32
}

func identitiesOf(set *store.Dataset, e *store.Events) identities {
	s := e.Stream
	ids := identities{types: s.Src != s.Dst, firstDst: uint32(e.Place(0))}
	for i, n := range set.Manifest().NodeTypes {
		if n.Name == s.Src {
			ids.src = set.IDs(i)
		}
		if n.Name == s.Dst {
			ids.dst = set.IDs(i)
		}
	}
	return ids
}

// of is a temporal.IDs, for identity columns.
func (n *identities) of(places []uint32, ids []uint64) error {
	return guarded(func() {
		for i, place := range places {
			if n.types && place >= n.firstDst {
				// otherwise nodes of two types with one id would be alike
				ids[i] = sample.Fold(1, uint64(n.dst.Original(place-n.firstDst)))
			} else {
				ids[i] = uint64(n.src.Original(place))
			}
		}
	})
}

// named reports whether nodes have names. Then the ids are rows of the source.
func (n *identities) named() bool { return n.src.HasNames() || n.dst.HasNames() }
