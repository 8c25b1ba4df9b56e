package ogb

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/npz"
	"github.com/gnnstore/gnnstore/store"
)

// elem returns the type in which a column of the array is kept.
func (m *member) elem() store.Elem {
	if m.header.Type.Kind == npy.Float {
		return store.F32
	}
	return store.I64
}

// open opens an archive in raw/, which Close closes.
func (s *Source) open(file string) (*npz.Archive, error) {
	a, err := s.archive(file)
	if err != nil {
		return nil, err
	}
	s.archives = append(s.archives, a)
	s.uses(file)
	return a, nil
}

// countOf reads an array that has a number for each graph, and one graph.
func countOf(a *npz.Archive, key string) (int64, error) {
	m, err := find(a, key)
	if err != nil {
		return 0, err
	}
	if m.header.Len() != 1 {
		return 0, fmt.Errorf("%s: array is %s; a dataset of one graph has one number there", m.place(), m.header.String())
	}
	body, err := a.Open(key)()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", m.place(), err)
	}
	defer body.Close()
	r, err := npy.NewReader(body)
	var n [1]int64
	if err == nil {
		_, err = r.ReadInt64s(n[:])
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", m.place(), err)
	}
	if n[0] < 0 || n[0] > maxCount {
		return 0, fmt.Errorf("%s: %d is not a count", m.place(), n[0])
	}
	return n[0], nil
}

// ends checks an array of edges, and returns how many there are.
func (m *member) ends() (int64, error) {
	if h := m.header; len(h.Shape) != 2 || h.Shape[0] != 2 {
		return 0, fmt.Errorf("%s: array is %s, where a row of sources and a row of destinations are expected", m.place(), h.String())
	}
	return m.header.Shape[1], nil
}

// rowsIn is a member with a row for each of something that has been counted.
func rowsIn(a *npz.Archive, key string, n int64, declared string) (section, error) {
	m, err := find(a, key)
	if err != nil {
		return nil, err
	}
	return m, m.rows(n, declared)
}

// arrays is the layout of one type of node in raw/data.npz, which ogbn-papers100M has.
func (s *Source) arrays() error {
	const file, labelFile = "raw/data.npz", "raw/node-label.npz"
	a, err := s.open(file)
	if err != nil {
		return err
	}
	for _, key := range []string{"edge_index", "num_nodes_list"} {
		if !a.Has(key) {
			return fmt.Errorf("%s: no array %s among %s; this layout has edge_index, num_nodes_list and num_edges_list",
				a.Name(), key, strings.Join(firstOf(a.Keys()), ", "))
		}
	}
	nodes, err := countOf(a, "num_nodes_list")
	if err != nil {
		return err
	}
	m, err := find(a, "edge_index")
	if err != nil {
		return err
	}
	count, err := m.ends()
	if err != nil {
		return err
	}
	if a.Has("num_edges_list") {
		if n, err := countOf(a, "num_edges_list"); err != nil {
			return err
		} else if n != count {
			return fmt.Errorf("%s: array is %s, and num_edges_list is %d; fetch it again", m.place(), m.header.String(), n)
		}
	}
	s.addType("node", nodes)
	s.addRelation("node", "to", "node", count, m)
	keys := a.Keys()
	slices.Sort(keys)
	for _, key := range keys {
		if key == "edge_index" {
			continue
		}
		what := file + ": " + key
		switch kind, attribute := attributeOfKey(key); {
		case key == "num_nodes_list" || key == "num_edges_list":
		case kind == ofNodes:
			err = s.addNodeData(0, what, attribute, func() (section, error) { return rowsIn(a, key, nodes, a.Name()+": num_nodes_list") })
		case kind == ofEdges:
			err = s.addEdgeData(0, what, attribute, func() (section, error) { return rowsIn(a, key, count, a.Name()+": edge_index") })
		default:
			s.note(what, "it is no part of this layout")
		}
		if err != nil {
			return err
		}
	}
	entries, err := s.list("raw")
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := "raw/" + e.Name(); name {
		case file:
		case labelFile:
			if err := s.arrayLabels(name, nodes, a.Name()+": num_nodes_list"); err != nil {
				return err
			}
		default:
			s.note(name, "it is no part of this layout")
		}
	}
	return nil
}

// firstOf is as many keys as a message can bear.
func firstOf(keys []string) []string {
	if len(keys) > 10 {
		return append(keys[:10], "…")
	}
	return keys
}

func (s *Source) arrayLabels(file string, nodes int64, declared string) error {
	a, err := s.open(file)
	if err != nil {
		return err
	}
	for _, key := range a.Keys() {
		if key != "node_label" {
			s.note(file+": "+key, "it is no part of this layout")
			continue
		}
		err := s.addNodeData(0, file+": "+key, "label", func() (section, error) { return rowsIn(a, key, nodes, declared) })
		if err != nil {
			return err
		}
	}
	return nil
}

// typedArrays is the layout of several types of nodes in npz files, one for each attribute, keyed
// by type.
func (s *Source) typedArrays() error {
	if err := s.beginTyped(); err != nil {
		return err
	}
	counts, err := s.open("raw/num_nodes_dict.npz")
	if err != nil {
		return err
	}
	types := counts.Keys()
	slices.Sort(types)
	if len(types) > maxNames {
		return fmt.Errorf("%s: %d node types, and %d are the most", counts.Name(), len(types), maxNames)
	}
	for _, t := range types {
		if err := checkName(t); err != nil {
			return fmt.Errorf("%s: %w", counts.Name(), err)
		}
		n, err := countOf(counts, t)
		if err != nil {
			return err
		}
		s.addType(t, n)
	}
	relations, err := s.typedEnds(counts)
	if err != nil {
		return err
	}
	entries, err := s.list("raw")
	if err != nil {
		return err
	}
	for _, e := range entries {
		file := "raw/" + e.Name()
		name, isArchive := strings.CutSuffix(e.Name(), ".npz")
		kind, attribute := attributeOfKey(name)
		switch {
		case !isArchive || kind == ofNothing && name != "node-label" && name != "num_nodes_dict" && name != "num_edges_dict":
			s.note(file, "it is no part of this layout")
		case name == "num_nodes_dict" || name == "num_edges_dict" || name == "edge_index_dict":
		case name == "node-label":
			err = s.eachMember(file, func(a *npz.Archive, key string) error { return s.typedNodeArray(a, file, key, "label") })
		case kind == ofNodes:
			err = s.eachMember(file, func(a *npz.Archive, key string) error { return s.typedNodeArray(a, file, key, attribute) })
		case kind == ofEdges:
			err = s.eachMember(file, func(a *npz.Archive, key string) error {
				r, ok := relations[key]
				if !ok {
					s.note(file+": "+key, "no such relation is declared")
					return nil
				}
				n := s.edges[r].count
				return s.addEdgeData(r, file+": "+key, attribute, func() (section, error) {
					return rowsIn(a, key, n, s.edges[r].ends.place())
				})
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) eachMember(file string, visit func(a *npz.Archive, key string) error) error {
	a, err := s.open(file)
	if err != nil {
		return err
	}
	keys := a.Keys()
	slices.Sort(keys)
	for _, key := range keys {
		if err := visit(a, key); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) typedNodeArray(a *npz.Archive, file, key, attribute string) error {
	i := s.schema.NodeType(key)
	if i < 0 {
		s.note(file+": "+key, "no such node type is declared")
		return nil
	}
	return s.addNodeData(i, file+": "+key, attribute, func() (section, error) {
		return rowsIn(a, key, s.schema.NodeTypes[i].Count, s.at("raw/num_nodes_dict.npz")+": "+key)
	})
}

// typedEnds takes the relations of raw/edge_index_dict.npz, and numbers them by key.
func (s *Source) typedEnds(types *npz.Archive) (map[string]int, error) {
	a, err := s.open("raw/edge_index_dict.npz")
	if err != nil {
		return nil, err
	}
	var counts *npz.Archive
	if s.has("raw/num_edges_dict.npz") {
		if counts, err = s.open("raw/num_edges_dict.npz"); err != nil {
			return nil, err
		}
	}
	var triplets [][3]string
	for _, key := range a.Keys() {
		t, ok := splitTriplet(key)
		if !ok {
			return nil, fmt.Errorf("%s: key %q is not head___relation___tail", a.Name(), key)
		}
		if err := s.checkEnds(t, a.Name(), types.Name()); err != nil {
			return nil, err
		}
		triplets = append(triplets, t)
	}
	if len(triplets) > maxNames {
		return nil, fmt.Errorf("%s: %d relations, and %d are the most", a.Name(), len(triplets), maxNames)
	}
	slices.SortFunc(triplets, func(a, b [3]string) int { return slices.Compare(a[:], b[:]) })
	numbers := make(map[string]int, len(triplets))
	for i, t := range triplets {
		key := joinTriplet(t)
		m, err := find(a, key)
		if err != nil {
			return nil, err
		}
		count, err := m.ends()
		if err != nil {
			return nil, err
		}
		if counts != nil && counts.Has(key) {
			if n, err := countOf(counts, key); err != nil {
				return nil, err
			} else if n != count {
				return nil, fmt.Errorf("%s: array is %s, and %s declares %d edges; fetch both again", m.place(), m.header.String(), counts.Name(), n)
			}
		}
		s.addRelation(t[0], t[1], t[2], count, m)
		numbers[key] = i
	}
	return numbers, nil
}
