package npy

import (
	"bytes"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFloat8 compares the largest and least values with the specifications.
func TestFloat8(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		kind   Kind
		bytes  []byte
		values []float64
	}{
		{
			E4M3, []byte{0x00, 0x01, 0x07, 0x08, 0x38, 0x39, 0x7e, 0xfe, 0xb8},
			[]float64{0, 0x1p-9, 0.875 * 0x1p-6, 0x1p-6, 1, 1.125, 448, -448, -1},
		},
		{
			E5M2, []byte{0x00, 0x01, 0x03, 0x04, 0x3c, 0x3d, 0x7b, 0x7c, 0xfc},
			[]float64{0, 0x1p-16, 0.75 * 0x1p-14, 0x1p-14, 1, 1.25, 57344, inf, -inf},
		},
		{E4M3Z, []byte{0x00, 0x01, 0x08, 0x40, 0x7f, 0xff}, []float64{0, 0x1p-10, 0x1p-7, 1, 240, -240}},
		{E5M2Z, []byte{0x00, 0x01, 0x04, 0x40, 0x7f, 0xff}, []float64{0, 0x1p-17, 0x1p-15, 1, 57344, -57344}},
		{E8M0, []byte{0x00, 0x7f, 0x80, 0xfe}, []float64{0x1p-127, 1, 2, 0x1p127}},
	} {
		h := Header{Descr: "float8", Type: Type{Kind: c.kind, Size: 1}, Shape: []int64{int64(len(c.bytes))}}
		got := make([]float64, len(c.bytes))
		_, err := NewDataReader(h, bytes.NewReader(c.bytes)).ReadFloat64s(got)
		require.NoError(t, err)
		require.Equal(t, c.values, got)
	}
	for kind, b := range map[Kind]byte{E4M3: 0xff, E5M2: 0x7d, E4M3Z: 0x80, E5M2Z: 0x80, E8M0: 0xff} {
		h := Header{Descr: "float8", Type: Type{Kind: kind, Size: 1}, Shape: []int64{1}}
		got := make([]float32, 1)
		_, err := NewDataReader(h, bytes.NewReader([]byte{b})).ReadFloat32s(got)
		require.NoError(t, err)
		require.True(t, math.IsNaN(float64(got[0])))
	}
	whole := make([]int64, 3)
	h := Header{Descr: "float8", Type: Type{Kind: E4M3, Size: 1}, Shape: []int64{2}}
	n, err := NewDataReader(h, bytes.NewReader([]byte{0x40, 0xc0})).ReadInt64s(whole)
	require.NoError(t, err)
	require.Equal(t, []int64{2, -2}, whole[:n])
	_, err = NewDataReader(h, bytes.NewReader([]byte{0x3c, 0})).ReadInt64s(whole)
	require.ErrorContains(t, err, "element 0 is 1.5, not an integer")
	require.NotErrorIs(t, err, io.EOF)
}
