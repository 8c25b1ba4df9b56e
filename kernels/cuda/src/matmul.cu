// Products in float32: MatMul and Affine. A block computes a tile of dst, of 128 × 128 or, in
// kernels NAME_small, of 64 × 64 elements. A thread computes 8 × 8 (4 × 4) of it, in groups of four
// rows and four columns.
//
// matmul_nt(dst, a, b, bias, m, n, k, slice, flags, c, d, l) computes a·bᵀ + c·dᵀ. a is m × k, b is
// n × k, c is m × l, d is n × l; l is 0 where there is one product. The others have no c, d and l:
// matmul_nn computes a·b, with b k × n; matmul_tn computes aᵀ·b, with a k × m. Each has the
// variants _wide, _small and _small_wide. aᵀ·bᵀ, which training does not use, has matmul_tt_small
// and matmul_tt_small_wide. Grid: n by m in tiles, rounded up, by slices of k. The z-th slice has
// the terms from z·slice on, at most slice of them, a multiple of 16 (or all of k), and its product
// goes to dst + z·m·n. With more than one slice, dst is for parts, bias is null and flags are 0;
// then add_parts adds them up. flags has 1 to add to dst, which else is not read, and 2 for the
// ReLU, which lets NaN pass. bias (n) is added first, or null.
//
// The wide variants ask that a and b start at multiples of 16 bytes and that their columns are
// multiples of 4. They store four columns at once where dst starts so too and n is a multiple of 4.
#include "gpu.h"

enum { accumulate = 1, rectify = 2 };

// geometry has the numbers of a tile of T × T elements: depth terms are brought at a time, and a
// thread computes each × each elements. A stride of T + 4 spreads stores over the banks.
template <int T>
struct geometry {
  static constexpr int depth = T == 128 ? 8 : 16;
  static constexpr int each = T / 16;
  static constexpr int stride = T + 4;
};

// rowOf returns the i-th row (or column) of the thread at this place.
DEVICE u32 rowOf(u32 place, int i) { return place * 4 + (i & 3) + (i >> 2) * 64; }

// fetch reads the four elements of a matrix that this thread brings, with zeros for those outside
// the matrix or past the last term, end. With ALONG, terms lie side by side in memory, and the
// elements are four terms of a line; else lines lie side by side, and they are four lines of a
// term.
template <int T, bool ALONG, bool WIDE>
DEVICE void fetch(float (&v)[4], const float* p, u32 first, u32 lines, u64 k, u64 end, u32 terms) {
  const int depth = geometry<T>::depth;
  u32 t = thread();
  UNROLL
  for (int j = 0; j < 4; j++) v[j] = 0;
  if (ALONG) {
    u32 line = first + t / (depth / 4);
    u64 at = k + t % (depth / 4) * 4;
    if (line >= lines) return;
    const float* from = p + (u64)line * terms;
    if (WIDE) {
      if (at < end) get(v, from + at);
      return;
    }
    UNROLL
    for (int j = 0; j < 4; j++) {
      if (at + j < end) v[j] = from[at + j];
    }
    return;
  }
  u64 at = k + t / (T / 4);
  u32 line = first + t % (T / 4) * 4;
  if (at >= end) return;
  const float* from = p + at * lines;
  if (WIDE) {
    if (line < lines) get(v, from + line);
    return;
  }
  UNROLL
  for (int j = 0; j < 4; j++) {
    if (line + j < lines) v[j] = from[line + j];
  }
}

// bring writes what fetch has read to its place: tile[term][line].
template <int T, bool ALONG>
DEVICE void bring(float (*tile)[geometry<T>::stride], const float (&v)[4]) {
  const int depth = geometry<T>::depth;
  u32 t = thread();
  if (ALONG) {
    UNROLL
    for (int j = 0; j < 4; j++) tile[t % (depth / 4) * 4 + j][t / (depth / 4)] = v[j];
    return;
  }
  f32x4 x = {v[0], v[1], v[2], v[3]};
  putShared4(&tile[t / (T / 4)][t % (T / 4) * 4], x);
}

// part reads the elements of this thread from a line of a tile.
template <int T>
DEVICE void part(float (&v)[geometry<T>::each], const float* line, u32 place) {
  UNROLL
  for (int g = 0; g < geometry<T>::each / 4; g++) {
    f32x4 x = shared4(line + g * 64 + place * 4);
    UNROLL
    for (int j = 0; j < 4; j++) v[g * 4 + j] = x[j];
  }
}

template <int T, bool TRANS_A, bool TRANS_B, bool WIDE>
DEVICE void multiply(float* dst, const float* a, const float* b, const float* bias, u32 m, u32 n, u32 k,
                     u32 slice, u32 flags, const float* c = nullptr, const float* d = nullptr, u32 l = 0) {
  typedef geometry<T> g;
  SHARED float as[2][g::depth][g::stride];
  SHARED float bs[2][g::depth][g::stride];
  u32 row0 = blockY() * T, col0 = block() * T;
  u32 y = thread() >> 4, x = thread() & 15;
  u64 from = (u64)blockZ() * slice, end = from + slice < k ? from + slice : k;
  float sum[g::each][g::each];
  UNROLL
  for (int i = 0; i < g::each; i++) {
    UNROLL
    for (int j = 0; j < g::each; j++) sum[i][j] = 0;
  }
  float va[4], vb[4];
  fetch<T, !TRANS_A, WIDE>(va, a, row0, m, from, end, k);
  fetch<T, TRANS_B, WIDE>(vb, b, col0, n, from, end, k);
  int p = 0;
  for (u64 k0 = from; k0 < end;) {
    bring<T, !TRANS_A>(as[p], va);
    bring<T, TRANS_B>(bs[p], vb);
    barrier();
    k0 += g::depth;
    if (k0 >= end && l != 0) {  // on to the second product
      a = c, b = d, k = l;
      k0 = 0, end = l, l = 0;
    }
    if (k0 < end) {
      fetch<T, !TRANS_A, WIDE>(va, a, row0, m, k0, end, k);
      fetch<T, TRANS_B, WIDE>(vb, b, col0, n, k0, end, k);
    }
    UNROLL_TWICE
    for (int t = 0; t < g::depth; t++) {
      float pa[g::each], pb[g::each];
      part<T>(pa, as[p][t], y);
      part<T>(pb, bs[p][t], x);
      UNROLL
      for (int i = 0; i < g::each; i++) {
        UNROLL
        for (int j = 0; j < g::each; j++) sum[i][j] = fma32(pa[i], pb[j], sum[i][j]);
      }
    }
    p ^= 1;
  }
  dst += (u64)blockZ() * m * n;
  bool wide = WIDE && n % 4 == 0 && (u64)dst % 16 == 0;
  float low = flags & rectify ? 0.0f : -__builtin_inff();
  UNROLL
  for (int q = 0; q < g::each; q += 4) {
    u32 col = col0 + rowOf(x, q);
    float add[4];
    UNROLL
    for (int j = 0; j < 4; j++) add[j] = bias && col + j < n ? bias[col + j] : 0.0f;
    UNROLL
    for (int i = 0; i < g::each; i++) {
      u32 row = row0 + rowOf(y, i);
      if (row >= m || col >= n) continue;
      float* to = dst + (u64)row * n + col;
      float v[4] = {};
      if (flags & accumulate) {
        UNROLL
        for (int j = 0; j < 4; j++) {
          if (col + j < n) v[j] = to[j];
        }
      }
      UNROLL
      for (int j = 0; j < 4; j++) {
        v[j] = sum[i][q + j] + v[j] + add[j];
        v[j] = v[j] < low ? low : v[j];
      }
      if (wide) {
        put(to, v);
        continue;
      }
      UNROLL
      for (int j = 0; j < 4; j++) {
        if (col + j < n) to[j] = v[j];
      }
    }
  }
}

#define PRODUCT(name, T, TRANS_A, TRANS_B, WIDE)                                                   \
  GLOBAL THREADS(256) void name(float* RESTRICT dst, const float* RESTRICT a, const float* RESTRICT b, \
                                const float* RESTRICT bias, u32 m, u32 n, u32 k, u32 slice,        \
                                u32 flags) {                                                       \
    multiply<T, TRANS_A, TRANS_B, WIDE>(dst, a, b, bias, m, n, k, slice, flags);                   \
  }

#define TWO_PRODUCTS(name, T, WIDE)                                                                \
  GLOBAL THREADS(256) void name(float* RESTRICT dst, const float* RESTRICT a, const float* RESTRICT b, \
                                const float* RESTRICT bias, u32 m, u32 n, u32 k, u32 slice,        \
                                u32 flags, const float* RESTRICT c, const float* RESTRICT d, u32 l) { \
    multiply<T, false, true, WIDE>(dst, a, b, bias, m, n, k, slice, flags, c, d, l);               \
  }

#define PRODUCTS(name, T, TRANS_A, TRANS_B) \
  PRODUCT(name, T, TRANS_A, TRANS_B, false) \
  PRODUCT(name##_wide, T, TRANS_A, TRANS_B, true)

TWO_PRODUCTS(matmul_nt, 128, false)
TWO_PRODUCTS(matmul_nt_wide, 128, true)
TWO_PRODUCTS(matmul_nt_small, 64, false)
TWO_PRODUCTS(matmul_nt_small_wide, 64, true)
PRODUCTS(matmul_nn, 128, false, false)
PRODUCTS(matmul_tn, 128, true, false)
PRODUCTS(matmul_nn_small, 64, false, false)
PRODUCTS(matmul_tn_small, 64, true, false)
PRODUCTS(matmul_tt_small, 64, true, true)

// add_parts(dst, parts, bias, m, n, slices, flags): flat. It adds up, in order, the parts that a
// product has left, slices matrices of m × n. bias and flags are as the product's.
GLOBAL THREADS(256) void add_parts(float* RESTRICT dst, const float* RESTRICT parts,
                                   const float* RESTRICT bias, u32 m, u32 n, u32 slices, u32 flags) {
  u64 size = (u64)m * n;
  for (u64 i = thread64(); i < size; i += threads64()) {
    float v = 0;
    for (u32 z = 0; z < slices; z++) v += parts[z * size + i];
    if (flags & accumulate) v += dst[i];
    if (bias) v += bias[i % n];
    if (flags & rectify && v < 0.0f) v = 0;
    dst[i] = v;
  }
}
