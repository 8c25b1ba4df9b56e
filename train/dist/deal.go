package dist

import "slices"

// Deal reorders the nodes of a step so that each worker's Share has as many of its own nodes as
// fit. The rest of a share is filled with nodes whose owners' shares are full. Within both groups
// nodes keep their order.
func Deal(nodes []uint32, workers int, owner func(v uint32) int) {
	next, end := make([]int, workers), make([]int, workers)
	for p := range workers {
		next[p], end[p] = Share(len(nodes), p, workers)
	}
	var others []uint32
	for _, v := range slices.Clone(nodes) {
		if p := owner(v); next[p] < end[p] {
			nodes[next[p]] = v
			next[p]++
		} else {
			others = append(others, v)
		}
	}
	p := 0
	for _, v := range others {
		for next[p] == end[p] {
			p++
		}
		nodes[next[p]] = v
		next[p]++
	}
}
