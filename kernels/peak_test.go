package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPeak(t *testing.T) {
	for _, set := range Sets() {
		if n := Peak(set); set == Portable {
			require.Zero(t, n)
		} else {
			require.Positive(t, n)
		}
	}
	require.Panics(t, func() { Peak("abacus") })
}
