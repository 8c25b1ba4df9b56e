// C = A Bᵀ in float32: tiles of 64 × 64 in shared memory, 4 × 4 a thread.
#include "gpu.h"

GLOBAL THREADS(256) void gemm(float* RESTRICT c, const float* RESTRICT a, const float* RESTRICT b,
                              u32 m, u32 n, u32 k) {
  SHARED float left[16][64], right[16][64];
  u32 t = thread(), row0 = blockY() * 64, col0 = block() * 64, y = t >> 4, x = t & 15;
  u32 loadRow = t >> 2, loadK = (t & 3) * 4;
  float sum[4][4] = {};
  for (u32 k0 = 0; k0 < k; k0 += 16) {
    f32x4 va = {0, 0, 0, 0}, vb = {0, 0, 0, 0};
    if (row0 + loadRow < m && k0 + loadK < k) va = load4(a + (u64)(row0 + loadRow) * k + k0 + loadK);
    if (col0 + loadRow < n && k0 + loadK < k) vb = load4(b + (u64)(col0 + loadRow) * k + k0 + loadK);
    barrier();
    UNROLL for (int j = 0; j < 4; j++) {
      left[loadK + j][loadRow] = va[j];
      right[loadK + j][loadRow] = vb[j];
    }
    barrier();
    UNROLL for (int i = 0; i < 16; i++) {
      f32x4 p = shared4(&left[i][y * 4]), q = shared4(&right[i][x * 4]);
      UNROLL for (int r = 0; r < 4; r++) UNROLL for (int s = 0; s < 4; s++) sum[r][s] += p[r] * q[s];
    }
  }
  UNROLL for (int r = 0; r < 4; r++) UNROLL for (int s = 0; s < 4; s++) {
    u32 row = row0 + y * 4 + r, col = col0 + x * 4 + s;
    if (row < m && col < n) c[(u64)row * n + col] = sum[r][s];
  }
}
