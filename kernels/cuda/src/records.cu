// UpdateRecords: learnt rows with the state of their optimiser, by three rules. Warp kernels. rec
// has rows records, of 3·cols, 3·cols + 1 or cols + 1 columns; grad has rows × cols. cols is not 0.
// flag and factor are as adam's, in optim.cu.
#include "gpu.h"

DEVICE void recordStep(float& x, float g, float& m, float& v, float rate, float beta1, float beta2,
                       float eps, float decay, float correct1, float correct2) {
  g = g + decay * x;
  m = beta1 * m + (1.0f - beta1) * g;
  v = beta2 * v + (1.0f - beta2) * g * g;
  x = x - rate * (m / correct1 / (__builtin_sqrtf(v / correct2) + eps));
}

// records_adam(rec, grad, rows, cols, rate, beta1, beta2, eps, decay, correct1, correct2, flag,
// factor) and records_adam_wide. A record is values, m, v.
template <int N>
DEVICE void recordsAdam(float* rec, const float* grad, u32 rows, u32 cols, float rate, float beta1,
                        float beta2, float eps, float decay, float correct1, float correct2,
                        const u32* flag, const float* factor) {
  if (flag && flag[0]) return;
  float by = factor ? factor[0] : 1.0f;
  eachWarp(rows, [&](u64 r) {
    float* x = rec + r * 3 * cols;
    eachGroup<N>(cols, [&](u32 c) {
      float xs[N], gs[N], ms[N], vs[N];
      getWritten(xs, x + c);
      get(gs, grad + r * cols + c);
      getWritten(ms, x + cols + c);
      getWritten(vs, x + 2 * (u64)cols + c);
      UNROLL
      for (int j = 0; j < N; j++) {
        recordStep(xs[j], gs[j] * by, ms[j], vs[j], rate, beta1, beta2, eps, decay, correct1, correct2);
      }
      put(x + c, xs);
      put(x + cols + c, ms);
      put(x + 2 * (u64)cols + c, vs);
    });
  });
}

#define RECORDS_ADAM(name, N)                                                                      \
  GLOBAL THREADS(256) void name(float* RESTRICT rec, const float* RESTRICT grad, u32 rows, u32 cols,   \
                                float rate, float beta1, float beta2, float eps, float decay,      \
                                float correct1, float correct2, const u32* RESTRICT flag,          \
                                const float* RESTRICT factor) {                                    \
    recordsAdam<N>(rec, grad, rows, cols, rate, beta1, beta2, eps, decay, correct1, correct2, flag,    \
                   factor);                                                                        \
  }

RECORDS_ADAM(records_adam, 1)
RECORDS_ADAM(records_adam_wide, 4)

// power returns base^n in float64.
DEVICE double power(double base, u32 n) {
  double p = 1;
  for (; n != 0; n >>= 1) {
    if (n & 1) p *= base;
    base *= base;
  }
  return p;
}

// records_adam_steps(rec, grad, rows, cols, rate, beta1, beta2, eps, decay, flag, factor). A record
// is values, m, v, and the number of steps that it was part of, which gives the corrections.
GLOBAL THREADS(256) void records_adam_steps(float* RESTRICT rec, const float* RESTRICT grad, u32 rows,
                                            u32 cols, float rate, float beta1, float beta2, float eps,
                                            float decay, const u32* RESTRICT flag,
                                            const float* RESTRICT factor) {
  if (flag && flag[0]) return;
  float by = factor ? factor[0] : 1.0f;
  eachWarp(rows, [&](u64 r) {
    float* x = rec + r * (3 * (u64)cols + 1);
    float* m = x + cols;
    float* v = m + cols;
    // The exchange has every lane read the number before one writes it. From 2^24 on it stays.
    float steps = exchange(v[cols], 0) + 1.0f;
    float correct1 = (float)(1.0 - power(beta1, (u32)steps));
    float correct2 = (float)(1.0 - power(beta2, (u32)steps));
    eachGroup<1>(cols, [&](u32 c) {
      float value = x[c], first = m[c], second = v[c];
      recordStep(value, grad[r * cols + c] * by, first, second, rate, beta1, beta2, eps, decay, correct1,
                 correct2);
      x[c] = value;
      m[c] = first;
      v[c] = second;
    });
    if ((thread() & 31) == 0) v[cols] = steps;
  });
}

// records_adagrad(rec, grad, rows, cols, rate, eps, flag, factor). A record is values, and the sum
// over its steps of the mean of its squared gradients.
GLOBAL THREADS(256) void records_adagrad(float* RESTRICT rec, const float* RESTRICT grad, u32 rows,
                                         u32 cols, float rate, float eps, const u32* RESTRICT flag,
                                         const float* RESTRICT factor) {
  if (flag && flag[0]) return;
  float by = factor ? factor[0] : 1.0f;
  eachWarp(rows, [&](u64 r) {
    float* x = rec + r * ((u64)cols + 1);
    const float* g = grad + r * cols;
    double squares = 0;
    eachGroup<1>(cols, [&](u32 c) {
      float v = g[c] * by;
      squares += (double)v * (double)v;
    });
    // As in records_adam_steps, all lanes read before one writes.
    float sum = exchange(x[cols], 0) + (float)(sum64(squares) / (double)cols);
    float step = rate / (__builtin_sqrtf(sum) + eps);
    eachGroup<1>(cols, [&](u32 c) { x[c] -= step * (g[c] * by); });
    if ((thread() & 31) == 0) x[cols] = sum;
  });
}
