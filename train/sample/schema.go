package sample

import (
	"fmt"
	"slices"
)

// Schema lists the types of nodes, and the relations between types. Types and relations go by their
// number. Ids of nodes are local to their type.
type Schema struct {
	Types     []int // number of nodes of each type
	Relations []Relation
}

// Relation goes from nodes of type Src to nodes of type Dst: Dst's nodes have lists of Src's.
type Relation struct{ Src, Dst int }

// OneType returns the schema of a graph with one type of nodes, and one relation within it.
func OneType(nodes int) Schema { return Schema{Types: []int{nodes}, Relations: []Relation{{}}} }

// within reports whether there is just one relation, and it goes from a type to itself.
func (s Schema) within() bool {
	return len(s.Relations) == 1 && s.Relations[0].Src == s.Relations[0].Dst
}

// Fits returns nil if c can draw from a graph of schema s, else an error that says why not.
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

// Reach lists the types and relations that batches can hold, if their seeds are of some types. A
// network needs to know these and no others.
type Reach struct {
	// Types[l][t] is true if layer l reads rows of nodes of type t. Types has one element more than
	// there are layers: the last has the types of the seeds.
	Types [][]bool
	// Relations[l][r] is true if layer l draws from relation r: it leads to nodes that the layer
	// makes, and its fanout is not 0.
	Relations [][]bool
}

// Reach returns the Reach of batches that c draws for seeds of these types.
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

// Drawn marks the relations that any layer draws from.
func (r Reach) Drawn() []bool {
	drawn := make([]bool, len(r.Relations[0]))
	for _, layer := range r.Relations {
		for i, is := range layer {
			drawn[i] = drawn[i] || is
		}
	}
	return drawn
}
