// Attention over lists of neighbours.
#include "gpu.h"

DEVICE float leaky(float x, float slope) { return x > 0 ? x : slope * x; }

// edge_softmax sets alpha, which has a row for each edge and a column for each head. For each head,
// alpha is the softmax of leaky(source score + destination score) over the edges of a destination.
// A warp computes a destination, one head after the other.
GLOBAL THREADS(256) void edge_softmax(
    float* RESTRICT alpha, const float* RESTRICT sourceScore, const float* RESTRICT score,
    const u32* RESTRICT start, const u32* RESTRICT end, const u32* RESTRICT neighbours, u32 rows,
    u32 heads, float slope) {
  u32 i = (block() * threads() + thread()) >> 5;
  u32 lane = thread() & 31;
  if (i >= rows) return;
  u32 from = start[i];
  u32 to = end[i];
  for (u32 h = 0; h < heads; h++) {
    float own = score[(u64)i * heads + h];
    float most = -__builtin_inff();
    for (u32 k = from + lane; k < to; k += 32) {
      float x = leaky(sourceScore[(u64)neighbours[k] * heads + h] + own, slope);
      most = x > most ? x : most;
    }
    for (int mask = 16; mask != 0; mask >>= 1) {
      float other = exchange(most, mask);
      most = other > most ? other : most;
    }
    float sum = 0;
    for (u32 k = from + lane; k < to; k += 32) {
      float x = leaky(sourceScore[(u64)neighbours[k] * heads + h] + own, slope);
      x = exp2Approx((x - most) * 1.44269504f);
      alpha[(u64)k * heads + h] = x;
      sum += x;
    }
    for (int mask = 16; mask != 0; mask >>= 1) sum += exchange(sum, mask);
    float inverse = 1.0f / sum;
    for (u32 k = from + lane; k < to; k += 32) alpha[(u64)k * heads + h] *= inverse;
  }
}
