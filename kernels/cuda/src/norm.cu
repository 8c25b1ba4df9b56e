// LayerNorm and its gradient of x, whole rows at a time. Warp kernels. The gradients of gain and
// bias are in sums.cu. stats (rows × 2) need not be aligned.
#include "gpu.h"

// LayerNorm: layer_norm(dst, stats, x, gain, bias, rows, cols, eps) and layer_norm_wide. cols is
// not 0.
template <int N>
DEVICE void layerNorm(float* dst, float* stats, const float* x, const float* gain, const float* bias,
                      u32 rows, u32 cols, float eps) {
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
      for (int j = 0; j < N; j++) v[j] = (v[j] - mean) * inverse * g[j] + b[j];
      put(dst + r * cols + c, v);
    });
  });
}

GLOBAL THREADS(256) void layer_norm(float* RESTRICT dst, float* RESTRICT stats, const float* RESTRICT x,
                                    const float* RESTRICT gain, const float* RESTRICT bias, u32 rows,
                                    u32 cols, float eps) {
  layerNorm<1>(dst, stats, x, gain, bias, rows, cols, eps);
}

GLOBAL THREADS(256) void layer_norm_wide(float* RESTRICT dst, float* RESTRICT stats,
                                         const float* RESTRICT x, const float* RESTRICT gain,
                                         const float* RESTRICT bias, u32 rows, u32 cols, float eps) {
  layerNorm<4>(dst, stats, x, gain, bias, rows, cols, eps);
}

// LayerNormGrad of x: layer_norm_grad(dx, dy, x, stats, gain, rows, cols) and layer_norm_grad_wide.
// cols is not 0.
template <int N>
DEVICE void layerNormGrad(float* dx, const float* dy, const float* x, const float* stats,
                          const float* gain, u32 rows, u32 cols) {
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
      float g[N], h[N], d[N];
      scaled(g, h, c);
      getWritten(d, dx + r * cols + c);
      UNROLL
      for (int j = 0; j < N; j++) d[j] += (g[j] - meanG - h[j] * meanGH) * inverse;
      put(dx + r * cols + c, d);
    });
  });
}

GLOBAL THREADS(256) void layer_norm_grad(float* RESTRICT dx, const float* RESTRICT dy,
                                         const float* RESTRICT x, const float* RESTRICT stats,
                                         const float* RESTRICT gain, u32 rows, u32 cols) {
  layerNormGrad<1>(dx, dy, x, stats, gain, rows, cols);
}

GLOBAL THREADS(256) void layer_norm_grad_wide(float* RESTRICT dx, const float* RESTRICT dy,
                                              const float* RESTRICT x, const float* RESTRICT stats,
                                              const float* RESTRICT gain, u32 rows, u32 cols) {
  layerNormGrad<4>(dx, dy, x, stats, gain, rows, cols);
}
