package lines

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// TestIsBlank: a line is blank if bytes.Fields finds no field in it.
func TestIsBlank(t *testing.T) {
	for r := range rune(0x3100) {
		for _, text := range []string{string(r), " " + string(r), string(r) + "\t", string(r) + "x"} {
			require.Equal(t, len(bytes.Fields([]byte(text))) == 0, IsBlank([]byte(text)), "%q", text)
		}
		require.Equal(t, unicode.IsSpace(r), IsBlank([]byte(string(r))), "%q", r)
	}
	require.True(t, IsBlank(nil))
}

// TestCells: Cells stops at MaxCells, so a line of millions of cells costs little.
func TestCells(t *testing.T) {
	for by, line := range map[byte]string{',': "a,,b", 0: " a \vb\u00a0c"} {
		cells, ok := Cells(nil, []byte(line), by)
		require.True(t, ok)
		require.Len(t, cells, 3)
	}
	for by, cell := range map[byte]string{',': "1,", 0: "1 "} {
		cells, ok := Cells(nil, []byte(strings.Repeat(cell, 3*MaxCells)), by)
		require.False(t, ok)
		require.Len(t, cells, MaxCells)
	}
}
