package npy

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
)

// Every half, against the library of scalars.
func TestReadHalves(t *testing.T) {
	halves := make([]uint16, 1<<16)
	for i := range halves {
		halves[i] = uint16(i)
	}
	r, err := NewReader(bytes.NewReader(array(form("<f2", "(65536,)"), halves)))
	require.NoError(t, err)
	got := make([]float32, len(halves)+1)
	n, err := r.ReadFloat32s(got)
	require.NoError(t, err)
	require.Equal(t, len(halves), n)
	for i, x := range got[:n] {
		want := float16.Frombits(uint16(i)).Float32()
		if math.Float32bits(x) != math.Float32bits(want) && !(x != x && want != want) {
			t.Fatalf("%#04x is %v instead of %v", i, x, want)
		}
	}
}

func BenchmarkReadHalves(b *testing.B) {
	file := array(form("<f2", "(1048576,)"), make([]uint16, 1<<20))
	dst := make([]float32, 1<<20)
	b.SetBytes(2 << 20)
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(file))
		require.NoError(b, err)
		_, err = r.ReadFloat32s(dst)
		require.NoError(b, err)
	}
}
