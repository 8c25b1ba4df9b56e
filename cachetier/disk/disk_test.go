package disk_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open builds a table whose rows all differ, in shards of a few pages.
func open(t testing.TB, rows, dim int) *store.Features {
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(dim)))
	path := storetest.Build(t, storetest.Spec{Nodes: rows, Dim: dim, ShardBytes: 20 << 10, Row: func(int) []float32 {
		row := make([]float32, dim)
		for c := range row {
			row[c] = rng.Float32()
		}
		return row
	}})
	d, err := store.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d.Features(0)
}

// some is n rows without repeats, in file order, at places in random order.
func some(rng *rand.Rand, rows, n int) []disk.Request {
	places := rng.Perm(n)
	var want []disk.Request
	for i, row := range rng.Perm(rows)[:n] {
		want = append(want, disk.Want(uint32(row), uint32(places[i])))
	}
	slices.Sort(want)
	return want
}

func TestReadGivesTheSameRows(t *testing.T) {
	const rows = 300
	for _, dim := range []int{1, 3, 100, 767} {
		table := open(t, rows, dim)
		size := table.RowBytes()
		rng := rand.New(rand.NewPCG(1, 2))
		inOrder := make([]disk.Request, rows)
		for v := range inOrder {
			inOrder[v] = disk.Want(uint32(v), uint32(v))
		}
		batches := [][]disk.Request{nil, some(rng, rows, 1), some(rng, rows, 40), some(rng, rows, rows-1), inOrder}
		for _, kind := range []disk.Kind{disk.Mmap, disk.Pread} {
			for _, want := range batches {
				var first disk.Traffic
				for i, readers := range []int{1, 3, 64} {
					t.Run(fmt.Sprintf("dim=%d/%s/rows=%d/readers=%d", dim, kind, len(want), readers), func(t *testing.T) {
						r, err := disk.Open(kind, table, readers)
						require.NoError(t, err)
						require.Equal(t, kind, r.Kind())
						require.NotEmpty(t, r.Why())
						dst := make([]byte, len(want)*size+1)
						dst[len(want)*size] = 0xa5
						traffic, err := r.Read(dst, want)
						require.NoError(t, err)
						for _, q := range want {
							at := int(q.Place()) * size
							require.Equal(t, table.Row(q.Row()), dst[at:at+size], "row %d", q.Row())
						}
						require.EqualValues(t, 0xa5, dst[len(want)*size], "wrote past the last row")

						require.EqualValues(t, len(want), traffic.Rows)
						require.GreaterOrEqual(t, traffic.Bytes, int64(len(want)*size))
						traffic.Seconds = 0
						if i == 0 {
							first = traffic
						}
						require.Equal(t, first, traffic, "the traffic depends on the number of readers")
					})
				}
			}
		}
	}
}

func TestPreadMergesNeighbours(t *testing.T) {
	table := open(t, 300, 100)
	require.Greater(t, len(table.Shards()), 2, "the test wants rows on both sides of a shard's end")
	r, err := disk.Open(disk.Pread, table, 4)
	require.NoError(t, err)
	size, end := table.RowBytes(), uint32(table.Shards()[1].FirstRow)
	stride := table.Shards()[0].Stride
	for _, c := range []struct {
		rows         []uint32
		reads, bytes int64
	}{
		{[]uint32{7}, 1, int64(size)},
		{[]uint32{7, 9}, 2, 2 * int64(size)},
		{[]uint32{7, 8, 9, 20}, 2, 2*stride + 2*int64(size)},
		{[]uint32{end - 1, end}, 2, 2 * int64(size)},
	} {
		var want []disk.Request
		for i, v := range c.rows {
			want = append(want, disk.Want(v, uint32(i)))
		}
		traffic, err := r.Read(make([]byte, len(want)*size), want)
		require.NoError(t, err)
		require.Equal(t, c.reads, traffic.Reads, "rows %v", c.rows)
		require.Equal(t, c.bytes, traffic.Bytes, "rows %v", c.rows)
	}
}

func TestTruncatedFileIsOneClearError(t *testing.T) {
	for _, kind := range []disk.Kind{disk.Mmap, disk.Pread} {
		t.Run(string(kind), func(t *testing.T) {
			table := open(t, 300, 100)
			last := table.Shards()[len(table.Shards())-1]
			require.NoError(t, os.Truncate(last.Path, last.DataOffset))
			r, err := disk.Open(kind, table, 8)
			require.NoError(t, err)

			dst := make([]byte, 300*table.RowBytes())
			_, err = r.Read(dst, some(rand.New(rand.NewPCG(3, 4)), 300, 300))
			require.ErrorIs(t, err, store.ErrCorrupt)
			require.ErrorContains(t, err, last.Dataset+": "+last.Section+" at 0x1000: ")
			require.ErrorContains(t, err, "truncated")
			require.NotContains(t, err.Error(), "\n")

			_, err = r.Read(dst, []disk.Request{disk.Want(0, 0)})
			require.NoError(t, err, "rows that are still there can be read")
		})
	}
}

// unreadable is a table whose first shard is a directory, which can be opened but not read.
type unreadable struct {
	*store.Features
	shard store.Shard
}

func (u unreadable) Shards() []store.Shard { return []store.Shard{u.shard} }

func TestReadErrorIsNamed(t *testing.T) {
	table := open(t, 10, 4)
	dir, err := os.Open(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	shard := table.Shards()[0]
	shard.File, shard.Path = dir, "some/shard.f16"
	r, err := disk.Open(disk.Pread, unreadable{table, shard}, 0)
	require.NoError(t, err)
	_, err = r.Read(make([]byte, 8), []disk.Request{disk.Want(1, 0)})
	require.ErrorIs(t, err, syscall.EISDIR)
	require.EqualError(t, err, "disk: read 8 bytes of some/shard.f16 at 0x1008: is a directory")
}

func TestReadRefusesRowsPastTheTable(t *testing.T) {
	table := open(t, 10, 4)
	for _, kind := range []disk.Kind{disk.Mmap, disk.Pread} {
		r, err := disk.Open(kind, table, 0)
		require.NoError(t, err)
		_, err = r.Read(make([]byte, 8), []disk.Request{disk.Want(10, 0)})
		require.EqualError(t, err, "disk: row 10 of a table of 10 rows")
	}
}

func TestOpenRefuses(t *testing.T) {
	table := open(t, 10, 4)
	_, err := disk.Open("uring2", table, 0)
	require.EqualError(t, err, `disk: unknown disk engine "uring2": use auto, mmap or pread`)
	_, err = disk.Open(disk.Mmap, table, -1)
	require.ErrorContains(t, err, "-1 readers")
	_, err = disk.Open(disk.Mmap, table, disk.MaxReaders+1)
	require.ErrorContains(t, err, "1025 readers")
}

func TestAutoTakesMmapForASmallTable(t *testing.T) {
	r, err := disk.Open("", open(t, 10, 4), 0)
	require.NoError(t, err)
	require.Equal(t, disk.Mmap, r.Kind())
	require.NotEmpty(t, r.Why())
}
