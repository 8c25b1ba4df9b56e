package interp

import (
	"encoding/binary"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// edit returns a module of testdata after one replacement in its text.
func edit(t *testing.T, name, old, new string) *Module {
	text, err := os.ReadFile("testdata/" + name + ".ptx")
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	m, err := Parse(strings.Replace(string(text), old, new, 1))
	require.NoError(t, err)
	return m
}

// snippet returns a kernel "k" of one pointer parameter, with these instructions.
func snippet(body string) string {
	return ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n" +
		".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b64 %rd<20>; .reg .f64 %fd<9>;\n" +
		".shared .align 4 .b8 s[512];\n" + body + "\n}\n"
}

// run runs a snippet with one block of 64 threads, whose parameter is an array of 64 words.
func runSnippet(t *testing.T, body string, seed uint64) ([]uint32, error) {
	m, err := Parse(snippet(body))
	require.NoError(t, err)
	d := newDevice(t)
	d.mem.Races = false // snippets write to one word with all threads
	at := put(d, make([]uint32, 64))
	err = d.launch(m.Kernel("k"), seed, 1, 64, at)
	return get[uint32](d, at, 64), err
}

// requireFault checks what an error is about, and that it names the place.
func requireFault(t *testing.T, err, is error, parts ...string) {
	t.Helper()
	require.ErrorIs(t, err, is)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.NotEmpty(t, e.Kernel)
	require.Positive(t, e.Line)
	require.NotEmpty(t, e.Text)
	for _, part := range parts {
		require.ErrorContains(t, err, part)
	}
}

type gatherCase struct {
	k          *Kernel
	d          *device
	dst, src   uint64
	ids, word  uint64
	rows, cols uint32
	srcRows    uint32
}

func newGather(t *testing.T) *gatherCase {
	d := newDevice(t)
	g := &gatherCase{k: load(t, "gather").Kernel("gather_half"), d: d, rows: 10, cols: 16, srcRows: 4}
	g.dst, g.src = room[float32](d, 160), put(d, make([]uint16, 4*16))
	g.ids, g.word = put(d, []uint32{0, 1, 2, 3, 0, 1, 2, 3, 4, 4}), put(d, []uint32{0, 0})
	return g
}

func (g *gatherCase) run() error {
	return g.d.launch(g.k, 1, 2, 256, g.dst, g.src, g.ids, g.word, g.rows, g.cols, g.srcRows)
}

func TestFaultRowTooFar(t *testing.T) {
	g := newGather(t)
	require.NoError(t, g.run())
	g.srcRows++ // now row 4 is believed to be there
	err := g.run()
	requireFault(t, err, ErrBounds, "gather_half: line ", "ld.global.nc.v4.u32", "0 past the end of the 128 bytes at 0x70", "; block [1 0 0], thread [")
	var e *Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.InThread)
	require.Equal(t, uint32(1), e.Block[0])
}

func TestFaultOddOffset(t *testing.T) {
	g := newGather(t)
	g.src += 2
	requireFault(t, g.run(), ErrAlignment, "ld.global.nc.v4.u32", "bytes into the 128 at 0x70")
}

func TestFaultSwappedParameters(t *testing.T) {
	g := newGather(t)
	g.dst, g.src = g.src, g.dst // dst is smaller than what is written
	requireFault(t, g.run(), ErrBounds, "st.global.v4.f32")
	g = newGather(t)
	g.rows, g.cols = g.cols, g.rows // ids ends before the rows do
	require.ErrorIs(t, g.run(), ErrBounds)
	g = newGather(t)
	packed := pack(t, g.k, g.dst, g.src, g.ids, g.word, g.rows, g.cols, g.srcRows)
	binary.LittleEndian.PutUint64(packed[8:], 160) // a size where a pointer belongs
	err := g.k.Launch(g.d.mem, [3]uint32{2, 1, 1}, [3]uint32{256, 1, 1}, 0, packed)
	requireFault(t, err, ErrBounds, "16 bytes at 0x")
}

func TestFaultFreed(t *testing.T) {
	g := newGather(t)
	require.NoError(t, g.d.mem.Free(g.src))
	requireFault(t, g.run(), ErrBounds, "ld.global.nc.v4.u32")
}

// Each barrier of a reduction is needed, and each that is left out is found in every order.
func TestFaultBarrierLeftOut(t *testing.T) {
	text, err := os.ReadFile("testdata/reduce.ptx")
	require.NoError(t, err)
	for _, name := range []string{"sum_f32", "sum_squares", "scan", "warps"} {
		from := strings.Index(string(text), ".entry "+name+"(")
		to := from + strings.Index(string(text[from:]), "\n}\n")
		sync := regexp.MustCompile(`(?m)^\tbar\.(warp\.)?sync.*$`)
		places := sync.FindAllIndex(text[from:to], -1)
		require.NotEmpty(t, places)
		for i, p := range places {
			if name[0] == 's' && name[1] == 'u' && i == len(places)-1 {
				continue // after the last step only thread 0 reads, what it wrote itself
			}
			m, err := Parse(string(text[:from+p[0]]) + string(text[from+p[1]:]))
			require.NoError(t, err)
			for seed := range uint64(4) {
				d := newDevice(t)
				x := put(d, normal(2500, 1))
				switch name {
				case "scan":
					dst, totals := room[uint32](d, 600), room[uint32](d, 3)
					err = d.launch(m.Kernel(name), seed, 3, 256, dst, totals, x, uint32(600))
				case "warps":
					err = d.launch(m.Kernel(name), seed, 2, 128, room[uint32](d, 32), x)
				default:
					err = d.launch(m.Kernel(name), seed, 3, 256, room[float64](d, 3), x, uint64(2500))
				}
				require.ErrorIs(t, err, ErrRace, "%s without barrier %d, seed %d", name, i, seed)
				requireFault(t, err, ErrRace, "shared")
			}
		}
	}
}

// The tile of a product is written after it was read: the barrier before the writes is found too.
func TestFaultRaceBothWays(t *testing.T) {
	const threadAddress = `
		mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.s32 %r4, %r3, %r2;
		xor.b32 %r5, %r2, 128; add.s32 %r5, %r3, %r5;
		st.shared.u32 [%r4], %r1; bar.sync 0; `
	_, err := runSnippet(t, threadAddress+"ld.shared.u32 %r6, [%r5]; bar.sync 0; st.shared.u32 [%r4], %r6; ret;", 0)
	require.NoError(t, err)
	for seed := range uint64(4) {
		_, err = runSnippet(t, threadAddress+"ld.shared.u32 %r6, [%r5]; st.shared.u32 [%r4], %r6; ret;", seed)
		require.ErrorIs(t, err, ErrRace) // write after read
		_, err = runSnippet(t, threadAddress+"st.shared.u32 [%r4], %r1; ld.shared.u32 %r6, [%r5]; ret;", seed)
		require.ErrorIs(t, err, ErrRace) // read after write
		_, err = runSnippet(t, threadAddress+"st.shared.u32 [%r4], %r1; st.shared.u32 [%r5], %r1; ret;", seed)
		require.ErrorIs(t, err, ErrRace) // write after write
		_, err = runSnippet(t, threadAddress+"atom.shared.add.u32 %r6, [s], 1; ld.shared.u32 %r7, [s]; ret;", seed)
		require.ErrorIs(t, err, ErrRace) // read after an atomic of another
		_, err = runSnippet(t, threadAddress+"atom.shared.add.u32 %r6, [s], 1; atom.shared.add.u32 %r6, [s], 1; ret;", seed)
		require.NoError(t, err)
	}
	// bar.warp.sync orders the lanes of a warp, and no two warps. A shuffle lets what was read
	// before it be written, and orders nothing else.
	neighbour := strings.Replace(threadAddress, "%r2, 128", "%r2, 4", 1)
	const shuffle = "shfl.sync.idx.b32 %r9, %r1, 0, 31, -1;"
	for _, c := range []struct {
		setup, sync                string
		afterReading, afterWriting bool // a race
	}{
		{neighbour, "bar.warp.sync -1;", false, false},
		{threadAddress, "bar.warp.sync -1;", true, true},
		{neighbour, shuffle, false, true},
		{threadAddress, shuffle, true, true},
		{neighbour, "", true, true},
	} {
		_, err = runSnippet(t, c.setup+"ld.shared.u32 %r6, [%r5];"+c.sync+"st.shared.u32 [%r4], %r6; ret;", 1)
		require.Equal(t, c.afterReading, err != nil, "%s: %v", c.sync, err)
		_, err = runSnippet(t, c.setup+"st.shared.u32 [%r4], %r1;"+c.sync+"ld.shared.u32 %r6, [%r5]; ret;", 1)
		require.Equal(t, c.afterWriting, err != nil, "%s: %v", c.sync, err)
		_, err = runSnippet(t, c.setup+"st.shared.u32 [%r4], %r1;"+c.sync+"st.shared.u32 [%r5], %r1; ret;", 1)
		require.Equal(t, c.afterWriting, err != nil, "%s: %v", c.sync, err)
	}
}

func TestFaultDivergence(t *testing.T) {
	const half = "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; setp.lt.u32 %p1, %r2, 16; mov.u32 %r3, 7; ld.param.u64 %rd1, [p];"
	for name, c := range map[string]struct{ body, want string }{
		"one branch shuffles":             {half + "@!%p1 bra END; shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1; END: st.global.u32 [%rd1], %r3; ret;", "lanes 0-15 wait at line"},
		"a predicate on the shuffle":      {half + "@%p1 shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1; ret;", "for lanes 16-31, which ended"},
		"both branches shuffle":           {half + "@%p1 bra A; shfl.sync.idx.b32 %r3, %r1, 1, 31, -1; bra END; A: shfl.sync.idx.b32 %r3, %r1, 1, 31, -1; END: ret;", "lanes 16-31 wait at line"},
		"one half votes":                  {half + "@!%p1 bra END; vote.sync.all.pred %p2, %p1, -1; END: bar.sync 0; ret;", "lanes 16-31 wait at line"},
		"one half waits at a barrier":     {half + "@!%p1 bra END; bar.sync 0; END: bar.sync 0; ret;", "bar.sync"},
		"a warp at another barrier":       {"mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 0; ret; A: bar.sync 0; ret;", "warp 0 at line"},
		"a lane that its mask leaves out": {half + "shfl.sync.idx.b32 %r3, %r1, 1, 31, 65535; ret;", "leaves out lane 16"},
	} {
		for seed := range uint64(3) {
			_, err := runSnippet(t, c.body, seed)
			require.ErrorIs(t, err, ErrDivergent, name)
			if seed == 0 {
				require.ErrorContains(t, err, c.want, name)
			}
		}
	}
	// Halves of a warp that shuffle by masks of their own are fine, and a loop in which lanes leave
	// one after the other meets again behind it.
	got, err := runSnippet(t, half+`
		mov.u32 %r4, 65535; @%p1 bra A; mov.u32 %r4, -65536;
		A: shfl.sync.idx.b32 %r3, %r1, 1, 4111, %r4;
		mov.u32 %r5, 0; LOOP: add.s32 %r5, %r5, 1; setp.le.u32 %p2, %r5, %r2; @%p2 bra LOOP;
		shfl.sync.down.b32 %r6|%p3, %r5, 1, 31, -1; mul.lo.s32 %r3, %r3, 100; add.s32 %r3, %r3, %r6;
		mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r3; ret;`, 1)
	require.NoError(t, err)
	for i, v := range got {
		require.EqualValues(t, (i&^15+1)*100+min(i%32+2, 32), v, i)
	}
}

func TestFaultUnknown(t *testing.T) {
	for _, line := range []string{
		"frobnicate.u32 %r1, %r2;", "add.ftz.f32 %f1, %f2, %f3;", "add.s32 %r1, %r2;", "ld.weird.u32 %r1, [%rd1];",
		"cvt.u32.f32 %r1, %f1;", "cvt.f16.f32 %rs1, %f1;", "setp.foo.s32 %p1, %r1, %r2;", "mul.s32 %r1, %r2, %r3;",
		"add.s64 %rd1, %r1, %rd2;", "mov.u32 %rd1, %r1;", "add.f32 %f1, %f2, 1;", "st.global.v3.f32 [%rd1], {%f1, %f2, %f3};",
		"bar.sync 0, 64;", "bar.arrive 0, 64;", "call nothing;", "shfl.up.b32 %r1, %r2, 1, 31;", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 %r1;",
		"ld.global.nc.v4.f64 {%fd1, %fd2, %fd3, %fd4}, [%rd1];", "selp.f32 %f1, %f2, %f3, %r1;", "and.pred %p1, %p2, %r1;",
	} {
		_, err := Parse(snippet(line + " ret;"))
		require.ErrorIs(t, err, ErrUnknown, line)
		requireFault(t, err, ErrUnknown, "k: line 8: "+strings.TrimSuffix(line, ";"))
	}
	_, err := Parse(snippet("frob %r1;\nfrob %r2;\n ret;"))
	require.ErrorContains(t, err, "line 8")
	require.ErrorContains(t, err, "line 9", "all unknown lines are named")
}

func TestFaultUndefinedRegister(t *testing.T) {
	for _, body := range []string{
		"add.s32 %r1, %r2, 1; ret;",
		"ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], %r1; ret;",
		"ld.param.u64 %rd1, [p]; mov.u32 %r2, %r1; st.global.u32 [%rd1], %r2; ret;", // a copy carries it along
		"ld.global.u32 %r1, [%rd1]; ret;",
		"@%p1 mov.u32 %r1, 0; ret;",
		"selp.b32 %r1, 1, %r2, %p1; ret;",
		"mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 63; @%p1 mov.u32 %r2, 1; add.s32 %r3, %r2, 1; ret;", // one lane of 64
	} {
		_, err := runSnippet(t, body, 0)
		requireFault(t, err, ErrUndefined, "never written")
	}
	// A value that is not taken need not be there.
	_, err := runSnippet(t, "setp.eq.s32 %p1, 0, 0; selp.b32 %r1, 1, %r2, %p1; mov.u32 %r3, %r4; ret;", 0)
	require.NoError(t, err)
	// A block does not see what the block before it left in its registers.
	m, err := Parse(snippet("mov.u32 %r1, %ctaid.x; setp.eq.s32 %p1, %r1, 0; @%p1 mov.u32 %r2, 1; add.s32 %r3, %r2, 1; ret;"))
	require.NoError(t, err)
	d := newDevice(t)
	requireFault(t, d.launch(m.Kernel("k"), 0, 2, 32, uint64(0)), ErrUndefined, "block [1 0 0]")
}

func TestFaultsOfOtherKinds(t *testing.T) {
	for _, c := range []struct {
		body string
		is   error
	}{
		{"trap; ret;", ErrTrap},
		{"mov.u32 %r1, 0; div.u32 %r2, 5, %r1; ret;", ErrArgument},
		{"mov.u32 %r1, 0; rem.s32 %r2, 5, %r1; ret;", ErrArgument},
		{"mov.u64 %rd1, 0; ld.global.u32 %r1, [%rd1]; ret;", ErrBounds},
		{"mov.u64 %rd1, 0; ld.shared.u32 %r1, [%rd1]; ret;", ErrBounds},
		{"mov.u32 %r1, s; ld.shared.u32 %r2, [%r1+512]; ret;", ErrBounds},
		{"mov.u32 %r1, s; ld.shared.u32 %r2, [%r1+2]; ret;", ErrAlignment},
		{"ld.param.u64 %rd1, [p+8]; ret;", ErrBounds},
		{"mov.u64 %rd1, s; ld.global.u32 %r1, [%rd1]; ret;", ErrBounds}, // a shared address
		{"mov.u64 %rd1, -4; ld.global.u32 %r1, [%rd1]; ret;", ErrBounds},
	} {
		_, err := runSnippet(t, c.body, 1)
		requireFault(t, err, c.is)
	}
	m, err := Parse(snippet("L: bra.uni L;"))
	require.NoError(t, err)
	_, err = m.Kernel("k").Run(NewMemory(), Config{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: make([]byte, 8), Limit: 1000})
	requireFault(t, err, ErrLimit)
	// A value from a lane that is not there has no definition.
	m, err = Parse(snippet("mov.u32 %r1, 1; shfl.sync.idx.b32 %r2, %r1, 20, 31, -1; add.s32 %r3, %r2, 1; ret;"))
	require.NoError(t, err)
	requireFault(t, newDevice(t).launch(m.Kernel("k"), 0, 1, 16, uint64(0)), ErrUndefined)
	// A word of constants cannot be written.
	m = edit(t, "reduce", "ld.const.u32 \t%r10, [%rd2]", "mov.u32 %r10, 1; st.global.u32 [%rd2], %r10")
	d := newDevice(t)
	err = m.Kernel("reverse").Launch(d.mem, [3]uint32{1, 1, 1}, [3]uint32{32, 1, 1}, 32,
		pack(t, m.Kernel("reverse"), room[byte](d, 32), put(d, make([]byte, 32)), room[uint32](d, 1)))
	requireFault(t, err, ErrBounds, ".const")
}

func TestRefusedLaunches(t *testing.T) {
	k := load(t, "elementwise").Kernel("axpy") // .maxntid 256
	params := make([]byte, k.ParamBytes)
	one := [3]uint32{1, 1, 1}
	for _, c := range []Config{
		{Grid: one, Block: [3]uint32{257, 1, 1}, Params: params},
		{Grid: one, Block: [3]uint32{32, 0, 1}, Params: params},
		{Grid: [3]uint32{0, 1, 1}, Block: one, Params: params},
		{Grid: [3]uint32{1, 65536, 1}, Block: one, Params: params},
		{Grid: one, Block: one, Params: params[1:]},
		{Grid: one, Block: one, Params: params, Shared: 1 << 20},
		{Grid: one, Block: one, Params: params, Shared: -1},
	} {
		_, err := k.Run(NewMemory(), c)
		require.ErrorIs(t, err, ErrLaunch)
	}
	m, err := Parse(strings.Replace(snippet("ret;"), ")\n{", ")\n.reqntid 64\n{", 1))
	require.NoError(t, err)
	require.Equal(t, [3]uint32{64, 1, 1}, m.Kernel("k").ExactThreads)
	require.ErrorIs(t, newDevice(t).launch(m.Kernel("k"), 0, 1, 32, uint64(0)), ErrLaunch)
	require.NoError(t, newDevice(t).launch(m.Kernel("k"), 0, 1, 64, uint64(0)))
}

// Races in global memory: between blocks, which nothing orders, and inside one.
func TestFaultRaceInGlobalMemory(t *testing.T) {
	const start = "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd2, %r1, 4;" +
		"mul.wide.u32 %rd3, %r2, 128; add.s64 %rd2, %rd1, %rd2; add.s64 %rd4, %rd2, %rd3; setp.eq.s32 %p1, %r1, 0;"
	for body, race := range map[string]string{
		"st.global.u32 [%rd4], %r1;":                                                                 "", // each thread of each block has its own word
		"st.global.u32 [%rd2], %r1;":                                                                 "a thread of another block",
		"ld.global.u32 %r3, [%rd2]; @%p1 st.global.u32 [%rd4], %r1;":                                 "block",
		"ld.global.u32 %r3, [%rd2]; ld.global.u32 %r3, [%rd1]; ld.global.nc.u32 %r3, [%rd4];":        "",
		"@%p1 atom.global.add.u32 %r3, [%rd1], 1; @%p1 st.volatile.global.u32 [%rd1], 1;":            "",
		"@%p1 atom.global.add.u32 %r3, [%rd1], 1; @%p1 ld.global.u32 %r3, [%rd1];":                   "of another block",
		"st.volatile.global.u32 [%rd1], 1; ld.relaxed.gpu.global.u32 %r3, [%rd1];":                   "",
		"st.global.u32 [%rd4], %r1; xor.b32 %r1, %r1, 1;":                                            "",
		"@%p1 st.global.u32 [%rd4+4], 1; bar.sync 0; ld.global.u32 %r3, [%rd4];":                     "",
		"@%p1 st.global.u32 [%rd4+4], 1; bar.warp.sync -1; ld.global.u32 %r3, [%rd4];":               "",
		"@%p1 st.global.u32 [%rd4+4], 1; ld.global.u32 %r3, [%rd4];":                                 "thread [",
		"ld.global.u32 %r3, [%rd4]; bar.sync 0; ld.global.u32 %r3, [%rd2]; st.global.u32 [%rd4], 1;": "block",
	} {
		m, err := Parse(snippet(start + body + "ret;"))
		require.NoError(t, err)
		for seed := range uint64(4) {
			d := newDevice(t)
			err := d.launch(m.Kernel("k"), seed, 3, 32, put(d, make([]uint32, 128)))
			if race == "" {
				require.NoError(t, err, body)
				continue
			}
			requireFault(t, err, ErrRace, race)
		}
	}
}

// A kernel whose result depends on which block comes first gives several results.
func TestOrderOfBlocks(t *testing.T) {
	m, err := Parse(snippet("mov.u32 %r1, %ctaid.x; ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], %r1; ret;"))
	require.NoError(t, err)
	seen := map[uint32]bool{}
	for seed := range uint64(8) {
		var last uint32
		for range 2 { // the same seed gives the same order
			d := newDevice(t)
			d.mem.Races = false
			at := put(d, []uint32{0})
			require.NoError(t, d.launch(m.Kernel("k"), seed, 10, 32, at))
			got := get[uint32](d, at, 1)[0]
			require.True(t, last == 0 || last == got)
			last = got
		}
		seen[last] = true
	}
	require.Greater(t, len(seen), 2)
}
