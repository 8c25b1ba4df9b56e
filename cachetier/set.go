package cachetier

import "github.com/gnnstore/gnnstore/cachetier/policy"

// set is a set of rows that are not hot, numbered from the first such row. Several may use it.
type set struct {
	policy.Set                // nil if packed
	packed     *policy.Packed // nil if not packed
	users      int
}

// rows returns the set for reading.
func (u *set) rows() policy.Rows {
	if u.packed != nil {
		return u.packed
	}
	return u.Set
}

// spareSets is the number of sets that may be in use beside the Lookahead sets:
//
//   - the current group
//   - two windows, and the window before them
//   - the steps of the group that were still unplanned when the first window was planned
//   - a step outside any plan
const spareSets = 6

// spare is spareSets, and with a dynamic part two more: the set of a group is made anew when it is
// known what stays on the device, and windows may still have the old one.
func (l layout) spare() int {
	if l.dynamic.Slots > 0 {
		return spareSets + 2
	}
	return spareSets
}

// foresee makes the sets of the next n groups.
func (s *Stack) foresee(n int) {
	for _, g := range s.groups[:min(n, len(s.groups))] {
		if g.rows == nil {
			g.rows, g.count = s.unite(g.steps)
		}
	}
}

// unite returns the set of the rows of steps that are not hot, and its size.
func (s *Stack) unite(steps []step) (u *set, count int) {
	u = s.newSet()
	for _, t := range steps {
		count += s.add(u, t)
	}
	return u, count
}

// add puts the rows of t that are not hot, nor in the device region, into u, and returns how many
// were not there.
func (s *Stack) add(u *set, t step) (count int) {
	hot := uint32(s.hot)
	from := max(hot, t.device)
	if t.stay == nil {
		for _, v := range t.ids {
			if v >= from { // without a branch that waits for memory
				count += u.Lacks(v - hot)
				u.Add(v - hot)
			}
		}
		return count
	}
	for k, v := range t.ids {
		if v >= from && !t.stay.at(k) && u.Add(v-hot) {
			count++
		}
	}
	return count
}

// newSet returns an empty set with one user.
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
	return &set{Set: s.sets.Uint64s()[at : at+n : at+n], users: 1} // out of range: more sets than were counted
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
