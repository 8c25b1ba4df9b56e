package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAreaUnderROC compares with all pairs, ties included.
func TestAreaUnderROC(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		numbers, leaves := map[string]float64{}, map[string]bool{"a": true, "b": false}
		for i := range 20 {
			leaves[fmt.Sprint(i)] = rng.IntN(3) == 0
		}
		for id := range leaves {
			numbers[id] = float64(rng.IntN(6))
		}
		pairs, higher := 0.0, 0.0
		for x, left := range leaves {
			for y, other := range leaves {
				if !left || other {
					continue
				}
				pairs++
				switch {
				case numbers[x] > numbers[y]:
					higher++
				case numbers[x] == numbers[y]:
					higher += 0.5
				}
			}
		}
		require.InDelta(t, higher/pairs, areaUnderROC(numbers, leaves), 1e-12)
	}
}
