package cachetier

import "github.com/gnnstore/gnnstore/cachetier/policy"

// set is rows that are not hot, counted from the first such. Several may refer to it.
type set struct {
	policy.Set                // nil where it is packed
	packed     *policy.Packed // nil where it is not
	users      int
}

// rows is the set, for who only reads it.
func (u *set) rows() policy.Rows {
	if u.packed != nil {
		return u.packed
	}
	return u.Set
}

// spareSets is how many sets there are at most beside those that Lookahead counts: of the group at
// hand, of two windows, of the one before them, of what the group's rest was when the first of them
// was planned, and one for a step without a plan.
const spareSets = 6

// foresee makes the sets of the next n groups.
func (s *Stack) foresee(n int) {
	for _, g := range s.groups[:min(n, len(s.groups))] {
		if g.rows == nil {
			g.rows, g.count = s.unite(g.steps)
		}
	}
}

// unite is the set of the rows of steps that are not hot, and its size.
func (s *Stack) unite(steps [][]uint32) (u *set, count int) {
	u = s.newSet()
	for _, ids := range steps {
		count += s.add(u, ids)
	}
	return u, count
}

// add puts the rows of ids that are not hot into u, and says how many were not there.
func (s *Stack) add(u *set, ids []uint32) (count int) {
	hot := uint32(s.hot)
	for _, v := range ids {
		if v >= hot && u.Add(v-hot) {
			count++
		}
	}
	return count
}

// newSet is an empty set, with one user.
func (s *Stack) newSet() *set {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.mu.unused); n > 0 {
		u := s.mu.unused[n-1]
		s.mu.unused, u.users = s.mu.unused[:n-1], 1
		u.Clear()
		return u
	}
	n := policy.SetWords(s.layout.cache.Rows)
	at := (s.mu.made - s.mu.added) * n
	s.mu.made++
	return &set{Set: s.sets.Uint64s()[at : at+n : at+n], users: 1} // past the end: more than are accounted for
}

func (s *Stack) share(u *set) *set {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.users++
	return u
}

// drop ends a use of u, which may be nil.
func (s *Stack) drop(u *set) {
	if u == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch u.users--; {
	case u.users > 0:
	case u.packed != nil:
		s.join.pages.Return(u.packed)
	default:
		s.mu.unused = append(s.mu.unused, u)
	}
}

func sets(of []*set) []policy.Rows {
	list := make([]policy.Rows, len(of))
	for i, u := range of {
		list[i] = u.rows()
	}
	return list
}
