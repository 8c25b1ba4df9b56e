package kernels_test

import (
	"fmt"

	"github.com/gnnstore/gnnstore/kernels"
)

// A layer's first half: three nodes' features, stored as float16, averaged into the two
// destinations that have them as neighbours.
func Example() {
	var b kernels.Backend = kernels.NewCPU(kernels.CPUOptions{})

	halves := make([]uint16, 6)
	kernels.Float32ToHalf(halves, []float32{1, 2, 3, 4, 5, 6})
	rows := kernels.Tensor{Buf: b.Alloc(kernels.F16, 6), Type: kernels.F16, Rows: 3, Cols: 2}
	b.UploadHalf(rows, halves)

	column := func(values ...uint32) kernels.Tensor {
		t := kernels.Tensor{Buf: b.Alloc(kernels.U32, len(values)), Type: kernels.U32, Rows: len(values), Cols: 1}
		b.UploadU32(t, values)
		return t
	}
	mean := kernels.Tensor{Buf: b.Alloc(kernels.F32, 4), Rows: 2, Cols: 2}
	b.NeighborMean(mean, rows, kernels.Adjacency{
		Start: column(0, 2),
		End:   column(2, 3),
		Nbr:   column(0, 1, 2), // destination 0 has the neighbours 0 and 1, destination 1 has 2
	})

	result := make([]float32, mean.Len())
	b.DownloadF32(result, mean)
	fmt.Println(result)
	// Output: [2 3 5 6]
}
