package disk_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files returns the shards of a table of random numbers, and their contents.
func files(t testing.TB) (sections []store.SectionFile, contents [][]byte) {
	rng := rand.New(rand.NewPCG(1, 2))
	path := storetest.Build(t, storetest.Spec{Nodes: 5000, Dim: 100, ShardBytes: 400 << 10, Row: func(int) []float32 {
		row := make([]float32, 100)
		for c := range row {
			row[c] = rng.Float32()
		}
		return row
	}})
	d, err := store.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	for _, s := range d.Features(0).Shards() {
		b, err := os.ReadFile(s.Path)
		require.NoError(t, err)
		sections, contents = append(sections, s.SectionFile), append(contents, b)
	}
	require.Greater(t, len(sections), 2)
	return sections, contents
}

// of returns a function that yields extents in order.
func of(extents []disk.Extent) func() (disk.Extent, bool) {
	return func() (s disk.Extent, ok bool) {
		if len(extents) == 0 {
			return s, false
		}
		s, extents = extents[0], extents[1:]
		return s, true
	}
}

func engines() []disk.Kind { return disk.Kinds[1:] }

func TestReadLendsWhatTheFilesHold(t *testing.T) {
	sections, contents := files(t)
	rng := rand.New(rand.NewPCG(3, 4))
	var extents []disk.Extent
	for i := range 400 {
		f := rng.IntN(len(sections))
		size := 1 + rng.IntN([]int{10, 9000, disk.MaxExtent}[i%3])
		at := rng.IntN(max(1, len(contents[f])-size))
		size = min(size, len(contents[f])-at)
		extents = append(extents, disk.Extent{File: f, Offset: int64(at), Size: size, Lo: i})
	}
	extents = append(extents, disk.Extent{File: 0, Size: len(contents[0]), Lo: 400}) // larger than MaxExtent
	for _, kind := range engines() {
		for _, depth := range []int{0, 1, 3, 200} {
			r, err := disk.Open(t.Context(), sections, disk.Options{Kind: kind, Depth: depth})
			require.NoError(t, err)
			require.Equal(t, kind, r.Kind(), r.Why())
			var mu sync.Mutex
			seen := map[int]bool{}
			traffic, err := r.Read(t.Context(), of(extents), func(s disk.Extent, b []byte) error {
				if !bytes.Equal(b, contents[s.File][s.Offset:s.Offset+int64(s.Size)]) {
					return errors.New("wrong bytes")
				}
				mu.Lock()
				defer mu.Unlock()
				seen[s.Lo] = true
				return nil
			})
			require.NoError(t, err)
			require.Len(t, seen, len(extents), "%s, depth %d", kind, depth)
			require.EqualValues(t, len(extents), traffic.Reads)
			r.Close()
			r.Close()
		}
	}
}

func TestMerge(t *testing.T) {
	sections, _ := files(t)
	r, err := disk.Open(t.Context(), sections, disk.Options{})
	require.NoError(t, err)
	defer r.Close()
	gap := r.Costs().Gap()
	require.Positive(t, gap)
	const page = store.PageSize
	through := gap / page * page // between pages
	requests := []disk.Request{
		{0, 0, 10}, {0, 10, 10}, {0, page + through, 1}, // read through
		{0, 2*page + 2*through + page, 5}, // a gap one page wider
		{1, 8 * page, disk.MaxExtent},     // another file
		{1, 8*page + disk.MaxExtent, 5},
		{1, 100*page + disk.MaxExtent, 3 * disk.MaxExtent}, // larger than an extent
	}
	next := r.Merge(len(requests), func(i int) disk.Request { return requests[i] })
	var got []disk.Extent
	for s, ok := next(); ok; s, ok = next() {
		got = append(got, s)
	}
	require.Equal(t, []disk.Extent{
		{0, 0, page + int(through) + 1, 0, 3}, {0, 3*page + 2*through, 5, 3, 4}, {1, 8 * page, disk.MaxExtent, 4, 5},
		{1, 8*page + disk.MaxExtent, 5, 5, 6}, {1, 100*page + disk.MaxExtent, 3 * disk.MaxExtent, 6, 7},
	}, got)
	_, ok := r.Merge(0, nil)()
	require.False(t, ok)
}

func TestErrors(t *testing.T) {
	sections, _ := files(t)
	for _, kind := range engines() {
		r, err := disk.Open(t.Context(), sections, disk.Options{Kind: kind})
		require.NoError(t, err)
		defer r.Close()
		fine := func(disk.Extent, []byte) error { return nil }
		_, err = r.Read(t.Context(), of([]disk.Extent{{Offset: sections[0].Size - 1, Size: 2}}), fine)
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.ErrorContains(t, err, "2 bytes are wanted")

		mine := errors.New("mine")
		many := make([]disk.Extent, 1000)
		for i := range many {
			many[i] = disk.Extent{Size: 1, Offset: int64(i), Lo: i}
		}
		_, err = r.Read(t.Context(), of(many), func(s disk.Extent, b []byte) error {
			if s.Lo == 500 {
				return mine
			}
			return nil
		})
		require.ErrorIs(t, err, mine)

		require.NoError(t, os.Truncate(sections[1].Path, 4096))
		_, err = r.Read(t.Context(), of([]disk.Extent{{File: 1, Offset: 4096, Size: 100}}), func(s disk.Extent, b []byte) error {
			_ = append([]byte(nil), b...)
			return nil
		})
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.ErrorContains(t, err, sections[1].Section+" at 0x1000: ")
		require.NotContains(t, err.Error(), "\n")
		_, err = r.Read(t.Context(), of(many[:10]), fine)
		require.NoError(t, err, "what is still there can be read")
	}
}

func TestReadErrorIsNamed(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	r, err := disk.Open(t.Context(), []store.SectionFile{{File: dir, Path: filepath.Join("some", "shard.f16"), Size: 1 << 20}}, disk.Options{Kind: disk.Buffered})
	require.NoError(t, err)
	defer r.Close()
	_, err = r.Read(t.Context(), of([]disk.Extent{{Offset: 0x1008, Size: 8}}), func(disk.Extent, []byte) error { return nil })
	require.ErrorIs(t, err, syscall.EISDIR)
	require.EqualError(t, err, "disk: read 8 bytes of some/shard.f16 at 0x1008: is a directory")
}

func TestOpenRefuses(t *testing.T) {
	_, err := disk.Open(t.Context(), nil, disk.Options{Kind: "uring2"})
	require.ErrorContains(t, err, `disk: unknown disk engine "uring2": use auto`)
	_, err = disk.Open(t.Context(), nil, disk.Options{Depth: -1})
	require.ErrorContains(t, err, "-1 reads at a time")
	_, err = disk.Open(t.Context(), nil, disk.Options{Depth: disk.MaxDepth + 1})
	require.ErrorContains(t, err, "1025 reads at a time")
}

// TestDamagedPage flips a bit in a page that a read needs: no engine serves the extent, and the
// error names the page. Engines check a page on each read, except that a memory map checks it only
// once.
func TestDamagedPage(t *testing.T) {
	for _, kind := range engines() {
		sections, contents := files(t)
		f := &sections[1]
		flip := func(at int64) {
			file, err := os.OpenFile(f.Path, os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = file.WriteAt([]byte{contents[1][at] ^ 1}, at)
			require.NoError(t, errors.Join(err, file.Sync(), file.Close()))
		}
		r, err := disk.Open(t.Context(), sections, disk.Options{Kind: kind})
		require.NoError(t, err)
		served := 0
		read := func(at int64) error {
			served = 0
			_, err := r.Read(t.Context(), of([]disk.Extent{{File: 1, Offset: at, Size: 2 * store.PageSize}}), func(disk.Extent, []byte) error {
				served++
				return nil
			})
			return err
		}
		require.NoError(t, read(3*store.PageSize+7))
		flip(4*store.PageSize + 1)
		err = read(3*store.PageSize + 7)
		if kind == disk.Mmap {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, f.Section+" at 0x4000: the checksum of this page is ")
			require.Zero(t, served)
		}
		flip(6 * store.PageSize)
		err = read(6*store.PageSize + 7)
		require.ErrorIs(t, err, store.ErrCorrupt, "%s", kind)
		require.ErrorContains(t, err, f.Section+" at 0x6000: the checksum of this page is ")
		require.NotContains(t, err.Error(), "\n")
		require.Zero(t, served)
		r.Close()
	}
}

// TestCutWithinAPage truncates a file within a page. Through a map the rest of the page reads as
// zeros, which must be an error.
func TestCutWithinAPage(t *testing.T) {
	for _, kind := range engines() {
		sections, _ := files(t)
		r, err := disk.Open(t.Context(), sections, disk.Options{Kind: kind})
		require.NoError(t, err)
		defer r.Close()
		require.NoError(t, os.Truncate(sections[1].Path, 8192+100))
		_, err = r.Read(t.Context(), of([]disk.Extent{{File: 1, Offset: 8192, Size: 200}}), func(disk.Extent, []byte) error { return nil })
		require.ErrorIs(t, err, store.ErrCorrupt, "%s", kind)
		require.ErrorContains(t, err, sections[1].Section+" at 0x2064: ")
		require.ErrorContains(t, err, "truncated while in use")
	}
}
