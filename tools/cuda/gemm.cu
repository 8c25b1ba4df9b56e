// Products in float32: C[M,N] = A[M,K] · B[N,K]ᵀ, K a multiple of 8, rows aligned to 16 bytes.
// A block of 256 threads computes a tile of 128 × 128. A thread computes 8 × 8 of it: two groups of
// four rows, 64 apart, and two groups of four columns, 64 apart.
#include "gpu.h"

// tile is a buffer for eight columns of A or B, with 128 rows each. A stride of 132 and not 128
// spreads stores over the banks of shared memory.
typedef float tile[8][132];

DEVICE u32 place(u32 at, int i) { return i < 4 ? at * 4 + i : 60 + at * 4 + i; }

DEVICE void clear(float sum[8][8]) {
  UNROLL
  for (int i = 0; i < 8; i++) {
    UNROLL
    for (int j = 0; j < 8; j++) sum[i][j] = 0;
  }
}

// fetch reads four numbers of a row, or zeros past the last row.
DEVICE f32x4 fetch(const float* m, u32 row, u32 rows, u32 k, u32 cols) {
  f32x4 zero = {0, 0, 0, 0};
  return row < rows ? load4(m + (u64)row * cols + k) : zero;
}

DEVICE void put(tile& to, u32 row, u32 k, f32x4 v) {
  UNROLL
  for (int j = 0; j < 4; j++) to[k + j][row] = v[j];
}

DEVICE void multiply(float sum[8][8], const tile& a, const tile& b, u32 y, u32 x) {
  UNROLL
  for (int k = 0; k < 8; k++) {
    f32x4 va[2] = {shared4(&a[k][y * 4]), shared4(&a[k][64 + y * 4])};
    f32x4 vb[2] = {shared4(&b[k][x * 4]), shared4(&b[k][64 + x * 4])};
    UNROLL
    for (int i = 0; i < 8; i++) {
      UNROLL
      for (int j = 0; j < 8; j++) sum[i][j] += va[i >> 2][i & 3] * vb[j >> 2][j & 3];
    }
  }
}

// gemm_v fetches a tile, waits for all threads, and multiplies it.
GLOBAL THREADS(256) void gemm_v(
    float* RESTRICT c, const float* RESTRICT a, const float* RESTRICT b, u32 m, u32 n, u32 k) {
  SHARED tile as[2];
  SHARED tile bs[2];
  u32 t = thread();
  u32 row0 = blockY() * 128;
  u32 col0 = block() * 128;
  float sum[8][8];
  clear(sum);
  int p = 0;
  for (u32 k0 = 0; k0 < k; k0 += 8) {
    put(as[p], t >> 1, (t & 1) * 4, fetch(a, row0 + (t >> 1), m, k0 + (t & 1) * 4, k));
    put(bs[p], t >> 1, (t & 1) * 4, fetch(b, col0 + (t >> 1), n, k0 + (t & 1) * 4, k));
    barrier();
    multiply(sum, as[p], bs[p], t >> 4, t & 15);
    p ^= 1;
  }
  UNROLL
  for (int i = 0; i < 8; i++) {
    u32 row = row0 + place(t >> 4, i);
    if (row >= m) continue;
    UNROLL
    for (int j = 0; j < 8; j++) {
      u32 col = col0 + place(t & 15, j);
      if (col < n) c[(u64)row * n + col] = sum[i][j];
    }
  }
}

// affine_f32 is gemm_v with a bias (or null) and a ReLU that lets NaN pass. It fetches the next
// tile before it multiplies this one.
GLOBAL THREADS(256) void affine_f32(
    float* RESTRICT c, const float* RESTRICT a, const float* RESTRICT b,
    const float* RESTRICT bias, u32 m, u32 n, u32 k, u32 relu) {
  SHARED tile as[2];
  SHARED tile bs[2];
  u32 t = thread();
  u32 row0 = blockY() * 128;
  u32 col0 = block() * 128;
  u32 part = (t & 1) * 4;
  float sum[8][8];
  clear(sum);
  f32x4 va = fetch(a, row0 + (t >> 1), m, part, k);
  f32x4 vb = fetch(b, col0 + (t >> 1), n, part, k);
  int p = 0;
  for (u32 k0 = 0; k0 < k; k0 += 8) {
    put(as[p], t >> 1, part, va);
    put(bs[p], t >> 1, part, vb);
    barrier();
    if (k0 + 8 < k) {
      va = fetch(a, row0 + (t >> 1), m, k0 + 8 + part, k);
      vb = fetch(b, col0 + (t >> 1), n, k0 + 8 + part, k);
    }
    multiply(sum, as[p], bs[p], t >> 4, t & 15);
    p ^= 1;
  }
  UNROLL
  for (int i = 0; i < 8; i++) {
    u32 row = row0 + place(t >> 4, i);
    if (row >= m) continue;
    UNROLL
    for (int j = 0; j < 8; j++) {
      u32 col = col0 + place(t & 15, j);
      if (col >= n) continue;
      float v = sum[i][j] + (bias ? bias[col] : 0.0f);
      if (relu && v < 0) v = 0;
      c[(u64)row * n + col] = v;
    }
  }
}
