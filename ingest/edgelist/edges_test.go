package edgelist

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIsNeighbours: rows of integers of different lengths are lists of neighbours. Blank lines,
// comments and a line of counts do not make them differ.
func TestIsNeighbours(t *testing.T) {
	for text, want := range map[string][2]bool{
		"1 2\n2 3\n3 1\n":               {false, false},
		"1 2\n\n2 3\n\n3 1\n":           {false, false},
		"3 3 1\n1 2\n2 3\n3 1\n":        {false, false},
		"# a b c\n1 2\n2 3\n3 1\n":      {false, false},
		"1 2 3\n2 1\n3 1 4 5\n":         {true, false},
		"1 2 3\n\n2 1\n\n3 1 4 5\n":     {true, false},
		"9\n1 2 3\n2 1\n3 1 4 5\n":      {true, false},
		"4 3\n2\n1 3 4\n2\n2\n":         {true, true},
		"% made\n4 3\n2\n1 3 4\n2\n2\n": {true, true},
		"a 2 3\n2 1\n3 1 4 5\n":         {false, false},
		"":                              {false, false},
	} {
		is, metis := IsNeighbours(text)
		require.Equal(t, want, [2]bool{is, metis}, "%.40q", text)
	}
}
