package arrays

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

// arr is an npy file.
func arr(descr string, fortran bool, shape []int, data any) []byte {
	text := strings.ReplaceAll(fmt.Sprint(shape), " ", ", ")
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	if len(shape) == 1 {
		text += ","
	}
	order := map[bool]string{false: "False", true: "True"}[fortran]
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr, order, text)
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	var b bytes.Buffer
	b.WriteString("\x93NUMPY\x01\x00")
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(head))))
	b.WriteString(head)
	var byteOrder binary.ByteOrder = binary.LittleEndian
	if descr[0] == '>' {
		byteOrder = binary.BigEndian
	}
	if err := binary.Write(&b, byteOrder, data); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func i64(v ...int64) []byte   { return arr("<i8", false, []int{len(v)}, v) }
func f32(v ...float32) []byte { return arr("<f4", false, []int{len(v)}, v) }

// texts is an array of NumPy's U.
func texts(v ...string) []byte {
	const wide = 12
	cells := make([]rune, wide*len(v))
	for i, text := range v {
		copy(cells[wide*i:], []rune(text))
	}
	return arr("<U12", false, []int{len(v)}, cells)
}

// files are arrays by name.
type files map[string][]byte

func (f files) with(name string, b []byte) files {
	g := files{}
	for k, v := range f {
		g[k] = v
	}
	if g[name] = b; b == nil {
		delete(g, name)
	}
	return g
}

// small is a graph of five nodes: 0→1, 0→2, 2→0, 3→3; node 4 is in no edge.
func small() files {
	return files{
		"edge_index": arr("<i8", false, []int{2, 4}, []int64{0, 0, 2, 3, 1, 2, 0, 3}),
		"x":          arr("<f4", false, []int{5, 2}, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}),
		"y":          i64(1, 0, 1, 0, -1),
		"train_mask": arr("|b1", false, []int{5}, []bool{true, true, false, false, false}),
		"val_mask":   arr("|b1", false, []int{5}, []bool{false, false, true, false, false}),
		"test_mask":  arr("|b1", false, []int{5}, []bool{false, false, false, true, true}),
	}
}

func pack(t testing.TB, f files, method uint16) string {
	path := filepath.Join(t.TempDir(), "small.npz")
	out, err := os.Create(path)
	require.NoError(t, err)
	w := zip.NewWriter(out)
	for _, name := range sorted(f) {
		m, err := w.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: method})
		require.NoError(t, err)
		_, err = m.Write(f[name])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, out.Close())
	return path
}

func folder(t testing.TB, f files) string {
	dir := filepath.Join(t.TempDir(), "small")
	require.NoError(t, os.Mkdir(dir, 0o777))
	for name, b := range f {
		if filepath.Ext(name) == "" {
			name += ".npy"
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o666))
	}
	return dir
}

func sorted(f files) []string {
	var names []string
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// read opens a source and reads it.
func read(t testing.TB, path string, o Options) (sourcetest.Graph, error) {
	src, err := Open(path, o)
	if err != nil {
		return sourcetest.Graph{}, err
	}
	defer func() { require.NoError(t, src.Close()) }()
	g, err := sourcetest.Read(src)
	if err == nil {
		require.NotEmpty(t, g.Schema.Identity)
	}
	return g, err
}

func mustRead(t testing.TB, path string, o Options) sourcetest.Graph {
	t.Helper()
	g, err := read(t, path, o)
	require.NoError(t, err)
	return g
}
