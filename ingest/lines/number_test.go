package lines

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestFloat: numbers are decimal. Other forms that strconv reads are refused.
func TestFloat(t *testing.T) {
	for cell, want := range map[string]float64{"3": 3, "-0.5": -0.5, "1e-05": 1e-05, "+.5": .5, "1E5": 1e5, "inf": math.Inf(1), "-Infinity": math.Inf(-1)} {
		got, err := Float([]byte(cell), 64)
		require.NoError(t, err, cell)
		require.Equal(t, want, got, cell)
	}
	for _, cell := range []string{"", " 1", "0x1p10", "-0X1P10", "+0x1p10", "0x_1p4", "1_000", "x", "1 2", "0b1", "٣"} {
		_, err := Float([]byte(cell), 64)
		require.ErrorIs(t, err, strconv.ErrSyntax, cell)
	}
	_, err := Float([]byte("1e400"), 64)
	require.ErrorIs(t, err, strconv.ErrRange)
}

// TestShort: a number of few digits is read as strconv reads it, bit by bit.
func TestShort(t *testing.T) {
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.StringMatching(`[-+]?[0-9]{0,17}(\.[0-9]{0,17})?([eE.x-][0-9]?)?`).Draw(t, "cell")
		for _, bits := range []int{32, 64} {
			if v, ok := short([]byte(cell), bits); ok {
				want, err := strconv.ParseFloat(cell, bits)
				require.NoError(t, err, cell)
				require.Equal(t, math.Float64bits(want), math.Float64bits(v), "%q as a float of %d bits", cell, bits)
				taken++
			}
		}
	})
	require.NotZero(t, taken)
	for _, cell := range []string{"-0", "0.", ".5", "16777215", "0.8474", "-1.0000000001", "0.00000000000001"} {
		_, ok := short([]byte(cell), 64)
		require.True(t, ok, cell)
	}
	for _, cell := range []string{"", "-", ".", "+.", "1e3", "9999999999999999", "0.000000000000000"} {
		_, ok := short([]byte(cell), 64)
		require.False(t, ok, cell)
	}
}

// TestExact: an integer is exact if it comes back, a printed float always, and two decimals never
// read as one.
func TestExact(t *testing.T) {
	exact := func(cell string) bool {
		v, err := Float([]byte(cell), 64)
		require.NoError(t, err, cell)
		return Exact([]byte(cell), v)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "integer")
		f := float64(n)
		kept := f < 1<<63 && int64(f) == n
		require.Equal(t, kept, exact(strconv.FormatInt(n, 10)), n)
		v := rapid.Float64().Draw(t, "float")
		for _, digits := range []int{-1, 17, 20, 30} {
			require.True(t, exact(strconv.FormatFloat(v, 'e', digits, 64)), v)
		}
		a, b := rapid.StringMatching(`[0-9]{1,22}(\.[0-9]{0,12})?`).Draw(t, "a"), rapid.StringMatching(`[0-9]{1,22}(\.[0-9]{0,12})?`).Draw(t, "b")
		x, _ := Float([]byte(a), 64)
		if y, _ := Float([]byte(b), 64); x == y && exact(a) && exact(b) {
			p, _, err := big.ParseFloat(a, 10, 500, big.ToNearestEven)
			require.NoError(t, err)
			q, _, err := big.ParseFloat(b, 10, 500, big.ToNearestEven)
			require.NoError(t, err)
			require.Zero(t, p.Cmp(q), "%s and %s", a, b)
		}
	})
	for cell, want := range map[string]bool{
		"1700000000000000101": false, "1700000000000000001": false, "9007199254740992": true, "9007199254740993": false,
		"-9007199254740993": false, "0001.5": true, "1700000000.123456789": false, "1.000000000000000056e-01": true,
		"-5.960464477539063e-08": true, "-5.960464477539062e-08": true, // -2⁻²⁴ and the float below
		strings.Repeat("9", 100): false, "1" + strings.Repeat("0", 22): true, "0." + strings.Repeat("0", 900) + "1": true,
	} {
		require.Equal(t, want, exact(cell), cell)
	}
}
