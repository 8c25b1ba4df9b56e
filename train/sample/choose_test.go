package sample

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFloyd: each way to find earlier picks gives the picks of the algorithm with a set.
func TestFloyd(t *testing.T) {
	var c chooser
	for _, d := range []int{2, 33, 63, 64, 65, 70, 1000, 1 << 20} {
		for _, k := range []int{1, 2, 5, 31, 32, 33, 60, 900} {
			for key := range uint64(50) {
				if k >= d {
					break
				}
				got, set := make([]uint32, k), map[uint32]bool{}
				c.floyd(got, d, mix(key))
				for n := range k {
					j := d - k + n
					want := uint32(draw(mix(key), n, j+1))
					if set[want] {
						want = uint32(j)
					}
					set[want] = true
					require.Equal(t, want, got[n], "pick %d of %d among %d", n, k, d)
				}
			}
		}
	}
}
