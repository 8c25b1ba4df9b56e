package sample

import (
	"fmt"
	"math"
	"slices"
)

// Topology is what a Sampler reads; a store.Graph is one.
type Topology interface {
	// Nodes is the number of nodes: ids are below it.
	Nodes() int
	// Neighbors returns v's in-neighbours, ascending; the slice is only read, and not kept.
	Neighbors(v uint32) []uint32
}

// All as a fanout means every neighbour.
const All = -1

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
	// Weights fills Block.Weight, and needs SelfLoops. The weight of the edge from u to v is 1/√(d̂(u)·d̂(v)), where d̂
	// is the in-degree in the whole topology without self loops, plus 1: gcn_norm of PyTorch Geometric, which looks at
	// the in-degree of both ends, so that on a directed graph it is not the source's out-degree that counts. Weights of
	// drawn neighbours are multiplied by the inverse of their inclusion probability, d/min(k, d), so that the expected
	// sum is that of all neighbours; the self loop is always there and needs no factor. Counting the self loops of
	// sources reads their neighbour lists.
	Weights bool
	// RevEdges fills Block.RevEdge, for networks whose edges have values.
	RevEdges bool
	// RevInput reverses the input layer as well, for networks that transform its rows before they sum them.
	RevInput bool
}

// Sampler draws neighbourhoods without replacement (GraphSAGE's neighbour sampling): of a node with d in-neighbours,
// min(k, d) of them, each set equally likely.
type Sampler struct {
	topo    Topology
	nodes   int
	fanouts []int
	Options
	index  index
	picked index // of Floyd's algorithm, when k is large

	// For weights: of each destination, how many neighbours stand behind a drawn one, and of each source, 1/√d̂.
	factor, norm []float64
}

// NewSampler draws from topo with fanouts[h] neighbours at hop h from the seeds: fanouts[0] belongs to the last layer.
// A fanout is at least 0, or All.
func NewSampler(topo Topology, fanouts []int, o Options) *Sampler {
	if o.Weights && !o.SelfLoops {
		panic("sample: Weights without SelfLoops")
	}
	for _, k := range fanouts {
		if k < All {
			panic(fmt.Sprintf("sample: fanout %d", k))
		}
	}
	return &Sampler{topo: topo, nodes: topo.Nodes(), fanouts: fanouts, Options: o}
}

// Sample fills b with the blocks of seeds, which must differ from each other. The draws depend on z, the layer (1 reads
// features, len(fanouts) produces the seeds) and the node. The error is a *NeighborError; b is undefined then.
func (s *Sampler) Sample(b *Batch, z uint64, seeds []uint32) error {
	b.Seeds = append(b.Seeds[:0], seeds...)
	if len(b.Blocks) != len(s.fanouts) {
		b.Blocks = make([]Block, len(s.fanouts))
	}
	dst := b.Seeds
	for hop, k := range s.fanouts {
		layer := len(s.fanouts) - hop
		block := &b.Blocks[layer-1]
		if err := s.expand(block, Hash(z, uint64(layer)), dst, k); err != nil {
			return err
		}
		block.RevStart, block.RevDst, block.RevEdge = block.RevStart[:0], block.RevDst[:0], block.RevEdge[:0]
		if layer > 1 || s.RevInput {
			block.reverse(s.RevEdges)
		}
		dst = block.Src
	}
	return nil
}

// expand fills b with up to k neighbours of each node of dst.
func (s *Sampler) expand(b *Block, zl uint64, dst []uint32, k int) error {
	s.index.reset(2 * len(dst))
	b.Dst = len(dst)
	b.Src = append(b.Src[:0], dst...)
	for _, v := range dst {
		s.index.add(v)
	}
	b.Start, b.End, b.Nbr = resize(b.Start, len(dst)), resize(b.End, len(dst)), b.Nbr[:0]
	s.factor = resize(s.factor, len(dst))
	var lists [ahead][]uint32
	for i, v := range dst {
		if i%ahead == 0 {
			s.near(&lists, dst[i:min(i+ahead, len(dst))])
		}
		list := lists[i%ahead]
		b.Start[i] = uint32(len(b.Nbr))
		if k == All || k >= len(list) {
			b.Nbr = append(b.Nbr, list...)
		} else {
			b.Nbr = s.choose(b.Nbr, list, k, mix(zl^mix(uint64(v)+golden)))
		}
		if s.SelfLoops {
			drawn := b.Nbr[b.Start[i]:]
			s.factor[i] = float64(len(list)) / float64(max(len(drawn), 1))
			others := slices.DeleteFunc(drawn, func(u uint32) bool { return u == v })
			b.Nbr = append(b.Nbr[:int(b.Start[i])+len(others)], v)
		}
		if uint64(len(b.Nbr)) > math.MaxUint32 {
			panic("sample: more than 4,294,967,295 edges in a block; use a smaller batch or fanout")
		}
		b.End[i] = uint32(len(b.Nbr))
	}
	// A second pass gives positions, so that the lists above were read without probing in between.
	for e, u := range b.Nbr {
		if e%ahead == 0 {
			s.index.touch(b.Nbr[e:min(e+ahead, len(b.Nbr))])
		}
		if int64(u) >= int64(s.nodes) {
			i, _ := slices.BinarySearch(b.End, uint32(e)+1)
			return &NeighborError{dst[i], u, s.nodes}
		}
		pos, isNew := s.index.add(u)
		if isNew {
			b.Src = append(b.Src, u)
		}
		b.Nbr[e] = pos
	}
	b.Weight = b.Weight[:0]
	if s.Weights {
		s.weigh(b)
	}
	return nil
}

// ahead is how many list heads, and then how many places in the index, are read before the first of them is used: these
// reads are cache misses that do not wait for each other, and a processor has ten or more under way at a time.
const ahead = 16

// near sets lists to those of at most ahead nodes, and reads both ends of each.
func (s *Sampler) near(lists *[ahead][]uint32, nodes []uint32) {
	for i, v := range nodes {
		lists[i] = s.topo.Neighbors(v)
	}
	for _, list := range lists[:len(nodes)] {
		if n := len(list); n > 0 {
			s.index.touched += list[0] + list[n-1]
		}
	}
}

// weigh fills b.Weight as Options.Weights says.
func (s *Sampler) weigh(b *Block) {
	s.norm = resize(s.norm, len(b.Src))
	for p, u := range b.Src {
		list := s.topo.Neighbors(u)
		s.norm[p] = 1 / math.Sqrt(float64(len(list)-selfLoops(list, u)+1))
	}
	b.Weight = resize(b.Weight, len(b.Nbr))
	for i := range b.Dst {
		self, norm := b.End[i]-1, s.norm[i]
		for e := b.Start[i]; e < self; e++ {
			b.Weight[e] = float32(s.factor[i] * norm * s.norm[b.Nbr[e]])
		}
		b.Weight[self] = float32(norm * norm)
	}
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

// choose appends k of list, k < len(list), by Floyd's algorithm (Bentley and Floyd 1987): k draws, and every k-subset
// of positions is equally likely.
func (s *Sampler) choose(out, list []uint32, k int, key uint64) []uint32 {
	d := len(list)
	if k > 32 { // below, comparing with all earlier picks beats a table
		s.picked.reset(k)
		for j := d - k; j < d; j++ {
			t := draw(key, j-(d-k), j+1)
			if _, isNew := s.picked.add(uint32(t)); !isNew {
				t = j
				s.picked.add(uint32(t))
			}
			out = append(out, list[t])
		}
		return out
	}
	var picks [32]uint32
	for n := range k {
		j := d - k + n
		t := uint32(draw(key, n, j+1))
		for _, p := range picks[:n] {
			if p == t {
				t = uint32(j)
				break
			}
		}
		picks[n] = t
		out = append(out, list[t])
	}
	return out
}
