// Sums over lists of neighbours, and their gradients: NeighborMean and WeightedSum. All are lanes
// kernels. Destinations are the dsts rows whose lists start and end name in nbr, which has edges
// positions; sources are the srcs rows that nbr names. revStart (srcs + 1), revDst and revEdge
// (edges each) name the same edges by source.
#include "lanes.h"

// sumList calls add(v, k) for the positions k of a list, in order, with N columns of the row that
// rows[k] names. It loads four rows before it adds the first. A row that is not below n fails.
template <int N, class T, class F>
DEVICE void sumList(const T* src, u32 cols, u32 c, const u32* rows, list l, u32 n, u64* error, code of,
                    F add) {
  u64 k = l.from;
  for (; k + 4 <= l.to; k += 4) {
    float v[4][N];
    u32 row[4];
    UNROLL
    for (int j = 0; j < 4; j++) row[j] = rows[k + j];
    if (row[0] >= n || row[1] >= n || row[2] >= n || row[3] >= n) break;
    UNROLL
    for (int j = 0; j < 4; j++) get(v[j], src + (u64)row[j] * cols + c);
    UNROLL
    for (int j = 0; j < 4; j++) add(v[j], k + j);
  }
  for (; k < l.to; k++) {
    u32 row = rows[k];
    if (row >= n) {
      fail(error, of, k);
      continue;
    }
    float v[N];
    get(v, src + (u64)row * cols + c);
    add(v, k);
  }
}

// NeighborMean: neighbor_mean(dst, src, start, end, nbr, dsts, srcs, edges, cols, shift, error),
// neighbor_mean_half for src in halves, and their variants _wide.
template <int N, class T>
DEVICE void neighborMean(float* dst, const T* src, const u32* start, const u32* end, const u32* nbr,
                         u32 dsts, u32 srcs, u32 edges, u32 cols, u32 shift, u64* error) {
  eachLane<N>(dsts, cols, shift, [&](u64 i, u32 c) {
    list l = listOf(start, end, i, edges, error, NeighborMean);
    float sum[N] = {};
    sumList<N>(src, cols, c, nbr, l, srcs, error, NeighborMean, [&](const float (&v)[N], u64) {
      UNROLL
      for (int j = 0; j < N; j++) sum[j] += v[j];
    });
    float degree = l.to > l.from ? (float)(l.to - l.from) : 1.0f;
    UNROLL
    for (int j = 0; j < N; j++) sum[j] = sum[j] / degree;
    put(dst + i * cols + c, sum);
  });
}

#define NEIGHBOR_MEAN(name, T, N)                                                                  \
  GLOBAL THREADS(256) void name(float* RESTRICT dst, const T* RESTRICT src, const u32* RESTRICT start, \
                                const u32* RESTRICT end, const u32* RESTRICT nbr, u32 dsts, u32 srcs,  \
                                u32 edges, u32 cols, u32 shift, u64* error) {                      \
    neighborMean<N>(dst, src, start, end, nbr, dsts, srcs, edges, cols, shift, error);             \
  }

NEIGHBOR_MEAN(neighbor_mean, float, 1)
NEIGHBOR_MEAN(neighbor_mean_wide, float, 4)
NEIGHBOR_MEAN(neighbor_mean_half, u16, 1)
NEIGHBOR_MEAN(neighbor_mean_half_wide, u16, 8)

// NeighborMeanGrad: neighbor_mean_grad(dsrc, ddst, start, end, revStart, revDst, dsts, srcs, edges,
// cols, shift, error, fresh) and neighbor_mean_grad_wide. It adds to dsrc (srcs × cols) in the
// order of revDst. Rows of dsrc from fresh on are taken as 0 and not read.
template <int N>
DEVICE void neighborMeanGrad(float* dsrc, const float* ddst, const u32* start, const u32* end,
                             const u32* revStart, const u32* revDst, u32 dsts, u32 srcs, u32 edges,
                             u32 cols, u32 shift, u64* error, u32 fresh) {
  eachLane<N>(srcs, cols, shift, [&](u64 u, u32 c) {
    list l = listOf(revStart, revStart + 1, u, edges, error, NeighborMeanGrad);
    float sum[N] = {};
    if (u < fresh) getWritten(sum, dsrc + u * cols + c);
    sumList<N>(ddst, cols, c, revDst, l, dsts, error, NeighborMeanGrad, [&](const float (&v)[N], u64 k) {
      u32 i = revDst[k];
      float degree = (float)(end[i] - start[i]);
      UNROLL
      for (int j = 0; j < N; j++) sum[j] += v[j] / degree;
    });
    put(dsrc + u * cols + c, sum);
  });
}

#define NEIGHBOR_MEAN_GRAD(name, N)                                                                \
  GLOBAL THREADS(256) void name(float* RESTRICT dsrc, const float* RESTRICT ddst,                  \
                                const u32* RESTRICT start, const u32* RESTRICT end,                \
                                const u32* RESTRICT revStart, const u32* RESTRICT revDst, u32 dsts,    \
                                u32 srcs, u32 edges, u32 cols, u32 shift, u64* error, u32 fresh) { \
    neighborMeanGrad<N>(dsrc, ddst, start, end, revStart, revDst, dsts, srcs, edges, cols, shift, error, fresh); \
  }

NEIGHBOR_MEAN_GRAD(neighbor_mean_grad, 1)
NEIGHBOR_MEAN_GRAD(neighbor_mean_grad_wide, 4)

// WeightedSum: weighted_sum(dst, src, w, start, end, nbr, dsts, srcs, edges, width, heads, shift,
// error), weighted_sum_half for src in halves, and their variants _wide. Rows have heads · width
// columns, w has edges × heads. Only dst and src have to start at multiples of 16 bytes.
template <int N, class T>
DEVICE void weightedSum(float* dst, const T* src, const float* w, const u32* start, const u32* end,
                        const u32* nbr, u32 dsts, u32 srcs, u32 edges, u32 width, u32 heads, u32 shift,
                        u64* error) {
  u32 cols = width * heads;
  eachLane<N>(dsts, cols, shift, [&](u64 i, u32 c) {
    list l = listOf(start, end, i, edges, error, WeightedSum);
    const float* by = w + c / width;
    float sum[N] = {};
    sumList<N>(src, cols, c, nbr, l, srcs, error, WeightedSum, [&](const float (&v)[N], u64 k) {
      float of = by[k * heads];
      UNROLL
      for (int j = 0; j < N; j++) sum[j] = fma32(of, v[j], sum[j]);
    });
    put(dst + i * cols + c, sum);
  });
}

#define WEIGHTED_SUM(name, T, N)                                                                   \
  GLOBAL THREADS(256) void name(float* RESTRICT dst, const T* RESTRICT src, const float* RESTRICT w,   \
                                const u32* RESTRICT start, const u32* RESTRICT end,                \
                                const u32* RESTRICT nbr, u32 dsts, u32 srcs, u32 edges, u32 width, \
                                u32 heads, u32 shift, u64* error) {                                \
    weightedSum<N>(dst, src, w, start, end, nbr, dsts, srcs, edges, width, heads, shift, error);   \
  }

WEIGHTED_SUM(weighted_sum, float, 1)
WEIGHTED_SUM(weighted_sum_wide, float, 4)
WEIGHTED_SUM(weighted_sum_half, u16, 1)
WEIGHTED_SUM(weighted_sum_half_wide, u16, 8)

// WeightedSumGrad: weighted_sum_grad(dsrc, ddst, w, revStart, revDst, revEdge, dsts, srcs, edges,
// width, heads, shift, error) and weighted_sum_grad_wide. It adds to dsrc in the order of revDst.
// edges is the number of rows of w; revDst and revEdge have as many or fewer, and revStart ends
// with their number.
template <int N>
DEVICE void weightedSumGrad(float* dsrc, const float* ddst, const float* w, const u32* revStart,
                            const u32* revDst, const u32* revEdge, u32 dsts, u32 srcs, u32 edges,
                            u32 width, u32 heads, u32 shift, u64* error, code of, float scale) {
  u32 cols = width * heads;
  eachLane<N>(srcs, cols, shift, [&](u64 u, u32 c) {
    list l = listOf(revStart, revStart + 1, u, edges, error, of);
    const float* by = w + c / width;
    float sum[N];
    getWritten(sum, dsrc + u * cols + c);
    sumList<N>(ddst, cols, c, revDst, l, dsts, error, of, [&](const float (&v)[N], u64 k) {
      u32 e = revEdge[k];
      if (e >= edges) {
        fail(error, of, k);
        return;
      }
      float at = scale * by[(u64)e * heads];
      UNROLL
      for (int j = 0; j < N; j++) sum[j] = fma32(at, v[j], sum[j]);
    });
    put(dsrc + u * cols + c, sum);
  });
}

#define WEIGHTED_SUM_GRAD(name, N)                                                                 \
  GLOBAL THREADS(256) void name(float* RESTRICT dsrc, const float* RESTRICT ddst,                  \
                                const float* RESTRICT w, const u32* RESTRICT revStart,             \
                                const u32* RESTRICT revDst, const u32* RESTRICT revEdge, u32 dsts, \
                                u32 srcs, u32 edges, u32 width, u32 heads, u32 shift, u64* error) {    \
    weightedSumGrad<N>(dsrc, ddst, w, revStart, revDst, revEdge, dsts, srcs, edges, width, heads,  \
                       shift, error, WeightedSumGrad, 1.0f);                                       \
  }

WEIGHTED_SUM_GRAD(weighted_sum_grad, 1)
WEIGHTED_SUM_GRAD(weighted_sum_grad_wide, 4)

// EdgeDotGrad, in two launches: edge_dot_grad_q(dq, ddst, k, start, end, nbr, dsts, srcs, edges,
// width, heads, shift, scale, error) adds to dq in the order of nbr, and edge_dot_grad_k(dk, ddst,
// q, revStart, revDst, revEdge, dsts, srcs, edges, width, heads, shift, scale, error) to dk in the
// order of revDst. Both have a variant _wide. ddst has edges × heads and no alignment.
template <int N>
DEVICE void edgeDotGradQ(float* dq, const float* ddst, const float* key, const u32* start,
                         const u32* end, const u32* nbr, u32 dsts, u32 srcs, u32 edges, u32 width,
                         u32 heads, u32 shift, float scale, u64* error) {
  u32 cols = width * heads;
  eachLane<N>(dsts, cols, shift, [&](u64 i, u32 c) {
    list l = listOf(start, end, i, edges, error, EdgeDotGrad);
    const float* by = ddst + c / width;
    float sum[N];
    getWritten(sum, dq + i * cols + c);
    sumList<N>(key, cols, c, nbr, l, srcs, error, EdgeDotGrad, [&](const float (&v)[N], u64 k) {
      float at = scale * by[k * heads];
      UNROLL
      for (int j = 0; j < N; j++) sum[j] = fma32(at, v[j], sum[j]);
    });
    put(dq + i * cols + c, sum);
  });
}

#define EDGE_DOT_GRAD(suffix, N)                                                                   \
  GLOBAL THREADS(256) void edge_dot_grad_q##suffix(                                                \
      float* RESTRICT dq, const float* RESTRICT ddst, const float* RESTRICT k,                     \
      const u32* RESTRICT start, const u32* RESTRICT end, const u32* RESTRICT nbr, u32 dsts,       \
      u32 srcs, u32 edges, u32 width, u32 heads, u32 shift, float scale, u64* error) {             \
    edgeDotGradQ<N>(dq, ddst, k, start, end, nbr, dsts, srcs, edges, width, heads, shift, scale, error); \
  }                                                                                                \
  GLOBAL THREADS(256) void edge_dot_grad_k##suffix(                                                \
      float* RESTRICT dk, const float* RESTRICT ddst, const float* RESTRICT q,                     \
      const u32* RESTRICT revStart, const u32* RESTRICT revDst, const u32* RESTRICT revEdge,       \
      u32 dsts, u32 srcs, u32 edges, u32 width, u32 heads, u32 shift, float scale, u64* error) {   \
    weightedSumGrad<N>(dk, q, ddst, revStart, revDst, revEdge, dsts, srcs, edges, width, heads,    \
                       shift, error, EdgeDotGrad, scale);                                          \
  }

EDGE_DOT_GRAD(, 1)
EDGE_DOT_GRAD(_wide, 4)
