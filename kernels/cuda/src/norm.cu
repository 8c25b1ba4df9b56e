// LayerNorm and its gradient of x, whole rows at a time. Warp kernels. The gradients of gain and
// bias are in sums.cu. stats (rows × 2) need not be aligned.
#include "arith.h"

// LayerNorm: layer_norm(dst, stats, x, gain, bias, rows, cols, eps, relu, ids, key, threshold,
// factor) and layer_norm_wide. cols is not 0. With relu, the larger of the result and 0 is taken,
// NaN staying NaN. With ids, which is not null, dropout follows, as dropout in activation.cu.
struct after {
  u32 relu;
  const u32* ids;
  u64 key;
  u32 threshold;
  float factor;
};

template <int N>
DEVICE void layerNorm(float* dst, float* stats, const float* x, const float* gain, const float* bias,
                      u32 rows, u32 cols, float eps, const after& then) {
  eachWarp(rows, [&](u64 r) {
    const float* row = x + r * cols;
    float sum = 0;
    eachGroup<N>(cols, [&](u32 c) {
      float v[N];
      get(v, row + c);
      UNROLL
      for (int j = 0; j < N; j++) sum += v[j];
    });
    float mean = sum32(sum) / (float)cols;
    float squares = 0;
    eachGroup<N>(cols, [&](u32 c) {
      float v[N];
      get(v, row + c);
      UNROLL
      for (int j = 0; j < N; j++) squares += (v[j] - mean) * (v[j] - mean);
    });
    float inverse = 1.0f / __builtin_sqrtf(sum32(squares) / (float)cols + eps);
    if ((thread() & 31) == 0) {
      stats[2 * r] = mean;
      stats[2 * r + 1] = inverse;
    }
    eachGroup<N>(cols, [&](u32 c) {
      float v[N], g[N], b[N];
      get(v, row + c);
      get(g, gain + c);
      get(b, bias + c);
      UNROLL
      for (int j = 0; j < N; j++) {
        v[j] = (v[j] - mean) * inverse * g[j] + b[j];
        if (then.relu && v[j] < 0.0f) v[j] = 0.0f;
      }
      if (then.ids) {
        u64 hash = splitMix(then.key + golden * ((u64)then.ids[r] << 32 | c / 4));
        UNROLL
        for (int j = 0; j < N; j++) v[j] = keepLane(v[j] * then.factor, hash, c + j, then.threshold);
      }
      put(dst + r * cols + c, v);
    });
  });
}

#define LAYER_NORM(name, N)                                                                        \
  GLOBAL THREADS(256) void name(float* RESTRICT dst, float* RESTRICT stats, const float* RESTRICT x, \
                                const float* RESTRICT gain, const float* RESTRICT bias, u32 rows,  \
                                u32 cols, float eps, u32 relu, const u32* RESTRICT ids, u64 key,   \
                                u32 threshold, float factor) {                                     \
    layerNorm<N>(dst, stats, x, gain, bias, rows, cols, eps, {relu, ids, key, threshold, factor}); \
  }

LAYER_NORM(layer_norm, 1)
LAYER_NORM(layer_norm_wide, 4)

// LayerNormGrad of x: layer_norm_grad(dx, dy, x, stats, gain, rows, cols, add) and
// layer_norm_grad_wide. cols is not 0. Without add, dx is taken as 0 and not read.
template <int N>
DEVICE void layerNormGrad(float* dx, const float* dy, const float* x, const float* stats,
                          const float* gain, u32 rows, u32 cols, u32 add) {
  eachWarp(rows, [&](u64 r) {
    float mean = stats[2 * r], inverse = stats[2 * r + 1];
    // scaled gets dy·gain and the normalised x.
    auto scaled = [&](float (&g)[N], float (&h)[N], u32 c) {
      float by[N];
      get(g, dy + r * cols + c);
      get(h, x + r * cols + c);
      get(by, gain + c);
      UNROLL
      for (int j = 0; j < N; j++) {
        g[j] *= by[j];
        h[j] = (h[j] - mean) * inverse;
      }
    };
    float sumG = 0, sumGH = 0;
    eachGroup<N>(cols, [&](u32 c) {
      float g[N], h[N];
      scaled(g, h, c);
      UNROLL
      for (int j = 0; j < N; j++) {
        sumG += g[j];
        sumGH += g[j] * h[j];
      }
    });
    float meanG = sum32(sumG) / (float)cols, meanGH = sum32(sumGH) / (float)cols;
    eachGroup<N>(cols, [&](u32 c) {
      float g[N], h[N], d[N] = {};
      scaled(g, h, c);
      if (add) getWritten(d, dx + r * cols + c);
      UNROLL
      for (int j = 0; j < N; j++) d[j] += (g[j] - meanG - h[j] * meanGH) * inverse;
      put(dx + r * cols + c, d);
    });
  });
}

GLOBAL THREADS(256) void layer_norm_grad(float* RESTRICT dx, const float* RESTRICT dy,
                                         const float* RESTRICT x, const float* RESTRICT stats,
                                         const float* RESTRICT gain, u32 rows, u32 cols, u32 add) {
  layerNormGrad<1>(dx, dy, x, stats, gain, rows, cols, add);
}

GLOBAL THREADS(256) void layer_norm_grad_wide(float* RESTRICT dx, const float* RESTRICT dy,
                                              const float* RESTRICT x, const float* RESTRICT stats,
                                              const float* RESTRICT gain, u32 rows, u32 cols, u32 add) {
  layerNormGrad<4>(dx, dy, x, stats, gain, rows, cols, add);
}
