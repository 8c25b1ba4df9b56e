package driver

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// scalePTX declares a kernel that testdata/fake.c has: x[i] *= s for i < n.
const scalePTX = `
.version 7.8
.target sm_80
.address_size 64

	// .globl	scale                   // -- Begin function scale
.visible .entry scale(
	.param .u64 scale_param_0,
	.param .f32 scale_param_1,
	.param .u32 scale_param_2
)
.maxntid 32, 1, 1
{
	ret;
}
`

func mustList(t testing.TB, kernel, ptx string) *ParamList {
	t.Helper()
	lists, err := ParamLists(ptx)
	require.NoError(t, err)
	require.Contains(t, lists, kernel)
	return lists[kernel]
}

const mixedPTX = `
.entry mixed(.param .u8 a, .param .u32 b, .param .u64 c, .param .s16 d, .param .f64 e, .param .align 4 .b8 f[12],
	.param .b32 g, .param .b16 h, .param .f32 i, .param .u8 j) { ret; }
.entry none() { ret; }
.entry half(.param .f16 x) { ret; }
`

// TestPack lays arguments of every kind at the offsets of C.
func TestPack(t *testing.T) {
	p, err := NewParams()
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	list := mustList(t, "mixed", mixedPTX)
	want := make([]byte, 57)
	le := binary.LittleEndian
	want[0] = 0xfa
	le.PutUint32(want[4:], 0xfbfcfdfe)
	le.PutUint64(want[8:], 0xf1f2f3f4f5f6f7f8)
	le.PutUint16(want[16:], 0x8001)
	le.PutUint64(want[24:], math.Float64bits(-2.5))
	copy(want[32:], "abcdefghijkl")
	le.PutUint32(want[44:], math.Float32bits(1.25))
	le.PutUint16(want[48:], 0x3c00)
	le.PutUint32(want[52:], math.Float32bits(-8))
	want[56] = 7
	for range 2 { // the second launch overwrites the first
		p.Start(list).U8(0xfa).U32(0xfbfcfdfe).Ptr(0xf1f2f3f4f5f6f7f8).U16(0x8001).F64(-2.5).Block([]byte("abcdefghijkl")).
			F32(1.25).U16(0x3c00).F32(-8).U8(7)
		require.Equal(t, want, p.Bytes())
	}
	p.Start(list).U8(0).I32(-2).U64(3)
	require.EqualValues(t, 0xfffffffe, le.Uint32(p.memory[4:]))
	require.EqualValues(t, 3, le.Uint64(p.memory[8:]))
	require.Empty(t, p.Start(mustList(t, "none", mixedPTX)).Bytes())
	require.Equal(t, []byte{0, 0x3c}, p.Start(mustList(t, "half", mixedPTX)).U16(0x3c00).Bytes())
}

// TestMismatch: an argument of another size, kind or number panics, and names kernel and parameter.
func TestMismatch(t *testing.T) {
	p, err := NewParams()
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	require.PanicsWithValue(t, "driver: an argument before Start", func() { p.U32(1) })
	require.PanicsWithValue(t, "driver: a launch before Start", func() { p.Bytes() })
	scale, mixed := mustList(t, "scale", scalePTX), mustList(t, "mixed", mixedPTX)
	for want, do := range map[string]func(){
		"driver: kernel scale: parameter 0, scale_param_0, is .u64 of 8 bytes, and the argument a uint32":  func() { p.Start(scale).U32(1) },
		"driver: kernel scale: parameter 0, scale_param_0, is .u64 of 8 bytes, and the argument a float64": func() { p.Start(scale).F64(1) },
		"driver: kernel scale: parameter 1, scale_param_1, is .f32 of 4 bytes, and the argument a uint32":  func() { p.Start(scale).Ptr(1).U32(2) },
		"driver: kernel scale: parameter 1, scale_param_1, is .f32 of 4 bytes, and the argument a float64": func() { p.Start(scale).Ptr(1).F64(2) },
		"driver: kernel scale: parameter 2, scale_param_2, is .u32 of 4 bytes, and the argument a float32": func() { p.Start(scale).Ptr(1).F32(2).F32(3) },
		"driver: kernel scale: parameter 2, scale_param_2, is .u32 of 4 bytes, and the argument a uint8":   func() { p.Start(scale).Ptr(1).F32(2).U8(3) },
		"driver: kernel scale: parameter 2, scale_param_2, is .u32 of 4 bytes, and the argument a block of 4 bytes": func() {
			p.Start(scale).Ptr(1).F32(2).Block(make([]byte, 4))
		},
		"driver: kernel scale has 3 parameters, and gets 2 arguments: scale_param_2 is missing": func() { p.Start(scale).Ptr(1).F32(2).Bytes() },
		"driver: kernel scale has 3 parameters, and gets another argument, a uint32":            func() { p.Start(scale).Ptr(1).F32(2).U32(3).U32(4) },
		"driver: kernel scale has 3 parameters, and gets another argument, a block of 1 bytes": func() {
			p.Start(scale).Ptr(1).F32(2).U32(3).Block(make([]byte, 1))
		},
		"driver: kernel mixed: parameter 5, f, is .b8[12] of 12 bytes, and the argument a block of 8 bytes": func() {
			p.Start(mixed).U8(0).U32(0).U64(0).U16(0).F64(0).Block(make([]byte, 8))
		},
		"driver: kernel mixed: parameter 5, f, is .b8[12] of 12 bytes, and the argument a uint64": func() {
			p.Start(mixed).U8(0).U32(0).U64(0).U16(0).F64(0).U64(1)
		},
	} {
		require.PanicsWithValue(t, want, do)
	}
}

// TestRemedies: what users meet, with what to do.
func TestRemedies(t *testing.T) {
	for _, c := range []struct {
		err  Error
		want string
	}{
		{Error{Call: "cuInit", Code: 100, Name: "CUDA_ERROR_NO_DEVICE", Text: "no device"},
			"cuInit: CUDA error 100 CUDA_ERROR_NO_DEVICE (no device): no GPU is visible: see nvidia-smi, CUDA_VISIBLE_DEVICES, " +
				"and whether the container was given one"},
		{Error{Call: "cuMemAlloc", Code: 2}, "cuMemAlloc: CUDA error 2: give the run less device memory, or end other processes on " +
			"the GPU (nvidia-smi lists them)"},
		{Error{Call: "cuMemHostRegister", Code: 2}, "cuMemHostRegister: CUDA error 2: the system did not lock that much memory: raise " +
			"the limit of locked memory (ulimit -l; in a container --ulimit memlock=-1), or give the run less memory"},
		{Error{Call: "cuDevicePrimaryCtxRetain", Code: 46}, "cuDevicePrimaryCtxRetain: CUDA error 46: another process has the GPU for " +
			"itself, or the GPU is lost: see nvidia-smi (compute mode, processes)"},
		{Error{Call: "cuStreamSynchronize", Code: 700}, "cuStreamSynchronize: CUDA error 700: a kernel reached outside its memory; " +
			"the GPU's context is lost: start the process again, which goes on from its last checkpoint"},
		{Error{Call: "cuMemFree", Code: 1, Name: "N", Text: "t"}, "cuMemFree: CUDA error 1 N (t)"},
		{Error{Call: "cuModuleLoadDataEx", Code: 218, Log: "line 3: no\n"},
			"cuModuleLoadDataEx: CUDA error 218: the driver's compiler refused the kernels: update the NVIDIA driver\nline 3: no"},
	} {
		require.EqualError(t, &c.err, c.want)
		require.ErrorIs(t, &c.err, c.err.Code)
		require.NotErrorIs(t, &c.err, Code(12345))
	}
	require.False(t, (&Error{Code: 2}).Sticky())
	require.True(t, (&Error{Code: 719}).Sticky())
	e := &OpenError{Library: "l", Err: errors.ErrUnsupported}
	require.ErrorIs(t, e, errors.ErrUnsupported)
	require.EqualError(t, e, "no NVIDIA driver: unsupported operation: install it, or, in a container, have it passed on (nvidia-smi shows it)")
}

func BenchmarkPack(b *testing.B) {
	p, err := NewParams()
	require.NoError(b, err)
	defer p.Close()
	list := mustList(b, "scale", scalePTX)
	b.ReportAllocs()
	for b.Loop() {
		p.Start(list).Ptr(1).F32(2).U32(3)
	}
}
