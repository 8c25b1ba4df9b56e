// Updates of parameters, and the norm of their gradients. Both work on many tensors in one launch:
// a table on the device has their addresses, and the number of the first chunk of each. Tensors are
// cut into chunks of a fixed size, the last of each may be shorter; a tensor of no elements has
// none.
#include "gpu.h"

// tensorOf returns the last of count entries whose first chunk is at most c.
template <class E>
DEVICE u32 tensorOf(const E* table, u32 count, u64 c) {
  u32 low = 0, high = count;  // the entry is in [low, high)
  while (high - low > 1) {
    u32 middle = low + (high - low) / 2;
    if (table[middle].first <= c) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// Adam: adam(table, count, chunks, keep, rate, beta1, beta2, eps, decay, correct1, correct2, flag,
// factor) and adam_wide. Any grid: a block takes chunk after chunk, of 1,024 elements. The table
// has six u64 a parameter: the addresses of value, gradient, m and v, the elements, and the first
// chunk. The wide variant asks that all addresses are multiples of 16. flag, a word, and factor, a
// float, may be null: see Guard of package kernels. keep multiplies values first, and is 1 for
// none.
struct parameter {
  float IN_GLOBAL* value;
  float IN_GLOBAL* grad;
  float IN_GLOBAL* m;
  float IN_GLOBAL* v;
  u64 n, first;
};

struct rates {
  float keep, rate, beta1, beta2, eps, decay, correct1, correct2, factor;
};

DEVICE void adamStep(float& x, float& g, float& m, float& v, const rates& r) {
  g *= r.factor;
  x *= r.keep;
  g = g + r.decay * x;
  m = r.beta1 * m + (1.0f - r.beta1) * g;
  v = r.beta2 * v + (1.0f - r.beta2) * g * g;
  x = x - r.rate * (m / r.correct1 / (__builtin_sqrtf(v / r.correct2) + r.eps));
}

template <int N>
DEVICE void adamChunks(const parameter* table, u32 count, u64 chunks, const rates& r, bool isVoid) {
  for (u64 c = block(); c < chunks; c += blocks()) {
    parameter p = table[tensorOf(table, count, c)];
    u64 from = (c - p.first) * 1024, left = p.n - from;
    u32 n = left < 1024 ? (u32)left : 1024;
    float *value = (float*)p.value + from, *grad = (float*)p.grad + from;
    float *m = (float*)p.m + from, *v = (float*)p.v + from;
    UNROLL
    for (u32 k = 0; k < 4; k += N) {
      u32 i = N == 4 ? thread() * 4 : thread() + 256 * k;
      if (i + N > n) {
        // The tail of a wide chunk, element by element.
        for (u32 j = i; j < n && j < i + N; j++) {
          if (!isVoid) {
            float x = value[j], g = grad[j], first = m[j], second = v[j];
            adamStep(x, g, first, second, r);
            value[j] = x;
            m[j] = first;
            v[j] = second;
          }
          grad[j] = 0;
        }
        continue;
      }
      float zero[N] = {};
      if (!isVoid) {
        float xs[N], gs[N], ms[N], vs[N];
        getWritten(xs, value + i);
        getWritten(gs, grad + i);
        getWritten(ms, m + i);
        getWritten(vs, v + i);
        UNROLL
        for (int j = 0; j < N; j++) adamStep(xs[j], gs[j], ms[j], vs[j], r);
        put(value + i, xs);
        put(m + i, ms);
        put(v + i, vs);
      }
      put(grad + i, zero);
    }
  }
}

#define ADAM(name, N)                                                                              \
  GLOBAL THREADS(256) void name(const parameter* RESTRICT table, u32 count, u64 chunks, float keep,    \
                                float rate, float beta1, float beta2, float eps, float decay,      \
                                float correct1, float correct2, const u32* RESTRICT flag,          \
                                const float* RESTRICT factor) {                                    \
    rates r = {keep, rate, beta1, beta2, eps, decay, correct1, correct2, factor ? factor[0] : 1.0f};   \
    adamChunks<N>(table, count, chunks, r, flag && flag[0]);                                       \
  }

ADAM(adam, 1)
ADAM(adam_wide, 4)

// ClipFactor, in two launches. sum_squares(parts, table, count, chunks) and sum_squares_wide, any
// grid: parts[c] is the sum of squares of chunk c, of 8,192 elements, in float64. The table has
// three u64 a gradient: its address, its elements, and its first chunk. The wide variant asks that
// all addresses are multiples of 16.
struct gradient {
  const float IN_GLOBAL* values;
  u64 n, first;
};

template <int N>
DEVICE void sumSquares(double* parts, const gradient* table, u32 count, u64 chunks) {
  SHARED double s[256];
  for (u64 c = block(); c < chunks; c += blocks()) {
    gradient g = table[tensorOf(table, count, c)];
    u64 from = (c - g.first) * 8192, left = g.n - from;
    u32 n = left < 8192 ? (u32)left : 8192;
    const float* p = (const float*)g.values + from;
    double sum = 0;
    for (u32 i = thread() * 4; i < n; i += 1024) {
      if (N == 4 && i + 4 <= n) {
        float v[4];
        get(v, p + i);
        UNROLL
        for (int j = 0; j < 4; j++) sum += (double)v[j] * (double)v[j];
        continue;
      }
      for (u32 j = i; j < n && j < i + 4; j++) sum += (double)p[j] * (double)p[j];
    }
    sum = blockSum64(s, sum);
    if (thread() == 0) parts[c] = sum;
    barrier();
  }
}

GLOBAL THREADS(256) void sum_squares(double* RESTRICT parts, const gradient* RESTRICT table, u32 count,
                                     u64 chunks) {
  sumSquares<1>(parts, table, count, chunks);
}

GLOBAL THREADS(256) void sum_squares_wide(double* RESTRICT parts, const gradient* RESTRICT table,
                                          u32 count, u64 chunks) {
  sumSquares<4>(parts, table, count, chunks);
}

// clip_factor(factor, squares, parts, table, count, chunks, most): one block. It adds up the parts
// of each of the count gradients and rounds to squares. The norm is the root of the sum of squares;
// factor[0] is most/(norm + 1e-6), at most 1, and NaN where the norm is. All after squares is in
// float64.
GLOBAL THREADS(256) void clip_factor(float* RESTRICT factor, float* squares,
                                     const double* RESTRICT parts, const gradient* RESTRICT table,
                                     u32 count, u64 chunks, double most) {
  if (block() != 0) return;
  u32 lane = thread() & 31;
  for (u32 i = thread() >> 5; i < count; i += 8) {
    u64 end = i + 1 < count ? table[i + 1].first : chunks;
    double sum = 0;
    for (u64 c = table[i].first + lane; c < end; c += 32) sum += parts[c];
    sum = sum64(sum);
    if (lane == 0) squares[i] = (float)sum;
  }
  barrier();
  if (thread() != 0) return;
  double norm = 0;
  for (u32 i = 0; i < count; i++) norm += (double)squares[i];
  double by = most / (__builtin_sqrt(norm) + 1e-6);
  factor[0] = by >= 1.0 ? 1.0f : (float)by;
}
