//go:build amd64 && !purego

package kernels

import "github.com/klauspost/cpuid/v2"

func nativeSets() []Set {
	var sets []Set
	avx2 := cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.F16C, cpuid.BMI1, cpuid.BMI2, cpuid.POPCNT)
	if avx2 && cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512DQ, cpuid.AVX512BW, cpuid.AVX512VL) {
		sets = append(sets, AVX512)
	}
	if avx2 {
		sets = append(sets, AVX2)
	}
	return sets
}

// dotsHelp reports whether AVX512BF16 is faster than AVX512. AMD's processors issue VDPBF16PS,
// which does twice the work of a multiply-add, as often as one. A Xeon of 2023 issues it a fifth as
// often, and its products take 1.7 times as long.
func dotsHelp() bool {
	return cpuid.CPU.Supports(cpuid.AVX512BF16) && cpuid.CPU.VendorID == cpuid.AMD
}

// bf16Sets lists the sets of BF16, the fastest first, and says why there is no AMX or none at all.
func bf16Sets() (sets []Set, why string) {
	natives := nativeSets()
	if len(natives) == 0 || natives[0] != AVX512 || !cpuid.CPU.Supports(cpuid.AVX512BF16) {
		return nil, "the processor has no AMX and no AVX512_BF16"
	}
	if why = haveTiles(); why == "" {
		sets = append(sets, AMX)
	}
	return append(sets, AVX512BF16), why
}

// routinesOf is the table of a set that SetsOf has listed.
func routinesOf(s Set) routines {
	r := portable
	switch s {
	case AMX, AVX512BF16:
		r = routinesOf(AVX512)
		if r.panels = dotPanels(); s == AMX {
			r.panels = tilePanels()
		}
		r.peak = bf16Peak(s)
	case AVX512:
		r.strips = &strips{tile: 14, lanes: 16, wide: matMulStripAVX512x2, narrow: matMulStripAVX512x1, pack8: matMulPack8, add8: matMulAdd8}
		r.conversions(widenAVX512, narrowAVX512)
		r.copies(copyRowsAVX2)
		r.elementwise(fillAVX512, addAVX512, reluAVX512, reluMaskAVX512, reluGradAVX512, addRowAVX512, columnSumAVX512, adamAVX512)
		r.edgeAdder(addEdgesAVX512, addEdgesByAVX512)
		r.halfEdgeAdder(addEdgesHalfAVX512, addEdgesHalfByAVX512, 1)
		r.aggregation(sumListsAVX512, sumListsHalfAVX512, weightedSumAVX512, weightedSumHalfAVX512, rowWeightedSumAVX512, 1)
		r.scores(edgeDotAVX512)
		r.distances(edgeDistanceAVX512, edgeModulusAVX512, edgeDistanceGradAVX512, edgeModulusGradAVX512)
		r.dropouts(dropoutAVX512, dropoutGradAVX512, dropoutHalfAVX512)
		r.rowNormsBy(rowNormsAVX2)
		r.norms(layerNormAVX512, layerNormGradAVX512)
		r.gelus(geluAVX512, geluGradAVX512)
		r.losses(expAVX512, softmaxAVX512, argMaxAVX512)
		r.cells(gruCellAVX512, gruCellGradAVX512, tanhAVX512, tanhGradAVX512)
		r.timeEncodes(timeEncodeAVX512, timeEncodeGradAVX512)
		r.peakOf(peakAVX512, 16)
	case AVX2:
		r.strips = &strips{tile: 6, lanes: 8, wide: matMulStripAVX2x2, narrow: matMulStripAVX2x1, pack8: matMulPack8, add8: matMulAdd8}
		r.conversions(widenAVX2, narrowAVX2)
		r.copies(copyRowsAVX2)
		r.elementwise(fillAVX2, addAVX2, reluAVX2, reluMaskAVX2, reluGradAVX2, addRowAVX2, columnSumAVX2, adamAVX2)
		r.edgeAdder(addEdgesAVX2, addEdgesByAVX2)
		r.halfEdgeAdder(addEdgesHalfAVX2, addEdgesHalfByAVX2, 8)
		r.aggregation(sumListsAVX2, sumListsHalfAVX2, weightedSumAVX2, weightedSumHalfAVX2, rowWeightedSumAVX2, 8)
		r.scores(edgeDotAVX2)
		r.distances(edgeDistanceAVX2, edgeModulusAVX2, edgeDistanceGradAVX2, edgeModulusGradAVX2)
		r.dropouts(dropoutAVX2, dropoutGradAVX2, nil)
		r.rowNormsBy(rowNormsAVX2)
		r.norms(layerNormAVX2, layerNormGradAVX2)
		r.gelus(geluAVX2, geluGradAVX2)
		r.losses(expAVX2, softmaxAVX2, argMaxAVX2)
		r.cells(gruCellAVX2, gruCellGradAVX2, tanhAVX2, tanhGradAVX2)
		r.timeEncodes(timeEncodeAVX2, timeEncodeGradAVX2)
		r.peakOf(peakAVX2, 8)
	}
	r.set = s
	return r
}
