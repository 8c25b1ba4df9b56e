package kerneltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// rig is a backend under test beside the oracle.
type rig struct {
	t    *testing.T
	b    kernels.Backend
	ref  *kernels.Reference
	rng  *rand.Rand
	made int    // operands so far, which decides where the next one starts
	note string // the case at hand, for messages

	offsets []int                     // where operands start in turn
	round   func([]float32) []float32 // what the backend makes of a product's factor; nil: nothing
}

func newRig(t *testing.T, b kernels.Backend, offsets []int) *rig {
	return &rig{t: t, b: b, ref: kernels.NewReference(), rng: rand.New(rand.NewPCG(7, 11)), offsets: offsets}
}

// alloc returns a buffer of the backend that lives until the test ends.
func (r *rig) alloc(t kernels.DType, n int) kernels.Buffer {
	buf := r.b.Alloc(t, n)
	r.t.Cleanup(func() { r.b.Free(buf) })
	return buf
}

// at names the case at hand.
func (r *rig) at(format string, args ...any) { r.note = fmt.Sprintf(format, args...) }

// operand is one tensor on both sides. It starts off elements into a buffer that ends guardCells
// after it.
type operand struct {
	tensor, oracle kernels.Tensor

	off    int
	floats []float32 // what was uploaded to the whole buffer, by type
	halves []uint16
	uints  []uint32
}

const guardCells = 9

var (
	guardFloat = math.Float32frombits(0x7fc0_dead)
	guardHalf  = uint16(0x7ead)
	guardUint  = uint32(0xdead_dead)
)

// offsets are the places of Run: mostly not at a multiple of a vector, nor all alike.
var offsets = []int{9, 16, 11, 13, 10, 15, 12}

// padded surrounds values with guards.
func padded[T any](values []T, off int, guard T) []T {
	all := make([]T, off+len(values)+guardCells)
	for i := range all {
		all[i] = guard
	}
	copy(all[off:], values)
	return all
}

func (r *rig) operand(t kernels.DType, rows, cols int) operand {
	off := r.offsets[r.made%len(r.offsets)]
	r.made++
	n := off + rows*cols + guardCells
	return operand{
		off:    off,
		tensor: kernels.Tensor{Buf: r.alloc(t, n), Type: t, Off: off, Rows: rows, Cols: cols},
		oracle: kernels.Tensor{Buf: r.ref.Alloc(t, n), Type: t, Off: off, Rows: rows, Cols: cols},
	}
}

// whole is the buffer of a tensor as one row.
func whole(t kernels.Tensor) kernels.Tensor {
	return kernels.Tensor{Buf: t.Buf, Type: t.Type, Rows: 1, Cols: t.Buf.Len()}
}

// floats makes an F32 operand.
func (r *rig) floats(rows, cols int, values []float32) operand {
	o := r.operand(kernels.F32, rows, cols)
	o.floats = padded(values, o.off, guardFloat)
	r.b.UploadF32(whole(o.tensor), o.floats)
	r.ref.UploadF32(whole(o.oracle), o.floats)
	return o
}

// factor makes an F32 operand that a product reads. The oracle gets it rounded.
func (r *rig) factor(rows, cols int, values []float32) operand {
	o := r.floats(rows, cols, values)
	if r.round != nil {
		r.ref.UploadF32(o.oracle, r.round(values))
	}
	return o
}

// halfFactor makes an F16 operand that a product reads. The oracle gets it widened.
func (r *rig) halfFactor(rows, cols int, values []float32) operand {
	o := r.halves(rows, cols, values)
	wide := make([]float32, len(values))
	kernels.HalfToFloat32(wide, o.halves[o.off:o.off+len(values)])
	o.oracle = r.factor(rows, cols, wide).oracle
	return o
}

// roundedToBF16 returns values rounded to the nearest bfloat16, the even one of two.
func roundedToBF16(values []float32) []float32 {
	rounded := make([]float32, len(values))
	for i, v := range values {
		step := math.Ldexp(1, math.Ilogb(float64(v))-7) // between bfloat16 like v
		if rounded[i] = v; step > 0 && !math.IsInf(step, 0) {
			rounded[i] = float32(math.RoundToEven(float64(v)/step) * step)
		}
	}
	return rounded
}

// normal makes an F32 operand of normally distributed values.
func (r *rig) normal(rows, cols int) operand { return r.floats(rows, cols, r.normals(rows*cols)) }

func (r *rig) normals(n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(r.rng.NormFloat64())
	}
	return s
}

// halves makes an F16 operand of the values, rounded.
func (r *rig) halves(rows, cols int, values []float32) operand {
	bits := make([]uint16, len(values))
	kernels.Float32ToHalf(bits, values)
	return r.halfBits(rows, cols, bits)
}

func (r *rig) halfBits(rows, cols int, bits []uint16) operand {
	o := r.operand(kernels.F16, rows, cols)
	o.halves = padded(bits, o.off, guardHalf)
	r.b.UploadHalf(whole(o.tensor), o.halves)
	r.ref.UploadHalf(whole(o.oracle), o.halves)
	return o
}

// uints makes a U32 operand of one column.
func (r *rig) uints(values []uint32) operand {
	o := r.operand(kernels.U32, len(values), 1)
	o.uints = padded(values, o.off, guardUint)
	r.b.UploadU32(whole(o.tensor), o.uints)
	r.ref.UploadU32(whole(o.oracle), o.uints)
	return o
}

// ids makes a U32 operand of n node ids, the extremes among them.
func (r *rig) ids(n int) operand {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = r.rng.Uint32()
	}
	copy(ids, []uint32{0, math.MaxUint32})
	return r.uints(ids)
}

// both runs op here and on the oracle; on picks an operand's tensor of the side that runs.
func (r *rig) both(op func(b kernels.Backend, on func(operand) kernels.Tensor)) {
	op(r.b, func(o operand) kernels.Tensor { return o.tensor })
	op(r.ref, func(o operand) kernels.Tensor { return o.oracle })
}

// unchanged checks inputs: window and guards.
func (r *rig) unchanged(inputs ...operand) {
	r.t.Helper()
	for n, o := range inputs {
		switch o.tensor.Type {
		case kernels.F32:
			r.sameBits(fmt.Sprintf("input %d", n), o.floats, r.download(o))
		case kernels.U32:
			got := make([]uint32, len(o.uints))
			r.b.DownloadU32(got, whole(o.tensor))
			require.Equal(r.t, o.uints, got, "%s: input %d changed", r.note, n)
		case kernels.F16:
			want := make([]float32, len(o.halves))
			kernels.HalfToFloat32(want, o.halves)
			r.sameValues(fmt.Sprintf("input %d", n), want, r.widened(o))
		}
	}
}

// download is the whole buffer of an F32 operand.
func (r *rig) download(o operand) []float32 {
	all := make([]float32, len(o.floats))
	r.b.DownloadF32(all, whole(o.tensor))
	return all
}

func (r *rig) sameBits(what string, want, got []float32) {
	r.t.Helper()
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
			require.FailNow(r.t, "bits differ", "%s: %s: cell %d of %d is %v, not %v", r.note, what, i, len(want), got[i], want[i])
		}
	}
}

// close checks results: the guards are untouched, NaN is where the oracle has NaN, and everything
// else is within tolerance·(1+|x|) of what the oracle has.
func (r *rig) close(tolerance float64, results ...operand) {
	r.t.Helper()
	for n, o := range results {
		all, size := r.download(o), o.tensor.Len()
		r.sameBits(fmt.Sprintf("guards before result %d", n), o.floats[:o.off], all[:o.off])
		r.sameBits(fmt.Sprintf("guards after result %d", n), o.floats[o.off+size:], all[o.off+size:])
		want := make([]float64, size)
		r.ref.DownloadF64(want, o.oracle)
		for i, w := range want {
			if g := all[o.off+i]; !near(float64(g), w, tolerance) {
				require.FailNow(r.t, "wrong result", "%s: result %d (%d×%d), row %d column %d: %v, want %v",
					r.note, n, o.tensor.Rows, o.tensor.Cols, i/o.tensor.Cols, i%o.tensor.Cols, g, w)
			}
		}
	}
}

func near(got, want, tolerance float64) bool {
	if rounded := float64(float32(want)); got == rounded || math.IsInf(rounded, 0) {
		return got == rounded
	}
	if math.IsNaN(want) {
		return math.IsNaN(got)
	}
	return math.Abs(got-want) <= tolerance*(1+math.Abs(want))
}

// closeUints checks a U32 result, exactly.
func (r *rig) closeUints(o operand) {
	r.t.Helper()
	got, want := make([]uint32, len(o.uints)), make([]uint32, len(o.uints))
	copy(want, o.uints)
	r.b.DownloadU32(got, whole(o.tensor))
	r.ref.DownloadU32(want[o.off:o.off+o.tensor.Len()], o.oracle)
	require.Equal(r.t, want, got, r.note)
}

// widened is the whole buffer of an F16 operand, in float32.
func (r *rig) widened(o operand) []float32 {
	all := make([]float32, len(o.halves))
	wide := kernels.Tensor{Buf: r.alloc(kernels.F32, len(all)), Rows: 1, Cols: len(all)}
	r.b.Convert(wide, whole(o.tensor))
	r.b.DownloadF32(all, wide)
	return all
}

// closeHalves checks an F16 result and its guards.
func (r *rig) closeHalves(o operand) {
	r.t.Helper()
	n := o.tensor.Len()
	want, oracle := make([]float32, len(o.halves)), kernels.Tensor{Buf: r.ref.Alloc(kernels.F32, n), Rows: o.tensor.Rows, Cols: o.tensor.Cols}
	kernels.HalfToFloat32(want, o.halves)
	r.ref.Convert(oracle, o.oracle)
	r.ref.DownloadF32(want[o.off:o.off+n], oracle)
	r.sameValues("halves", want, r.widened(o))
}

// sameValues is sameBits for which one NaN is as good as another.
func (r *rig) sameValues(what string, want, got []float32) {
	r.t.Helper()
	for i, w := range want {
		if g := got[i]; g != w && (g == g || w == w) {
			require.FailNow(r.t, "values differ", "%s: %s: cell %d of %d is %v, not %v", r.note, what, i, len(want), g, w)
		}
	}
}

// specials are the values that loops get wrong. float32's largest value overflows when doubled; the
// oracle's result is rounded to float32 before it is compared.
func specials() []float32 {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	return []float32{nan, inf, -inf, 0, float32(math.Copysign(0, -1)), 1, -1, math.MaxFloat32, -math.MaxFloat32, -nan,
		math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-126, 65504}
}

// spread returns n normal values with a special one in every few, at places that move through the
// lanes of a vector.
func (r *rig) spread(n int) []float32 {
	s, special := r.normals(n), specials()
	for i, at := 0, 0; at < n; i++ {
		s[at] = special[i%len(special)]
		at += 1 + i%6
	}
	return s
}
