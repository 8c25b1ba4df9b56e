package sample

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// All as a fanout means every neighbour.
const All = -1

// Walk configures RW. Each destination starts Walks walks of Length steps. A step returns to the
// destination with probability Restart.
type Walk struct {
	Length  int     `json:"walk_length"`
	Walks   int     `json:"walks"`
	Restart float64 `json:"walk_restart"`
}

// DefaultWalk visits some twenty nodes: twice as many as usual fanouts choose from them.
var DefaultWalk = Walk{Length: 3, Walks: 10, Restart: 0.5}

// Config configures how neighbours are drawn, and the contents of blocks. The zero Kind is NS.
type Config struct {
	Kind Kind
	// Fanouts[h] is the number of neighbours drawn at hop h from the seeds, All for every one;
	// Fanouts[0] belongs to the last layer. 0 draws none.
	Fanouts []int
	// OfRelation[r] are the fanouts of relation r, hop by hop, nil where Fanouts hold for it.
	// OfRelation has an element for each relation, or is empty.
	OfRelation [][]int
	// LayerDependency makes a vertex draw the same at every layer: hashes leave out the layer.
	LayerDependency bool
	// Poisson makes LABOR-0 keep t when r_t ≤ k/d, as in the paper, so the number that is kept
	// varies.
	Poisson bool
	// Smoothed draws from numbers that drift from one seed of a BatchSeed to the next. RW cannot.
	Smoothed bool
	// Weighted draws neighbours of NS in proportion to the weights of their edges, which the
	// topology must have.
	Weighted bool
	Walk     Walk // of RW
	Options

	sampler *sampler // of Kind, once filled
}

// Options add to blocks beyond the neighbours that are drawn; the draws are the same under all of
// them. The zero value adds nothing.
type Options struct {
	// NoBlocks makes batches of nodes alone, without a block for each relation: for networks that
	// read no neighbours. Then all fanouts are 0, and nothing else of Options is set.
	NoBlocks bool
	// SelfLoops makes every destination its own neighbour exactly once, as the last of its list. A
	// self loop that the topology has is drawn like any other neighbour, takes its place among the
	// fanout, and is then dropped for this one: of a node with d in-neighbours, c of them itself,
	// min(k, d) are drawn and between min(k, d)-c and min(k, d) stay.
	SelfLoops bool
	// GCN fills Block.Weight with the weights of GCN's sum, and needs SelfLoops. The weight of the
	// edge from u to v is 1/√(d̂(u)·d̂(v)), where d̂ is the in-degree in the whole topology without
	// self loops, plus 1: gcn_norm of PyTorch Geometric, which looks at the in-degree of both ends,
	// so that on a directed graph it is not the source's out-degree that counts. Weights of drawn
	// neighbours are multiplied by the inverse of their inclusion probability, which is d/min(k, d)
	// but under LABOR-*, so the expected sum equals the sum over all neighbours; the self loop is
	// always there and needs no factor. Counting the self loops of sources reads their neighbour
	// lists.
	GCN bool
	// RevEdges fills Block.RevEdge even where edges have no weights, for networks that give them
	// values.
	RevEdges bool
	// RevInput reverses the input layer as well, for networks that transform its rows before they
	// sum them. RevTypes[t] reverses only relations from type t, for types whose rows gradients
	// flow to.
	RevInput bool
	RevTypes []bool
}

// reversesInput reports whether the input layer has its reverse for relations from type src.
func (o *Options) reversesInput(src int) bool {
	return o.RevInput || src < len(o.RevTypes) && o.RevTypes[src]
}

// Validate reports every problem. It names options by the keys that they have in package run.
func (c Config) Validate() error {
	var errs Problems
	fail := errs.If
	how := c.Kind.known()
	if how == nil {
		fail(true, "{sampler} %s: there are %s", c.Kind, Names(Kinds))
		how = &sampler{}
	}
	for _, fanouts := range append([][]int{c.Fanouts}, c.OfRelation...) {
		for _, k := range fanouts {
			fail(k < All || k > math.MaxInt32, "{fanout} %d: at least 0, or -1 for every neighbour", k)
			fail(k == All && how.walks, "{fanout} -1: {sampler} %s needs a number of neighbours, since walks never end by themselves", c.Kind)
		}
	}
	fail(c.Poisson && !how.poisson, "{poisson} goes with {sampler} labor0")
	fail(c.Smoothed && how.walks, "{dependent} smoothed: walks have no numbers that drift; {sampler} %s takes {dependent} nested", c.Kind)
	fail(c.Weighted && !how.weighted, "{weighted} goes with {sampler} ns")
	if how.walks {
		w := c.Walk
		fail(w.Length < 1 || w.Length > 1<<10, "{walk_length} %d: from 1 to %d", w.Length, 1<<10)
		fail(w.Walks < 1 || w.Walks > 1<<16, "{walks} %d: from 1 to %d", w.Walks, 1<<16)
		fail(!(w.Restart >= 0 && w.Restart < 1), "{walk_restart} %v: at least 0 and below 1", w.Restart)
	}
	fail(c.NoBlocks && (c.SelfLoops || c.drawsAny()), "batches without blocks have no neighbours")
	fail(c.GCN && !c.SelfLoops, "GCN's weights go with self loops")
	fail(c.GCN && how.walks, "{model} gcn needs the probabilities of neighbours, which {sampler} %s does not know; take sage or gat", c.Kind)
	fail(c.GCN && c.Weighted, "{weighted}: {model} gcn takes its weights from degrees; take sage or gat")
	return errors.Join(errs...)
}

// drawsAny reports whether a fanout is not 0.
func (c *Config) drawsAny() bool {
	for _, fanouts := range append([][]int{c.Fanouts}, c.OfRelation...) {
		if slices.ContainsFunc(fanouts, func(k int) bool { return k != 0 }) {
			return true
		}
	}
	return false
}

// FanoutOf returns the fanout of relation r at a hop.
func (c *Config) FanoutOf(hop, r int) int {
	if len(c.OfRelation) > 0 && c.OfRelation[r] != nil {
		return c.OfRelation[r][hop]
	}
	return c.Fanouts[hop]
}

// filled returns c with its defaults, ready to draw.
func (c Config) filled() Config {
	c.Kind = cmp.Or(c.Kind, NS)
	c.sampler = c.Kind.known()
	if c.Smoothed {
		makeKnots()
	}
	return c
}

// Problems collects the errors that a Validate finds in options, to report all of them.
type Problems []error

// If adds an error of this format if bad is set.
func (p *Problems) If(bad bool, format string, args ...any) {
	if bad {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

// Names lists words for people: "a, b and c".
func Names[T ~string](words []T) string {
	var all []string
	for _, w := range words {
		all = append(all, string(w))
	}
	last := len(all) - 1
	if last == 0 {
		return all[0]
	}
	return strings.Join(all[:last], ", ") + " and " + all[last]
}
