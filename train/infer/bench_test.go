package infer

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
)

// BenchmarkEach is three layers for all nodes: hidden rows in memory, and on disk with parts of two
// layers' in memory. The files are not synced, and as warm as the page cache keeps them.
func BenchmarkEach(b *testing.B) {
	const nodes, hidden = 50_000, 64
	c := model.Config{Kind: model.SAGE, Layers: 3, Hidden: hidden, Norm: "layer"}
	path := storetest.Build(b, storetest.Communities(nodes, 4, 16, 32, 1))
	all := make([]uint32, nodes)
	for v := range all {
		all[v] = uint32(v)
	}
	for _, percent := range []int64{100, 40, 10} {
		for _, hold := range []Hold{HoldRows, HoldSums} {
			if percent == 100 && hold == HoldSums {
				continue
			}
			b.Run(fmt.Sprintf("memory=%d%%/held=%s/cache=warm", percent, hold), func(b *testing.B) {
				e := network(b, path, c, Options{FS: storetest.NoSync, Dir: filepath.Join(b.TempDir(), "layers"), Bytes: (2*4*hidden + 4) * nodes * percent / 100})
				e.Hold, e.most.edges = hold, 1<<14 // so that memory bounds a window
				b.SetBytes(2 * 4 * nodes * hidden)
				for b.Loop() {
					require.NoError(b, e.Each(b.Context(), 2, all, func([]uint32, kernels.Tensor) error { return nil }))
				}
				b.ReportMetric(3*nodes*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
				b.ReportMetric(float64(e.DiskRead().BytesRead)/float64(b.N), "disk-B/op")
			})
		}
	}
}
