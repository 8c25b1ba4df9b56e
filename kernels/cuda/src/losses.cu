// Losses with their gradients, and ArgMax. Warp kernels. loss, labels and the result of ArgMax have
// one element a row, and need not be aligned. In kernels of losses, d is the gradient.
#include "arith.h"

// SoftmaxCrossEntropy: softmax_cross_entropy(loss, d, logits, labels, rows, cols, scale, error) and
// softmax_cross_entropy_wide. cols is not 0. A label that is neither a column nor 0xffffffff fails,
// and its row stays as it was.
template <int N>
DEVICE void softmaxCrossEntropy(float* loss, float* d, const float* logits, const u32* labels, u32 rows,
                                u32 cols, float scale, u64* error) {
  const u32 noLabel = 0xffffffff;
  eachWarp(rows, [&](u64 r) {
    u32 label = labels[r];
    bool first = (thread() & 31) == 0;
    if (label >= cols && label != noLabel) {
      if (first) fail(error, SoftmaxCrossEntropy, r);
      return;
    }
    const float* x = logits + r * cols;
    float* to = d + r * cols;
    if (label == noLabel) {
      if (first) loss[r] = 0;
      eachGroup<N>(cols, [&](u32 c) {
        float zero[N] = {};
        put(to + c, zero);
      });
      return;
    }
    float top = x[0];
    eachGroup<N>(cols, [&](u32 c) {
      float v[N];
      get(v, x + c);
      UNROLL
      for (int j = 0; j < N; j++) top = larger(top, v[j]);
    });
    top = max32(top);
    double total = 0;
    eachGroup<N>(cols, [&](u32 c) {
      float v[N];
      get(v, x + c);
      UNROLL
      for (int j = 0; j < N; j++) {
        v[j] = exp32(v[j] - top);
        total += (double)v[j];
      }
      put(to + c, v);
    });
    total = sum64(total);
    if (first) loss[r] = (float)(log64(total) - (double)(x[label] - top));
    float factor = (float)((double)scale / total);
    eachGroup<N>(cols, [&](u32 c) {
      float v[N];
      getWritten(v, to + c);
      UNROLL
      for (int j = 0; j < N; j++) {
        v[j] *= factor;
        if (c + j == label) v[j] -= scale;
      }
      put(to + c, v);
    });
  });
}

GLOBAL THREADS(256) void softmax_cross_entropy(float* RESTRICT loss, float* RESTRICT d,
                                               const float* RESTRICT logits, const u32* RESTRICT labels,
                                               u32 rows, u32 cols, float scale, u64* error) {
  softmaxCrossEntropy<1>(loss, d, logits, labels, rows, cols, scale, error);
}

GLOBAL THREADS(256) void softmax_cross_entropy_wide(float* RESTRICT loss, float* RESTRICT d,
                                                    const float* RESTRICT logits,
                                                    const u32* RESTRICT labels, u32 rows, u32 cols,
                                                    float scale, u64* error) {
  softmaxCrossEntropy<4>(loss, d, logits, labels, rows, cols, scale, error);
}

// SigmoidCrossEntropy: sigmoid_cross_entropy(loss, d, logits, targets, rows, cols, scale) and
// sigmoid_cross_entropy_wide. The loss of an element is max(x, 0) - x·y + log(1 + e^-|x|). Of up to
// 512 elements a lane takes one logarithm, of the product, whose factors are at most 2.
template <int N>
DEVICE void sigmoidCrossEntropy(float* loss, float* d, const float* logits, const float* targets,
                                u32 rows, u32 cols, float scale) {
  eachWarp(rows, [&](u64 r) {
    double total = 0, product = 1;
    eachGroup<N>(cols, [&](u32 c) {
      float x[N], y[N];
      get(x, logits + r * cols + c);
      get(y, targets + r * cols + c);
      UNROLL
      for (int j = 0; j < N; j++) {
        float at = x[j], target = y[j];
        if (target != target) {
          x[j] = 0;
          continue;
        }
        float e = exp32(-__builtin_fabsf(at));
        total += (double)(at < 0.0f ? 0.0f : at) - (double)at * (double)target;
        product *= 1.0 + (double)e;
        if (product > 1.3407807929942597e154) {  // 2^512
          total += log64(product);
          product = 1;
        }
        float sigmoid = (at < 0.0f ? e : 1.0f) / (1.0f + e);
        x[j] = (sigmoid - target) * scale;
      }
      put(d + r * cols + c, x);
    });
    total = sum64(total + log64(product));
    if ((thread() & 31) == 0) loss[r] = (float)total;
  });
}

GLOBAL THREADS(256) void sigmoid_cross_entropy(float* RESTRICT loss, float* RESTRICT d,
                                               const float* RESTRICT logits,
                                               const float* RESTRICT targets, u32 rows, u32 cols,
                                               float scale) {
  sigmoidCrossEntropy<1>(loss, d, logits, targets, rows, cols, scale);
}

GLOBAL THREADS(256) void sigmoid_cross_entropy_wide(float* RESTRICT loss, float* RESTRICT d,
                                                    const float* RESTRICT logits,
                                                    const float* RESTRICT targets, u32 rows, u32 cols,
                                                    float scale) {
  sigmoidCrossEntropy<4>(loss, d, logits, targets, rows, cols, scale);
}

// SquaredError: squared_error(loss, d, predictions, targets, rows, cols, scale) and
// squared_error_wide.
template <int N>
DEVICE void squaredError(float* loss, float* d, const float* predictions, const float* targets, u32 rows,
                         u32 cols, float scale) {
  eachWarp(rows, [&](u64 r) {
    double total = 0;
    eachGroup<N>(cols, [&](u32 c) {
      float x[N], y[N];
      get(x, predictions + r * cols + c);
      get(y, targets + r * cols + c);
      UNROLL
      for (int j = 0; j < N; j++) {
        if (y[j] != y[j]) {
          x[j] = 0;
          continue;
        }
        double off = (double)x[j] - (double)y[j];
        total += off * off;
        x[j] = (float)(2.0 * off * (double)scale);
      }
      put(d + r * cols + c, x);
    });
    total = sum64(total);
    if ((thread() & 31) == 0) loss[r] = (float)total;
  });
}

GLOBAL THREADS(256) void squared_error(float* RESTRICT loss, float* RESTRICT d,
                                       const float* RESTRICT predictions, const float* RESTRICT targets,
                                       u32 rows, u32 cols, float scale) {
  squaredError<1>(loss, d, predictions, targets, rows, cols, scale);
}

GLOBAL THREADS(256) void squared_error_wide(float* RESTRICT loss, float* RESTRICT d,
                                            const float* RESTRICT predictions,
                                            const float* RESTRICT targets, u32 rows, u32 cols,
                                            float scale) {
  squaredError<4>(loss, d, predictions, targets, rows, cols, scale);
}

// ArgMax: arg_max(dst, src, rows, cols) and arg_max_wide. cols is not 0.

// before reports whether b in column bc takes the place of a in column ac: NaN is larger than any
// number, and the first of equals wins.
DEVICE bool before(float a, u32 ac, float b, u32 bc) {
  bool odd = a != a;
  if (odd != (b != b)) return !odd;
  if (odd || a == b) return bc < ac;
  return b > a;
}

template <int N>
DEVICE void argMax(u32* dst, const float* src, u32 rows, u32 cols) {
  eachWarp(rows, [&](u64 r) {
    float best = -__builtin_inff();
    u32 at = 0xffffffff;  // behind every column
    eachGroup<N>(cols, [&](u32 c) {
      float v[N];
      get(v, src + r * cols + c);
      UNROLL
      for (int j = 0; j < N; j++) {
        if (before(best, at, v[j], c + j)) {
          best = v[j];
          at = c + j;
        }
      }
    });
    for (int mask = 16; mask != 0; mask >>= 1) {
      float other = exchange(best, mask);
      u32 place = exchangeBits(at, mask);
      if (before(best, at, other, place)) {
        best = other;
        at = place;
      }
    }
    if ((thread() & 31) == 0) dst[r] = at;
  });
}

GLOBAL THREADS(256) void arg_max(u32* RESTRICT dst, const float* RESTRICT src, u32 rows, u32 cols) {
  argMax<1>(dst, src, rows, cols);
}

GLOBAL THREADS(256) void arg_max_wide(u32* RESTRICT dst, const float* RESTRICT src, u32 rows, u32 cols) {
  argMax<4>(dst, src, rows, cols);
}
