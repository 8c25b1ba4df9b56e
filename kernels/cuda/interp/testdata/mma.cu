// A product of 16 × 8 by 8 × 8 matrices on a tensor core, in tf32.
#include "gpu.h"

DEVICE u32 toTF32(float v) {
  u32 r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
  return r;
}

// c[16][8] += a[16][8] * b[8][8], by one warp.
GLOBAL THREADS(32) void mma(float* RESTRICT c, const float* RESTRICT a, const float* RESTRICT b) {
  u32 lane = thread(), row = lane / 4, col = lane % 4;
  float* c0 = c + row * 8 + 2 * col;
  float* c2 = c0 + 64;
  float v0 = c0[0], v1 = c0[1], v2 = c2[0], v3 = c2[1];
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(v0), "+f"(v1), "+f"(v2), "+f"(v3)
      : "r"(toTF32(a[row * 8 + col])), "r"(toTF32(a[(row + 8) * 8 + col])), "r"(toTF32(a[row * 8 + col + 4])),
        "r"(toTF32(a[(row + 8) * 8 + col + 4])), "r"(toTF32(b[col * 8 + row])), "r"(toTF32(b[(col + 4) * 8 + row])));
  c0[0] = v0;
  c0[1] = v1;
  c2[0] = v2;
  c2[1] = v3;
}
