package metric

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBatchesMRR: by hand. Ranks 1, 2, 1 + 1 + ½ and 1 + 3·½, so that MRR is (1 + ½ + ⅖ + ⅖) / 4;
// the batches of the other metrics do not matter.
func TestBatchesMRR(t *testing.T) {
	var b Batches[float32]
	b.Add([]float32{3, 1}, []float32{2, 0})
	b.RankAmong(3, []float32{2, 1, 0})
	b.RankAmong(1, []float32{2, 0.5})
	b.Add([]float32{5, 5}, []float32{4, 6})
	b.RankAmong(5, []float32{5, 6, 4})
	b.Rank(0, 3)
	v, err := b.Value()
	require.NoError(t, err)
	require.InDelta(t, (1+0.5+0.4+0.4)/4, v.MRR, 1e-15)
	require.Equal(t, 2, v.Batches)

	links, err := NewLinks(MRR) // the slow way: one positive at a time
	require.NoError(t, err)
	for _, c := range []struct {
		positive float32
		among    []float32
	}{{3, []float32{2, 1, 0}}, {1, []float32{2, 0.5}}, {5, []float32{5, 6, 4}}, {1, []float32{1, 1, 1}}} {
		links.Add([]float32{c.positive}, c.among)
	}
	want, err := links.Value()
	require.NoError(t, err)
	require.Equal(t, want, v.MRR)

	b.Reset()
	b.Add([]float32{1}, []float32{0})
	v, err = b.Value()
	require.NoError(t, err)
	require.Zero(t, v.MRR, "nothing was ranked")
}
