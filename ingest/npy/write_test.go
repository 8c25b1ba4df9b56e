package npy

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAppendHeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.Int64Range(0, 1<<20), 0, 2).Draw(t, "shape")
		descr := rapid.SampledFrom([]string{"<f4", "<f2", "<i8", "|u1", "<i4"}).Draw(t, "descr")
		b := AppendHeader([]byte("x"), descr, shape...)[1:]
		require.Zero(t, len(b)%64)
		h, err := ReadHeader(bytes.NewReader(b))
		require.NoError(t, err)
		require.Equal(t, descr, h.Descr)
		require.False(t, h.Fortran)
		require.Equal(t, append([]int64{}, shape...), append([]int64{}, h.Shape...))
		_, err = ReadHeader(bytes.NewReader(b[:len(b)-1]))
		require.ErrorIs(t, err, ErrTruncated, "the header ends where the elements begin")
	})
}
