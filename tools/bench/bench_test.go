package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSeries(t *testing.T) {
	s := series{4, 1, 3, 2}
	require.Equal(t, 2.5, s.median())
	require.Equal(t, 3.0, s[:3].median())
	require.Equal(t, series{4, 1, 3, 2}, s, "not sorted in place")
	require.Equal(t, "2.5 (1.0–4.0)", s.spread("%.1f"))
	require.Equal(t, series{2, 0.5}, series{4, 1}.over(series{2, 2}))
}

func TestNPY(t *testing.T) {
	w := npyWriter{dir: t.TempDir()}
	w.write("x", "<i4", []int{2, 1}, []uint32{7, 258})
	require.NoError(t, w.err)
	b, err := os.ReadFile(filepath.Join(w.dir, "x.npy"))
	require.NoError(t, err)
	require.Zero(t, (len(b)-8)%64, "data start on a multiple of 64")
	require.True(t, bytes.HasPrefix(b, []byte("\x93NUMPY\x01\x00")))
	require.Contains(t, string(b), "{'descr': '<i4', 'fortran_order': False, 'shape': (2,1,), }")
	require.Equal(t, []byte{7, 0, 0, 0, 2, 1, 0, 0}, b[len(b)-8:])
	w.dir = filepath.Join(w.dir, "missing")
	w.write("x", "<i4", []int{0}, []uint32{})
	require.ErrorIs(t, w.err, os.ErrNotExist)
}

func TestMisuse(t *testing.T) {
	for want, args := range map[string][]string{
		"there are: bench kernels": nil,
		"-python is missing":       {"step"},
		"at least 1":               {"kernels", "-rounds", "0"},
		"one argument too many":    {"kernels", "all"},
	} {
		require.ErrorContains(t, run(context.Background(), io.Discard, args), want)
	}
}
