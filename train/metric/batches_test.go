package metric

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestBatches compares each batch, and all together, with the metrics of one pool.
func TestBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Batches[float32]
		var whole Batches[uint32] // scores are integers, and so the same in either type
		for range 2 {             // the second time after Reset
			var all [2][]float32
			var want Batched
			for range rapid.IntRange(1, 4).Draw(t, "batches") {
				var batch [2][]float32
				var integers [2][]uint32
				for i := range batch {
					integers[i] = rapid.SliceOfN(rapid.Uint32Range(0, 5), i, 8).Draw(t, "scores")
					for _, x := range integers[i] {
						batch[i] = append(batch[i], float32(x))
					}
				}
				b.Add(batch[0], batch[1])
				whole.Add(integers[0], integers[1])
				if len(batch[0]) == 0 {
					continue
				}
				for i := range all {
					all[i] = append(all[i], batch[i]...)
				}
				ap, err := ofLinks(t, AP, batch[0], batch[1], 0, 0)
				require.NoError(t, err)
				auc, err := ofLinks(t, ROCAUC, batch[0], batch[1], 0, 0)
				require.NoError(t, err)
				want.AP, want.AUC, want.Batches, want.Positives = want.AP+ap, want.AUC+auc, want.Batches+1, want.Positives+len(batch[0])
			}
			got, err := b.Value()
			integers, _ := whole.Value()
			require.Equal(t, got, integers)
			if want.Batches == 0 {
				require.ErrorIs(t, err, ErrUndefined)
				continue
			}
			require.NoError(t, err)
			want.AP, want.AUC = want.AP/float64(want.Batches), want.AUC/float64(want.Batches)
			want.PooledAP, err = ofLinks(t, AP, all[0], all[1], 0, 0)
			require.NoError(t, err)
			want.PooledAUC, err = ofLinks(t, ROCAUC, all[0], all[1], 0, 0)
			require.NoError(t, err)
			require.Equal(t, want, got)
			b.Reset()
			whole.Reset()
		}
	})
}

func TestBatchesUndefined(t *testing.T) {
	for want, batches := range map[string][][2][]float32{
		"ap is undefined: there is no positive":       {{nil, {1}}},
		"ap is undefined: 1 batches have no negative": {{{1}, {0}}, {{1}, nil}},
		"ap is undefined: 2 scores are NaN":           {{{float32(math.NaN())}, {0}}, {{1}, {float32(math.NaN())}}, {{1}, nil}},
	} {
		var b Batches[float32]
		for _, batch := range batches {
			b.Add(batch[0], batch[1])
		}
		_, err := b.Value()
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, ErrUndefined)
	}
	// Integers beyond 2^24 differ, which float32 would not tell apart.
	var b Batches[uint32]
	b.Add([]uint32{1<<24 + 1}, []uint32{1 << 24})
	v, err := b.Value()
	require.NoError(t, err)
	require.Equal(t, Batched{1, 1, 1, 1, 1, 1, 0}, v)
}
