package data

import "context"

// Degrees has the degrees of the nodes of a type: a column for each relation and direction. Append
// reads mapped offsets: call it inside store.Guard.
type Degrees struct {
	Names []string // of columns
	of    []func(v uint32) int
}

// looksAtLists is the number of lists that NodeDegrees reads before it calls look.
const looksAtLists = 1 << 14

// NodeDegrees returns the degrees of nodes of type t. It leaves out the out-degrees of a symmetric
// relation, and of a relation whose reverse the dataset has: another column has the same numbers.
// For other out-degrees it reads all lists of a relation once, and calls look now and then. Call it
// inside store.Guard, with a whole dataset.
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

// countedOut returns the relations from type t whose out-degrees must be counted from their lists.
func (d *Data) countedOut(t int) (relations []int) {
	reversed := map[string]bool{} // relations whose reverse the dataset has
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
