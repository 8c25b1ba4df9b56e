package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels/cuda/ptx"
	"github.com/gnnstore/gnnstore/store/storetest"
)

const root = "../.."

// The MANIFEST and the table describe the committed sources and PTX. Whoever changes one without
// the other learns it here, with or without the compiler.
func TestManifest(t *testing.T) {
	compiled := map[string][]byte{}
	for _, name := range ptx.Files() {
		text, err := ptx.Source(name)
		require.NoError(t, err)
		compiled[name] = text
	}
	sources, _, err := sourceNames(root)
	require.NoError(t, err)
	require.Equal(t, sources, ptx.Files(), "run go generate ./kernels/cuda/ptx")
	d, err := describe(root, manifestLine(t, "compiler"), compiled)
	require.NoError(t, err)
	require.Equal(t, ptx.Manifest(), d.manifest(), "run go generate ./kernels/cuda/ptx")
	table, err := os.ReadFile(filepath.Join(root, tableFile))
	require.NoError(t, err)
	require.Equal(t, string(table), d.table(), "run go generate ./kernels/cuda/ptx")
}

// manifestLine returns the rest of the MANIFEST's line that begins so.
func manifestLine(t *testing.T, begin string) string {
	for line := range strings.Lines(ptx.Manifest()) {
		if rest, ok := strings.CutPrefix(line, begin+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	require.FailNow(t, "the MANIFEST has no line", begin)
	return ""
}

// The MANIFEST's compiler makes the committed PTX, byte for byte.
func TestRecompile(t *testing.T) {
	storetest.Long(t)
	want := manifestLine(t, "compiler")
	version, err := compilerVersion()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skipf("no tool: %s is not installed", compiler)
	}
	require.NoError(t, err)
	if version != want {
		t.Skipf("another version: %s is %q, and the PTX is of %q", compiler, version, want)
	}
	for _, name := range ptx.Files() {
		t.Run(name, func(t *testing.T) {
			committed, err := ptx.Source(name)
			require.NoError(t, err)
			text, err := compile(root, name)
			require.NoError(t, err)
			if digest(text) != digest(committed) {
				t.Errorf("%s.ptx is not what %s makes of %s.cu: run go generate ./kernels/cuda/ptx", name, compiler, name)
			}
		})
	}
}

// Wide variants move 16 bytes at a time, and no others do.
func TestWide(t *testing.T) {
	kernels, err := ptx.Kernels()
	require.NoError(t, err)
	wide := 0
	for name, k := range kernels {
		if strings.HasSuffix(name, "_wide") {
			wide++
			require.NotZero(t, k.WideLoads+k.WideStores, name)
			element, ok := kernels[strings.TrimSuffix(name, "_wide")]
			if ok {
				require.Equal(t, element.Params, k.Params, name)
				require.Zero(t, element.WideLoads+element.WideStores, element.Name)
			}
		}
		require.LessOrEqual(t, k.Shared, 48<<10, name) // what a block has without asking
	}
	require.NotZero(t, wide)
}

// What kernels may not have is refused.
func TestForbidden(t *testing.T) {
	const kernel = ".visible .entry k(\n\t.param .u64 k_param_0,\n\t.param .f32 k_param_1\n)\n{\n\t%s\n\tret;\n\n}\n"
	for line, why := range map[string]string{
		"st.local.f32 [%rd1], %f1;":            "local memory",
		"atom.global.add.f32 %f1, [%rd1], %f2": "an atomic operation on floats",
		"red.global.add.f64 [%rd1], %fd2":      "an atomic operation on floats",
		"tanh.approx.f32 %f1, %f2;":            "tanh.approx",
		"ex2.approx.ftz.f32 %f1, %f2;":         "an approximation",
		"div.full.f32 %f1, %f2, %f3;":          "an approximation",
		"call.uni (retval0), expf, (param0);":  "a call",
	} {
		_, err := ptx.Parse("file", strings.Replace(kernel, "%s", line, 1))
		require.ErrorContains(t, err, why, line)
	}
	kernels, err := ptx.Parse("file", strings.Replace(kernel, "%s", "atom.cas.b64 %rd1, [%rd2], 0, %rd3;", 1))
	require.NoError(t, err)
	require.Equal(t, []ptx.Kernel{{Name: "k", File: "file", Size: 12,
		Params: []ptx.Param{{Kind: "u64", Offset: 0, Size: 8}, {Kind: "f32", Offset: 8, Size: 4}}}}, kernels)
}

// The codes of the error word have the names that gpu.h gives them.
func TestCodes(t *testing.T) {
	header, err := os.ReadFile(filepath.Join(root, sourceDir, "gpu.h"))
	require.NoError(t, err)
	_, list, ok := strings.Cut(string(header), "enum code : u32 {")
	require.True(t, ok)
	list, _, _ = strings.Cut(list, "}")
	codes := regexp.MustCompile(`(\w+) = (\d+),`).FindAllStringSubmatch(list, -1)
	require.NotEmpty(t, codes)
	for _, c := range codes {
		n, err := strconv.ParseUint(c[2], 10, 32)
		require.NoError(t, err)
		operation, place, ok := ptx.Failure(n<<32 | 77)
		require.True(t, ok)
		require.Equal(t, c[1], operation)
		require.Equal(t, uint32(77), place)
	}
	operation, _, ok := ptx.Failure(uint64(len(codes)+1) << 32)
	require.True(t, ok)
	require.Equal(t, "operation "+strconv.Itoa(len(codes)+1), operation)
	_, _, ok = ptx.Failure(0)
	require.False(t, ok)
}
