package kernels

import (
	"fmt"
	"slices"
	"strings"
)

// Set names the kernel set of a [CPU]: which implementation its inner loops have. Results are the
// same bits whenever the set is the same, and within rounding of each other between sets.
type Set string

const (
	AVX512   Set = "avx512"   // assembly for AVX-512 F, DQ, BW and VL
	AVX2     Set = "avx2"     // assembly for AVX2, FMA and F16C
	Portable Set = "portable" // Go, on every machine; the only one under the build tag purego

	// These compute products in BF16, and all else as AVX512 does.
	AMX        Set = "amx"        // products by the tiles of AMX-BF16
	AVX512BF16 Set = "avx512bf16" // products by AVX512_BF16
)

// Sets lists what this machine can run with products in Float32, the fastest first. It is never
// empty: Portable is always its last.
func Sets() []Set { return SetsOf(Float32) }

// SetsOf is Sets for products of another precision. There is none for TF32.
func SetsOf(p Precision) []Set {
	switch p {
	case "", Float32:
		return append(nativeSets(), Portable)
	case BF16:
		sets, _ := bf16Sets()
		return append(sets, Portable)
	}
	return nil
}

// WhyNotBF16 says why this machine lacks AMX, or both sets of BF16. It is empty where there is AMX.
func WhyNotBF16() string {
	_, why := bf16Sets()
	return why
}

// ParseSet finds the set called name for products of a precision, the fastest one for "auto" or the
// empty string. Where no set has BF16 faster than Float32, only a name finds one.
func ParseSet(name string, p Precision) (Set, error) {
	f := setFinder{Sets: SetsOf(p), Products: p, Auto: true}
	if p == BF16 {
		f.Why = WhyNotBF16()
		f.Auto = f.Why == "" || dotsHelp()
	}
	return f.find(name)
}

// setFinder finds sets by their names.
type setFinder struct {
	Sets     []Set // that the machine runs
	Products Precision
	Auto     bool   // whether the first is worth while
	Why      string // where a set of BF16 is missing
}

func (f setFinder) find(name string) (Set, error) {
	if len(f.Sets) == 0 {
		return "", fmt.Errorf("no kernel set has products in %s", f.Products)
	}
	if name == "" || name == "auto" {
		if !f.Auto {
			return "", fmt.Errorf("products in bf16 are slower than in f32 here: %s", f.Why)
		}
		return f.Sets[0], nil
	}
	s := Set(name)
	if slices.Contains(f.Sets, s) {
		return s, nil
	}
	var names []string
	if f.Auto {
		names = append(names, "auto")
	}
	for _, s := range f.Sets {
		names = append(names, string(s))
	}
	there := "there is: " + strings.Join(names, ", ")
	ofBF16, ofFloat32 := s == AMX || s == AVX512BF16, s == AVX512 || s == AVX2
	switch bf16 := f.Products == BF16; {
	case bf16 && ofFloat32:
		return "", fmt.Errorf("kernel set %q computes products in f32 alone; for bf16 %s", name, there)
	case bf16 && ofBF16:
		return "", fmt.Errorf("kernel set %q does not run here: %s; for bf16 %s", name, f.Why, there)
	case bf16:
		return "", fmt.Errorf("kernel set %q does not run here; for bf16 %s", name, there)
	case ofBF16:
		return "", fmt.Errorf("kernel set %q computes products in bf16 alone; for f32 %s", name, there)
	}
	return "", fmt.Errorf("kernel set %q does not run here; %s", name, there)
}

// routines are the inner loops of a CPU: those that a set has in assembly, and the plain functions
// of this package for all others. A routine computes what the plain function of its name documents,
// on the caller's goroutine; the CPU has checked shapes and cuts work so that no call runs longer
// than about 100 µs, since Go cannot preempt assembly.
type routines struct {
	set    Set
	strips *strips // of MatMul; nil where it is gonum's
	panels *panels // of MatMul in BF16; nil where a set has none

	widen  func(dst []float32, src []uint16)
	narrow func(dst []uint16, src []float32) (overflowed int)

	copyRows func(dst, src []byte, size int, moves []Move)

	fill          func(dst []float32, v float32)
	add           func(dst, src []float32)
	addEdges      func(dst, src, w []float32, cols, lo, hi int, to, from []uint32)
	addEdgesHalf  func(dst []float32, src []uint16, w []float32, cols, lo, hi int, to, from []uint32)
	addRow        func(dst, row []float32)
	columnSumGrad func(drow, src []float32)
	relu          func(dst, src []float32)
	reluGrad      func(dx, dy, y []float32)
	reluMask      func(d, y []float32)
	gelu          func(dst, src []float32)
	geluGrad      func(dx, dy, x []float32)

	neighborMean     func(dst, src []float32, cols int, start, end, nbr []uint32)
	neighborMeanHalf func(dst []float32, src []uint16, cols int, start, end, nbr []uint32)
	rowWeightedSum   func(dst, src []float32, cols int, start, end, nbr []uint32, w []float32, fresh bool)
	weightedSum      func(dst []float32, dstStride, cols int, src []float32, stride int, start, end, nbr []uint32, w []float32, wstride int)
	weightedSumHalf  func(dst []float32, dstStride, cols int, src []uint16, stride int, start, end, nbr []uint32, w []float32, wstride int)

	edgeDot func(dst, q, k []float32, cols, heads int, start, end, nbr []uint32, scale float32)

	edgeDistance     func(dst, q, k []float32, cols int, complex bool, start, end, nbr []uint32, scale float32)
	edgeDistanceGrad func(dx, x, y, w []float32, cols int, complex bool, start, end, nbr []uint32)

	dropout     func(dst, src []float32, ids []uint32, cols int, key uint64, p float32)
	dropoutHalf func(dst []float32, src []uint16, ids []uint32, cols int, key uint64, p float32)
	dropoutGrad func(dx, dy []float32, ids []uint32, cols int, key uint64, p float32)

	rowNorms func(dst, src []float32, cols int)

	layerNorm     func(dst, stats, x, gain, bias []float32, eps float32)
	layerNormGrad func(dx, dgain, dbias, dy, x, stats, gain []float32, fresh bool)

	exp                 func(dst, src []float32)
	softmaxCrossEntropy func(loss, dlogits, logits []float32, labels []uint32, cols int, scale float32)
	sigmoidCrossEntropy func(loss, dlogits, logits, targets []float32, cols int, scale float32)
	argMax              func(dst []uint32, src []float32, cols int)

	gruCell     func(dst, gates, x, h, s []float32, d int)
	gruCellGrad func(dx, dh, ds, dy, gates, h, s []float32, d int)
	tanh        func(dst, src []float32)
	tanhGrad    func(dx, dy, y []float32)

	timeEncode     func(dst, times, w, b []float32)
	timeEncodeGrad func(dw, db, dy, times, w, b []float32)

	adam func(param, grad, m, v []float32, s AdamStep)

	peak func() (operations int) // nil where there is no assembly
}

// portable is the definition of every routine; a faster set copies it and replaces what it has.
var portable = routines{
	set: Portable,

	widen:  widenPlain,
	narrow: narrowPlain,

	copyRows: copyRows,

	fill:          Fill,
	add:           Add,
	addEdges:      addEdges,
	addEdgesHalf:  (&routines{widen: widenPlain, addEdges: addEdges}).addEdgesWidened,
	addRow:        AddRow,
	columnSumGrad: ColumnSumGrad,
	relu:          ReLU,
	reluGrad:      ReLUGrad,
	reluMask:      ReLUMask,
	gelu:          GELU,
	geluGrad:      GELUGrad,

	neighborMean:     NeighborMean,
	neighborMeanHalf: NeighborMeanHalf,
	rowWeightedSum:   rowWeightedSum,
	weightedSum:      weightedSum,
	weightedSumHalf:  weightedSumHalf,

	edgeDot: EdgeDot,

	edgeDistance:     EdgeDistance,
	edgeDistanceGrad: edgeDistanceGrad,

	dropout:     Dropout,
	dropoutHalf: DropoutHalf,
	dropoutGrad: DropoutGrad,

	rowNorms: RowNorms,

	layerNorm:     LayerNorm,
	layerNormGrad: LayerNormGrad,

	exp:                 exp,
	softmaxCrossEntropy: SoftmaxCrossEntropy,
	sigmoidCrossEntropy: SigmoidCrossEntropy,
	argMax:              ArgMax,

	gruCell:     GRUCell,
	gruCellGrad: GRUCellGrad,
	tanh:        Tanh,
	tanhGrad:    TanhGrad,

	timeEncode:     TimeEncode,
	timeEncodeGrad: TimeEncodeGrad,

	adam: Adam,
}

// fastest is the first of Sets, for conversions and copies: they give the same bits in every set,
// and so need no choice.
var fastest = routinesOf(Sets()[0])
