package data

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestShown compares classes with the dataset's, and hiding with a set.
func TestShown(t *testing.T) {
	spec := storetest.Communities(700, 5, 3, 4, 1)
	ds, err := store.Open(storetest.Build(t, spec))
	require.NoError(t, err)
	defer ds.Close()
	one, err := Open(ds, Options{})
	require.NoError(t, err)

	rng := rand.New(rand.NewPCG(1, 2))
	bits := make([]uint8, 3*130)
	for i := range bits {
		bits[i] = []uint8{0, 1, store.MissingBit}[rng.IntN(3)]
	}
	several := multiLabel(t, bits)
	several.Types = []Type{{Nodes: 130}}
	for v := uint32(0); v < 130; v += 1 + v%3 {
		several.Train = append(several.Train, v)
	}
	ofSeveral := func(v uint32) (classes []uint32) {
		for c, bit := range bits[3*v:][:3] {
			if bit == 1 {
				classes = append(classes, uint32(c))
			}
		}
		return classes
	}
	for _, c := range []struct {
		d    *Data
		want func(v uint32) []uint32
	}{{one, func(v uint32) []uint32 { return []uint32{v % 5} }}, {several, ofSeveral}} {
		s, err := c.d.Shown()
		require.NoError(t, err)
		nodes := c.d.Types[0].Nodes
		for range 5 {
			hidden := map[uint32]bool{}
			for range 3 { // times that labels are hidden before all are shown
				var some []uint32
				for range rng.IntN(nodes) {
					some = append(some, uint32(rng.IntN(nodes)))
				}
				s.Hide(some)
				for _, v := range some {
					hidden[v] = true
				}
				for v := range uint32(nodes) {
					var want []uint32
					if slices.Contains(c.d.Train, v) && !hidden[v] {
						want = c.want(v)
					}
					require.Equal(t, want, append([]uint32(nil), s.Classes(v)...), v)
				}
			}
			s.Show()
		}
		for _, v := range c.d.Train {
			require.Equal(t, c.want(v), append([]uint32(nil), s.Classes(v)...))
		}
		require.Positive(t, s.Bytes())
	}
}
