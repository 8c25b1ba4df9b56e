package metric

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// ofLinks adds the scores in two parts, cut behind so many positives with each negatives of their
// own.
func ofLinks(t require.TestingT, k Kind, positive, negative []float32, cut, each int) (float64, error) {
	m, err := NewLinks(k)
	require.NoError(t, err)
	m.Add(positive[cut:], negative[cut*each:])
	m.Add(positive[:cut], negative[:cut*each])
	return m.Value()
}

// TestLinksEqualTheirDefinitions compares the metrics of links with loops over all pairs and all
// thresholds. Scores are few, so that many are equal.
func TestLinksEqualTheirDefinitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		score := rapid.SampledFrom([]float32{-1, 0, 0.5, 1, 2, float32(math.Inf(1))})
		positive := rapid.SliceOfN(score, 1, 12).Draw(t, "positive")
		each := rapid.IntRange(1, 4).Draw(t, "each")
		negative := rapid.SliceOfN(score, each*len(positive), each*len(positive)).Draw(t, "negative")
		cut := rapid.IntRange(0, len(positive)).Draw(t, "cut")
		is := func(k Kind, want float64) {
			got, err := ofLinks(t, k, positive, negative, cut, each)
			require.NoError(t, err)
			require.InDelta(t, want, got, 1e-12, k)
		}
		pairs, ranks := 0.0, 0.0
		for i, p := range positive {
			rank := 1.0
			for j, n := range negative {
				greater, equal := 0.0, 0.0
				if p > n {
					greater = 1
				}
				if p == n {
					equal = 1
				}
				pairs += greater + equal/2
				if j/each == i {
					rank += 1 - greater - equal/2
				}
			}
			ranks += 1 / rank
		}
		is(ROCAUC, pairs/float64(len(positive)*len(negative)))
		is(MRR, ranks/float64(len(positive)))

		thresholds := slices.Concat(positive, negative)
		slices.Sort(thresholds)
		thresholds = slices.Compact(thresholds)
		ap, recall := 0.0, 0.0
		for _, threshold := range slices.Backward(thresholds) {
			right, wrong := 0.0, 0.0
			for _, p := range positive {
				if p >= threshold {
					right++
				}
			}
			for _, n := range negative {
				if n >= threshold {
					wrong++
				}
			}
			now := right / float64(len(positive))
			ap += (now - recall) * right / (right + wrong)
			recall = now
		}
		is(AP, ap)

		k := rapid.IntRange(1, len(negative)).Draw(t, "k")
		best := slices.Sorted(slices.Values(negative))[len(negative)-k]
		above := 0.0
		for _, p := range positive {
			if p > best {
				above++
			}
		}
		is(Hits(k), above/float64(len(positive)))
		is(Hits(len(negative)+1), 1)
	})
}

// TestHitsOfLists compares Hits with values computed by hand. The ranks are 2, 1 + ½ and 3.
func TestHitsOfLists(t *testing.T) {
	for k, want := range map[int]float64{1: 0, 2: 2.0 / 3, 3: 1} {
		m, err := NewLists(Hits(k))
		require.NoError(t, err)
		for range 2 {
			m.Add([]float32{1, 2}, []float32{0, 3, 2, 1})
			m.Add([]float32{5}, []float32{6, 7})
			got, err := m.Value()
			require.NoError(t, err)
			require.InDelta(t, want, got, 1e-15, k)
			m.Reset()
		}
		m.Add([]float32{nan}, []float32{1})
		_, err = m.Value()
		require.ErrorIs(t, err, ErrUndefined)
	}
	_, err := NewLists(AP)
	require.ErrorContains(t, err, "of ranks there are mrr and hits@K")
}

// TestLinksByHand: the average precision equals the example in scikit-learn's documentation.
func TestLinksByHand(t *testing.T) {
	positive, negative := []float32{0.35, 0.8}, []float32{0.1, 0.4}
	for k, want := range map[Kind]float64{AP: 0.5 + 0.5*2.0/3, ROCAUC: 0.75, MRR: 1, Hits(1): 0.5, Hits(2): 1, Hits(3): 1} {
		got, err := ofLinks(t, k, positive, negative, 0, 1)
		require.NoError(t, err)
		require.InDelta(t, want, got, 1e-15, k)
	}
	for _, k := range []Kind{AP, ROCAUC, MRR, Hits(1)} { // all alike
		want := map[Kind]float64{MRR: 1 / 1.5, Hits(1): 0}
		got, err := ofLinks(t, k, []float32{1, 1}, []float32{1, 1}, 1, 1)
		require.NoError(t, err)
		if w, ok := want[k]; ok {
			require.InDelta(t, w, got, 1e-15, k)
		} else {
			require.InDelta(t, 0.5, got, 1e-15, k)
		}
	}
}

func TestLinksUndefined(t *testing.T) {
	for want, of := range map[string]func() (float64, error){
		"ap is undefined: 1 scores are NaN":          func() (float64, error) { return ofLinks(t, AP, []float32{nan}, []float32{1}, 0, 1) },
		"roc-auc is undefined: there is no negative": func() (float64, error) { return ofLinks(t, ROCAUC, []float32{1}, nil, 0, 0) },
		"hits@5 is undefined: there is no positive":  func() (float64, error) { return ofLinks(t, Hits(5), nil, nil, 0, 0) },
		"mrr is undefined: there is no positive":     func() (float64, error) { return ofLinks(t, MRR, nil, nil, 0, 0) },
		"mrr is undefined: 1 positives have scores that are NaN, or their negatives do": func() (float64, error) {
			return ofLinks(t, MRR, []float32{1, 1}, []float32{nan, 0}, 0, 1)
		},
	} {
		_, err := of()
		require.ErrorIs(t, err, ErrUndefined)
		require.EqualError(t, err, want)
	}
	for _, k := range []Kind{"", Accuracy, "hits@0", "hits@-1", "hits@07", "hits@x"} {
		_, err := NewLinks(k)
		require.ErrorContains(t, err, "of links there are roc-auc, ap, mrr and hits@K")
		require.False(t, k.OfLinks())
	}
}

// TestKeys: each kind is found by the key that it has in results.
func TestKeys(t *testing.T) {
	for _, k := range append([]Kind{AP, MRR, Hits(1), Hits(50)}, Kinds...) {
		got, ok := KindOf(k.Key())
		require.True(t, ok, k)
		require.Equal(t, k, got)
		require.NotContains(t, k.Key(), "@")
	}
	for _, key := range []string{"", "hits_", "hits_0", "hits_x", "loss"} {
		_, ok := KindOf(key)
		require.False(t, ok, key)
	}
}
