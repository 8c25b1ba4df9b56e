package rawfile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/pickle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// text compresses somewhat.
func text(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789,\n"[rng.IntN(12)]
	}
	return b
}

func TestGzip(t *testing.T) {
	whole := text(2*deflateBlock + 17)
	for _, size := range []int{0, 1, 1000, deflateBlock - 1, deflateBlock, deflateBlock + 1, 2 * deflateBlock, len(whole)} {
		for _, step := range []int{999, deflateBlock, len(whole)} {
			var file bytes.Buffer
			w := NewGzip(&file)
			for at := 0; at < size; at += step {
				n, err := w.Write(whole[at:min(size, at+step)])
				require.NoError(t, err)
				require.Equal(t, min(size, at+step)-at, n)
			}
			require.NoError(t, w.Close())
			require.NoError(t, w.Close(), "again")
			r, err := gzip.NewReader(&file)
			require.NoError(t, err)
			got, err := io.ReadAll(r)
			require.NoError(t, err, "its checksum is right")
			require.True(t, bytes.Equal(whole[:size], got))
		}
	}
}

// TestGzipSame: what is written does not depend on the processors.
func TestGzipSame(t *testing.T) {
	whole := text(9 * deflateBlock)
	files := map[int][]byte{}
	for _, procs := range []int{1, 4} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		var file bytes.Buffer
		w := NewGzip(&file)
		_, err := w.Write(whole)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		files[procs] = file.Bytes()
	}
	require.True(t, bytes.Equal(files[1], files[4]))
	require.Less(t, len(files[1]), len(whole)*8/10)
}

type fullAfter struct{ n int }

var errFull = errors.New("no space left on device")

func (f *fullAfter) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// TestFullDisk: the first error stays, and Close still ends the goroutines.
func TestFullDisk(t *testing.T) {
	whole := text(4 << 20)
	for _, room := range []int{0, 5, 100, 700 << 10, 2 << 20} {
		w := NewGzip(&fullAfter{room})
		_, werr := w.Write(whole)
		require.ErrorIs(t, errors.Join(werr, w.Close()), errFull)
		z := NewNPZ(&fullAfter{room})
		a, err := z.Array("x", "|u1", 4<<20)
		if err == nil {
			_, err = a.Write(whole)
		}
		require.ErrorIs(t, errors.Join(err, z.Close()), errFull)
	}
}

// TestNPZ reads back what it writes with the product's own reader.
func TestNPZ(t *testing.T) {
	values := make([]int64, 200_000)
	for i := range values {
		values[i] = int64(i) * 7919 % 1_000_003
	}
	var file bytes.Buffer
	z := NewNPZ(&file)
	for _, key := range []string{"a", "edge_index"} {
		w, err := z.Array(key, "<i8", 2, 100_000)
		require.NoError(t, err)
		require.NoError(t, binary.Write(w, binary.LittleEndian, values))
	}
	require.NoError(t, z.Close())
	r, err := zip.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	require.Len(t, r.File, 2)
	for _, f := range r.File {
		require.Equal(t, zip.Deflate, f.Method)
		m, err := f.Open()
		require.NoError(t, err)
		array, err := npy.NewReader(m)
		require.NoError(t, err)
		require.Equal(t, []int64{2, 100_000}, array.Header().Shape)
		got := make([]int64, len(values))
		n, err := array.ReadInt64s(got)
		require.NoError(t, err)
		require.Equal(t, values, got[:n])
		_, err = io.Copy(io.Discard, m)
		require.NoError(t, err)
	}
}

// split is arrays of every byte, as MAG240M's split_dict.pt holds them.
var split = map[string][]int64{"train": {0, 1, 127, 128, 255, 256, 1 << 40, -1}, "valid": {}, "test-whole": many()}

func many() (values []int64) {
	for i := range int64(1000) {
		values = append(values, i*1_000_003)
	}
	return values
}

func writeSplit(w io.Writer) error {
	f := NewPT(w, "split_dict.pt")
	err := f.Object(func(p *Pickler) error {
		return p.Dict(func() {
			for _, key := range []string{"train", "valid", "test-whole"} {
				p.Text(key)
				_ = p.Int64s(int64(len(split[key])), func(emit func([]int64) error) error { // the Pickler keeps its error
					for lo := 0; lo < len(split[key]); lo += 3 {
						if err := emit(split[key][lo:min(lo+3, len(split[key]))]); err != nil {
							return err
						}
					}
					return nil
				})
			}
			p.Text("num_classes").Int(153)
			p.Text("far").Int(1 << 40)
			p.Text("below").Int(-3)
		})
	})
	return errors.Join(err, f.Close())
}

func TestPickledArrays(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, writeSplit(&file))
	r, err := zip.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
		at, err := f.DataOffset()
		require.NoError(t, err)
		require.Zero(t, at%storageAlignment, f.Name)
		require.Equal(t, zip.Store, f.Method)
	}
	require.Equal(t, []string{"split_dict/data.pkl", "split_dict/byteorder", "split_dict/version"}, names)
	body, err := r.Open("split_dict/data.pkl")
	require.NoError(t, err)
	b, err := io.ReadAll(body)
	require.NoError(t, err)
	v, err := new(pickle.Dialect).Load("data.pkl", b)
	require.NoError(t, err)
	got := v.(*pickle.Dict)
	for key, want := range map[string]int64{"num_classes": 153, "far": 1 << 40, "below": -3} {
		require.EqualValues(t, want, got.Get(key), key)
	}
	for key, want := range split {
		ints := make([]int64, len(want))
		_, err := got.Get(key).(*pickle.Array).Reader().ReadInt64s(ints)
		require.True(t, err == nil || err == io.EOF && len(want) == 0, "%v", err)
		require.Equal(t, want, ints, key)
	}
	require.ErrorIs(t, writeSplit(&fullAfter{300}), errFull)
}

func writeTensor(w io.Writer) error {
	f := NewPT(w, "edge_features.pt")
	if err := f.Object(func(p *Pickler) error { return p.Float32s("0", 3, 2) }); err != nil {
		return err
	}
	s, err := f.Storage("0")
	if err != nil {
		return err
	}
	return errors.Join(binary.Write(s, binary.LittleEndian, []float32{0, 1, 2, 3, 4, 5}), f.Close())
}

// TestTensor: elements begin where torch maps them.
func TestTensor(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, writeTensor(&file))
	r, err := zip.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	require.Equal(t, "edge_features/data/0", r.File[1].Name)
	at, err := r.File[1].DataOffset()
	require.NoError(t, err)
	require.Zero(t, at%storageAlignment)
	require.Equal(t, []byte{0, 0, 0, 0, 0, 0, 0x80, 0x3f}, file.Bytes()[at:at+8])
}
