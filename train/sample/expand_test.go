package sample

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// expanding is an Expander in a function.
type expanding func(hop int, found [][][]uint32) (next [][][]uint32, origins [][][]Origin, err error)

func (e expanding) Expand(_ context.Context, hop int, found [][][]uint32) ([][][]uint32, [][][]Origin, error) {
	return e(hop, found)
}

// dropped is a hashed half of the nodes of a batch, type and hop.
func dropped(batch, typ, hop int, v uint32) bool {
	return Hash(uint64(batch), uint64(typ), uint64(hop), uint64(v))%2 == 0
}

// dropsNone says of a third of the types and hops that nothing is dropped.
func dropsNone(typ, hop int) bool { return Hash(uint64(typ), uint64(hop))%3 == 0 }

// dropHalf gives what is dropped of found the slot of its id. Where none is, there are no origins.
func dropHalf(batch, typ, hop int, found []uint32) (next []uint32, origins []Origin) {
	if dropsNone(typ, hop) {
		return nil, nil
	}
	for _, v := range found {
		if dropped(batch, typ, hop, v) {
			origins = append(origins, Origin{Slot, v})
			continue
		}
		origins = append(origins, Origin{Below, uint32(len(next))})
		next = append(next, v)
	}
	return next, origins
}

// pruned returns the rest of a batch that was drawn whole, after half of each hop is dropped: from
// the seeds inward, the edges of live nodes, with new numbers.
func pruned(w *reference, full *Batch, batch int) (b *Batch, inputs [][]uint32) {
	b = &Batch{Seeds: full.Seeds, Layers: make([]Layer, len(full.Layers))}
	live := full.Seeds
	for at := len(full.Layers) - 1; at >= 0; at-- {
		whole, layer := &full.Layers[at], &b.Layers[at]
		pos := make([]map[uint32]uint32, len(w.Types))
		for t, ids := range live {
			layer.Nodes = append(layer.Nodes, Frontier{Src: slices.Clone(ids), Dst: len(ids)})
			pos[t] = map[uint32]uint32{}
			for i, v := range ids {
				pos[t][v] = uint32(i)
			}
		}
		for r, ends := range w.Relations {
			block, from, src := &whole.Blocks[r], &whole.Nodes[ends.Src], &layer.Nodes[ends.Src]
			var k Block
			for _, v := range live[ends.Dst] {
				i := slices.Index(whole.Nodes[ends.Dst].destinations(), v)
				k.Start = append(k.Start, uint32(len(k.Nbr)))
				for e := block.Start[i]; e < block.End[i]; e++ {
					u := from.Src[block.Nbr[e]]
					if _, known := pos[ends.Src][u]; !known {
						pos[ends.Src][u] = uint32(len(src.Src))
						src.Src = append(src.Src, u)
					}
					k.Nbr = append(k.Nbr, pos[ends.Src][u])
					if len(block.Weight) > 0 {
						k.Weight = append(k.Weight, block.Weight[e])
					}
				}
				k.End = append(k.End, uint32(len(k.Nbr)))
			}
			layer.Blocks = append(layer.Blocks, k)
		}
		next := make([][]uint32, len(w.Types))
		for r, ends := range w.Relations {
			if at > 0 || w.RevInput {
				w.reverse(&layer.Blocks[r], len(layer.Nodes[ends.Src].Src))
			}
		}
		for t := range w.Types {
			f := &layer.Nodes[t]
			hop := len(full.Layers) - 1 - at
			if next[t], f.Origin = dropHalf(batch, t, hop, f.Src); dropsNone(t, hop) {
				next[t] = f.Src
			}
		}
		live = next
	}
	return b, live
}

// TestExpanderThatDrops: to drop half of what each hop found leaves what is live of a batch that
// was drawn whole, for NS and LABOR-0, whose draws depend on nothing else; and the lists of what
// was dropped are not read.
func TestExpanderThatDrops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		schema, topo := typedGraph(t)
		c := typedConfig(t, NS, Labor0)
		var whole, tiers []Topology
		for _, l := range topo {
			resident := rapid.Uint32Range(0, uint32(len(l))).Draw(t, "resident")
			tiers = append(tiers, &tiered{lists: l, part: rapid.SampledFrom([]int{1, 7, 1000}).Draw(t, "part"), resident: resident})
			whole = append(whole, AtHand(l))
		}
		s := NewTyped(schema, tiers, c, rapid.IntRange(1, 4).Draw(t, "workers"))
		n := rapid.IntRange(1, 5).Draw(t, "batches")
		batches, z, seeds := make([]*Batch, n), make([]BatchSeed, n), make([][][]uint32, n)
		for i := range batches {
			batches[i], z[i], seeds[i] = new(Batch), anyZ(t), typedSeeds(t, schema)
		}
		calls := 0
		e := expanding(func(hop int, found [][][]uint32) (next [][][]uint32, origins [][][]Origin, err error) {
			require.Equal(t, calls, hop)
			calls++
			next, origins = make([][][]uint32, n), make([][][]Origin, n)
			for i := range found {
				for typ, ids := range found[i] {
					live, from := dropHalf(i, typ, hop, ids)
					next[i], origins[i] = append(next[i], live), append(origins[i], from)
				}
			}
			return next, origins, nil
		})
		require.NoError(t, s.SampleThrough(context.Background(), e, batches, z, seeds))
		require.Equal(t, len(c.Fanouts), calls)
		plain := NewTyped(schema, whole, c, 1)
		for i, b := range batches {
			var full Batch
			require.NoError(t, plain.SampleOne(context.Background(), &full, z[i], seeds[i]...))
			want, inputs := pruned(&reference{Config: c, Schema: schema}, &full, i)
			require.Empty(t, difference(want, b), "%+v", c)
			for l := range want.Layers {
				for typ := range schema.Types {
					require.True(t, slices.Equal(want.Layers[l].Nodes[typ].Origin, b.Layers[l].Nodes[typ].Origin))
				}
			}
			require.True(t, slices.EqualFunc(inputs, b.Inputs(), slices.Equal[[]uint32]))
		}
		// The same batches again, without.
		require.NoError(t, s.Sample(context.Background(), batches, z, seeds))
		for i, b := range batches {
			var full Batch
			require.NoError(t, plain.SampleOne(context.Background(), &full, z[i], seeds[i]...))
			require.Empty(t, difference(&full, b))
			require.True(t, slices.EqualFunc(full.Inputs(), b.Inputs(), slices.Equal[[]uint32]))
			if !c.Weighted { // draws by weight keep places, where lists are read
				require.Equal(t, full.Bytes(), b.Bytes())
			}
		}
	})
}

// TestExpanderThatAdds: the layers below equal a batch of as many layers, drawn from the nodes that
// the Expander returned.
func TestExpanderThatAdds(t *testing.T) {
	topo := wide(300, 8)
	for _, c := range everyKind() {
		if c.Weighted {
			continue
		}
		next := []uint32{7, 299, 3, 100, 5}
		e := expanding(func(hop int, found [][][]uint32) ([][][]uint32, [][][]Origin, error) {
			origins := make([]Origin, len(found[0][0]))
			for i := range origins {
				origins[i] = Origin{Worker + From(i%3), uint32(i)}
			}
			if hop == 0 {
				return [][][]uint32{{next}}, [][][]Origin{{origins}}, nil
			}
			return found, [][][]Origin{{origins}}, nil
		})
		var b, below Batch
		z := BatchSeed{1, 2, 0.5}
		require.NoError(t, newSingle(topo, c.with(4, 3, 2)).SampleThrough(t.Context(), e, []*Batch{&b}, []BatchSeed{z}, [][][]uint32{{{1, 2}}}))
		require.NoError(t, newSingle(topo, c.with(3, 2)).Sample(&below, z, next))
		require.Empty(t, difference(&below, &Batch{Seeds: [][]uint32{next}, Layers: b.Layers[:2]}), c.name())
		require.Equal(t, Origin{Worker + 1, 4}, b.Layers[2].Nodes[0].Origin[4])
	}
}

// TestExpanderFails: the draw returns the Expander's error, and draws nothing after it. Results
// that do not fit panic.
func TestExpanderFails(t *testing.T) {
	mine := errors.New("mine")
	tier := &tiered{lists: wide(100, 8), part: 1000}
	s := NewSampler(tier, Config{Fanouts: []int{3, 3}}, 1)
	through := func(e expanding) error {
		return s.SampleThrough(t.Context(), e, []*Batch{new(Batch)}, []BatchSeed{{First: 1}}, [][][]uint32{{{1, 2}}})
	}
	require.ErrorIs(t, through(func(int, [][][]uint32) ([][][]uint32, [][][]Origin, error) { return nil, nil, mine }), mine)
	require.Len(t, tier.reads, 1)
	require.Panics(t, func() {
		_ = through(func(int, [][][]uint32) ([][][]uint32, [][][]Origin, error) { return nil, nil, nil })
	})
	require.PanicsWithValue(t, "sample: Expand: 7 sources of type 0 at hop 0, and 1 origins", func() {
		_ = through(func(_ int, found [][][]uint32) ([][][]uint32, [][][]Origin, error) {
			require.Len(t, found[0][0], 7)
			return found, [][][]Origin{{{{Slot, math.MaxUint32}}}}, nil
		})
	})
}
