package lines

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestID(t *testing.T) {
	for cell, want := range map[string]int64{
		"0": 0, "7": 7, "12.0": 12, "12.": 12, "0.0": 0, "9223372036854775807": 1<<63 - 1,
		"1.000000000000000000e+00": 1, "1.24000000000e+11": 124_000_000_000, "9007199254740991.0": 1<<53 - 1,
	} {
		got, ok := ID([]byte(cell))
		require.True(t, ok, cell)
		require.Equal(t, want, got, cell)
	}
	for _, cell := range []string{
		"", "-1", "+7", "007", "00", "0x7", "7a", " 7", "7.5", "007.0", "1e5", "1.24E+11", "9223372036854775808",
		"9007199254740992.0", "1e", "e5", "1_000", "nan", "99999999999999999999",
	} {
		_, ok := ID([]byte(cell))
		require.False(t, ok, cell)
	}
}

func TestRounded(t *testing.T) {
	for cell, want := range map[string]bool{
		"1.24E+11": true, "1e5": true, "1.5e+1": false, "1.24000000000E+11": false, "12e0": false, "1.5e-3": false,
		"e5": false, "beef": false, "1e5f": false, "": false, "1e999": false,
	} {
		require.Equal(t, want, Rounded([]byte(cell)), cell)
	}
	require.True(t, Spreadsheet([]byte("1E+05")))
	require.False(t, Spreadsheet([]byte("1e5"))) // a hash may look so
	require.True(t, Zeros([]byte("007")))
	require.False(t, Zeros([]byte("0")))
	require.False(t, Zeros([]byte("07a")))
}
