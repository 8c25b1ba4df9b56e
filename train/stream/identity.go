package stream

import (
	"errors"
	"fmt"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// settleIdentity chooses the number of identity columns if it is Auto, and refuses them if nodes
// have features.
func (t *trainer) settleIdentity() error {
	s, fits := t.events.Stream, t.tables.nodeFile == nil
	if t.Identity == run.Auto {
		t.Identity = 0
		if fits && s.Src == s.Dst && t.Kind.Identified() {
			t.Identity = t.Hidden
			t.Note("nodes have no features: %d random columns by their ids tell them apart; {identity} 0 leaves them out", t.Identity)
		}
	}
	if t.Identity > 0 && !fits {
		return fmt.Errorf("%s: {identity} %d: nodes of stream %s have features, which networks read instead; leave it out, or ingest the stream with {features} none",
			t.set.Path(), t.Identity, t.Stream)
	}
	return nil
}

// ids looks up the users' ids of nodes, for identity columns: whole numbers, or rows of the source
// if nodes have names.
func (t *trainer) ids() temporal.IDs {
	src, dst := t.nodeIDs(t.events.Stream.Src), t.nodeIDs(t.events.Stream.Dst)
	types, firstDst := t.events.Stream.Src != t.events.Stream.Dst, uint32(t.events.Place(0))
	return func(places []uint32, ids []uint64) error {
		return store.Guard(func() error {
			for i, place := range places {
				if types && place >= firstDst {
					// otherwise nodes of two types with one id would be alike
					ids[i] = sample.Fold(1, uint64(dst.Original(place-firstDst)))
				} else {
					ids[i] = uint64(src.Original(place))
				}
			}
			return nil
		})
	}
}

// nodeIDs returns the id map of a node type.
func (t *trainer) nodeIDs(name string) (ids store.IDs) {
	for i, n := range t.set.Manifest().NodeTypes {
		if n.Name == name {
			ids = t.set.IDs(i)
		}
	}
	return ids
}

// sameIDs refuses identity columns on another dataset than the run trained on, if its nodes have
// names. Their rows in the source may differ there, and so would each node's columns.
func (t *trainer) sameIDs(trainedOn string) error {
	if t.Identity == 0 || t.Result.Seal == trainedOn {
		return nil
	}
	if t.nodeIDs(t.events.Stream.Src).HasNames() || t.nodeIDs(t.events.Stream.Dst).HasNames() {
		return errors.New("it tells nodes apart by their rows in the source, since they have names, and these rows may be others in " + t.set.Path() +
			"; take the dataset that it learnt from, or train with {identity} 0")
	}
	return nil
}
