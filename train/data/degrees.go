package data

import "context"

// Degrees has the numbers of edges that lead to the nodes of a type and away from them, a column
// for each relation and direction. It reads offsets of lists: call it inside store.Guard.
type Degrees struct {
	Names []string // of columns
	of    []func(v uint32) int
}

// looksAtLists is the number of lists that NodeDegrees reads before it calls look.
const looksAtLists = 1 << 14

// NodeDegrees returns the degrees of nodes of type t. It leaves out a direction whose numbers
// another column has: the second one of a symmetric relation, and the one away from the node if the
// dataset has the relation in reverse, too. It reads the lists of the other relations that begin at
// the type once, and calls look now and then. Call it inside store.Guard, with a whole dataset.
func (d *Data) NodeDegrees(ctx context.Context, t int, look func()) (*Degrees, error) {
	x := new(Degrees)
	for i := range d.Relations {
		if r := &d.Relations[i]; r.Dst == t {
			x.Names, x.of = append(x.Names, "edges of "+r.Relation.Key()+" to it"), append(x.of, r.Degree)
		}
	}
	for _, i := range d.countedOut(t) {
		r := &d.Relations[i]
		counts, lists := make([]uint32, d.Types[t].Nodes), 0
		for v, list := range r.OwnLists {
			for _, u := range list {
				if int64(u) >= int64(len(counts)) {
					return nil, r.CorruptNeighbor(v, u)
				}
				counts[u]++
			}
			if lists++; lists%looksAtLists == 0 {
				if look(); ctx.Err() != nil {
					return nil, ctx.Err()
				}
			}
		}
		x.Names = append(x.Names, "edges of "+r.Relation.Key()+" from it")
		x.of = append(x.of, func(v uint32) int { return int(counts[v]) })
	}
	return x, nil
}

// DegreesBytes returns the memory of NodeDegrees.
func (d *Data) DegreesBytes(t int) int64 {
	return 4 * int64(d.Types[t].Nodes) * int64(len(d.countedOut(t)))
}

// DegreeColumns returns the number of columns of NodeDegrees.
func (d *Data) DegreeColumns(t int) int {
	n := len(d.countedOut(t))
	for i := range d.Relations {
		if d.Relations[i].Dst == t {
			n++
		}
	}
	return n
}

// countedOut returns the relations from type t whose edges must be counted for the numbers that
// begin at each node.
func (d *Data) countedOut(t int) (relations []int) {
	reversed := map[string]bool{} // relations that are here the other way round
	for _, r := range d.Relations {
		if r.Relation.ReverseOf != "" {
			reversed[r.Relation.ReverseOf] = true
		}
	}
	here := map[string]bool{}
	for _, r := range d.Relations {
		here[r.Relation.Key()] = true
	}
	for i, r := range d.Relations {
		if r.Src == t && !r.Relation.Symmetric && !reversed[r.Relation.Key()] && !here[r.Relation.ReverseOf] {
			relations = append(relations, i)
		}
	}
	return relations
}

// Append appends the degrees of node v to dst, a column each.
func (x *Degrees) Append(dst []int, v uint32) []int {
	for _, degree := range x.of {
		dst = append(dst, degree(v))
	}
	return dst
}
