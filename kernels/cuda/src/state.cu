// What networks of streams need beside products: GRU cells, encoded times, and a gate. Flat, but
// for the sums of the gate's gradient.
#include "arith.h"
#include "map.h"

// GRUCell: gru_cell(dst, gates, x, h, s, rows, cols) and gru_cell_wide. dst and s are rows × cols;
// gates, x and h are rows × 3·cols. gates may be x: in place.
template <int N>
DEVICE void gruCell(float* dst, float* gates, const float* x, const float* h, const float* s, u32 rows,
                    u32 cols) {
  eachColumn<N>(rows, cols, [&](u64 i, u64 r, u32 c) {
    u64 at = r * 3 * cols + c, next = at + cols, last = next + cols;
    float xr[N], xz[N], xn[N], hr[N], hz[N], hn[N], old[N];
    getWritten(xr, x + at);
    getWritten(xz, x + next);
    getWritten(xn, x + last);
    get(hr, h + at);
    get(hz, h + next);
    get(hn, h + last);
    get(old, s + i);
    UNROLL
    for (int j = 0; j < N; j++) {
      xr[j] = sigmoid32(xr[j] + hr[j]);
      xz[j] = sigmoid32(xz[j] + hz[j]);
      xn[j] = tanh32(xn[j] + xr[j] * hn[j]);
      old[j] = xn[j] + xz[j] * (old[j] - xn[j]);
    }
    put(gates + at, xr);
    put(gates + next, xz);
    put(gates + last, xn);
    put(dst + i, old);
  });
}

GLOBAL THREADS(256) void gru_cell(float* RESTRICT dst, float* gates, const float* x,
                                  const float* RESTRICT h, const float* RESTRICT s, u32 rows, u32 cols) {
  gruCell<1>(dst, gates, x, h, s, rows, cols);
}

GLOBAL THREADS(256) void gru_cell_wide(float* RESTRICT dst, float* gates, const float* x,
                                       const float* RESTRICT h, const float* RESTRICT s, u32 rows,
                                       u32 cols) {
  gruCell<4>(dst, gates, x, h, s, rows, cols);
}

// GRUCellGrad: gru_cell_grad(dx, dh, ds, dy, gates, h, s, rows, cols) and gru_cell_grad_wide.
template <int N>
DEVICE void addTo(float* p, const float (&v)[N]) {
  float sum[N];
  getWritten(sum, p);
  UNROLL
  for (int j = 0; j < N; j++) sum[j] += v[j];
  put(p, sum);
}

template <int N>
DEVICE void gruCellGrad(float* dx, float* dh, float* ds, const float* dy, const float* gates,
                        const float* h, const float* s, u32 rows, u32 cols) {
  eachColumn<N>(rows, cols, [&](u64 i, u64 r, u32 c) {
    u64 at = r * 3 * cols + c, next = at + cols, last = next + cols;
    float g[N], reset[N], keep[N], fresh[N], hn[N], old[N], through[N], own[N];
    get(g, dy + i);
    get(reset, gates + at);
    get(keep, gates + next);
    get(fresh, gates + last);
    get(hn, h + last);
    get(old, s + i);
    UNROLL
    for (int j = 0; j < N; j++) {
      float dFresh = g[j] * (1.0f - keep[j]) * (1.0f - fresh[j] * fresh[j]);
      float dKeep = g[j] * (old[j] - fresh[j]) * keep[j] * (1.0f - keep[j]);
      float dReset = dFresh * hn[j] * reset[j] * (1.0f - reset[j]);
      through[j] = dFresh * reset[j];
      own[j] = g[j] * keep[j];
      reset[j] = dReset;
      keep[j] = dKeep;
      fresh[j] = dFresh;
    }
    addTo(dx + at, reset);
    addTo(dx + next, keep);
    addTo(dx + last, fresh);
    addTo(dh + at, reset);
    addTo(dh + next, keep);
    addTo(dh + last, through);
    addTo(ds + i, own);
  });
}

GLOBAL THREADS(256) void gru_cell_grad(float* RESTRICT dx, float* RESTRICT dh, float* RESTRICT ds,
                                       const float* RESTRICT dy, const float* RESTRICT gates,
                                       const float* RESTRICT h, const float* RESTRICT s, u32 rows,
                                       u32 cols) {
  gruCellGrad<1>(dx, dh, ds, dy, gates, h, s, rows, cols);
}

GLOBAL THREADS(256) void gru_cell_grad_wide(float* RESTRICT dx, float* RESTRICT dh, float* RESTRICT ds,
                                            const float* RESTRICT dy, const float* RESTRICT gates,
                                            const float* RESTRICT h, const float* RESTRICT s, u32 rows,
                                            u32 cols) {
  gruCellGrad<4>(dx, dh, ds, dy, gates, h, s, rows, cols);
}

// TimeEncode: time_encode(dst, times, w, b, rows, cols) and time_encode_wide. The sum of a row of
// times (rows × 2, which need not be aligned) is a time. The phase is rounded once, in float64. The
// gradient is in sums.cu.
template <int N>
DEVICE void timeEncode(float* dst, const float* times, const float* w, const float* b, u32 rows, u32 cols) {
  eachColumn<N>(rows, cols, [&](u64 i, u64 r, u32 c) {
    double t = (double)times[2 * r] + (double)times[2 * r + 1];
    float rate[N], shift[N];
    get(rate, w + c);
    get(shift, b + c);
    UNROLL
    for (int j = 0; j < N; j++) rate[j] = cosine(fma64(t, (double)rate[j], (double)shift[j]), 0);
    put(dst + i, rate);
  });
}

GLOBAL THREADS(256) void time_encode(float* RESTRICT dst, const float* RESTRICT times,
                                     const float* RESTRICT w, const float* RESTRICT b, u32 rows, u32 cols) {
  timeEncode<1>(dst, times, w, b, rows, cols);
}

GLOBAL THREADS(256) void time_encode_wide(float* RESTRICT dst, const float* RESTRICT times,
                                          const float* RESTRICT w, const float* RESTRICT b, u32 rows,
                                          u32 cols) {
  timeEncode<4>(dst, times, w, b, rows, cols);
}

// Gate: gate(dst, a, x, s, n) and gate_wide. s is one float, and need not be aligned.
struct shares {
  double own, rest;
};

DEVICE shares sharesOf(float s) {
  shares of = {1.0 / (1.0 + exp64(-(double)s)), 1.0 / (1.0 + exp64((double)s))};
  return of;
}

template <int N>
DEVICE void blend(float* dst, const float* a, const float* x, const float* s, u64 n) {
  shares of = sharesOf(s[0]);
  float own = (float)of.own, rest = (float)of.rest;
  each<N>(n, [&](u64 i) {
    float v[N], w[N];
    get(v, a + i);
    get(w, x + i);
    UNROLL
    for (int j = 0; j < N; j++) v[j] = own * v[j] + rest * w[j];
    put(dst + i, v);
  });
  for (u64 i = n / N * N + thread64(); i < n; i += threads64()) dst[i] = own * a[i] + rest * x[i];
}

GLOBAL THREADS(256) void gate(float* RESTRICT dst, const float* RESTRICT a, const float* RESTRICT x,
                              const float* RESTRICT s, u64 n) {
  blend<1>(dst, a, x, s, n);
}

GLOBAL THREADS(256) void gate_wide(float* RESTRICT dst, const float* RESTRICT a, const float* RESTRICT x,
                                   const float* RESTRICT s, u64 n) {
  blend<4>(dst, a, x, s, n);
}

// GateGrad, in two launches: gate_grad(da, dx, parts, dy, a, x, s, n, chunks) or gate_grad_wide,
// any grid, adds to da and dx, and leaves in parts (float64) the sum of each of the chunks of 8,192
// elements, chunks being n/8,192 rounded up; then gate_finish(ds, s, parts, chunks), one block,
// adds to ds[0].
template <int N>
DEVICE void gateGrad(float* da, float* dx, double* parts, const float* dy, const float* a, const float* x,
                     const float* s, u64 n, u32 chunks) {
  SHARED double sums[256];
  shares of = sharesOf(s[0]);
  float own = (float)of.own, rest = (float)of.rest;
  for (u32 c = block(); c < chunks; c += blocks()) {
    u64 from = (u64)c * 8192, end = from + 8192 < n ? from + 8192 : n;
    double sum = 0;
    for (u64 i = from + thread() * 4; i < end; i += 1024) {
      if (N == 4 && i + 4 <= end) {
        float g[4], p[4], q[4], v[4];
        get(g, dy + i);
        get(p, a + i);
        get(q, x + i);
        UNROLL
        for (int j = 0; j < 4; j++) {
          sum += (double)g[j] * ((double)p[j] - (double)q[j]);
          v[j] = own * g[j];
          g[j] *= rest;
        }
        addTo(da + i, v);
        addTo(dx + i, g);
        continue;
      }
      for (u64 j = i; j < end && j < i + 4; j++) {
        float g = dy[j];
        sum += (double)g * ((double)a[j] - (double)x[j]);
        da[j] += own * g;
        dx[j] += rest * g;
      }
    }
    sum = blockSum64(sums, sum);
    if (thread() == 0) parts[c] = sum;
    barrier();
  }
}

GLOBAL THREADS(256) void gate_grad(float* RESTRICT da, float* RESTRICT dx, double* RESTRICT parts,
                                   const float* RESTRICT dy, const float* RESTRICT a,
                                   const float* RESTRICT x, const float* RESTRICT s, u64 n, u32 chunks) {
  gateGrad<1>(da, dx, parts, dy, a, x, s, n, chunks);
}

GLOBAL THREADS(256) void gate_grad_wide(float* RESTRICT da, float* RESTRICT dx, double* RESTRICT parts,
                                        const float* RESTRICT dy, const float* RESTRICT a,
                                        const float* RESTRICT x, const float* RESTRICT s, u64 n,
                                        u32 chunks) {
  gateGrad<4>(da, dx, parts, dy, a, x, s, n, chunks);
}

GLOBAL THREADS(256) void gate_finish(float* RESTRICT ds, const float* RESTRICT s,
                                     const double* RESTRICT parts, u32 chunks) {
  SHARED double sums[256];
  if (block() != 0) return;
  double sum = 0;
  for (u32 c = thread(); c < chunks; c += 256) sum += parts[c];
  sum = blockSum64(sums, sum);
  if (thread() != 0) return;
  shares of = sharesOf(s[0]);
  ds[0] += (float)(of.own * of.rest * sum);
}
