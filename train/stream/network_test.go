package stream

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// trained is a run that has ended.
func trained(t *testing.T, ds *store.Dataset, o run.Options) (path string, r *run.Result) {
	path = filepath.Join(t.TempDir(), "run")
	r, err := Run(t.Context(), ds, func() (*run.Dir, error) { return run.Create(path) }, o, "test", run.Hooks{})
	require.NoError(t, err)
	return path, r
}

// network opens the network of a run until the end of the test.
func network(t *testing.T, ds *store.Dataset, path string, o run.Use) *Network {
	dir, err := run.Look(path)
	require.NoError(t, err)
	o.Scratch = filepath.Join(t.TempDir(), "state")
	n, err := OpenNetwork(t.Context(), ds, dir, o, run.Hooks{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

// TestNetworkMeasures: best weights come to what the run says of them, and last ones to something
// else.
func TestNetworkMeasures(t *testing.T) {
	ds := drifting(t, 1000)
	for _, kind := range model.TemporalKinds {
		o := options(kind)
		if kind == model.TGN {
			o.Staleness, o.Mitigate, o.Publish = 3, 0.95, run.Late // which evaluation has no use for
		}
		path, r := trained(t, ds, o)
		for _, which := range []string{"", run.BestWeights, run.LastWeights} {
			n := network(t, ds, path, run.Use{Checkpoint: which, MemoryBytes: 200 << 20})
			got, err := n.Measure(t.Context())
			require.NoError(t, err)
			got.Replay.Seconds, r.Stream.Replay.Seconds = 0, 0
			require.Equal(t, r.Stream.Heuristics, got.Heuristics)
			if which != run.LastWeights {
				require.Equal(t, []any{run.BestWeights, r.Best.Epoch, r.Best.Epoch * 14}, []any{n.Checkpoint, n.Epoch, n.Updates})
				require.Equal(t, r.Stream.Replay, got.Replay, "%s", kind)
				continue
			}
			require.Equal(t, []any{run.LastWeights, 2, 28, r.ParamsXXH3}, []any{n.Checkpoint, n.Epoch, n.Updates, n.c.step.Model.Hash()})
			require.Equal(t, r.Best.Epoch == 2, r.Stream.Replay.Test.AP == got.Replay.Test.AP)
		}
	}
}

// TestScoresAreThoseOfEvaluation: pairs at the times of events, in any order, have the scores that
// evaluation gives these events; but not where a batch before has an event of that time.
func TestScoresAreThoseOfEvaluation(t *testing.T) {
	ds := drifting(t, 1000)
	rng := rand.New(rand.NewPCG(3, 4))
	stateless := options(model.TGN)
	stateless.State, stateless.Sampler = run.NoState, run.UniformNeighbors
	for _, o := range []run.Options{options(model.TGN), options(model.JODIE), options(model.APAN), stateless} {
		path, _ := trained(t, ds, o)
		n := network(t, ds, path, run.Use{})
		e := n.c.events
		want := map[int64]float32{}
		from := map[int64]int64{}
		each := func(s *scores) {
			for i, score := range s.positives {
				want[s.from+int64(i)], from[s.from+int64(i)] = score, s.from
			}
		}
		require.NoError(t, n.eval.restart(t.Context(), n.c.split.Train))
		for _, phase := range []int{validation, test} {
			_, _, err := n.eval.measure(t.Context(), phase, false, each)
			require.NoError(t, err)
		}
		var pairs []temporal.Ask
		var events []int64
		src, dst := e.Ends(0, e.Len())
		for _, i := range rng.Perm(int(e.Len())) {
			pairs, events = append(pairs, temporal.Ask{Src: src[i], Dst: uint32(e.Place(dst[i])), Time: e.Times(0, e.Len())[i]}), append(events, int64(i))
		}
		got, err := n.Scores(t.Context(), pairs)
		require.NoError(t, err)
		compared := 0
		for i, event := range events {
			score, ok := want[event]
			if ok && n.before(pairs[i].Time, 0) >= from[event] {
				require.Equal(t, score, got[i], "%s, event %d", o.Kind, event)
				compared++
			}
		}
		require.Greater(t, compared, 200)
		for _, some := range []int{10, 1000} { // whatever else is asked for, in one step or many
			again, err := n.Scores(t.Context(), slices.Concat(pairs[:some], pairs[:some], pairs[:some]))
			require.NoError(t, err)
			require.Equal(t, slices.Concat(got[:some], got[:some], got[:some]), again)
		}
	}
}

// TestEmbeddingsAgreeWithThePlainLoop: at any time, embeddings are the same from a state in a map
// that all events before have updated.
func TestEmbeddingsAgreeWithThePlainLoop(t *testing.T) {
	ds := drifting(t, 400)
	for _, kind := range model.TemporalKinds {
		o := options(kind)
		o.Epochs = 1
		path, _ := trained(t, ds, o)
		n := network(t, ds, path, run.Use{})
		times := n.c.events.Times(0, 400)
		for _, at := range []float64{times[0], times[30], times[100] + 0.5, times[281], times[300], times[399], times[399] + 100} {
			places := []uint32{}
			for v := range uint32(users + items) {
				if v%3 != 1 {
					places = append(places, v)
				}
			}
			want := plainEmbeddings(t, ds, n, at, places)
			var got []float32
			var seen []uint32
			require.NoError(t, n.Embeddings(t.Context(), at, places, func(some []uint32, rows []float32) error {
				got, seen = append(got, rows...), append(seen, some...)
				return nil
			}))
			require.Equal(t, places, seen)
			require.Equal(t, want, got, "%s at %v", kind, at)
		}
	}
}

// plainEmbeddings is the embeddings of nodes at a time.
func plainEmbeddings(t *testing.T, ds *store.Dataset, n *Network, at float64, places []uint32) (all []float32) {
	to := int64(0)
	for to < n.c.events.Len() && n.c.events.Times(to, to+1)[0] < at {
		to++
	}
	plainReplay(t, ds, n, to, func(lo, _ int64, embed func(v uint32, at float64) []float32) {
		if lo == to {
			for _, v := range places {
				all = append(all, embed(v, at)...)
			}
		}
	})
	return all
}

// plainReplay goes through the batches up to event to-1 with the state of all nodes in a map.
// Before each, and after the last, see may embed nodes.
func plainReplay(t *testing.T, ds *store.Dataset, n *Network, to int64, see func(lo, hi int64, embed func(v uint32, at float64) []float32)) {
	s, be, record, features := n.c.step, n.c.Backend, n.c.step.Record, ds.Features(0)
	sampler, err := temporal.NewSampler(t.Context(), n.c.events, temporal.SamplerOptions{Fanout: n.c.Fanouts[0], Deliver: n.c.Kind == model.APAN})
	require.NoError(t, err)
	defer sampler.Close()
	state := map[uint32][]byte{}
	input := func(p temporal.Step) temporal.Input {
		b := new(temporal.Batch)
		require.NoError(t, sampler.Draw(t.Context(), []temporal.Step{p}, []*temporal.Batch{b}))
		tensor := func(cols int, ids []uint32, row func(id uint32) []byte) kernels.Tensor {
			x := kernels.Tensor{Buf: be.Alloc(kernels.F32, len(ids)*cols), Type: kernels.F32, Rows: len(ids), Cols: cols}
			host, _ := be.Host(x)
			for i, id := range ids {
				copy(host[4*i*cols:], row(id))
			}
			return x
		}
		return temporal.Input{
			Batch: b, State: tensor(record.Cols(), b.Nodes, func(v uint32) []byte { return slices.Concat(state[v], make([]byte, record.Bytes()))[:record.Bytes()] }),
			Features: tensor(columns, b.Events, features.Row),
		}
	}
	embedAt := func(event int64) func(v uint32, at float64) []float32 {
		return func(v uint32, at float64) []float32 {
			z, err := s.Embed(input(temporal.Step{From: event, To: event, Asks: []temporal.Ask{{Src: v, Dst: v, Time: at}}}))
			require.NoError(t, err)
			return z
		}
	}
	for lo := int64(0); lo < to; {
		hi := min(lo+50, to)
		for _, border := range []int64{n.c.split.Train, n.c.split.Train + n.c.split.Valid} {
			if lo < border {
				hi = min(hi, border)
			}
		}
		see(lo, hi, embedAt(lo))
		in := input(temporal.Step{From: lo, To: hi, StateOnly: true})
		_, err := s.Compute(in)
		require.NoError(t, err)
		written, changes := s.Changes()
		for i, place := range written {
			r := slices.Concat(state[in.Nodes[place]], make([]byte, record.Bytes()))[:record.Bytes()]
			record.Apply(r, changes[i*record.ChangeBytes():][:record.ChangeBytes()])
			state[in.Nodes[place]] = r
		}
		lo = hi
	}
	see(to, to, embedAt(to))
}

// TestNetworkElsewhere: a stream that has gone on gives the same at times before; one with other
// features is refused, and so are times that nothing is known of, weights that there are none of,
// and a run that has not begun.
func TestNetworkElsewhere(t *testing.T) {
	path, _ := trained(t, drifting(t, 1000), options(model.TGN))
	short, long := drifting(t, 1000), drifting(t, 1300)
	places := []uint32{0, 1, 2, users, users + 1}
	embed := func(ds *store.Dataset, at float64) (all []float32) {
		require.NoError(t, network(t, ds, path, run.Use{}).Embeddings(t.Context(), at, places, func(_ []uint32, rows []float32) error {
			all = append(all, rows...)
			return nil
		}))
		return all
	}
	last := short.Events(0).Times(999, 1000)[0]
	at := short.Events(0).Times(700, 701)[0] // up to here the parts have the same borders
	require.Equal(t, embed(short, at), embed(long, at))
	require.NotEqual(t, embed(long, last+1), embed(long, last+1e4))

	n := network(t, short, path, run.Use{})
	_, err := n.Scores(t.Context(), []temporal.Ask{{Src: 0, Dst: users, Time: -1}})
	require.ErrorContains(t, err, "pair 0, time -1: it is before the first event, which is at ")
	ctx, cancel := context.WithCancel(t.Context())
	n.Follow(func(done, all int64) {
		if done > all/2 {
			cancel()
		}
	})
	err = n.Embeddings(ctx, last, places, func([]uint32, []float32) error { return nil })
	require.ErrorIs(t, err, context.Canceled)
	empty, err := n.Scores(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, empty)

	dir, err := run.Look(path)
	require.NoError(t, err)
	for want, spec := range map[string]storetest.StreamSpec{
		"need as many features as those that it learnt from": {Dim: columns + 1, Row: func(int) []float32 { return make([]float32, columns+1) }},
		"ingest it with {time_scale} 1":                      {Dim: columns, Row: func(int) []float32 { return make([]float32, columns) }, TimeScale: 2},
	} {
		spec.Users, spec.Items, spec.Split = users, items, store.StreamSplit{Name: "given", Train: 50, Test: 50}
		for i := range 100 {
			spec.Src, spec.Dst, spec.Times = append(spec.Src, uint32(i%users)), append(spec.Dst, uint32(i%items)), append(spec.Times, float64(i))
		}
		ds, err := store.Open(storetest.BuildStream(t, spec))
		require.NoError(t, err)
		defer ds.Close()
		_, err = OpenNetwork(t.Context(), ds, dir, run.Use{Scratch: t.TempDir()}, run.Hooks{})
		require.ErrorContains(t, err, want)
	}
}
