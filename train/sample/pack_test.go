package sample

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// requireSame compares all that is read of a batch that is drawn.
func requireSame(t require.TestingT, want, got *Batch, about ...any) {
	require.Empty(t, difference(want, got), about...)
	for l := range want.Layers {
		for r := range want.Layers[l].Blocks {
			w, g := &want.Layers[l].Blocks[r], &got.Layers[l].Blocks[r]
			if !slices.Equal(w.Rows, g.Rows) || w.Table != g.Table {
				require.Fail(t, "rows", "layer %d, relation %d: want %v of table %d, got %v of %d", l, r, w.Rows, w.Table, g.Rows, g.Table)
			}
		}
		for i := range want.Layers[l].Nodes {
			require.Empty(t, got.Layers[l].Nodes[i].Origin)
		}
	}
	if len(want.Layers) > 0 {
		require.True(t, slices.EqualFunc(want.Inputs(), got.Inputs(), slices.Equal[[]uint32]), about...)
	}
}

// anySampler is one of any configuration and graph, of one type or several, which brings values and
// rows along or not.
func anySampler(t *rapid.T, kinds ...Kind) (s *Sampler, tiers []*tiered) {
	var schema Schema
	var topo []lists
	var c Config
	if rapid.Bool().Draw(t, "typed") {
		schema, topo = typedGraph(t)
		c = typedConfig(t, slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool { return k == RW })...)
		ofRelation(t, &c, schema)
	} else {
		topo = []lists{graph(t)}
		schema = OneType(len(topo[0]))
		for c.Fanouts == nil || !slices.Contains(kinds, c.Kind) {
			c = config(t)
		}
	}
	var all []Topology
	for _, l := range topo {
		tier := &tiered{lists: l, part: rapid.SampledFrom([]int{1, 7, 1000}).Draw(t, "part")}
		tier.resident = rapid.Uint32Range(0, uint32(len(l))).Draw(t, "resident")
		all, tiers = append(all, tier), append(tiers, tier)
	}
	s = NewTyped(schema, all, c, rapid.IntRange(1, 4).Draw(t, "workers"))
	if c.Kind != RW && !c.SelfLoops {
		values, rows, tables := make([]Values, len(topo)), make([]Rows, len(topo)), make([]int, len(topo))
		for r, tier := range tiers {
			if n := rapid.IntRange(0, 2).Draw(t, "columns"); n > 0 {
				values[r] = &valued{tier, n}
			}
			if rapid.Bool().Draw(t, "rows") {
				rows[r], tables[r] = rowed{tier}, r%2
			}
		}
		s.Bring(values)
		s.BringRows(rows, tables, []int{tableRows, tableRows})
	}
	return s, tiers
}

// anySeeds draws a batch seed, seeds, and edges to leave out, for a batch.
func anySeeds(t *rapid.T, s *Sampler) (z BatchSeed, seeds [][]uint32, w []Without) {
	z, seeds = anyZ(t), typedSeeds(t, s.schema)
	if s.Kind != RW && rapid.Bool().Draw(t, "without") {
		w = without(t, s.schema, seeds)
	}
	return z, seeds, w
}

// TestUnpackIsTheInverse: of every kind of batch, into a batch that held another one.
func TestUnpackIsTheInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _ := anySampler(t, Kinds...)
		batches, bytes := make([]Batch, 3), []byte{7}
		for i := range batches {
			z, seeds, w := anySeeds(t, s)
			batches[i].Without = w
			require.NoError(t, s.SampleOne(context.Background(), &batches[i], z, seeds...))
			bytes = s.Pack(bytes, &batches[i])
		}
		var got Batch
		bytes = bytes[1:]
		for i := range batches {
			var err error
			bytes, err = s.Unpack(&got, bytes)
			require.NoError(t, err)
			requireSame(t, &batches[i], &got, "%+v", s.Config)
		}
		require.Empty(t, bytes)
		require.Equal(t, s.Pack(nil, &batches[2]), s.Pack(nil, &got))
	})
}

// TestPackedBetweenHops: a batch goes on as if it had never been bytes.
func TestPackedBetweenHops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _ := anySampler(t, Kinds...)
		z, seeds, w := anySeeds(t, s)
		want, got, other := Batch{Without: w}, Batch{Without: w}, Batch{}
		require.NoError(t, s.SampleOne(context.Background(), &want, z, seeds...))
		b := &got
		s.drawers[0].begin(b, seeds)
		for hop := range s.Fanouts {
			for _, set := range s.sets[hop] {
				require.NoError(t, s.draw(context.Background(), s.begin(set, []*Batch{b}, []BatchSeed{z}, hop), 1))
			}
			s.drawers[0].last = finished{}
			require.NoError(t, s.drawers[0].finish(b, hop))
			s.drawers[0].descend(b, hop)
			if hop == len(s.Fanouts)-1 {
				break
			}
			bytes := s.pack(nil, b, hop+1)
			_, err := s.Unpack(new(Batch), bytes)
			require.ErrorIs(t, err, errUnpack)
			if b == &got {
				b = &other
			} else {
				got, b = Batch{}, &got
			}
			hops, rest, err := s.unpack(b, bytes)
			require.NoError(t, err)
			require.Empty(t, rest)
			require.Equal(t, hop+1, hops)
		}
		for l := range b.Layers {
			s.reverse(&s.schema, b, l)
		}
		require.NoError(t, s.bring(context.Background(), []*Batch{b}))
		requireSame(t, &want, b, "%+v", s.Config)
	})
}

// packedSample is a sampler whose blocks have all that there is, a batch, and its bytes.
func packedSample(t require.TestingT, seeds int) (*Sampler, *Batch, []byte) {
	topo := wide(2000, 300)
	tier := &tiered{lists: topo, resident: 2000, part: 1000}
	s := NewSampler(tier, Config{Fanouts: []int{280, 5}, Weighted: true, Options: Options{RevEdges: true}}, 2)
	s.Bring([]Values{&valued{tier, 2}})
	s.BringRows([]Rows{rowed{tier}}, []int{0}, []int{tableRows})
	var b Batch
	all := make([]uint32, seeds)
	for i := range all {
		all[i] = uint32(7 * i)
	}
	require.NoError(t, s.SampleOne(context.Background(), &b, BatchSeed{First: 1}, all))
	return s, &b, s.Pack(nil, &b)
}

// TestUnpackAllocatesNothing: once slices have grown.
func TestUnpackAllocatesNothing(t *testing.T) {
	s, want, bytes := packedSample(t, 4)
	var b Batch
	require.Zero(t, testing.AllocsPerRun(5, func() {
		if _, err := s.Unpack(&b, bytes); err != nil {
			panic(err)
		}
	}))
	requireSame(t, want, &b)
	require.Zero(t, testing.AllocsPerRun(5, func() { bytes = s.Pack(bytes[:0], want) }))
}

// TestSeveralUnpackAtOnce: the race detector watches.
func TestSeveralUnpackAtOnce(t *testing.T) {
	s, want, bytes := packedSample(t, 3)
	batches, errs := make([]Batch, 8), make([]error, 8)
	var wg sync.WaitGroup
	for i := range batches {
		wg.Go(func() { _, errs[i] = s.Unpack(&batches[i], bytes) })
	}
	wg.Wait()
	for i := range batches {
		require.NoError(t, errs[i])
		requireSame(t, want, &batches[i])
	}
}

// TestPackRefuses: batches that Unpack could not make again.
func TestPackRefuses(t *testing.T) {
	s, b, _ := packedSample(t, 2)
	require.PanicsWithValue(t, "sample: Pack: a batch of an Expander", func() { s.Pack(nil, &Batch{expanded: true}) })
	require.PanicsWithValue(t, "sample: Pack: a batch that another Sampler has drawn", func() {
		NewSampler(AtHand(wide(2000, 300)), s.Config, 1).Pack(nil, b)
	})
	b.flat(1).End[0] = 0
	require.PanicsWithValue(t, "sample: Pack: a block with gaps between its lists", func() { s.Pack(nil, b) })
}

// TestUnpackRefuses: bytes that are cut short, and bytes with another word anywhere, are refused or
// are a batch that can be packed.
func TestUnpackRefuses(t *testing.T) {
	s, b, bytes := packedSample(t, 1)
	testUnpackRefuses(t, s, bytes)
	dealBetween(t, s, b)
	testUnpackRefuses(t, s, s.Pack(nil, b))
}

// dealBetween gives b the Dealt of one worker that exchanges with itself.
func dealBetween(t require.TestingT, s *Sampler, b *Batch) {
	p := &Parts{Workers: 1, Owner: func(int, uint32) int { return 0 }}
	p.Reads = slices.Repeat([]bool{true}, len(b.Inputs()))
	p.Exchange = func(_ context.Context, send [][]byte) ([][]byte, error) { return send, nil }
	require.NoError(t, s.deal(context.Background(), p, []*Batch{b}))
}

func testUnpackRefuses(t *testing.T, s *Sampler, bytes []byte) {
	for n := range len(bytes) {
		if n > 500 && n < len(bytes)-500 && n%97 != 0 {
			continue
		}
		_, err := s.Unpack(new(Batch), bytes[:n])
		require.ErrorIs(t, err, errUnpack, "%d of %d bytes", n, len(bytes))
		shorter := slices.Clone(bytes[:n])
		if n >= 8 {
			binary.NativeEndian.PutUint64(shorter, uint64(n))
		}
		_, err = s.Unpack(new(Batch), shorter)
		require.ErrorIs(t, err, errUnpack, "%d of %d bytes", n, len(bytes))
	}
	random, refused := rand.New(rand.NewPCG(1, 2)), 0
	var b Batch
	for range 3000 {
		other := slices.Clone(bytes)
		at := random.IntN(len(other) / 4)
		switch random.IntN(3) {
		case 0:
			at = random.IntN(40) // the head
		case 1:
			at = len(other)/4 - 1 - random.IntN(40) // rows, or the numbers of a Dealt
		}
		word := random.Uint32() >> random.IntN(32)
		binary.NativeEndian.PutUint32(other[4*at:], word)
		if !requireUnpacks(t, s, &b, other, fmt.Sprintf("word %d is %d", at, word)) {
			refused++
		}
	}
	require.Greater(t, refused, 500)
}

// requireUnpacks reports whether bytes are a batch. If they are, it checks that packing and
// unpacking it again changes nothing.
func requireUnpacks(t require.TestingT, s *Sampler, b *Batch, bytes []byte, about string) bool {
	rest, err := s.Unpack(b, bytes)
	if err != nil {
		require.ErrorIs(t, err, errUnpack, about)
		return false
	}
	again := s.Pack(nil, b)
	var c Batch
	_, err = s.Unpack(&c, again)
	require.NoError(t, err, about)
	require.Equal(t, again, s.Pack(nil, &c), about)
	require.Len(t, again, len(bytes)-len(rest), about)
	return true
}

// FuzzUnpack: no bytes make it panic, or take more memory than they have.
func FuzzUnpack(f *testing.F) {
	schema := Schema{Types: []int{50, 60}, Relations: []Relation{{0, 0}, {1, 0}, {0, 1}}}
	var topo []Topology
	var tiers []*tiered
	for r, ends := range schema.Relations {
		l := make(lists, schema.Types[ends.Dst])
		for v := range l {
			for j := range 10 {
				l[v] = append(l[v], uint32(draw(Hash(uint64(r), uint64(v)), j, schema.Types[ends.Src])))
			}
			slices.Sort(l[v])
		}
		tiers = append(tiers, &tiered{lists: l, resident: 60, part: 1000})
		topo = append(topo, tiers[r])
	}
	s := NewTyped(schema, topo, Config{Fanouts: []int{3, 2}, Poisson: true, Kind: Labor0}, 1)
	s.Bring([]Values{&valued{tiers[0], 2}, nil, nil})
	s.BringRows([]Rows{nil, rowed{tiers[1]}, nil}, []int{0, 1, 0}, []int{1, tableRows})
	for seeds := range uint32(3) {
		var b Batch
		require.NoError(f, s.SampleOne(f.Context(), &b, BatchSeed{First: 3}, []uint32{1, 4}[:seeds], []uint32{5}))
		f.Add(s.Pack(nil, &b))
		dealBetween(f, s, &b)
		f.Add(s.Pack(nil, &b))
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		var b Batch
		requireUnpacks(t, s, &b, bytes, "")
		if hops, _, err := s.unpack(&b, bytes); err == nil {
			s.pack(nil, &b, hops)
		}
	})
}
