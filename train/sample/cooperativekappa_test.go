package sample

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// TestCooperationAndKappa: batches that share their draws, and that workers draw together, have the
// lists of the batches that one worker draws. Of several in a row, owners read fewer different rows
// than with draws of their own: dependent batches and cooperation save together.
func TestCooperationAndKappa(t *testing.T) {
	makeKnots()
	topo := computers(t)
	order := make([]uint32, len(topo))
	for v := range order {
		order[v] = uint32(v)
	}
	Shuffle(order, 1, 1)
	const workers, steps, size, window = 4, 8, 64, 4
	owner := func(_ int, v uint32) int { return int(v) % workers }
	for name, c := range map[string]Config{
		"ns": {Kind: NS}, "labor0": {Kind: Labor0}, "labor0 smoothed": {Kind: Labor0, Smoothed: true},
	} {
		c.Fanouts = []int{4, 4, 4}
		rows := map[int]int{} // by κ: different rows of an owner in a window
		for _, kappa := range []int{1, window} {
			schedule := Schedule{Seed: 1, Kappa: kappa}
			var seeds []BatchSeed
			shares := make([][][][]uint32, workers)
			for step := range steps {
				seeds = append(seeds, schedule.At(step))
				for w := range shares {
					at := step*size + w*size/workers
					shares[w] = append(shares[w], [][]uint32{order[at : at+size/workers]})
				}
			}
			between, got := mail(workers), make([][]*Batch, workers)
			var all errgroup.Group
			for w := range workers {
				for range steps {
					got[w] = append(got[w], new(Batch))
				}
				s, send := NewSampler(AtHand(topo), c, 3), between(w)
				p := &Parts{Rank: w, Workers: workers, Owner: owner, Reads: []bool{true}}
				p.Exchange = func(ctx context.Context, texts [][]byte) ([][]byte, error) {
					for i := range s.drawers { // whichever of them draws a batch further
						if s.drawers[i].last != (finished{}) {
							return nil, errors.New("a drawer takes the sources of a hop for the next hop's destinations")
						}
					}
					return send(ctx, texts)
				}
				all.Go(func() error {
					return s.SampleCooperative(context.Background(), p, nil, got[w], seeds, shares[w])
				})
			}
			require.NoError(t, all.Wait())
			s := newSingle(topo, c)
			for step := range steps {
				var one Batch
				require.NoError(t, s.Sample(&one, seeds[step], order[step*size:(step+1)*size]))
				want, have := map[listOf]drawnList{}, map[listOf]drawnList{}
				listsOf(t, OneType(len(topo)), &one, want)
				for w := range got {
					listsOf(t, OneType(len(topo)), got[w][step], have)
				}
				require.Equal(t, want, have, "%s, κ %d, step %d", name, kappa, step)
			}
			for w := range got {
				for first := 0; first < steps; first += window {
					read := map[uint32]bool{}
					for _, b := range got[w][first : first+window] {
						for _, v := range b.Reads()[0] {
							read[v] = true
						}
					}
					rows[kappa] += len(read)
				}
			}
		}
		t.Logf("%s: %d different rows, with κ = %d %d", name, rows[1], window, rows[window])
		require.Less(t, float64(rows[window]), 0.97*float64(rows[1]), name)
	}
}
