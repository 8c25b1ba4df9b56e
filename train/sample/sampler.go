package sample

import (
	"fmt"
	"slices"
)

// Topology is what a Sampler reads; a store.Graph is one.
type Topology interface {
	// Nodes is the number of nodes: ids are below it.
	Nodes() int
	// Neighbors returns v's in-neighbours, ascending; the slice is only read, and not kept.
	Neighbors(v uint32) []uint32
}

// WeightedTopology is a Topology whose edges have weights.
type WeightedTopology interface {
	Topology
	// Weights returns those of v's edges, in the order of Neighbors; the slice is only read, and not kept.
	Weights(v uint32) []float32
}

// NeighborError is a topology that names a node it does not have.
type NeighborError struct {
	Node, Neighbor uint32
	Nodes          int
}

func (e *NeighborError) Error() string {
	return fmt.Sprintf("node %d has neighbour %d, and there are %d nodes", e.Node, e.Neighbor, e.Nodes)
}

// Options says what blocks hold beyond the neighbours that are drawn; the draws are the same under all of them. The
// zero value adds nothing.
type Options struct {
	// SelfLoops makes every destination its own neighbour exactly once, as the last of its list. A self loop that the
	// topology has is drawn like any other neighbour, takes its place among the fanout, and is then dropped for this
	// one: of a node with d in-neighbours, c of them itself, min(k, d) are drawn and between min(k, d)-c and min(k, d)
	// stay.
	SelfLoops bool
	// GCN fills Block.Weight with the weights of GCN's sum, and needs SelfLoops. The weight of the edge from u to v is
	// 1/√(d̂(u)·d̂(v)), where d̂ is the in-degree in the whole topology without self loops, plus 1: gcn_norm of PyTorch
	// Geometric, which looks at the in-degree of both ends, so that on a directed graph it is not the source's out-degree
	// that counts. Weights of drawn neighbours are multiplied by the inverse of their inclusion probability, which is
	// d/min(k, d) but under LABOR-*, so that the expected sum is that of all neighbours; the self loop is always there and
	// needs no factor. Counting the self loops of sources reads their neighbour lists.
	GCN bool
	// RevEdges fills Block.RevEdge even where edges have no weights, for networks that give them values.
	RevEdges bool
	// RevInput reverses the input layer as well, for networks that transform its rows before they sum them.
	RevInput bool
}

// Sampler draws the batches that a Config asks for, one at a time, from a topology of which all is at hand.
type Sampler struct {
	drawer
	topo    Topology
	walkers walkers
}

// NewSampler draws from topo, which is a WeightedTopology where Config.Weighted wants weights. A Config that is not valid
// panics.
func NewSampler(topo Topology, c Config) *Sampler {
	s := &Sampler{drawer: newDrawer(topo.Nodes(), c), topo: topo}
	s.near = func(near *[ahead]list, nodes []uint32) {
		for i, v := range nodes {
			ids := topo.Neighbors(v)
			near[i] = list{ids: ids, degree: len(ids)}
		}
	}
	if c.Weighted {
		lists, weighted := s.near, topo.(WeightedTopology)
		s.near = func(near *[ahead]list, nodes []uint32) {
			lists(near, nodes)
			for i, v := range nodes {
				near[i].weights = weighted.Weights(v)
			}
		}
	}
	s.degree = func(v uint32) (degree, selves int) {
		list := topo.Neighbors(v)
		return len(list), selfLoops(list, v)
	}
	return s
}

// Sample fills b with the blocks of seeds, which must differ from each other. The draws depend on z, the layer (1 reads
// features, len(Fanouts) produces the seeds) and the nodes. The error is a *NeighborError or a *WeightError; b is undefined
// then.
func (s *Sampler) Sample(b *Batch, z Z, seeds []uint32) error {
	s.begin(b, seeds)
	for hop := range s.Fanouts {
		block, dst := s.block(b, hop)
		draws := s.draws(z, hop)
		if err := s.draw(block, dst, &draws); err != nil {
			return err
		}
		if err := s.finish(b, hop); err != nil {
			return err
		}
	}
	return nil
}

// draw fills b with neighbours of dst.
func (s *Sampler) draw(b *Block, dst []uint32, draws *draws) error {
	switch {
	case draws.fanout == 0: // nobody walks, and there is nothing to solve
	case s.Kind == RW:
		s.walkers.begin(s.Walk, draws, dst)
		for range s.Walk.Length {
			s.fillWalk(&s.walkers)
			if err := s.walkers.next(s.nodes); err != nil {
				return err
			}
		}
		s.fillVisits(b, &s.walkers, draws.fanout)
		return nil
	case s.Kind == LaborStar:
		s.star.lists = s.appendLists(s.star.lists[:0], dst)
		s.fillStar(b, dst, draws)
		return nil
	}
	_, _, err := s.fill(b, dst, draws)
	return err
}

// selfLoops counts u in its own list.
func selfLoops(list []uint32, u uint32) int {
	lo, _ := slices.BinarySearch(list, u)
	n := 0
	for _, w := range list[lo:] {
		if w != u {
			break
		}
		n++
	}
	return n
}
