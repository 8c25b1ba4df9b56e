// Sums over rows, of columns: ColumnSumGrad, and the gradients of LayerNorm, HeadDot and TimeEncode
// that are such sums. Each takes two launches: a kernel NAME_parts sums chunks of rows, and
// sum_all adds the chunks up, those of many sums at once, and of slices of products too.
//
// NAME_parts has a grid of columns/32 (_wide: columns/128), rounded up, by chunks. A chunk has
// chunk rows, which the caller makes max(64, rows/512 rounded up), so there are at most 512. parts
// has a row of floats for each chunk: cols of them, or 2·cols where two sums are made, one behind
// the other.
#include "arith.h"
#include "columns.h"

// columnSums adds up, for the rows [from, to), the K·N values of f(v, r, c), as sumGroups does. The
// first group of threads has the sum.
template <int N, int K, class F>
DEVICE void columnSums(float (&sum)[K * N], u64 from, u64 to, u32 c, u32 cols, F f) {
  u32 group = thread() >> 5;
  UNROLL
  for (int j = 0; j < K * N; j++) sum[j] = 0;
  if (c < cols) {
    for (u64 r = from + group; r < to; r += 8) {
      float v[K * N];
      f(v, r, c);
      UNROLL
      for (int j = 0; j < K * N; j++) sum[j] += v[j];
    }
  }
  sumGroups<F>(sum);
}

template <int N, int K, class F>
DEVICE void partsOf(float* parts, u32 rows, u32 cols, u32 chunk, F f) {
  u64 from = (u64)blockY() * chunk, to = from + chunk;
  u32 c = (block() * 32 + (thread() & 31)) * N;
  float sum[K * N];
  columnSums<N, K>(sum, from < rows ? from : rows, to < rows ? to : rows, c, cols, f);
  if (thread() >= 32 || c >= cols) return;
  UNROLL
  for (int k = 0; k < K; k++) {
    UNROLL
    for (int j = 0; j < N; j++) {
      if (c + j < cols) parts[((u64)blockY() * K + k) * cols + c + j] = sum[k * N + j];
    }
  }
}

// sum_all(dst, parts, n, count, stride, ... sixteen times, chunks): any grid. To each of the n
// elements of dst it adds the sum of count parts, which lie stride elements apart. n is 0 for sums
// that are not there. A block takes chunk after chunk, of 32 elements of a dst; chunks is their
// number.
struct partial {
  float* dst;
  const float* parts;
  u32 n, count;
  u64 stride;
};

// take sets p where chunk k is of this sum, and else takes off the chunks that the sum has.
DEVICE bool take(partial& p, u64& k, float* dst, const float* parts, u32 n, u32 count, u64 stride) {
  u32 chunks = n / 32 + (n % 32 != 0);
  if (k >= chunks) {
    k -= chunks;
    return false;
  }
  p = {dst, parts, n, count, stride};
  return true;
}

#define EACH_SUM(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)
#define SUM(i) float *RESTRICT dst##i, const float *RESTRICT parts##i, u32 n##i, u32 count##i, u64 stride##i,
#define TAKE(i) || take(p, k, dst##i, parts##i, n##i, count##i, stride##i)

GLOBAL THREADS(256) void sum_all(EACH_SUM(SUM) u64 chunks) {
  for (u64 chunk = block(); chunk < chunks; chunk += blocks()) {
    u64 k = chunk;
    partial p = {};
    bool found = false EACH_SUM(TAKE);
    u64 base = k * 32;
    u32 left = !found ? 0 : p.n - base < 32 ? (u32)(p.n - base) : 32, c = thread() & 31;
    float sum[1];
    columnSums<1, 1>(sum, 0, p.count, c, left,
                     [&](float (&v)[1], u64 i, u32 at) { v[0] = p.parts[i * p.stride + base + at]; });
    if (thread() < 32 && c < left) p.dst[base + c] += sum[0];
  }
}

// ColumnSumGrad: column_sum_parts(parts, src, rows, cols, chunk) and column_sum_parts_wide.
template <int N>
DEVICE void columnSumParts(float* parts, const float* src, u32 rows, u32 cols, u32 chunk) {
  partsOf<N, 1>(parts, rows, cols, chunk,
                [&](float (&v)[N], u64 r, u32 c) { get(v, src + r * cols + c); });
}

GLOBAL THREADS(256) void column_sum_parts(float* RESTRICT parts, const float* RESTRICT src, u32 rows,
                                          u32 cols, u32 chunk) {
  columnSumParts<1>(parts, src, rows, cols, chunk);
}

GLOBAL THREADS(256) void column_sum_parts_wide(float* RESTRICT parts, const float* RESTRICT src,
                                               u32 rows, u32 cols, u32 chunk) {
  columnSumParts<4>(parts, src, rows, cols, chunk);
}

// HeadDotGrad of a: head_dot_parts(parts, ddst, src, rows, width, heads, chunk) and
// head_dot_parts_wide. Columns are heads·width. ddst (rows × heads) need not be aligned.
template <int N>
DEVICE void headDotParts(float* parts, const float* ddst, const float* src, u32 rows, u32 width,
                         u32 heads, u32 chunk) {
  u32 cols = width * heads;
  partsOf<N, 1>(parts, rows, cols, chunk, [&](float (&v)[N], u64 r, u32 c) {
    float g = ddst[r * heads + c / width];
    get(v, src + r * cols + c);
    UNROLL
    for (int j = 0; j < N; j++) v[j] *= g;
  });
}

GLOBAL THREADS(256) void head_dot_parts(float* RESTRICT parts, const float* RESTRICT ddst,
                                        const float* RESTRICT src, u32 rows, u32 width, u32 heads,
                                        u32 chunk) {
  headDotParts<1>(parts, ddst, src, rows, width, heads, chunk);
}

GLOBAL THREADS(256) void head_dot_parts_wide(float* RESTRICT parts, const float* RESTRICT ddst,
                                             const float* RESTRICT src, u32 rows, u32 width, u32 heads,
                                             u32 chunk) {
  headDotParts<4>(parts, ddst, src, rows, width, heads, chunk);
}

// LayerNormGrad of gain and bias: layer_norm_parts(parts, dy, x, stats, rows, cols, chunk) and
// layer_norm_parts_wide. Two sums: of dgain, then of dbias. stats need not be aligned.
template <int N>
DEVICE void layerNormParts(float* parts, const float* dy, const float* x, const float* stats, u32 rows,
                           u32 cols, u32 chunk) {
  partsOf<N, 2>(parts, rows, cols, chunk, [&](float (&v)[2 * N], u64 r, u32 c) {
    float mean = stats[2 * r], inverse = stats[2 * r + 1];
    float g[N], at[N];
    get(g, dy + r * cols + c);
    get(at, x + r * cols + c);
    UNROLL
    for (int j = 0; j < N; j++) {
      v[j] = g[j] * ((at[j] - mean) * inverse);
      v[N + j] = g[j];
    }
  });
}

GLOBAL THREADS(256) void layer_norm_parts(float* RESTRICT parts, const float* RESTRICT dy,
                                          const float* RESTRICT x, const float* RESTRICT stats, u32 rows,
                                          u32 cols, u32 chunk) {
  layerNormParts<1>(parts, dy, x, stats, rows, cols, chunk);
}

GLOBAL THREADS(256) void layer_norm_parts_wide(float* RESTRICT parts, const float* RESTRICT dy,
                                               const float* RESTRICT x, const float* RESTRICT stats,
                                               u32 rows, u32 cols, u32 chunk) {
  layerNormParts<4>(parts, dy, x, stats, rows, cols, chunk);
}

// TimeEncodeGrad: time_encode_parts(parts, dy, times, w, b, rows, cols, chunk) and
// time_encode_parts_wide. Two sums: of dw, then of db. times (rows × 2) need not be aligned.
template <int N>
DEVICE void timeEncodeParts(float* parts, const float* dy, const float* times, const float* w,
                            const float* b, u32 rows, u32 cols, u32 chunk) {
  partsOf<N, 2>(parts, rows, cols, chunk, [&](float (&v)[2 * N], u64 r, u32 c) {
    float high = times[2 * r], low = times[2 * r + 1], at = high + low;
    double t = (double)high + (double)low;
    float g[N], rate[N], shift[N];
    get(g, dy + r * cols + c);
    get(rate, w + c);
    get(shift, b + c);
    UNROLL
    for (int j = 0; j < N; j++) {
      float d = g[j] * -sine(fma64(t, (double)rate[j], (double)shift[j]));
      v[j] = d * at;
      v[N + j] = d;
    }
  });
}

GLOBAL THREADS(256) void time_encode_parts(float* RESTRICT parts, const float* RESTRICT dy,
                                           const float* RESTRICT times, const float* RESTRICT w,
                                           const float* RESTRICT b, u32 rows, u32 cols, u32 chunk) {
  timeEncodeParts<1>(parts, dy, times, w, b, rows, cols, chunk);
}

GLOBAL THREADS(256) void time_encode_parts_wide(float* RESTRICT parts, const float* RESTRICT dy,
                                                const float* RESTRICT times, const float* RESTRICT w,
                                                const float* RESTRICT b, u32 rows, u32 cols, u32 chunk) {
  timeEncodeParts<4>(parts, dy, times, w, b, rows, cols, chunk);
}
