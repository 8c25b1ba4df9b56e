package torch

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/pickle"
)

func open(t testing.TB, name string) *File {
	f, err := Open(filepath.Join("testdata", name), 0)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func openBytes(b []byte) (*File, error) {
	return OpenReader("t.pt", bytes.NewReader(b), int64(len(b)), 0)
}

// floats reads a tensor, twice.
func floats(t testing.TB, v any) []float64 {
	x, ok := v.(*Tensor)
	require.True(t, ok, pickle.Kind(v))
	var got [2][]float64
	for i := range got {
		got[i] = make([]float64, x.Len())
		n, err := x.Reader().ReadFloat64s(got[i])
		if err != io.EOF {
			require.NoError(t, err)
		}
		require.Equal(t, len(got[i]), n)
	}
	require.Equal(t, got[0], got[1])
	return got[0]
}

// TestReal reads what PyTorch wrote in both containers under every protocol.
func TestReal(t *testing.T) {
	for _, form := range []string{"zip", "legacy"} {
		for p := 2; p <= 5; p++ {
			t.Run(fmt.Sprintf("%s.p%d", form, p), func(t *testing.T) {
				d := open(t, fmt.Sprintf("all.%s.p%d.pt", form, p)).Value().(*pickle.Dict)
				get := func(key string) []float64 { t.Helper(); return floats(t, d.Get(key)) }
				for key, descr := range map[string]string{"long": "int64", "int": "int32", "short": "int16", "char": "int8", "float": "float32",
					"double": "float64", "half": "float16", "bfloat16": "bfloat16"} {
					require.Equal(t, []float64{-1, 0, 1, 2, 3, 4}, get(key), key)
					require.Equal(t, "(2, 3) of "+descr, d.Get(key).(*Tensor).String())
				}
				require.Equal(t, []float64{0, 200, 255}, get("byte"))
				require.Equal(t, []float64{1, 0, 0, 1}, get("bool"))
				require.Equal(t, []float64{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}, get("transposed"))
				require.Equal(t, []float64{6, 8, 11, 13}, get("slice"))
				require.Equal(t, []float64{0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 17, 21, 2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23}, get("cube"))
				require.Equal(t, []float64{7, 7, 7, 8, 8, 8}, get("expanded"))
				require.Equal(t, []float64{10, 11, 12}, get("first"))
				require.Equal(t, []float64{13, 14, 15, 16, 17}, get("rest"))
				require.Equal(t, []float64{10, 11, 12}, get("again"))
				require.Equal(t, []float64{5}, get("scalar"))
				require.Equal(t, []float64{}, get("empty"))
				require.Equal(t, []float64{1.5}, get("parameter"))
				require.Equal(t, []float64{1, 2}, floats(t, d.Get("weights").(*pickle.Dict).Get("weight")))
				require.Equal(t, "sparse tensor", d.Get("sparse").(*pickle.Object).Class)
				a := d.Get("numpy").(*pickle.Array)
				got := make([]int64, 3)
				_, err := a.Reader().ReadInt64s(got)
				require.NoError(t, err)
				require.Equal(t, []int64{0, 100, 200}, got)
				require.Equal(t, 0.25, d.Get("number"))
				require.Equal(t, pickle.Tuple{int64(3), int64(4)}, d.Get("shape"))
				require.Equal(t, pickle.Global("torch.int8"), d.Get("type"))
				require.Equal(t, "cpu", d.Get("device"))
				require.Equal(t, []any{int64(1), 2.5, "text", nil, true, pickle.Tuple{int64(1 << 40), int64(-3)}, pickle.Bytes{0xff, 0}},
					d.Get("plain").(*pickle.List).Items)
				_, err = d.Get("complex").(*Tensor).Reader().ReadFloat64s(make([]float64, 1))
				require.ErrorIs(t, err, npy.ErrUnsupported)
				require.EqualError(t, err, "unsupported element type complex64 where numbers are expected")
				if form == "zip" {
					require.Equal(t, []float64{1, 65535}, get("uint16"))
					require.Equal(t, []float64{1, 1<<32 - 1}, get("uint32"))
					require.Equal(t, []float64{1, 2}, get("uint64"))
					require.Equal(t, []float64{1}, get("float8"))
				}
			})
		}
	}
}

// TestGeometric reads what users of PyTorch Geometric save.
func TestGeometric(t *testing.T) {
	graph := func(d *pickle.Dict) {
		require.Equal(t, []float64{0, 1, 2, 3, 1, 2, 3, 0}, floats(t, d.Get("edge_index")))
		require.Equal(t, []float64{1, 0.5, 0.25, 2}, floats(t, d.Get("edge_attr")))
		require.Equal(t, []float64{0, 1, 2, 3, 4, 5, 6, 7}, floats(t, d.Get("x")))
		require.Equal(t, []float64{0, 1, 1, 0}, floats(t, d.Get("y")))
		require.Equal(t, []float64{1, 1, 0, 0}, floats(t, d.Get("train_mask")))
	}
	for _, name := range []string{"data.pt", "data.legacy.pt"} {
		v := open(t, name).Value()
		require.Equal(t, "torch_geometric.data.data.Data", v.(*pickle.Object).Class)
		graph(Fields(v))
	}
	tuple := open(t, "processed.pt").Value().(pickle.Tuple)
	graph(Fields(tuple[0]))
	require.Equal(t, pickle.Global("torch_geometric.data.data.Data"), tuple[2])

	hetero := open(t, "hetero.pt").Value().(*pickle.Object).State.(*pickle.Dict)
	paper := Fields(hetero.Get("_node_store_dict").(*pickle.Dict).Get("paper"))
	require.Equal(t, []float64{0, 1, 2, 3, 4, 5}, floats(t, paper.Get("x")))
	edges := hetero.Get("_edge_store_dict").(*pickle.Dict)
	require.Equal(t, pickle.Tuple{"author", "writes", "paper"}, edges.Keys[0])
	require.Equal(t, []float64{0, 0, 1, 0, 1, 2}, floats(t, Fields(edges.Values[0]).Get("edge_index")))
	require.Nil(t, Fields(int64(1)))
}

// repack rewrites an archive, a member at a time.
func repack(t testing.TB, b []byte, method uint16, change func(name string, b []byte) []byte) []byte {
	r, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range r.File {
		in, err := f.Open()
		require.NoError(t, err)
		all, err := io.ReadAll(in)
		require.NoError(t, err)
		if change != nil {
			if all = change(f.Name, all); all == nil {
				continue
			}
		}
		m, err := w.CreateHeader(&zip.FileHeader{Name: f.Name, Method: method})
		require.NoError(t, err)
		_, err = m.Write(all)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func fixture(t testing.TB, name string) []byte {
	b, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return b
}

// TestDeflated: nobody writes them so, and they read.
func TestDeflated(t *testing.T) {
	f, err := openBytes(repack(t, fixture(t, "all.zip.p2.pt"), zip.Deflate, nil))
	require.NoError(t, err)
	d := f.Value().(*pickle.Dict)
	require.Equal(t, []float64{-1, 0, 1, 2, 3, 4}, floats(t, d.Get("half")))
	require.Equal(t, []float64{6, 8, 11, 13}, floats(t, d.Get("slice")))
	require.Equal(t, []float64{13, 14, 15, 16, 17}, floats(t, d.Get("rest")))
}

func TestBigEndian(t *testing.T) {
	swapped := repack(t, fixture(t, "data.pt"), zip.Store, func(name string, b []byte) []byte {
		switch {
		case strings.HasSuffix(name, "/byteorder"):
			return []byte("big")
		case strings.Contains(name, "/data/") && len(b) == 64: // edge_index
			for i := 0; i < len(b); i += 8 {
				binary.BigEndian.PutUint64(b[i:], binary.LittleEndian.Uint64(b[i:]))
			}
		}
		return b
	})
	f, err := openBytes(swapped)
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 2, 3, 1, 2, 3, 0}, floats(t, Fields(f.Value()).Get("edge_index")))
	require.Equal(t, []float64{1, 1, 0, 0}, floats(t, Fields(f.Value()).Get("train_mask")))
	_, err = openBytes(repack(t, swapped, zip.Store, func(name string, b []byte) []byte {
		if strings.HasSuffix(name, "/byteorder") {
			return []byte("middle")
		}
		return b
	}))
	require.EqualError(t, err, `t.pt: data/byteorder: "middle" is no byte order (little and big are)`)
}

// TestNoChecksum: PyTorch may be told to write none.
func TestNoChecksum(t *testing.T) {
	require.Equal(t, []float64{0, 1, 2}, floats(t, open(t, "nocrc.pt").Value().(*pickle.Dict).Get("x")))
}

func TestDamaged(t *testing.T) {
	b := fixture(t, "data.pt")
	at := bytes.Index(b, []byte{0, 0, 0, 0x3f, 0, 0, 0x80, 0x3e}) // edge_attr
	require.Positive(t, at)
	b[at] = 1
	f, err := openBytes(b)
	require.NoError(t, err)
	_, err = Fields(f.Value()).Get("edge_attr").(*Tensor).Reader().ReadFloat32s(make([]float32, 4))
	require.EqualError(t, err, "damaged or truncated download (zip: checksum error); fetch it again")
	_, err = openBytes(b[:len(b)-30])
	require.ErrorContains(t, err, "t.pt: damaged or truncated download: the zip directory at its end does not read")
	b = fixture(t, "data.legacy.pt")
	for n := range b[1:] {
		_, err = openBytes(b[:n])
		require.Error(t, err)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err = openBytes(b[:len(b)-1])
	require.ErrorContains(t, err, "truncated: storage ")
	require.ErrorContains(t, err, " takes 32 bytes and 31 are left; fetch it again")
	_, err = openBytes(append(b, 0))
	require.ErrorContains(t, err, "1 bytes follow the last storage")
}

// saved is the archive of a pickle and storages.
func saved(code string, storages map[string]string) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	put := func(name, text string) {
		m, err := w.CreateHeader(&zip.FileHeader{Name: name})
		if err == nil {
			_, err = m.Write([]byte(text))
		}
		if err != nil {
			panic(err)
		}
	}
	put("archive/data.pkl", code)
	for key, text := range storages {
		put("archive/data/"+key, text)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// tensor is the pickle of one, its storage of n elements.
func tensor(class, key string, n int, offset, shape, strides string) string {
	return fmt.Sprintf("ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\n%s\nX%c\x00\x00\x00%sX\x03\x00\x00\x00cpuM%c%ctQ%s%s%sI00\n}tR.",
		class, len(key), key, n&255, n>>8, offset, shape, strides)
}

func TestRefuses(t *testing.T) {
	six := map[string]string{"0": "0123456789abcdefghijklmn"}
	for want, b := range map[string][]byte{
		"the file is empty; fetch it again":                            {},
		"this looks like a web page, not a file of torch.save; fetch":  []byte("<html>"),
		"this is a single npy array; a file of torch.save is expected": []byte("\x93NUMPY\x01\x00"),
		"this is a pointer of Git LFS, not a file of torch.save":       []byte("version https://git-lfs.github.com/spec/v1\noid"),
		"a plain pickle, not a file of torch.save":                     []byte("\x80\x04K\x01."),
		"it begins neither as a zip archive nor as PyTorch's pickles":  []byte("plain text"),
		"a TorchScript archive (script/code/":                          fixture(t, "script.pt"),
		"a zip archive without data.pkl":                               repack(t, fixture(t, "data.pt"), zip.Store, func(n string, b []byte) []byte { return nil }),
		"this is an npz archive of NumPy":                              repack(t, fixture(t, "data.pt"), zip.Store, func(n string, b []byte) []byte { return nil })[:0],
		`it imports "os.system", which is not on the list`:             saved("cos\nsystem\n(S'true'\ntR.", nil),
		`it imports "torch.load", which is not on the list`:            saved("ctorch\nload\n.", nil),
		`it imports "torch._utils.__builtins__", which is not`:         saved("ctorch._utils\n__builtins__\n.", nil),
		`storage "../../etc/passwd" is not in the archive`:             saved(tensor("FloatStorage", "../../etc/passwd", 6, "K\x00", "K\x06\x85", "K\x01\x85"), six),
		`storage "0" has 24 bytes, and the pickle says 7 of float32`:   saved(tensor("FloatStorage", "0", 7, "K\x00", "K\x06\x85", "K\x01\x85"), six),
		"(7,) of float32 reaches to element 6 of a storage that has 6": saved(tensor("FloatStorage", "0", 6, "K\x00", "K\x07\x85", "K\x01\x85"), six),
		"reaches to element 6 of a storage":                            saved(tensor("FloatStorage", "0", 6, "K\x01", "K\x02K\x03\x86", "K\x03K\x01\x86"), six),
		"a tensor at element 9 of a storage that has 6":                saved(tensor("FloatStorage", "0", 6, "K\x09", "K\x01\x85", "K\x01\x85"), six),
		"has a stride of -1 in dimension 0":                            saved(tensor("FloatStorage", "0", 6, "K\x05", "K\x02\x85", "J\xff\xff\xff\xff\x85"), six),
		"a tensor at an integer of its storage":                        saved(tensor("FloatStorage", "0", 6, "J\xff\xff\xff\xff", "K\x02\x85", "K\x01\x85"), six),
		"(2,) of float32 has 0 strides":                                saved(tensor("FloatStorage", "0", 6, "K\x00", "K\x02\x85", ")"), six),
		"repeats the 6 elements that are stored":                       saved(tensor("FloatStorage", "0", 6, "K\x00", "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x10\x85", "K\x00\x85"), six),
		"is larger than any file":                                      saved(tensor("FloatStorage", "0", 6, "K\x00", "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x70\x85", "K\x00\x85"), six),
		"a string where a tuple of up to 64 integers is expected":      saved(tensor("FloatStorage", "0", 6, "K\x00", "X\x00\x00\x00\x00", "K\x00\x85"), six),
		"a reference out of the pickle: an integer where a storage is": saved("K\x01Q.", nil),
		"a tensor in a dict instead of a storage":                      saved("ctorch._utils\n_rebuild_tensor_v2\n(}K\x00))I00\n}tR.", nil),
		"a storage gets a state":                                       saved(strings.Replace(tensor("FloatStorage", "0", 6, "K\x00", ")", ")"), "tQ", "tQ}b", 1), six),
	} {
		if len(b) == 0 && strings.Contains(want, "npz") {
			b = npz(t)
		}
		_, err := openBytes(b)
		require.ErrorContains(t, err, want)
		require.True(t, strings.HasPrefix(err.Error(), "t.pt: "), err)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err := Open(t.TempDir(), 0)
	require.ErrorContains(t, err, "it is a directory, not a file; name a file in it")
	_, err = Open(filepath.Join(t.TempDir(), "none.pt"), 0)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func npz(t testing.TB) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	_, err := w.Create("x.npy")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// TestBomb: a pickle that inflates to more than is read, and a directory that lies about a storage.
func TestBomb(t *testing.T) {
	bomb := repack(t, fixture(t, "data.pt"), zip.Deflate, func(name string, b []byte) []byte {
		if strings.HasSuffix(name, "data.pkl") {
			return make([]byte, 1<<20)
		}
		return b
	})
	at := bytes.Index(bomb, []byte("PK\x01\x02")) // of data.pkl, the first
	binary.LittleEndian.PutUint32(bomb[at+24:], pickle.MaxFile+1)
	_, err := openBytes(bomb)
	require.ErrorContains(t, err, "data.pkl has 268435457 bytes, and 256 MiB are the most of a pickle")
	binary.LittleEndian.PutUint32(bomb[at+24:], pickle.MaxFile)
	_, err = openBytes(bomb)
	require.ErrorContains(t, err, "data.pkl: damaged or truncated download (unexpected EOF); fetch it again")

	b := saved(tensor("LongStorage", "0", 3, "K\x00", "K\x03\x85", "K\x01\x85"), map[string]string{"0": "0123456789abcdefghijklmn"})
	at = bytes.LastIndex(b, []byte("PK\x01\x02"))
	for _, size := range []uint32{1 << 30, 25} { // in the directory: packed and unpacked
		lie := bytes.Clone(b)
		binary.LittleEndian.PutUint32(lie[at+20:], size)
		binary.LittleEndian.PutUint32(lie[at+24:], size)
		f, err := openBytes(lie)
		if err == nil {
			_, err = f.Value().(*Tensor).Reader().ReadInt64s(make([]int64, 3))
		}
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
		}
	}
}

func FuzzOpen(f *testing.F) {
	files, err := filepath.Glob("testdata/*.pt")
	require.NoError(f, err)
	for _, name := range files {
		b := fixture(f, filepath.Base(name))
		f.Add(b)
		if strings.Contains(name, "all.zip.p2") {
			f.Add(repack(f, b, zip.Deflate, nil))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) { readThrough(t, b) })
}

// FuzzPickle goes past the zip's checksums: code is the pickle of a sound archive.
func FuzzPickle(f *testing.F) {
	f.Add([]byte(tensor("FloatStorage", "0", 6, "K\x00", "K\x02K\x03\x86", "K\x01K\x02\x86")), []byte("0123456789abcdefghijklmn"))
	f.Add([]byte(tensor("BFloat16Storage", "0", 12, "K\x01", "K\x0b\x85", "K\x01\x85")), []byte("0123456789abcdefghijklmn"))
	f.Add([]byte(tensor("BoolStorage", "0", 24, "K\x00", "K\x02K\x03K\x02\x87", "K\x00K\x01K\x05\x87")), []byte("0123456789abcdefghijklmn"))
	for p := 2; p <= 5; p++ {
		b := fixture(f, fmt.Sprintf("all.zip.p%d.pt", p))
		repack(f, b, zip.Store, func(name string, b []byte) []byte {
			if strings.HasSuffix(name, "data.pkl") {
				f.Add(b, make([]byte, 200))
			}
			return b
		})
	}
	f.Fuzz(func(t *testing.T, code, data []byte) {
		readThrough(t, saved(string(code), map[string]string{"0": string(data), "1": string(data)}))
	})
}

// readThrough reads every tensor that a file has, and holds it against the walk over single
// elements.
func readThrough(t *testing.T, b []byte) {
	file, err := openBytes(b)
	if err != nil {
		if strings.Contains(err.Error(), "\n") {
			t.Fatalf("not one line: %q", err)
		}
		return
	}
	left := 1000
	var walk func(v any)
	walk = func(v any) {
		if left--; left < 0 {
			return
		}
		switch v := v.(type) {
		case pickle.Tuple:
			for _, w := range v {
				walk(w)
			}
		case *pickle.List:
			for _, w := range v.Items {
				walk(w)
			}
		case *pickle.Dict:
			for _, w := range v.Values {
				walk(w)
			}
		case *pickle.Object:
			walk(v.State)
		case *Tensor:
			if v.Bytes() > 64<<20 && v.Bytes() > int64(1000*len(b)) {
				t.Fatalf("%s from %d bytes", v.String(), len(b))
			}
			got := int64(0)
			dst := make([]float64, 1000)
			for r := v.Reader(); got < 1<<20; {
				n, err := r.ReadFloat64s(dst)
				if got += int64(n); err == io.EOF && got != v.Len() {
					t.Fatalf("%d elements of %s", got, v.String())
				}
				if err != nil {
					if strings.Contains(err.Error(), "\n") {
						t.Fatalf("not one line: %q", err)
					}
					break
				}
			}
		}
	}
	walk(file.Value())
}

// TestMemory: tensors are counted, and so is a pickle that is too large to begin with.
func TestMemory(t *testing.T) {
	one := strings.TrimSuffix(tensor("LongStorage", "0", 2, "K\x00", "K\x02\x85", "K\x01\x85"), ".")
	b := saved("]("+strings.Repeat(one, 20_000)+"e.", map[string]string{"0": strings.Repeat("x", 16)})
	_, err := OpenReader("t.pt", bytes.NewReader(b), int64(len(b)), 32<<20)
	require.ErrorContains(t, err, "t.pt: archive/data.pkl: byte ")
	require.ErrorContains(t, err, "what it holds takes more than 8 MiB of memory, a quarter of {memory}; raise {memory}")
	_, err = OpenReader("t.pt", bytes.NewReader(b), int64(len(b)), 4<<20)
	require.ErrorContains(t, err, "t.pt: archive/data.pkl has ")
	require.ErrorContains(t, err, " bytes, and a pickle may take 1 MiB, a quarter of {memory}; raise {memory}")
	f, err := OpenReader("t.pt", bytes.NewReader(b), int64(len(b)), 1<<30)
	require.NoError(t, err)
	require.Len(t, f.Value().(*pickle.List).Items, 20_000)
}

// TestSubclasses: subclasses of Tensor are the tensor that they are or wrap, a batch is a graph,
// and enums are names.
func TestSubclasses(t *testing.T) {
	six := map[string]string{"0": "0123456789abcdefghijklmn"}
	inner := strings.TrimSuffix(tensor("IntStorage", "0", 6, "K\x00", "K\x02K\x03\x86", "K\x03K\x01\x86"), ".")
	args := inner[strings.Index(inner, "(("):]
	args = args[:len(args)-1] // what the function gets
	const wrap, index = "ctorch._utils\n_rebuild_wrapper_subclass\n", "ctorch_geometric.edge_index\nEdgeIndex\n"
	for name, code := range map[string]string{
		"wrapped":    "ctorch._tensor\n_rebuild_from_type_v2\n(" + wrap + index + ")}X\x05\x00\x00\x00_data" + inner + "stR.",
		"with slots": "ctorch._tensor\n_rebuild_from_type_v2\n(" + wrap + index + ")}X\x05\x00\x00\x00_data" + inner + "sN\x86tR.",
		"plain":      "ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\nctorch.nn.parameter\nBuffer\n" + args + "}tR.",
	} {
		f, err := openBytes(saved(code, six))
		require.NoError(t, err, name)
		require.Equal(t, "(2, 3) of int32", f.Value().(*Tensor).String())
	}
	for code, want := range map[string]string{
		"ctorch._tensor\n_rebuild_from_type_v2\n(" + wrap + index + ")}tR.":                              "a torch_geometric.edge_index.EdgeIndex without the tensor that it wraps",
		"ctorch._tensor\n_rebuild_from_type_v2\n(" + wrap + index + ")tR.":                               "a tensor of 3 arguments, and 4 are expected",
		"ctorch._tensor\n_rebuild_from_type_v2\n(" + wrap + "ctorch\nint64\n)}tR.":                       "the class torch.int64 made by the class torch._utils._rebuild_wrapper_subclass",
		"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch\nSize\n" + index + ")}tR.":                       "a torch_geometric.edge_index.EdgeIndex that torch.Size makes",
		"c__builtin__\ngetattr\n(cnumpy\nndarray\nX\x01\x00\x00\x00xtR.":                                 "it is called in a way that data does not need",
		"ctorch_geometric.data.batch\nDynamicInheritanceGetter\n)\x81(cos\nsystem\ntR.":                  `it imports "os.system"`,
		"ctorch_geometric.data.batch\nDynamicInheritanceGetter\n)\x81(ctorch\nint64\nctorch\nint64\ntR.": "a batch of no known class",
		"ctorch_geometric.data.data\nData\n)\x81)R.":                                                     "a torch_geometric.data.data.Data is called with a tuple",
		"cpandas.core.frame\nDataFrame\n.":                                                               `if you trust the file, load it in Python and save its arrays alone: torch.save({"x": g.x,`,
	} {
		_, err := openBytes(saved(code, six))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	f, err := openBytes(saved("ctorch_geometric.data.batch\nDynamicInheritanceGetter\n)\x81(ctorch_geometric.data.batch\nBatch\nctorch_geometric.data.data\nData\ntR}X\x01\x00\x00\x00x"+inner+"sb.", six))
	require.NoError(t, err)
	require.Equal(t, "(2, 3) of int32", Fields(f.Value()).Get("x").(*Tensor).String())
	for _, code := range []string{"c__builtin__\ngetattr\n(ctorch_geometric.edge_index\nSortOrder\nX\x03\x00\x00\x00ROWtR.", "ctorch_geometric.edge_index\nSortOrder\nX\x03\x00\x00\x00ROW\x85R."} {
		f, err = openBytes(saved(code, nil))
		require.NoError(t, err)
		require.Equal(t, "ROW", f.Value())
	}
}
