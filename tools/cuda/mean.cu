// The mean over lists of neighbours, and its gradient. Matrices have N rows of C columns, C a
// multiple of 8, and rows start at multiples of 16 bytes. Sums go in the order of the list.
#include "gpu.h"

// row returns the address of a row of halves. Resident rows have the lowest numbers, and the rows
// of the step's slot follow.
DEVICE const u16* row(const u16* resident, const u16* slot, u32 at, u32 residentRows, u32 cols) {
  if (at < residentRows) return resident + (u64)at * cols;
  return slot + (u64)(at - residentRows) * cols;
}

DEVICE void addHalves(float* sum, u32x4 v) {
  UNROLL
  for (int j = 0; j < 4; j++) {
    sum[2 * j] += halfToFloat((u16)(v[j] & 0xffff));
    sum[2 * j + 1] += halfToFloat((u16)(v[j] >> 16));
  }
}

DEVICE void storeMean(float* dst, const float* sum, float inverse) {
  f32x4 low = {sum[0] * inverse, sum[1] * inverse, sum[2] * inverse, sum[3] * inverse};
  f32x4 high = {sum[4] * inverse, sum[5] * inverse, sum[6] * inverse, sum[7] * inverse};
  store4(dst, low);
  store4(dst + 4, high);
}

// gather_mean_half sets dst to the mean of each destination's neighbours. A warp computes a
// destination, and a lane eight columns, so 128 columns leave half the lanes idle. at has the row
// of each input.
GLOBAL THREADS(256) void gather_mean_half(
    float* RESTRICT dst, const u16* RESTRICT resident, const u16* RESTRICT slot,
    const u32* RESTRICT at, const u32* RESTRICT start, const u32* RESTRICT end,
    const u32* RESTRICT neighbours, u32 rows, u32 cols, u32 residentRows) {
  u32 i = (block() * threads() + thread()) >> 5;
  u32 lane = thread() & 31;
  if (i >= rows) return;
  u32 from = start[i];
  u32 to = end[i];
  float inverse = to > from ? 1.0f / (float)(to - from) : 0.0f;
  for (u32 c = lane * 8; c < cols; c += 256) {
    float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    for (u32 k = from; k < to; k++) {
      addHalves(sum, load8(row(resident, slot, at[neighbours[k]], residentRows, cols) + c));
    }
    storeMean(dst + (u64)i * cols + c, sum, inverse);
  }
}

// gather_mean_half_split is gather_mean_half with 2^shift lanes for a destination, so that no lane
// is idle where there are few columns. It loads four neighbours before it adds the first. Its
// results have the same bits.
GLOBAL THREADS(256) void gather_mean_half_split(
    float* RESTRICT dst, const u16* RESTRICT resident, const u16* RESTRICT slot,
    const u32* RESTRICT at, const u32* RESTRICT start, const u32* RESTRICT end,
    const u32* RESTRICT neighbours, u32 rows, u32 cols, u32 residentRows, u32 shift) {
  u32 i = (block() * threads() + thread()) >> shift;
  u32 lanes = 1u << shift;
  u32 lane = thread() & (lanes - 1);
  if (i >= rows) return;
  u32 from = start[i];
  u32 to = end[i];
  float inverse = to > from ? 1.0f / (float)(to - from) : 0.0f;
  for (u32 c = lane * 8; c < cols; c += lanes * 8) {
    float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    u32 k = from;
    for (; k + 4 <= to; k += 4) {
      u32x4 v[4];
      UNROLL
      for (int j = 0; j < 4; j++) {
        v[j] = load8(row(resident, slot, at[neighbours[k + j]], residentRows, cols) + c);
      }
      UNROLL
      for (int j = 0; j < 4; j++) addHalves(sum, v[j]);
    }
    for (; k < to; k++) {
      addHalves(sum, load8(row(resident, slot, at[neighbours[k]], residentRows, cols) + c));
    }
    storeMean(dst + (u64)i * cols + c, sum, inverse);
  }
}

// mean_grad adds to the gradient of each source its share of the gradients of the destinations that
// list it, in the order of the reverse list. A warp computes a source, without atomics.
GLOBAL THREADS(256) void mean_grad(
    float* RESTRICT dsrc, const float* RESTRICT ddst, const u32* RESTRICT reverseStart,
    const u32* RESTRICT reverse, const u32* RESTRICT start, const u32* RESTRICT end, u32 rows,
    u32 cols) {
  u32 u = (block() * threads() + thread()) >> 5;
  u32 lane = thread() & 31;
  if (u >= rows) return;
  u32 from = reverseStart[u];
  u32 to = reverseStart[u + 1];
  for (u32 c = lane * 4; c < cols; c += 128) {
    float* p = dsrc + (u64)u * cols + c;
    f32x4 sum = load4Written(p);
    for (u32 k = from; k < to; k++) {
      u32 i = reverse[k];
      float weight = 1.0f / (float)(end[i] - start[i]);
      sum += load4(ddst + (u64)i * cols + c) * weight;
    }
    store4(p, sum);
  }
}
