package temporal

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
)

// TestAsksAgreeWithReference: pairs at any times, of events, between them and after the last,
// between steps of state, have the neighbours that a look at the whole stream finds; also once more
// after Seek.
func TestAsksAgreeWithReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, shape := range [][3]int{{1, 1, 0}, {90, 7, 0}, {90, 5, 4}, {120, 40, 1}} {
		spec := randomStream(rng, shape[0], shape[1], shape[2])
		e := open(t, spec)
		for kind := range 3 {
			uniform, deliver := kind == 1, kind == 2
			r := &reference{spec, 3, uniform, deliver, false}
			last := spec.Times[len(spec.Times)-1]
			times := []float64{spec.Times[0], last, last + 5}
			for range 40 {
				at := spec.Times[rng.IntN(len(spec.Times))]
				times = append(times, at, min(last, at+rng.Float64()))
			}
			slices.Sort(times)
			var all []Step
			n := Negatives{Key: rng.Uint64()}
			for _, p := range steps(0, e.Len(), 7, n, func(int) bool { return true }) {
				for k := rng.IntN(min(9, len(times)+1)); k > 0; k = rng.IntN(min(9, len(times)+1)) {
					ask := Step{From: p.From, To: p.From, Negatives: n}
					for _, at := range times[:k] {
						ask.Asks = append(ask.Asks, Ask{uint32(rng.IntN(int(e.Places()))), uint32(rng.IntN(int(e.Places()))), at})
					}
					ask.Asks = append(ask.Asks, Ask{ask.Asks[0].Src, ask.Asks[0].Src, times[k-1]}) // one node
					all, times = append(all, ask), times[k:]
				}
				all = append(all, p)
			}
			s := newSampler(t, e, SamplerOptions{Fanout: 3, Uniform: uniform, Deliver: deliver, Workers: 2})
			for range 2 {
				require.NoError(t, s.Seek(t.Context(), 0))
				got := drawAll(t, s, all, 1+rng.IntN(9))
				for k, p := range all {
					require.Equal(t, plain(r.draw(p)), got[k], "%+v", p)
				}
			}
		}
	}
	s := newSampler(t, open(t, sixEvents), SamplerOptions{Fanout: 2})
	require.Panics(t, func() { _ = s.Draw(t.Context(), []Step{{To: 1, Asks: []Ask{{0, 2, 3}}}}, []*Batch{{}}) })
}

// TestEmbed: Embed returns the embeddings that Compute scores, and none for a batch without roots.
func TestEmbed(t *testing.T) {
	for _, n := range stepNetworks {
		if n.Node > 0 || n.sends {
			continue
		}
		be := kernels.NewCPU(kernels.CPUOptions{})
		events := loopStream(rand.New(rand.NewPCG(1, 2)), 30, 9, n.Event)
		drawer := &loopDrawer{events: events, fanout: 2, each: 1, nodes: 9, rng: rand.New(rand.NewPCG(3, 4))}
		if n.Kind == model.JODIE {
			drawer.fanout = 0
		}
		s := NewStepper(be, model.NewTemporal(be, n.TemporalConfig, n.TemporalShape, 3), optim.Options{})
		b := drawer.draw(10, 20, false)
		in := Input{Batch: b, State: floatsOn(be, make([]float32, len(b.Nodes)*s.Record.Cols()), s.Record.Cols()), Features: featuresOn(be, featuresOf(events, b.Events), n.Event, false)}
		z, err := s.Embed(in)
		require.NoError(t, err)
		require.Len(t, z, len(b.Roots)*n.Hidden)
		out, err := s.Compute(in)
		require.NoError(t, err)
		pair := floatsOn(be, slices.Concat(row(z, b.Src[0], n.Hidden), row(z, b.Dst[0], n.Hidden)), n.Hidden)
		s.Tape.Reset(false)
		score := make([]float32, 1)
		be.DownloadF32(score, s.Model.Score(s.Tape, s.Tape.Leaf(pair), intsOn(be, []uint32{0}), intsOn(be, []uint32{1})).Value)
		require.InDelta(t, out.Positives[0], score[0], 1e-6)
		z, err = s.Embed(Input{Batch: &Batch{}, State: floatsOn(be, nil, s.Record.Cols()), Features: floatsOn(be, nil, n.Event)})
		require.NoError(t, err)
		require.Empty(t, z)
		s.Close()
	}
}

// row is a row of a table.
func row(table []float32, i uint32, cols int) []float32 { return table[int(i)*cols:][:cols] }
