package checkpoint

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
)

var sample = []Tensor{
	{"convs.0.weight", []int{2, 3}, []float32{1, 2, 3, 4, 5, 6}},
	{"bias", []int{1, 2}, []float32{-1, 0.5}},
	{"empty", []int{0}, []float32{}},
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.safetensors")
	require.NoError(t, Save(vfs.Default, path, sample, map[string]string{"epoch": "3"}))
	got, meta, err := Load(vfs.Default, path)
	require.NoError(t, err)
	require.Equal(t, "3", meta["epoch"])
	require.ElementsMatch(t, sample, got)
	require.NoFileExists(t, path+".tmp")
}

// TestEveryCut truncates the file at every length.
func TestEveryCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.safetensors")
	require.NoError(t, Save(vfs.Default, path, sample, nil))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	for n := range b {
		require.NoError(t, os.WriteFile(path, b[:n], 0o666))
		_, _, err := Load(vfs.Default, path)
		require.Error(t, err, n)
	}
}

// TestEveryBit flips every bit of a file, header and metadata included: each is found.
func TestEveryBit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.safetensors")
	meta := map[string]string{"gnnstore.epochs": "3", "gnnstore.progress": `{"updates": 12, "gnnstore.file_xxh3":"0123456789abcdef"}`}
	require.NoError(t, Save(vfs.Default, path, sample, meta))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	for n := range b {
		for bit := range 8 {
			b[n] ^= 1 << bit
			_, _, err := read(bytes.NewReader(b), int64(len(b)))
			require.Error(t, err, "byte %d, bit %d: %q", n, bit, b[max(0, n-20):n+1])
			b[n] ^= 1 << bit
		}
	}
	_, got, err := read(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	require.Equal(t, meta, got, "without the checksum")
	b[len(b)-1] ^= 1
	require.NoError(t, os.WriteFile(path, b, 0o666))
	_, _, err = Load(vfs.Default, path)
	require.EqualError(t, err, "read checkpoint "+path+": checksum differs: truncated or damaged; use the checkpoint before it")
}

// TestOtherWriters: a file of an earlier version has a checksum of its data, and one of another
// program has none.
func TestOtherWriters(t *testing.T) {
	tensors := `"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`
	data := []byte{0, 0, 128, 63}
	file := func(header string) []byte {
		b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
		return append(b, data...)
	}
	old := file(`{` + tensors + `,"__metadata__":{"gnnstore.epochs":"3","gnnstore.xxh3":"` + sumOf(data) + `"}}`)
	for name, b := range map[string][]byte{
		"earlier version": old, "no metadata": file(`{` + tensors + `}`), "others": file(`{"__metadata__":{"format":"pt"},` + tensors + `}`),
	} {
		got, _, err := read(bytes.NewReader(b), int64(len(b)))
		require.NoError(t, err, name)
		require.Equal(t, []Tensor{{"a", []int{1}, []float32{1}}}, got, name)
	}
	old[len(old)-1] ^= 1
	_, _, err := read(bytes.NewReader(old), int64(len(old)))
	require.ErrorContains(t, err, "checksum differs")
	lost := file(`{` + tensors + `,"__metadata__":{"gnnstore.epochs":"3"}}`)
	_, _, err = read(bytes.NewReader(lost), int64(len(lost)))
	require.ErrorContains(t, err, "the checksum is missing")
}

// TestOldOrNew fails each operation in turn: the checkpoint from before must still load.
func TestOldOrNew(t *testing.T) {
	for n := int32(0); ; n++ {
		path := filepath.Join(t.TempDir(), "c.safetensors")
		require.NoError(t, Save(vfs.Default, path, sample, map[string]string{"epoch": "1"}))
		inj := errorfs.OnIndex(n)
		fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind != errorfs.OpRemove && inj.MaybeError(op) != nil {
				return syscall.ENOSPC
			}
			return nil
		}))
		err := Save(fs, path, sample, map[string]string{"epoch": "2"})
		_, meta, lerr := Load(vfs.Default, path)
		require.NoError(t, lerr, n)
		require.NoFileExists(t, path+".tmp", n)
		if err == nil {
			require.Equal(t, "2", meta["epoch"])
			require.Greater(t, n, int32(4))
			return
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
	}
}

// TestRefusesBeforeReading gives headers that do not describe what follows: nothing of its size is
// allocated.
func TestRefusesBeforeReading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.safetensors")
	for want, c := range map[string]struct {
		header string
		data   int64
	}{
		"1099511627776 bytes of data, and its tensors take 4: truncated or damaged": {`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 1 << 40},
		"4 bytes of data, and its tensors take 4611686018427387904":                 {`{"a":{"dtype":"F32","shape":[1152921504606846976],"data_offsets":[0,4611686018427387904]}}`, 4},
		`tensor "a": no file holds shape [4294967296 4294967296]`:                   {`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}`, 4},
		`tensor "b": its data begin at byte 8, and those before it end at 4`:        {`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}`, 12},
		`tensor "b": its data begin at byte 0, and those before it end at 4`:        {`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4},
		`tensor "a": elements are BF16; save it as float32 (F32)`:                   {`{"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}`, 4},
		`tensor "a": bytes 0 to 8 for shape [1]`:                                    {`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}}`, 8},
	} {
		b := append(binary.LittleEndian.AppendUint64(nil, uint64(len(c.header))), c.header...)
		require.NoError(t, os.WriteFile(path, b, 0o666))
		require.NoError(t, os.Truncate(path, int64(len(b))+c.data))
		_, _, err := Load(vfs.Default, path)
		require.ErrorContains(t, err, path+": "+want)
	}
	_, _, err := Load(vfs.Default, filepath.Dir(path))
	require.ErrorContains(t, err, "it is a directory, not a file; name a file in it")
}

func FuzzLoad(f *testing.F) {
	path := filepath.Join(f.TempDir(), "c.safetensors")
	if err := Save(vfs.Default, path, sample, nil); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		tensors, _, err := read(bytes.NewReader(b), int64(len(b)))
		for _, x := range tensors {
			if err != nil || 4*len(x.Data) > len(b) {
				t.Fatal("more data than the file has")
			}
		}
	})
}
