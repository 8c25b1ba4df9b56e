package dist

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/dist/rounds"
)

// topologies returns topologies of so many workers.
func topologies(workers int) []*rounds.Topology {
	all := []*rounds.Topology{rounds.Switch(workers, 1e9), rounds.Mesh(workers, 1e9)}
	if workers%2 == 0 {
		all = append(all, rounds.PCIe(2, workers/2, 1e9), rounds.FatTree(2, workers/2, 2, 1e9))
	}
	return all
}

// TestTurnsOf: every pair has a turn, and it is the same turn at both ends.
func TestTurnsOf(t *testing.T) {
	for workers := 2; workers <= 8; workers++ {
		for _, topology := range topologies(workers) {
			turns := turnsOf(rounds.Fixed(topology), workers)
			for p := range workers {
				for q := range workers {
					sent, came := 0, 0
					for r := range turns[p] {
						var to, from bool
						for _, other := range turns[p][r].to {
							to = to || other == q
						}
						for _, other := range turns[q][r].from {
							from = from || other == p
						}
						require.Equal(t, to, from)
						if to {
							sent, came = sent+len(turns[p][r].to), came+len(turns[q][r].from)
						}
					}
					require.Positive(t, sent)
					require.Positive(t, came)
				}
			}
		}
	}
}

// anyMessage returns the bytes that worker p sends to worker q in an exchange: none, few, or more
// than go at once.
func anyMessage(p, q, exchange int) []byte {
	r := rand.New(rand.NewPCG(uint64(p*64+q), uint64(exchange)))
	m := make([]byte, []int{0, 1 + r.IntN(99), mostAtOnce, mostAtOnce + 1 + r.IntN(4*mostAtOnce)}[r.IntN(4)])
	var seed [32]byte
	seed[0], seed[1], seed[2] = byte(p), byte(q), byte(exchange)
	_, _ = rand.NewChaCha8(seed).Read(m) // never an error
	return m
}

// exchanged has what a worker got, and how many exchanges that took.
type exchanged struct {
	parts, gathered [][]byte
	sums            []float32
	sent            int64
	moved           int64
}

// exchangeAll makes a few exchanges of each kind on every worker.
func exchangeAll(t *testing.T, processes, workers int, topology *rounds.Topology, most int) []exchanged {
	all := make([]exchanged, workers)
	var wait sync.WaitGroup
	for _, h := range hosts(processes, workers, Options{}) {
		require.NoError(t, h.SetTopology(topology))
		wait.Go(func() {
			err := h.Run(context.Background(), func(ctx context.Context, g *Group) error {
				if most > 0 {
					g.most, g.Drawing().group.most = most, most
				}
				x := &all[g.Rank()]
				send := make([][]byte, workers)
				for n := range 4 {
					for q := range send {
						send[q] = anyMessage(g.Rank(), q, n)
					}
					recv, err := g.Drawing().Exchange(ctx, At{}, send)
					if err != nil {
						return err
					}
					for p, m := range recv {
						if want := anyMessage(p, g.Rank(), n); string(want) != string(m) {
							return fmt.Errorf("worker %d got %d bytes of worker %d, and not the %d that it sent", g.Rank(), len(m), p, len(want))
						}
						x.parts = append(x.parts, append([]byte(nil), m...))
					}
					gathered, err := g.Gather(ctx, At{}, anyMessage(g.Rank(), 63, n))
					if err != nil {
						return err
					}
					x.gathered = append(x.gathered, gathered...)
					sums := make([]float32, []int{5, 90_000}[n%2])
					for i := range sums {
						sums[i] = float32(g.Rank()+1) / float32(i+3)
					}
					if _, err := g.Sum(ctx, At{}, []byte{1}, sums); err != nil {
						return err
					}
					x.sums = append(x.sums, sums...)
				}
				x.sent, x.moved = g.Sent(), g.moved.Load()
				return nil
			})
			require.NoError(t, err)
		})
	}
	wait.Wait()
	return all
}

// TestTurns: workers get the same bytes and sums in the rounds of a topology as at once, on any
// number of processes, and also if long messages go in several pieces.
func TestTurns(t *testing.T) {
	for workers := 2; workers <= 5; workers++ {
		once := exchangeAll(t, 1, workers, nil, 0)
		for i, topology := range topologies(workers) {
			for _, most := range []int{0, mostAtOnce / 3} {
				processes := 1 + (workers+i)%workers
				got := exchangeAll(t, processes, workers, topology, most)
				for p := range got {
					if most == 0 && len(rounds.Fixed(topology)) > 1 {
						require.Greater(t, got[p].moved, once[p].moved, "it went in rounds")
					}
					got[p].moved = once[p].moved
				}
				require.Equal(t, once, got, "%d workers in %d processes, %s", workers, processes, topology.Name())
			}
		}
	}
}

// TestTurnsFail: if a worker fails between exchanges in rounds, the others end with its error, also
// if its text is longer than goes at once.
func TestTurnsFail(t *testing.T) {
	var ended atomic.Int64
	for _, h := range hosts(1, 4, Options{}) {
		require.NoError(t, h.SetTopology(rounds.PCIe(2, 2, 1e9)))
		err := h.Run(context.Background(), func(ctx context.Context, g *Group) error {
			if _, err := g.Gather(ctx, At{}, make([]byte, 2*mostAtOnce)); err != nil {
				return err
			}
			if g.Rank() == 2 {
				return fmt.Errorf("out of luck: %s", make([]byte, 2*mostAtOnce))
			}
			_, err := g.Gather(ctx, At{}, make([]byte, 2*mostAtOnce))
			require.ErrorContains(t, err, "out of luck")
			ended.Add(1)
			return err
		})
		require.ErrorContains(t, err, "out of luck")
	}
	require.EqualValues(t, 3, ended.Load())
}

// TestSetTopology refuses topologies of other numbers of workers.
func TestSetTopology(t *testing.T) {
	all := hosts(1, 3, Options{})
	require.EqualError(t, all[0].SetTopology(rounds.PCIe(2, 2, 1e9)), "{topology} PCIe, 2 switches of 2: it has 4 workers, "+
		"and the run has 3; give a file for as many, or {topology} none")
	require.NoError(t, all[0].SetTopology(rounds.Switch(3, 1e9)))
	require.Len(t, all[0].turns, 3)
	require.NoError(t, all[0].SetTopology(nil))
	require.Nil(t, all[0].turns)
}
