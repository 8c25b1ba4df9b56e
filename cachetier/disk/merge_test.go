package disk

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func drain(next func() (Extent, bool)) (all []Extent) {
	for s, ok := next(); ok; s, ok = next() {
		all = append(all, s)
	}
	return all
}

func TestMergeGoesByBlocks(t *testing.T) {
	f := func(block, gap int64, want []Extent, requests ...Request) {
		t.Helper()
		got := drain(merge(len(requests), func(i int) Request { return requests[i] }, gap, block))
		require.Empty(t, cmp.Diff(want, got))
	}
	same := []Request{{0, 10, 20}, {0, 400, 100}}
	f(512, 0, []Extent{{0, 10, 490, 0, 2}}, same...)
	f(1, 0, []Extent{{0, 10, 20, 0, 1}, {0, 400, 100, 1, 2}}, same...)
	f(512, 0, []Extent{{0, 10, 510, 0, 2}}, Request{0, 10, 20}, Request{0, 512, 8})                       // blocks that touch
	f(512, 511, []Extent{{0, 10, 20, 0, 1}, {0, 1024, 8, 1, 2}}, Request{0, 10, 20}, Request{0, 1024, 8}) // a block between
	f(512, 512, []Extent{{0, 10, 1022, 0, 2}}, Request{0, 10, 20}, Request{0, 1024, 8})                   // and worth reading through
	f(4096, 0, []Extent{{0, 1, 1, 0, 1}, {1, 2, 1, 1, 2}}, Request{0, 1, 1}, Request{1, 2, 1})            // two files
	f(512, 1<<30, []Extent{{0, 511, 1, 0, 1}, {0, MaxExtent, 1, 1, 2}}, Request{0, 511, 1}, Request{0, MaxExtent, 1})
	f(512, 1<<30, []Extent{{0, 511, MaxExtent - 511, 0, 2}}, Request{0, 511, 1}, Request{0, MaxExtent - 1, 1})
}

// TestMergeKeepsItsWord checks that extents hold their requests in order and once each, stay within
// a buffer, and read through no gap larger than allowed.
func TestMergeKeepsItsWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := int64(1) << rapid.SampledFrom([]int{0, 9, 12}).Draw(t, "block")
		gap := rapid.Int64Range(0, 20_000).Draw(t, "gap")
		var requests []Request
		file, at := 0, int64(0)
		for range rapid.IntRange(0, 200).Draw(t, "requests") {
			if rapid.IntRange(0, 30).Draw(t, "next file") == 0 {
				file, at = file+1, 0
			}
			at += rapid.Int64Range(0, 1<<rapid.IntRange(0, 18).Draw(t, "far")).Draw(t, "skip")
			p := Request{file, at, rapid.IntRange(1, 1<<rapid.IntRange(0, 19).Draw(t, "large")).Draw(t, "size")}
			requests = append(requests, p)
			at += int64(p.Size)
		}
		n := 0
		var before Extent
		for i, s := range drain(merge(len(requests), func(i int) Request { return requests[i] }, gap, block)) {
			require.Equal(t, n, s.Lo)
			n = s.Hi
			lo, hi := hull(s, block)
			if s.Hi-s.Lo > 1 {
				require.LessOrEqual(t, hi-lo, int64(MaxExtent))
			}
			first, last := requests[s.Lo], requests[s.Hi-1]
			require.Equal(t, Extent{first.File, first.Offset, int(last.Offset-first.Offset) + last.Size, s.Lo, s.Hi}, s)
			for j := s.Lo + 1; j < s.Hi; j++ {
				_, end := hull(Extent{Offset: requests[j-1].Offset, Size: requests[j-1].Size}, block)
				require.Equal(t, s.File, requests[j].File)
				require.LessOrEqual(t, requests[j].Offset&^(block-1)-end, gap)
			}
			if i > 0 && before.File == s.File { // the first request did not fit in the extent before
				beforeLo, beforeHi := hull(before, block)
				_, end := hull(Extent{Offset: first.Offset, Size: first.Size}, block)
				require.True(t, lo-beforeHi > gap || end-beforeLo > MaxExtent)
			}
			before = s
		}
		require.Equal(t, len(requests), n)
	})
}

// TestScatteredIsWhatMergeMakes compares Scattered with Merge for requests anywhere in a file, few
// or many, small or large. Bytes agree within 5 %, reads within 35 %.
func TestScatteredIsWhatMergeMakes(t *testing.T) {
	const block = 4096
	rng := rand.New(rand.NewPCG(1, 2))
	costs := Costs{SecondsPerRead: 1e-5, BytesPerSecond: 1.5e9} // a gap of 15 KB
	for _, size := range []int{256, 1024, 8192} {
		for _, share := range []float64{0.0005, 0.01, 0.06, 0.3, 0.9, 1} {
			total := 64 << 20 / size
			var requests []Request
			for i := range total {
				if rng.Float64() < share {
					requests = append(requests, Request{0, int64(i * size), size})
				}
			}
			got := Traffic{}
			for _, s := range drain(merge(len(requests), func(i int) Request { return requests[i] }, costs.Gap(), block)) {
				lo, hi := hull(s, block)
				got.Add(Traffic{Reads: 1, Bytes: hi - lo})
			}
			want := costs.Scattered(float64(len(requests)), float64(total), float64(size))
			require.InEpsilon(t, got.Bytes, want.Bytes, 0.05, "%d bytes, %g of them", size, share)
			require.InEpsilon(t, got.Reads, want.Reads, 0.35, "%d bytes, %g of them", size, share)
		}
	}
	require.Zero(t, costs.Scattered(0, 100, 256))
	require.Zero(t, costs.Scattered(10, 0, 256))
}
