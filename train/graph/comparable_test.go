package graph

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestFirstOtherClassIsNamed: of two datasets with a thousand classes each, the refusal names
// the first class that differs, and no other.
func TestFirstOtherClassIsNamed(t *testing.T) {
	cities := func(change func(names []string)) *store.Manifest {
		names := make([]string, 1000)
		for i := range names {
			names[i] = "city " + strconv.Itoa(i)
		}
		change(names)
		return &store.Manifest{Labels: []store.Label{{NodeType: "user", Classes: 1000, ClassNames: names}}}
	}
	same := func([]string) {}
	trained, other := cities(same), cities(func(names []string) { names[7], names[8] = names[8], names[7] })
	require.Empty(t, differ(trained, cities(same), run.Options{}))
	require.Equal(t, `has class 7 of type user named "city 8", not named "city 7"`, differ(trained, other, run.Options{}))
	other.Labels[0].ClassNames = nil
	require.Equal(t, `has class 0 of type user without a name, not named "city 0"`, differ(trained, other, run.Options{}))
	require.Equal(t, `has class 0 of type user named "city 0", not without a name`, differ(other, trained, run.Options{}))
	other.Labels = nil // a dataset to predict on needs none
	require.Empty(t, differ(trained, other, run.Options{}))
}
