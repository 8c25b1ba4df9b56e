package metric

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbers(t *testing.T) {
	nan := float32(math.NaN())
	for kind, want := range map[Kind]float64{RMSE: math.Sqrt((4 + 0.25 + 9) / 3), MAE: (2 + 0.5 + 3) / 3.} {
		m, err := NewNumbers(kind)
		require.NoError(t, err)
		_, err = m.Value()
		require.ErrorIs(t, err, ErrUndefined)
		m.Add([]float32{1, 7}, []float32{3, nan})
		m.Add([]float32{2.5, -3}, []float32{2, 0})
		got, err := m.Value()
		require.NoError(t, err)
		require.InDelta(t, want, got, 1e-12, kind)
		m.Add([]float32{nan}, []float32{1})
		_, err = m.Value()
		require.ErrorIs(t, err, ErrUndefined)
		m.Reset()
		m.Add([]float32{4}, []float32{1})
		got, err = m.Value()
		require.NoError(t, err)
		require.Equal(t, 3.0, got)
		k, ok := KindOf(kind.Key())
		require.True(t, ok)
		require.Equal(t, kind, k)
		require.True(t, kind.Better(1, 2))
		require.False(t, kind.Better(2, 2))
	}
	require.True(t, Accuracy.Better(2, 1))
	_, err := NewNumbers(ROCAUC)
	require.EqualError(t, err, "{metric} roc-auc: of numbers there are rmse and mae")
}
