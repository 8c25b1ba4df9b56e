package lines

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestNearCells: Cells splits at near and far separators as bytes.Split does.
func TestNearCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := []byte(rapid.StringMatching(`[a,]{0,60}`).Draw(t, "line"))
		cells, fits := Cells(nil, line, ',')
		require.True(t, fits)
		require.Equal(t, bytes.Split(line, []byte{','}), cells)
	})
}
