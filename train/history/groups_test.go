package history_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/sample"
)

// lists are the neighbours of each node.
type lists [][]uint32

func (l lists) Nodes() int                  { return len(l) }
func (l lists) Neighbors(v uint32) []uint32 { return l[v] }

// graph is two types of nodes and three relations: within type 0, from 1 to 0, and from 0 to 1. The
// first nodes of a type are met most.
func graph() (schema sample.Schema, topo []sample.Topology) {
	schema = sample.Schema{Types: []int{60, 25}, Relations: []sample.Relation{{Src: 0, Dst: 0}, {Src: 1, Dst: 0}, {Src: 0, Dst: 1}}}
	rng := rand.New(rand.NewPCG(3, 4))
	for _, r := range schema.Relations {
		l := make(lists, schema.Types[r.Dst])
		for v := range l {
			for range rng.IntN(9) {
				x := rng.Float64()
				l[v] = append(l[v], uint32(x*x*float64(schema.Types[r.Src])))
			}
			slices.Sort(l[v])
		}
		topo = append(topo, sample.AtHand(l))
	}
	return schema, topo
}

// drawn is a step as a run drew it.
type drawn struct {
	layers []sample.Layer
	inputs [][]uint32
	parts  []history.Part
}

// draw has batches of a run drawn, in groups of so many, and run as late as the lag allows.
func draw(t *testing.T, o history.Options, kind sample.Kind, steps, group int) (all []drawn, state []byte) {
	schema, topo := graph()
	o.Layers, o.Types = 3, len(schema.Types)
	c, err := history.New(o)
	require.NoError(t, err)
	config := sample.Config{Kind: kind, Fanouts: []int{3, 3, 2}, Smoothed: true}
	s, schedule := sample.NewTyped(schema, topo, config, 2), sample.Schedule{Seed: 7, Kappa: 5}
	written := 0
	for i := 0; i < steps; i += group {
		n := min(group, steps-i)
		for ; written <= i+n-1-o.Lag; written++ {
			c.WriteBack(written, measure(all[written], written))
		}
		var batches []*sample.Batch
		var z []sample.BatchSeed
		var seeds [][][]uint32
		for j := range n {
			rng := rand.New(rand.NewPCG(uint64(i+j), 1))
			var ids []uint32
			for _, v := range rng.Perm(schema.Types[0])[:4] {
				ids = append(ids, uint32(v))
			}
			batches, z, seeds = append(batches, new(sample.Batch)), append(z, schedule.At(i+j)), append(seeds, [][]uint32{ids, nil})
		}
		require.NoError(t, s.SampleThrough(context.Background(), c.Group(i, n), batches, z, seeds))
		for j, b := range batches {
			requireReached(t, schema, b)
			p := c.Planned(i + j)
			d := drawn{layers: b.Layers, inputs: b.Inputs()}
			for _, part := range p.Parts {
				d.parts = append(d.parts, history.Part{
					Layer: part.Layer, Type: part.Type, Live: part.Live,
					Rows: append([]uint32(nil), part.Rows...), Slots: append([]uint32(nil), part.Slots...), Used: append([]history.Use(nil), part.Used...),
				})
			}
			all = append(all, d)
		}
	}
	for ; written < steps; written++ {
		c.WriteBack(written, measure(all[written], written))
	}
	return all, snapshot(t, c)
}

// measure gives the live nodes of a step gradients.
func measure(d drawn, step int) (all []history.Measured) {
	for _, p := range d.parts {
		m := history.Measured{Nodes: d.layers[p.Layer].Nodes[p.Type].Src}
		for _, v := range m.Nodes {
			m.Norms = append(m.Norms, float32(sample.Hash(uint64(step), uint64(p.Layer), uint64(p.Type), uint64(v))>>40))
		}
		all = append(all, m)
	}
	return all
}

// requireReached checks that every source of a layer is a destination or the neighbour of one, and
// that the destinations of a layer are exactly the sources that the layer above computes, in their
// order.
func requireReached(t *testing.T, schema sample.Schema, b *sample.Batch) {
	for l := range b.Layers {
		layer := &b.Layers[l]
		for typ, f := range layer.Nodes {
			reached := make([]bool, len(f.Src))
			for i := range f.Dst {
				reached[i] = true
			}
			for r, ends := range schema.Relations {
				block := &layer.Blocks[r]
				for i := range block.Start {
					for _, u := range block.Nbr[block.Start[i]:block.End[i]] {
						if ends.Src == typ {
							reached[u] = true
						}
					}
				}
			}
			require.NotContains(t, reached, false)
			below := b.Inputs()[typ]
			if l > 0 {
				under := b.Layers[l-1].Nodes[typ]
				below = under.Src[:under.Dst]
			}
			var computed []uint32
			if len(f.Origin) == 0 { // all are
				computed = f.Src
			}
			for i, o := range f.Origin {
				if o.From == sample.Below {
					require.EqualValues(t, len(computed), o.Index)
					computed = append(computed, f.Src[i])
				}
			}
			require.True(t, slices.Equal(computed, below))
		}
		for r, ends := range schema.Relations {
			require.Len(t, layer.Blocks[r].Start, layer.Nodes[ends.Dst].Dst)
		}
	}
}

// TestGroupsChangeNothing: however many steps are drawn together, batches, plans and the state that
// is left are the same, bit for bit.
func TestGroupsChangeNothing(t *testing.T) {
	for _, kind := range []sample.Kind{sample.NS, sample.Labor0, sample.LaborStar} {
		for _, slots := range []int{8, 2000} {
			t.Run(fmt.Sprintf("%s/slots=%d", kind, slots), func(t *testing.T) {
				o := history.Options{PGrad: 0.8, TStale: 12, Lag: 8, Start: 5, Kept: []history.Kept{
					{Layer: 1, Slots: slots}, {Layer: 2, Slots: slots, Admits: history.Prefix(30)}, {Layer: 1, Type: 1, Slots: slots},
				}}
				want, state := draw(t, o, kind, 60, 1)
				used := 0
				for _, d := range want {
					for _, p := range d.parts {
						used += len(p.Used)
					}
				}
				require.Greater(t, used, 100)
				for group := 2; group <= o.Lag/2; group++ {
					got, left := draw(t, o, kind, 60, group)
					for i := range want {
						require.True(t, reflect.DeepEqual(want[i], got[i]), "step %d in groups of %d", i, group)
					}
					require.Equal(t, state, left)
				}
			})
		}
	}
}

// TestAtOnce plans, writes back and looks on at the same time: nobody waits for ever, and all is
// what it is in turn.
func TestAtOnce(t *testing.T) {
	o := history.Options{
		Layers: 3, Types: 1, PGrad: 0.5, TStale: 10, Lag: 6, Kept: []history.Kept{{Layer: 1, Slots: 40}, {Layer: 2, Slots: 90}},
	}
	const steps = 200
	live := func(step, layer int) (ids []uint32) {
		for _, v := range rand.New(rand.NewPCG(uint64(step), uint64(layer))).Perm(nodes)[:nodes/2] {
			ids = append(ids, uint32(v))
		}
		return ids
	}
	norms := make([]float32, nodes/2)
	for i := range norms {
		norms[i] = float32(i)
	}
	run := func(ahead int) []byte {
		c, err := history.New(o)
		require.NoError(t, err)
		room, planned := make(chan bool, ahead), make(chan int, ahead)
		for range ahead {
			room <- true
		}
		var wait sync.WaitGroup
		wait.Go(func() {
			for step := range steps {
				<-room
				e := c.Group(step, 1)
				for hop := range 3 {
					if _, _, err := e.Expand(context.Background(), hop, [][][]uint32{{live(step, 2-hop)}}); err != nil {
						panic(err)
					}
				}
				planned <- step
			}
			close(planned)
		})
		var snap history.Snapshot
		for step := range planned {
			require.Equal(t, step, c.Planned(step).Step)
			c.WriteBack(step, []history.Measured{{Nodes: live(step, 1), Norms: norms}, {Nodes: live(step, 2), Norms: norms}})
			snap.Take(c)
			require.Equal(t, step+1, snap.Step())
			c.Stats()
			room <- true
		}
		wait.Wait()
		var b bytes.Buffer
		_, err = snap.WriteTo(&b)
		require.NoError(t, err)
		return b.Bytes()
	}
	want := run(1)
	for range 3 {
		require.Equal(t, want, run(o.Lag))
	}
}
