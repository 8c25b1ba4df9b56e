package build

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/ingest"
)

// pairSample estimates the share of connected pairs of nodes that have edges in both directions,
// while edges stream by, in bounded memory. It keeps the pairs whose hash is below a limit, and
// halves the limit when it has too many. So the result depends on the set of pairs alone, not on
// their order or on goroutines.
type pairSample struct {
	limit atomic.Uint64 // hashes up to it are kept
	mu    sync.Mutex
	seen  map[uint64]uint8 // by pair, the smaller end first: forth, back or both

	repeated bool // an edge came twice
}

// mostPairs take about half a megabyte. Up to as many pairs the count is exact, beyond it within
// half a point.
const mostPairs = 1 << 14

const (
	forth uint8 = 1 << iota // from the smaller row to the larger
	back
)

func newPairSample() *pairSample {
	s := &pairSample{seen: map[uint64]uint8{}}
	s.limit.Store(1<<64 - 1)
	return s
}

// add takes the edge from row u to row v, which differ.
func (s *pairSample) add(u, v uint32) {
	way := forth
	if u > v {
		u, v, way = v, u, back
	}
	pair := uint64(u)<<32 | uint64(v)
	hash := mix(pair)
	if hash > s.limit.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if hash > s.limit.Load() {
		return
	}
	ways := s.seen[pair]
	s.repeated = s.repeated || ways&way != 0
	s.seen[pair] = ways | way
	for len(s.seen) > mostPairs {
		limit := s.limit.Load() / 2
		for pair := range s.seen {
			if mix(pair) > limit {
				delete(s.seen, pair)
			}
		}
		s.limit.Store(limit)
	}
}

// counts returns how many pairs are kept, and how many of these have edges in both directions.
func (s *pairSample) counts() (pairs, bothWays int64) {
	for _, ways := range s.seen {
		pairs++
		if ways == forth|back {
			bothWays++
		}
	}
	return pairs, bothWays
}

// samplesPairs reports whether relation i is sampled: it is the only one, and joins nodes of one
// type.
func (b *builder) samplesPairs(i int) bool {
	if i > 0 || b.given != 1 {
		return false
	}
	r := b.schema.Relations[0]
	return r.Src == r.Dst && r.Stream == nil
}

// An undirected graph stored with each edge once has no pair in both directions. Mostly the smaller
// id comes first, as tools write that walk the upper triangle of a matrix. A directed graph has
// some pairs in both directions, or ids in no order.
const (
	fewBothWays = 0.005
	oneOrder    = 0.999
	fewestPairs = 20 // fewer pairs tell nothing
)

// noteDirection notes the share of pairs with edges in both directions, if the relation is stored
// as given and not all pairs have them.
func (b *builder) noteDirection() {
	if !b.samplesPairs(0) || b.Undirected || b.Reverse || b.state.Relations[0].Symmetric {
		return
	}
	r := &b.state.Relations[0].Report
	if r.PairsCompared == 0 || r.PairsBothWays == r.PairsCompared {
		return
	}
	share := float64(r.PairsBothWays) / float64(r.PairsCompared)
	if order := r.order(); share < fewBothWays && order != "" && r.PairsCompared >= fewestPairs {
		b.note("%.2g %% of the connected pairs of nodes have an edge in both directions, and the source of nearly every edge has the %s id, so this looks like an undirected "+
			"graph with each edge once; it is stored as given, and messages flow from source to destination alone; {undirected} adds the reverses", 100*share, order)
		return
	}
	b.note("%.2g %% of the connected pairs of nodes have an edge in both directions, so edges are taken as directed, and messages flow from source to destination alone; "+
		"{undirected} adds the reverses", 100*share)
}

// order returns "smaller" or "larger": which end of nearly every edge is the source, by id. It
// returns "" if neither is.
func (r *RelationReport) order() string {
	edges := r.EdgesRead - r.Skipped - r.SelfLoops
	switch ascending := float64(r.EdgesAscending); {
	case ascending >= oneOrder*float64(edges):
		return "smaller"
	case ascending <= (1-oneOrder)*float64(edges):
		return "larger"
	}
	return ""
}

// wantUndirected sets Undirected, with a note, for a source whose edges have no direction, and for
// an undirected graph that is stored with each edge once. The latter requires labels of nodes to
// learn, and that each probed edge leads from the smaller id to the larger and comes once.
// Options.Directed turns this off.
func (b *builder) wantUndirected(ctx context.Context) {
	b.given = len(b.schema.Relations)
	if b.schema.Undirected && !b.Undirected && !b.Directed {
		b.Undirected = true
		b.note("the edges of the source have no direction, so the reverses are added, as by {undirected}; {undirected}=false stores the edges as given")
		return
	}
	if !b.samplesPairs(0) || b.Undirected || b.Directed || b.Reverse || len(b.EdgeSplit) > 0 || len(b.schema.Labels) == 0 {
		return
	}
	r := b.schema.Relations[0]
	texts := slices.ContainsFunc(b.schema.NodeTypes, func(t ingest.NodeType) bool { return t.Name == r.Src && t.IDs == ingest.TextIDs })
	if r.Parted || r.Held != nil || texts || r.Edges >= 0 && r.Edges < leastProbed {
		return
	}
	pairs, edges := newPairSample(), 0
	enough := errors.New("enough")
	err := b.src.Edges(ctx, 0, func(c ingest.EdgeChunk) error {
		for k, u := range c.Src {
			if v := c.Dst[k]; u > v || uint64(v) > 1<<32-1 || pairs.repeated {
				return enough
			} else if u < v {
				pairs.add(uint32(u), uint32(v))
				edges++
			}
		}
		if edges >= mostProbed {
			return enough
		}
		return nil
	})
	// the pass that reads all edges reports what cannot be read
	if err != nil && !(errors.Is(err, enough) && edges >= mostProbed) {
		return
	}
	if _, both := pairs.counts(); edges < leastProbed || both > 0 || pairs.repeated {
		return
	}
	b.Undirected = true
	looked := "all of the"
	if err != nil {
		looked = "the first"
	}
	b.note("this looks like an undirected graph with each edge once: %s %d edges lead from the smaller id to the larger, and 0 %% of the connected pairs have an edge in both "+
		"directions; the reverses are added, as by {undirected}; {undirected}=false stores the edges as given", looked, edges)
}

// A probe decides by this many edges. Reading a quarter of a million takes well under a second.
const (
	leastProbed = 100
	mostProbed  = 1 << 18
)
