package sample

import "fmt"

// Schema says which types of nodes there are, and which relations go from type to type. Types and relations are known by their
// number. Ids of nodes are local to their type.
type Schema struct {
	Types     []int // how many nodes each type has
	Relations []Relation
}

// Relation goes from nodes of type Src to nodes of type Dst: Dst's nodes have lists of Src's.
type Relation struct{ Src, Dst int }

// OneType is a graph of one type of nodes, and one relation within it.
func OneType(nodes int) Schema { return Schema{Types: []int{nodes}, Relations: []Relation{{}}} }

// within says whether there is one relation alone, which goes from a type to itself.
func (s Schema) within() bool {
	return len(s.Relations) == 1 && s.Relations[0].Src == s.Relations[0].Dst
}

// Fits says why batches cannot be drawn from a graph of schema s as c says, or nil.
func (c Config) Fits(s Schema) error {
	for i, r := range s.Relations {
		if min(r.Src, r.Dst) < 0 || max(r.Src, r.Dst) >= len(s.Types) {
			return fmt.Errorf("relation %d goes from type %d to type %d, and there are %d types", i, r.Src, r.Dst, len(s.Types))
		}
	}
	if s.within() {
		return nil
	}
	why := fmt.Sprintf("needs one relation within a type, and the graph has %d types and %d relations", len(s.Types), len(s.Relations))
	switch {
	case c.Kind == RW:
		return fmt.Errorf("{sampler} rw %s; take ns, labor0 or labor-star", why)
	case c.GCN:
		return fmt.Errorf("{model} gcn %s; take a network for typed graphs", why)
	case c.SelfLoops:
		return fmt.Errorf("a network with self loops %s; take one for typed graphs", why)
	}
	return nil
}
