// Gradients that go through several operations in one pass over memory: NeighborMeanGrad, Dropout
// in place and ReLUMask, then LayerNormGrad and ColumnSumGrad. The bits of each result are the same
// as with a launch for each operation.
//
// A warp computes 256 columns of a row. Lane i has eight of them: four from 4·i on, and four from
// 4·i + 128 on. The grid is columns/256, rounded up, by chunks of rows, as in sums.cu. Each chunk
// writes a row of floats for each sum to parts. parts is null if there are no sums.
#include "arith.h"
#include "columns.h"

enum { groups = 2, held = 4 * groups };  // a lane's groups of four columns, and its columns

// A span is the columns of a lane.
struct span {
  u32 first, cols;
};

DEVICE span spanOf(u32 cols) { return {block() * 128 * groups + 4 * (thread() & 31), cols}; }

// eachHeld calls f(j, c) for the columns of this lane: c is the column of the j-th value.
template <class F>
DEVICE void eachHeld(span s, F f) {
  UNROLL
  for (int j = 0; j < held; j++) {
    u32 c = s.first + j / 4 * 128 + j % 4;
    if (c < s.cols) f(j, c);
  }
}

// load reads the columns of this lane from a row, N at a time. Columns behind the end of the row
// become 0. WRITTEN is for rows that this kernel may write to.
template <int N, bool WRITTEN = false>
DEVICE void load(float (&v)[held], const float* row, span s) {
  UNROLL
  for (int j = 0; j < held; j++) v[j] = 0;
  if (N == 1) {
    eachHeld(s, [&](int j, u32 c) { v[j] = row[c]; });
    return;
  }
  UNROLL
  for (int g = 0; g < groups; g++) {
    u32 c = s.first + 128 * g;
    if (c >= s.cols) continue;
    f32x4 x = WRITTEN ? load4Written(row + c) : load4(row + c);
    UNROLL
    for (int j = 0; j < 4; j++) v[4 * g + j] = x[j];
  }
}

// store writes the columns of this lane to a row, N at a time.
template <int N>
DEVICE void store(float* row, const float (&v)[held], span s) {
  if (N == 1) {
    eachHeld(s, [&](int j, u32 c) { row[c] = v[j]; });
    return;
  }
  UNROLL
  for (int g = 0; g < groups; g++) {
    u32 c = s.first + 128 * g;
    if (c >= s.cols) continue;
    f32x4 x = {v[4 * g], v[4 * g + 1], v[4 * g + 2], v[4 * g + 3]};
    store4(row + c, x);
  }
}

// eachRow calls f(r) for the rows of this warp in the block's chunk.
template <class F>
DEVICE void eachRow(u32 rows, u32 chunk, F f) {
  u64 from = (u64)blockY() * chunk, to = from + chunk < rows ? from + chunk : rows;
  for (u64 r = from + (thread() >> 5); r < to; r += 8) f(r);
}

// finish adds up each of K sums over the eight groups of threads of a block. It writes the first
// sums of the K totals to parts.
template <class OWNER, int K>
DEVICE void finish(float* parts, float (&sum)[K * held], u32 sums, span s) {
  sumGroups<OWNER>(sum);
  if (thread() >= 32) return;
  UNROLL
  for (int k = 0; k < K; k++) {
    if (k >= (int)sums) continue;
    float* part = parts + ((u64)blockY() * sums + k) * s.cols;
    eachHeld(s, [&](int j, u32 c) { part[c] = sum[k * held + j]; });
  }
}

// A meanGrad has the operands of neighbor_mean_grad in aggregate.cu, and of the operations behind
// it: Dropout in place, as in activation.cu, unless ids is null; then ReLUMask by y, unless y is
// null.
struct meanGrad {
  float* dsrc;
  const float* ddst;
  const u32 *start, *end, *revStart, *revDst;
  u32 dsts, edges, fresh;
  u64* error;
  const float* y;
  const u32* ids;
  u64 key;
  u32 threshold;
  float factor;
};

// addMean adds v, which is row number row of ddst, to sum, divided by the destination's degree.
DEVICE void addMean(float (&sum)[held], const float (&v)[held], const meanGrad& of, u32 row) {
  float degree = (float)(of.end[row] - of.start[row]);
  UNROLL
  for (int j = 0; j < held; j++) sum[j] += v[j] / degree;
}

// rowOf computes row u of dsrc into sum, and stores it.
template <int N>
DEVICE void rowOf(float (&sum)[held], const meanGrad& of, u64 u, span s) {
  float out[held], v[2][held];
  if (of.y) load<N>(out, of.y + u * s.cols, s);
  list l = listOf(of.revStart, of.revStart + 1, u, of.edges, of.error, NeighborMeanGrad);
  UNROLL
  for (int j = 0; j < held; j++) sum[j] = 0;
  if (u < of.fresh) load<N, true>(sum, of.dsrc + u * s.cols, s);
  u64 k = l.from;
  for (; k + 2 <= l.to; k += 2) {
    u32 row0 = of.revDst[k], row1 = of.revDst[k + 1];
    if (row0 >= of.dsts || row1 >= of.dsts) break;
    load<N>(v[0], of.ddst + (u64)row0 * s.cols, s);
    load<N>(v[1], of.ddst + (u64)row1 * s.cols, s);
    addMean(sum, v[0], of, row0);
    addMean(sum, v[1], of, row1);
  }
  for (; k < l.to; k++) {
    u32 row = of.revDst[k];
    if (row >= of.dsts) {
      fail(of.error, NeighborMeanGrad, k);
      continue;
    }
    load<N>(v[0], of.ddst + (u64)row * s.cols, s);
    addMean(sum, v[0], of, row);
  }
  if (of.ids) {
    UNROLL
    for (int g = 0; g < groups; g++) {
      u64 hash = splitMix(of.key + golden * ((u64)of.ids[u] << 32 | (s.first + 128 * g) / 4));
      UNROLL
      for (int j = 0; j < 4; j++) sum[4 * g + j] = keepLane(sum[4 * g + j] * of.factor, hash, j, of.threshold);
    }
  }
  if (of.y) {
    UNROLL
    for (int j = 0; j < held; j++) sum[j] = out[j] > 0.0f ? sum[j] : 0.0f;
  }
  store<N>(of.dsrc + u * s.cols, sum, s);
}

#define MEAN_GRAD                                                                                  \
  float *RESTRICT dsrc, const float *RESTRICT ddst, const u32 *RESTRICT start, const u32 *RESTRICT end, \
      const u32 *RESTRICT revStart, const u32 *RESTRICT revDst, u32 dsts, u32 edges, u32 fresh,    \
      u64 *error, const float *RESTRICT y, const u32 *RESTRICT ids, u64 key, u32 threshold, float factor
#define MEAN_GRAD_OF                                                                               \
  { dsrc, ddst, start, end, revStart, revDst, dsts, edges, fresh, error, y, ids, key, threshold, factor }

// neighbor_mean_grad_chain(parts, dsrc, ddst, start, end, revStart, revDst, dsts, edges, fresh,
// error, y, ids, key, threshold, factor, srcs, cols, chunk) and neighbor_mean_grad_chain_wide:
// NeighborMeanGrad, the operations behind it in a meanGrad, and the sums of the result's columns.
template <int N>
DEVICE void meanGradChain(float* parts, const meanGrad& of, u32 srcs, u32 cols, u32 chunk) {
  span s = spanOf(cols);
  float sum[held] = {};
  eachRow(srcs, chunk, [&](u64 u) {
    float v[held];
    rowOf<N>(v, of, u, s);
    UNROLL
    for (int j = 0; j < held; j++) sum[j] += v[j];
  });
  struct owner;
  if (parts) finish<owner, 1>(parts, sum, 1, s);
}

GLOBAL THREADS(256) void neighbor_mean_grad_chain(float* RESTRICT parts, MEAN_GRAD, u32 srcs, u32 cols,
                                                  u32 chunk) {
  meanGradChain<1>(parts, MEAN_GRAD_OF, srcs, cols, chunk);
}

GLOBAL THREADS(256) void neighbor_mean_grad_chain_wide(float* RESTRICT parts, MEAN_GRAD, u32 srcs,
                                                       u32 cols, u32 chunk) {
  meanGradChain<4>(parts, MEAN_GRAD_OF, srcs, cols, chunk);
}

// A normGrad has the operands of layer_norm_grad in norm.cu, except dy. sums is 2, for the
// gradients of gain and bias, or 3, with the sums of the columns of dx.
struct normGrad {
  float* dx;
  const float *x, *stats, *gain;
  u32 add, sums;
};

// normGradChain computes dx; row(v, r) computes or loads row r of dy. There are at most 256
// columns, so that a warp has all of a row.
template <int N, class F>
DEVICE void normGradChain(float* parts, const normGrad& of, u32 rows, u32 cols, u32 chunk, F row) {
  span s = spanOf(cols);
  float gain[held], sum[3 * held] = {};
  load<N>(gain, of.gain, s);
  eachRow(rows, chunk, [&](u64 r) {
    float g[held], h[held], d[held] = {};
    load<N>(h, of.x + r * cols, s);
    float mean = of.stats[2 * r], inverse = of.stats[2 * r + 1];
    row(g, r);
    UNROLL
    for (int j = 0; j < held; j++) {
      h[j] = (h[j] - mean) * inverse;
      sum[j] += g[j] * h[j];
      sum[held + j] += g[j];
      g[j] *= gain[j];
    }
    float sumG = 0, sumGH = 0;
    eachHeld(s, [&](int j, u32) {
      sumG += g[j];
      sumGH += g[j] * h[j];
    });
    float meanG = sum32(sumG) / (float)cols, meanGH = sum32(sumGH) / (float)cols;
    if (of.add) load<N, true>(d, of.dx + r * cols, s);
    UNROLL
    for (int j = 0; j < held; j++) {
      d[j] += (g[j] - meanG - h[j] * meanGH) * inverse;
      sum[2 * held + j] += d[j];
    }
    store<N>(of.dx + r * cols, d, s);
  });
  finish<F, 3>(parts, sum, of.sums, s);
}

#define NORM_GRAD                                                                                  \
  float *RESTRICT dx, const float *RESTRICT x, const float *RESTRICT stats, const float *RESTRICT gain, \
      u32 add, u32 sums
#define NORM_GRAD_OF { dx, x, stats, gain, add, sums }

// layer_norm_grad_chain(parts, dy, dx, x, stats, gain, add, sums, rows, cols, chunk) and
// layer_norm_grad_chain_wide compute LayerNormGrad. If sums is 3, they also add up the columns of
// dx.
template <int N>
DEVICE void normGradOf(float* parts, const float* dy, const normGrad& of, u32 rows, u32 cols, u32 chunk) {
  normGradChain<N>(parts, of, rows, cols, chunk,
                   [&](float (&v)[held], u64 r) { load<N>(v, dy + r * cols, spanOf(cols)); });
}

GLOBAL THREADS(256) void layer_norm_grad_chain(float* RESTRICT parts, const float* RESTRICT dy, NORM_GRAD,
                                               u32 rows, u32 cols, u32 chunk) {
  normGradOf<1>(parts, dy, NORM_GRAD_OF, rows, cols, chunk);
}

GLOBAL THREADS(256) void layer_norm_grad_chain_wide(float* RESTRICT parts, const float* RESTRICT dy, NORM_GRAD,
                                                    u32 rows, u32 cols, u32 chunk) {
  normGradOf<4>(parts, dy, NORM_GRAD_OF, rows, cols, chunk);
}

// neighbor_mean_norm_grad(parts, ..., dx, x, stats, gain, add, sums, srcs, cols, chunk) and
// neighbor_mean_norm_grad_wide: LayerNormGrad behind NeighborMeanGrad, whose dsrc is dy. The dots
// are the operands of neighbor_mean_grad_chain from dsrc to factor.
template <int N>
DEVICE void meanNormGrad(float* parts, const meanGrad& mean, const normGrad& of, u32 srcs, u32 cols,
                         u32 chunk) {
  normGradChain<N>(parts, of, srcs, cols, chunk,
                   [&](float (&v)[held], u64 u) { rowOf<N>(v, mean, u, spanOf(cols)); });
}

GLOBAL THREADS(256) void neighbor_mean_norm_grad(float* RESTRICT parts, MEAN_GRAD, NORM_GRAD, u32 srcs,
                                                 u32 cols, u32 chunk) {
  meanNormGrad<1>(parts, MEAN_GRAD_OF, NORM_GRAD_OF, srcs, cols, chunk);
}

GLOBAL THREADS(256) void neighbor_mean_norm_grad_wide(float* RESTRICT parts, MEAN_GRAD, NORM_GRAD, u32 srcs,
                                                      u32 cols, u32 chunk) {
  meanNormGrad<4>(parts, MEAN_GRAD_OF, NORM_GRAD_OF, srcs, cols, chunk);
}
