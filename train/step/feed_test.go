package step

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

// TestBlocksAreOneUpload, and every list of every block is where its tensor says, in the CPU's
// memory and in another.
func TestBlocksAreOneUpload(t *testing.T) {
	layer := func(src []uint32, dst int, b sample.Block) sample.Layer {
		return sample.Layer{Nodes: []sample.Frontier{{Src: src, Dst: dst}}, Blocks: []sample.Block{b}}
	}
	large := layer([]uint32{70, 7, 9}, 2, sample.Block{
		Start: []uint32{0, 2}, End: []uint32{2, 3}, Nbr: []uint32{1, 2, 0}, Weight: []float32{0.5, 0.25, 1},
		RevStart: []uint32{0, 1, 2, 3}, RevDst: []uint32{1, 0, 0}, RevEdge: []uint32{2, 0, 1},
	})
	small := layer([]uint32{70, 7}, 1, sample.Block{Start: []uint32{0}, End: []uint32{1}, Nbr: []uint32{1}, Weight: []float32{3}})
	empty := layer([]uint32{5}, 1, sample.Block{Start: []uint32{0}, End: []uint32{0}})
	valued := layer([]uint32{70, 7}, 1, sample.Block{Start: []uint32{0}, End: []uint32{2}, Nbr: []uint32{1, 1}, Values: []float32{1, 2, 3, 4}})
	be := &uploads{Backend: kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{}))}
	for _, f := range []*Feed{newFeed(be), newFeed(kernels.NewCPU(kernels.CPUOptions{}))} {
		for _, layers := range [][]sample.Layer{{small}, {large, small}, {small}, {empty}, {valued, large}, {empty, valued}} {
			be.n = 0
			graphs := f.Blocks(layers)
			if f.be == kernels.Backend(be) {
				require.Equal(t, 1, be.n)
			}
			for i := range layers {
				src, b, g := layers[i].Nodes[0], layers[i].Blocks[0], graphs[i]
				nodes, edges := g.Nodes[0], g.Edges[0]
				require.Equal(t, src.Dst, nodes.Dst)
				for k, want := range [][]uint32{src.Src, b.Start, b.End, b.Nbr, b.RevStart, b.RevDst, b.RevEdge} {
					x := []kernels.Tensor{nodes.IDs, edges.Start, edges.End, edges.Nbr, edges.RevStart, edges.RevDst, edges.RevEdge}[k]
					got := make([]uint32, x.Rows)
					f.be.DownloadU32(got, x)
					require.Equal(t, append([]uint32{}, want...), got)
				}
				got := make([]float32, edges.Weight.Rows)
				f.be.DownloadF32(got, edges.Weight)
				require.Equal(t, append([]float32{}, b.Weight...), got)
			}
			labels, got := f.Upload([]uint32{1}), []uint32{0}
			require.NotEqual(t, f.now[blockInts], labels.Buf, "the forward pass, which reads the blocks, has begun")
			f.be.DownloadU32(got, labels)
			require.Equal(t, []uint32{1}, got)
		}
		f.Close()
	}
}
