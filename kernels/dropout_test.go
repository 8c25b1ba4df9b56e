package kernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSplitMixSequence holds the hash to the published generator: its first outputs for seed 0.
func TestSplitMixSequence(t *testing.T) {
	for i, want := range []uint64{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f} {
		require.Equal(t, want, splitMix(golden*uint64(i+1)))
	}
}

func TestDropoutThreshold(t *testing.T) {
	f := func(p float32, want uint32) {
		t.Helper()
		require.Equal(t, want, dropoutThreshold(p), "%v", p)
	}
	f(0, 0)
	f(0.5, 32768)
	f(0.1, 6554)
	f(1.0/131072, 1) // halfway rounds up
	f(math.Nextafter32(1.0/131072, 0), 0)
	f(math.Nextafter32(1, 0), 65535)
}

func TestDropoutScaleUndoesTheRate(t *testing.T) {
	require.Equal(t, 1.0, dropoutScale(0))
	require.Equal(t, 2.0, dropoutScale(dropoutThreshold(0.5)))
	require.Equal(t, 65536.0, dropoutScale(65535))
}

// TestDropoutFollowsDropoutKeep checks the loops against the definition, with every tail and with
// NaN in what is dropped.
func TestDropoutFollowsDropoutKeep(t *testing.T) {
	const key, p = 0x0123_4567_89ab_cdef, 0.3
	ids := []uint32{0, 1, 7, 1 << 31, math.MaxUint32}
	for cols := range 70 {
		src := make([]float32, len(ids)*cols)
		for i := range src {
			src[i] = 1
		}
		dst, dx := make([]float32, len(src)), make([]float32, len(src))
		Dropout(dst, src, ids, cols, key, p)
		DropoutGrad(dx, src, ids, cols, key, p)
		for i := range src {
			id, col := ids[i/cols], i%cols
			want := float32(0)
			if DropoutKeep(key, id, col, p) {
				want = float32(dropoutScale(dropoutThreshold(p)))
			} else {
				src[i] = float32(math.NaN())
			}
			require.Equal(t, want, dst[i], "cols=%d id=%d col=%d", cols, id, col)
			require.Equal(t, want, dx[i], "cols=%d id=%d col=%d", cols, id, col)
		}
		Dropout(src, src, ids, cols, key, p)
		require.Equal(t, dst, src, "cols=%d: in place, NaN dropped", cols)
	}
}

// TestDropoutKeepIsFair looks at the rate, and at pairs that a weak mix would tie together: the
// lanes of one hash, neighbouring ids, neighbouring keys.
func TestDropoutKeepIsFair(t *testing.T) {
	const n = 1 << 17
	const sigmas = 5
	for _, p := range []float32{0.1, 0.5} {
		kept, pairs := 0, map[string]int{}
		for i := range n {
			id, col := uint32(i/64), i%64
			if !DropoutKeep(1, id, col, p) {
				continue
			}
			kept++
			for name, other := range map[string]bool{
				"next column": DropoutKeep(1, id, col+1, p),
				"next hash":   DropoutKeep(1, id, col+4, p),
				"next id":     DropoutKeep(1, id+1, col, p),
				"next key":    DropoutKeep(2, id, col, p),
			} {
				if other {
					pairs[name]++
				}
			}
		}
		near := func(what string, got, of int) {
			q := 1 - float64(p)
			require.InDelta(t, q*float64(of), float64(got), sigmas*math.Sqrt(float64(of)*q*(1-q)), "%s, p=%v", what, p)
		}
		near("kept", kept, n)
		for name, both := range pairs {
			near(name, both, kept)
		}
	}
}
