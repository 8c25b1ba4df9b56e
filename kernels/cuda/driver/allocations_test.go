//go:build cuda && linux && !race

package driver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAllocations: a launch does not allocate.
func TestAllocations(t *testing.T) {
	f := openFake(t)
	s := openScale(t, f, 0)
	p, err := NewParams()
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	x := Ptr(uintptr(f.at(4096)))
	allocations := testing.AllocsPerRun(1000, func() {
		if err := s.launch(x, 1, 1, p); err != nil {
			panic(err)
		}
	})
	require.Less(t, allocations, 0.5)
}
