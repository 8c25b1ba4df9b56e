// The activations with exponentials: ELU, GELU and Tanh, and dropout. All are flat.
#include "arith.h"
#include "map.h"

// ELU: elu(dst, src, n); ELUGrad: elu_grad(dx, dy, y, n). Both, and all below, have a variant
// _wide. The gradient is not dy·1 + dx by one rounding: dy·slope is rounded first.
MAP(elu, [](float x) { return x <= 0.0f ? expm132(x) : x; })
MAP3(elu_grad, [](float d, float g, float y) { return d + g * (y > 0.0f ? 1.0f : y + 1.0f); })

// GELU: gelu(dst, src, n); GELUGrad: gelu_grad(dx, dy, x, n). Beyond 64 Φ is 0 or 1 for long, and
// products with infinity would be NaN.
DEVICE float magnitude(float x) {
  float a = __builtin_fabsf(x);
  return a > 64.0f ? 64.0f : a;
}

DEVICE float gelu32(float x) {
  float a = magnitude(x);
  return (x < 0.0f ? 0.0f : x) - a * normalRatio(a) * exp32(a * a * -0.5f);
}

// geluSlope returns Φ(x) + x·φ(x).
DEVICE float geluSlope(float x) {
  float a = magnitude(x);
  float below = (normalRatio(a) - a * 0.3989422804014327f) * exp32(a * a * -0.5f);  // at -a
  return 0.5f + __builtin_copysignf(0.5f - below, x);
}

MAP(gelu, [](float x) { return gelu32(x); })
MAP3(gelu_grad, [](float d, float g, float x) { return d + g * geluSlope(x); })

// Tanh: tanh(dst, src, n), in place too; TanhGrad: tanh_grad(dx, dy, y, n).
MAP(tanh_cell, [](float x) { return tanh32(x); })
MAP3(tanh_grad, [](float d, float g, float y) { return d + g * (1.0f - y * y); })

// Dropout: dropout(dst, src, ids, rows, cols, key, threshold, factor) and dropout_wide, with src in
// floats, in place too; dropout_half, with src in halves; and DropoutGrad: dropout_grad(dx, dy,
// ids, ...) and dropout_grad_wide. ids has a word a row. threshold is dropoutThreshold(p) and
// factor is dropoutScale(threshold), rounded: see dropout.go of package kernels. A thread computes
// the four columns of a hash. ids need no multiple of 16 bytes.
template <class F>
DEVICE void eachHash(const u32* ids, u32 rows, u32 cols, u64 key, F f) {
  u32 groups = cols / 4 + (cols % 4 != 0);
  u64 n = (u64)rows * groups;
  for (u64 k = thread64(); k < n; k += threads64()) {
    u64 r = k / groups;
    u32 group = (u32)(k - r * groups);
    f(r * cols + 4 * group, cols - 4 * group, splitMix(key + golden * ((u64)ids[r] << 32 | group)));
  }
}

// drop computes up to four elements from at on, of which left are in the row; ADD adds them.
template <bool ADD, class T>
DEVICE void drop(float* dst, const T* src, u64 at, u32 left, u64 hash, u32 threshold, float factor) {
  for (u32 j = 0; j < 4 && j < left; j++) {
    float v[1];
    get(v, src + at + j);
    float kept = keepLane(v[0] * factor, hash, j, threshold);
    dst[at + j] = ADD ? dst[at + j] + kept : kept;
  }
}

template <bool ADD>
DEVICE void drop4(float* dst, const float* src, u64 at, u64 hash, u32 threshold, float factor) {
  float v[4], sum[4];
  getWritten(v, src + at);
  if (ADD) getWritten(sum, dst + at);
  UNROLL
  for (int j = 0; j < 4; j++) {
    float kept = keepLane(v[j] * factor, hash, j, threshold);
    v[j] = ADD ? sum[j] + kept : kept;
  }
  put(dst + at, v);
}

GLOBAL THREADS(256) void dropout(float* dst, const float* src, const u32* RESTRICT ids, u32 rows,
                                 u32 cols, u64 key, u32 threshold, float factor) {
  eachHash(ids, rows, cols, key, [&](u64 at, u32 left, u64 hash) {
    drop<false>(dst, src, at, left, hash, threshold, factor);
  });
}

GLOBAL THREADS(256) void dropout_wide(float* dst, const float* src, const u32* RESTRICT ids, u32 rows,
                                      u32 cols, u64 key, u32 threshold, float factor) {
  eachHash(ids, rows, cols, key, [&](u64 at, u32, u64 hash) {
    drop4<false>(dst, src, at, hash, threshold, factor);
  });
}

GLOBAL THREADS(256) void dropout_half(float* RESTRICT dst, const u16* RESTRICT src,
                                      const u32* RESTRICT ids, u32 rows, u32 cols, u64 key,
                                      u32 threshold, float factor) {
  eachHash(ids, rows, cols, key, [&](u64 at, u32 left, u64 hash) {
    drop<false>(dst, src, at, left, hash, threshold, factor);
  });
}

// dropout_mask(d, y, ids, rows, cols, key, threshold, factor) and dropout_mask_wide: dropout in
// place, then ReLUMask.
template <int N>
DEVICE void dropMask(float* d, const float* y, const u32* ids, u32 rows, u32 cols, u64 key, u32 threshold,
                     float factor) {
  eachHash(ids, rows, cols, key, [&](u64 at, u32 left, u64 hash) {
    UNROLL
    for (u32 j = 0; j < 4; j += N) {
      if (j >= left) return;
      float v[N], out[N];
      getWritten(v, d + at + j);
      get(out, y + at + j);
      UNROLL
      for (int i = 0; i < N; i++) {
        float kept = keepLane(v[i] * factor, hash, j + i, threshold);
        v[i] = out[i] > 0.0f ? kept : 0.0f;
      }
      put(d + at + j, v);
    }
  });
}

GLOBAL THREADS(256) void dropout_mask(float* RESTRICT d, const float* RESTRICT y, const u32* RESTRICT ids,
                                      u32 rows, u32 cols, u64 key, u32 threshold, float factor) {
  dropMask<1>(d, y, ids, rows, cols, key, threshold, factor);
}

GLOBAL THREADS(256) void dropout_mask_wide(float* RESTRICT d, const float* RESTRICT y,
                                           const u32* RESTRICT ids, u32 rows, u32 cols, u64 key,
                                           u32 threshold, float factor) {
  dropMask<4>(d, y, ids, rows, cols, key, threshold, factor);
}

// dropout_half_wide: a thread computes eight columns, of two hashes.
GLOBAL THREADS(256) void dropout_half_wide(float* RESTRICT dst, const u16* RESTRICT src,
                                           const u32* RESTRICT ids, u32 rows, u32 cols, u64 key,
                                           u32 threshold, float factor) {
  eachColumn<8>(rows, cols, [&](u64 i, u64 r, u32 c) {
    float v[8];
    get(v, src + i);
    u64 state = key + golden * ((u64)ids[r] << 32 | c / 4);
    u64 low = splitMix(state), high = splitMix(state + golden);
    UNROLL
    for (int j = 0; j < 8; j++) v[j] = keepLane(v[j] * factor, j < 4 ? low : high, j, threshold);
    put(dst + i, v);
  });
}

GLOBAL THREADS(256) void dropout_grad(float* dx, const float* RESTRICT dy, const u32* RESTRICT ids,
                                      u32 rows, u32 cols, u64 key, u32 threshold, float factor) {
  eachHash(ids, rows, cols, key, [&](u64 at, u32 left, u64 hash) {
    drop<true>(dx, dy, at, left, hash, threshold, factor);
  });
}

GLOBAL THREADS(256) void dropout_grad_wide(float* dx, const float* RESTRICT dy, const u32* RESTRICT ids,
                                           u32 rows, u32 cols, u64 key, u32 threshold, float factor) {
  eachHash(ids, rows, cols, key, [&](u64 at, u32, u64 hash) {
    drop4<true>(dx, dy, at, hash, threshold, factor);
  });
}
