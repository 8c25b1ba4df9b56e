package archive

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func pack(t testing.TB, method uint16, members map[string]string) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out) // with data descriptors, as both NumPy and PyTorch do
	for name, text := range members {
		m, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		require.NoError(t, err)
		_, err = io.WriteString(m, text)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func open(b []byte) (*Archive, error) {
	return Open("t.zip", bytes.NewReader(b), int64(len(b)), "an archive")
}

func TestMembers(t *testing.T) {
	text := strings.Repeat("0123456789", 1000)
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		a, err := open(pack(t, method, map[string]string{"a": text, "b": "", "c": "other"}))
		require.NoError(t, err)
		require.Len(t, a.Members, 3)
		require.Nil(t, a.Member("d"))
		m := a.Member("a")
		require.Equal(t, int64(10_000), m.Size)
		require.Equal(t, method == zip.Deflate, m.Deflated())
		for _, c := range []struct{ off, n int64 }{{0, 10_000}, {0, 5}, {9_990, 10}, {4_321, 1_234}, {10_000, 0}} {
			got, err := io.ReadAll(iotest.HalfReader(m.Stream(c.off, c.n)))
			require.NoError(t, err)
			require.Equal(t, text[c.off:c.off+c.n], string(got))
			if c.n == 0 {
				continue
			}
			buf := make([]byte, c.n)
			n, err := m.ReadAt(buf, c.off)
			require.NoError(t, err)
			require.Equal(t, text[c.off:c.off+c.n], string(buf[:n]))
		}
		n, err := m.ReadAt(make([]byte, 20), 9_990)
		require.Equal(t, 10, n)
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, a.Verify(context.Background(), a.Members...))
		got, err := a.Member("c").ReadAll(5)
		require.NoError(t, err)
		require.Equal(t, "other", string(got))
		_, err = a.Member("c").ReadAll(4)
		require.EqualError(t, err, "c has 5 bytes, and 4 are the most")
		require.Panics(t, func() { m.Stream(1, 10_000) })
	}
}

func TestDamaged(t *testing.T) {
	text := strings.Repeat("0123456789", 100)
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		good := pack(t, method, map[string]string{"a": text})
		for at := 31; at < len(good)-80; at++ { // in the data
			b := bytes.Clone(good)
			b[at] ^= 0x40
			a, err := open(b)
			if err != nil {
				continue // the directory
			}
			if _, err = a.Member("a").ReadAll(1 << 20); err != nil {
				require.ErrorIs(t, err, ErrDamaged)
				require.ErrorIs(t, a.Verify(context.Background(), a.Members...), ErrDamaged)
			}
		}
		b := bytes.Clone(good)
		b[40] ^= 1
		a, err := open(b)
		require.NoError(t, err)
		_, err = a.Member("a").ReadAll(1 << 20)
		require.ErrorIs(t, err, ErrDamaged)
		// A larger size in the directory than there is.
		b = bytes.Clone(good)
		at := bytes.LastIndex(b, []byte("PK\x01\x02"))
		binary.LittleEndian.PutUint32(b[at+24:], 1<<31)
		a, err = open(b)
		require.NoError(t, err)
		_, err = a.Member("a").ReadAll(1 << 32)
		require.ErrorIs(t, err, ErrDamaged)
		_, err = a.Member("a").ReadAt(make([]byte, 1), 0)
		require.Error(t, err)
	}
}

func TestRefuses(t *testing.T) {
	two := pack(t, zip.Store, map[string]string{"aa": "x", "ab": "y"})
	for want, b := range map[string][]byte{
		"the file is empty; fetch it again":                                {},
		"damaged or truncated download: the zip directory at its end does": two[:len(two)-20],
		"member aa is there twice":                                         bytes.ReplaceAll(two, []byte("ab"), []byte("aa")),
		`member "a\x01": such a name is no key`:                            bytes.ReplaceAll(two, []byte("ab"), []byte("a\x01")),
		"this is an HDF5 file, not an archive":                             []byte("\x89HDF\r\n"),
		"this is gzipped; unpack it to get an archive":                     []byte("\x1f\x8b\x08"),
		"not an archive (zip: not a valid zip file)":                       []byte("what"),
	} {
		_, err := open(b)
		require.ErrorContains(t, err, "t.zip: "+want)
	}
	for field, want := range map[int]string{8: "it is encrypted", 10: "compression method 77 is not read"} {
		b := pack(t, zip.Store, map[string]string{"a": "x"})
		at := bytes.LastIndex(b, []byte("PK\x01\x02"))
		b[at+field] = 77 // odd: the flag of encryption
		a, err := open(b)
		require.NoError(t, err)
		_, err = a.Member("a").ReadAll(9)
		require.ErrorContains(t, err, want)
	}
}

// TestDirectory: one of more than is read costs no more than that.
func TestDirectory(t *testing.T) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	name := strings.Repeat("x", 60_000)
	for i := range 300 {
		_, err := w.Create(name + string(rune('A'+i)))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	_, err := open(out.Bytes())
	require.EqualError(t, err, "t.zip: its directory is larger than the 16 MiB that are read; it is not an archive")
}

// packZip64 is an archive of one member whose sizes and place stand in 64 bits, as those over 4 GiB
// have them.
func packZip64(name, text string) []byte {
	le, n := binary.LittleEndian, uint64(len(text))
	words := func(b []byte, v ...uint16) []byte {
		for _, w := range v {
			b = le.AppendUint16(b, w)
		}
		return b
	}
	sum := crc32.ChecksumIEEE([]byte(text))
	out := words(le.AppendUint32(nil, 0x04034b50), 45, 0, 0, 0, 0)
	out = le.AppendUint64(le.AppendUint32(out, sum), 1<<64-1) // both sizes
	out = append(words(out, uint16(len(name)), 20), name...)
	out = le.AppendUint64(le.AppendUint64(words(out, 1, 16), n), n)
	out = append(out, text...)
	start := uint64(len(out))
	out = words(le.AppendUint32(out, 0x02014b50), 45, 45, 0, 0, 0, 0)
	out = le.AppendUint64(le.AppendUint32(out, sum), 1<<64-1)
	out = words(out, uint16(len(name)), 28, 0, 0, 0, 0, 0, 0xffff, 0xffff)
	out = words(append(out, name...), 1, 24)
	for _, v := range []uint64{n, n, 0} {
		out = le.AppendUint64(out, v)
	}
	end := uint64(len(out))
	out = words(le.AppendUint64(le.AppendUint32(out, 0x06064b50), 44), 45, 45, 0, 0, 0, 0)
	for _, v := range []uint64{1, 1, end - start, start} {
		out = le.AppendUint64(out, v)
	}
	out = le.AppendUint64(words(le.AppendUint32(out, 0x07064b50), 0, 0), end)
	out = words(le.AppendUint32(words(out), 1), 0x4b50, 0x0605, 0, 0, 0xffff, 0xffff)
	return words(le.AppendUint64(out, 1<<64-1), 0)
}

func TestZip64(t *testing.T) {
	text := strings.Repeat("0123456789", 1000)
	a, err := open(packZip64("a", text))
	require.NoError(t, err)
	got, err := a.Member("a").ReadAll(1 << 20)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
}
