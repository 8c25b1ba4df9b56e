package history

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"
)

// TestLowestAgainstSort: of any gradients, many of them equal or not finite, the limit is above the
// lowest n and no others.
func TestLowestAgainstSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "numbers"), 0))
		n := rapid.IntRange(0, 300).Draw(t, "n")
		nodes, norms := make([]uint32, n), make([]float32, n)
		shift := rapid.SampledFrom([]int{0, 9, 20}).Draw(t, "shift")
		spread := rapid.SampledFrom([]uint32{1, 5, 1 << 10, 1 << 20, 0}).Draw(t, "spread") // 0: any bits
		for i, v := range rng.Perm(n) {
			nodes[i], norms[i] = uint32(v)<<shift, math.Float32frombits(rng.Uint32())
			if spread > 0 {
				norms[i] = math.Float32frombits(math.Float32bits(1) + rng.Uint32N(spread))
			}
		}
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		abs := func(i int) float64 { return math.Abs(float64(norms[i])) }
		finite := func(i int) bool { return abs(i) <= math.MaxFloat32 }
		slices.SortFunc(order, func(i, j int) int {
			switch {
			case !finite(i) || !finite(j):
				return cmp.Compare(bit(!finite(i)), bit(!finite(j)))
			case abs(i) != abs(j):
				return cmp.Compare(abs(i), abs(j))
			}
			return cmp.Compare(nodes[i], nodes[j])
		})
		wanted := rapid.IntRange(0, n).Draw(t, "wanted")
		limit, infinite := lowest(nodes, norms, wanted)
		for rank, i := range order {
			if below := gradient(norms[i], nodes[i]) < limit; below != (rank < wanted && finite(i)) {
				t.Fatalf("node %d of norm %v, the %d-th of %d, is below the limit: %v", nodes[i], norms[i], rank, wanted, below)
			}
			infinite -= bit(!finite(i))
		}
		require.Zero(t, infinite)
	})
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestCoin: it is exact at both ends and says yes as often as it should between; and it is another
// for each of what it depends on.
func TestCoin(t *testing.T) {
	share := func(pGrad float64) float64 {
		yes := 0
		o := Options{PGrad: pGrad, Seed: 5}
		r := newPool(o, Kept{Layer: 1, Slots: 1}, newRule(o))
		for v := range 1000 {
			for stamp := range 100 {
				yes += bit(r.coin(uint32(v), uint32(stamp)))
			}
		}
		return float64(yes) / 1e5
	}
	require.Zero(t, share(0))
	require.EqualValues(t, 1, share(1))
	for _, p := range []float64{0.1, 0.5, 0.9, 0.999} {
		require.InDelta(t, p, share(p), 5*math.Sqrt(p*(1-p)/1e5))
	}
	require.Equal(t, uint64(math.MaxUint64-1<<11+1), newRule(Options{PGrad: math.Nextafter(1, 0)}).chance)
	flips := func(seed uint64, layer, typ, v, stamp int) (all []bool) {
		o := Options{PGrad: 0.5, Seed: seed}
		r := newPool(o, Kept{Layer: layer, Type: typ, Slots: 1}, newRule(o))
		for i := range 64 {
			all = append(all, r.coin(uint32(v+64*i), uint32(stamp)))
		}
		return all
	}
	all := [][]bool{flips(1, 1, 1, 1, 1), flips(2, 1, 1, 1, 1), flips(1, 2, 1, 1, 1), flips(1, 1, 2, 1, 1), flips(1, 1, 1, 2, 1), flips(1, 1, 1, 1, 2)}
	for i := range all {
		for j := range i {
			require.NotEqual(t, all[i], all[j])
		}
	}
}

// TestSteadyState: planning, measuring and snapshots allocate nothing once their memory has grown.
func TestSteadyState(t *testing.T) {
	s := newSteady(t, 50, 2000, true)
	s.steps(3 * 50)
	require.Zero(t, testing.AllocsPerRun(50, s.step))
	require.Positive(t, s.cache.Stats()[0].UsedRejected)
	var snap Snapshot
	snap.Take(s.cache)
	require.Zero(t, testing.AllocsPerRun(5, func() { snap.Take(s.cache) }))
}

// TestLimitsOfWorkers: workers that share a verdict find the limits of all their nodes together.
func TestLimitsOfWorkers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers, pools := rapid.IntRange(1, 4).Draw(t, "workers"), rapid.IntRange(1, 3).Draw(t, "pools")
		share := rapid.SampledFrom([]float64{0, 0.1, 0.5, 0.9, 1}).Draw(t, "share")
		o := Options{Layers: pools + 1, Types: 1, PGrad: share, TStale: 5}
		all, measured := make([]Measured, pools), make([][]Measured, workers)
		for k := range pools {
			o.Kept = append(o.Kept, Kept{Layer: k + 1, Slots: 1})
			for v := range uint32(rapid.IntRange(0, 60).Draw(t, "nodes")) {
				norm := rapid.SampledFrom([]float32{0, 1, 1, 2.5, 1e-30, float32(math.Inf(1)), float32(math.NaN())}).Draw(t, "norm")
				all[k].Nodes, all[k].Norms = append(all[k].Nodes, v), append(all[k].Norms, norm)
			}
		}
		for w := range measured {
			measured[w] = make([]Measured, pools)
		}
		for k, m := range all {
			for i, v := range m.Nodes {
				own := &measured[rapid.IntRange(0, workers-1).Draw(t, "owner")][k]
				own.Nodes, own.Norms = append(own.Nodes, v), append(own.Norms, m.Norms[i])
			}
		}
		var meet sync.Mutex
		var sums []int64
		came, next := 0, make(chan struct{})
		sum := func(counts []int64) error {
			meet.Lock()
			if came++; came == 1 {
				sums = make([]int64, len(counts))
			}
			for i, n := range counts {
				sums[i] += n
			}
			now, done := sums, next
			if came == workers {
				came, next = 0, make(chan struct{})
				close(done)
			}
			meet.Unlock()
			<-done
			copy(counts, now)
			return nil
		}
		var group errgroup.Group
		for w := range measured {
			group.Go(func() error {
				c, err := New(o)
				if err != nil {
					return err
				}
				return c.Limits(measured[w], sum)
			})
		}
		require.NoError(t, group.Wait())
		for k, m := range all {
			want := int64(share * float64(len(m.Nodes)))
			finite := int64(0)
			for _, x := range m.Norms {
				if x-x == 0 {
					finite++
				}
			}
			below := int64(0)
			for w := range measured {
				require.Equal(t, *measured[0][k].Limit, *measured[w][k].Limit)
			}
			largest, least := uint64(0), uint64(math.MaxUint64) // accepted, and rejected
			for i, v := range m.Nodes {
				g := uint64(math.Float32bits(m.Norms[i])&math.MaxInt32)<<32 | uint64(v)
				if g < *measured[0][k].Limit {
					below++
					largest = max(largest, g)
				} else {
					least = min(least, g)
				}
			}
			require.Equal(t, min(want, finite), below)
			require.True(t, below == 0 || largest < least)
		}
	})
}
