package mag240m

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/ogb"
)

// split is one way to choose the test nodes.
type split struct {
	name string
	keys []string               // of split_dict.pt, read one after the other
	keep func(place int64) bool // the nodes at these places alone; nil for all
}

// isDev reports whether a place of an undivided test list is in test-dev, as OGB divided them
// (ogb/lsc/mag240m.py).
func isDev(place int64) bool { return place%5 < 3 }

// findSplits makes the splits that split_dict.pt has keys for.
func (s *Source) findSplits() error {
	path := s.uses("split_dict.pt")
	dict, err := ogb.OpenDict(path, s.memory)
	if err != nil {
		return err
	}
	defer dict.Close()
	for _, key := range []string{"train", "valid"} {
		if !dict.Has(key) {
			return fmt.Errorf("%s: no entry %s in its dict", path, key)
		}
	}
	divided := dict.Has("test-dev") && dict.Has("test-challenge")
	switch {
	case dict.Has("test-whole"):
		s.splits = append(s.splits, split{name: "whole", keys: []string{"test-whole"}})
	case dict.Has("test"):
		s.splits = append(s.splits, split{name: "whole", keys: []string{"test"}})
	case divided:
		s.splits = append(s.splits, split{name: "whole", keys: []string{"test-dev", "test-challenge"}})
	default:
		return fmt.Errorf("%s: no entry test-whole, test, or test-dev and test-challenge in its dict", path)
	}
	if divided {
		s.splits = append(s.splits, split{name: "dev", keys: []string{"test-dev"}}, split{name: "challenge", keys: []string{"test-challenge"}})
	} else {
		whole := s.splits[0].keys
		s.splits = append(s.splits, split{name: "dev", keys: whole, keep: isDev},
			split{name: "challenge", keys: whole, keep: func(place int64) bool { return !isDev(place) }})
	}
	for _, p := range s.splits {
		s.schema.Splits = append(s.schema.Splits, ingest.Split{Name: p.name, NodeType: "paper"})
	}
	return nil
}

func (p *split) stream(ctx context.Context, path string, memory int64, part ingest.Part, emit func(ingest.IDChunk) error) error {
	dict, err := ogb.OpenDict(path, memory)
	if err != nil {
		return err
	}
	defer dict.Close()
	if part != ingest.Test {
		return dict.IDs(ctx, emit, part.String())
	}
	sent := int64(0)
	for _, key := range p.keys {
		err := dict.IDs(ctx, func(c ingest.IDChunk) error {
			if p.keep != nil {
				kept := c.IDs[:0]
				for i, id := range c.IDs {
					if p.keep(c.First + int64(i)) {
						kept = append(kept, id)
					}
				}
				c.IDs = kept
			}
			if len(c.IDs) == 0 {
				return nil
			}
			c.First = sent
			sent += int64(len(c.IDs))
			return emit(c)
		}, key)
		if err != nil {
			return err
		}
	}
	return nil
}
