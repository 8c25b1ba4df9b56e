// Loops over elements, for flat kernels.
#pragma once

#include "gpu.h"

// each calls f for every element from 0 to n, or with N = 4 for every four of them.
template <int N, class F>
DEVICE void each(u64 n, F f) {
  for (u64 i = thread64(); i < n / N; i += threads64()) f(i * N);
}

// map sets dst to f(src), map2 to f(dst, src), and map3 to f(dst, a, b). N is the number of
// elements that are read at a time; the tail is read one by one. dst may be an input.
template <int N, class F>
DEVICE void map(float* dst, const float* src, u64 n, F f) {
  each<N>(n, [&](u64 i) {
    float v[N];
    getWritten(v, src + i);
    UNROLL
    for (int j = 0; j < N; j++) v[j] = f(v[j]);
    put(dst + i, v);
  });
  for (u64 i = n / N * N + thread64(); i < n; i += threads64()) dst[i] = f(src[i]);
}

template <int N, class F>
DEVICE void map2(float* dst, const float* src, u64 n, F f) {
  each<N>(n, [&](u64 i) {
    float v[N], s[N];
    getWritten(v, dst + i);
    get(s, src + i);
    UNROLL
    for (int j = 0; j < N; j++) v[j] = f(v[j], s[j]);
    put(dst + i, v);
  });
  for (u64 i = n / N * N + thread64(); i < n; i += threads64()) dst[i] = f(dst[i], src[i]);
}

template <int N, class F>
DEVICE void map3(float* dst, const float* a, const float* b, u64 n, F f) {
  each<N>(n, [&](u64 i) {
    float v[N], x[N], y[N];
    getWritten(v, dst + i);
    get(x, a + i);
    get(y, b + i);
    UNROLL
    for (int j = 0; j < N; j++) v[j] = f(v[j], x[j], y[j]);
    put(dst + i, v);
  });
  for (u64 i = n / N * N + thread64(); i < n; i += threads64()) dst[i] = f(dst[i], a[i], b[i]);
}

// MAP defines the two variants of a kernel NAME(dst, src, n), and MAP2 and MAP3 of their like.
#define MAP(name, f)                                                                        \
  GLOBAL THREADS(256) void name(float* dst, const float* src, u64 n) { map<1>(dst, src, n, f); } \
  GLOBAL THREADS(256) void name##_wide(float* dst, const float* src, u64 n) { map<4>(dst, src, n, f); }

#define MAP2(name, f)                                                                         \
  GLOBAL THREADS(256) void name(float* dst, const float* RESTRICT src, u64 n) {               \
    map2<1>(dst, src, n, f);                                                                  \
  }                                                                                           \
  GLOBAL THREADS(256) void name##_wide(float* dst, const float* RESTRICT src, u64 n) {        \
    map2<4>(dst, src, n, f);                                                                  \
  }

#define MAP3(name, f)                                                                         \
  GLOBAL THREADS(256) void name(float* dst, const float* RESTRICT a, const float* RESTRICT b, u64 n) { \
    map3<1>(dst, a, b, n, f);                                                                 \
  }                                                                                           \
  GLOBAL THREADS(256) void name##_wide(float* dst, const float* RESTRICT a, const float* RESTRICT b,   \
                                       u64 n) {                                               \
    map3<4>(dst, a, b, n, f);                                                                 \
  }

// eachColumn calls f(i, r, c) for every N elements of a row: the place of the first, its row, and
// its column. N divides cols.
template <int N, class F>
DEVICE void eachColumn(u32 rows, u32 cols, F f) {
  if (cols == 0) return;
  u32 groups = cols / N;
  u64 n = (u64)rows * groups;
  for (u64 k = thread64(); k < n; k += threads64()) {
    u64 r = k / groups;
    f(k * N, r, (u32)(k - r * groups) * N);
  }
}
