package device_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/device"
)

// full is a ledger in its steady state: each step admits perStep embeddings, which live for age steps and then give
// their slots to others.
type full struct {
	ledger  *device.Ledger
	step    int
	perStep int
	nodes   uint32
	slots   []uint32
	keys    []device.Key
	vetoes  []device.Version
	rng     *rand.Rand
}

func newFull(t require.TestingT, perStep, age, staleness int) *full {
	l, err := device.NewLedger(device.Options{
		Layout:    device.Layout{Bytes: int64(perStep*age) * 512, SlotBytes: 512, RowBytes: 256, Rows: 1 << 30},
		Staleness: staleness, MaxAge: age,
	})
	require.NoError(t, err)
	f := &full{ledger: l, perStep: perStep, nodes: uint32(4 * perStep * age), keys: make([]device.Key, perStep)}
	f.rng = rand.New(rand.NewPCG(1, 2))
	for range 3 * age {
		f.next(perStep / 8)
	}
	require.Greater(t, l.Stats().Live, perStep*age*6/10) // the others are vetoed, superseded or not seen
	return f
}

// key draws one of two layers and of four times as many nodes as there are slots.
func (f *full) key() device.Key {
	return device.Key{Node: f.rng.Uint32N(f.nodes), Layer: uint8(1 + f.rng.Uint32N(2))}
}

// next makes a step whose plan looks up as many as uses.
func (f *full) next(uses int) {
	f.ledger.Begin(f.step)
	f.vetoes = f.vetoes[:0]
	for range uses {
		if v, ok := f.ledger.Use(f.key()); ok && len(f.vetoes) < f.perStep/16 {
			f.vetoes = append(f.vetoes, v)
		}
	}
	f.slots = f.ledger.Reserve(f.slots, f.perStep).Slots
	for n := range f.slots {
		f.keys[n] = f.key()
	}
	f.ledger.WriteBack(f.step, f.keys[:len(f.slots)], f.vetoes)
	f.step++
}

func TestLedgerAllocatesNothingInSteadyState(t *testing.T) {
	f := newFull(t, 100, 50, 5)
	require.Zero(t, testing.AllocsPerRun(100, func() { f.next(500) }))
}

// BenchmarkAdmit is all that an embedding costs the planner from its slot to its eviction: ns per row.
func BenchmarkAdmit(b *testing.B) {
	for _, perStep := range []int{100, 20_000} {
		b.Run(fmt.Sprintf("slots=%d", perStep*50), func(b *testing.B) {
			f := newFull(b, perStep, 50, 5)
			for b.Loop() {
				f.next(0)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(perStep), "ns/row")
		})
	}
}

// BenchmarkUse looks up embeddings that are there, at random, and embeddings of nodes that have none.
func BenchmarkUse(b *testing.B) {
	for _, perStep := range []int{100, 20_000} {
		f := newFull(b, perStep, 50, 1)
		f.ledger.Begin(f.step)
		keys := map[bool][]device.Key{}
		for len(keys[true]) < 1<<16 || len(keys[false]) < 1<<16 {
			k := f.key()
			_, ok := f.ledger.Find(k)
			keys[ok] = append(keys[ok], k)
		}
		for _, found := range []bool{true, false} {
			b.Run(fmt.Sprintf("slots=%d/found=%v", perStep*50, found), func(b *testing.B) {
				n := 0
				for b.Loop() {
					if _, ok := f.ledger.Use(keys[found][n&(1<<16-1)]); ok != found {
						b.Fatal("it changed")
					}
					n++
				}
			})
		}
	}
}
