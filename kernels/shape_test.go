package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShapesAreRefusedByName(t *testing.T) {
	for _, b := range []Backend{NewCPU(CPUOptions{Threads: 1}), NewReference()} {
		buf, ints := b.Alloc(F32, 100), b.Alloc(U32, 100)
		f := func(rows, cols int) Tensor { return Tensor{Buf: buf, Rows: rows, Cols: cols} }
		u := func(rows, cols int) Tensor { return Tensor{Buf: ints, Type: U32, Rows: rows, Cols: cols} }
		refused := func(want string, op func()) {
			t.Helper()
			require.PanicsWithValue(t, want, op, b.Name())
		}
		refused("kernels: MatMul: dst 3×4, a 3×5, b 6×4", func() { b.MatMul(f(3, 4), f(3, 5), f(6, 4), false, false, false) })
		refused("kernels: MatMul: dst 3×4, a transposed from 3×5, b 5×4", func() {
			b.MatMul(f(3, 4), f(3, 5), f(5, 4), true, false, false)
		})
		refused("kernels: Add: dst 2×3, src 3×2", func() { b.Add(f(2, 3), f(3, 2)) })
		refused("kernels: AddRow: dst 2×3, row 1×2", func() { b.AddRow(f(2, 3), f(1, 2)) })
		refused("kernels: ReLU: dst is U32 in a buffer of U32, want F32", func() { b.ReLU(u(2, 2), f(2, 2)) })
		refused("kernels: ReLU: src is F32 in a buffer of U32, want F32", func() {
			b.ReLU(f(2, 2), Tensor{Buf: ints, Rows: 2, Cols: 2})
		})
		refused("kernels: Fill: dst 10×10 at 1 ends outside its buffer of 100", func() {
			b.Fill(Tensor{Buf: buf, Off: 1, Rows: 10, Cols: 10}, 0)
		})
		refused("kernels: UploadF32: tensor 2×2, slice of 3", func() { b.UploadF32(f(2, 2), make([]float32, 3)) })
		refused("kernels: NeighborMean: dst 2×3, src 4×3, Start 2×1, End 1×1, Nbr 5×1", func() {
			b.NeighborMean(f(2, 3), f(4, 3), Adjacency{Start: u(2, 1), End: u(1, 1), Nbr: u(5, 1)})
		})
		g := Adjacency{Start: u(2, 1), End: u(2, 1), Nbr: u(5, 1)}
		refused("kernels: EdgeSoftmaxOf: relation 1 of 2 heads and 2 destinations: alpha 5×2, scores 5×3, Start 2×1, End 2×1, Nbr 5×1", func() {
			b.EdgeSoftmaxOf([]Tensor{f(5, 2), f(5, 2)}, []Tensor{f(5, 2), f(5, 3)}, make([]Tensor, 2), []Adjacency{g, g})
		})
		refused("kernels: EdgeSoftmaxOf: w of 0 relations, lists of 1", func() {
			b.EdgeSoftmaxOf([]Tensor{f(5, 2)}, []Tensor{f(5, 2)}, nil, []Adjacency{g})
		})
		refused("kernels: Dropout: p is 1, not in [0, 1)", func() { b.Dropout(f(2, 3), f(2, 3), u(2, 1), 0, 1) })
		refused("kernels: GatherRowsGrad: ddst 2×3, dsrc 4×2, ids 2×1", func() { b.GatherRowsGrad(f(4, 2), f(2, 3), u(2, 1)) })
		ids := u(2, 1)
		b.UploadU32(ids, []uint32{1, 4})
		refused("kernels: ScatterRows: ids[1] is 4, of 4 rows", func() { b.ScatterRows(f(4, 3), f(2, 3), ids) })
		labels := u(2, 1)
		b.UploadU32(labels, []uint32{NoLabel, 3})
		refused("kernels: SoftmaxCrossEntropy: row 1 has label 3, of 3 classes", func() {
			b.SoftmaxCrossEntropy(f(2, 1), f(2, 3), f(2, 3), labels, 1)
		})
		b.Free(buf)
		refused("kernels: Fill: dst 1×1 at 0 ends outside its buffer of 0", func() { b.Fill(f(1, 1), 0) })
	}
}

func TestBuffersOfAnotherBackendAreRefused(t *testing.T) {
	c, r := NewCPU(CPUOptions{Threads: 1}), NewReference()
	require.PanicsWithValue(t, "kernels: Fill: the buffer of dst is *kernels.memory[float64], of another backend", func() {
		c.Fill(tensorOf(r, 1, 1, []float32{1}), 0)
	})
}

func TestSliceIsAWindowOfRows(t *testing.T) {
	c := NewCPU(CPUOptions{Threads: 1})
	x := tensorOf(c, 3, 2, []float32{1, 2, 3, 4, 5, 6})
	c.Fill(x.Slice(1, 2), 9)
	require.Equal(t, []float32{1, 2, 9, 9, 5, 6}, valuesOf(c, x))
	require.Panics(t, func() { x.Slice(2, 4) })
}
