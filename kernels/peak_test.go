package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPeak(t *testing.T) {
	for _, set := range append(Sets(), SetsOf(BF16)...) {
		if n := Peak(set); set == Portable {
			require.Zero(t, n, set)
		} else {
			require.Positive(t, n, set)
		}
	}
	require.Panics(t, func() { Peak("abacus") })
}
