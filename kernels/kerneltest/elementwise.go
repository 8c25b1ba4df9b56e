package kerneltest

import (
	"encoding/binary"
	"math"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

func testMemory(r *rig) {
	require.NotEmpty(r.t, r.b.Name())
	for _, dtype := range []kernels.DType{kernels.F32, kernels.F16, kernels.U32} {
		for _, n := range []int{0, 1, 1000} {
			buf := r.b.Alloc(dtype, n)
			require.Equal(r.t, n, buf.Len(), dtype)
			r.b.Free(buf)
		}
	}
	zeroed := kernels.Tensor{Buf: r.alloc(kernels.F32, 1000), Rows: 1000, Cols: 1}
	got := r.normals(1000)
	r.b.DownloadF32(got, zeroed)
	require.Equal(r.t, make([]float32, 1000), got)

	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		floats, uints := r.floats(s[0], s[1], r.spread(s[0]*s[1])), r.ids(s[0])
		r.unchanged(floats, uints)
		window := make([]float32, floats.tensor.Len())
		r.b.DownloadF32(window, floats.tensor)
		r.sameBits("download of a window", floats.floats[floats.off:floats.off+len(window)], window)
		for i := range window {
			window[i] = float32(i)
		}
		r.b.UploadF32(floats.tensor, window)
		r.ref.UploadF32(floats.oracle, window)
		r.close(0, floats)
	}
}

// testStage fills an F32 tensor through what a Stager lends. What is not sent does not come.
func (r *rig) testStage(floats operand) {
	stager, ok := r.b.(kernels.Stager)
	if !ok {
		return
	}
	for round, ok := range []bool{true, false, true} {
		b, send := stager.Stage(floats.tensor)
		require.Len(r.t, b, 4*15)
		for i := range 15 {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(100*round+i)))
		}
		send(ok)
		got := make([]float32, 15)
		r.b.DownloadF32(got, floats.tensor)
		require.Equal(r.t, []float32{14, 14, 214}[round], got[14])
	}
	_, send := stager.Stage(floats.tensor.Slice(1, 1))
	send(true)
}

// testHost writes through the lent bytes, as a gather does, and reads back through the backend.
func testHost(r *rig) {
	floats, halves, uints := r.normal(3, 5), r.halves(3, 5, r.normals(15)), r.ids(15)
	if b, ok := r.b.Host(floats.tensor); ok {
		require.Len(r.t, b, 4*15)
		binary.LittleEndian.PutUint32(b[4*7:], math.Float32bits(42))
		got := make([]float32, 15)
		r.b.DownloadF32(got, floats.tensor)
		require.Equal(r.t, float32(42), got[7])
	}
	if b, ok := r.b.Host(halves.tensor); ok {
		require.Len(r.t, b, 2*15)
		binary.LittleEndian.PutUint16(b[2*14:], 0x4000)
		got := r.normal(3, 5)
		r.b.Convert(got.tensor, halves.tensor)
		require.Equal(r.t, float32(2), r.download(got)[got.off+14])
	}
	r.testStage(floats)
	if b, ok := r.b.Host(uints.tensor); ok {
		require.Len(r.t, b, 4*15)
		binary.LittleEndian.PutUint32(b, 99)
		got := make([]uint32, 15)
		r.b.DownloadU32(got, uints.tensor)
		require.Equal(r.t, uint32(99), got[0])
	}
	if b, ok := r.b.Host(floats.tensor.Slice(1, 1)); ok {
		require.Empty(r.t, b)
	}
}

func testConvert(r *rig) {
	every := make([]uint16, 1<<16)
	for i := range every {
		every[i] = uint16(i)
	}
	for _, s := range append(shapes, [2]int{256, 256}) {
		r.at("%d×%d", s[0], s[1])
		n := s[0] * s[1]
		floats := r.floats(s[0], s[1], r.spread(n))
		src, dst := floats, r.normal(s[0], s[1])
		if n <= len(every) {
			src = r.halfBits(s[0], s[1], every[len(every)-n:])
		}
		r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.Convert(on(dst), on(src)) })
		r.close(0, dst)
		r.unchanged(src)
		r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.Convert(on(dst), on(floats)) })
		r.close(0, dst)
		r.unchanged(floats)
	}
}

func testFill(r *rig) {
	for _, s := range shapes {
		for _, v := range []float32{0, 1.5, float32(math.NaN()), float32(math.Inf(-1))} {
			r.at("%d×%d with %v", s[0], s[1], v)
			dst := r.normal(s[0], s[1])
			r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.Fill(on(dst), v) })
			r.close(0, dst)
		}
	}
}

func testAdd(r *rig) {
	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		dst, src := r.floats(s[0], s[1], r.spread(s[0]*s[1])), r.floats(s[0], s[1], r.spread(s[0]*s[1]))
		r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.Add(on(dst), on(src)) })
		r.close(1e-7, dst)
		r.unchanged(src)
	}
}

func testAddRow(r *rig) {
	for _, s := range shapes {
		r.at("%d×%d", s[0], s[1])
		dst, row := r.floats(s[0], s[1], r.spread(s[0]*s[1])), r.floats(1, s[1], r.spread(s[1]))
		r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.AddRow(on(dst), on(row)) })
		r.close(1e-7, dst)
		r.unchanged(row)
	}
}

func testColumnSumGrad(r *rig) {
	for _, s := range append(shapes, [2]int{20011, 3}) {
		r.at("%d×%d", s[0], s[1])
		drow, src := r.normal(1, s[1]), r.normal(s[0], s[1])
		r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.ColumnSumGrad(on(drow), on(src)) })
		r.close(1e-6+1e-7*float64(s[0]), drow)
		r.unchanged(src)
	}
	r.at("NaN in one column")
	values := r.normals(50 * 7)
	values[30*7+2], values[9*7+5] = float32(math.NaN()), float32(math.Inf(1))
	drow, src := r.normal(1, 7), r.floats(50, 7, values)
	r.both(func(b kernels.Backend, on func(operand) kernels.Tensor) { b.ColumnSumGrad(on(drow), on(src)) })
	r.close(1e-5, drow)
}
