package dist

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkSum adds up gradients among workers of one process: what a step costs beside computing.
func BenchmarkSum(b *testing.B) {
	for _, workers := range []int{1, 2, 4, 8} {
		for _, n := range []int{1 << 14, 1 << 18, 1 << 22} {
			b.Run(fmt.Sprintf("workers=%d/numbers=%d", workers, n), func(b *testing.B) {
				h, err := Open(Options{Way: Local, Workers: workers})
				require.NoError(b, err)
				b.SetBytes(4 * int64(n))
				require.NoError(b, h.Run(b.Context(), func(ctx context.Context, g *Group) error {
					x := make([]float32, n)
					for range b.N {
						if _, err := g.Sum(ctx, At{}, nil, x); err != nil {
							return err
						}
					}
					return nil
				}))
			})
		}
	}
}
