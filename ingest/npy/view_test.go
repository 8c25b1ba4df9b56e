package npy

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// inOrder walks the view one element after the other.
func inOrder(v *View, data []int64) []int64 {
	out, index := make([]int64, 0, v.Len()), make([]int64, len(v.Shape))
	for range v.Len() {
		at := v.offset
		for i, k := range index {
			at += k * v.Strides[i]
		}
		out = append(out, data[at])
		for i := len(index) - 1; i >= 0; i-- {
			if index[i]++; index[i] < v.Shape[i] {
				break
			}
			index[i] = 0
		}
	}
	return out
}

func counting(n int64) (data []int64, raw []byte) {
	for i := range n {
		data = append(data, i)
		raw = binary.LittleEndian.AppendUint64(raw, uint64(i))
	}
	return data, raw
}

func readInts(t require.TestingT, r *Reader, n int64) []int64 {
	got := make([]int64, n+1)
	k := 0
	for int64(k) <= n {
		part, err := r.ReadInt64s(got[k:min(k+1000, len(got))])
		k += part
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
	}
	return got[:k]
}

// TestViewProperty: any shape and strides, against a walk over single elements.
func TestViewProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.IntRange(0, 4).Draw(t, "dims")
		h := Header{Descr: "<i8", Type: Type{Kind: Int, Size: 8}}
		strides, last := []int64{}, rapid.Int64Range(0, 5).Draw(t, "offset")
		offset := last
		for range dims {
			h.Shape = append(h.Shape, rapid.Int64Range(0, 9).Draw(t, "n"))
			strides = append(strides, rapid.Int64Range(0, 40).Draw(t, "stride"))
			last += max(h.Shape[len(h.Shape)-1]-1, 0) * strides[len(strides)-1]
		}
		data, raw := counting(last + 1)
		v, err := NewView(h, strides, offset, FileStorage(bytes.NewReader(raw)), int64(len(raw)))
		require.NoError(t, err)
		require.Equal(t, inOrder(v, data), readInts(t, v.Reader(), v.Len()))
		if axes := v.axes(); len(axes) > 0 && v.Len() > 0 {
			small := sizes{rapid.Int64Range(1, 300).Draw(t, "tile"), rapid.Int64Range(1, 300).Draw(t, "window"), rapid.Int64Range(0, 300).Draw(t, "gap")}
			require.Equal(t, inOrder(v, data), readInts(t, NewDataReader(v.Header, newGather(v, axes, small)), v.Len()))
		}
		if dims > 0 && v.Len() > 0 {
			part := v.Select(dims-1, v.Shape[dims-1]-1)
			require.Equal(t, inOrder(part, data), readInts(t, part.Reader(), part.Len()))
			turned := v.Transposed()
			require.Equal(t, inOrder(turned, data), readInts(t, turned.Reader(), turned.Len()))
			_, err = NewView(h, strides, offset, FileStorage(bytes.NewReader(raw)), int64(len(raw))-8)
			require.ErrorIs(t, err, ErrTruncated)
		}
	})
}

// TestViewTiles: more than a tile, both ways round, and rows too far apart to read what lies
// between.
func TestViewTiles(t *testing.T) {
	const n = 3 << 10
	data, raw := counting(n)
	at := FileStorage(bytes.NewReader(raw))
	for _, s := range []sizes{{8 << 10, 1 << 10, 64}, {1 << 10, 64, 0}, {8, 8, 0}, {100, 1 << 10, 1 << 10}} {
		for _, c := range []struct{ shape, strides []int64 }{
			{[]int64{n / 2, 2}, []int64{1, n / 2}},
			{[]int64{2, n / 2}, []int64{1, 2}},
			{[]int64{3, n / 3}, []int64{1, 3}},
			{[]int64{n / 128, 128}, []int64{1, n / 128}},
			{[]int64{n / 64, 3}, []int64{64, 1}},
			{[]int64{2, n / 8, 2}, []int64{2, 4, 1}},
			{[]int64{4, 8, n / 32}, []int64{8, 1, 32}},
		} {
			v, err := NewView(Header{Descr: "<i8", Type: Type{Kind: Int, Size: 8}, Shape: c.shape}, c.strides, 0, at, int64(len(raw)))
			require.NoError(t, err)
			got := readInts(t, NewDataReader(v.Header, newGather(v, v.axes(), s)), v.Len())
			require.True(t, slices.Equal(inOrder(v, data), got), "%v %v %v", s, c.shape, c.strides)
		}
	}
	h := Header{Descr: "<i8", Type: Type{Kind: Int, Size: 8}, Shape: []int64{1 << 23, 2}}
	_, err := NewView(h, []int64{0, 1}, 0, at, int64(len(raw)))
	require.EqualError(t, err, "(8388608, 2) of <i8 repeats the 3072 elements that are stored; save its contiguous()")
}

func TestNewViewRefuses(t *testing.T) {
	at := FileStorage(bytes.NewReader(make([]byte, 80)))
	i8 := Header{Descr: "<i8", Type: Type{Kind: Int, Size: 8}}
	for want, c := range map[string]struct {
		shape, strides []int64
		offset         int64
	}{
		"(2, 3) of <i8 has 1 strides":                                            {[]int64{2, 3}, []int64{3}, 0},
		"(2,) of <i8 has a stride of -1 in dimension 0":                          {[]int64{2}, []int64{-1}, 5},
		"(3,) of <i8 with strides [4611686018427387904] is larger than any file": {[]int64{3}, []int64{1 << 62}, 0},
		"truncated: (3,) of <i8 reaches to element 10 of a storage that has 10":  {[]int64{3}, []int64{1}, 8},
		"(3,) of <i8 begins at element -3 of its storage":                        {[]int64{3}, []int64{1}, -3},
		"shape (4611686018427387904,) of <i8 is larger than any file":            {[]int64{1 << 62}, []int64{0}, 0},
	} {
		i8.Shape = c.shape
		_, err := NewView(i8, c.strides, c.offset, at, 80)
		require.ErrorContains(t, err, want)
	}
}

func TestBFloat(t *testing.T) {
	h := Header{Descr: "bfloat16", Type: Type{Kind: BFloat, Size: 2}, Shape: []int64{3}}
	raw := []byte{0x80, 0x3f, 0x20, 0xc0, 0, 0x7f} // 1, -2.5, 2¹²⁷
	got := make([]float32, 3)
	_, err := NewDataReader(h, bytes.NewReader(raw)).ReadFloat32s(got)
	require.NoError(t, err)
	require.Equal(t, []float32{1, -2.5, 0x1p127}, got)
	_, err = NewDataReader(h, bytes.NewReader(raw)).ReadInt64s(make([]int64, 3))
	require.EqualError(t, err, "element 1 is -2.5, not an integer of 64 bits")
	h = Header{Descr: "complex64", Type: Type{Kind: Opaque, Size: 8}, Shape: []int64{1}}
	for _, read := range []func(*Reader) error{
		func(r *Reader) error { _, err := r.ReadInt64s(make([]int64, 1)); return err },
		func(r *Reader) error { _, err := r.ReadFloat32s(make([]float32, 1)); return err },
	} {
		require.EqualError(t, read(NewDataReader(h, bytes.NewReader(raw))), "unsupported element type complex64 where numbers are expected")
	}
}

func BenchmarkView(b *testing.B) {
	const n, f = 1 << 18, 128
	raw := make([]byte, n*f*4)
	h := Header{Descr: "<f4", Type: Type{Kind: Float, Size: 4}, Shape: []int64{n, f}}
	for name, strides := range map[string][]int64{"order=row": {f, 1}, "order=column": {1, n}} {
		b.Run(name, func(b *testing.B) {
			v, err := NewView(h, strides, 0, FileStorage(bytes.NewReader(raw)), int64(len(raw)))
			require.NoError(b, err)
			b.SetBytes(int64(len(raw)))
			dst := make([]float32, 1<<18)
			for b.Loop() {
				for r := v.Reader(); ; {
					if _, err := r.ReadFloat32s(dst); err == io.EOF {
						break
					}
				}
			}
		})
	}
	b.Run("edges=pairs-as-rows", func(b *testing.B) {
		e := Header{Descr: "<i8", Type: Type{Kind: Int, Size: 8}, Shape: []int64{2, int64(len(raw)) / 16}}
		v, err := NewView(e, []int64{1, 2}, 0, FileStorage(bytes.NewReader(raw)), int64(len(raw)))
		require.NoError(b, err)
		b.SetBytes(int64(len(raw)))
		dst := make([]int64, 1<<16)
		for b.Loop() {
			for r := v.Reader(); ; {
				if _, err := r.ReadInt64s(dst); err == io.EOF {
					break
				}
			}
		}
	})
}

// TestViewRows: a part of the rows, of a matrix that is transposed too.
func TestViewRows(t *testing.T) {
	raw := make([]byte, 6*8)
	for i := range 6 {
		raw[8*i] = byte(i)
	}
	h := Header{Descr: "<i8", Type: Type{Kind: Int, Size: 8}, Shape: []int64{3, 2}}
	v, err := NewView(h, nil, 0, FileStorage(bytes.NewReader(raw)), int64(len(raw)))
	require.NoError(t, err)
	require.Equal(t, []int64{2, 3, 4, 5}, readInts(t, v.Rows(1, 3).Reader(), 4))
	require.Equal(t, []int64{1, 3, 5}, readInts(t, v.Transposed().Rows(1, 2).Reader(), 3))
	require.Zero(t, v.Rows(2, 2).Len())
	require.Panics(t, func() { v.Rows(2, 4) })
}
