package npz

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// entry is one array of a hand-made archive.
type entry struct {
	key string
	npy []byte
}

// arr makes an npy file of version 1.
func arr(descr string, fortran bool, shape []int, data any) []byte {
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = fmt.Sprintf("%d,", d)
	}
	order := "False"
	if fortran {
		order = "True"
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr, order, strings.Join(dims, " "))
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	var b bytes.Buffer
	b.WriteString("\x93NUMPY\x01\x00")
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(head))))
	b.WriteString(head)
	if err := binary.Write(&b, binary.LittleEndian, data); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func i32(v ...int32) []byte   { return arr("<i4", false, []int{len(v)}, v) }
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

// small is a graph of four nodes: 0→1, 0→2, 2→0, 3→3; node 1 has no edge out, node 2 no features.
func small() []entry {
	return []entry{
		{"adj_data", f32(1, 1, 1, 1)},
		{"adj_indices", i32(1, 2, 0, 3)},
		{"adj_indptr", i32(0, 2, 2, 3, 4)},
		{"adj_shape", i64(4, 4)},
		{"attr_data", f32(0.5, 2, 3, 1)},
		{"attr_indices", i32(0, 2, 1, 2)},
		{"attr_indptr", i32(0, 2, 3, 3, 4)},
		{"attr_shape", i64(4, 3)},
		{"labels", i64(1, 0, -1, 1)},
		{"class_names", arr("<U2", false, []int{2}, []int32{'n', 'o', 'j', 'a'})},
	}
}

// with returns the entries with some replaced or added; a nil array takes the key away.
func with(entries []entry, changes ...entry) []entry {
	var out []entry
	done := make(map[string]bool)
	for _, e := range entries {
		for _, c := range changes {
			if c.key == e.key {
				e, done[c.key] = c, true
			}
		}
		if e.npy != nil {
			out = append(out, e)
		}
	}
	for _, c := range changes {
		if !done[c.key] && c.npy != nil {
			out = append(out, c)
		}
	}
	return out
}

// pack writes an archive with data descriptors, as a writer to a pipe does.
func pack(t testing.TB, method uint16, entries []entry) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		f, err := w.CreateHeader(&zip.FileHeader{Name: e.key + ".npy", Method: method})
		require.NoError(t, err)
		_, err = f.Write(e.npy)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// packZip64 writes what NumPy writes: zip64 sizes in the local header, and here in the directory
// and at the end too, as for members past 4 GiB. The local sizes are left at zero to see that
// nobody trusts them.
func packZip64(method uint16, entries []entry) []byte {
	le := binary.LittleEndian
	var out, dir []byte
	for _, e := range entries {
		name, body := e.key+".npy", e.npy
		if method == zip.Deflate {
			var b bytes.Buffer
			w, _ := flate.NewWriter(&b, 6)
			w.Write(e.npy)
			w.Close()
			body = b.Bytes()
		}
		offset := uint64(len(out))
		out = le.AppendUint32(out, 0x04034b50)
		for _, v := range []uint16{45, 0, method, 0, 0} {
			out = le.AppendUint16(out, v)
		}
		out = le.AppendUint32(out, crc32.ChecksumIEEE(e.npy))
		out = le.AppendUint32(out, 0xffffffff)
		out = le.AppendUint32(out, 0xffffffff)
		out = le.AppendUint16(out, uint16(len(name)))
		out = le.AppendUint16(out, 20)
		out = append(out, name...)
		out = append(out, 1, 0, 16, 0)
		out = append(out, make([]byte, 16)...)
		out = append(out, body...)

		dir = le.AppendUint32(dir, 0x02014b50)
		for _, v := range []uint16{45, 45, 0, method, 0, 0} {
			dir = le.AppendUint16(dir, v)
		}
		dir = le.AppendUint32(dir, crc32.ChecksumIEEE(e.npy))
		dir = le.AppendUint32(dir, 0xffffffff)
		dir = le.AppendUint32(dir, 0xffffffff)
		for _, v := range []uint16{uint16(len(name)), 28, 0, 0, 0} {
			dir = le.AppendUint16(dir, v)
		}
		dir = le.AppendUint32(dir, 0)
		dir = le.AppendUint32(dir, 0xffffffff)
		dir = append(dir, name...)
		dir = append(dir, 1, 0, 24, 0)
		for _, v := range []uint64{uint64(len(e.npy)), uint64(len(body)), offset} {
			dir = le.AppendUint64(dir, v)
		}
	}
	start, n := uint64(len(out)), uint64(len(entries))
	out = append(out, dir...)
	end := uint64(len(out))
	out = le.AppendUint32(out, 0x06064b50)
	out = le.AppendUint64(out, 44)
	out = append(out, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, v := range []uint64{n, n, uint64(len(dir)), start} {
		out = le.AppendUint64(out, v)
	}
	out = le.AppendUint32(out, 0x07064b50)
	out = append(out, 0, 0, 0, 0)
	out = le.AppendUint64(out, end)
	out = append(out, 1, 0, 0, 0)
	out = le.AppendUint32(out, 0x06054b50)
	out = append(out, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff)
	out = le.AppendUint32(out, 0xffffffff)
	out = le.AppendUint32(out, 0xffffffff)
	return append(out, 0, 0)
}

func openBytes(file []byte) (*Source, error) {
	return OpenReader("small.npz", bytes.NewReader(file), int64(len(file)))
}
