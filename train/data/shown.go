package data

import "math/bits"

// Shown holds the labels that a network may see, if its input is labels: the classes of the
// training nodes that are not hidden. One goroutine at a time. It reads the dataset when it is
// made, and then no more.
type Shown struct {
	train   []uint64 // a bit for each node of the target
	before  []uint32 // by word of train: how many training nodes come before it
	first   []uint64 // by training node, where its classes begin; nil where each has one
	classes []uint32
	hidden  []uint64 // a bit for each training node
	hiding  []uint32 // the hidden ones
}

// Shown returns the labels of the training nodes. None is hidden yet.
func (d *Data) Shown() (*Shown, error) {
	words := (d.Types[d.Target].Nodes + 63) / 64
	s := &Shown{train: make([]uint64, words), before: make([]uint32, words), hidden: make([]uint64, (len(d.Train)+63)/64)}
	for _, v := range d.Train {
		s.train[v/64] |= 1 << (v % 64)
	}
	n := 0
	for w, set := range s.train {
		s.before[w] = uint32(n)
		n += bits.OnesCount64(set)
	}
	if !d.Labels.Label.Multi {
		var err error
		s.classes, err = d.Classes(make([]uint32, 0, len(d.Train)), d.Train)
		return s, err
	}
	var row []float32
	for i := range d.Train {
		var err error
		if row, _, err = d.Targets(row[:0], d.Train[i:i+1]); err != nil {
			return nil, err
		}
		s.first = append(s.first, uint64(len(s.classes)))
		for c, bit := range row {
			if bit == 1 {
				s.classes = append(s.classes, uint32(c))
			}
		}
	}
	s.first = append(s.first, uint64(len(s.classes)))
	return s, nil
}

// number returns v's place among the training nodes, in ascending order; ok is false for others.
func (s *Shown) number(v uint32) (n uint32, ok bool) {
	word, bit := s.train[v/64], uint64(1)<<(v%64)
	return s.before[v/64] + uint32(bits.OnesCount64(word&(bit-1))), word&bit != 0
}

// Classes returns the classes of node v of the target: none where it is no training node, or
// hidden. The slice is borrowed.
func (s *Shown) Classes(v uint32) []uint32 {
	n, ok := s.number(v)
	if !ok || s.hidden[n/64]>>(n%64)&1 != 0 {
		return nil
	}
	if s.first == nil {
		return s.classes[n : n+1 : n+1]
	}
	return s.classes[s.first[n]:s.first[n+1]:s.first[n+1]]
}

// Hide hides the labels of nodes of the target, until Show.
func (s *Shown) Hide(nodes []uint32) {
	for _, v := range nodes {
		if n, ok := s.number(v); ok {
			s.hidden[n/64] |= 1 << (n % 64)
			s.hiding = append(s.hiding, n)
		}
	}
}

// Show ends all hiding.
func (s *Shown) Show() {
	for _, n := range s.hiding {
		s.hidden[n/64] = 0
	}
	s.hiding = s.hiding[:0]
}

// Bytes returns the memory that s takes.
func (s *Shown) Bytes() int64 {
	return 8*int64(len(s.train)+len(s.hidden)+cap(s.first)) + 4*int64(len(s.before)+cap(s.classes))
}
