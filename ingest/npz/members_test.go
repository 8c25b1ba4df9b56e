package npz

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/ingest/npy"
)

func TestJoinSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SliceOf(rapid.Byte()).Draw(t, "a"), rapid.SliceOf(rapid.Byte()).Draw(t, "b")
		got := joinSums(crc32.ChecksumIEEE(a), crc32.ChecksumIEEE(b), int64(len(b)))
		require.Equal(t, crc32.ChecksumIEEE(append(a, b...)), got)
	})
}

// edgeIndex is 0…n-1 above n…1.
func edgeIndex(n int) entry {
	v := make([]int64, 2*n)
	for i := range n {
		v[i], v[n+i] = int64(i), int64(n-i)
	}
	return entry{"edge_index", arr("<i8", false, []int{2, n}, v)}
}

func pairsOf(path string) (n int, err error) {
	a, err := OpenArchive(path)
	if err != nil {
		return 0, err
	}
	defer a.Close()
	if _, err := a.Header("edge_index"); err != nil {
		return 0, err
	}
	p, err := npy.OpenPairs(context.Background(), a.Open("edge_index"))
	if err != nil {
		return 0, a.Fail(context.Background(), err, "edge_index")
	}
	defer p.Close()
	u, v := make([]int64, 1000), make([]int64, 1000)
	for {
		k, err := p.Read(u, v)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, a.Fail(context.Background(), err, "edge_index")
		}
		for i := range k {
			if u[i] != int64(n) || v[i] != p.Len()-int64(n) {
				return n, a.Fail(context.Background(), errors.New("edge_index: wrong pair"), "edge_index")
			}
			n++
		}
	}
}

// Trap 7 of the formats: deflated and stored members, zip64, data descriptors, and damage anywhere
// in them.
func TestArchivePairs(t *testing.T) {
	defer goleak.VerifyNone(t)
	const n = 100_000
	entries := []entry{{"other", i64(1, 2, 3)}, edgeIndex(n), {"x", f32(1)}}
	path := filepath.Join(t.TempDir(), "data.npz")
	for name, file := range map[string][]byte{
		"stored":   pack(t, zip.Store, entries),
		"deflated": pack(t, zip.Deflate, entries),
		"zip64":    packZip64(zip.Deflate, entries),
		"zip64 s":  packZip64(zip.Store, entries),
	} {
		require.NoError(t, os.WriteFile(path, file, 0o600))
		got, err := pairsOf(path)
		require.NoError(t, err, name)
		require.Equal(t, n, got)
		random := rand.New(rand.NewPCG(1, 2))
		for range 10 {
			bad := append([]byte(nil), file...)
			bad[1000+random.IntN(len(file)-2000)] ^= 1 << random.IntN(8)
			require.NoError(t, os.WriteFile(path, bad, 0o600))
			_, err := pairsOf(path)
			require.ErrorContains(t, err, path+": edge_index: ", name)
			require.ErrorContains(t, err, "fetch it again", name)
		}
		require.NoError(t, os.WriteFile(path, file[:len(file)/2], 0o600))
		_, err = pairsOf(path)
		require.ErrorContains(t, err, path+": damaged or truncated download")
	}
}

// A stored array can be read again, and its end alone.
func TestStoredAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.npz")
	e := edgeIndex(5000)
	require.NoError(t, os.WriteFile(path, pack(t, zip.Store, []entry{e}), 0o600))
	a, err := OpenArchive(path)
	require.NoError(t, err)
	defer a.Close()
	require.Equal(t, []string{"edge_index"}, a.Keys())
	require.True(t, a.Has("edge_index"))
	require.False(t, a.Has("edges"))
	open := a.Open("edge_index")
	for range 3 {
		body, err := open()
		require.NoError(t, err)
		got, err := io.ReadAll(body)
		require.NoError(t, err)
		require.Equal(t, e.npy, got)
	}
	body, err := a.Open("edge_index")()
	require.NoError(t, err)
	_, err = body.(io.Seeker).Seek(100, io.SeekStart)
	require.NoError(t, err)
	got, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Equal(t, e.npy[100:], got)
}

func TestReadAhead(t *testing.T) {
	defer goleak.VerifyNone(t)
	text := make([]byte, 3*aheadBlocks*aheadBlock+7)
	for i := 0; i+8 <= len(text); i += 8 {
		binary.LittleEndian.PutUint64(text[i:], uint64(i))
	}
	for _, n := range []int{0, 1, aheadBlock, len(text)} {
		a := readAhead(io.NopCloser(iotest.DataErrReader(newReader(text[:n]))))
		got, err := io.ReadAll(a)
		require.NoError(t, err)
		require.Equal(t, len(text[:n]), len(got))
		require.Equal(t, crc32.ChecksumIEEE(text[:n]), crc32.ChecksumIEEE(got))
		k, err := a.Read(make([]byte, 1))
		require.Zero(t, k)
		require.Equal(t, io.EOF, err)
		require.NoError(t, a.Close())

		broken := errors.New("broken")
		a = readAhead(io.NopCloser(io.MultiReader(newReader(text[:n]), iotest.ErrReader(broken))))
		got, err = io.ReadAll(a)
		require.Equal(t, broken, err)
		require.Len(t, got, n)
		require.NoError(t, a.Close())

		a = readAhead(io.NopCloser(newReader(text[:n]))) // left in the middle
		_, err = io.ReadFull(a, make([]byte, n/3))
		require.NoError(t, err)
		require.NoError(t, a.Close())
	}
}

func newReader(b []byte) io.Reader { return iotest.HalfReader(bytes.NewReader(b)) }
