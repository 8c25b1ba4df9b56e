//go:build cuda && linux

package clib_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/kernels/cuda/ptx"
)

var launchScenarios = []scenario{
	// Kernels of each kind: element by element, with barriers, with exchanges in a warp, and ids.
	{name: "kernels", run: func(t *testing.T, d *device) {
		d.begin()
		d.load("elementwise", "matmul", "norm", "rows")
		s := d.stream()

		const n = 1001
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(i) - 500
		}
		p := upload(d, x...)
		d.launch("scale", driver.Dim{X: 2}, s, d.params("scale").Ptr(p).U64(n-1).F32(0.5))
		d.launch("relu_wide", driver.Dim{X: 3}, s, d.params("relu_wide").Ptr(p).Ptr(p).U64(n))
		got := download[float32](d, p, n, s)
		for i := range got {
			want := max(0, x[i]/2)
			if i == n-1 {
				want = x[i]
			}
			require.Equal(t, want, got[i], "element %d", i)
		}

		const m, cols, k = 70, 50, 33
		a, b := make([]float32, m*k), make([]float32, k*cols)
		for i := range a {
			a[i] = float32(i%7 - 3)
		}
		for i := range b {
			b[i] = float32(i%5 - 2)
		}
		c := d.alloc(4 * m * cols)
		d.launch("matmul_nn_small", driver.Dim{X: 1, Y: 2}, s, d.params("matmul_nn_small").Ptr(c).Ptr(upload(d, a...)).
			Ptr(upload(d, b...)).Ptr(0).U32(m).U32(cols).U32(k).U32(k).U32(0))
		got = download[float32](d, c, m*cols, s)
		for i := range m {
			for j := range cols {
				var sum float32 // of small integers: exact
				for l := range k {
					sum += a[i*k+l] * b[l*cols+j]
				}
				require.Equal(t, sum, got[i*cols+j], "element %d, %d", i, j)
			}
		}

		norms := d.alloc(4 * 3)
		d.launch("row_norms", driver.Dim{}, s,
			d.params("row_norms").Ptr(norms).Ptr(upload(d, x[:300]...)).U32(3).U32(100))
		for r, norm := range download[float32](d, norms, 3, s) {
			var sum float64
			for _, v := range x[100*r:][:100] {
				sum += float64(v) * float64(v)
			}
			require.InDelta(t, math.Sqrt(sum), norm, 1e-3)
		}
	}},

	// An id out of range is left out, and the error word names its place.
	{name: "error-word", run: func(t *testing.T, d *device) {
		d.begin()
		d.load("rows")
		table, ids, word := upload[float32](d, 1, 2, 3), upload[uint32](d, 2, 3, 0), upload[uint64](d, 0)
		dst := upload[float32](d, 9, 9, 9)
		d.launch("gather_rows", driver.Dim{}, 0,
			d.params("gather_rows").Ptr(dst).Ptr(table).Ptr(ids).U32(3).U32(3).U32(1).U32(0).Ptr(word))
		require.Equal(t, []float32{3, 9, 1}, download[float32](d, dst, 3, 0))
		operation, place, bad := ptx.Failure(download[uint64](d, word, 1, 0)[0])
		require.True(t, bad)
		require.Equal(t, "GatherRows", operation)
		require.EqualValues(t, 1, place)
		require.NoError(t, d.CtxSynchronize())
	}},

	// Arguments are taken when the launch is queued.
	{name: "parameters-are-copied", run: func(t *testing.T, d *device) {
		d.begin()
		d.load("elementwise")
		p, s := d.alloc(4*4), d.stream()
		params := d.params("fill")
		for i := range 4 {
			params.Start(d.kernels["fill"].list).Ptr(p + driver.Ptr(4*i)).U64(1).F32(float32(i))
			d.launch("fill", driver.Dim{}, s, params)
		}
		require.Equal(t, []float32{0, 1, 2, 3}, download[float32](d, p, 4, s))
	}},

	{name: "launches-refused", run: func(t *testing.T, d *device) {
		d.begin()
		d.load("elementwise")
		f, p := d.kernels["fill"], d.alloc(64)
		good := func() *driver.Params { return d.params("fill").Ptr(p).U64(1).F32(1) }
		one, block := driver.Dim{X: 1}, driver.Dim{X: 256}
		require.NoError(t, d.LaunchKernel(f.Function, one, block, 0, 0, good()))
		for _, c := range []struct {
			name        string
			f           driver.Function
			grid, block driver.Dim
			shared      uint32
			s           driver.Stream
			want        driver.Code
		}{
			{"a function that is none", 12345, one, block, 0, 0, 400},
			{"a stream that is none", f.Function, one, block, 0, 54321, 400},
			{"a large grid", f.Function, driver.Dim{X: 1 << 31}, block, 0, 0, driver.ErrInvalidValue},
			{"a wide grid", f.Function, driver.Dim{Y: 65536}, block, 0, 0, driver.ErrInvalidValue},
			{"a deep grid", f.Function, driver.Dim{Z: 65536}, block, 0, 0, driver.ErrInvalidValue},
			{"a large block", f.Function, one, driver.Dim{X: 1025}, 0, 0, driver.ErrInvalidValue},
			{"a block of two rows", f.Function, one, driver.Dim{X: 32, Y: 2}, 0, 0, driver.ErrInvalidValue},
			{"a block above .maxntid", f.Function, one, driver.Dim{X: 512}, 0, 0, driver.ErrLaunchOutOfResources},
			{"much shared memory", f.Function, one, block, 48<<10 + 1, 0, driver.ErrInvalidValue},
		} {
			require.ErrorIs(t, d.LaunchKernel(c.f, c.grid, c.block, c.shared, c.s, good()), c.want, c.name)
		}

		// Parameters of another size. A driver takes those that are too short.
		list := *f.list
		short := list
		short.Params, short.Size = list.Params[:2], 16
		params := good()
		params.Start(&short).Ptr(p).U64(1)
		require.ErrorIs(t, d.LaunchKernel(f.Function, one, block, 0, 0, params), driver.ErrInvalidValue)
		long := list
		long.Size += 8
		params.Start(&long).Ptr(p).U64(1).F32(1)
		require.ErrorIs(t, d.LaunchKernel(f.Function, one, block, 0, 0, params), driver.ErrLaunchOutOfResources)
		params.Start(&driver.ParamList{Kernel: "none"})
		require.ErrorIs(t, d.LaunchKernel(f.Function, one, block, 0, 0, params), driver.ErrInvalidValue)
		require.NoError(t, d.CtxSynchronize()) // none of these lost the context
	}},

	// Every kernel of the PTX is there, and nothing else.
	{name: "modules", run: func(t *testing.T, d *device) {
		d.begin()
		d.load(ptx.Files()...)
		all, err := ptx.Kernels()
		require.NoError(t, err)
		require.Len(t, d.kernels, len(all))
		for name, k := range all {
			for a, want := range map[driver.FuncAttribute]int{
				driver.SharedBytes: k.Shared, driver.MaxThreadsPerBlock: 256, driver.PTXVersion: 78,
				driver.BinaryVersion: 80, driver.LocalBytes: 0, driver.ConstBytes: 0,
			} {
				if a == driver.MaxThreadsPerBlock && strings.HasPrefix(name, "sort_") {
					continue // they have their own
				}
				v, err := d.FuncGetAttribute(a, d.kernels[name].Function)
				require.NoError(t, err)
				require.Equal(t, want, v, "%s, attribute %d", name, a)
			}
			require.Equal(t, k.Size, d.kernels[name].list.Size)
		}
		f := d.kernels["fill"].Function
		_, err = d.FuncGetAttribute(999, f)
		require.ErrorIs(t, err, driver.ErrInvalidValue)
		require.ErrorIs(t, d.FuncSetAttribute(f, driver.Registers, 1), driver.ErrInvalidValue)
		require.ErrorIs(t, d.FuncSetAttribute(f, driver.MaxDynamicShared, 163<<10+1), driver.ErrInvalidValue)
		require.NoError(t, d.FuncSetAttribute(f, driver.MaxDynamicShared, 100<<10))
		v, err := d.FuncGetAttribute(driver.MaxDynamicShared, f)
		require.NoError(t, err)
		require.Equal(t, 100<<10, v)
		for _, c := range []struct{ threads, shared, want int }{
			{256, 0, 8}, {32, 0, 32}, {33, 0, 32}, {255, 0, 8}, {257, 0, 0}, {256, 50 << 10, 3}, {256, 101 << 10, 0},
		} {
			n, err := d.OccupancyMaxActiveBlocksPerMultiprocessor(f, c.threads, uint64(c.shared))
			require.NoError(t, err)
			require.Equal(t, c.want, n, "%v", c)
		}
		_, err = d.OccupancyMaxActiveBlocksPerMultiprocessor(f, 0, 0)
		require.ErrorIs(t, err, driver.ErrInvalidValue)
	}},

	{name: "functions", run: func(t *testing.T, d *device) {
		d.begin()
		const text = header + ".visible .entry fill(.param .u64 a, .param .u64 b, .param .f32 c) { ret; }\n" +
			".visible .entry stranger() .maxntid 64, 2, 1 { ret; }"
		m, _, err := d.ModuleLoadDataEx(text)
		require.NoError(t, err)
		f, err := d.ModuleGetFunction(m, "fill")
		require.NoError(t, err)
		for _, name := range []string{
			"add",      // the host has it, and the module has not
			"stranger", // the other way round
			"",
		} {
			_, err = d.ModuleGetFunction(m, name)
			require.ErrorIs(t, err, driver.ErrNotFound)
		}
		require.NoError(t, d.ModuleUnload(m))
		require.ErrorIs(t, d.ModuleUnload(m), driver.Code(400))
		_, err = d.ModuleGetFunction(m, "fill")
		require.ErrorIs(t, err, driver.Code(400))
		_, err = d.FuncGetAttribute(driver.Registers, f)
		require.ErrorIs(t, err, driver.Code(400))
	}},

	{name: "ptx-refused", run: func(t *testing.T, d *device) {
		d.begin()
		for _, c := range []struct {
			text string
			code driver.Code
			log  string
		}{
			{"", 218, "line 1; fatal   : Missing .version"},
			{"nonsense", 218, "line 1; fatal   : Missing .version"},
			{strings.Replace(header, "7.8", "9.1", 1), 222, "Unsupported .version 9.1; current version is '9.0'"},
			{strings.Replace(header, "7.8", "seven", 1), 218, "line 2; fatal   : Parsing error near 'seven'"},
			{strings.Replace(header, "sm_80", "sm_90", 1), 218, "SM version specified by .target is higher"},
			{strings.Replace(header, "64", "32", 1), 218, "line 4; fatal   : Parsing error near '32'"},
			{header + "garbage", 218, "line 5; fatal   : Parsing error near 'garbage'"},
			{header + "\x01", 218, "Unexpected non-ASCII character"},
			{header + ".visible .entry fill() { ret;", 218, "Parsing error near end of file"},
			{header + ".visible .entry fill(.param .u64) { ret; }", 218, "Parsing error near '{'"},
			{header + ".visible .entry a() { ret; } .entry a() { ret; }", 218, "Duplicate definition of 'a'"},
			{header + ".entry fill(.param .u64 a, .param .u32 b, .param .f32 c) { ret; }", 218, "parameter 1 of kernel"},
			{header + ".entry fill(.param .u64 a, .param .u64 b) { ret; }", 218, "parameter 2 of kernel"},
		} {
			_, log, err := d.ModuleLoadDataEx(c.text)
			require.ErrorIs(t, err, c.code, c.text)
			require.Contains(t, log, c.log, c.text)
			var e *driver.Error
			require.True(t, errors.As(err, &e))
			require.Equal(t, log, e.Log)
		}
	}},
}

const header = "// a comment\n.version 7.8\n.target sm_80\n.address_size 64\n"
