package npy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func opener(file []byte, opened *int) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		*opened++
		return io.NopCloser(bytes.NewReader(file)), nil
	}
}

func TestRowsEitherOrder(t *testing.T) {
	for _, dim := range [][2]int{{1, 1}, {7, 3}, {3, 7}, {1, 5}, {5, 1}, {100, 9}, {0, 4}, {4, 0}} {
		n, f := dim[0], dim[1]
		var want, fortran []float32
		for i := range n * f {
			want = append(want, float32(i))
		}
		for c := range f {
			for r := range n {
				fortran = append(fortran, want[r*f+c])
			}
		}
		shape := fmt.Sprintf("(%d, %d)", n, f)
		files := map[string][]byte{
			"c":       array(fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': %s}", shape), want),
			"fortran": array(fmt.Sprintf("{'descr': '<f4', 'fortran_order': True, 'shape': %s}", shape), fortran),
		}
		for order, file := range files {
			for _, block := range []int64{1, 64, 1 << 20} {
				for _, chunk := range []int64{1, 50, 1 << 20} {
					var got []float32
					next, opened := int64(0), 0
					err := Rows(context.Background(), opener(file, &opened), chunk, block, func(first int64, values []float32) error {
						require.Equal(t, next, first)
						if f > 0 {
							next += int64(len(values) / f)
							require.True(t, int64(len(values)*4) <= chunk || len(values) == f)
						} else {
							next += min(max(chunk/4, 1), int64(n)-first)
						}
						got = append(got, values...)
						return nil
					})
					require.NoError(t, err)
					require.Equal(t, want, got, "%s %v chunk %d block %d", order, dim, chunk, block)
					if order == "c" || block == 1<<20 {
						require.Equal(t, 1, opened)
					}
				}
			}
		}
	}
}

func TestRowsRefuses(t *testing.T) {
	opened := 0
	rows := func(file []byte, emit func(int64, []float32) error) error {
		return Rows(context.Background(), opener(file, &opened), 16, 16, emit)
	}
	none := func(int64, []float32) error { return nil }
	require.ErrorContains(t, rows(array(form("<f4", "(2, 2, 2)"), make([]float32, 8)), none), "where rows and columns are expected")
	require.ErrorContains(t, rows(array(form("<f4", "(2, 10000000)"), nil), none), "at most 4194304 columns")
	require.ErrorIs(t, rows(array(form("<f4", "(9, 2)"), make([]float32, 8)), none), ErrTruncated)
	fortran := "{'descr': '<f4', 'fortran_order': True, 'shape': (9, 2)}"
	require.ErrorIs(t, rows(array(fortran, make([]float32, 8)), none), ErrTruncated)
	stop := errors.New("enough")
	require.Equal(t, stop, rows(array(fortran, make([]float32, 18)), func(int64, []float32) error { return stop }))
	require.Equal(t, stop, rows(array(form("<f4", "(9, 2)"), make([]float32, 18)), func(int64, []float32) error { return stop }))

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := Rows(ctx, opener(array(form("<f4", "(9, 2)"), make([]float32, 18)), &opened), 16, 16, none)
	require.ErrorIs(t, err, context.Canceled)
}
