package disk

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func drain(next func() (Stretch, bool)) (all []Stretch) {
	for s, ok := next(); ok; s, ok = next() {
		all = append(all, s)
	}
	return all
}

func TestMergeGoesByBlocks(t *testing.T) {
	f := func(block, gap int64, want []Stretch, pieces ...Piece) {
		t.Helper()
		got := drain(merge(len(pieces), func(i int) Piece { return pieces[i] }, gap, block))
		require.Empty(t, cmp.Diff(want, got))
	}
	same := []Piece{{0, 10, 20}, {0, 400, 100}}
	f(512, 0, []Stretch{{0, 10, 490, 0, 2}}, same...)
	f(1, 0, []Stretch{{0, 10, 20, 0, 1}, {0, 400, 100, 1, 2}}, same...)
	f(512, 0, []Stretch{{0, 10, 510, 0, 2}}, Piece{0, 10, 20}, Piece{0, 512, 8})                       // blocks that touch
	f(512, 511, []Stretch{{0, 10, 20, 0, 1}, {0, 1024, 8, 1, 2}}, Piece{0, 10, 20}, Piece{0, 1024, 8}) // a block between
	f(512, 512, []Stretch{{0, 10, 1022, 0, 2}}, Piece{0, 10, 20}, Piece{0, 1024, 8})                   // which is worth it
	f(4096, 0, []Stretch{{0, 1, 1, 0, 1}, {1, 2, 1, 1, 2}}, Piece{0, 1, 1}, Piece{1, 2, 1})            // files
	f(512, 1<<30, []Stretch{{0, 511, 1, 0, 1}, {0, MaxStretch, 1, 1, 2}}, Piece{0, 511, 1}, Piece{0, MaxStretch, 1})
	f(512, 1<<30, []Stretch{{0, 511, MaxStretch - 511, 0, 2}}, Piece{0, 511, 1}, Piece{0, MaxStretch - 1, 1})
}

// TestMergeKeepsItsWord: stretches hold their pieces, in order and each once, stay within a buffer, and read through no gap
// that is not worth it.
func TestMergeKeepsItsWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		block := int64(1) << rapid.SampledFrom([]int{0, 9, 12}).Draw(t, "block")
		gap := rapid.Int64Range(0, 20_000).Draw(t, "gap")
		var pieces []Piece
		file, at := 0, int64(0)
		for range rapid.IntRange(0, 200).Draw(t, "pieces") {
			if rapid.IntRange(0, 30).Draw(t, "next file") == 0 {
				file, at = file+1, 0
			}
			at += rapid.Int64Range(0, 1<<rapid.IntRange(0, 18).Draw(t, "far")).Draw(t, "skip")
			p := Piece{file, at, rapid.IntRange(1, 1<<rapid.IntRange(0, 19).Draw(t, "large")).Draw(t, "size")}
			pieces = append(pieces, p)
			at += int64(p.Size)
		}
		n := 0
		var before Stretch
		for i, s := range drain(merge(len(pieces), func(i int) Piece { return pieces[i] }, gap, block)) {
			require.Equal(t, n, s.Lo)
			n = s.Hi
			lo, hi := hull(s, block)
			if s.Hi-s.Lo > 1 {
				require.LessOrEqual(t, hi-lo, int64(MaxStretch))
			}
			first, last := pieces[s.Lo], pieces[s.Hi-1]
			require.Equal(t, Stretch{first.File, first.Offset, int(last.Offset-first.Offset) + last.Size, s.Lo, s.Hi}, s)
			for j := s.Lo + 1; j < s.Hi; j++ {
				_, end := hull(Stretch{Offset: pieces[j-1].Offset, Size: pieces[j-1].Size}, block)
				require.Equal(t, s.File, pieces[j].File)
				require.LessOrEqual(t, pieces[j].Offset&^(block-1)-end, gap)
			}
			if i > 0 && before.File == s.File { // the first piece did not fit to those before it
				beforeLo, beforeHi := hull(before, block)
				_, end := hull(Stretch{Offset: first.Offset, Size: first.Size}, block)
				require.True(t, lo-beforeHi > gap || end-beforeLo > MaxStretch)
			}
			before = s
		}
		require.Equal(t, len(pieces), n)
	})
}
