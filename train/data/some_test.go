package data

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSome checks that an error stays short where a dataset has thousands of relations.
func TestSome(t *testing.T) {
	require.Equal(t, "none", some(nil))
	require.Equal(t, "a, b", some([]string{"a", "b"}))
	names := make([]string, 4000)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	require.Equal(t, "0, 1, 2, 3, 4, 5, 6, 7 and 3992 more", some(names))
}
