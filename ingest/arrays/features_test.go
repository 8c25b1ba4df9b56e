package arrays

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

// featuresOf reads an array of features whole.
func featuresOf(t *testing.T, text string) (rows []float32, f *Features, err error) {
	if f, err = OpenFeatures(text, 0); err != nil {
		return nil, nil, err
	}
	defer func() { require.NoError(t, f.Close()) }()
	err = f.Rows(t.Context(), func(c ingest.RowChunk) error {
		rows = append(rows, c.Values...)
		return nil
	})
	return rows, f, err
}

func TestFeatureFile(t *testing.T) {
	for text, want := range map[string][2]string{
		"x.npz": {"x.npz", ""}, "a/X.NPY": {"a/X.NPY", ""}, "x.pt:emb": {"x.pt", "emb"}, "x.npz:paper/x:1": {"x.npz", "paper/x:1"},
		"İİİİ.npz:x": {"İİİİ.npz", "x"}, "a:b.npz:c.npz:d": {"a:b.npz", "c.npz:d"}, "x.json": {}, "x.npz:": {}, "npz": {}, "": {}, ".npz.gz": {}, "x.ptx": {},
	} {
		path, name, ok := FeatureFile(text)
		if want[0] == "" {
			require.False(t, ok, text)
			continue
		}
		require.True(t, ok, text)
		require.Equal(t, want, [2]string{path, name}, text)
	}
}

// TestOpenFeatures chooses the array of features, and asks where several may be it.
func TestOpenFeatures(t *testing.T) {
	x, other := arr("<f4", false, []int{3, 2}, []float32{0, 1, 2, 3, 4, 5}), arr("<f8", true, []int{3, 2}, []float64{9, 9, 9, 9, 9, 9})
	want := []float32{0, 1, 2, 3, 4, 5}
	csr := files{"indptr": i64(0, 1, 3, 4), "indices": i64(1, 0, 1, 0), "data": f32(1, 2, 3, 4), "shape": i64(3, 2), "format": arr("|S3", false, []int{}, []byte("csr"))}
	for _, c := range []struct {
		f           files
		name        string
		want        []float32
		key, others string
	}{
		{f: files{"emb": x}, want: want, key: "emb"},
		{f: files{"x": x, "emb": other, "y": i64(0, 1, 1)}, want: want, key: "x", others: "features are x; not read: emb, y; {node_features} "},
		{f: files{"emb": other, "feat": x}, want: want, key: "feat", others: "not read: emb"},
		{f: files{"emb": x, "y": i64(0, 1, 1), "names": texts("a", "b", "c")}, want: want, key: "emb", others: "not read: names, y"},
		{f: files{"emb": x, "x": other}, name: "emb", want: want, key: "emb", others: "not read: x"},
		{f: files{"degree": i64(4, 5, 6), "names": texts("a", "b", "c")}, want: []float32{4, 5, 6}, key: "degree", others: "names"},
		{f: csr, want: []float32{0, 1, 2, 3, 4, 0}, key: "small"},
		{f: csr.with("format", nil).with("data", nil), want: []float32{0, 1, 1, 1, 1, 0}, key: "small"},
		{f: files{"x_indptr": csr["indptr"], "x_indices": csr["indices"], "x_shape": csr["shape"]}, want: []float32{0, 1, 1, 1, 1, 0}, key: "x"},
		{f: files{"w_indptr": csr["indptr"], "w_indices": csr["indices"], "w_shape": csr["shape"], "x": x}, name: "w", want: []float32{0, 1, 1, 1, 1, 0}, key: "w", others: "x"},
	} {
		text := pack(t, c.f, zip.Deflate)
		if c.name != "" {
			text += ":" + c.name
		}
		rows, f, err := featuresOf(t, text)
		require.NoError(t, err, c.key)
		require.Equal(t, c.want, rows, c.key)
		require.Equal(t, c.key, f.Key())
		require.EqualValues(t, 3, f.Len())
		if c.others == "" {
			require.Empty(t, f.Skipped)
		}
		require.Contains(t, f.Skipped, c.others)
	}
	npy := filepath.Join(folder(t, files{"emb": x}), "emb.npy")
	rows, f, err := featuresOf(t, npy)
	require.NoError(t, err)
	require.Equal(t, want, rows)
	require.Equal(t, "emb", f.Key())
	rows, _, err = featuresOf(t, "testdata/one.pt")
	require.NoError(t, err)
	require.Equal(t, madeX, rows)
	_, f, err = featuresOf(t, "testdata/hetero_processed.pt:user/x")
	require.NoError(t, err)
	require.EqualValues(t, 3, f.Len())

	path := pack(t, files{"b": x, "c": other, "y": i64(1, 2, 3)}, zip.Store)
	_, err = OpenFeatures(path, 0)
	require.EqualError(t, err, path+": which array has the features of nodes: b, (3, 2) of <f4; c, (3, 2) of <f8? {node_features} "+path+":b takes the first")
	var question *ingest.Question
	require.ErrorAs(t, err, &question)
	for text, want := range map[string]string{
		path + ":z": path + ": there is no z, which {node_features} names (found b, c, y)",
		pack(t, files{"names": texts("a"), "when": arr("<M8[s]", false, []int{1}, []int64{1})}, zip.Store):                 ": no array with a row of numbers for each node (found names, when)",
		pack(t, files{"names": texts("a")}, zip.Store):                                                                     ": names is (1,) of <U12, and a row of 1 to 4194304 numbers for each node is expected",
		pack(t, files{"x": arr("<f4", false, []int{1, 2, 1}, []float32{1, 2}), "emb": x}, zip.Store):                       ": x is (1, 2, 1) of <f4, and a row of 1 to",
		pack(t, files{"x": arr("<c8", false, []int{1}, []float32{1, 2})}, zip.Store):                                       "complex numbers; convert it in Python",
		pack(t, files{"format": arr("|S3", false, []int{}, []byte("coo")), "data": f32(1), "shape": i64(1, 1)}, zip.Store): `the matrix is "coo", and csr or csc is expected; save m.tocsr()`,
		pack(t, files{}, zip.Store): ": no array with a row of numbers for each node (it has no arrays)",
		"x.json":                    "x.json: a file of arrays ends in .npy, .npz, .pt or .pth",
		"none.npz":                  "none.npz: no such file",
	} {
		_, err := OpenFeatures(text, 0)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	folderOf := filepath.Join(t.TempDir(), "x.npz")
	require.NoError(t, os.Mkdir(folderOf, 0o777))
	_, err = OpenFeatures(folderOf, 0)
	require.EqualError(t, err, folderOf+": a folder; name the file of features in it")
}

// TestDamagedFeatures cuts a file short everywhere: each error is one line.
func TestDamagedFeatures(t *testing.T) {
	packedX := pack(t, files{"x": arr("<f4", false, []int{3, 2}, []float32{0, 1, 2, 3, 4, 5})}, zip.Deflate)
	for _, path := range []string{packedX, filepath.Join(folder(t, files{"x": f32(1, 2, 3)}), "x.npy"), "testdata/alone.pt"} {
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		cut := filepath.Join(t.TempDir(), "x"+filepath.Ext(path))
		for n := range len(whole) {
			require.NoError(t, os.WriteFile(cut, whole[:n], 0o600))
			_, _, err := featuresOf(t, cut)
			require.Error(t, err, n)
			require.NotContains(t, err.Error(), "\n")
			require.Contains(t, err.Error(), cut)
		}
	}
}

// TestRowsOf puts rows in another order, in one window and in several.
func TestRowsOf(t *testing.T) {
	const n, dim = 3000, 12000 // more than a window of 64 MiB
	values := make([]float32, n)
	order := make([]uint32, n)
	for i := range values {
		values[i], order[i] = float32(i), uint32(i*7%n)
	}
	order[5] = NoRow
	for _, c := range []struct{ dim int64 }{{1}, {dim}} {
		path := filepath.Join(folder(t, files{"x": f32(values...)}), "x.npy")
		f, err := OpenFeatures(path, 0)
		require.NoError(t, err)
		f.rows.Shape, f.rows.Strides = []int64{n, c.dim}, []int64{f.rows.Strides[0], 0} // a row repeats a number
		got := make([]float32, n)
		require.NoError(t, f.RowsOf(t.Context(), n, order, func(c2 ingest.RowChunk) error {
			for i := range int64(len(c2.Values)) / c.dim {
				got[c2.First+i] = c2.Values[i*c.dim]
				require.Equal(t, c2.Values[i*c.dim], c2.Values[(i+1)*c.dim-1])
			}
			return nil
		}))
		for i, to := range order {
			if to != NoRow {
				require.Equal(t, float32(i), got[to], i)
			}
		}
		require.NoError(t, f.Close())
	}
}
