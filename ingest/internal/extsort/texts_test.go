package extsort

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type textOf struct {
	text  string
	value uint32
}

func TestTextSorter(t *testing.T) {
	a, err := Open(vfs.NewMem(), "spill") // for it makes hundreds of files
	require.NoError(t, err)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		s := a.NewTextSorter(fmt.Sprint("t", n), 0)
		s.memory = rapid.IntRange(4000, 60000).Draw(t, "memory")
		rng := rand.New(rand.NewPCG(7, rapid.Uint64().Draw(t, "seed")))
		longest := rapid.SampledFrom([]int{1, 9, 20, 3000}).Draw(t, "longest")
		var want []textOf
		for range rapid.IntRange(0, 2000).Draw(t, "texts") {
			text := make([]byte, rng.IntN(longest+1))
			for i := range text {
				text[i] = "ab\x00\xff"[rng.IntN(4)]
			}
			x := textOf{string(text), rng.Uint32N(3)}
			want = append(want, x)
			require.NoError(t, s.Add(text, x.value))
		}
		slices.SortFunc(want, func(a, b textOf) int { return cmp.Or(cmp.Compare(a.text, b.text), cmp.Compare(a.value, b.value)) })
		var got []textOf
		require.NoError(t, s.Sorted(func(text []byte, value uint32) error {
			got = append(got, textOf{string(text), value})
			return nil
		}))
		require.Equal(t, want, got)
		left, err := a.fs.List(a.dir)
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

func TestEachText(t *testing.T) {
	a := area(t)
	w, err := a.NewTextWriter("x")
	require.NoError(t, err)
	text := bytes.Repeat([]byte("0123456789"), 400)
	for i := range uint32(3000) {
		require.NoError(t, w.Put(text[:i], i))
	}
	b, err := w.Close()
	require.NoError(t, err)
	next := uint32(0)
	require.NoError(t, a.EachText(b, func(got []byte, value uint32) error {
		require.Equal(t, next, value)
		require.True(t, bytes.Equal(text[:next], got))
		next++
		return nil
	}))
	require.Equal(t, uint32(3000), next)
	b.Bytes -= 3
	require.ErrorContains(t, a.EachText(b, func([]byte, uint32) error { return nil }), "ends within a record")
}
