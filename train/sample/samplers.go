package sample

import (
	"cmp"
	"context"
)

// Kind names a way to choose neighbours.
type Kind string

const (
	// NS is neighbour sampling without replacement (GraphSAGE): of a node with d in-neighbours
	// min(k, d), each set equally likely, nodes independent of each other.
	NS Kind = "ns"
	// Labor0 is LABOR-0 (Balin and Çatalyürek, NeurIPS 2023, section 3.2): every vertex t has one
	// number r_t a layer, and s keeps its min(k, d) neighbours of the smallest (sequential Poisson
	// sampling, appendix A.3), or with Config.Poisson those with r_t ≤ k/d. Nodes that share
	// neighbours so keep the same ones. Parallel edges have one number, their source's, and mostly
	// stay or go together: GCN's sums are then unbiased under Poisson only.
	Labor0 Kind = "labor0"
	// LaborStar is LABOR-*: t is kept by s when r_t ≤ c_s·π_t, π being what makes the expected
	// number of different sources smallest at the variance that NS has (equations 11 to 16 there,
	// iterated to convergence). The number that a node keeps varies. It needs the lists of all
	// destinations at a time, of all relations from one type, up to 48 bytes a neighbour; others
	// need a part of one list. Since π depends on all destinations of a batch, batches that share
	// random numbers do not draw the same edges. With NS and Labor0 a batch alone draws a part of
	// what it draws together with others; with LaborStar it need not.
	LaborStar Kind = "labor-star"
	// RW is PinSAGE's (Ying et al., KDD 2018, section 3.1): of the nodes that random walks from s
	// visit, the k that are visited most often.
	RW Kind = "rw"
)

// sampler describes a Kind. A further one is a constant above, an entry of samplers and of Kinds,
// and a file if it draws in a way of its own.
type sampler struct {
	kind     Kind
	vertices bool // random numbers belong to vertices, else to places in lists
	walks    bool // it visits nodes: it draws no edges, and knows no probabilities
	poisson  bool // it goes with Config.Poisson
	weighted bool // it goes with Config.Weighted
	varies   bool // the number of neighbours that a node keeps varies
	weighs   bool // neighbours have different weights
	most     int  // a node keeps at most this many times its fanout
	// own draws all destinations of a hop together. Default: from one list at a time.
	own *ownDraws
}

// ownDraws draws all destinations of a hop together.
type ownDraws struct {
	together bool // relations from one type are drawn at once
	whole    bool // it keeps whole lists that are not resident
	// draw fills the blocks of jobs, n of each relation.
	draw func(s *Sampler, ctx context.Context, jobs []job, n int) error
	// serve takes from part the neighbours that list n of j wants. The list has degree neighbours,
	// and part begins at neighbour from.
	serve func(j *job, n, degree, from int, part []uint32)
	// bytes returns the memory of a batch for these destinations of r at a hop, as Sampler.Bytes
	// counts it.
	bytes func(s *Sampler, r *relation, dst []uint32) int64
	// scratch returns the memory to draw for destinations dst of r, with together relations drawn
	// together: bytes of a batch, neighbours in its lists, and bytes of a drawer.
	scratch func(s *Sampler, r *relation, dst []uint32, together int) (batch, lists, joined int64)
}

// samplers has every Kind once. init fills it, since its functions read it.
var samplers []sampler

// Kinds lists the samplers there are.
var Kinds = []Kind{NS, Labor0, LaborStar, RW}

func init() {
	samplers = []sampler{
		{kind: NS, most: 1, weighted: true},
		{kind: Labor0, most: 1, vertices: true, poisson: true},
		{kind: LaborStar, most: starRoom, vertices: true, varies: true, weighs: true, own: wholeLists},
		{kind: RW, most: 1, walks: true, varies: true, weighs: true, own: walking},
	}
}

// known returns k's entry of the table, or nil. The empty Kind is NS.
func (k Kind) known() *sampler {
	for i := range samplers {
		if samplers[i].kind == cmp.Or(k, NS) {
			return &samplers[i]
		}
	}
	return nil
}

// Walks reports whether k visits nodes by random walks. It then draws no edges.
func (k Kind) Walks() bool {
	s := k.known()
	return s != nil && s.walks
}

// TakesPoisson reports whether k goes with Config.Poisson.
func (k Kind) TakesPoisson() bool {
	s := k.known()
	return s != nil && s.poisson
}

// how returns the entry of c's kind.
func (c *Config) how() *sampler {
	if c.sampler == nil {
		return c.Kind.known()
	}
	return c.sampler
}
