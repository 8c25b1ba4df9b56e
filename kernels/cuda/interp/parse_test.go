package interp

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseModule(t *testing.T) {
	m, err := Parse(`
		.version 7.8
		.target sm_80, texmode_independent
		.address_size 64
		.global .align 8 .b8 table[4][4] = {{1, 2}, 3, 0xff};
		.visible .const .u32 limit = 7;
		.visible .entry first(.param .u8 a, .param .align 16 .b8 b[20], .param .u16 c,
			.param .u64 .ptr .global .align 4 d, .param .f32 e)
		.reqntid 8, 4, 2
		.minnctapersm 1
		{ ret; }
		.entry second() { .reg .b32 %r<3>; { .reg .u32 %r<9>, x; mov.u32 x, 3; mov.u32 %r8, x; } mov.u32 %r2, 1; }
	`)
	require.NoError(t, err)
	require.Equal(t, "7.8", m.Version)
	require.Equal(t, "sm_80", m.Target)
	require.Equal(t, []string{"first", "second"}, m.Kernels())
	require.Nil(t, m.Kernel("third"))
	k := m.Kernel("first")
	require.Equal(t, []Param{
		{"a", "u8", 1, 1, 0}, {"b", "b8", 20, 16, 16}, {"c", "u16", 2, 2, 36}, {"d", "u64", 8, 8, 40}, {"e", "f32", 4, 4, 48},
	}, k.Params)
	require.Equal(t, 52, k.ParamBytes)
	require.Equal(t, [3]uint32{8, 4, 2}, k.ExactThreads)
	require.Equal(t, []byte{1, 2, 3, 0xff}, m.variables["table"].init)
	require.Equal(t, 16, m.variables["table"].size)
	require.Equal(t, []byte{7, 0, 0, 0}, m.variables["limit"].init)
	require.NoError(t, m.Kernel("second").Launch(NewMemory(), [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, nil))
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "no .version",
		".version 7.8 .target sm_80 junk":    `unknown directive "junk"`,
		".address_size 32":                   "addresses of 32 bits",
		"/* open":                            "comment that does not end",
		"\n\n.entry k(.param .u64 p":         "line 3",
		"\x00":                               "unexpected character",
		snippet("mov.u32 %r1, %r99; ret;"):   "register %r99 is not declared",
		snippet("mov.u32 %q1, 0; ret;"):      "register %q1 is not declared",
		snippet("bra NOWHERE; ret;"):         "no label NOWHERE",
		snippet("L: L: ret;"):                "label L stands there twice",
		snippet("ret; } }"):                  "unknown directive",
		snippet("{ ret;"):                    "does not end",
		snippet(".loc 1 2 3; ret;"):          `unknown directive ".loc"`,
		snippet("mov.u32 %r1, nothing;"):     "nothing is not declared",
		snippet("@%r1 ret;"):                 "@ without a predicate",
		snippet(".shared .b8 big[60000];"):   "static shared memory",
		snippet(".local .b8 big[50000000];"): "too much local memory",
		snippet(".shared .b8 b[1000000000][1000000000];"):                       "a number up to",
		".func f() { call f; ret; }\n" + snippet("call f; ret;"):                "calls itself",
		".version 7.8 .target sm_80 .global .u32 x = {1, 2};":                   "more values than room",
		".version 7.8 .target sm_80 .entry k(.param .u32 a) { } .entry k() { }": "declared twice",
		".extern .func f(.param .b64 a);\n" + snippet("call f; ret;"):           "not in the module",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, text)
	}
}

// Registers that are declared and not named cost nothing.
func TestManyRegistersDeclared(t *testing.T) {
	m, err := Parse(snippet(".reg .b32 %many<4000000000>; mov.u32 %many3999999999, 1; ret;"))
	require.NoError(t, err)
	require.Less(t, len(m.Kernel("k").slots), 10)
}

// FuzzParse: no text makes Parse panic, or take much memory. Kernels run to an end or an error.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.ptx")
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		for i, part := range strings.Split(string(text), ".visible .entry") {
			if i > 0 {
				f.Add(".version 7.8\n.target sm_80\n.visible .entry" + part)
			}
		}
	}
	f.Add(snippet("L: shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1; @!%p1 bra L; { .reg .b16 t; mov.b32 {t, _}, %r1; } ret;"))
	f.Add(".version 7.8\n.target sm_80\n.func (.param .b32 r) f(.param .b32 a) { ret; }\n.global .b8 x[4] = {1, 2};\n")
	for _, body := range []string{
		"bra A; A: add.s32 %r1, %r2, -1; @%p1 ret;", "bar.sync 0; bar.red.popc.u32 %r1, 0, !%p1;", "trap;", "exit;",
		"mov.u32 %r1, %tid.x; setp.ltu.and.f32 %p1|%p2, %f1, 0f3F800000, %p3; selp.b32 %r1, 1, 0, %p1;",
		"mov.u64 %rd1, s; st.shared.v2.f32 [%rd1+8], {%f1, 0f00000000}; ld.v4.u8 {%rs1, _, %rs2, %rs3}, [%rd1];",
		"cvt.rni.sat.s32.f64 %r1, %fd1; cvt.s64.s8 %rd1, %rs1; cvt.rn.f16.f32 %rs1, %f1;",
		"atom.shared.cas.b32 %r1, [s], 0, 1; red.global.add.u64 [%rd1], 1; atom.inc.u32 _, [%rd1], 5;",
		"vote.sync.ballot.b32 %r1, %p1, -1; match.any.sync.b32 %r2, %r1, %r3; redux.sync.add.u32 %r1, %r2, -1;",
		"bfi.b32 %r1, %r2, %r3, 40, 300; bfe.s64 %rd1, %rd2, 70, 80; shf.l.clamp.b32 %r1, %r2, %r3, 99; prmt.b32 %r1, 1, 2, -1;",
	} {
		f.Add(snippet(body + " ret;"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			return
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := Parse(text)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
		if err != nil {
			return
		}
		for _, name := range m.Kernels() {
			k := m.Kernel(name)
			block := [3]uint32{33, 1, 1}
			if k.ExactThreads[0] != 0 {
				block = k.ExactThreads
			}
			_, err := k.Run(NewMemory(), Config{
				Grid: [3]uint32{2, 1, 1}, Block: block, Shared: 64, Params: make([]byte, k.ParamBytes), Limit: 2000,
			})
			if err != nil {
				require.NotEmpty(t, err.Error())
			}
		}
	})
}
