package kernels

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The tests here hold every assembly routine to its plain function, at every size of tail and place
// in memory. Package kerneltest holds both to the definitions.

const rowsPerTrial = 3

func TestElementwiseSetsAgree(t *testing.T) {
	var f fence
	for _, n := range rowSizes() {
		x := withSpecials(floatsFrom(1, n), math.MaxFloat32)
		y := floatsFrom(2, n)
		for i := range y {
			y[i] = []float32{y[i], 0, float32(math.Copysign(0, -1)), float32(math.NaN()), -1, float32(math.Inf(1))}[i*7%6]
		}
		for name, run := range map[string]trial{
			"fill": func(r *routines, f *fence) [][]float32 {
				dst := lay(f, x)
				r.fill(dst, 2.5)
				return [][]float32{dst}
			},
			"add": func(r *routines, f *fence) [][]float32 {
				dst, src := lay(f, x), lay(f, y)
				r.add(dst, src)
				return [][]float32{dst, src}
			},
			"relu": func(r *routines, f *fence) [][]float32 {
				dst, src := lay(f, y), lay(f, x)
				r.relu(dst, src)
				return [][]float32{dst, src}
			},
			"reluGrad": func(r *routines, f *fence) [][]float32 {
				dx, dy, out := lay(f, floatsFrom(3, n)), lay(f, x), lay(f, y)
				r.reluGrad(dx, dy, out)
				return [][]float32{dx, dy, out}
			},
			"reluMask": func(r *routines, f *fence) [][]float32 {
				d, out := lay(f, x), lay(f, y)
				r.reluMask(d, out)
				return [][]float32{d, out}
			},
			"widen": func(r *routines, f *fence) [][]float32 {
				dst := lay(f, y)
				r.widen(dst, lay(f, halvesOfFloats(x)))
				return [][]float32{dst}
			},
			"narrow": func(r *routines, f *fence) [][]float32 {
				dst := lay(f, make([]uint16, n))
				overflowed := r.narrow(dst, lay(f, x))
				bits := make([]float32, n+1)
				for i, h := range dst {
					bits[i] = float32(h)
				}
				bits[n] = float32(overflowed)
				return [][]float32{bits}
			},
		} {
			agree(t, &f, 0, fmt.Sprintf("%s of %d", name, n), run)
		}
		agree(t, &f, 2e-7, fmt.Sprintf("exp of %d", n), func(r *routines, f *fence) [][]float32 {
			dst, src := lay(f, y), lay(f, x)
			r.exp(dst, src)
			return [][]float32{dst, src}
		})
		agree(t, &f, 1e-6, fmt.Sprintf("adam of %d", n), func(r *routines, f *fence) [][]float32 {
			param, grad, m, v := lay(f, floatsFrom(3, n)), lay(f, floatsFrom(4, n)), lay(f, floatsFrom(5, n)), lay(f, floatsFrom(6, n))
			for i := range v {
				v[i] *= v[i]
			}
			r.adam(param, grad, m, v, AdamStep{LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.1, Correct1: 0.3, Correct2: 0.01})
			return [][]float32{param, grad, m, v}
		})
	}
}

func TestRowsSetsAgree(t *testing.T) {
	var f fence
	for _, cols := range rowSizes() {
		const rows = rowsPerTrial + 2 // four and one, for those that take four at a time
		x := withSpecials(floatsFrom(1, rows*cols))
		for name, run := range map[string]trial{
			"addRow": func(r *routines, f *fence) [][]float32 {
				dst, row := lay(f, x), lay(f, floatsFrom(2, cols))
				r.addRow(dst, row)
				return [][]float32{dst, row}
			},
			"columnSumGrad": func(r *routines, f *fence) [][]float32 {
				drow, src := lay(f, floatsFrom(2, cols)), lay(f, x)
				r.columnSumGrad(drow, src)
				return [][]float32{drow, src}
			},
			"rowNorms": func(r *routines, f *fence) [][]float32 {
				dst, src := lay(f, floatsFrom(2, rows)), lay(f, x)
				r.rowNorms(dst, src, cols)
				return [][]float32{dst, src}
			},
		} {
			agree(t, &f, 0, fmt.Sprintf("%s, %d columns", name, cols), run)
		}
	}
}

func TestDropoutSetsAgree(t *testing.T) {
	var f fence
	ids := []uint32{0, 1 << 31, math.MaxUint32}
	for _, cols := range rowSizes() {
		x := withSpecials(floatsFrom(1, len(ids)*cols), math.MaxFloat32)
		for _, p := range []float32{0, 0.3, 0.99999994} {
			const key = 0xfedc_ba98_7654_3210
			agree(t, &f, 0, fmt.Sprintf("dropout, %d columns, p=%v", cols, p), func(r *routines, f *fence) [][]float32 {
				dst, src := lay(f, floatsFrom(2, len(x))), lay(f, x)
				r.dropout(dst, src, lay(f, ids), cols, key, p)
				inPlace := lay(f, x)
				r.dropout(inPlace, inPlace, lay(f, ids), cols, key, p)
				return [][]float32{dst, src, inPlace}
			})
			agree(t, &f, 0, fmt.Sprintf("dropoutHalf, %d columns, p=%v", cols, p), func(r *routines, f *fence) [][]float32 {
				dst := lay(f, floatsFrom(2, len(x)))
				r.dropoutHalf(dst, lay(f, halvesOfFloats(x)), lay(f, ids), cols, key, p)
				return [][]float32{dst}
			})
			// A compiler may fuse the multiplication with the addition.
			agree(t, &f, 1e-6, fmt.Sprintf("dropoutGrad, %d columns, p=%v", cols, p), func(r *routines, f *fence) [][]float32 {
				dx, dy := lay(f, floatsFrom(2, len(x))), lay(f, withSpecials(floatsFrom(1, len(ids)*cols)))
				r.dropoutGrad(dx, dy, lay(f, ids), cols, key, p)
				return [][]float32{dx, dy}
			})
		}
	}
}

func TestLayerNormSetsAgree(t *testing.T) {
	var f fence
	const rows = rowsPerTrial
	for _, cols := range rowSizes() {
		x := floatsFrom(1, rows*cols)
		if cols > 2 {
			x[1] = float32(math.NaN())
			x[2*cols+2] = float32(math.Inf(-1))
		}
		agree(t, &f, 1e-5, fmt.Sprintf("layerNorm, %d columns", cols), func(r *routines, f *fence) [][]float32 {
			dst, stats, in := lay(f, make([]float32, rows*cols)), lay(f, make([]float32, 2*rows)), lay(f, x)
			gain, bias := lay(f, floatsFrom(2, cols)), lay(f, floatsFrom(3, cols))
			if cols > 0 {
				r.layerNorm(dst, stats, in, gain, bias, 1e-3)
			}
			return [][]float32{dst, stats, in, gain, bias}
		})
		agree(t, &f, 1e-5, fmt.Sprintf("layerNormGrad, %d columns", cols), func(r *routines, f *fence) [][]float32 {
			dx, dy, in := lay(f, floatsFrom(4, rows*cols)), lay(f, floatsFrom(5, rows*cols)), lay(f, x)
			dgain, dbias, gain := lay(f, floatsFrom(6, cols)), lay(f, floatsFrom(7, cols)), lay(f, floatsFrom(8, cols))
			set, zeroed := lay(f, floatsFrom(9, rows*cols)), lay(f, make([]float32, rows*cols))
			stats := lay(f, []float32{0.25, 1.5, -0.125, 0.75, float32(math.Inf(-1)), 1})
			if cols > 0 {
				r.layerNormGrad(dx, dgain, dbias, dy, in, stats, gain, false)
				r.layerNormGrad(set, dgain, dbias, dy, in, stats, gain, true)
				r.layerNormGrad(zeroed, dgain, dbias, dy, in, stats, gain, false)
			}
			requireSameBits(t, zeroed, set)
			return [][]float32{dx, set, dgain, dbias, dy, in, stats, gain}
		})
	}
}

func TestLossSetsAgree(t *testing.T) {
	var f fence
	inf := float32(math.Inf(1))
	for _, cols := range rowSizes()[1:] {
		last := uint32(cols - 1)
		labels := []uint32{0, last, NoLabel, last / 2, 0, 0, last, last, 0}
		rows := len(labels)
		x := floatsFrom(1, rows*cols)
		for c := range cols {
			x[3*cols+c] *= 1e30
			x[4*cols+c] -= 1e4
			x[5*cols+c] = -inf // ruled out, all of them
			if c%3 > 0 {
				x[6*cols+c] = -inf
			}
		}
		x[7*cols+cols/2] = float32(math.NaN())
		x[8*cols+cols/3] = inf
		agree(t, &f, 2e-6, fmt.Sprintf("softmaxCrossEntropy, %d columns", cols), func(r *routines, f *fence) [][]float32 {
			loss, d, logits := lay(f, floatsFrom(2, rows)), lay(f, floatsFrom(3, rows*cols)), lay(f, x)
			r.softmaxCrossEntropy(loss, d, logits, lay(f, labels), cols, 0.125)
			return [][]float32{loss, d, logits}
		})
		for i := range cols {
			x[i] = float32(math.Round(float64(x[i]))) // ties
			x[cols+i] = float32(math.Copysign(0, float64(i%2)-0.5))
		}
		x[3*cols], x[3*cols+int(last)] = float32(math.NaN()), float32(math.NaN())
		agree(t, &f, 0, fmt.Sprintf("argMax, %d columns", cols), func(r *routines, f *fence) [][]float32 {
			dst, src := lay(f, make([]uint32, rows)), lay(f, x)
			r.argMax(dst, src, cols)
			places := make([]float32, rows)
			for i, c := range dst {
				places[i] = float32(c)
			}
			return [][]float32{places, src}
		})
	}
}

// TestLongOperandsAreCut has more elements than one call of assembly may take.
func TestLongOperandsAreCut(t *testing.T) {
	const rows, cols = 700, 100
	x, y, ids := floatsFrom(1, rows*cols), floatsFrom(2, rows*cols), make([]uint32, rows)
	halves := halvesOfFloats(x)
	for i := range ids {
		ids[i] = uint32(i * i)
	}
	run := func(r *routines) [][]float32 {
		out := func(n int) []float32 { return floatsFrom(3, n) }
		filled, added, positive, grad, wide := out(len(x)), out(len(x)), out(len(x)), out(len(x)), out(len(x))
		param, m, v, e := out(len(x)), out(len(x)), make([]float32, len(x)), out(len(x))
		moved, sum, dropped, back := out(len(x)), out(cols), out(len(x)), out(len(x))
		normed, stats, dx, dgain, dbias := out(len(x)), out(2*rows), out(len(x)), out(cols), out(cols)
		narrowed, best := make([]uint16, len(x)), make([]uint32, rows)
		r.fill(filled, 3)
		r.add(added, x)
		r.relu(positive, x)
		r.reluGrad(grad, x, y)
		r.widen(wide, halves)
		r.narrow(narrowed, x)
		r.adam(param, x, m, v, AdamStep{LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Correct1: 0.3, Correct2: 0.01})
		r.exp(e, x)
		r.addRow(moved, x[:cols])
		r.columnSumGrad(sum, x)
		r.dropout(dropped, x, ids, cols, 7, 0.5)
		r.dropoutGrad(back, x, ids, cols, 7, 0.5)
		r.layerNorm(normed, stats, x, y[:cols], y[cols:2*cols], 1e-5)
		r.layerNormGrad(dx, dgain, dbias, y, x, stats, y[:cols], false)
		r.argMax(best, x, cols)
		state, gates, encoded, dw, db, squashed := out(len(x)), out(3*len(x)), out(len(x)), out(cols), out(cols), out(len(x))
		dGates, dProduct, dState := out(3*len(x)), out(3*len(x)), out(len(x))
		wide3 := floatsFrom(4, 3*len(x))
		r.gruCell(state, gates, wide3, wide3, x, cols)
		r.gruCellGrad(dGates, dProduct, dState, y, gates, wide3, x, cols)
		r.timeEncode(encoded, x[:2*rows], y[:cols], y[cols:2*cols])
		r.timeEncodeGrad(dw, db, x, x[:2*rows], y[:cols], y[cols:2*cols])
		r.tanh(squashed, x)
		r.tanhGrad(squashed, y, x)
		require.Equal(t, halves, narrowed, r.set)
		places := make([]float32, rows)
		for i, c := range best {
			places[i] = float32(c)
		}
		return [][]float32{filled, added, positive, grad, wide, param, m, v, e, moved, sum, dropped, back, normed, stats, dx, dgain, dbias, places,
			state, gates, encoded, dw, db, squashed, dGates, dProduct, dState}
	}
	want := run(&portable)
	for _, set := range nativeSets() {
		r := routinesOf(set)
		for i, got := range run(&r) {
			near(t, got, want[i], 1e-4, fmt.Sprintf("%s, result %d", set, i))
		}
	}
}

// TestRowsTooWideForACall run the plain functions: no row of a real model is as wide, but for
// logits, which TestWideSoftmax has.
func TestRowsTooWideForACall(t *testing.T) {
	const rows, cols = 2, 1<<15 + 3
	x, ids := floatsFrom(1, rows*cols), []uint32{3, 4}
	for _, set := range nativeSets() {
		run := func(r *routines) [][]float32 {
			out := func(n int) []float32 { return floatsFrom(2, n) }
			sum, added, dropped, grad, normed, stats := out(cols), out(rows*cols), out(rows*cols), out(rows*cols), out(rows*cols), out(2*rows)
			dx, dgain, dbias := out(rows*cols), out(cols), out(cols)
			best := make([]uint32, rows)
			r.columnSumGrad(sum, x)
			r.addRow(added, x[:cols])
			r.dropout(dropped, x, ids, cols, 7, 0.5)
			r.dropoutGrad(grad, x, ids, cols, 7, 0.5)
			r.layerNorm(normed, stats, x, x[:cols], x[cols:], 1e-5)
			r.layerNormGrad(dx, dgain, dbias, x, x, stats, x[:cols], false)
			r.argMax(best, x, cols)
			state, gates, dw, db := out(rows*(cols/3)), out(rows*cols), out(cols), out(cols)
			r.gruCell(state, gates, x, x, x[:len(state)], cols/3)
			r.gruCellGrad(gates, out(rows*cols), out(len(state)), state, x, x, x[:len(state)], cols/3)
			r.timeEncode(added, x[:2*rows], x[:cols], x[:cols])
			r.timeEncodeGrad(dw, db, x, x[:2*rows], x[:cols], x[:cols])
			return [][]float32{sum, added, dropped, grad, normed, stats, dx, dgain, dbias, {float32(best[0]), float32(best[1])}, state, gates, dw, db}
		}
		r := routinesOf(set)
		require.Equal(t, run(&portable), run(&r), set)
	}
}

// TestExpOverItsRange steps through all float32s, the exact value rounded from float64, and counts
// units in the last place: of the result, or of the smallest normal number where the result is
// below it.
func TestExpOverItsRange(t *testing.T) {
	src := []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0, float32(math.Copysign(0, -1)),
		88.72283, 88.72284, -87.33655, -103.97208, -103.97209, math.MaxFloat32, -math.MaxFloat32}
	step := uint32(4999)
	for bits := uint32(0); bits < 0x7f80_0000; bits += step {
		src = append(src, math.Float32frombits(bits), -math.Float32frombits(bits))
	}
	for v := -104.5; v < 89; v += 0.0011 { // most float32s are far outside
		src = append(src, float32(v))
	}
	for _, set := range Sets() {
		r := routinesOf(set)
		dst := make([]float32, len(src))
		r.exp(dst, src)
		worst := 0.0
		for i, v := range src {
			want := math.Exp(float64(v))
			got := float64(dst[i])
			rounded := float64(float32(want))
			if math.IsNaN(want) || math.IsInf(rounded, 0) || rounded == 0 || want == 1 {
				require.True(t, got == rounded || got != got && want != want, "%s: exp(%v) is %v, want %v", set, v, got, rounded)
				continue
			}
			ulp := math.Ldexp(1, max(math.Ilogb(want), -126)-23)
			worst = max(worst, math.Abs(got-want)/ulp)
		}
		require.LessOrEqual(t, worst, 1.0, "%s: units in the last place", set)
		t.Logf("%s: %.3f units in the last place at most", set, worst)
	}
}

// TestAVX2NeedsNothingNewer looks for registers that only AVX-512 encodes in the assembly of AVX2:
// this machine may well run them, another would not.
func TestAVX2NeedsNothingNewer(t *testing.T) {
	files, err := filepath.Glob("*_amd64.s")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	newer := regexp.MustCompile(`\b([XY](1[6-9]|2\d|3[01])|Z\d+|K[0-7])\b`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, function := range strings.Split(string(text), "\nTEXT ")[1:] {
			if head, _, _ := strings.Cut(function, "\n"); strings.Contains(head, "AVX2(") {
				require.Empty(t, newer.FindString(function), "%s: %s", name, head)
			}
		}
	}
}
