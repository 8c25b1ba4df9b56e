package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// steady is a cache that is as full as it gets. Of the live nodes of a step some half are used.
type steady struct {
	cache *Cache
	live  [][][][]uint32 // of some steps, as an Expander is shown them
	norms []float32
	next  int
	lag   int
	parts []Measured
}

const steadyLag = 20

// newSteady has as many nodes as slots, and says so where known.
func newSteady(t require.TestingT, steps, perStep int, known bool) *steady {
	nodes := 0
	if known {
		nodes = perStep * steps
	}
	c, err := New(Options{
		Layers: 2, Types: 1, PGrad: 0.9, TStale: steps, Lag: steadyLag, Kept: []Kept{{Layer: 1, Slots: perStep * steps, Nodes: nodes}},
	})
	require.NoError(t, err)
	s := &steady{cache: c, lag: steadyLag, parts: make([]Measured, 1)}
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[uint32]bool{}
	for range 2 * steps {
		var live []uint32
		clear(seen)
		for len(live) < perStep {
			// Squares, so that some nodes are met more often than others.
			if x := rng.Float64(); !seen[uint32(x*x*float64(perStep*steps))] {
				live = append(live, uint32(x*x*float64(perStep*steps)))
				seen[live[len(live)-1]] = true
			}
		}
		s.live = append(s.live, [][][]uint32{{live}})
	}
	for range perStep {
		s.norms = append(s.norms, rng.Float32())
	}
	return s
}

// step plans a step, and runs the one that the lag has come to.
func (s *steady) step() {
	s.plan()
	s.run()
}

func (s *steady) plan() {
	if _, _, err := s.cache.Group(s.next, 1).Expand(context.Background(), 0, s.live[s.next%len(s.live)]); err != nil {
		panic(err)
	}
	s.next++
}

func (s *steady) run() {
	if step := s.next - s.lag; step >= 0 {
		s.parts[0] = Measured{Nodes: s.live[step%len(s.live)][0][0], Norms: s.norms}
		s.cache.WriteBack(step, s.parts)
	}
}

func (s *steady) steps(n int) {
	for range n {
		s.step()
	}
}

// BenchmarkStep measures the cost of a live node: to plan it, and to judge it. Pools have 50 times
// as many slots as a step has nodes.
func BenchmarkStep(b *testing.B) {
	for _, perStep := range []int{1000, 50_000} {
		for _, what := range []string{"plan", "plan/nodes=known", "verdict"} {
			b.Run(fmt.Sprintf("slots=%d/%s", 50*perStep, what), func(b *testing.B) {
				s := newSteady(b, 50, perStep, what == "plan/nodes=known")
				s.steps(150)
				st := s.cache.Stats()[0]
				for b.Loop() {
					if what != "verdict" {
						s.plan()
						b.StopTimer()
						s.run()
						b.StartTimer()
						continue
					}
					b.StopTimer()
					s.plan()
					b.StartTimer()
					s.run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(perStep), "ns/node")
				b.ReportMetric(100*float64(st.Hits)/float64(st.Hits+st.Computed), "%used")
			})
		}
	}
}

// BenchmarkSnapshot measures the cost of a slot, in memory.
func BenchmarkSnapshot(b *testing.B) {
	s := newSteady(b, 50, 20_000, true)
	s.steps(150)
	var snap Snapshot
	for b.Loop() {
		snap.Take(s.cache)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/slot")
}
