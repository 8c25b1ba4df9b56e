// Values of edges: products of rows, softmax over lists, and dropout. A matrix of edges has a row
// for each of the edges positions of nbr and a column for each head; rows of positions that are in
// no list are neither read nor written. Lists are as in aggregate.cu.
#include "arith.h"
#include "lanes.h"

// eachEdge calls f(i, e, h) for the heads of the edges of every destination: 32 threads take a
// list, and each of them every 32nd pair of an edge and a head.
template <class F>
DEVICE void eachEdge(const u32* start, const u32* end, u32 dsts, u32 edges, u32 heads, u64* error,
                     code of, F f) {
  u32 lane = thread() & 31;
  for (u64 i = thread64() >> 5; i < dsts; i += threads64() >> 5) {
    list l = listOf(start, end, i, edges, error, of);
    u64 n = (u64)(l.to - l.from) * heads;
    for (u64 k = lane; k < n; k += 32) {
      u64 e = k / heads;
      f(i, l.from + e, (u32)(k - e * heads));
    }
  }
}

// product returns the product of width columns of two rows, in order.
template <int N>
DEVICE float product(const float* x, const float* y, u32 width) {
  float sum = 0;
  for (u32 c = 0; c < width; c += N) {
    float a[N], b[N];
    get(a, x + c);
    get(b, y + c);
    UNROLL
    for (int j = 0; j < N; j++) sum = fma32(a[j], b[j], sum);
  }
  return sum;
}

// EdgeDot: edge_dot(dst, q, k, start, end, nbr, dsts, srcs, edges, width, heads, scale, error) and
// edge_dot_wide. Warp. q is dsts × heads·width, k is srcs × heads·width. dst need not be aligned.
template <int N>
DEVICE void edgeDot(float* dst, const float* q, const float* key, const u32* start, const u32* end,
                    const u32* nbr, u32 dsts, u32 srcs, u32 edges, u32 width, u32 heads, float scale,
                    u64* error) {
  u64 cols = (u64)width * heads;
  eachEdge(start, end, dsts, edges, heads, error, EdgeDot, [&](u64 i, u64 e, u32 h) {
    u32 u = nbr[e];
    if (u >= srcs) {
      fail(error, EdgeDot, e);
      return;
    }
    u64 c = (u64)h * width;
    dst[e * heads + h] = scale * product<N>(q + i * cols + c, key + u * cols + c, width);
  });
}

#define EDGE_DOT(name, N)                                                                          \
  GLOBAL THREADS(256) void name(float* RESTRICT dst, const float* RESTRICT q, const float* RESTRICT k, \
                                const u32* RESTRICT start, const u32* RESTRICT end,                \
                                const u32* RESTRICT nbr, u32 dsts, u32 srcs, u32 edges, u32 width, \
                                u32 heads, float scale, u64* error) {                              \
    edgeDot<N>(dst, q, k, start, end, nbr, dsts, srcs, edges, width, heads, scale, error);         \
  }

EDGE_DOT(edge_dot, 1)
EDGE_DOT(edge_dot_wide, 4)

// WeightedSumWeightGrad: weighted_sum_weight_grad(dw, ddst, src, start, end, nbr, dsts, srcs,
// edges, width, heads, error) and weighted_sum_weight_grad_wide. Warp. dw need not be aligned.
template <int N>
DEVICE void weightGrad(float* dw, const float* ddst, const float* src, const u32* start, const u32* end,
                       const u32* nbr, u32 dsts, u32 srcs, u32 edges, u32 width, u32 heads, u64* error) {
  u64 cols = (u64)width * heads;
  eachEdge(start, end, dsts, edges, heads, error, WeightedSumWeightGrad, [&](u64 i, u64 e, u32 h) {
    u32 u = nbr[e];
    if (u >= srcs) {
      fail(error, WeightedSumWeightGrad, e);
      return;
    }
    u64 c = (u64)h * width;
    dw[e * heads + h] += product<N>(ddst + i * cols + c, src + u * cols + c, width);
  });
}

#define WEIGHT_GRAD(name, N)                                                                       \
  GLOBAL THREADS(256) void name(float* RESTRICT dw, const float* RESTRICT ddst,                    \
                                const float* RESTRICT src, const u32* RESTRICT start,              \
                                const u32* RESTRICT end, const u32* RESTRICT nbr, u32 dsts, u32 srcs,  \
                                u32 edges, u32 width, u32 heads, u64* error) {                     \
    weightGrad<N>(dw, ddst, src, start, end, nbr, dsts, srcs, edges, width, heads, error);         \
  }

WEIGHT_GRAD(weighted_sum_weight_grad, 1)
WEIGHT_GRAD(weighted_sum_weight_grad_wide, 4)

// HeadDot: head_dot(dst, src, a, rows, width, heads) and head_dot_wide. Flat: a thread computes an
// element of dst (rows × heads), which need not be aligned. src is rows × heads·width, a is heads ×
// width.
template <int N>
DEVICE void headDot(float* dst, const float* src, const float* a, u32 rows, u32 width, u32 heads) {
  u64 n = (u64)rows * heads;
  for (u64 k = thread64(); k < n; k += threads64()) {
    dst[k] = product<N>(src + k * width, a + k % heads * width, width);
  }
}

GLOBAL THREADS(256) void head_dot(float* RESTRICT dst, const float* RESTRICT src,
                                  const float* RESTRICT a, u32 rows, u32 width, u32 heads) {
  headDot<1>(dst, src, a, rows, width, heads);
}

GLOBAL THREADS(256) void head_dot_wide(float* RESTRICT dst, const float* RESTRICT src,
                                       const float* RESTRICT a, u32 rows, u32 width, u32 heads) {
  headDot<4>(dst, src, a, rows, width, heads);
}

// HeadDotGrad of src: head_dot_grad(dsrc, ddst, a, rows, width, heads, shift) and
// head_dot_grad_wide. Lanes, over heads·width columns. ddst (rows × heads) need not be aligned. The
// gradient of a is a sum of columns: head_dot_parts in sums.cu.
template <int N>
DEVICE void headDotGrad(float* dsrc, const float* ddst, const float* a, u32 rows, u32 width, u32 heads,
                        u32 shift) {
  u32 cols = width * heads;
  eachLane<N>(rows, cols, shift, [&](u64 r, u32 c) {
    float g = ddst[r * heads + c / width];
    float sum[N], by[N];
    getWritten(sum, dsrc + r * cols + c);
    get(by, a + c);
    UNROLL
    for (int j = 0; j < N; j++) sum[j] += g * by[j];
    put(dsrc + r * cols + c, sum);
  });
}

GLOBAL THREADS(256) void head_dot_grad(float* RESTRICT dsrc, const float* RESTRICT ddst,
                                       const float* RESTRICT a, u32 rows, u32 width, u32 heads,
                                       u32 shift) {
  headDotGrad<1>(dsrc, ddst, a, rows, width, heads, shift);
}

GLOBAL THREADS(256) void head_dot_grad_wide(float* RESTRICT dsrc, const float* RESTRICT ddst,
                                            const float* RESTRICT a, u32 rows, u32 width, u32 heads,
                                            u32 shift) {
  headDotGrad<4>(dsrc, ddst, a, rows, width, heads, shift);
}

DEVICE float leaky(float x, float slope) { return x > 0.0f ? x : x * slope; }

// eachHead calls f(i, h) for the heads of n rows: flat, a thread a head.
template <class F>
DEVICE void eachHead(u32 n, u32 heads, F f) {
  for (u64 k = thread64(); k < (u64)n * heads; k += threads64()) {
    u64 i = k / heads;
    f(i, (u32)(k - i * heads));
  }
}

// EdgeSoftmax: edge_softmax(dst, srcScore, dstScore, w, start, end, nbr, dsts, srcs, edges, heads,
// slope, error). Flat: a thread takes a list for a head, so a list of many edges takes as long as
// they do. dst is edges × heads. w has a weight for each edge, or is null. An edge whose neighbour
// is out of range is left out.
GLOBAL THREADS(256) void edge_softmax(float* RESTRICT dst, const float* RESTRICT srcScore,
                                      const float* RESTRICT dstScore, const float* RESTRICT w,
                                      const u32* RESTRICT start, const u32* RESTRICT end,
                                      const u32* RESTRICT nbr, u32 dsts, u32 srcs, u32 edges, u32 heads,
                                      float slope, u64* error) {
  eachHead(dsts, heads, [&](u64 i, u32 h) {
    list l = listOf(start, end, i, edges, error, EdgeSoftmax);
    float own = dstScore[i * heads + h];
    float top = -__builtin_inff();
    for (u64 e = l.from; e < l.to; e++) {
      u32 u = nbr[e];
      if (u >= srcs) {
        fail(error, EdgeSoftmax, e);
        continue;
      }
      float x = leaky(srcScore[(u64)u * heads + h] + own, slope);
      dst[e * heads + h] = x;
      top = larger(top, x);
    }
    double total = 0;
    for (u64 e = l.from; e < l.to; e++) {
      if (nbr[e] >= srcs) continue;
      float x = exp32(dst[e * heads + h] - top);
      if (w) x *= w[e];
      dst[e * heads + h] = x;
      total += (double)x;
    }
    float factor = (float)(1.0 / total);
    for (u64 e = l.from; e < l.to; e++) {
      if (nbr[e] < srcs) dst[e * heads + h] *= factor;
    }
  });
}

// EdgeSoftmaxGrad, in two launches: edge_softmax_grad(dedge, ddstScore, dalpha, alpha, srcScore,
// dstScore, start, end, nbr, dsts, srcs, edges, heads, slope, error) sets dedge and adds to
// ddstScore; then edge_sum_grad(dsrcScore, dedge, revStart, revEdge, srcs, edges, heads, error)
// adds the rows of dedge to their sources, in the order of revEdge. Flat: a thread takes a list for
// a head.
GLOBAL THREADS(256) void edge_softmax_grad(float* RESTRICT dedge, float* RESTRICT ddstScore,
                                           const float* RESTRICT dalpha, const float* RESTRICT alpha,
                                           const float* RESTRICT srcScore,
                                           const float* RESTRICT dstScore, const u32* RESTRICT start,
                                           const u32* RESTRICT end, const u32* RESTRICT nbr, u32 dsts,
                                           u32 srcs, u32 edges, u32 heads, float slope, u64* error) {
  eachHead(dsts, heads, [&](u64 i, u32 h) {
    list l = listOf(start, end, i, edges, error, EdgeSoftmaxGrad);
    float own = dstScore[i * heads + h], mean = 0, sum = 0;
    for (u64 e = l.from; e < l.to; e++) mean = fma32(alpha[e * heads + h], dalpha[e * heads + h], mean);
    for (u64 e = l.from; e < l.to; e++) {
      u32 u = nbr[e];
      if (u >= srcs) {
        fail(error, EdgeSoftmaxGrad, e);
        continue;
      }
      float g = alpha[e * heads + h] * (dalpha[e * heads + h] - mean);
      if (!(srcScore[(u64)u * heads + h] + own > 0.0f)) g *= slope;
      dedge[e * heads + h] = g;
      sum += g;
    }
    ddstScore[i * heads + h] += sum;
  });
}

GLOBAL THREADS(256) void edge_sum_grad(float* RESTRICT dsrcScore, const float* RESTRICT dedge,
                                       const u32* RESTRICT revStart, const u32* RESTRICT revEdge,
                                       u32 srcs, u32 edges, u32 heads, u64* error) {
  eachHead(srcs, heads, [&](u64 u, u32 h) {
    list l = listOf(revStart, revStart + 1, u, edges, error, EdgeSoftmaxGrad);
    float sum = dsrcScore[u * heads + h];
    for (u64 k = l.from; k < l.to; k++) {
      u32 e = revEdge[k];
      if (e >= edges) {
        fail(error, EdgeSoftmaxGrad, k);
        continue;
      }
      sum += dedge[(u64)e * heads + h];
    }
    dsrcScore[u * heads + h] = sum;
  });
}

// EdgeSoftmaxOf: edge_softmax_of(table, relations, dsts, heads, error). Flat: a thread takes the
// lists of a destination for a head, relation after relation. table, on the device, has six u64 a
// relation: the addresses of alpha, scores and w (or 0), of start and end, and the number of edges.
struct relation {
  float IN_GLOBAL* out;
  const float IN_GLOBAL* in;
  const float IN_GLOBAL* more;
  const u32 IN_GLOBAL* start;
  const u32 IN_GLOBAL* end;
  u64 edges;
};

DEVICE list listIn(const relation& r, u64 i, u64* error, code of) {
  list l = {r.start[i], r.end[i]};
  if (l.from > l.to || l.to > r.edges) {
    fail(error, of, i);
    l.to = l.from;
  }
  return l;
}

GLOBAL THREADS(256) void edge_softmax_of(const relation* RESTRICT table, u32 relations, u32 dsts,
                                         u32 heads, u64* error) {
  eachHead(dsts, heads, [&](u64 i, u32 h) {
    float top = -__builtin_inff();
    for (u32 n = 0; n < relations; n++) {
      relation r = table[n];
      list l = listIn(r, i, error, EdgeSoftmaxOf);
      for (u64 e = l.from; e < l.to; e++) top = larger(top, r.in[e * heads + h]);
    }
    double total = 0;
    for (u32 n = 0; n < relations; n++) {
      relation r = table[n];
      list l = listIn(r, i, error, EdgeSoftmaxOf);
      for (u64 e = l.from; e < l.to; e++) {
        float x = exp32(r.in[e * heads + h] - top);
        if (r.more) x *= r.more[e];
        r.out[e * heads + h] = x;
        total += (double)x;
      }
    }
    float factor = (float)(1.0 / total);
    for (u32 n = 0; n < relations; n++) {
      relation r = table[n];
      list l = listIn(r, i, error, EdgeSoftmaxOf);
      for (u64 e = l.from; e < l.to; e++) r.out[e * heads + h] *= factor;
    }
  });
}

// EdgeSoftmaxOfGrad: edge_softmax_of_grad(table, relations, dsts, heads, error). As
// edge_softmax_of, with the addresses of dscores, dalpha and alpha first.
GLOBAL THREADS(256) void edge_softmax_of_grad(const relation* RESTRICT table, u32 relations, u32 dsts,
                                              u32 heads, u64* error) {
  eachHead(dsts, heads, [&](u64 i, u32 h) {
    float mean = 0;
    for (u32 n = 0; n < relations; n++) {
      relation r = table[n];
      list l = listIn(r, i, error, EdgeSoftmaxOfGrad);
      for (u64 e = l.from; e < l.to; e++) {
        mean = fma32(r.more[e * heads + h], r.in[e * heads + h], mean);
      }
    }
    for (u32 n = 0; n < relations; n++) {
      relation r = table[n];
      list l = listIn(r, i, error, EdgeSoftmaxOfGrad);
      for (u64 e = l.from; e < l.to; e++) {
        u64 at = e * heads + h;
        r.out[at] = r.out[at] + r.more[at] * (r.in[at] - mean);
      }
    }
  });
}

// EdgeDropout: edge_dropout(dst, src, srcIDs, dstIDs, start, end, nbr, dsts, srcs, edges, heads,
// key, threshold, factor, error); dst may be src: in place. EdgeDropoutGrad: edge_dropout_grad(dx,
// dy, ...). Warp. threshold and factor are as dropout's.
template <bool ADD>
DEVICE void edgeDropout(float* dst, const float* src, const u32* srcIDs, const u32* dstIDs,
                        const u32* start, const u32* end, const u32* nbr, u32 dsts, u32 srcs, u32 edges,
                        u32 heads, u64 key, u32 threshold, float factor, u64* error, code of) {
  eachEdge(start, end, dsts, edges, heads, error, of, [&](u64 i, u64 e, u32 h) {
    u32 u = nbr[e];
    if (u >= srcs) {
      fail(error, of, e);
      return;
    }
    u64 own = splitMix(key + golden * dstIDs[i]);
    u64 hash = splitMix(own + golden * ((u64)srcIDs[u] << 32 | h / 4));
    float kept = keepLane(src[e * heads + h] * factor, hash, h, threshold);
    dst[e * heads + h] = ADD ? dst[e * heads + h] + kept : kept;
  });
}

GLOBAL THREADS(256) void edge_dropout(float* dst, const float* src, const u32* RESTRICT srcIDs,
                                      const u32* RESTRICT dstIDs, const u32* RESTRICT start,
                                      const u32* RESTRICT end, const u32* RESTRICT nbr, u32 dsts,
                                      u32 srcs, u32 edges, u32 heads, u64 key, u32 threshold,
                                      float factor, u64* error) {
  edgeDropout<false>(dst, src, srcIDs, dstIDs, start, end, nbr, dsts, srcs, edges, heads, key,
                     threshold, factor, error, EdgeDropout);
}

GLOBAL THREADS(256) void edge_dropout_grad(float* dx, const float* dy, const u32* RESTRICT srcIDs,
                                           const u32* RESTRICT dstIDs, const u32* RESTRICT start,
                                           const u32* RESTRICT end, const u32* RESTRICT nbr, u32 dsts,
                                           u32 srcs, u32 edges, u32 heads, u64 key, u32 threshold,
                                           float factor, u64* error) {
  edgeDropout<true>(dx, dy, srcIDs, dstIDs, start, end, nbr, dsts, srcs, edges, heads, key, threshold,
                    factor, error, EdgeDropoutGrad);
}
