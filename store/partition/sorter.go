package partition

import "slices"

// sorter renumbers neighbour lists, which ascend.
type sorter struct {
	places []uint64 // of a list: the id of a neighbour << 32 | its place before
	list   []uint32
	values [][]byte
}

// sort returns list with the neighbours' new ids, ascending, and puts the values of its edges in
// the same order. Neighbours with one id stay in their order. The results are valid until the next
// call.
func (s *sorter) sort(ids, list []uint32, values [][]byte) []uint32 {
	s.places, s.list = s.places[:0], s.list[:0]
	for i, u := range list {
		s.places = append(s.places, uint64(ids[u])<<32|uint64(i))
	}
	slices.Sort(s.places)
	for _, p := range s.places {
		s.list = append(s.list, uint32(p>>32))
	}
	for len(s.values) < len(values) {
		s.values = append(s.values, nil)
	}
	for c, before := range values {
		after := s.values[c][:0]
		if len(list) > 0 {
			size := len(before) / len(list)
			for _, p := range s.places {
				at := int(uint32(p)) * size
				after = append(after, before[at:at+size]...)
			}
		}
		s.values[c], values[c] = after, after
	}
	return s.list
}
