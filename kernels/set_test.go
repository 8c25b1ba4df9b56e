package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFindSet: an error names the set, why it does not run, and the sets that do.
func TestFindSet(t *testing.T) {
	const noAMX, none = "the processor has no AMX", "the processor has no AMX and no AVX512_BF16"
	for _, c := range []struct {
		setFinder
		name, want string
	}{
		{setFinder{[]Set{AVX2, Portable}, Float32, true, ""}, "auto", "avx2"},
		{setFinder{[]Set{AVX2, Portable}, Float32, true, ""}, "portable", "portable"},
		{setFinder{[]Set{AVX2, Portable}, Float32, true, ""}, "avx512",
			`kernel set "avx512" does not run here; there is: auto, avx2, portable`},
		{setFinder{[]Set{AVX2, Portable}, Float32, true, ""}, "amx",
			`kernel set "amx" computes products in bf16 alone; for f32 there is: auto, avx2, portable`},
		{setFinder{[]Set{AMX, AVX512BF16, Portable}, BF16, true, ""}, "", "amx"},
		{setFinder{[]Set{AMX, AVX512BF16, Portable}, BF16, true, ""}, "avx512bf16", "avx512bf16"},
		{setFinder{[]Set{AMX, AVX512BF16, Portable}, BF16, true, ""}, "avx2",
			`kernel set "avx2" computes products in f32 alone; for bf16 there is: auto, amx, avx512bf16, portable`},
		{setFinder{[]Set{AMX, AVX512BF16, Portable}, BF16, true, ""}, "abacus",
			`kernel set "abacus" does not run here; for bf16 there is: auto, amx, avx512bf16, portable`},
		{setFinder{[]Set{AVX512BF16, Portable}, BF16, true, noAMX}, "auto", "avx512bf16"},
		{setFinder{[]Set{AVX512BF16, Portable}, BF16, false, noAMX}, "auto",
			"products in bf16 are slower than in f32 here: the processor has no AMX"},
		{setFinder{[]Set{AVX512BF16, Portable}, BF16, false, noAMX}, "amx",
			`kernel set "amx" does not run here: the processor has no AMX; for bf16 there is: avx512bf16, portable`},
		{setFinder{[]Set{Portable}, BF16, false, none}, "portable", "portable"},
		{setFinder{[]Set{Portable}, BF16, false, none}, "avx512bf16",
			`kernel set "avx512bf16" does not run here: the processor has no AMX and no AVX512_BF16; for bf16 there is: portable`},
		{setFinder{nil, TF32, true, ""}, "auto", "no kernel set has products in tf32"},
	} {
		set, err := c.find(c.name)
		if got := string(set); err != nil {
			require.EqualError(t, err, c.want)
		} else {
			require.Equal(t, c.want, got)
		}
	}
}

// TestParseSet finds what SetsOf lists.
func TestParseSet(t *testing.T) {
	for _, p := range []Precision{Float32, BF16} {
		for _, set := range SetsOf(p) {
			got, err := ParseSet(string(set), p)
			require.NoError(t, err)
			require.Equal(t, set, got)
		}
	}
	if sets := SetsOf(BF16); sets[0] == AMX {
		require.Empty(t, WhyNotBF16())
	} else {
		require.NotEmpty(t, WhyNotBF16())
	}
}
