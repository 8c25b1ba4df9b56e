package interp

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/ptx"
)

// The tests of this file plant mistakes in kernels that ship, and in calls of them.

// newPair returns operands that lie at multiples of 16, and the kernels that ship.
func newPair(t *testing.T, seed uint64) *pair {
	all, err := shipped()
	require.NoError(t, err)
	p := &pair{device: newDevice(t), kernels: all, ref: kernels.NewReference(), seed: seed}
	p.word = put(p.device, []uint64{0})
	return p
}

// entries matches the kernels of a file.
var entries = regexp.MustCompile(`(?s)\.visible \.entry .*?\n}\n`)

// cut returns the text of a kernel, and what a file has beside its kernels.
func cut(t *testing.T, file, name string) (kernel, rest string) {
	text, err := ptx.Source(file)
	require.NoError(t, err)
	rest = entries.ReplaceAllStringFunc(string(text), func(k string) string {
		if strings.HasPrefix(k, ".visible .entry "+name+"(") {
			kernel = k
		}
		return ""
	})
	require.NotEmpty(t, kernel)
	return kernel, rest
}

// planted returns a pair that has one kernel, which may have been changed.
func planted(t *testing.T, seed uint64, text string) *pair {
	m, err := Parse(text)
	require.NoError(t, err)
	p := newPair(t, seed)
	p.kernels = map[string]*Kernel{}
	for _, name := range m.Kernels() {
		p.kernels[name] = m.Kernel(name)
	}
	return p
}

// gather runs gather_rows_wide after args were changed.
func (p *pair) gather(change func(args []any)) error {
	const rows, table, cols = 12, 7, 16
	args := []any{p.normal(rows, cols, 1).at, p.normal(table, cols, 2).at,
		p.uints([]uint32{0, 1, 2, 3, 4, 5, 6, 7, 6, 5, 4, 3}).at, rows, table, cols, 2, p.word}
	change(args)
	return p.run("gather_rows_wide", [3]uint32{2, 1, 1}, args...)
}

func TestPlantedRowTooFar(t *testing.T) {
	for seed := range uint64(3) {
		p := newPair(t, seed)
		err := p.gather(func(args []any) { args[4] = 8 }) // id 7 is now believed to be there
		requireFault(t, err, ErrBounds, "gather_rows_wide: line ", "ld.global.nc.v4.f32", "past the end of the 448 bytes", "thread [")
		err = p.gather(func(args []any) { args[3] = 13 })
		requireFault(t, err, ErrBounds, "48 bytes")
	}
}

// Each operand of a wide kernel that starts 4 bytes late is found.
func TestPlantedOddOffset(t *testing.T) {
	p := newPair(t, 1)
	for i, opcode := range []string{"st.global.v4.f32", "ld.global.nc.v4.f32"} {
		err := p.gather(func(args []any) { args[i] = args[i].(uint64) + 4 })
		requireFault(t, err, ErrAlignment, "gather_rows_wide: line ", opcode, "4 bytes into the")
	}
	a, b, dst := p.normal(20, 16, 1), p.normal(20, 16, 2), p.normal(20, 20, 3)
	for i := range 2 {
		at := [2]uint64{a.at, b.at}
		at[i] += 4
		err := p.run("matmul_nt_small_wide", [3]uint32{1, 1, 1}, dst, at[0], at[1], 0, 20, 20, 16, 16, 0, 0, 0, 0)
		requireFault(t, err, ErrAlignment, "ld.global.nc.v4.f32")
	}
}

// Each pair of parameters of one size that changes places is found: by the addresses, by the error
// word, or in the results.
func TestPlantedSwappedParameters(t *testing.T) {
	const rows, table, cols = 12, 7, 16
	found := 0
	for i := range 8 {
		for j := range i {
			p := newPair(t, 1)
			p.limit = 1e5 // some pairs make a loop that does not end
			sizes := p.kernels["gather_rows_wide"].Params
			if sizes[i].Size != sizes[j].Size {
				continue
			}
			dst, src, ids := p.normal(rows, cols, 1), p.normal(table, cols, 2), p.ids(rows, table, 3)
			args := []any{dst, src, ids, rows, table, cols, 2, p.word}
			args[i], args[j] = args[j], args[i]
			err := p.run("gather_rows_wide", [3]uint32{2, 1, 1}, args...)
			p.ref.GatherRows(dst.twin, src.twin, ids.twin)
			want := make([]float32, rows*cols)
			p.ref.DownloadF32(want, dst.twin)
			word := get[uint64](p.device, p.word, 1)[0]
			if err == nil && word == 0 {
				require.NotEqual(t, want, get[float32](p.device, dst.at, rows*cols), "parameters %d and %d", j, i)
			}
			found++
		}
	}
	require.Equal(t, 12, found)
}

// A barrier that is left out of a kernel is found in every order of warps. needless has those that
// can be left out: at the end of sort_scan's loop a thread goes on to write what only it has read,
// and sum_squares has two barriers (0 is the end of its loop) where either one does.
func TestPlantedBarrierLeftOut(t *testing.T) {
	barrier := regexp.MustCompile(`(?m)^\s*bar\.sync\s+0;$`)
	for _, c := range []struct {
		file, name string
		needless   []int
		run        func(p *pair) error
	}{
		{"sort", "sort_small", nil, func(p *pair) error {
			const n = 700
			return p.run("sort_small", [3]uint32{1, 1, 1}, room[uint32](p.device, n), room[uint32](p.device, n), p.ids(n, 200, 1), n, 8)
		}},
		{"sort", "sort_count", nil, func(p *pair) error {
			const n = 5000
			return p.run("sort_count", [3]uint32{1, 1, 1}, room[uint32](p.device, 48), p.ids(n, 200, 1), n, 3, 0)
		}},
		{"sort", "sort_scan", []int{0}, func(p *pair) error {
			return p.run("sort_scan", [3]uint32{1, 1, 1}, p.ids(5000, 9, 1), 5000)
		}},
		{"matmul", "matmul_nt_small", nil, func(p *pair) error {
			return p.run("matmul_nt_small", [3]uint32{1, 1, 1}, p.normal(20, 20, 1), p.normal(20, 50, 2), p.normal(20, 50, 3), 0, 20, 20, 50, 50, 0, 0, 0, 0)
		}},
		{"optim", "sum_squares", []int{0, 9}, func(p *pair) error {
			x := p.normal(1, 9000, 1)
			return p.run("sum_squares", [3]uint32{1, 1, 1}, room[float64](p.device, 2), put(p.device, []uint64{x.at, 9000, 0}), 1, 2)
		}},
		{"optim", "clip_factor", nil, func(p *pair) error {
			table, parts := put(p.device, []uint64{0, 9000, 0, 0, 50, 2}), put(p.device, []float64{1, 2, 3})
			return p.run("clip_factor", [3]uint32{1, 1, 1}, p.normal(1, 1, 1), p.normal(2, 1, 2), parts, table, 2, 3, 1.5)
		}},
	} {
		kernel, rest := cut(t, c.file, c.name)
		for seed := range uint64(2) {
			require.NoError(t, c.run(planted(t, seed, rest+kernel)))
		}
		var left []int
		for i, at := range barrier.FindAllStringIndex(kernel, -1) {
			for seed := range uint64(2) {
				err := c.run(planted(t, seed, rest+kernel[:at[0]]+kernel[at[1]:]))
				if err == nil {
					left = append(left, i)
					break
				}
				requireFault(t, err, ErrRace, c.name+": line ", "block [0 0 0], thread [")
			}
		}
		require.Equal(t, c.needless, left, c.name)
	}
}

// tanh.approx is too coarse for the tolerance that operations have, 2e-6.
func TestPlantedTanhApprox(t *testing.T) {
	const n = 100
	load, store := regexp.MustCompile(`ld\.global\.f32 \t(%f\d+),`), regexp.MustCompile(`st\.global\.f32 \t(\[%rd\d+\]), (%f\d+);`)
	kernel, rest := cut(t, "activation", "tanh_cell")
	from := load.FindAllStringSubmatch(kernel, -1)
	require.Len(t, from, 2) // in the loop, and unrolled before it
	i := -1
	kernel = store.ReplaceAllStringFunc(kernel, func(s string) string {
		i++
		return "tanh.approx.f32 " + store.FindStringSubmatch(s)[2] + ", " + from[i][1] + "; " + s
	})
	require.Equal(t, 1, i)
	p := planted(t, 1, rest+kernel)
	src, dst := p.normal(1, n, 1), p.normal(1, n, 2)
	p.must("tanh_cell", 1, dst, src, n)
	p.ref.Tanh(dst.twin, src.twin)
	want := make([]float32, n)
	p.ref.DownloadF32(want, dst.twin)
	var worst float64
	for i, v := range get[float32](p.device, dst.at, n) {
		worst = max(worst, math.Abs(float64(v-want[i])))
	}
	require.Greater(t, worst, 1e-4)
	require.Less(t, worst, 1e-3)
}

// A shuffle that half of a warp leaves out is found, whichever of the kernel's it is.
func TestPlantedDivergentShuffle(t *testing.T) {
	const rows, cols = 5, 40
	shuffle := regexp.MustCompile(`(?m)^\s*(shfl\.sync\S*\s+(%r\d+),.*;)$`)
	kernel, rest := cut(t, "norm", "layer_norm")
	places := shuffle.FindAllStringSubmatchIndex(kernel, -1)
	require.Len(t, places, 10)
	for _, at := range places {
		p := planted(t, 1, rest+kernel[:at[0]]+
			"{ .reg .pred q; .reg .b32 z; mov.u32 z, %tid.x; and.b32 z, z, 16; setp.eq.u32 q, z, 0;"+
			"mov.b32 "+kernel[at[4]:at[5]]+", 0; @q "+kernel[at[2]:at[3]]+" }"+kernel[at[1]:])
		err := p.run("layer_norm", [3]uint32{1, 1, 1}, p.normal(rows, cols, 1), p.normal(rows, 2, 2), p.normal(rows, cols, 3),
			p.normal(1, cols, 4), p.normal(1, cols, 5), rows, cols, float32(1e-5), 0, 0, 0, 0, float32(1))
		requireFault(t, err, ErrDivergent, "layer_norm: line ", "lanes 0-15 wait at line")
	}
}
