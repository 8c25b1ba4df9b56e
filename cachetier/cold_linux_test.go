package cachetier_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
)

// BenchmarkGatherCold gathers random rows that are in no tier and not in the page cache. It opens
// the dataset anew for each batch, since pages that a map holds cannot be dropped.
func BenchmarkGatherCold(b *testing.B) {
	path := benchDataset(b)
	rng := rand.New(rand.NewPCG(1, 2))
	const rows = 1 << 12 // a pass over every page would measure the disk's sequential speed
	ids := make([]uint32, rows)
	for i := range ids {
		ids[i] = rng.Uint32N(benchRows)
	}
	for _, c := range []struct {
		engine  disk.Kind
		readers int
	}{{disk.Mmap, 0}, {disk.Pread, 2}, {disk.Pread, 0}, {disk.Pread, 256}} {
		b.Run(fmt.Sprintf("engine=%s/readers=%d", c.engine, c.readers), func(b *testing.B) {
			var dst []byte
			for b.Loop() {
				b.StopTimer()
				dropPages(b, path)
				d, err := store.Open(path)
				require.NoError(b, err)
				f := d.Features(0)
				s, err := cachetier.Open(bg, f, cachetier.Options{Engine: c.engine, Readers: c.readers})
				require.NoError(b, err)
				if dst == nil {
					dst = make([]byte, rows*f.RowBytes())
					b.SetBytes(int64(len(dst)))
				}
				b.StartTimer()
				err = s.Gather(bg, dst, ids)
				b.StopTimer()
				require.NoError(b, err)
				require.NoError(b, s.Close())
				require.NoError(b, d.Close())
				b.StartTimer()
			}
			b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// dropPages takes the table's files out of the page cache.
func dropPages(b *testing.B, path string) {
	d, err := store.Open(path)
	require.NoError(b, err)
	defer d.Close()
	for _, s := range d.Features(0).Shards() {
		fd := int(s.File.Fd())
		require.NoError(b, unix.Fdatasync(fd))
		require.NoError(b, unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED))
	}
}
