package lines

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNatural(t *testing.T) {
	names := []string{"b", "a10", "a2", "a02", "a", "a1b10", "a1b9", "a99999999999999999999999", "a100000000000000000000000"}
	slices.SortFunc(names, Natural)
	require.Equal(t, []string{"a", "a1b9", "a1b10", "a2", "a02", "a10", "a99999999999999999999999", "a100000000000000000000000", "b"}, names)
}
