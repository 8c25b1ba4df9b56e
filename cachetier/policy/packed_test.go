package policy

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Packed sets of any density have the words of the original, in any range; the number of pages is
// as promised, and pages come back.
func TestPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 63, 512, 4096, 4097, 20_000, 300_000}).Draw(t, "rows")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		draw := func() (s Set, count int) {
			s = make(Set, SetWords(n))
			for lo := 0; lo < n; lo += 1 + rng.IntN(n) {
				hi, share := min(n, lo+rng.IntN(n)+1), rng.Float64()*rng.Float64()*rng.Float64()
				for v := lo; v < hi; v++ {
					if rng.Float64() < share {
						s.Add(uint32(v))
					}
				}
			}
			return s, s.Len()
		}
		first, most := draw()
		second, count := draw()
		pages, err := NewPages(n, max(most, count), 2)
		require.NoError(t, err)
		defer pages.Close()
		var packed []*Packed
		for _, s := range []Set{first, second} {
			p, ok := pages.Pack(s, pages.All())
			require.True(t, ok, "as many rows as there is room for")
			packed = append(packed, p)
			room := make([]uint64, WordsRoom(len(s)))
			require.Equal(t, []uint64(s), p.Words(room, 0, len(s)))
			for range 10 {
				lo := rng.IntN(len(s))
				hi := lo + 1 + rng.IntN(len(s)-lo)
				require.Equal(t, []uint64(s[lo:hi]), p.Words(make([]uint64, WordsRoom(hi-lo)), lo, hi))
			}
		}
		require.Equal(t, pages.All(), pages.Free()+packed[0].Pages()+packed[1].Pages())
		_, ok := pages.Pack(first, pages.All())
		require.False(t, ok, "a set more than there is room for")
		pages.Return(packed[1])
		if need := packed[0].Pages(); need > 0 {
			_, ok = pages.Pack(first, need-1)
			require.False(t, ok)
		}
		again, ok := pages.Pack(first, packed[0].Pages())
		require.True(t, ok)
		pages.Return(again)
		pages.Return(packed[0])
		require.Equal(t, pages.All(), pages.Free())
	})
}

// BenchmarkPacked packs a share of 100 M rows, as a window wants them, and reads the result.
func BenchmarkPacked(b *testing.B) {
	const n = 100_000_000
	for _, share := range []int{1, 3, 9} {
		rng := rand.New(rand.NewPCG(1, 1))
		s := make(Set, SetWords(n))
		for range n / 100 * share {
			s.Add(rng.Uint32N(n))
		}
		pages, err := NewPages(n, s.Len(), 1)
		require.NoError(b, err)
		defer pages.Close()
		b.Run(fmt.Sprintf("do=pack/rows=%d%%", share), func(b *testing.B) {
			for b.Loop() {
				p, ok := pages.Pack(s, pages.All())
				require.True(b, ok)
				b.ReportMetric(float64(p.Pages()*pageBytes)/float64(8*len(s)), "of-bitmap")
				pages.Return(p)
			}
		})
		b.Run(fmt.Sprintf("do=read/rows=%d%%", share), func(b *testing.B) {
			p, ok := pages.Pack(s, pages.All())
			require.True(b, ok)
			defer pages.Return(p)
			room := make([]uint64, WordsRoom(spanWords))
			for b.Loop() {
				for lo := 0; lo < len(s); lo += spanWords {
					p.Words(room, lo, min(lo+spanWords, len(s)))
				}
			}
		})
	}
}
