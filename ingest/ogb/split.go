package ogb

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
)

// split is the split of one node type: three files, or a part of a dict in each of three entries.
type split struct {
	files [3]*table
	dict  string // the path of split_dict.pt, "" without
	key   string // of the node type in each entry; "" where the entry is the nodes themselves
}

func (p *split) stream(ctx context.Context, memory int64, part ingest.Part, emit func(ingest.IDChunk) error) error {
	if p.dict == "" {
		return p.files[part].ids(ctx, emit)
	}
	dict, err := OpenDict(p.dict, memory)
	if err != nil {
		return err
	}
	defer dict.Close()
	if p.key != "" {
		return dict.IDs(ctx, emit, part.String(), p.key)
	}
	return dict.IDs(ctx, emit, part.String())
}

// findSplit takes the known scheme, or else the only one.
func (s *Source) findSplit() error {
	schemes, err := s.folders("split")
	if err != nil {
		return err
	}
	var scheme string
	switch {
	case len(schemes) == 0:
		return nil
	case slices.Contains(schemes, s.info.Split):
		scheme = s.info.Split
	case len(schemes) == 1:
		scheme = schemes[0]
	default:
		return fmt.Errorf("%s: several schemes (%s), and none that is known for %s; leave one folder there",
			s.at("split"), strings.Join(schemes, ", "), s.schema.Name)
	}
	for _, other := range schemes {
		if other != scheme {
			s.note("split/"+other, scheme+" is the split of this dataset")
		}
	}
	dir := "split/" + scheme
	switch {
	case s.info.Link || s.has(dir+"/train.pt"):
		return s.linkSplit(dir)
	case s.has(dir + "/split_dict.pt"):
		return s.dictSplit(dir, scheme)
	case len(s.schema.NodeTypes) == 1 && !s.has(dir+"/nodetype-has-split.csv.gz"):
		return s.fileSplit(dir, scheme, s.schema.NodeTypes[0].Name)
	}
	return s.typedSplit(dir, scheme)
}

func (s *Source) addSplit(scheme, nodeType string, p split) {
	s.schema.Splits = append(s.schema.Splits, ingest.Split{Name: scheme, NodeType: nodeType})
	s.splits = append(s.splits, p)
}

// fileSplit takes the three files in a folder.
func (s *Source) fileSplit(dir, scheme, nodeType string) error {
	var p split
	for part := range p.files {
		file := dir + "/" + ingest.Part(part).String() + ".csv.gz"
		if !s.has(file) {
			return fmt.Errorf("%s: no such file; a split has train.csv.gz, valid.csv.gz and test.csv.gz", s.at(file))
		}
		p.files[part] = s.table(file, -1, "")
	}
	s.addSplit(scheme, nodeType, p)
	return nil
}

// typedSplit takes the types that have one by nodetype-has-split.csv.gz, or by there being a
// folder.
func (s *Source) typedSplit(dir, scheme string) error {
	flags, err := s.readFlags(dir + "/nodetype-has-split.csv.gz")
	if err != nil {
		return err
	}
	for _, t := range s.schema.NodeTypes {
		sub := dir + "/" + t.Name
		if flags[t.Name] || flags == nil && s.has(sub) {
			if err := s.fileSplit(sub, scheme, t.Name); err != nil {
				return err
			}
		} else if s.has(sub) {
			s.note(sub, "nodetype-has-split.csv.gz says that the type has none")
		}
	}
	return nil
}

// dictSplit takes the pickled dict, which upstream prefers to the files beside it.
func (s *Source) dictSplit(dir, scheme string) error {
	file := dir + "/split_dict.pt"
	if err := s.onDisk(file); err != nil {
		return err
	}
	dict, err := OpenDict(s.at(file), s.memory)
	if err != nil {
		return err
	}
	defer dict.Close()
	s.uses(file)
	types := map[string]int{} // in how many parts a type has nodes
	for part := ingest.Train; part <= ingest.Test; part++ {
		keys, isDict := dict.Keys(part.String())
		switch {
		case !isDict:
			types[""]++
		case slices.ContainsFunc(keys, func(key string) bool { return s.schema.NodeType(key) < 0 }):
			return s.linkSplit(dir) // source_node, head, edge: not of nodes
		default:
			for _, key := range keys {
				types[key]++
			}
		}
	}
	if types[""] > 0 {
		if len(s.schema.NodeTypes) > 1 || types[""] < 3 {
			return fmt.Errorf("%s: train, valid and test are not three lists of nodes for each node type", s.at(file))
		}
		s.addSplit(scheme, s.schema.NodeTypes[0].Name, split{dict: s.at(file)})
	}
	for _, t := range s.schema.NodeTypes {
		switch types[t.Name] {
		case 0:
		case 3:
			s.addSplit(scheme, t.Name, split{dict: s.at(file), key: t.Name})
		default:
			return fmt.Errorf("%s: node type %s is not in all of train, valid and test", s.at(file), t.Name)
		}
	}
	for _, part := range []string{"train", "valid", "test"} {
		if csv := dir + "/" + part + ".csv.gz"; s.has(csv) {
			s.note(csv, "split_dict.pt beside it is read instead, as upstream does")
		}
	}
	return nil
}
