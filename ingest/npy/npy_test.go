package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// array is an npy file of version 1 with the header as given and the values in little-endian order.
func array(header string, values any) []byte { return versioned(1, header, values) }

func versioned(major byte, header string, values any) []byte {
	var b bytes.Buffer
	b.WriteString("\x93NUMPY")
	b.Write([]byte{major, 0})
	if major == 1 {
		b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(header))))
	} else {
		b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(header))))
	}
	b.WriteString(header)
	if values != nil {
		if err := binary.Write(&b, binary.LittleEndian, values); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

func form(descr, shape string) string {
	return fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape)
}

func TestReadHeader(t *testing.T) {
	i4 := Type{Kind: Int, Size: 4}
	for _, c := range []struct {
		text string
		want Header
	}{
		{form("<i4", "(5,)"), Header{"<i4", i4, false, []int64{5}}},
		{form("<i4", "()") + "      \n", Header{"<i4", i4, false, []int64{}}},
		{form("<i4", "(2, 7)"), Header{"<i4", i4, false, []int64{2, 7}}},
		{form("<i4", "(2L, 7L)"), Header{"<i4", i4, false, []int64{2, 7}}},
		{form("<i4", "(2,7,)"), Header{"<i4", i4, false, []int64{2, 7}}},
		{form("<i4", "(0, 9)"), Header{"<i4", i4, false, []int64{0, 9}}},
		{`{"shape":(1,),"descr":"<i4","fortran_order":True}`, Header{"<i4", i4, true, []int64{1}}},
		{form("|b1", "(1,)"), Header{"|b1", Type{Kind: Bool, Size: 1}, false, []int64{1}}},
		{form("?", "(1,)"), Header{"?", Type{Kind: Bool, Size: 1}, false, []int64{1}}},
		{form("|u1", "(1,)"), Header{"|u1", Type{Kind: Uint, Size: 1}, false, []int64{1}}},
		{form(">i8", "(1,)"), Header{">i8", Type{Kind: Int, Size: 8, BigEndian: true}, false, []int64{1}}},
		{form("<f2", "(1,)"), Header{"<f2", Type{Kind: Float, Size: 2}, false, []int64{1}}},
		{form("<U19", "(1,)"), Header{"<U19", Type{Kind: Unicode, Size: 76}, false, []int64{1}}},
		{form("|S3", "(1,)"), Header{"|S3", Type{Kind: Bytes, Size: 3}, false, []int64{1}}},
	} {
		for major := byte(1); major <= 3; major++ {
			h, err := ReadHeader(iotest.OneByteReader(bytes.NewReader(versioned(major, c.text, nil))))
			require.NoError(t, err, c.text)
			require.Equal(t, c.want, h)
		}
	}
}

func TestReadHeaderRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "'{' expected at byte 0"},
		{"{}", `key "descr" is missing`},
		{"{'descr': '<i4', 'shape': (1,)}", `key "fortran_order" is missing`},
		{"{'descr': '<i4', 'descr': '<i4'}", "twice"},
		{"{'descr': '<i4', 'colour': 1}", `key "colour" is not one of`},
		{form("<i4", "(1,)") + "x", `"x" follows the dict`},
		{form("<i4", "(5)"), "a tuple of one"},
		{form("<i4", "(-5,)"), "a dimension"},
		{form("<i4", "(99999999999999999999,)"), "a dimension"},
		{form("<i4", "(2305843009213693952,)"), "larger than any file"},
		{form("<i8", "(4294967296, 4294967296)"), "larger than any file"},
		{form("<i8", "(0, 4294967296, 4294967296)"), "larger than any file"},
		{form("<i4", "("+strings.Repeat("1,", 65)+")"), "at most 64 dimensions"},
		{form("<i4", "(1,"), "a dimension"},
		{"{'descr': '<i\\x34', ", "a plain string"},
		{"{'descr': '<i4", "a plain string"},
		{"{'descr': '<i4', 'fortran_order': 0", "True or False"},
	} {
		_, err := ReadHeader(bytes.NewReader(array(c.text, nil)))
		require.ErrorContains(t, err, c.want, c.text)
		require.NotContains(t, err.Error(), "\n")
		require.NotErrorIs(t, err, ErrUnsupported)
	}
	for _, descr := range []string{"|O", "|V2", "<c8", "<f16", "<M8[ns]", "<i3", "<i", "i", "", "<U0", "<U999999999", "<f-4", "é"} {
		_, err := ReadHeader(bytes.NewReader(array(form(descr, "(1,)"), nil)))
		require.ErrorIs(t, err, ErrUnsupported, descr)
		require.ErrorContains(t, err, descr)
	}
	_, err := ReadHeader(bytes.NewReader(array(form("<\n\x01\xff4", "(1,)"), nil)))
	require.EqualError(t, err, "unsupported element type <???4")
	_, err = ReadHeader(bytes.NewReader(array("{'descr': [('a', '<i4', (2,)), ('b]', '<f4')], 'fortran_order': False, 'shape': (3,)}", nil)))
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "[('a', '<i4', (2,))")

	long := versioned(2, "", nil)
	binary.LittleEndian.PutUint32(long[8:], 1<<30)
	for _, c := range []struct{ file, want string }{
		{"", "truncated: npy header: 10 bytes expected, found 0"},
		{"\x93NUMPY\x01\x00", "truncated: npy header: 10 bytes expected, found 8"},
		{"PK\x03\x04abcdefgh", "not an npy array"},
		{"\x93NUMPY\x04\x00abcdef", "npy version 4.0 is not known"},
		{"\x93NUMPY\x01\x00\x76\x00{'descr'", "truncated: npy header: 118 bytes expected, found 8"},
		{string(long), "longer than the 65536"},
	} {
		_, err := ReadHeader(strings.NewReader(c.file))
		require.ErrorContains(t, err, c.want)
	}
}

// Every numeric type, both byte orders, to each destination.
func TestReadNumbers(t *testing.T) {
	for _, c := range []struct {
		descr string
		data  any
		want  []int64
	}{
		{"b1", []bool{true, false}, []int64{1, 0}},
		{"i1", []int8{-128, 127}, []int64{-128, 127}},
		{"i2", []int16{-300, 300}, []int64{-300, 300}},
		{"i4", []int32{-70000, math.MaxInt32}, []int64{-70000, math.MaxInt32}},
		{"i8", []int64{math.MinInt64, 1 << 53}, []int64{math.MinInt64, 1 << 53}},
		{"u1", []uint8{0, 255}, []int64{0, 255}},
		{"u2", []uint16{0, 65535}, []int64{0, 65535}},
		{"u4", []uint32{0, math.MaxUint32}, []int64{0, math.MaxUint32}},
		{"u8", []uint64{0, 1 << 62}, []int64{0, 1 << 62}},
		{"f2", []uint16{0x3c00, 0xc000}, []int64{1, -2}},
		{"f4", []float32{-3, 1 << 24}, []int64{-3, 1 << 24}},
		{"f8", []float64{-0x1p63, 1 << 53}, []int64{math.MinInt64, 1 << 53}},
	} {
		for _, order := range []string{"<", ">"} {
			var data bytes.Buffer
			require.NoError(t, binary.Write(&data, map[string]binary.ByteOrder{"<": binary.LittleEndian, ">": binary.BigEndian}[order], c.data))
			file := append(array(form(order+c.descr, "(2,)"), nil), data.Bytes()...)

			r, err := NewReader(iotest.HalfReader(bytes.NewReader(file)))
			require.NoError(t, err)
			ints := make([]int64, 5)
			n, err := r.ReadInt64s(ints)
			require.NoError(t, err)
			require.Equal(t, c.want, ints[:n], order+c.descr)
			_, err = r.ReadInt64s(ints)
			require.Equal(t, io.EOF, err)

			r, err = NewReader(bytes.NewReader(file))
			require.NoError(t, err)
			for i := range c.want { // one at a time
				var f [1]float32
				_, err := r.ReadFloat32s(f[:])
				require.NoError(t, err)
				require.Equal(t, float32(c.want[i]), f[0])
			}

			r, err = NewReader(bytes.NewReader(file))
			require.NoError(t, err)
			require.NoError(t, r.Skip(1))
			wide := make([]float64, 2)
			n, err = r.ReadFloat64s(wide)
			require.NoError(t, err)
			require.Equal(t, []float64{float64(c.want[1])}, wide[:n])
			require.NoError(t, r.Skip(1))
		}
	}
}

func TestReadInt64sRefuses(t *testing.T) {
	for _, c := range []struct {
		descr string
		data  any
		want  string
	}{
		{"<u8", []uint64{1, 1 << 63}, "element 1 is 9223372036854775808, which does not fit"},
		{"<f4", []float32{1, 2.5}, "element 1 is 2.5, not an integer"},
		{"<f8", []float64{0x1p63, 0}, "element 0 is 9.223372036854776e+18, not an integer"},
		{"<f8", []float64{0, math.NaN()}, "element 1 is NaN"},
		{"<f8", []float64{0, math.Inf(-1)}, "element 1 is -Inf"},
		{"|S2", []byte("abcd"), "unsupported element type |S2 where numbers are expected"},
	} {
		r, err := NewReader(bytes.NewReader(array(form(c.descr, "(2,)"), c.data)))
		require.NoError(t, err)
		_, err = r.ReadInt64s(make([]int64, 2))
		require.ErrorContains(t, err, c.want)
	}
	// The element's number counts from the start of the array, not of the buffer.
	data := make([]float32, 100_000)
	data[90_000] = 0.5
	r, err := NewReader(bytes.NewReader(array(form("<f4", "(100000,)"), data)))
	require.NoError(t, err)
	_, err = r.ReadInt64s(make([]int64, 70_000))
	require.NoError(t, err)
	_, err = r.ReadInt64s(make([]int64, 30_000))
	require.ErrorContains(t, err, "element 90000 is 0.5")
}

func TestReadStrings(t *testing.T) {
	text := func(file []byte) []string {
		r, err := NewReader(bytes.NewReader(file))
		require.NoError(t, err)
		dst := make([]string, 9)
		n, err := r.ReadStrings(dst)
		require.NoError(t, err)
		return dst[:n]
	}
	require.Equal(t, []string{"né", "", "abc"}, text(array(form("<U3", "(3,)"), []int32{'n', 'é', 0, 0, 0, 0, 'a', 'b', 'c'})))
	require.Equal(t, []string{"\uFFFD"}, text(array(form("<U1", "(1,)"), []uint32{0xffffffff})))
	require.Equal(t, []string{"csr", "\uFFFD"}, text(array(form("|S3", "(2,)"), []byte("csr\xff\x00\x00"))))
	swapped := array(form(">U1", "(1,)"), nil)
	require.Equal(t, []string{"é"}, text(append(swapped, 0, 0, 0, 0xe9)))

	r, err := NewReader(bytes.NewReader(array(form("<f4", "(1,)"), []float32{1})))
	require.NoError(t, err)
	_, err = r.ReadStrings(make([]string, 1))
	require.ErrorIs(t, err, ErrUnsupported)
}

func TestTruncatedData(t *testing.T) {
	file := array(form("<i8", "(20000,)"), make([]int64, 20000))
	r, err := NewReader(bytes.NewReader(file[:len(file)-3]))
	require.NoError(t, err)
	n, err := r.ReadInt64s(make([]int64, 20000))
	require.ErrorIs(t, err, ErrTruncated)
	require.EqualError(t, err, "truncated: 160000 bytes of data expected for (20000,) of <i8, found 159997")
	require.Less(t, n, 20000)

	// A header may claim anything: no memory is taken on its word.
	huge := array(form("<i8", "(1000000000000000000,)"), []int64{1, 2, 3})
	r, err = NewReader(bytes.NewReader(huge))
	require.NoError(t, err)
	require.LessOrEqual(t, len(r.raw), rawBytes)
	_, err = r.ReadInt64s(make([]int64, 100))
	require.ErrorContains(t, err, "8000000000000000000 bytes of data expected")

	broken := errors.New("disk on fire")
	r, err = NewReader(io.MultiReader(bytes.NewReader(file[:500]), iotest.ErrReader(broken)))
	require.NoError(t, err)
	_, err = r.ReadInt64s(make([]int64, 200))
	require.ErrorIs(t, err, broken)
	require.NotErrorIs(t, err, ErrTruncated)
}

func TestNewHeader(t *testing.T) {
	h, err := NewHeader(">i2", false, []int64{2, 2})
	require.NoError(t, err)
	require.Equal(t, "(2, 2) of >i2", h.String())
	got := make([]int64, 9)
	n, err := NewDataReader(h, bytes.NewReader([]byte{0, 1, 0, 2, 0xff, 0xff, 1, 0})).ReadInt64s(got)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, -1, 256}, got[:n])
	for want, shape := range map[string][]int64{
		"shape (-1,) of <f8: -1 is not a dimension":                     {-1},
		"a shape of 65 dimensions, and 64 are the most":                 make([]int64, 65),
		"shape (4611686018427387904, 3) of <f8 is larger than any file": {1 << 62, 3},
	} {
		_, err := NewHeader("<f8", false, shape)
		require.EqualError(t, err, want)
	}
	_, err = NewHeader("<c16", false, nil)
	require.ErrorIs(t, err, ErrUnsupported)
}
