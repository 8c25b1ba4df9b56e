package kernels

import (
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// A fence lays the operands of a routine where a read or write outside them is noticed. Its memory
// is reused by the next trial.
type fence struct {
	kind    fenceKind
	regions [][]byte // as fenced gives them
	used    int
	cells   []func(t *testing.T, note string) // check the guard cells of this trial
}

type fenceKind int

const (
	beforePage  fenceKind = iota // the operand ends where a page begins that must not be touched
	behindPage                   // it begins where such a page ends
	amongCells                   // it lies unaligned among cells that must not change
	fenceKinds                   // how many there are
	regionBytes = 1 << 16
)

func (k fenceKind) String() string {
	return [...]string{"before a page", "behind a page", "among cells"}[k]
}

// reset makes room for the next trial.
func (f *fence) reset(kind fenceKind) { f.kind, f.used, f.cells = kind, 0, nil }

// lay copies values to where f has its operands.
func lay[T float32 | uint8 | uint16 | uint32](f *fence, values []T) []T {
	var element T
	size, n := int(unsafe.Sizeof(element)), len(values)
	if f.used == len(f.regions) {
		f.regions = append(f.regions, fenced(regionBytes))
	}
	region := f.regions[f.used]
	f.used++
	off := 0
	switch f.kind {
	case beforePage:
		off = len(region) - n*size
	case amongCells:
		off = size * (3 + 2*f.used)
		for i := range region {
			region[i] = 0xff // NaN, or no row
		}
		f.cells = append(f.cells, func(t *testing.T, note string) {
			for i, b := range region {
				if b != 0xff && (i < off || i >= off+n*size) {
					require.FailNow(t, "a cell outside was written", "%s: byte %d of an operand of %d", note, i-off, n*size)
				}
			}
		})
	}
	if n == 0 {
		return []T{}
	}
	s := unsafe.Slice((*T)(unsafe.Pointer(&region[off])), n)
	copy(s, values)
	return s
}

// trial computes something with the routines of r from operands that it lays in f, and returns all
// of them, inputs included. It computes the same for any f.
type trial func(r *routines, f *fence) [][]float32

// agree runs a trial with every set, in every kind of fence. A set's results have the same bits
// wherever the operands lie. An assembly set's may differ from the plain functions' by
// tolerance·(1+|x|). NaN must be in the same places.
func agree(t *testing.T, f *fence, tolerance float64, note string, run trial) {
	t.Helper()
	var plain [][]float32
	for _, set := range append([]Set{Portable}, nativeSets()...) {
		r := routinesOf(set)
		var first [][]float32
		for kind := range fenceKinds {
			note := fmt.Sprintf("%s, %s, %s", note, set, kind)
			f.reset(kind)
			for i, got := range run(&r, f) {
				if kind == 0 {
					first = append(first, append([]float32(nil), got...))
				}
				near(t, got, first[i], 0, fmt.Sprintf("%s: operand %d, elsewhere", note, i))
				if set != Portable {
					near(t, got, plain[i], tolerance, fmt.Sprintf("%s: operand %d", note, i))
				}
			}
			for _, check := range f.cells {
				check(t, note)
			}
		}
		if set == Portable {
			plain = first
		}
	}
}

// near compares what a set computed with what is wanted, as nearby does.
func near(t *testing.T, got, want []float32, tolerance float64, note string) {
	t.Helper()
	require.Len(t, got, len(want), note)
	for i, w := range want {
		if !nearby(got[i], w, tolerance) {
			require.FailNow(t, "sets differ", "%s: element %d of %d: %v, plain %v", note, i, len(got), got[i], w)
		}
	}
}

// nearby takes any NaN for another, and a tolerance of 0 for equal bits.
func nearby(got, want float32, tolerance float64) bool {
	if got != got || want != want {
		return got != got && want != want
	}
	if math.Float32bits(got) == math.Float32bits(want) {
		return true
	}
	return tolerance > 0 && math.Abs(float64(got)-float64(want)) <= tolerance*(1+math.Abs(float64(want)))
}

// rowSizes are the columns that tests go through: every tail of every vector, and what takes
// several blocks.
func rowSizes() []int {
	var sizes []int
	for cols := range 71 {
		sizes = append(sizes, cols)
	}
	return append(sizes, 100, 127, 128, 129, 172, 255, 256, 257, 300, 512, 523)
}

// halvesOfFloats narrows.
func halvesOfFloats(values []float32) []uint16 {
	h := make([]uint16, len(values))
	Float32ToHalf(h, values)
	return h
}

// withSpecials replaces some of the values by those that arithmetic gets wrong, at places that move
// through the lanes.
func withSpecials(values []float32, more ...float32) []float32 {
	inf := float32(math.Inf(1))
	specials := []float32{float32(math.NaN()), inf, -inf, 0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, 0x1p-126}
	specials = append(specials, more...)
	for i, at := 0, 1; at < len(values); i++ {
		values[at] = specials[i%len(specials)]
		at += 1 + i%13
	}
	return values
}

// requireSameBits compares also the signs of zeros, and NaN.
func requireSameBits(t *testing.T, want, got []float32) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		if w, g := math.Float32bits(want[i]), math.Float32bits(got[i]); w != g {
			require.Failf(t, "other bits", "element %d: %08x, want %08x", i, g, w)
		}
	}
}
