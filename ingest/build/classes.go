package build

import (
	"fmt"
	"math/bits"
	"strconv"

	"github.com/gnnstore/gnnstore/ingest"
)

// maxInferredClass bounds the labels where the source declares no number of classes: else one stray
// id among them would make a model of any size.
const maxInferredClass = 1 << 20

// maxNamed bounds the classes that keep their numbers as names.
const maxNamed = 1 << 16

// classSet collects the different classes of a label, and counts the nodes that have one.
type classSet struct {
	bits            []uint64
	different, seen int
}

func (s *classSet) add(class int32) {
	if class < 0 {
		return
	}
	s.seen++
	for int(class/64) >= len(s.bits) {
		s.bits = append(s.bits, make([]uint64, len(s.bits)+1)...)
	}
	if bit := uint64(1) << (class % 64); s.bits[class/64]&bit == 0 {
		s.bits[class/64] |= bit
		s.different++
	}
}

// classes are the numbers of a label as the dataset has them.
type classes struct {
	n     int
	names []string
	to    []int32 // by the label as read; nil: as it is
}

// settle makes classes of the labels of rows nodes. Those whose number the source does not declare
// are numbered in ascending order where they do not count from 0 already, and keep their numbers as
// names.
func (s *classSet) settle(l *ingest.Label, rows int) (*classes, error) {
	inferred := l.Classes == 0 && len(l.ClassNames) == 0
	if s.ids(inferred, rows) {
		return nil, fmt.Errorf("label %s: %d different labels on %d nodes look like ids, not classes; name the column or array that has the classes ({label}, "+
			"{array_labels}, or label in a schema)", l.Name, s.different, s.seen)
	}
	most := 0
	for i, word := range s.bits {
		if word != 0 {
			most = 64*i + bits.Len64(word)
		}
	}
	c := &classes{n: l.Classes, names: l.ClassNames}
	switch {
	case l.Classes > 0:
		return c, nil
	case !inferred:
		c.n = max(most, len(l.ClassNames))
		return c, nil
	}
	if c.n = s.different; most == c.n {
		return c, nil
	}
	if c.n > maxNamed {
		return nil, fmt.Errorf("label %s: %d different labels up to %d, and %d are the most that do not count from 0; number them from 0",
			l.Name, c.n, most-1, maxNamed)
	}
	c.to = make([]int32, most)
	for class := range c.to {
		if s.bits[class/64]>>(class%64)&1 != 0 {
			c.to[class] = int32(len(c.names))
			c.names = append(c.names, strconv.Itoa(class))
		}
	}
	return c, nil
}

// ids reports whether labels look like ids: no two of them are the same, or most are not, and most
// nodes have one.
func (s *classSet) ids(inferred bool, rows int) bool {
	const few = 10 // nodes of a graph that may have a class each
	if 2*s.seen <= rows || s.different < few {
		return false
	}
	return s.different == s.seen || inferred && s.different > 100 && 2*s.different > s.seen
}

// of is the class of a label that was read, -1 where it is missing.
func (c *classes) of(label int32) int32 {
	if label < 0 || c.to == nil {
		return label
	}
	return c.to[label]
}
