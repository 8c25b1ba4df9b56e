package store

import (
	"fmt"
	"slices"
)

// AddSplit writes a split of stored ids, which it sorts. It refuses an id that is twice in a part.
func (w *Writer) AddSplit(name, nodeType string, train, valid, test []NodeID) error {
	if err := checkNames("split", nodeType, name); err != nil {
		return err
	}
	s := Split{Name: name, NodeType: nodeType}
	for i, part := range [][]NodeID{train, valid, test} {
		path := s.partPath(i)
		ids := slices.Sorted(slices.Values(part))
		for k := 1; k < len(ids); k++ {
			if ids[k] == ids[k-1] {
				return fmt.Errorf("%s: node %d is there twice", path, ids[k])
			}
		}
		var err error
		if *s.parts()[i], err = packed(w, path, U32, int64(len(ids)), 1, ids); err != nil {
			return err
		}
	}
	w.manifest.Splits = append(w.manifest.Splits, s)
	return nil
}
