package kernels

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGatherRowsGradAddsInOrder compares with the reference loop in float32, to the bit: in another order the sums would
// round otherwise. Tables of one row are the case in which all positions add to the same.
func TestGatherRowsGradAddsInOrder(t *testing.T) {
	for _, s := range []struct{ list, table, cols int }{{3000, 1, 67}, {3000, 1, 33}, {5000, 700, 65}, {900, 90, 300}, {70000, 40, 1}} {
		rng := rand.New(rand.NewPCG(3, 4))
		list := make([]uint32, s.list)
		for i := range list {
			list[i] = rng.Uint32N(uint32(s.table))
		}
		before, up := floatsFrom(1, s.table*s.cols), floatsFrom(2, s.list*s.cols)
		want := append([]float32(nil), before...)
		gatherRowsGradRef(want, up, s.cols, list)
		for _, set := range Sets() {
			for _, threads := range []int{1, 2, 3, 8} {
				c := NewCPU(CPUOptions{Threads: threads, Set: set})
				dsrc, ddst := tensorOf(c, s.table, s.cols, before), tensorOf(c, s.list, s.cols, up)
				ids := Tensor{Buf: c.Alloc(U32, s.list), Type: U32, Rows: s.list, Cols: 1}
				c.UploadU32(ids, list)
				c.GatherRowsGrad(dsrc, ddst, ids)
				require.Equal(t, want, valuesOf(c, dsrc), fmt.Sprintf("%+v: %s with %d threads", s, set, threads))
			}
		}
	}
}
