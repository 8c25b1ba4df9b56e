// Distances between rows that edges join, and their gradients. Lists are as in aggregate.cu. A row
// has numbers columns. A complex row has numbers real parts, and then numbers imaginary parts.
#include "lanes.h"

// difference is one number of x - y. im is 0 if rows are not complex.
struct difference {
  float re, im;
};

template <bool COMPLEX>
DEVICE difference differ(const float* x, const float* y, u32 numbers, u32 n) {
  difference d;
  d.re = x[n] - y[n];
  d.im = COMPLEX ? x[numbers + n] - y[numbers + n] : 0.0f;
  return d;
}

template <bool COMPLEX>
DEVICE float absolute(difference d) {
  return COMPLEX ? __builtin_sqrtf(fma32(d.im, d.im, d.re * d.re)) : __builtin_fabsf(d.re);
}

// EdgeDistance: edge_distance(dst, q, k, start, end, nbr, dsts, srcs, edges, numbers, scale, error)
// and edge_modulus for complex rows. Warp: 32 threads take a list, and share each of its edges.
template <bool COMPLEX>
DEVICE void edgeDistance(float* dst, const float* q, const float* key, const u32* start, const u32* end,
                         const u32* nbr, u32 dsts, u32 srcs, u32 edges, u32 numbers, float scale,
                         u64* error) {
  u64 cols = COMPLEX ? 2 * (u64)numbers : numbers;
  u32 lane = thread() & 31;
  eachWarp(dsts, [&](u64 i) {
    list l = listOf(start, end, i, edges, error, EdgeDistance);
    for (u64 e = l.from; e < l.to; e++) {
      u32 u = nbr[e];
      if (u >= srcs) {
        if (lane == 0) fail(error, EdgeDistance, e);
        continue;
      }
      float sum = 0;
      for (u64 n = lane; n < numbers; n += 32)
        sum += absolute<COMPLEX>(differ<COMPLEX>(q + i * cols, key + u * cols, numbers, (u32)n));
      sum = sum32(sum);
      if (lane == 0) dst[e] = scale * sum;
    }
  });
}

#define EDGE_DISTANCE(name, COMPLEX)                                                               \
  GLOBAL THREADS(256) void name(float* RESTRICT dst, const float* RESTRICT q, const float* RESTRICT k, \
                                const u32* RESTRICT start, const u32* RESTRICT end,                \
                                const u32* RESTRICT nbr, u32 dsts, u32 srcs, u32 edges,            \
                                u32 numbers, float scale, u64* error) {                            \
    edgeDistance<COMPLEX>(dst, q, k, start, end, nbr, dsts, srcs, edges, numbers, scale, error);   \
  }

EDGE_DISTANCE(edge_distance, false)
EDGE_DISTANCE(edge_modulus, true)

// distanceGrad adds to the rows of dx the gradients of the distances between rows of x and of y.
// The list of a row of x, in names, has the rows of y. edge(k) is the number of the edge at
// position k of the lists. dx and x have rows rows, and y has others. A row of y that is not below
// others is an error, and so is an edge that is not below edges.
template <bool COMPLEX, class E>
DEVICE void distanceGrad(float* dx, const float* w, const float* x, const float* y, const u32* start,
                         const u32* end, const u32* names, u32 rows, u32 others, u32 edges, u32 numbers,
                         u32 shift, float scale, u64* error, E edge) {
  u64 cols = COMPLEX ? 2 * (u64)numbers : numbers;
  eachLane<1>(rows, numbers, shift, [&](u64 i, u32 n) {
    list l = listOf(start, end, i, edges, error, EdgeDistanceGrad);
    float* to = dx + i * cols;
    float re = to[n], im = COMPLEX ? to[numbers + n] : 0.0f;
    for (u64 k = l.from; k < l.to; k++) {
      u32 u = names[k], e = edge(k);
      if (u >= others || e >= edges) {
        fail(error, EdgeDistanceGrad, k);
        continue;
      }
      difference d = differ<COMPLEX>(x + i * cols, y + u * cols, numbers, n);
      float size = absolute<COMPLEX>(d), by = scale * w[e];
      if (size == 0) continue;
      if (COMPLEX) {
        by = by / size;
        re = fma32(by, d.re, re);
        im = fma32(by, d.im, im);
      } else {
        re += d.re > 0 ? by : d.re < 0 ? -by : d.re;  // else NaN
      }
    }
    to[n] = re;
    if (COMPLEX) to[numbers + n] = im;
  });
}

// EdgeDistanceGrad, in two launches. edge_distance_grad_q(dq, ddst, q, k, start, end, nbr, dsts,
// srcs, edges, numbers, shift, scale, error) adds to dq in the order of nbr.
// edge_distance_grad_k(dk, ddst, k, q, revStart, revDst, revEdge, srcs, dsts, edges, numbers,
// shift, scale, error) adds to dk in the order of revDst. edge_modulus_grad_q and
// edge_modulus_grad_k are for complex rows. Lanes.
#define EDGE_DISTANCE_GRAD(name, COMPLEX)                                                          \
  GLOBAL THREADS(256) void name##_q(                                                               \
      float* RESTRICT dq, const float* RESTRICT ddst, const float* RESTRICT q,                     \
      const float* RESTRICT k, const u32* RESTRICT start, const u32* RESTRICT end,                 \
      const u32* RESTRICT nbr, u32 dsts, u32 srcs, u32 edges, u32 numbers, u32 shift, float scale, \
      u64* error) {                                                                                \
    distanceGrad<COMPLEX>(dq, ddst, q, k, start, end, nbr, dsts, srcs, edges, numbers, shift,      \
                          scale, error, [&](u64 at) { return (u32)at; });                          \
  }                                                                                                \
  GLOBAL THREADS(256) void name##_k(                                                               \
      float* RESTRICT dk, const float* RESTRICT ddst, const float* RESTRICT k,                     \
      const float* RESTRICT q, const u32* RESTRICT revStart, const u32* RESTRICT revDst,           \
      const u32* RESTRICT revEdge, u32 srcs, u32 dsts, u32 edges, u32 numbers, u32 shift,          \
      float scale, u64* error) {                                                                   \
    distanceGrad<COMPLEX>(dk, ddst, k, q, revStart, revStart + 1, revDst, srcs, dsts, edges,       \
                          numbers, shift, scale, error, [&](u64 at) { return revEdge[at]; });      \
  }

EDGE_DISTANCE_GRAD(edge_distance_grad, false)
EDGE_DISTANCE_GRAD(edge_modulus_grad, true)
