package lines

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInteger(t *testing.T) {
	for cell, want := range map[string]int64{
		"3": 3, "-3": -3, "+3": 3, "3.0": 3, "3.": 3, "1.0e+00": 1, "2.500000e+01": 25, "1e+06": 1e6, "-0.0": 0,
		"9223372036854775807": 1<<63 - 1, "9007199254740991.0": 1<<53 - 1,
	} {
		got, ok := Integer([]byte(cell))
		require.True(t, ok, cell)
		require.Equal(t, want, got, cell)
	}
	for _, cell := range []string{
		"", " ", "x", "2.5", "1.5e-01", "nan", "inf", "1e300", "9223372036854775808", "9007199254740992.0", "9007199254740993.0", "0x10p0", "1_000", "1 2",
	} {
		_, ok := Integer([]byte(cell))
		require.False(t, ok, cell)
	}
}

func TestWhole(t *testing.T) {
	for v, ok := range map[float64]bool{0: true, -3: true, 1<<53 - 1: true, 1 << 53: false, 0.5: false, math.Inf(1): false} {
		_, got := Whole(v)
		require.Equal(t, ok, got, v)
	}
	_, ok := Whole(math.NaN())
	require.False(t, ok)
}
