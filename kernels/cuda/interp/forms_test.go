package interp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// result runs instructions in a warp and returns what lane 5 leaves in %rd0, whose 8 bytes it
// stores.
func result(t *testing.T, body string) uint64 {
	m, err := Parse(snippet(body + `
		mov.u32 %r19, %tid.x; setp.ne.s32 %p8, %r19, 5; @%p8 bra END;
		ld.param.u64 %rd19, [p]; st.global.u64 [%rd19], %rd0; END: ret;`))
	require.NoError(t, err, body)
	d := newDevice(t)
	d.mem.Races = false
	at := room[uint64](d, 1)
	require.NoError(t, d.launch(m.Kernel("k"), 0, 1, 32, at), body)
	return get[uint64](d, at, 1)[0]
}

// Forms that the kernels of testdata have not, or not with all their corners. A case writes %rd0,
// or, by the first letter of its name, %r0 (r), %f0 (f), %fd0 (d), %rs0 (h) or %p0 (p).
func TestForms(t *testing.T) {
	f := func(v float32) uint64 { return uint64(math.Float32bits(v)) }
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		to   byte
		body string
		want uint64
	}{
		{'r', "bfi.b32 %r0, 0xfff, 0, 8, 4;", 0xf00},
		{'r', "bfi.b32 %r0, 0xabc, -1, 28, 12;", 0xcfffffff},
		{'r', "bfi.b32 %r0, 5, 7, 0, 0;", 7},
		{'x', "bfi.b64 %rd0, 0xff, -1, 60, 64;", 0xf<<60&0xf000000000000000 | 0xfffffffffffffff},
		{'r', "bfe.u32 %r0, 0xabcdef12, 8, 12;", 0xdef},
		{'r', "bfe.u32 %r0, -1, 40, 3;", 0},
		{'r', "bfe.s32 %r0, 0xabcdef12, 8, 12;", 0xfffffdef},
		{'r', "bfe.s32 %r0, 0x80000000, 28, 12;", 0xfffffff8},
		{'r', "bfe.s32 %r0, 0x80000000, 50, 4;", 0xffffffff},
		{'r', "bfe.s32 %r0, -1, 3, 0;", 0},
		{'x', "bfe.s64 %rd0, 0x7000000000000000, 60, 3;", math.MaxUint64},
		{'r', "shf.l.wrap.b32 %r0, 0x80000001, 0x12345678, 36;", 0x23456788},
		{'r', "shf.l.clamp.b32 %r0, 0x80000001, 0x12345678, 36;", 0x80000001},
		{'r', "shf.r.wrap.b32 %r0, 0x80000001, 0x12345678, 4;", 0x88000000},
		{'r', "shf.r.clamp.b32 %r0, 0x80000001, 0x12345678, 99;", 0x12345678},
		{'r', "prmt.b32 %r0, 0x33221100, 0x77665544, 0x7531;", 0x77553311},
		{'r', "prmt.b32 %r0, 0x00008000, 0, 0x9980;", 0xffff0000},
		{'r', "shl.b32 %r0, 1, 32;", 0},
		{'r', "shr.s32 %r0, -8, 77;", 0xffffffff},
		{'r', "shr.u32 %r0, -8, 32;", 0},
		{'h', "shr.s16 %rs0, -8, 1;", 0xfffc},
		{'h', "shl.b16 %rs0, 0x4321, 4;", 0x3210},
		{'r', "clz.b32 %r0, 0;", 32},
		{'r', "clz.b64 %r0, 1;", 63},
		{'r', "popc.b32 %r0, -1;", 32},
		{'r', "brev.b32 %r0, 1;", 1 << 31},
		{'r', "bfind.u32 %r0, 0x00012345;", 16},
		{'r', "bfind.u64 %r0, 0;", 0xffffffff},
		{'r', "mul.hi.s32 %r0, -5, 7;", 0xffffffff},
		{'r', "mul.hi.u32 %r0, -1, -1;", 0xfffffffe},
		{'h', "mul.hi.s16 %rs0, -300, 300;", 0xfffe},
		{'r', "mul.wide.s16 %r0, -3, 7;", 0xffffffeb},
		{'r', "mul.wide.u16 %r0, -1, -1;", 0xfffe0001},
		{'x', "mul.wide.s32 %rd0, -3, 7;", math.MaxUint64 - 20},
		{'x', "mad.wide.s32 %rd0, -3, 7, 1;", math.MaxUint64 - 19},
		{'x', "mad.wide.u32 %rd0, -1, -1, 5;", 0xfffffffe00000006},
		{'x', "mad.lo.s64 %rd0, 1234567890123, -3, 5;", ^uint64(3703703670369-5) + 1},
		{'r', "mad.hi.u32 %r0, 0x80000000, 6, 9;", 12},
		{'x', "mul.hi.s64 %rd0, -1, 1;", math.MaxUint64},
		{'r', "div.s32 %r0, 0x80000000, -1;", 1 << 31},
		{'r', "div.s32 %r0, -7, 2;", 0xfffffffd},
		{'r', "rem.s32 %r0, -7, 2;", 0xffffffff},
		{'h', "div.s16 %rs0, -7, 2;", 0xfffd},
		{'r', "abs.s32 %r0, 0x80000000;", 1 << 31},
		{'h', "neg.s16 %rs0, 3;", 0xfffd},
		{'h', "min.s16 %rs0, -3, 2;", 0xfffd},
		{'h', "max.u16 %rs0, -3, 2;", 0xfffd},
		{'h', "add.s16 %rs0, 0x7fff, 1;", 0x8000},
		{'h', "sub.s16 %rs0, 0, 1;", 0xffff},
		{'h', "not.b16 %rs0, 0;", 0xffff},

		{'f', "min.f32 %f0, 0f7FC00000, 0f3F800000;", f(1)},
		{'f', "min.NaN.f32 %f0, 0f7FC00000, 0f3F800000;", nan32},
		{'f', "max.f32 %f0, 0f80000000, 0f00000000;", 0},
		{'f', "min.f32 %f0, 0f00000000, 0f80000000;", 1 << 31},
		{'f', "max.f32 %f0, 0fFFC00000, 0f7FC00001;", nan32},
		{'f', "add.f32 %f0, 0f7F800000, 0fFF800000;", nan32},
		{'f', "neg.f32 %f0, 0f00000000;", 1 << 31},
		{'f', "abs.f32 %f0, 0fBF800000;", f(1)},
		{'f', "copysign.f32 %f0, 0f80000000, 0f3F800000;", f(-1)},
		{'f', "div.rn.f32 %f0, 0f3F800000, 0f80000000;", f(-inf)},
		{'f', "sqrt.rn.f32 %f0, 0fBF800000;", nan32},
		{'f', "sqrt.rn.f32 %f0, 0f40000000;", f(math.Sqrt2)},
		{'f', "rcp.rn.f32 %f0, 0f40400000;", f(1.0 / 3)},
		{'f', "ex2.approx.f32 %f0, 0f00000000;", f(1)},
		{'f', "ex2.approx.f32 %f0, 0fFF800000;", 0},
		{'f', "lg2.approx.f32 %f0, 0f00000000;", f(-inf)},
		{'f', "lg2.approx.f32 %f0, 0fBF800000;", nan32},
		{'f', "rsqrt.approx.f32 %f0, 0f80000000;", f(-inf)},
		{'f', "rcp.approx.f32 %f0, 0f7F800000;", 0},
		{'f', "tanh.approx.f32 %f0, 0f7F800000;", f(1)},
		{'d', "fma.rn.f64 %fd0, 0d3FF0000000000001, 0d3FF0000000000001, 0dBFF0000000000002;", math.Float64bits(0x1p-104)},
		{'d', "max.f64 %fd0, 0d7FF8000000000000, 0dBFF0000000000000;", math.Float64bits(-1)},
		{'d', "sub.f64 %fd0, 0d3FF0000000000000, 0d4000000000000000;", math.Float64bits(-1)},

		{'r', "cvt.rzi.s32.f32 %r0, 0fC0200000;", 0xfffffffe},
		{'r', "cvt.rni.s32.f32 %r0, 0f40200000;", 2},
		{'r', "cvt.rmi.s32.f32 %r0, 0fC0200000;", 0xfffffffd},
		{'r', "cvt.rpi.s32.f32 %r0, 0fC0200000;", 0xfffffffe},
		{'r', "cvt.rzi.u32.f32 %r0, 0fBF800000;", 0},
		{'r', "cvt.rzi.u32.f32 %r0, 0f7F800000;", math.MaxUint32},
		{'r', "cvt.rzi.s32.f32 %r0, 0fFF800000;", 1 << 31},
		{'r', "cvt.rzi.s32.f32 %r0, 0f7FC00000;", 0},
		{'x', "cvt.rzi.s64.f32 %rd0, 0f7FC00000;", 1 << 63},
		{'r', "cvt.rzi.u32.f64 %r0, 0d41EFFFFFFFE00000;", math.MaxUint32},
		{'x', "cvt.rzi.u64.f64 %rd0, 0d43E0000000000000;", 1 << 63},
		{'f', "cvt.rn.f32.u32 %f0, -1;", f(1 << 32)},
		{'f', "cvt.rn.f32.s32 %f0, -1;", f(-1)},
		{'f', "cvt.rn.f32.u64 %f0, 0x8000008000000001;", f(0x1.000002p63)},
		{'d', "cvt.rn.f64.s32 %fd0, -3;", math.Float64bits(-3)},
		{'f', "cvt.rn.f32.f64 %f0, 0d3FF0000010000001;", f(1.0000001)},
		{'f', "cvt.rz.f32.f64 %f0, 0d3FF000001FFFFFFF;", f(1)},
		{'f', "cvt.rni.f32.f32 %f0, 0f40200000;", f(2)},
		{'f', "cvt.rpi.f32.f32 %f0, 0fBF000000;", 1 << 31},
		{'f', "cvt.sat.f32.f32 %f0, 0f40200000;", f(1)},
		{'f', "cvt.sat.f32.f32 %f0, 0f7FC00000;", 0},
		{'h', "cvt.rn.f16.f32 %rs0, 0f3F801000;", 0x3c00},
		{'h', "cvt.rz.f16.f32 %rs0, 0f477FFFFF;", 0x7bff},
		{'h', "cvt.rn.f16.f64 %rs0, 0d3FF0000000000000;", 0x3c00},
		{'h', "cvt.rn.f16.s32 %rs0, -2;", 0xc000},
		{'f', "mov.b16 %rs1, 0xfc00; cvt.f32.f16 %f0, %rs1;", f(-inf)},
		{'f', "mov.b16 %rs1, 0x0001; cvt.f32.f16 %f0, %rs1;", f(0x1p-24)},
		{'r', "mov.b32 %r1, 0x1ff; cvt.s32.s8 %r0, %r1;", math.MaxUint32},
		{'r', "mov.b32 %r1, 0x1ff; cvt.u32.u8 %r0, %r1;", 0xff},
		{'h', "mov.b32 %r1, 0x12345; cvt.u16.u32 %rs0, %r1;", 0x2345},
		{'x', "mov.b32 %r1, -5; cvt.s64.s32 %rd0, %r1;", math.MaxUint64 - 4},
		{'r', "mov.b64 %rd1, 0x1122334455667788; cvt.u32.u64 %r0, %rd1;", 0x55667788},
		{'r', "mov.b32 %r1, 300; cvt.sat.u8.u32 %r0, %r1;", 255},
		{'r', "mov.b32 %r1, -300; cvt.sat.s8.s32 %r0, %r1;", 0xffffff80},
		{'r', "mov.b32 %r1, -300; cvt.sat.u8.s32 %r0, %r1;", 0},
		{'h', "cvt.s8.s32 %rs0, 0x80;", 0xff80},

		{'p', "setp.ne.f32 %p0, 0f7FC00000, 0f3F800000;", 0},
		{'p', "setp.neu.f32 %p0, 0f7FC00000, 0f3F800000;", 1},
		{'p', "setp.equ.f64 %p0, 0d7FF8000000000000, 0d3FF0000000000000;", 1},
		{'p', "setp.gtu.f32 %p0, 0f00000000, 0f3F800000;", 0},
		{'p', "setp.num.f32 %p0, 0f00000000, 0f7FC00000;", 0},
		{'p', "setp.lo.u32 %p0, 1, -1;", 1},
		{'p', "setp.hs.u32 %p0, 1, -1;", 0},
		{'p', "setp.lt.s32 %p0, 1, -1;", 0},
		{'p', "setp.gt.s16 %p0, 1, -1;", 1},
		{'p', "setp.eq.b64 %p0, 7, 7;", 1},
		{'p', "setp.eq.s32 %p1, 1, 1; setp.lt.and.s32 %p2|%p0, 1, 2, !%p1;", 0},
		{'p', "setp.eq.s32 %p1, 1, 1; setp.lt.and.s32 %p2|%p0, 3, 2, %p1;", 1},
		{'p', "setp.eq.s32 %p1, 1, 1; setp.lt.xor.s32 %p0|_, 1, 2, %p1;", 0},
		{'p', "setp.eq.s32 %p1, 1, 1; setp.lt.or.s32 _|%p0, 1, 2, %p1;", 1},
		{'p', "mov.pred %p1, -1; not.pred %p2, %p1; or.pred %p3, %p1, %p2; xor.pred %p0, %p3, %p1;", 0},
		{'r', "set.lt.u32.f32 %r0, 0f00000000, 0f3F800000;", math.MaxUint32},
		{'f', "set.ge.f32.s32 %f0, 3, 2;", f(1)},
		{'f', "setp.eq.s32 %p1, 1, 2; selp.f32 %f0, 0f40000000, 0f40400000, %p1;", f(3)},

		{'r', "mov.b32 %r1, 0x12345678; mov.b32 {%rs1, %rs2}, %r1; mov.b32 %r0, {%rs2, %rs1};", 0x56781234},
		{'x', "mov.b64 %rd0, {1, 2};", 1 | 2<<32},
		{'r', "mov.b64 %rd1, 0x1122334455667788; mov.b64 {_, %r0}, %rd1;", 0x11223344},
		{'f', "mov.b32 %f0, 0x3f800000;", f(1)},
		{'r', "mov.b32 %r0, 0f3F800000;", f(1)},
		{'d', "mov.f64 %fd0, 0d3FF0000000000000;", math.Float64bits(1)},

		{'r', "mov.u32 %r1, %laneid; shfl.sync.up.b32 %r0|%p1, %r1, 7, 0, -1; @%p1 mov.u32 %r0, 99;", 5}, // no lane is there
		{'r', "mov.u32 %r1, %laneid; shfl.sync.up.b32 %r0, %r1, 3, 0, -1;", 2},
		{'r', "mov.u32 %r1, %laneid; shfl.sync.down.b32 %r0, %r1, 3, 31, -1;", 8},
		{'r', "mov.u32 %r1, %laneid; shfl.sync.down.b32 %r0, %r1, 3, 0x1807, -1;", 5}, // a segment of 8 ends
		{'r', "mov.u32 %r1, %laneid; shfl.sync.idx.b32 %r0, %r1, 1, 0x1c03, -1;", 5},
		{'r', "mov.u32 %r1, %laneid; shfl.sync.bfly.b32 %r0, %r1, 16, 31, -1;", 21},
		{'r', "mov.u32 %r1, %laneid; shr.u32 %r1, %r1, 3; match.any.sync.b32 %r0, %r1, -1;", 0xff},
		{'r', "mov.u32 %r1, %laneid; match.all.sync.b32 %r0|%p1, %r1, -1; @%p1 mov.u32 %r0, 9;", 0},
		{'r', "match.all.sync.b64 %r0|%p1, 3, -1; @!%p1 mov.u32 %r0, 9;", math.MaxUint32},
		{'r', "mov.u32 %r1, %laneid; redux.sync.add.u32 %r0, %r1, -1;", 31 * 16},
		{'r', "mov.u32 %r1, %laneid; neg.s32 %r1, %r1; redux.sync.min.s32 %r0, %r1, -1;", 0xffffffe1},
		{'r', "mov.u32 %r1, %laneid; redux.sync.xor.b32 %r0, %r1, -1;", 0},
		{'p', "mov.u32 %r1, %laneid; setp.eq.s32 %p1, %r1, 9; vote.sync.any.pred %p0, %p1, -1;", 1},
		{'p', "mov.u32 %r1, %laneid; setp.eq.s32 %p1, %r1, 9; vote.sync.uni.pred %p0, %p1, -1;", 0},
		{'r', "mov.u32 %r1, %laneid; setp.eq.s32 %p1, %r1, 9; vote.sync.ballot.b32 %r0, !%p1, -1;", ^uint64(1<<9) & math.MaxUint32},
		{'p', "mov.u32 %r1, %laneid; setp.eq.s32 %p1, %r1, 9; bar.red.or.pred %p0, 0, %p1;", 1},
		{'p', "mov.u32 %r1, %laneid; setp.eq.s32 %p1, %r1, 9; bar.red.and.pred %p0, 0, !%p1;", 0},
		{'r', "mov.u32 %r1, %laneid; setp.eq.s32 %p1, %r1, 9; bar.red.popc.u32 %r0, 1, !%p1;", 31},
		{'r', "activemask.b32 %r0;", math.MaxUint32},
		{'r', "mov.u32 %r0, %lanemask_lt;", 31},
		{'r', "mov.u32 %r0, %lanemask_ge;", 0xffffffe0},
		{'r', "mov.u32 %r0, %ntid.x;", 32},
		{'r', "mov.u32 %r1, %nctaid.y; mov.u32 %r2, %ctaid.z; add.s32 %r0, %r1, %r2;", 1},
	} {
		store := map[byte]string{
			'x': "", 'r': "cvt.u64.u32 %rd0, %r0;", 'h': "cvt.u64.u16 %rd0, %rs0;", 'p': "selp.u64 %rd0, 1, 0, %p0;",
			'f': "mov.b32 %r0, %f0; cvt.u64.u32 %rd0, %r0;", 'd': "mov.b64 %rd0, %fd0;",
		}[c.to]
		require.Equal(t, fmt.Sprintf("%#x", c.want), fmt.Sprintf("%#x", result(t, c.body+store)), c.body)
	}
}

// Accesses of every width and space, with the extension of what is loaded.
func TestAccessForms(t *testing.T) {
	const own = "mov.u32 %r9, %tid.x; shl.b32 %r10, %r9, 4; mov.u32 %r11, s; add.s32 %r10, %r10, %r11; cvt.u64.u32 %rd9, %r10;" +
		"mov.b32 %r1, 0x8182f384; mov.b64 %rd1, 0x1122334455667788; st.shared.b32 [%r10], %r1; st.shared.v2.u32 [%r10+8], {%r1, 7};"
	for body, want := range map[string]uint64{
		"ld.shared.u8 %r2, [%r10]; cvt.u64.u32 %rd0, %r2;":                                                                 0x84,
		"ld.shared.s8 %r2, [%r10]; cvt.u64.u32 %rd0, %r2;":                                                                 0xffffff84,
		"ld.shared.s8 %rs2, [%rd9+1]; cvt.u64.u16 %rd0, %rs2;":                                                             0xfff3,
		"ld.shared.s16 %rd0, [%r10+2];":                                                                                    0xffffffffffff8182,
		"ld.shared.u16 %rd0, [%r10+2];":                                                                                    0x8182,
		"ld.shared.s32 %rd0, [%r10];":                                                                                      0xffffffff8182f384,
		"ld.volatile.shared.u64 %rd0, [%r10+8];":                                                                           0x78182f384,
		"ld.shared.v2.b32 {_, %r2}, [%r10+8]; cvt.u64.u32 %rd0, %r2;":                                                      7,
		"ld.shared.v4.u8 {%rs1, %rs2, %rs3, %rs4}, [%r10]; mov.b64 %rd0, {%rs4, %rs3, %rs2, %rs1};":                        0x8400f300820081,
		"st.shared.u8 [%r10+1], 0x77; ld.shared.u32 %r2, [%r10]; cvt.u64.u32 %rd0, %r2;":                                   0x81827784,
		"cvta.shared.u64 %rd2, %rd9; ld.u8 %r2, [%rd2+3]; cvt.u64.u32 %rd0, %r2;":                                          0x81,
		"cvta.shared.u64 %rd2, %rd9; st.u64 [%rd2], %rd1; ld.shared.u64 %rd0, [%r10];":                                     0x1122334455667788,
		"cvta.shared.u64 %rd2, %rd9; cvta.to.shared.u64 %rd3, %rd2; ld.shared.u8 %rd0, [%rd3];":                            0x84,
		"ld.param.u64 %rd2, [p]; st.u64 [%rd2], %rd1; ld.global.cg.u64 %rd0, [%rd2];":                                      0x1122334455667788,
		"ld.param.u64 %rd2, [p]; st.global.relaxed.gpu.b8 [%rd2], %rd1; ld.global.nc.b8 %rd0, [%rd2];":                     0x88,
		".local .align 8 .b8 l[16]; st.local.u64 [l+8], %rd1; mov.u64 %rd2, l; ld.local.u32 %rd0, [%rd2+12];":              0x11223344,
		".local .align 8 .b8 l[16]; mov.u64 %rd2, l; cvta.local.u64 %rd3, %rd2; st.u16 [%rd3], 9; ld.local.u16 %rd0, [l];": 9,
		"atom.shared.exch.b32 %r2, [%r10], 5; ld.shared.u32 %rd3, [%r10]; cvt.u64.u32 %rd0, %r2;":                          0x8182f384,
		"atom.shared.cas.b32 %r2, [%r10], 1, 5; ld.shared.u32 %rd0, [%r10];":                                               0x8182f384,
		"atom.shared.inc.u32 %r2, [%r10+12], 7; ld.shared.u32 %rd0, [%r10+12];":                                            0,
		"atom.shared.inc.u32 %r2, [%r10+12], 8; ld.shared.u32 %rd0, [%r10+12];":                                            8,
		"atom.shared.dec.u32 %r2, [%r10+12], 3; ld.shared.u32 %rd0, [%r10+12];":                                            3,
		"red.shared.and.b32 [%r10], 0xff; ld.shared.u32 %rd0, [%r10];":                                                     0x84,
		"red.shared.or.b32 [%r10+12], 8; ld.shared.u32 %rd0, [%r10+12];":                                                   15,
		"red.shared.max.s32 [%r10], 4; ld.shared.u32 %rd0, [%r10];":                                                        4,
		"red.shared.add.f32 [%r10+12], 0f3F800000; ld.shared.u32 %rd0, [%r10+12];":                                         0x3f800000,
		"atom.relaxed.gpu.shared.add.u64 %rd2, [%rd9+8], -1; ld.shared.u64 %rd0, [%rd9+8];":                                0x78182f383,
		"ld.param.u64 %rd2, [p]; mov.u64 %rd3, 7; st.global.u64 [%rd2], %rd3; bar.sync 0; atom.global.min.u64 %rd0, [%rd2], 3; max.u64 %rd0, %rd0, 3; min.u64 %rd0, %rd0, 3;": 3,
	} {
		require.Equal(t, fmt.Sprintf("%#x", want), fmt.Sprintf("%#x", result(t, own+body)), body)
	}
}

// Halves of warps that wait for each other by masks of their own, in loops of different lengths.
func TestMasksInLoops(t *testing.T) {
	got, err := runSnippet(t, `
		ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31;
		mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
		setp.lt.u32 %p1, %r2, 8; mov.u32 %r3, 0xff; mov.u32 %r4, 3;
		@%p1 bra LOOP; mov.u32 %r3, 0xffffff00; mov.u32 %r4, 5;
		LOOP: redux.sync.add.u32 %r5, %r1, %r3; add.s32 %r4, %r4, -1; setp.gt.s32 %p2, %r4, 0; @%p2 bra LOOP;
		bar.warp.sync -1; st.global.u32 [%rd1], %r5; ret;`, 1)
	require.NoError(t, err)
	for i, v := range got {
		first, n := i&^31, 8
		if i%32 >= 8 {
			first, n = first+8, 24
		}
		require.EqualValues(t, n*first+n*(n-1)/2, v, i)
	}
}

func TestErrorText(t *testing.T) {
	_, err := runSnippet(t, "mov.u64 %rd1, 64; @%p1 ret; ret;", 0)
	require.EqualError(t, err, "interp: k: line 8: @%p1 ret: undefined value: %p1 is read and was never written; block [0 0 0], thread [0 0 0]")
	require.True(t, strings.HasPrefix((&Error{Err: ErrLaunch}).Error(), "interp: launch refused"))
}

// The loops over all lanes give what the functions of one lane do.
func TestWholeWarps(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 31))
	for name, loop := range whole {
		op, ok := operations[name]
		require.True(t, ok, name)
		for range 200 {
			var to, x, y values
			for l := range x {
				x[l], y[l] = random.Uint64()&op.from[0].mask(), random.Uint64()&op.from[1].mask()
			}
			loop(&to, &x, &y)
			for l := range to {
				require.Equal(t, op.f2(x[l], y[l]), to[l], "%s of %#x and %#x", name, x[l], y[l])
			}
		}
	}
}
