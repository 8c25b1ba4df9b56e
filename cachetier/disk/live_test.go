package disk

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestBucketsHoldTheirMiddle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, 1<<rapid.IntRange(0, 62).Draw(t, "bits")).Draw(t, "ns"))
		b := bucket(d)
		require.Equal(t, b, bucket(middle(b)))
		require.InEpsilon(t, float64(d)+1, float64(middle(b))+1, 1.0/32)
		require.LessOrEqual(t, b, bucket(d+1))
	})
	require.Less(t, bucket(1<<63-1), len(histogram{}.counts))
	require.Zero(t, bucket(-1))
}

func TestQuantilesAreThoseOfTheSortedList(t *testing.T) {
	var h histogram
	require.Equal(t, []time.Duration{0, 0}, h.quantiles(0.5, 0.99))
	rng := rand.New(rand.NewPCG(1, 2))
	var all []time.Duration
	for range 5000 {
		d := time.Duration(rng.ExpFloat64() * 1e5)
		all = append(all, d)
		h.add(d)
	}
	slices.Sort(all)
	for i, q := range h.quantiles(0.5, 0.9, 0.99, 1) {
		want := all[int([]float64{0.5, 0.9, 0.99, 1}[i]*5000)-1]
		require.InEpsilon(t, float64(want), float64(q), 1.0/30)
	}
	require.Equal(t, all[4999], time.Duration(h.max.Load()))
	h.add(1 << 40)
	require.LessOrEqual(t, h.quantiles(1)[0], time.Duration(1<<40), "never above the largest")
}
