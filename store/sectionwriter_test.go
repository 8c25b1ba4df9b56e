package store

import (
	"encoding/binary"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
)

// TestSectionAgainstSlice writes runs in order and placed, aligned and not, large and small, and
// compares the file with a slice that got the same runs. It does so on the disk, and on a file
// system without descriptors.
func TestSectionAgainstSlice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 3*writeBuffer)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	for name, fsys := range map[string]vfs.FS{"disk": vfs.Default, "memory": vfs.NewMem()} {
		dir := t.TempDir()
		require.NoError(t, fsys.MkdirAll(dir, 0o777))
		w, err := Create(filepath.Join(dir, "x.gnn"), WriterOptions{FS: fsys})
		require.NoError(t, err)
		for round := range 12 {
			const size = 5*writeBuffer + 1234
			want := make([]byte, size)
			path := string(rune('a' + round))
			s, err := w.section(path, U8, 1, 1, 0)
			require.NoError(t, err)
			other, err := w.section(path+"o", U8, 1, 1, 0) // written in turn with s
			require.NoError(t, err)
			at := int64(0)
			for range 40 {
				n := []int{1, 100, PageSize, 70_000, writeBuffer / 2, writeBuffer, 2*writeBuffer + 5}[rng.IntN(7)]
				from := rng.IntN(PageSize)
				switch rng.IntN(6) * (round % 3) { // every third round is in order
				case 1:
					at = rng.Int64N(size)
				case 2:
					at = rng.Int64N(size/PageSize) * PageSize
				}
				n = min(n, int(size-at))
				require.NoError(t, s.put(at, noise[from:from+n]))
				copy(want[at:], noise[from:from+n])
				at += int64(n)
				require.NoError(t, other.append(noise[:17]))
			}
			spec, err := s.close(size)
			require.NoError(t, err)
			_, err = other.close(40 * 17)
			require.NoError(t, err)
			f, err := fsys.Open(filepath.Join(dir, "x.gnn.partial", path))
			require.NoError(t, err)
			got := make([]byte, spec.Bytes)
			_, err = f.ReadAt(got, 0)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			at64, err := checkHeader(got[:PageSize], &spec, Version)
			require.NoError(t, err)
			require.Zero(t, at64)
			want = append(want, make([]byte, spec.sumsAt()-PageSize-size)...)
			want = append(want, sumsOf(want)...)
			require.EqualValues(t, xxh3.Hash(got[spec.sumsAt():]), binary.LittleEndian.Uint64(got[sumsField:]))
			require.True(t, string(want) == string(got[PageSize:]), "%s, round %d", name, round)
			require.Equal(t, hex64(xxh3.Hash(want)), spec.XXH3)
		}
		require.LessOrEqual(t, len(w.free), 4, "buffers are used again")
		require.NoError(t, w.Abort())
	}
}

// sumsOf returns the checksums of whole pages, padded to a page.
func sumsOf(pages []byte) (sums []byte) {
	for ; len(pages) > 0; pages = pages[PageSize:] {
		sums = binary.LittleEndian.AppendUint32(sums, crc32.Checksum(pages[:PageSize], castagnoli))
	}
	for len(sums)%PageSize != 0 {
		sums = append(sums, 0)
	}
	return sums
}

// TestBuffersAreBounded opens more sections than may have a buffer.
func TestBuffersAreBounded(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "x.gnn"), WriterOptions{})
	require.NoError(t, err)
	var open []*sectionWriter
	for i := range maxFilling + 5 {
		s, err := w.section(string(rune('a'+i)), U8, 1, 1, 0)
		require.NoError(t, err)
		open = append(open, s)
	}
	chunk := make([]byte, 100_000)
	for range 20 {
		for i, s := range open {
			chunk[0] = byte(i)
			require.NoError(t, s.append(chunk))
			require.LessOrEqual(t, len(w.filling), maxFilling)
			require.LessOrEqual(t, len(w.writing), maxFilling)
		}
	}
	for i, s := range open {
		spec, err := s.close(20 * 100_000)
		require.NoError(t, err)
		want := make([]byte, spec.sumsAt()-PageSize)
		for k := range 20 {
			want[k*100_000] = byte(i)
		}
		want = append(want, sumsOf(want)...)
		require.Equal(t, hex64(xxh3.Hash(want)), spec.XXH3)
	}
	require.Empty(t, w.filling)
	require.Empty(t, w.writing)
	require.LessOrEqual(t, len(w.free), 2*maxFilling+1)
	require.NoError(t, w.Abort())
}

// TestWriteAsideFails fails a write in the background: a later call reports it, and close reports
// it again.
func TestWriteAsideFails(t *testing.T) {
	for n := range int32(5) {
		inj := errorfs.OnIndex(n)
		fsys := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileWriteAt && inj.MaybeError(op) != nil {
				return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
			}
			return nil
		}))
		w, err := Create(filepath.Join(t.TempDir(), "x.gnn"), WriterOptions{FS: fsys})
		require.NoError(t, err)
		s, err := w.section("a/b", U8, 1, 1, 0)
		require.NoError(t, err)
		for range 4 {
			if err == nil {
				err = s.append(make([]byte, writeBuffer))
			}
		}
		_, cerr := s.close(4 * writeBuffer)
		require.ErrorIs(t, cerr, syscall.ENOSPC)
		require.ErrorContains(t, cerr, "write a/b: ")
		if n < 2 {
			require.ErrorIs(t, err, syscall.ENOSPC)
		}
		require.Empty(t, w.open)
		require.NoError(t, w.Abort())
	}
}
