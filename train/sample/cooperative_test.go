package sample

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"
)

// cooperating is a case of workers that draw batches together.
type cooperating struct {
	schema  Schema
	topo    []lists
	config  Config
	workers int
	owner   func(t int, v uint32) int
	reads   []bool
	values  []int // columns that edges of a relation bring
	tables  []int // of rows that they bring; -1: none
	seeds   [][][][]uint32
	lost    [][][]Without // by worker and batch
	drawn   []BatchSeed
}

func anyCooperating(t *rapid.T) (c cooperating) {
	c.schema, c.topo = typedGraph(t)
	c.config = typedConfig(t, NS, Labor0)
	if rapid.IntRange(0, 3).Draw(t, "one type") == 0 {
		c.schema, c.topo = Schema{c.schema.Types[:1], c.schema.Relations[:1]}, c.topo[:1]
		c.config.SelfLoops = rapid.Bool().Draw(t, "loops")
		c.config.GCN = c.config.SelfLoops && !c.config.Weighted && rapid.Bool().Draw(t, "GCN")
	} else {
		ofRelation(t, &c.config, c.schema)
	}
	c.workers = rapid.IntRange(1, 6).Draw(t, "workers")
	block := rapid.Uint32Range(1, 5).Draw(t, "block")
	c.owner = func(t int, v uint32) int { return int(v/block+uint32(t)) % c.workers }
	c.reads = []bool{true, rapid.Bool().Draw(t, "reads"), true}[:len(c.schema.Types)]
	for range c.topo {
		c.values, c.tables = append(c.values, 0), append(c.tables, -1)
	}
	if !c.config.SelfLoops {
		for r := range c.topo {
			c.values[r], c.tables[r] = rapid.IntRange(0, 2).Draw(t, "columns"), rapid.IntRange(-1, 1).Draw(t, "table")
		}
		c.reads = append(slices.Clip(c.reads), true, rapid.Bool().Draw(t, "reads"))
	}
	lose := rapid.Bool().Draw(t, "lose")
	for range rapid.IntRange(1, 3).Draw(t, "batches") {
		c.drawn = append(c.drawn, anyZ(t))
	}
	for w := range c.workers {
		c.seeds, c.lost = append(c.seeds, nil), append(c.lost, nil)
		for range c.drawn {
			seeds := typedSeeds(t, c.schema)
			var edges []Without
			if lose && rapid.Bool().Draw(t, "this worker's") {
				edges = without(t, c.schema, seeds)
			}
			c.seeds[w], c.lost[w] = append(c.seeds[w], seeds), append(c.lost[w], edges)
		}
	}
	return c
}

// sampler makes a sampler for one worker, which has its own lists alone; with rank -1 it has all.
func (c *cooperating) sampler(t *rapid.T, rank int) *Sampler {
	var topo []Topology
	values, rows := make([]Values, len(c.topo)), make([]Rows, len(c.topo))
	for r, l := range c.topo {
		all := &tiered{lists: l, part: 7, resident: rapid.Uint32Range(0, uint32(len(l))).Draw(t, "resident")}
		if topo = append(topo, all); rank >= 0 {
			topo[r] = owned{all, func(v uint32) bool { return c.owner(c.schema.Relations[r].Dst, v) == rank }}
		}
		if c.values[r] > 0 {
			values[r] = &valued{all, c.values[r]}
		}
		if c.tables[r] >= 0 {
			rows[r] = rowed{all}
		}
	}
	s := NewTyped(c.schema, topo, c.config, rapid.IntRange(1, 3).Draw(t, "drawers"))
	s.Bring(values)
	if !c.config.SelfLoops {
		s.BringRows(rows, c.tables, []int{tableRows, tableRows})
	}
	return s
}

// whole returns the batch that one worker draws for the seeds of all, without the edges that any of
// them leaves out.
func (c *cooperating) whole(t *rapid.T, s *Sampler, i int) *Batch {
	seeds, place := make([][]uint32, len(c.schema.Types)), map[[2]uint32]int{} // by type and node
	for w := range c.workers {
		for typ, ids := range c.seeds[w][i] {
			for _, v := range ids {
				if _, ok := place[[2]uint32{uint32(typ), v}]; !ok {
					place[[2]uint32{uint32(typ), v}] = len(seeds[typ])
					seeds[typ] = append(seeds[typ], v)
				}
			}
		}
	}
	b := &Batch{Without: make([]Without, len(c.schema.Relations))}
	for r, ends := range c.schema.Relations {
		var pairs []uint64
		for w := range c.workers {
			for n, v := range c.seeds[w][i][ends.Dst] {
				if c.lost[w][i] == nil {
					break
				}
				for _, u := range c.lost[w][i][r].Of(n) {
					pairs = append(pairs, uint64(place[[2]uint32{uint32(ends.Dst), v}])<<32|uint64(u))
				}
			}
		}
		if len(pairs) > 0 {
			b.Without[r].Fill(len(seeds[ends.Dst]), pairs)
		}
	}
	require.NoError(t, s.SampleOne(context.Background(), b, c.drawn[i], seeds...))
	return b
}

// draw returns the batches of each worker.
func (c *cooperating) draw(t *rapid.T) [][]*Batch {
	got, between := make([][]*Batch, c.workers), mail(c.workers)
	var all errgroup.Group
	for rank := range c.workers {
		s := c.sampler(t, rank)
		p := &Parts{Rank: rank, Workers: c.workers, Owner: c.owner, Reads: c.reads, Exchange: between(rank)}
		for range c.drawn {
			got[rank] = append(got[rank], new(Batch))
		}
		all.Go(func() error {
			for range 2 { // the same buffers again
				for i, b := range got[rank] {
					b.Without = c.lost[rank][i]
				}
				err := s.SampleCooperative(context.Background(), p, nil, got[rank], c.drawn, c.seeds[rank])
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
	return got
}

// TestCooperativeDrawsAlike: workers that draw together have the lists of one batch of all seeds,
// with the same weights, values and rows of edges. Each list is drawn by its owner alone, and the
// rows of sources come from where their owner computes them.
func TestCooperativeDrawsAlike(t *testing.T) {
	makeKnots()
	rapid.Check(t, func(t *rapid.T) {
		c := anyCooperating(t)
		got, s := c.draw(t), c.sampler(t, -1)
		for i := range c.drawn {
			want, have := map[listOf]drawnList{}, map[listOf]drawnList{}
			one := c.whole(t, s, i)
			listsOf(t, c.schema, one, want)
			for w := range got {
				b, before := got[w][i], len(have)
				listsOf(t, c.schema, b, have)
				lists := 0
				for l := range b.Layers {
					for r, ends := range c.schema.Relations {
						lists += len(b.Layers[l].Blocks[r].Start)
						for _, v := range b.Layers[l].Nodes[ends.Dst].destinations() {
							require.Equal(t, w, c.owner(ends.Dst, v))
						}
					}
				}
				require.Len(t, have, before+lists, "a list is drawn once")
				for typ, ids := range c.seeds[w][i] {
					require.True(t, slices.Equal(ids, b.Asked()[typ]))
				}
			}
			require.Equal(t, want, have)
			c.requireHalos(t, got, i)
			c.requireInputs(t, got, i, one)
			c.requirePacked(t, s, got, i)
			c.requireTogether(t, s, got, i, one)
		}
	})
}

// requireHalos checks that every source of a layer above the first, and every seed that was asked
// for, has a row of the layer below, at its owner.
func (c *cooperating) requireHalos(t *rapid.T, got [][]*Batch, i int) {
	for l := 1; l <= len(c.config.Fanouts); l++ {
		for typ := range c.schema.Types {
			made := func(w int) []uint32 { // by the layer below
				return got[w][i].Layers[l-1].Nodes[typ].destinations()
			}
			for w := range got {
				h, sources := &got[w][i].Halos()[l], got[w][i].Asked()[typ]
				if l < len(c.config.Fanouts) {
					sources = got[w][i].Layers[l].Nodes[typ].Src
				}
				filled := make([]bool, len(sources))
				for row, at := range h.Own[typ] {
					require.Equal(t, sources[at], made(w)[row])
					require.False(t, filled[at])
					filled[at] = true
				}
				for q := range got {
					send := got[q][i].Halos()[l].Send[typ][w]
					require.Len(t, h.Take[typ][q], len(send))
					for n, at := range h.Take[typ][q] {
						require.Equal(t, sources[at], made(q)[send[n]])
						require.False(t, filled[at])
						filled[at] = true
					}
				}
				require.NotContains(t, filled, false)
			}
		}
	}
}

// requireInputs checks that workers read the rows of the one batch together, each once.
func (c *cooperating) requireInputs(t *rapid.T, got [][]*Batch, i int, one *Batch) {
	for n, want := range one.Inputs() {
		var read []uint32
		for w := range got {
			for _, v := range got[w][i].Reads()[n] {
				require.Equal(t, w, c.owner(n, v))
				read = append(read, v)
			}
		}
		if !c.reads[n] {
			require.Empty(t, read)
			continue
		}
		want = slices.Clone(want)
		slices.Sort(want)
		slices.Sort(read)
		require.True(t, slices.Equal(want, read), "%v and %v", want, read)
	}
}

// requirePacked checks that batches come back from bytes, and that fewer bytes are no batch.
func (c *cooperating) requirePacked(t *rapid.T, s *Sampler, got [][]*Batch, i int) {
	into := new(Batch)
	for w := range got {
		want := got[w][i]
		packed := s.Pack(nil, want)
		rest, err := s.Unpack(into, packed)
		require.NoError(t, err)
		require.Empty(t, rest)
		before, after := map[listOf]drawnList{}, map[listOf]drawnList{}
		listsOf(t, c.schema, want, before)
		listsOf(t, c.schema, into, after)
		require.Equal(t, before, after)
		for typ := range c.schema.Types {
			require.True(t, slices.Equal(want.Seeds[typ], into.Seeds[typ]))
			require.True(t, slices.Equal(want.Asked()[typ], into.Asked()[typ]))
			for l := 1; l < len(want.Halos()); l++ {
				a, b := &want.Halos()[l], &into.Halos()[l]
				require.True(t, slices.Equal(a.Live[typ], b.Live[typ]) && slices.Equal(a.Own[typ], b.Own[typ]))
				for q := range got {
					require.True(t, slices.Equal(a.Send[typ][q], b.Send[typ][q]))
					require.True(t, slices.Equal(a.Take[typ][q], b.Take[typ][q]))
				}
			}
		}
		for n, rows := range want.Reads() {
			require.True(t, slices.Equal(rows, into.Reads()[n]))
		}
		cut := rapid.IntRange(0, len(packed)-1).Draw(t, "cut")
		_, err = s.Unpack(new(Batch), packed[:cut])
		require.Error(t, err)
		at := rapid.IntRange(8, len(packed)-1).Draw(t, "spoilt")
		packed[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
		_, _ = s.Unpack(new(Batch), packed) // it may happen to be a batch, and does not panic
	}
}

// TestCooperativeUnlike: workers that draw from different batch seeds are told so.
func TestCooperativeUnlike(t *testing.T) {
	between, topo := mail(2), AtHand(lists{{1, 2}, {0}, {0, 1}})
	var all errgroup.Group
	var errs [2]error
	for rank := range errs {
		s := NewSampler(topo, Config{Kind: NS, Fanouts: []int{2, 2}}, 1)
		p := &Parts{Rank: rank, Workers: 2, Reads: []bool{true}, Exchange: between(rank)}
		p.Owner = func(_ int, v uint32) int { return int(v) % 2 }
		all.Go(func() error {
			seeds := []BatchSeed{{First: uint64(rank)}}
			errs[rank] = s.SampleCooperative(t.Context(), p, nil, []*Batch{new(Batch)}, seeds, [][][]uint32{{{0, 2}}})
			return nil
		})
	}
	require.NoError(t, all.Wait())
	for _, err := range errs {
		require.ErrorContains(t, err, "draws a batch from another batch seed than worker")
	}
}

// requireTogether checks what Together derives from the one batch against what workers drew and
// exchanged.
func (c *cooperating) requireTogether(t *rapid.T, s *Sampler, got [][]*Batch, i int, one *Batch) {
	var asked [][][]uint32
	for w := range got {
		asked = append(asked, c.seeds[w][i])
	}
	p := &Parts{Workers: c.workers, Owner: c.owner, Reads: c.reads}
	for w, have := range s.Together(p, one, asked) {
		b := got[w][i]
		for n, rows := range b.Dealt().Rows {
			require.ElementsMatch(t, rows, have.Rows[n])
			sent, taken := 0, 0
			for q := range got {
				if q != w {
					sent, taken = sent+len(b.Dealt().Send[n][q]), taken+len(b.Dealt().Take[n][q])
				}
			}
			require.Equal(t, []int{sent, taken}, []int{have.Sent[n], have.Taken[n]})
		}
		for hop := range c.config.Fanouts {
			l, want := len(c.config.Fanouts)-1-hop, have.Hops[hop]
			edges := 0
			for r := range c.schema.Relations {
				edges += len(b.Layers[l].Blocks[r].Nbr)
			}
			require.Equal(t, edges, want.Edges)
			for typ := range c.schema.Types {
				nodes := &b.Layers[l].Nodes[typ]
				require.ElementsMatch(t, nodes.destinations(), want.Nodes[typ])
				require.Len(t, nodes.Src, want.Sources[typ])
				if l == 0 { // these rows are read, not computed
					continue
				}
				sent, taken := 0, 0
				for q := range got {
					sent, taken = sent+len(b.Halos()[l].Send[typ][q]), taken+len(b.Halos()[l].Take[typ][q])
				}
				require.Equal(t, []int{sent, taken}, []int{want.Sent[typ], want.Taken[typ]})
			}
		}
	}
}

// TestTogetherCountsMessages: IDBytes is the length of the messages that a worker sends.
func TestTogetherCountsMessages(t *testing.T) {
	makeKnots()
	rapid.Check(t, func(t *rapid.T) {
		c := anyCooperating(t)
		c.config.GCN = false
		c.drawn = c.drawn[:1]
		for w := range c.lost {
			c.lost[w] = [][]Without{nil}
		}
		between, sent := mail(c.workers), make([]int64, c.workers)
		var all errgroup.Group
		var asked [][][]uint32
		for rank := range c.workers {
			asked = append(asked, c.seeds[rank][0])
			s, send := c.sampler(t, rank), between(rank)
			p := &Parts{Rank: rank, Workers: c.workers, Owner: c.owner, Reads: c.reads}
			p.Exchange = func(ctx context.Context, texts [][]byte) ([][]byte, error) {
				for q := range texts {
					if q != rank {
						sent[rank] += int64(len(texts[q]))
					}
				}
				return send(ctx, texts)
			}
			all.Go(func() error {
				batches := []*Batch{new(Batch)}
				return s.SampleCooperative(context.Background(), p, nil, batches, c.drawn, c.seeds[rank][:1])
			})
		}
		require.NoError(t, all.Wait())
		s := c.sampler(t, -1)
		p := &Parts{Workers: c.workers, Owner: c.owner, Reads: c.reads}
		for w, have := range s.Together(p, c.whole(t, s, 0), asked) {
			require.Equal(t, sent[w], have.IDBytes)
		}
	})
}
