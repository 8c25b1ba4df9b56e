// Fill, Convert, Add, Scale, ScaleRows, AddRow and the activations that are a comparison, element
// by element, and CheckFinite. All are flat.
#include "map.h"

// Fill: fill(dst, n, v) and fill_wide set n elements to v.
template <int N>
DEVICE void fillWith(float* dst, u64 n, float v) {
  float all[N];
  UNROLL
  for (int j = 0; j < N; j++) all[j] = v;
  each<N>(n, [&](u64 i) { put(dst + i, all); });
  for (u64 i = n / N * N + thread64(); i < n; i += threads64()) dst[i] = v;
}

GLOBAL THREADS(256) void fill(float* dst, u64 n, float v) { fillWith<1>(dst, n, v); }
GLOBAL THREADS(256) void fill_wide(float* dst, u64 n, float v) { fillWith<4>(dst, n, v); }

// Convert: copy(dst, src, n) and copy_wide for floats, convert_half(dst, src, n) and
// convert_half_wide for halves. The last asks that dst and src start at multiples of 16 bytes.
MAP(copy, [](float x) { return x; })

GLOBAL THREADS(256) void convert_half(float* RESTRICT dst, const u16* RESTRICT src, u64 n) {
  for (u64 i = thread64(); i < n; i += threads64()) dst[i] = halfToFloat(src[i]);
}

GLOBAL THREADS(256) void convert_half_wide(float* RESTRICT dst, const u16* RESTRICT src, u64 n) {
  each<8>(n, [&](u64 i) {
    float v[8];
    get(v, src + i);
    put(dst + i, v);
  });
  for (u64 i = n / 8 * 8 + thread64(); i < n; i += threads64()) dst[i] = halfToFloat(src[i]);
}

// Add: add(dst, src, n) and add_wide.
MAP2(add, [](float d, float s) { return d + s; })

// Scale: scale(dst, n, factor) and scale_wide.
GLOBAL THREADS(256) void scale(float* dst, u64 n, float factor) {
  map<1>(dst, dst, n, [=](float x) { return x * factor; });
}

GLOBAL THREADS(256) void scale_wide(float* dst, u64 n, float factor) {
  map<4>(dst, dst, n, [=](float x) { return x * factor; });
}

// ScaleRows: scale_rows and scale_rows_wide multiply row r of dst (rows × cols) by factors[r]. Only
// dst has to start at a multiple of 16 bytes.
template <int N>
DEVICE void scaleRows(float* dst, const float* factors, u32 rows, u32 cols) {
  eachColumn<N>(rows, cols, [&](u64 i, u64 r, u32) {
    float v[N];
    getWritten(v, dst + i);
    UNROLL
    for (int j = 0; j < N; j++) v[j] *= factors[r];
    put(dst + i, v);
  });
}

GLOBAL THREADS(256) void scale_rows(float* dst, const float* RESTRICT factors, u32 rows, u32 cols) {
  scaleRows<1>(dst, factors, rows, cols);
}

GLOBAL THREADS(256) void scale_rows_wide(float* dst, const float* RESTRICT factors, u32 rows, u32 cols) {
  scaleRows<4>(dst, factors, rows, cols);
}

// AddRow: add_row and add_row_wide add row (cols) to every row of dst (rows × cols).
template <int N, bool RELU>
DEVICE void addRow(float* dst, const float* row, u32 rows, u32 cols) {
  eachColumn<N>(rows, cols, [&](u64 i, u64, u32 c) {
    float v[N], x[N];
    getWritten(v, dst + i);
    get(x, row + c);
    UNROLL
    for (int j = 0; j < N; j++) {
      v[j] += x[j];
      if (RELU && v[j] < 0.0f) v[j] = 0;
    }
    put(dst + i, v);
  });
}

GLOBAL THREADS(256) void add_row(float* dst, const float* RESTRICT row, u32 rows, u32 cols) {
  addRow<1, false>(dst, row, rows, cols);
}

GLOBAL THREADS(256) void add_row_wide(float* dst, const float* RESTRICT row, u32 rows, u32 cols) {
  addRow<4, false>(dst, row, rows, cols);
}

// What an Affine adds behind products of cuBLAS: add_row_relu(dst, row, rows, cols) and
// add_row_relu_wide are AddRow and ReLU in one.
GLOBAL THREADS(256) void add_row_relu(float* dst, const float* RESTRICT row, u32 rows, u32 cols) {
  addRow<1, true>(dst, row, rows, cols);
}

GLOBAL THREADS(256) void add_row_relu_wide(float* dst, const float* RESTRICT row, u32 rows, u32 cols) {
  addRow<4, true>(dst, row, rows, cols);
}

// CheckFinite: check_finite(flag, src, n) and check_finite_wide set flag[0] to 1 if an element is
// NaN or infinite, and else leave it. Threads may store the same 1 at once.
template <int N>
DEVICE void checkFinite(u32* flag, const float* src, u64 n) {
  bool odd = false;
  each<N>(n, [&](u64 i) {
    float v[N];
    get(v, src + i);
    UNROLL
    for (int j = 0; j < N; j++) odd |= v[j] - v[j] != 0.0f;
  });
  for (u64 i = n / N * N + thread64(); i < n; i += threads64()) odd |= src[i] - src[i] != 0.0f;
  if (odd) flag[0] = 1;
}

GLOBAL THREADS(256) void check_finite(u32* flag, const float* RESTRICT src, u64 n) {
  checkFinite<1>(flag, src, n);
}

GLOBAL THREADS(256) void check_finite_wide(u32* flag, const float* RESTRICT src, u64 n) {
  checkFinite<4>(flag, src, n);
}

// ReLU: relu(dst, src, n) and relu_wide; dst may be src: in place. ReLUGrad: relu_grad(dx, dy, y,
// n). ReLUMask: relu_mask(d, y, n), in place. Both have a variant _wide.
MAP(relu, [](float x) { return x < 0.0f ? 0.0f : x; })
MAP3(relu_grad, [](float d, float g, float y) { return y > 0.0f ? d + g : d; })
MAP2(relu_mask, [](float d, float y) { return y > 0.0f ? d : 0.0f; })

// LeakyReLU: leaky_relu(dst, src, n, slope); LeakyReLUGrad: leaky_relu_grad(dx, dy, x, n, slope).
// Both have a variant _wide.
DEVICE float leakyGrad(float d, float g, float x, float slope) { return x > 0.0f ? d + g : d + slope * g; }

GLOBAL THREADS(256) void leaky_relu(float* dst, const float* src, u64 n, float slope) {
  map<1>(dst, src, n, [=](float x) { return x > 0.0f ? x : x * slope; });
}

GLOBAL THREADS(256) void leaky_relu_wide(float* dst, const float* src, u64 n, float slope) {
  map<4>(dst, src, n, [=](float x) { return x > 0.0f ? x : x * slope; });
}

GLOBAL THREADS(256) void leaky_relu_grad(float* dx, const float* RESTRICT dy, const float* RESTRICT x,
                                         u64 n, float slope) {
  map3<1>(dx, dy, x, n, [=](float d, float g, float at) { return leakyGrad(d, g, at, slope); });
}

GLOBAL THREADS(256) void leaky_relu_grad_wide(float* dx, const float* RESTRICT dy,
                                              const float* RESTRICT x, u64 n, float slope) {
  map3<4>(dx, dy, x, n, [=](float d, float g, float at) { return leakyGrad(d, g, at, slope); });
}
