package history

import (
	"math"
	"math/bits"
)

// Heat parts the nodes of a type in classes of nodes that are about as hot, the hottest first.
type Heat struct {
	nodes []int // of each class
	class func(v uint32) int
	first func(n int) func(v uint32) bool
	below bool // the first n nodes are the numbers below n
}

// HeatOf returns the heat of nodes, or nil without any. If the dataset is ordered, the hottest
// nodes have the smallest numbers. Else they have the largest degrees.
func HeatOf(nodes int, ordered bool, degree func(v uint32) int) *Heat {
	switch {
	case nodes == 0:
		return nil
	case ordered:
		return byNumber(nodes)
	}
	return byDegree(nodes, degree)
}

func byNumber(nodes int) *Heat {
	h := &Heat{class: numberClass, first: Prefix, below: true}
	for lo := 0; lo < nodes; {
		hi := min(nodes, numberClassEnd(len(h.nodes)))
		h.nodes, lo = append(h.nodes, hi-lo), hi
	}
	return h
}

// byDegree has a class for each doubling.
func byDegree(nodes int, degree func(v uint32) int) *Heat {
	class := func(v uint32) int { return 64 - bits.Len(uint(degree(v))) }
	h := &Heat{nodes: make([]int, 65), class: class}
	for v := range nodes {
		h.nodes[class(uint32(v))]++
	}
	h.first = func(n int) func(v uint32) bool {
		last := 0
		for n > 0 {
			n -= h.nodes[last]
			last++
		}
		return func(v uint32) bool { return class(v) < last }
	}
	return h
}

// First returns a function that reports whether a node is among the n hottest, or in the class of
// the last of them.
func (h *Heat) First(n int) func(v uint32) bool { return h.first(n) }

// Classes of numbers end at 64 and then, four to each doubling, at about 64·2^(i/4).
func numberClassEnd(class int) int { return int(64 * math.Exp2(float64(class)/4)) }

func numberClass(v uint32) int {
	class := max(0, int(4*math.Log2(float64(v+1)/64))-1)
	for int64(numberClassEnd(class)) <= int64(v) {
		class++
	}
	return class
}
