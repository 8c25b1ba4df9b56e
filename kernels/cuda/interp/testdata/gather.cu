// Rows of halves: gathered, averaged over neighbours, with wide loads.
#include "gpu.h"

// gather_half copies rows of halves to floats, 8 halves a lane. cols is a multiple of 8. A row of
// src that does not exist is skipped and sets error[0] to 1 and error[1] to its place, once.
GLOBAL THREADS(256) void gather_half(float* RESTRICT dst, const u16* RESTRICT src,
                                     const u32* RESTRICT ids, u32* error, u32 rows, u32 cols, u32 srcRows) {
  u32 row = (block() * threads() + thread()) >> 5, lane = thread() & 31;
  if (row >= rows) return;
  u32 id = ids[row];
  if (id >= srcRows) {
    if (lane == 0 && __nvvm_atom_cas_gen_i((int*)error, 0, 1) == 0) error[1] = row;
    return;
  }
  for (u32 col = lane * 8; col < cols; col += 256) {
    u32x4 v = load8(src + (u64)id * cols + col);
    float* out = dst + (u64)row * cols + col;
    f32x4 low, high;
    low.x = halfToFloat((u16)v.x);
    low.y = halfToFloat(highHalf(v.x));
    low.z = halfToFloat((u16)v.y);
    low.w = halfToFloat(highHalf(v.y));
    high.x = halfToFloat((u16)v.z);
    high.y = halfToFloat((u16)(v.z >> 16));
    high.z = halfToFloat((u16)v.w);
    high.w = halfToFloat((u16)(v.w >> 16));
    store4(out, low);
    store4(out + 4, high);
  }
}

// mean: a warp a destination, lists in order.
GLOBAL THREADS(256) void mean(float* RESTRICT dst, const float* RESTRICT src, const u32* RESTRICT start,
                              const u32* RESTRICT end, const u32* RESTRICT neighbours, u32 rows, u32 cols) {
  u32 row = (block() * threads() + thread()) >> 5, lane = thread() & 31;
  if (row >= rows) return;
  u32 from = start[row], to = end[row];
  float inverse = to > from ? 1.0f / (float)(to - from) : 0.0f;
  for (u32 col = lane; col < cols; col += 32) {
    float sum = 0;
    for (u32 k = from; k < to; k++) sum += src[(u64)neighbours[k] * cols + col];
    dst[(u64)row * cols + col] = sum * inverse;
  }
}

// edge_softmax: a warp a destination, a head after the other.
GLOBAL THREADS(256) void edge_softmax(float* RESTRICT alpha, const float* RESTRICT scores,
                                      const u32* RESTRICT start, const u32* RESTRICT end, u32 rows, u32 heads) {
  u32 row = (block() * threads() + thread()) >> 5, lane = thread() & 31;
  if (row >= rows) return;
  u32 from = start[row], to = end[row];
  for (u32 head = 0; head < heads; head++) {
    float most = -__builtin_inff();
    for (u32 k = from + lane; k < to; k += 32) {
      float x = scores[(u64)k * heads + head];
      most = x > most ? x : most;
    }
    for (int mask = 16; mask; mask >>= 1) {
      float other = exchange(most, mask);
      most = other > most ? other : most;
    }
    float sum = 0;
    for (u32 k = from + lane; k < to; k += 32) {
      float x = exp2Approx((scores[(u64)k * heads + head] - most) * 1.44269504f);
      alpha[(u64)k * heads + head] = x;
      sum += x;
    }
    for (int mask = 16; mask; mask >>= 1) sum += exchange(sum, mask);
    for (u32 k = from + lane; k < to; k += 32) alpha[(u64)k * heads + head] /= sum;
  }
}
