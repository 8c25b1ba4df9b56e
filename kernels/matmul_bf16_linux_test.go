//go:build amd64 && !purego

package kernels

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// halves is guarded memory for 16-bit numbers.
func (f guarded) halves() guardedHalves {
	return unsafe.Slice((*uint16)(unsafe.Pointer(&f[0])), 2*len(f))
}

type guardedHalves []uint16

func (h guardedHalves) first(n int) []uint16 { return h[:n:n] }
func (h guardedHalves) last(n int) []uint16  { return h[len(h)-n:] }

// rounder rounds some rows: what TestRoundingStaysInside gives to routines.
type rounder struct {
	rows, cols int
	f32        []float32 // what is rounded
	f16        []uint16  // not nil: is rounded instead of f32, which has the same numbers
	want       []uint16  // of f32, rounded as the portable set does
}

func (r rounder) at(row, col int) uint16 {
	if row >= r.rows || col >= r.cols {
		return 0
	}
	return r.want[row*r.cols+col]
}

// roundings lists routines with where each element of dst comes from.
var roundings = []struct {
	name     string
	mostRows int // 0: no bound
	hasHalf  bool
	size     func(rows, cols int) int
	run      func(p *panels, r rounder, dst []uint16)
	from     func(i, rows, cols int) (row, col int)
}{
	{
		name: "roundRows", hasHalf: true,
		size: func(rows, cols int) int { return rows * padded(cols) },
		run:  func(p *panels, r rounder, dst []uint16) { p.rows(r, dst, 2*padded(r.cols), 64) },
		from: func(i, _, cols int) (row, col int) { return i / padded(cols), i % padded(cols) },
	},
	{
		name: "roundRows in blocks", hasHalf: true, mostRows: 32,
		size: func(rows, cols int) int { return padded(cols)*32 - (32-rows)*32 },
		run:  func(p *panels, r rounder, dst []uint16) { p.rows(r, dst, 64, 32*64) },
		from: func(i, rows, _ int) (row, col int) {
			if row = i / 32 % 32; row >= rows {
				return -1, 0
			}
			return row, i/(32*32)*32 + i%32
		},
	},
	{
		name: "roundPairs", hasHalf: true,
		size: func(rows, cols int) int { return (rows + 1) / 2 * 2 * padded(cols) },
		run: func(p *panels, r rounder, dst []uint16) {
			panel := (r.rows + 1) / 2 * 4 * panelCols
			if r.f16 != nil {
				p.roundPairsHalf(&dst[0], panel, &r.f16[0], 2*r.cols, r.rows, r.cols)
				return
			}
			p.roundPairs(&dst[0], panel, &r.f32[0], 4*r.cols, r.rows, r.cols)
		},
		from: func(i, rows, _ int) (row, col int) {
			panel := (rows + 1) / 2 * 2 * panelCols
			in := i % panel
			return in/(2*panelCols)*2 + in%2, i/panel*panelCols + in%(2*panelCols)/2
		},
	},
	{
		name: "turnRows", mostRows: 16,
		// A row of pairs has 32 columns. The routine fills 16 of them, so the last row ends there.
		size: func(_, cols int) int { return padded(cols)*panelCols - panelCols },
		run:  func(p *panels, r rounder, dst []uint16) { p.turnRows(&dst[0], &r.f32[0], 4*r.cols, r.rows, r.cols) },
		from: func(i, rows, _ int) (row, col int) {
			if row = i % (2 * panelCols) / 2; row >= rows {
				return -1, 0
			}
			return row, i/(2*panelCols)*2 + i%2
		},
	},
	{
		name: "turnPairs", mostRows: 32, hasHalf: true,
		size: func(_, cols int) int { return (cols + 15) / 16 * 16 * 32 },
		run: func(p *panels, r rounder, dst []uint16) {
			if r.f16 != nil {
				p.turnPairsHalf(&dst[0], 64, &r.f16[0], 2*r.cols, r.rows, r.cols)
				return
			}
			p.turnPairs(&dst[0], 64, &r.f32[0], 4*r.cols, r.rows, r.cols)
		},
		from: func(i, _, cols int) (row, col int) {
			if col = i / 32; col >= cols {
				return -1, 0
			}
			return i % 32, col
		},
	},
}

// rows rounds rows to rows that start row bytes apart, and every 32 elements step bytes.
func (p *panels) rows(r rounder, dst []uint16, row, step int) {
	if r.f16 != nil {
		p.roundRowsHalf(&dst[0], row, step, &r.f16[0], 2*r.cols, r.rows, r.cols)
		return
	}
	p.roundRows(&dst[0], row, step, &r.f32[0], 4*r.cols, r.rows, r.cols)
}

// ends are the places at both ends of guarded memory.
var ends = []struct {
	name   string
	floats func(f guarded, n int) []float32
	halves func(h guardedHalves, n int) []uint16
}{{"start", guarded.first, guardedHalves.first}, {"end", guarded.last, guardedHalves.last}}

// TestRoundingStaysInside rounds in many shapes at both ends of memory, and compares with
// roundToBF16, bit for bit. What a routine may fill with anything is not compared.
func TestRoundingStaysInside(t *testing.T) {
	if !slices.Contains(SetsOf(BF16), AVX512BF16) {
		t.Skip("no such CPU feature: ", WhyNotBF16())
	}
	p, rng := routinesOf(AVX512BF16).panels, rand.New(rand.NewPCG(5, 4))
	const most = 67
	from, to := newGuarded(t, most*most), newGuarded(t, 96*96)
	check := func(i, rows, cols int, half bool, end int) {
		routine, place, r := roundings[i], ends[end], drawRounder(rng, rows, cols, half)
		if half {
			f16 := place.halves(from.halves(), rows*cols)
			copy(f16, r.f16)
			r.f16 = f16
		} else {
			f32 := place.floats(from, rows*cols)
			copy(f32, r.f32)
			r.f32 = f32
		}
		dst := place.halves(to.halves(), routine.size(rows, cols))
		for i := range dst {
			dst[i] = 0xdead
		}
		routine.run(p, r, dst)
		for i, got := range dst {
			if row, col := routine.from(i, rows, cols); row >= 0 && got != r.at(row, col) {
				require.Fail(t, "wrong bits", "%s %d×%d, half %v, at the %s: element %d is %#04x, not %#04x of row %d column %d",
					routine.name, rows, cols, half, place.name, i, got, r.at(row, col), row, col)
			}
		}
	}
	for i, routine := range roundings {
		for _, rows := range []int{1, 2, 3, 15, 16, 17, 31, 32, 33, most} {
			if routine.mostRows > 0 && rows > routine.mostRows {
				continue
			}
			for _, cols := range []int{1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65} {
				for end := range ends {
					check(i, rows, cols, false, end)
					if routine.hasHalf {
						check(i, rows, cols, true, end)
					}
				}
			}
		}
	}
}

// drawRounder draws rows of all kinds of numbers.
func drawRounder(rng *rand.Rand, rows, cols int, half bool) rounder {
	r := rounder{rows: rows, cols: cols, f32: make([]float32, rows*cols), want: make([]uint16, rows*cols)}
	if half {
		r.f16 = make([]uint16, rows*cols)
		for i := range r.f16 {
			r.f16[i] = uint16(rng.Uint32())
		}
		widenPlain(r.f32, r.f16)
	} else {
		for i := range r.f32 {
			if r.f32[i] = math.Float32frombits(rng.Uint32()); rng.IntN(3) == 0 {
				r.f32[i] = specialFloats[rng.IntN(len(specialFloats))]
			}
		}
	}
	for i, v := range r.f32 {
		r.want[i] = roundToBF16(v)
	}
	return r
}

// TestRoundingEveryBF16 rounds what lies around each bfloat16 and each tie.
func TestRoundingEveryBF16(t *testing.T) {
	if !slices.Contains(SetsOf(BF16), AVX512BF16) {
		t.Skip("no such CPU feature: ", WhyNotBF16())
	}
	p := routinesOf(AVX512BF16).panels
	src, dst := make([]float32, 1<<16), make([]uint16, 1<<16)
	for _, low := range []uint32{0, 1, 0x1234, 0x7fff, 0x8000, 0x8001, 0xedcb, 0xffff} {
		for i := range src {
			src[i] = math.Float32frombits(uint32(i)<<16 | low)
		}
		p.roundRows(&dst[0], 2*len(dst), 64, &src[0], 4*len(src), 1, len(src))
		for i, got := range dst {
			if want := roundToBF16(src[i]); got != want {
				require.Equal(t, want, got, "%#08x", math.Float32bits(src[i]))
			}
		}
	}
}

// TestProductsInBF16StayInside multiplies in every shape of two blocks of tiles, at both ends of
// memory, with packed factors in memory of just their size.
func TestProductsInBF16StayInside(t *testing.T) {
	const most = 35
	dsts, as, bs := newGuarded(t, most*most), newGuarded(t, most*most), newGuarded(t, most*most)
	packed, want := newGuarded(t, 128*64), make([]float32, most*most)
	for _, set := range SetsOf(BF16) {
		panels := routinesOf(set).panels
		if panels == nil {
			continue
		}
		for m := 1; m <= most; m++ {
			for n := 1; n <= most; n++ {
				for i, k := range []int{1, 3, 32, 35} {
					kind, place := (m+n+i)%8, ends[(m+n/8+i)%2]
					s := productShape{m, n, k, kind&1 != 0, kind&2 != 0, kind&4 != 0}
					dst, a, b := place.floats(dsts, m*n), place.floats(as, m*k), place.floats(bs, k*n)
					fillWhole(dst, 3)
					fillWhole(a, 5)
					fillWhole(b, 7)
					copy(want, dst)
					matMulRef(want, a, b, m, n, k, s.transA, s.transB, s.accumulate)
					var own panelScratch
					s.of(panels, make([]float32, m*n), a, b).compute(&own)
					given := place.halves(packed.halves(), len(own.packed))
					scratch := panelScratch{packed: given}
					s.of(panels, dst, a, b).compute(&scratch)
					require.Same(t, &given[0], &scratch.packed[0], "the scratch that was given is used")
					if !slices.Equal(dst, want[:m*n]) {
						require.Equal(t, want[:m*n], dst, "%s %v", set, s)
					}
				}
			}
		}
	}
}
