package sample

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"
)

// owned has the lists of the nodes of one worker alone.
type owned struct {
	*tiered
	owns func(v uint32) bool
}

func (o owned) Neighbors(v uint32) []uint32 {
	o.check(v)
	return o.tiered.Neighbors(v)
}

func (o owned) Weights(v uint32) []float32 {
	o.check(v)
	return o.tiered.Weights(v)
}

func (o owned) Read(ctx context.Context, nodes []uint32, serve func(i, from int, part []uint32) error) error {
	o.check(nodes...)
	return o.tiered.Read(ctx, nodes, serve)
}

func (o owned) ReadWeights(ctx context.Context, nodes []uint32, serve func(i, from int, part []float32) error) error {
	o.check(nodes...)
	return o.tiered.ReadWeights(ctx, nodes, serve)
}

func (o owned) Degree(v uint32) int {
	o.check(v)
	return o.tiered.Degree(v)
}

func (o owned) SelfLoops(ctx context.Context) (count func(v uint32) int, err error) {
	all, err := o.tiered.SelfLoops(ctx)
	return func(v uint32) int {
		o.check(v)
		return all(v)
	}, err
}

func (o owned) check(nodes ...uint32) {
	for _, v := range nodes {
		if !o.owns(v) {
			panic(fmt.Sprintf("node %d is of another worker", v))
		}
	}
}

// mail returns the Exchange of each of some workers.
func mail(workers int) func(rank int) func(ctx context.Context, send [][]byte) ([][]byte, error) {
	boxes := make([][]chan []byte, workers) // to and from
	for q := range boxes {
		for range workers {
			boxes[q] = append(boxes[q], make(chan []byte, 1))
		}
	}
	return func(rank int) func(ctx context.Context, send [][]byte) ([][]byte, error) {
		return func(_ context.Context, send [][]byte) ([][]byte, error) {
			recv := make([][]byte, workers)
			for q, text := range send {
				boxes[q][rank] <- text
			}
			for q := range recv {
				recv[q] = <-boxes[rank][q]
			}
			return recv, nil
		}
	}
}

// TestPartsDrawAlike: workers that have the lists of their own nodes alone draw the batches that
// each of them would draw with all lists, through an Expander, too. Every row of their inputs has
// one reader, which sends it. Asks knows the bytes and the rows before.
func TestPartsDrawAlike(t *testing.T) {
	makeKnots()
	rapid.Check(t, func(t *rapid.T) {
		schema, topo := typedGraph(t)
		c := typedConfig(t, NS, Labor0)
		if rapid.IntRange(0, 3).Draw(t, "one type") == 0 {
			schema, topo = Schema{schema.Types[:1], schema.Relations[:1]}, topo[:1]
			c.SelfLoops = rapid.Bool().Draw(t, "loops")
			c.GCN = c.SelfLoops && !c.Weighted && rapid.Bool().Draw(t, "GCN")
		} else {
			ofRelation(t, &c, schema)
		}
		workers, block := rapid.IntRange(1, 6).Draw(t, "workers"), rapid.Uint32Range(1, 5).Draw(t, "block")
		owner := func(t int, v uint32) int { return int(v/block+uint32(t)) % workers }
		var place func(t int, v uint32) uint32
		placed := func(_ int, v uint32) uint32 { return v }
		if rapid.Bool().Draw(t, "places") {
			place = func(t int, v uint32) (lower uint32) { // as store.Owners.RowOf
				for u := range v {
					if owner(t, u) == owner(t, v) {
						lower++
					}
				}
				return lower
			}
			placed = place
		}
		reads := []bool{true, rapid.Bool().Draw(t, "reads"), true}[:len(schema.Types)]
		batches := rapid.IntRange(1, 4).Draw(t, "batches")
		drawers := rapid.IntRange(1, 3).Draw(t, "drawers")
		pairs := rapid.SampledFrom([]int{1, 10, maxPairs}).Draw(t, "pairs")
		seeds, batchSeeds := make([][][][]uint32, workers), make([][]BatchSeed, workers)
		columns, table := make([]int, len(topo)), make([]int, len(topo)) // what edges bring; table -1: no rows
		for r := range topo {
			if table[r] = -1; !c.SelfLoops {
				columns[r], table[r] = rapid.IntRange(0, 2).Draw(t, "columns"), rapid.IntRange(-1, 1).Draw(t, "table")
			}
		}
		if !c.SelfLoops {
			reads = append(slices.Clip(reads), true, rapid.Bool().Draw(t, "reads"))
		}
		bring := func(s *Sampler, of []*tiered) {
			values, rows := make([]Values, len(topo)), make([]Rows, len(topo))
			for r := range topo {
				if columns[r] > 0 {
					values[r] = &valued{of[r], columns[r]}
				}
				if table[r] >= 0 {
					rows[r] = rowed{of[r]}
				}
			}
			s.Bring(values)
			if !c.SelfLoops {
				s.BringRows(rows, table, []int{tableRows, tableRows})
			}
		}
		resident := make([]uint32, len(topo))
		for r := range resident {
			resident[r] = rapid.Uint32Range(0, uint32(len(topo[r]))).Draw(t, "resident")
		}
		drops := rapid.Bool().Draw(t, "drops")
		var e Expander
		if drops {
			e = expanding(func(hop int, found [][][]uint32) ([][][]uint32, [][][]Origin, error) {
				next, origins := make([][][]uint32, len(found)), make([][][]Origin, len(found))
				for i, types := range found {
					for typ, ids := range types {
						kept, from := dropHalf(i, typ, hop, ids)
						next[i], origins[i] = append(next[i], kept), append(origins[i], from)
					}
				}
				return next, origins, nil
			})
		}
		lose := !drops && rapid.Bool().Draw(t, "lose")
		lost := make([][][]Without, workers)
		for w := range seeds {
			for range batches {
				seeds[w], batchSeeds[w] = append(seeds[w], typedSeeds(t, schema)), append(batchSeeds[w], anyZ(t))
				var edges []Without
				if lose {
					edges = without(t, schema, seeds[w][len(seeds[w])-1])
				}
				lost[w] = append(lost[w], edges)
			}
		}
		got := make([][]*Batch, workers)
		sent := make([][]int64, workers) // bytes, from and to
		between := mail(workers)
		var all errgroup.Group
		for rank := range workers {
			sent[rank] = make([]int64, workers)
			deliver := between(rank)
			exchange := func(ctx context.Context, send [][]byte) ([][]byte, error) {
				for q := range send {
					sent[rank][q] += int64(len(send[q]))
				}
				return deliver(ctx, send)
			}
			p := &Parts{Rank: rank, Workers: workers, Owner: owner, Place: place, Reads: reads, Exchange: exchange}
			var own []Topology
			var tiers []*tiered
			for r, l := range topo {
				dst := schema.Relations[r].Dst
				all := &tiered{lists: l, part: 7, resident: resident[r]}
				own = append(own, owned{all, func(v uint32) bool { return owner(dst, v) == rank }})
				tiers = append(tiers, all)
			}
			s := NewTyped(schema, own, c, drawers)
			s.maxPairs = pairs
			bring(s, tiers)
			for range batches {
				got[rank] = append(got[rank], &Batch{Without: lost[rank][len(got[rank])]})
			}
			all.Go(func() error {
				for range 2 { // the same buffers again
					err := s.SampleParts(context.Background(), p, e, got[rank], batchSeeds[rank], seeds[rank])
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		require.NoError(t, all.Wait())
		var whole []Topology
		var tiers []*tiered
		for _, l := range topo {
			tiers = append(tiers, &tiered{lists: l, resident: uint32(len(l))})
			whole = append(whole, tiers[len(tiers)-1])
		}
		s := NewTyped(schema, whole, c, 1)
		bring(s, tiers)
		asked := make([][]int64, workers)
		for w := range asked {
			asked[w] = make([]int64, workers)
		}
		wanted := make([][][]map[uint32]bool, len(got[0])) // by batch, owner and input: rows
		for i := range wanted {
			wanted[i] = make([][]map[uint32]bool, workers)
			for q := range wanted[i] {
				for range reads {
					wanted[i][q] = append(wanted[i][q], map[uint32]bool{})
				}
			}
		}
		var packed Batch
		for w := range workers {
			var want []*Batch
			for i := range batches {
				want = append(want, &Batch{Without: lost[w][i]})
			}
			require.NoError(t, s.SampleThrough(context.Background(), e, want, batchSeeds[w], seeds[w]))
			for i := range batches {
				sameLists(t, schema, want[i], got[w][i])
				require.Equal(t, want[i].Inputs(), got[w][i].Inputs())
				if !drops {
					unpacksDealt(t, s, got[w][i], &packed)
				}
				for q, a := range s.Asks(&Parts{Rank: w, Workers: workers, Owner: owner, Reads: reads}, want[i]) {
					asked[w][q] += 2 * a.IDBytes // each batch was drawn twice
					asked[q][w] += 2 * a.ListBytes
					for n, rows := range a.Rows {
						for _, v := range rows {
							wanted[i][q][n][v] = true
						}
					}
				}
			}
		}
		for i := range batches {
			for n := range reads {
				for w := range workers {
					own := got[w][i].Dealt()
					require.Len(t, own.Rows[n], len(wanted[i][w][n]))
					if !reads[n] {
						require.Empty(t, own.Rows[n])
						continue
					}
					rows := slices.Clone(own.Rows[n])
					slices.Sort(rows)
					require.Len(t, slices.Compact(rows), len(own.Rows[n]), "each once")
					for q := range workers {
						take, to := got[q][i].Dealt().Take[n][w], got[q][i].Inputs()[n]
						require.Len(t, take, len(own.Send[n][q]))
						for k, at := range own.Send[n][q] {
							require.Equal(t, w, owner(n, to[take[k]]))
							require.Equal(t, placed(n, to[take[k]]), own.Rows[n][at])
						}
					}
				}
			}
		}
		for w := range workers {
			for q := range workers {
				switch {
				case drops: // Asks is for batches that are drawn whole
				case lose || c.SelfLoops:
					require.LessOrEqual(t, asked[w][q], sent[w][q])
				default:
					require.Equal(t, asked[w][q], sent[w][q], "bytes from worker %d to %d", w, q)
				}
			}
		}
	})
}

// unpacksDealt packs b and unpacks it into another batch, whose Dealt b takes over.
func unpacksDealt(t require.TestingT, s *Sampler, b, other *Batch) {
	bytes := s.Pack(nil, b)
	rest, err := s.Unpack(other, bytes)
	require.NoError(t, err)
	require.Empty(t, rest)
	requireSame(t, b, other)
	require.True(t, slices.EqualFunc(b.Reads(), other.Reads(), slices.Equal[[]uint32]))
	require.Equal(t, bytes, s.Pack(nil, other))
	b.dealt, other.dealt = other.dealt, b.dealt
}

// sameLists compares the layers of two batches.
func sameLists(t *rapid.T, s Schema, want, got *Batch) {
	for l := range want.Layers {
		for n := range s.Types {
			a, b := &want.Layers[l].Nodes[n], &got.Layers[l].Nodes[n]
			require.Equal(t, a.Dst, b.Dst)
			require.True(t, slices.Equal(a.Src, b.Src), "%v and %v", a.Src, b.Src)
			require.True(t, slices.Equal(a.Origin, b.Origin), "%v and %v", a.Origin, b.Origin)
		}
		for r := range s.Relations {
			a, b := &want.Layers[l].Blocks[r], &got.Layers[l].Blocks[r]
			for i := range a.Start {
				require.True(t, slices.Equal(a.drawn(i), b.drawn(i)))
				require.True(t, slices.Equal(a.values(i), b.values(i)))
			}
			require.True(t, slices.Equal(a.Values, b.Values), "%v and %v", a.Values, b.Values)
			require.True(t, slices.Equal(a.lost, b.lost), "%v and %v", a.lost, b.lost)
			require.True(t, slices.Equal(a.Rows, b.Rows))
			require.True(t, slices.Equal(a.RevStart, b.RevStart))
			require.True(t, slices.Equal(a.RevDst, b.RevDst))
		}
	}
}

// TestPartsDamaged: a message that is too short or too long is an error.
func TestPartsDamaged(t *testing.T) {
	topo := AtHand(lists{{1, 2}, {0}, {0, 1}})
	for name, spoil := range map[string]func(text []byte) []byte{
		"short": func(text []byte) []byte { return text[:len(text)-1] },
		"long":  func(text []byte) []byte { return append(text, 0) },
		"empty": func([]byte) []byte { return nil },
		"big":   func(text []byte) []byte { return append([]byte{255, 255, 255, 255}, text[4:]...) },
	} {
		t.Run(name, func(t *testing.T) {
			for bad := range 8 {
				cooperative, bad, n := bad >= 4, bad%4, 0
				p := &Parts{Workers: 1, Owner: func(int, uint32) int { return 0 }, Reads: []bool{true}}
				p.Exchange = func(_ context.Context, send [][]byte) ([][]byte, error) {
					if n++; n == bad+1 {
						send[0] = spoil(send[0])
					}
					return send, nil
				}
				s := NewSampler(topo, Config{Kind: NS, Fanouts: []int{2, 2}}, 1)
				seeds := [][][]uint32{{{0, 2}}}
				draw := s.SampleParts
				if cooperative {
					s = NewSampler(topo, Config{Kind: NS, Fanouts: []int{2, 2, 2}}, 1) // with four messages, too
					draw = s.SampleCooperative
				}
				err := draw(t.Context(), p, nil, []*Batch{new(Batch)}, make([]BatchSeed, 1), seeds)
				require.ErrorContains(t, err, "a message of worker 0 has the wrong length")
			}
		})
	}
}
