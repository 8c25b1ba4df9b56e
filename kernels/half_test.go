package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
)

// TestHalfToFloat32Exhaustively compares all patterns with the definition and with an
// implementation that is not ours.
func TestHalfToFloat32Exhaustively(t *testing.T) {
	halves := make([]uint16, 1<<16)
	for i := range halves {
		halves[i] = uint16(i)
	}
	for _, set := range Sets() {
		got, r := make([]float32, len(halves)), routinesOf(set)
		r.widen(got, halves)
		for i, h := range halves {
			bits := math.Float32bits(got[i])
			if want := math.Float32bits(float16.Frombits(h).Float32()); bits != want {
				t.Fatalf("%s: %#04x: %#08x, x448/float16 has %#08x", set, h, bits, want)
			}
			ref := halfToFloatRef[float32](h)
			if ref != ref {
				require.True(t, got[i] != got[i], "%#04x", h)
			} else if math.Float32bits(ref) != bits {
				t.Fatalf("%s: %#04x: %#08x, by definition %#08x", set, h, bits, math.Float32bits(ref))
			}
			if one := math.Float32bits(halfToFloat32(h)); one != bits {
				t.Fatalf("%s: %#04x: %#08x alone, %#08x in a slice", set, h, one, bits)
			}
		}
	}
}

// TestFloat32ToHalf covers every half, what lies around every midpoint between two, and random
// bits.
func TestFloat32ToHalf(t *testing.T) {
	var values []float32
	for h := range uint32(1 << 16) {
		v := math.Float32bits(halfToFloatRef[float32](uint16(h)))
		middle := v + 1<<12
		for _, bits := range []uint32{v, v - 1, v + 1, middle, middle - 1, middle + 1} {
			values = append(values, math.Float32frombits(bits))
		}
	}
	for i := range uint32(2048) { // midpoints of subnormals, and their neighbours
		middle := math.Float32bits((float32(i) + 0.5) * 0x1p-24)
		for _, bits := range []uint32{middle, middle - 1, middle + 1} {
			values = append(values, math.Float32frombits(bits), -math.Float32frombits(bits))
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1 << 19 {
		values = append(values, math.Float32frombits(rng.Uint32()))
	}
	for _, set := range Sets() {
		got, r := make([]uint16, len(values)), routinesOf(set)
		overflowed, want := r.narrow(got, values), 0
		for i, v := range values {
			if theirs := float16.Fromfloat32(v).Bits(); got[i] != theirs {
				t.Fatalf("%s: %#08x (%v): %#04x, x448/float16 has %#04x", set, math.Float32bits(v), v, got[i], theirs)
			}
			if ref := floatToHalfRef(float64(v)); v == v && got[i] != ref {
				t.Fatalf("%s: %#08x (%v): %#04x, by definition %#04x", set, math.Float32bits(v), v, got[i], ref)
			}
			if math.Abs(float64(v)) >= 65520 && !math.IsInf(float64(v), 0) {
				want++
			}
		}
		require.Equal(t, want, overflowed, set)
	}
}

func TestFloat32ToHalfCountsOverflow(t *testing.T) {
	inf := float32(math.Inf(1))
	f := func(v float32, want int) {
		t.Helper()
		require.Equal(t, want, Float32ToHalf(make([]uint16, 1), []float32{v}), "%v", v)
	}
	f(65504, 0)
	f(65519.996, 0)
	f(65520, 1)
	f(-65520, 1)
	f(math.MaxFloat32, 1)
	f(inf, 0)
	f(-inf, 0)
	f(float32(math.NaN()), 0)
	f(0, 0)
}

func TestHalfRefusesUnequalLengths(t *testing.T) {
	require.PanicsWithValue(t, "kernels: HalfToFloat32: dst has 3 elements, src 5", func() {
		HalfToFloat32(make([]float32, 3), make([]uint16, 5))
	})
	require.PanicsWithValue(t, "kernels: Float32ToHalf: dst has 5 elements, src 3", func() {
		Float32ToHalf(make([]uint16, 5), make([]float32, 3))
	})
}

// TestNeighborMeanHalfEqualsWideningFirst holds the promise of NeighborMeanHalf, bit for bit:
// subnormals, Inf and NaN included.
func TestNeighborMeanHalfEqualsWideningFirst(t *testing.T) {
	const rows, cols, dsts, edges = 64, 37, 200, 2000
	rng := rand.New(rand.NewPCG(3, 4))
	halves := make([]uint16, rows*cols)
	for i := range halves {
		halves[i] = uint16(rng.Uint32())
		if i/cols%4 != 0 { // one row in four may hold Inf and NaN
			halves[i] &^= 0x4000
		}
		if i/cols%4 == 1 {
			halves[i] &= 0x83ff
		}
	}
	wide := make([]float32, len(halves))
	HalfToFloat32(wide, halves)
	start, end, nbr := make([]uint32, dsts), make([]uint32, dsts), make([]uint32, edges)
	for i := range start {
		start[i] = rng.Uint32N(edges - 10)
		end[i] = start[i] + uint32(i%10)
	}
	for i := range nbr {
		nbr[i] = rng.Uint32N(rows)
	}
	got, want := make([]float32, dsts*cols), make([]float32, dsts*cols)
	NeighborMeanHalf(got, halves, cols, start, end, nbr)
	NeighborMean(want, wide, cols, start, end, nbr)
	for i := range got {
		if g, w := got[i], want[i]; math.Float32bits(g) != math.Float32bits(w) && (g == g || w == w) {
			t.Fatalf("element %d: %v, widened first %v", i, g, w)
		}
	}
}

// TestSumHalvesSeesWhatIsNotFinite at every place of a list, and takes nothing finite for it: the
// plain sum is three times slower.
func TestSumHalvesSeesWhatIsNotFinite(t *testing.T) {
	const cols = 3
	list := []uint32{0, 1, 2, 3, 4, 5, 6}
	src := make([]uint16, len(list)*cols)
	sum := make([]float32, cols)
	for i := range src {
		src[i] = 0x7bff - uint16(i)*0x0321 // exponents 11 … 30
	}
	require.True(t, sumHalves(sum, src, list))
	for i := range src {
		for _, h := range []uint16{0x7c00, 0xfc00, 0x7e00, 0xfc01} {
			finite := src[i]
			src[i] = h
			require.False(t, sumHalves(sum, src, list), "element %d is %#04x", i, h)
			src[i] = finite
		}
	}
}
