package train

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
	"github.com/gnnstore/gnnstore/train/sample"
)

// uploads counts transfers of integers.
type uploads struct {
	kernels.Backend
	n int
}

// UploadU32 implements kernels.Backend.
func (u *uploads) UploadU32(dst kernels.Tensor, src []uint32) {
	u.n++
	u.Backend.UploadU32(dst, src)
}

// TestBlocksAreOneUpload, and every list of every block is where its tensor says, in the CPU's memory and in another.
func TestBlocksAreOneUpload(t *testing.T) {
	large := sample.Block{
		Dst: 2, Src: []uint32{70, 7, 9}, Start: []uint32{0, 2}, End: []uint32{2, 3}, Nbr: []uint32{1, 2, 0}, Weight: []float32{0.5, 0.25, 1},
		RevStart: []uint32{0, 1, 2, 3}, RevDst: []uint32{1, 0, 0}, RevEdge: []uint32{2, 0, 1},
	}
	small := sample.Block{Dst: 1, Src: []uint32{70, 7}, Start: []uint32{0}, End: []uint32{1}, Nbr: []uint32{1}, Weight: []float32{3}}
	be := &uploads{Backend: kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{}))}
	for _, f := range []*feed{newFeed(be), newFeed(kernels.NewCPU(kernels.CPUOptions{}))} {
		for _, blocks := range [][]sample.Block{{small}, {large, small}, {small}, {{Dst: 1, Src: []uint32{5}, Start: []uint32{0}, End: []uint32{0}}}} {
			be.n = 0
			graphs := f.blocks(blocks)
			if f.be == kernels.Backend(be) {
				require.Equal(t, 1, be.n)
			}
			for i, b := range blocks {
				g := graphs[i]
				nodes, edges := g.Nodes[0], g.Edges[0]
				require.Equal(t, b.Dst, nodes.Dst)
				for k, want := range [][]uint32{b.Src, b.Start, b.End, b.Nbr, b.RevStart, b.RevDst, b.RevEdge} {
					x := []kernels.Tensor{nodes.IDs, edges.Start, edges.End, edges.Nbr, edges.RevStart, edges.RevDst, edges.RevEdge}[k]
					got := make([]uint32, x.Rows)
					f.be.DownloadU32(got, x)
					require.Equal(t, append([]uint32{}, want...), got)
				}
				got := make([]float32, edges.Weight.Rows)
				f.be.DownloadF32(got, edges.Weight)
				require.Equal(t, append([]float32{}, b.Weight...), got)
			}
			labels := f.upload([]uint32{1})
			require.Equal(t, f.used-1, labels.Off, "behind the blocks")
		}
		f.close()
	}
}
