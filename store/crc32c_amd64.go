//go:build amd64 && !purego

package store

import (
	"hash/crc32"

	"github.com/klauspost/cpuid/v2"
)

// A CRC-32C is the remainder of the bytes, taken as a polynomial over the bits, divided by P of
// degree 32. The first byte and the lowest bit of a byte have the highest powers of x: in a
// register of n bits, bit i is the coefficient of x^(n-1-i). Addition is xor. The page may be
// changed in any way that keeps its remainder. Both routines shorten it by such changes:
//
//   - To move 16 bytes (a the first 8, b the last 8) onto the 16 bytes that lie n bytes ahead, add
//     a*x^(8n+64) + b*x^(8n) to these. x^(8n+64) mod P and x^(8n) mod P do as well.
//   - A carry-less multiplication of two registers of 64 bits gives 127 bits in a register of 128:
//     the product times x. So the multipliers are x^(8n+63) and x^(8n-1).
//   - Let r be the remainder of bytes that end n bytes before the page does. A register of 64 bits
//     holds it as r*x^32. The carry-less product adds a factor x. crc32q multiplies its input by
//     x^32 before it divides. So the multiplier x^(8n-65), which is x^(8(n-8)-1), moves r to the
//     last 16 bytes of the page.
//
// From Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction"
// (Intel, 2009). The paper divides the last 16 bytes by further multiplications, where we use
// crc32q. Its multipliers differ from ours: they have 33 bits, and contain the factor x.

// ahead holds two multipliers that move 16 bytes: one for the first 8 bytes, one for the last.
type ahead [2]uint64

func aheadBy(n int) ahead { return ahead{power(n + 8), power(n)} }

// power returns x^(8n-1) mod P in a register of 64 bits. It starts from x^-1, which is (P+1)/x, and
// lets hash/crc32 append n zero bytes: each multiplies by x^8. hash/crc32 inverts its input and its
// result, so power inverts them back.
func power(n int) uint64 {
	inverse := uint32(crc32.Castagnoli<<1&0xffffffff | 1)
	return uint64(^crc32.Update(^inverse, castagnoli, zeros[:n])) << 32
}

// foldMultipliers first move 256 bytes ahead, then move the 16 lanes of the last 256 bytes onto the
// last lane. The last lane stays in place: it is multiplied by 1 like the others.
var foldMultipliers = func() (k [17]ahead) {
	k[0] = aheadBy(256)
	for lane := range 16 {
		k[1+lane] = aheadBy(16 * (15 - lane))
	}
	return k
}()

// partMultipliers move the remainders of bytes 0 to 1360 and 1360 to 2720 to the end of the page.
var partMultipliers = [2]uint64{power(PageSize - 1360 - 8), power(PageSize - 2720 - 8)}

// nativeSumRoutines returns the routines that this processor supports, the fastest first. On Zen 4
// the first is as fast from memory as a loop that only loads, and prefetching would slow it down.
// Prefetching doubles the speed of the second from memory.
//
// # Why not
//
// Why not fold 16 bytes at a time where VPCLMULQDQ is missing: Zen 4 reaches 14 GB/s that way, less
// than with hash/crc32. Folding part of a page and dividing the rest reaches 33 GB/s from cache
// instead of 29, and no more from memory.
func nativeSumRoutines() (s []sumRoutine) {
	if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.VPCLMULQDQ, cpuid.AVX2, cpuid.SSE42) {
		s = append(s, sumRoutine{"AVX512", func(page []byte) uint32 {
			return pageSumAVX512((*[PageSize]byte)(page), &foldMultipliers)
		}})
	}
	if cpuid.CPU.Supports(cpuid.CLMUL, cpuid.SSE42) {
		s = append(s, sumRoutine{"SSE42", func(page []byte) uint32 {
			return pageSumSSE42((*[PageSize]byte)(page), &partMultipliers)
		}})
	}
	return s
}

//go:noescape
func pageSumAVX512(page *[PageSize]byte, k *[17]ahead) uint32

//go:noescape
func pageSumSSE42(page *[PageSize]byte, k *[2]uint64) uint32
