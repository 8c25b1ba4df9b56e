package sample

import (
	"fmt"
	"slices"
)

// Schema says which types of nodes there are, and which relations go from type to type. Types and
// relations are known by their number. Ids of nodes are local to their type.
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
	if n := len(c.OfRelation); n > 0 && n != len(s.Relations) {
		return fmt.Errorf("fanouts of %d relations, and there are %d", n, len(s.Relations))
	}
	for i, fanouts := range c.OfRelation {
		if fanouts != nil && len(fanouts) != len(c.Fanouts) {
			return fmt.Errorf("relation %d has %d fanouts, and there are %d hops", i, len(fanouts), len(c.Fanouts))
		}
	}
	if s.within() {
		return nil
	}
	why := fmt.Sprintf("needs one relation within a type, and the graph has %d types and %d relations", len(s.Types), len(s.Relations))
	switch {
	case c.Kind.Walks():
		return fmt.Errorf("{sampler} %s %s; take ns, labor0 or labor-star", c.Kind, why)
	case c.GCN:
		return fmt.Errorf("{model} gcn %s; take a network for typed graphs", why)
	case c.SelfLoops:
		return fmt.Errorf("a network with self loops %s; take one for typed graphs", why)
	}
	return nil
}

// Reach is what batches can hold whose seeds are of some types: what a network for them has to
// know, and no more.
type Reach struct {
	// Types[l][t] says whether layer l reads rows of nodes of type t. It has an element more than
	// there are layers: the last says which types the seeds are of.
	Types [][]bool
	// Relations[l][r] says whether layer l draws from relation r: it leads to nodes that the layer
	// makes, and its fanout is not 0.
	Relations [][]bool
}

// Reach is that of batches drawn as c says, for seeds of types.
func (c Config) Reach(s Schema, types ...int) Reach {
	layers := len(c.Fanouts)
	r := Reach{Types: make([][]bool, layers+1), Relations: make([][]bool, layers)}
	r.Types[layers] = make([]bool, len(s.Types))
	for _, t := range types {
		r.Types[layers][t] = true
	}
	for l := layers - 1; l >= 0; l-- {
		made := r.Types[l+1]
		r.Types[l], r.Relations[l] = slices.Clone(made), make([]bool, len(s.Relations))
		for i, ends := range s.Relations {
			if made[ends.Dst] && c.FanoutOf(layers-1-l, i) != 0 {
				r.Relations[l][i], r.Types[l][ends.Src] = true, true
			}
		}
	}
	return r
}

// Drawn says which relations any layer draws from.
func (r Reach) Drawn() []bool {
	drawn := make([]bool, len(r.Relations[0]))
	for _, layer := range r.Relations {
		for i, is := range layer {
			drawn[i] = drawn[i] || is
		}
	}
	return drawn
}
