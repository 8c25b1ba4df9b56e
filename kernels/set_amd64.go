//go:build amd64 && !purego

package kernels

import "github.com/klauspost/cpuid/v2"

func nativeSets() []Set {
	var sets []Set
	avx2 := cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.F16C)
	if avx2 && cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512DQ, cpuid.AVX512BW, cpuid.AVX512VL) {
		sets = append(sets, AVX512)
	}
	if avx2 {
		sets = append(sets, AVX2)
	}
	return sets
}

// routinesOf is the table of a set that Sets has listed.
func routinesOf(s Set) routines {
	r := portable
	r.set = s
	return r
}
