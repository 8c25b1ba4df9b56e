package history_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/sample"
)

// simulation plans and runs steps of a Cache, and holds each against the reference. What is live
// and what gradients are depends on the step alone, so that a step that is planned anew is the
// same.
type simulation struct {
	t          require.TestingT
	o          history.Options
	seed       uint64
	cache      *history.Cache
	references []*reference         // by Kept
	before     []map[int]*reference // the plan of a step that has not run
	decisions  []map[int]decision
	counts     []history.Counts
	next       int // step to plan
	written    int
}

const nodes = 14

func newSimulation(t require.TestingT, o history.Options, seed uint64) *simulation {
	c, err := history.New(o)
	require.NoError(t, err)
	o.Lag = max(o.Lag, 1)
	if o.PGrad == 0 || o.TStale == 0 {
		o.Kept = nil
	}
	s := &simulation{t: t, o: o, seed: seed, cache: c, next: o.First, written: o.First, counts: make([]history.Counts, len(o.Kept))}
	for _, k := range o.Kept {
		s.references = append(s.references, newReference(o, k))
		s.before, s.decisions = append(s.before, map[int]*reference{}), append(s.decisions, map[int]decision{})
	}
	return s
}

// rng gives the same numbers for the same words.
func (s *simulation) rng(words ...uint64) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, sample.Hash(words...)))
}

// live returns the nodes that a step meets.
func (s *simulation) live(step, layer, typ int) (ids []uint32) {
	rng := s.rng(1, uint64(step), uint64(layer), uint64(typ))
	for _, v := range rng.Perm(nodes)[:rng.IntN(nodes+1)] {
		ids = append(ids, uint32(v))
	}
	return ids
}

// plan plans a group of n steps and draws so many hops of it. Then it forgets the group unless
// these were all hops.
func (s *simulation) plan(n, hops int) {
	e := s.cache.Group(s.next, n)
	require.Equal(s.t, len(s.o.Kept) == 0, e == nil)
	for hop := 0; hop < hops && e != nil; hop++ {
		layer := s.o.Layers - 1 - hop
		found := make([][][]uint32, n)
		for i := range found {
			for typ := range s.o.Types {
				found[i] = append(found[i], s.live(s.next+i, layer, typ))
			}
		}
		next, origins, err := e.Expand(context.Background(), hop, found)
		require.NoError(s.t, err)
		require.Len(s.t, next, n)
		require.Len(s.t, origins, n)
		for i := range found {
			for typ := range s.o.Types {
				s.check(s.next+i, layer, typ, next[i][typ], origins[i][typ])
			}
		}
	}
	if hops < s.o.Layers {
		s.cache.Rewind(s.next)
		s.forget()
		return
	}
	s.next += n
}

// check compares what was decided about one layer and type of a step.
func (s *simulation) check(step, layer, typ int, next []uint32, origins []sample.Origin) {
	live := s.live(step, layer, typ)
	k := slices.IndexFunc(s.o.Kept, func(k history.Kept) bool { return k.Layer == layer && k.Type == typ })
	if k < 0 { // all are drawn further
		require.Nil(s.t, next)
		require.Nil(s.t, origins)
		return
	}
	s.before[k][step] = s.references[k].clone()
	d := s.references[k].plan(step, live)
	s.decisions[k][step] = d
	if !slices.Equal(d.computed, next) {
		require.FailNow(s.t, "next", "step %d, layer %d, type %d: of %v %v is computed, want %v", step, layer, typ, live, next, d.computed)
	}
	row := uint32(0)
	for at, v := range live {
		want := sample.Origin{From: sample.Below, Index: row}
		if x, used := d.used[v]; used {
			want = sample.Origin{From: sample.Slot, Index: x.Slot}
		} else {
			row++
		}
		if origins[at] != want {
			require.FailNow(s.t, "origin", "step %d, layer %d, type %d, node %d: %v, want %v", step, layer, typ, v, origins[at], want)
		}
	}
}

// forget has the references go back to before the next step, as far as they have planned it.
func (s *simulation) forget() {
	for k := range s.references {
		if was, planned := s.before[k][s.next]; planned {
			s.references[k] = was
		}
		maps.DeleteFunc(s.before[k], func(step int, _ *reference) bool { return step >= s.next })
	}
}

// rewind forgets the plans of steps from step on.
func (s *simulation) rewind(step int) {
	s.next = step
	s.forget()
}

// run is the next step that has not run.
func (s *simulation) run() {
	i := s.written
	p := s.cache.Planned(i)
	require.Equal(s.t, i, p.Step)
	require.Len(s.t, p.Parts, len(s.o.Kept))
	measured := make([]history.Measured, len(p.Parts))
	for k := range p.Parts {
		part, kept := &p.Parts[k], s.o.Kept[k]
		d := s.decisions[k][i]
		live := s.live(i, kept.Layer, kept.Type)
		require.Equal(s.t, [3]int{kept.Layer, kept.Type, len(live)}, [3]int{part.Layer, part.Type, part.Live})
		require.Equal(s.t, len(d.used) == 0 && len(d.kept) == 0, part.Idle())
		m := &measured[k]
		m.Nodes = live
		rng := s.rng(2, uint64(i), uint64(k))
		strange := rng.IntN(3) == 0
		norm, overflows := map[uint32]float32{}, map[uint32]bool{}
		for at, v := range live {
			norm[v] = float32(rng.IntN(6)) / 8
			if strange && rng.IntN(4) == 0 {
				odd := []float64{math.NaN(), math.Inf(1), math.MaxFloat32, 1e-45, math.Copysign(0, -1), math.Inf(-1), math.Copysign(math.NaN(), -1)}
				norm[v] = float32(odd[rng.IntN(len(odd))])
			}
			m.Norms = append(m.Norms, norm[v])
			if x, used := d.used[v]; used {
				require.Equal(s.t, history.Use{At: uint32(at), Version: x}, part.Used[0])
				part = &history.Part{Rows: part.Rows, Slots: part.Slots, Used: part.Used[1:]}
			}
		}
		require.Empty(s.t, part.Used)
		require.Len(s.t, part.Rows, len(d.kept))
		for j, row := range part.Rows {
			v := d.computed[row]
			require.Equal(s.t, d.kept[v], history.Version{Slot: part.Slots[j], Stamp: uint32(i)})
			overflows[v] = strange && rng.IntN(4) == 0
			if strange {
				m.Overflow = append(m.Overflow, uint32(bit(overflows[v])))
			}
		}
		// Plans of steps i + Lag and later see the verdict, whichever are made by now, or made
		// anew.
		s.references[k].measure(i, &d, live, norm, overflows)
		delete(s.before[k], i)
		for _, r := range s.before[k] {
			r.rejected[i] = s.references[k].rejected[i]
			delete(r.rejected, i-s.o.Lag)
		}
		delete(s.references[k].rejected, i-s.o.Lag)
		s.counts[k].Add(d.counts)
		if len(d.used) == 0 && len(d.kept) == 0 && rng.IntN(2) == 0 {
			*m = history.Measured{}
		}
	}
	if s.rng(3, uint64(i)).IntN(2) == 0 && !slices.ContainsFunc(p.Parts, func(p history.Part) bool { return !p.Idle() }) {
		measured = nil
	}
	s.cache.WriteBack(i, measured)
	s.written++
	for k, st := range s.cache.Stats() {
		n, kept := s.counts[k], s.o.Kept[k]
		require.Equal(s.t, history.Stats{Layer: kept.Layer, Type: kept.Type, Slots: kept.Slots, Live: st.Live, Counts: n}, st)
		require.Equal(s.t, n.Admitted-n.Replaced-n.EvictedGrad-n.EvictedStale, st.Live)
		if s.next == s.written {
			require.EqualValues(s.t, len(s.references[k].entries), st.Live)
		}
	}
}

// snapshot is the state of a cache in its binary form.
func snapshot(t require.TestingT, c *history.Cache) []byte {
	var s history.Snapshot
	s.Take(c)
	var b bytes.Buffer
	n, err := s.WriteTo(&b)
	require.NoError(t, err)
	require.EqualValues(t, b.Len(), n)
	return b.Bytes()
}

// restore goes on with what a snapshot says.
func (s *simulation) restore() {
	saved := snapshot(s.t, s.cache)
	c, err := history.Restore(s.o, bytes.NewReader(append(slices.Clip(saved), "behind"...)))
	require.NoError(s.t, err)
	require.Equal(s.t, saved, snapshot(s.t, c))
	s.cache.Rewind(s.written)
	require.Equal(s.t, saved, snapshot(s.t, s.cache), "plans are no part of a snapshot")
	s.cache = c
	s.rewind(s.written)
}

func drawOptions(t *rapid.T) history.Options {
	o := history.Options{
		Seed:   rapid.Uint64Range(0, 3).Draw(t, "seed"),
		Layers: rapid.IntRange(1, 4).Draw(t, "layers"), Types: rapid.IntRange(1, 2).Draw(t, "types"),
		PGrad:  rapid.SampledFrom([]float64{0, 0.25, 0.5, 0.875, 1}).Draw(t, "p_grad"),
		TStale: rapid.SampledFrom([]int{0, 1, 2, 3, 7, 20, math.MaxInt}).Draw(t, "t_stale"),
		Lag:    rapid.SampledFrom([]int{0, 1, 2, 3, 6, 11, math.MaxInt}).Draw(t, "lag"),
		First:  rapid.SampledFrom([]int{0, 7, math.MaxUint32 - 99}).Draw(t, "first"),
	}
	o.Start = o.First + rapid.SampledFrom([]int{-1, 0, 1, 9}).Draw(t, "start")
	o.Start = max(o.Start, 0)
	for l := 1; l < o.Layers; l++ {
		for typ := range o.Types {
			if k := (history.Kept{Layer: l, Type: typ}); rapid.IntRange(0, 5).Draw(t, "kept") > 0 {
				k.Slots = rapid.SampledFrom([]int{0, 1, 2, 7, 20, 64, 200}).Draw(t, "slots")
				k.Nodes = rapid.SampledFrom([]int{0, nodes, 5}).Draw(t, "nodes")
				k.Admits = rapid.SampledFrom([]func(uint32) bool{nil, nil, history.Prefix(5), func(v uint32) bool { return v%3 > 0 }}).Draw(t, "admits")
				if k.Nodes == 5 {
					k.Admits = history.Prefix(5)
				}
				o.Kept = append(o.Kept, k)
			}
		}
	}
	return o
}

// TestCacheAgainstReference: all plans follow the rules, whatever is planned ahead, in groups of
// any size, and given up, whenever steps run, and whether or not the state went through a snapshot.
func TestCacheAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(t, drawOptions(t), rapid.Uint64().Draw(t, "numbers"))
		end := s.o.First + rapid.IntRange(1, 80).Draw(t, "steps")
		rng := s.rng(rapid.Uint64().Draw(t, "times"))
		for s.written < end {
			most := min(end-s.next, 6)
			if free := s.written - s.next; s.o.Lag <= math.MaxInt32 {
				most = min(most, free+s.o.Lag)
			}
			switch what := rng.IntN(40); {
			case what == 0:
				s.restore()
			case what == 1:
				step := s.written + rng.IntN(s.next-s.written+1)
				s.cache.Rewind(step)
				s.rewind(step)
			case what == 2 && most > 0:
				s.plan(1+rng.IntN(most), rng.IntN(s.o.Layers))
			case what < 22 && most > 0 || s.next == s.written:
				s.plan(1+rng.IntN(most), s.o.Layers)
			default:
				s.run()
			}
		}
	})
}

// TestCacheForLong fills and empties small pools for thousands of steps.
func TestCacheForLong(t *testing.T) {
	for _, lag := range []int{1, 4, 7} {
		for _, slots := range []int{1, 13, 64, 120} {
			s := newSimulation(t, history.Options{
				Layers: 2, Types: 1, PGrad: 0.75, TStale: 8, Lag: lag, Kept: []history.Kept{{Layer: 1, Slots: slots}},
			}, uint64(lag*slots))
			for s.written < 2000 {
				if s.next < s.written+lag {
					s.plan(min(max(1, lag/2), s.written+lag-s.next), 2)
				} else {
					s.run()
				}
			}
			st := s.cache.Stats()[0]
			require.Positive(t, min(st.Hits, st.EvictedGrad, st.Admitted/int64(slots)/2, st.NaN, st.Overflow))
			if lag > 1 && slots > 1 {
				require.Positive(t, min(st.ProvisionalHits, st.UsedRejected))
				require.Less(t, st.ProvisionalHits, st.Hits)
			}
		}
	}
}

// TestCacheIsAlgorithm1: with a lag of 1 and enough slots the cache is FreshGNN's algorithm 1. It
// uses the embeddings that it has, puts in or keeps those with small gradients, and throws out
// those with large gradients and the old ones.
func TestCacheIsAlgorithm1(t *testing.T) {
	const stale, steps, pGrad = 6, 300, 0.6
	c, err := history.New(history.Options{
		Layers: 2, Types: 1, PGrad: pGrad, TStale: stale, Kept: []history.Kept{{Layer: 1, Slots: nodes * (stale + 2)}},
	})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	written := map[uint32]int{} // the cache of the paper: the step in which a node's embedding was put in
	hits := 0
	for i := range steps {
		var live, computed []uint32
		for _, v := range rng.Perm(nodes)[:rng.IntN(nodes+1)] {
			live = append(live, uint32(v))
		}
		for _, v := range live {
			if _, there := written[v]; !there {
				computed = append(computed, v)
			}
		}
		hits += len(live) - len(computed)
		e := c.Group(i, 1)
		next, _, err := e.Expand(context.Background(), 0, [][][]uint32{{live}})
		require.NoError(t, err)
		require.True(t, slices.Equal(computed, next[0][0]), "step %d: %v, want %v", i, next[0][0], computed)

		norms := make([]float32, len(live))
		for n := range norms {
			norms[n] = rng.Float32()
		}
		for n, v := range live {
			smaller := 0
			for _, x := range norms {
				smaller += bit(x < norms[n])
			}
			_, there := written[v]
			switch small := smaller < int(pGrad*float64(len(live))); {
			case small && !there:
				written[v] = i
			case !small:
				delete(written, v)
			}
		}
		for v, step := range written {
			if i+1-step > stale {
				delete(written, v)
			}
		}
		c.WriteBack(i, []history.Measured{{Nodes: live, Norms: norms}})
	}
	st := c.Stats()[0]
	require.EqualValues(t, hits, st.Hits)
	require.Greater(t, hits, steps)
	require.Zero(t, st.ProvisionalHits)
	require.Zero(t, st.Refused)
}

// TestNothingIsKept: with a share or an age of 0, or no slots, there are no pools, and no Expander.
func TestNothingIsKept(t *testing.T) {
	kept := []history.Kept{{Layer: 1, Slots: 10}}
	for _, o := range []history.Options{
		{Layers: 2, Types: 1, PGrad: 1, Lag: 3, Kept: kept}, {Layers: 2, Types: 1, TStale: 5, Lag: 3, Kept: kept}, {Layers: 2, Types: 1, PGrad: 1, TStale: 5, Lag: 3},
	} {
		c, err := history.New(o)
		require.NoError(t, err)
		require.Empty(t, c.Kept())
		for i := range 10 {
			require.Nil(t, c.Group(i, 1))
			require.Empty(t, c.Planned(i).Parts)
			c.WriteBack(i, nil)
		}
		require.Empty(t, c.Stats())
		back, err := history.Restore(o, bytes.NewReader(snapshot(t, c)))
		require.NoError(t, err)
		require.Nil(t, back.Group(10, 3))
	}
}

func TestOrderOfCalls(t *testing.T) {
	o := history.Options{Layers: 3, Types: 1, PGrad: 1, TStale: 5, Lag: 4, First: 3, Kept: []history.Kept{{Layer: 1, Slots: 10}, {Layer: 2, Slots: 1}}}
	c, err := history.New(o)
	require.NoError(t, err)
	expand := func(e sample.Expander, hop int, live ...uint32) {
		_, _, err := e.Expand(context.Background(), hop, [][][]uint32{{live}})
		require.NoError(t, err)
	}
	require.PanicsWithValue(t, "history: Group of 1 steps from 0 on: step 3 is next", func() { c.Group(0, 1) })
	require.PanicsWithValue(t, "history: Group of 0 steps from 3 on: step 3 is next", func() { c.Group(3, 0) })
	require.PanicsWithValue(t, "history: Group of 5 steps from 3 on before WriteBack of step 3", func() { c.Group(3, 5) })
	e := c.Group(3, 1)
	expand(e, 0, 1, 2)
	require.PanicsWithValue(t, "history: step 3 is not drawn to its end", func() { c.Planned(3) })
	require.PanicsWithValue(t, "history: step 4 is not planned: those from 3 to 3 are", func() { c.Planned(4) })
	require.PanicsWithValue(t, "history: Expand of step 3, which is planned or of no group", func() { expand(e, 0, 1) })
	expand(e, 1, 3)
	expand(e, 2, 4)
	require.Panics(t, func() { expand(e, 3, 4) })
	require.PanicsWithValue(t, "history: WriteBack: layer 1, type 0: 0 nodes, 0 norms and 0 overflows, where 1 nodes are live and 1 rows kept", func() { c.WriteBack(3, nil) })
	e = c.Group(4, 1)
	expand(e, 0, 1, 2)
	expand(e, 1, 3)
	require.PanicsWithValue(t, "history: WriteBack of step 4: step 3 is next", func() { c.WriteBack(4, nil) })
	require.PanicsWithValue(t, "history: Rewind to step 2: steps from 3 to 5 can be planned anew", func() { c.Rewind(2) })
	require.PanicsWithValue(t, "history: Rewind to step 6: steps from 3 to 5 can be planned anew", func() { c.Rewind(6) })
	c.Rewind(4)
	require.PanicsWithValue(t, "history: Expand of step 4, which is planned or of no group", func() { expand(e, 0, 1) })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, err = c.Group(4, 1).Expand(ctx, 0, [][][]uint32{{nil}})
	require.ErrorIs(t, err, context.Canceled)
}

// TestRewindForgetsUses: a plan that did not run holds no slot for one that takes its place, of
// another batch.
func TestRewindForgetsUses(t *testing.T) {
	c, err := history.New(history.Options{Layers: 2, Types: 1, PGrad: 1, TStale: 1, Lag: 3, Kept: []history.Kept{{Layer: 1, Slots: 1}}})
	require.NoError(t, err)
	plan := func(step int, v uint32) *history.Part {
		_, _, err := c.Group(step, 1).Expand(context.Background(), 0, [][][]uint32{{{v}}})
		require.NoError(t, err)
		return &c.Planned(step).Parts[0]
	}
	require.Len(t, plan(0, 7).Slots, 1)
	require.Len(t, plan(1, 7).Used, 1)
	c.Rewind(1)
	require.Len(t, plan(1, 8).Slots, 1)
	c.Rewind(1)
	require.Len(t, plan(1, 7).Used, 1)
}

func TestValidate(t *testing.T) {
	kept := history.Kept{Layer: 1, Slots: 1}
	_, err := history.New(history.Options{
		Layers: 2, Types: 1, PGrad: math.NaN(), TStale: -1, Lag: -2, Start: -3, First: 1 << 32,
		Kept: []history.Kept{kept, kept, {Layer: 2}, {Layer: 0, Type: 1, Slots: -1, Nodes: -1}},
	})
	require.EqualError(t, err, `history: {p_grad} NaN: from 0, which keeps nothing, to 1
{t_stale} -1: at least 0, which keeps nothing
{history_lag} -2: at least 1
{history_start} -3: at least 0
first step 4294967296: from 0 to 4294967295
embeddings of layer 1 and type 0 twice: put their slots together
embeddings of layer 2 and type 0: there are 2 layers and 1 types, and layer 0 has none
embeddings of layer 0 and type 1: there are 2 layers and 1 types, and layer 0 has none
-1 nodes of type 1: at least 0, which is not known
-1 slots for layer 0 and type 1: from 0 to 4294967295`)
	_, err = history.New(history.Options{})
	require.EqualError(t, err, "history: 0 layers and 0 types: at least 1 of each")
}

func ExampleCache() {
	c, err := history.New(history.Options{
		Layers: 2, Types: 1, PGrad: 0.5, TStale: 200, Lag: 1, Kept: []history.Kept{{Layer: 1, Slots: 100}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for step := range 2 {
		// A Sampler calls Expand while it draws.
		live := []uint32{7, 9, 8}
		next, _, _ := c.Group(step, 1).Expand(context.Background(), 0, [][][]uint32{{live}})
		p := c.Planned(step).Parts[0]
		fmt.Println("step", step, "uses", p.Used, "computes", next[0][0], "and keeps rows", p.Rows, "in slots", p.Slots)
		c.WriteBack(step, []history.Measured{{Nodes: live, Norms: []float32{0.3, 0.1, 0.2}}})
	}
	// Output:
	// step 0 uses [] computes [7 9 8] and keeps rows [0 1 2] in slots [0 1 2]
	// step 1 uses [{1 {1 0}}] computes [7 8] and keeps rows [0 1] in slots [0 2]
}
