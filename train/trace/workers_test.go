package trace

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

func workersOptions(t *testing.T, most int) Options {
	o := DefaultOptions()
	o.Fanouts, o.Batch, o.Steps, o.Seed, o.Tmp = []int{4, 3}, 30, 6, 9, t.TempDir()
	o.Samplers, o.Kappas, o.Growth = []sample.Kind{sample.NS, sample.Labor0}, []int{1, 4}, []int{}
	o.Caches = []Capacity{{Share: 0.1}, {Rows: 40}}
	o.Workers = &Workers{Most: most, Hidden: 8}
	return o
}

// cooperate draws a batch by workers that own nodes by the rule, and returns the batch of each.
func cooperate(
	t *testing.T, ds *store.Dataset, c sample.Config, z sample.BatchSeed, shares [][][]uint32,
) []*sample.Batch {
	workers := len(shares)
	owners := store.OwnersByRule(workers)
	boxes := make([][]chan []byte, workers) // from and to
	for p := range boxes {
		for range workers {
			boxes[p] = append(boxes[p], make(chan []byte, 1))
		}
	}
	batches := make([]*sample.Batch, workers)
	var all errgroup.Group
	for p := range workers {
		batches[p] = new(sample.Batch)
		s := sample.NewSampler(sample.AtHand(ds.Graph(0)), c, 1)
		parts := &sample.Parts{
			Rank: p, Workers: workers, Owner: func(_ int, v uint32) int { return owners.Owner(v) }, Reads: []bool{true},
			Exchange: func(_ context.Context, send [][]byte) (came [][]byte, err error) {
				for q := range send {
					boxes[p][q] <- send[q]
				}
				for q := range send {
					came = append(came, <-boxes[q][p])
				}
				return came, nil
			},
		}
		all.Go(func() error {
			seeds := []sample.BatchSeed{z}
			return s.SampleCooperative(context.Background(), parts, nil, batches[p:p+1], seeds, shares[p:p+1])
		})
	}
	require.NoError(t, all.Wait())
	return batches
}

// TestWorkersAgreeWithDraws compares the counts with batches that workers really draw, each for its
// share or together. The report is the same whatever the number of threads.
func TestWorkersAgreeWithDraws(t *testing.T) {
	ds, o := graph(t, 3000, nil), workersOptions(t, 3)
	r, err := Run(context.Background(), ds, o)
	require.NoError(t, err)
	require.Empty(t, r.Growth)
	require.Empty(t, r.Traces)
	for _, threads := range []int{1, 7} {
		o.Threads = threads
		again, err := Run(context.Background(), ds, o)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(r, again))
	}
	train := slices.Clone(ds.Split(0).Train)
	sample.Shuffle(train, o.Seed, 1)
	at := 0
	for _, kind := range o.Samplers {
		for _, kappa := range o.Kappas {
			for _, workers := range []int{1, 2, 3} {
				for _, way := range Ways {
					if workers == 1 && way != Independent {
						continue
					}
					got := r.Workers.Counts[at]
					at++
					which := []any{got.Sampler, got.Kappa, got.Workers, got.Parallel}
					require.Equal(t, []any{kind, kappa, workers, way}, which)
					nodes, edges, sources, rows := make([]float64, 2), make([]float64, 2), make([]float64, 2), 0.0
					moved := 0.0
					for step := range o.Steps {
						seeds := train[step*o.Batch : (step+1)*o.Batch]
						var shares [][][]uint32
						for p := range workers {
							shares = append(shares, [][]uint32{seeds[p*o.Batch/workers : (p+1)*o.Batch/workers]})
						}
						z, c := sample.Schedule{Seed: o.Seed, Kappa: kappa}.At(step), o.config(kind, kappa)
						var batches []*sample.Batch
						if way == Cooperative {
							batches = cooperate(t, ds, c, z, shares)
						} else {
							for p := range workers {
								b, s := new(sample.Batch), sample.NewSampler(sample.AtHand(ds.Graph(0)), c, 1)
								require.NoError(t, s.SampleOne(context.Background(), b, z, shares[p]...))
								batches = append(batches, b)
							}
						}
						read := map[uint32]bool{}
						for p, b := range batches {
							for hop := range 2 {
								layer := &b.Layers[1-hop]
								nodes[hop] += float64(layer.Nodes[0].Dst)
								edges[hop] += float64(len(layer.Blocks[0].Nbr))
								sources[hop] += float64(len(layer.Nodes[0].Src))
							}
							for _, v := range b.Layers[0].Nodes[0].Src {
								read[v] = true
							}
							if way == Independent {
								rows += float64(len(b.Inputs()[0]))
							}
							if way != Cooperative {
								continue
							}
							for l := 1; l <= 2; l++ { // hidden rows, and gradients back
								for q, take := range b.Halos()[l].Take[0] {
									if q != p {
										moved += 2 * 4 * 8 * float64(len(take))
									}
								}
							}
						}
						if way != Independent {
							rows += float64(len(read))
						}
					}
					steps, each := float64(o.Steps), float64(o.Steps*workers)
					for hop := range 2 {
						require.InDelta(t, nodes[hop]/each, got.Hops[hop].Nodes.Mean, 1e-9)
						require.InDelta(t, edges[hop]/each, got.Hops[hop].Edges.Mean, 1e-9)
						require.InDelta(t, sources[hop]/each, got.Hops[hop+1].Sources.Mean, 1e-9)
					}
					require.InDelta(t, rows/steps, got.AllRows, 1e-9)
					require.InDelta(t, moved/each, got.HiddenBytes.Mean, 1e-6)
					require.GreaterOrEqual(t, got.SentBytes.Largest, got.SentBytes.Mean)
					require.Len(t, got.Cold, len(Policies)*2)
				}
			}
		}
	}
	require.Len(t, r.Workers.Counts, at)
}

// TestWorkersOfOne: one worker has the rows and the misses of a trace.
func TestWorkersOfOne(t *testing.T) {
	ds, o := graph(t, 3000, nil), workersOptions(t, 1)
	of := o
	of.Workers = nil
	r, err := Run(context.Background(), ds, o)
	require.NoError(t, err)
	want, err := Run(context.Background(), ds, of)
	require.NoError(t, err)
	for i, c := range r.Workers.Counts {
		trace := want.Traces[i]
		require.InDelta(t, trace.Batches.Mean, c.AllRows, 1e-9)
		require.Equal(t, trace.MeasuredSteps, c.ColdSteps)
		for k, n := range c.Cold {
			require.Equal(t, trace.Caches[k].Policy, n.Policy)
			require.InDelta(t, float64(trace.Caches[k].Misses)/float64(c.ColdSteps), n.All, 1e-9)
		}
		require.Zero(t, c.SentBytes.Largest)
	}
}

// TestOwnersHoldMore: with caches of the same size, owners miss fewer rows than workers that each
// read for themselves, as no row is cached twice; fewer still if batches share their draws.
func TestOwnersHoldMore(t *testing.T) {
	ds, o := graph(t, 3000, nil), workersOptions(t, 4)
	o.Batch, o.Steps, o.Kappas = 60, 16, []int{1, 8}
	o.Policies, o.Caches = []Policy{Static, Belady}, []Capacity{{Share: 0.1}}
	r, err := Run(context.Background(), ds, o)
	require.NoError(t, err)
	misses := map[[2]any]map[int][]float64{} // by sampler and way, and by κ
	for _, c := range r.Workers.Counts {
		if c.Workers == 4 {
			of := [2]any{c.Sampler, c.Parallel}
			if misses[of] == nil {
				misses[of] = map[int][]float64{}
			}
			misses[of][c.Kappa] = []float64{c.Cold[0].All, c.Cold[1].All}
		}
	}
	for _, kind := range o.Samplers {
		alone, together := misses[[2]any{kind, Independent}], misses[[2]any{kind, Cooperative}]
		require.Equal(t, misses[[2]any{kind, ByParts}], together)
		for kappa := range alone {
			for i := range alone[kappa] {
				require.Less(t, together[kappa][i], 0.8*alone[kappa][i], "%s κ %d", kind, kappa)
			}
		}
		require.Less(t, together[8][1], together[1][1], "%s under belady", kind)
	}
}

// TestTypedWorkers: several types, and a table of edges.
func TestTypedWorkers(t *testing.T) {
	ds, o := library(t, nil), typedOptions(t)
	o.Growth, o.Samplers = []int{}, []sample.Kind{sample.NS, sample.LaborStar}
	o.Workers = &Workers{Most: 4, Hidden: 8}
	r, err := Run(context.Background(), ds, o)
	require.NoError(t, err)
	require.Equal(t, []sample.Kind{sample.LaborStar}, r.Workers.Alone())
	var ways []Way
	for _, c := range r.Workers.Counts {
		if c.Kappa == o.Kappas[0] && c.Workers == 4 {
			ways = append(ways, c.Parallel)
		}
		if c.Parallel == Cooperative {
			require.Positive(t, c.HiddenBytes.Mean)
			require.Positive(t, c.RowBytes.Mean)
		}
	}
	require.Equal(t, []Way{Independent, ByParts, Cooperative, Independent}, ways)
}

// TestWorkersPicture: the picture is well-formed, and has a panel for each count.
func TestWorkersPicture(t *testing.T) {
	ds, o := graph(t, 3000, nil), workersOptions(t, 4)
	r, err := Run(context.Background(), ds, o)
	require.NoError(t, err)
	picture := string(r.SVG())
	for _, title := range []string{
		"Rows that a worker reads under ns", "Edges that a worker computes under labor0", "Bytes that a worker", "Cold rows",
	} {
		require.Contains(t, picture, title)
	}
	require.NotContains(t, picture, "NaN")
	d := xml.NewDecoder(strings.NewReader(picture))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestBadWorkers(t *testing.T) {
	for _, c := range []struct {
		change func(o *Options)
		want   string
	}{
		{func(o *Options) { o.Workers.Most = 0 }, "{workers} 0: from 1 to 256"},
		{func(o *Options) { o.Workers.Most = 257 }, "{workers} 257: from 1 to 256"},
		{func(o *Options) { o.Workers.Most = 31 },
			"{workers} 31: a batch has 30 seeds, and some workers would have none; " +
				"take at most 30, or a larger {batch}"},
		{func(o *Options) { o.Workers.Hidden = 0 }, "{hidden} 0: at least 1"},
		{func(o *Options) { o.Workers.Ways = []Way{"both", ByParts, ByParts} },
			"{parallel}: parts is there twice\n{parallel} both: there are independent, parts and cooperative"},
		{func(o *Options) { o.Workers.Ways, o.Samplers = []Way{Independent, Cooperative}, sample.Kinds },
			"{parallel} cooperative: {samplers} labor-star draws otherwise on each worker, and here all counts are of one batch; " +
				"take {parallel} independent, or ns or labor0\n" +
				"{parallel} cooperative: {samplers} rw compares lists, which have different owners; " +
				"take {parallel} independent, or ns or labor0"},
		{func(o *Options) { h := DefaultHistory(); o.History = &h },
			"{workers} 2: workers keep no hidden rows here; leave {history} out"},
	} {
		o := workersOptions(t, 2)
		c.change(&o)
		require.EqualError(t, o.Validate(), c.want)
	}
	ds, o := graph(t, 60, nil), workersOptions(t, 30)
	_, err := Run(context.Background(), ds, o)
	require.ErrorContains(t, err, ds.Path()+" has 20 seeds, and some workers would have none; take at most 20")
}
