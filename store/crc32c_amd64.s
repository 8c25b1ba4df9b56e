//go:build amd64 && !purego

#include "textflag.h"

// crc32c_amd64.go explains the terms, the multipliers and the mathematics. A page is PageSize = 4096 bytes at any address.

// FOLD moves the 64 bytes of acc to the 64 of data, as far ahead as k says: acc = acc*k + data. It overwrites tmp.
#define FOLD(k, data, acc, tmp) \
	VPCLMULQDQ $0x00, k, acc, tmp    \ // the first 8 bytes of each lane
	VPCLMULQDQ $0x11, k, acc, acc    \ // the last 8
	VPTERNLOGQ $0x96, data, tmp, acc // acc ^= tmp ^ data

// func pageSumAVX512(page *[PageSize]byte, k *[17]ahead) uint32
// Requires: AVX512F, VPCLMULQDQ, AVX2, SSE4.2
TEXT ·pageSumAVX512(SB), NOSPLIT, $0-20
	MOVQ page+0(FP), SI
	MOVQ k+8(FP), DX

	// The first 256 bytes are in Z0 to Z3, the first four of them inverted: a CRC begins with ones.
	VMOVDQU64       0(SI), Z0
	VMOVDQU64       64(SI), Z1
	VMOVDQU64       128(SI), Z2
	VMOVDQU64       192(SI), Z3
	MOVL            $-1, AX
	VMOVD           AX, X4
	VPXORQ          Z4, Z0, Z0
	VBROADCASTI32X4 0(DX), Z8
	MOVL            $15, CX

fold:
	ADDQ $256, SI
	FOLD(Z8, 0(SI), Z0, Z4)
	FOLD(Z8, 64(SI), Z1, Z5)
	FOLD(Z8, 128(SI), Z2, Z6)
	FOLD(Z8, 192(SI), Z3, Z7)
	DECL CX
	JNZ  fold

	// What is left has the remainder of the page and 16 lanes. Each moves to the last one, by a multiplier of its own.
	VPCLMULQDQ $0x00, 16(DX), Z0, Z4
	VPCLMULQDQ $0x11, 16(DX), Z0, Z0
	VPCLMULQDQ $0x00, 80(DX), Z1, Z5
	VPCLMULQDQ $0x11, 80(DX), Z1, Z1
	VPCLMULQDQ $0x00, 144(DX), Z2, Z6
	VPCLMULQDQ $0x11, 144(DX), Z2, Z2
	VPCLMULQDQ $0x00, 208(DX), Z3, Z7
	VPCLMULQDQ $0x11, 208(DX), Z3, Z3
	VPTERNLOGQ $0x96, Z1, Z4, Z0
	VPTERNLOGQ $0x96, Z6, Z5, Z2
	VPTERNLOGQ $0x96, Z7, Z3, Z0
	VPXORQ     Z2, Z0, Z0

	// The four lanes of Z0 are added.
	VEXTRACTI64X4 $1, Z0, Y1
	VPXOR         Y1, Y0, Y0
	VEXTRACTI128  $1, Y0, X1
	VPXOR         X1, X0, X0
	VMOVQ         X0, AX
	VPEXTRQ       $1, X0, BX
	VZEROUPPER

	// crc32q divides by the polynomial: the remainder of 16 bytes is that of the page. A CRC ends inverted.
	XORL   CX, CX
	CRC32Q AX, CX
	CRC32Q BX, CX
	NOTL   CX
	MOVL   CX, ret+16(FP)
	RET

// func pageSumSSE42(page *[PageSize]byte, k *[2]uint64) uint32
// Requires: PCLMULQDQ, SSE4.2
TEXT ·pageSumSSE42(SB), NOSPLIT, $0-20
	MOVQ page+0(FP), SI
	MOVQ k+8(FP), DX

	// crc32q brings a result after three cycles, and begins one each cycle. So three parts of the page are divided in turns,
	// of 1360 bytes each; 16 are left. The processor does not fetch such short parts ahead, so the loop prefetches the next
	// page, which most callers come to next. A prefetch of memory that is not mapped does nothing.
	MOVL $-1, R8
	XORL R9, R9
	XORL R10, R10
	MOVL $34, CX
	LEAQ 4096(SI), DI

divide:
	PREFETCHT0 0(DI)
	PREFETCHT0 64(DI)
	CRC32Q     0(SI), R8
	CRC32Q     1360(SI), R9
	CRC32Q     2720(SI), R10
	CRC32Q     8(SI), R8
	CRC32Q     1368(SI), R9
	CRC32Q     2728(SI), R10
	CRC32Q     16(SI), R8
	CRC32Q     1376(SI), R9
	CRC32Q     2736(SI), R10
	CRC32Q     24(SI), R8
	CRC32Q     1384(SI), R9
	CRC32Q     2744(SI), R10
	CRC32Q     32(SI), R8
	CRC32Q     1392(SI), R9
	CRC32Q     2752(SI), R10
	ADDQ       $40, SI
	ADDQ       $128, DI
	DECL       CX
	JNZ        divide

	// The remainders of the first two parts move to the last 16 bytes of the page.
	MOVQ      R8, X0
	MOVQ      R9, X1
	MOVQ      0(DX), X2
	MOVQ      8(DX), X3
	PCLMULQDQ $0x00, X2, X0
	PCLMULQDQ $0x00, X3, X1
	PXOR      X1, X0
	MOVQ      X0, AX
	PSRLDQ    $8, X0
	MOVQ      X0, BX
	XORQ      2720(SI), AX
	XORQ      2728(SI), BX
	CRC32Q    AX, R10
	CRC32Q    BX, R10
	NOTL      R10
	MOVL      R10, ret+16(FP)
	RET
