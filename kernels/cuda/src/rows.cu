// Lists of rows of a table: GatherRows, ScatterRows, AssembleRows, RowsOf, KeepRows, StoreRows,
// RowNorms, Columns, and the sums of AddEdges and GatherRowsGrad over a list that sort.cu has
// sorted.
#include "lanes.h"

template <int N, class T, class D>
DEVICE void copyColumns(D* dst, const T* src) {
  float v[N];
  get(v, src);
  put(dst, v);
}

// GatherRows: gather_rows(dst, src, ids, rows, table, cols, shift, error), gather_rows_half for a
// table of halves, and their variants _wide. Lanes. dst has rows rows, src has table rows. It
// checks ids with no columns too.
#define GATHER_ROWS(name, T, N)                                                                    \
  GLOBAL THREADS(256) void name(float* RESTRICT dst, const T* RESTRICT src, const u32* RESTRICT ids, \
                                u32 rows, u32 table, u32 cols, u32 shift, u64* error) {            \
    eachCheckedRow<N>(                                                                             \
        rows, cols, shift, table, error, GatherRows, [&](u64 r) { return ids[r]; },                \
        [&](u64 r, u32 c, u64 at) { copyColumns<N>(dst + r * cols + c, src + at * cols + c); });   \
  }

GATHER_ROWS(gather_rows, float, 1)
GATHER_ROWS(gather_rows_wide, float, 4)
GATHER_ROWS(gather_rows_half, u16, 1)
GATHER_ROWS(gather_rows_half_wide, u16, 8)

// ScatterRows: scatter_rows(dst, src, ids, rows, table, cols, shift, error), scatter_rows_half for
// a table dst of halves, and their variants _wide. Lanes. src has rows rows, dst has table rows.
#define SCATTER_ROWS(name, T, N)                                                                   \
  GLOBAL THREADS(256) void name(T* RESTRICT dst, const float* RESTRICT src, const u32* RESTRICT ids, \
                                u32 rows, u32 table, u32 cols, u32 shift, u64* error) {            \
    eachCheckedRow<N>(                                                                             \
        rows, cols, shift, table, error, ScatterRows, [&](u64 r) { return ids[r]; },               \
        [&](u64 r, u32 c, u64 at) { copyColumns<N>(dst + at * cols + c, src + r * cols + c); });   \
  }

SCATTER_ROWS(scatter_rows, float, 1)
SCATTER_ROWS(scatter_rows_wide, float, 4)
SCATTER_ROWS(scatter_rows_half, u16, 1)
SCATTER_ROWS(scatter_rows_half_wide, u16, 8)

// AssembleRows: assemble_rows(dst, x, slots, at, rows, table, slotRows, cols, stride, shift, error)
// and assemble_rows_half_wide. Lanes. x has table rows of cols columns, slots has slotRows rows of
// stride halves. The wide variant asks that stride is a multiple of 8, or that there are no slots.
const u32 inSlot = 0x80000000;

template <int N>
DEVICE void assembleRows(float* dst, const float* x, const u16* slots, const u32* at, u32 rows,
                         u32 table, u32 slotRows, u32 cols, u32 stride, u32 shift, u64* error) {
  const u64 none = ~0ull;
  eachCheckedRow<N>(
      rows, cols, shift, none, error, AssembleRows,
      [&](u64 r) {
        u32 from = at[r];
        return (from & ~inSlot) < (from & inSlot ? slotRows : table) ? (u64)from : none;
      },
      [&](u64 r, u32 c, u64 from) {
        float v[N];
        if (from & inSlot) {
          get(v, slots + (from & ~(u64)inSlot) * stride + c);
        } else {
          get(v, x + from * cols + c);
        }
        put(dst + r * cols + c, v);
      });
}

GLOBAL THREADS(256) void assemble_rows(float* RESTRICT dst, const float* RESTRICT x,
                                       const u16* RESTRICT slots, const u32* RESTRICT at, u32 rows,
                                       u32 table, u32 slotRows, u32 cols, u32 stride, u32 shift,
                                       u64* error) {
  assembleRows<1>(dst, x, slots, at, rows, table, slotRows, cols, stride, shift, error);
}

GLOBAL THREADS(256) void assemble_rows_half_wide(float* RESTRICT dst, const float* RESTRICT x,
                                                 const u16* RESTRICT slots, const u32* RESTRICT at,
                                                 u32 rows, u32 table, u32 slotRows, u32 cols,
                                                 u32 stride, u32 shift, u64* error) {
  assembleRows<8>(dst, x, slots, at, rows, table, slotRows, cols, stride, shift, error);
}

// RowsOf: rows_of(dst, hot, came, at, rows, hotRows, cameRows, cols, shift, error) and
// rows_of_wide. Lanes. It copies bits, whatever their type: all rows are cols units of 16 bits.
template <int N>
DEVICE void rowsOf(u16* dst, const u16* hot, const u16* came, const u32* at, u32 rows, u32 hotRows,
                   u32 cameRows, u32 cols, u32 shift, u64* error) {
  const u64 none = ~0ull;
  eachCheckedRow<N>(
      rows, cols, shift, none, error, RowsOf,
      [&](u64 r) {
        u32 from = at[r];
        return (from & ~inSlot) < (from & inSlot ? cameRows : hotRows) ? (u64)from : none;
      },
      [&](u64 r, u32 c, u64 from) {
        u64 p = (from & ~(u64)inSlot) * cols + c;
        // A choice between came and hot themselves would put them into local memory.
        const u16* row = from & inSlot ? came + p : hot + p;
        if (N == 1) {
          dst[r * cols + c] = row[0];
        } else {
          store8(dst + r * cols + c, load8(row));
        }
      });
}

GLOBAL THREADS(256) void rows_of(u16* RESTRICT dst, const u16* RESTRICT hot, const u16* RESTRICT came,
                                 const u32* RESTRICT at, u32 rows, u32 hotRows, u32 cameRows, u32 cols,
                                 u32 shift, u64* error) {
  rowsOf<1>(dst, hot, came, at, rows, hotRows, cameRows, cols, shift, error);
}

GLOBAL THREADS(256) void rows_of_wide(u16* RESTRICT dst, const u16* RESTRICT hot,
                                      const u16* RESTRICT came, const u32* RESTRICT at, u32 rows,
                                      u32 hotRows, u32 cameRows, u32 cols, u32 shift, u64* error) {
  rowsOf<8>(dst, hot, came, at, rows, hotRows, cameRows, cols, shift, error);
}

// KeepRows: keep_rows(hot, came, from, to, n, hotRows, cameRows, cols, shift, error) and
// keep_rows_wide. Lanes. It copies bits as RowsOf does, row from[r] of came to row to[r] of hot.
template <int N>
DEVICE void keepRows(u16* hot, const u16* came, const u32* from, const u32* to, u32 n, u32 hotRows,
                     u32 cameRows, u32 cols, u32 shift, u64* error) {
  const u64 none = ~0ull;
  eachCheckedRow<N>(
      n, cols, shift, none, error, KeepRows,
      [&](u64 r) {
        u32 source = from[r], row = to[r];
        return source < cameRows && row < hotRows ? (u64)source << 32 | row : none;
      },
      [&](u64, u32 c, u64 both) {
        u16* dst = hot + (both & 0xffffffff) * cols + c;
        const u16* src = came + (both >> 32) * cols + c;
        if (N == 1) {
          dst[0] = src[0];
        } else {
          store8(dst, load8(src));
        }
      });
}

GLOBAL THREADS(256) void keep_rows(u16* RESTRICT hot, const u16* RESTRICT came, const u32* RESTRICT from,
                                   const u32* RESTRICT to, u32 n, u32 hotRows, u32 cameRows, u32 cols,
                                   u32 shift, u64* error) {
  keepRows<1>(hot, came, from, to, n, hotRows, cameRows, cols, shift, error);
}

GLOBAL THREADS(256) void keep_rows_wide(u16* RESTRICT hot, const u16* RESTRICT came,
                                        const u32* RESTRICT from, const u32* RESTRICT to, u32 n,
                                        u32 hotRows, u32 cameRows, u32 cols, u32 shift, u64* error) {
  keepRows<8>(hot, came, from, to, n, hotRows, cameRows, cols, shift, error);
}

// StoreRows: store_rows(slots, lost, x, from, to, rows, table, slotRows, cols, stride, flag, error)
// and store_rows_half_wide. Warp. It stores row from[r] of x (table × cols) to the beginning of row
// to[r] of slots (slotRows × stride halves). The wide variant asks that stride is a multiple of 8.
// flag is a word, or null: if it is not 0, slots and lost stay as they are.
DEVICE u16 clampedHalf(float v, bool& lost) {
  u16 h = floatToHalf(v);
  if ((h & 0x7fff) >= 0x7c00) {
    lost = true;
    if ((h & 0x7fff) == 0x7c00) h = (u16)((h & 0x8000) | 0x7bff);
  }
  return h;
}

DEVICE void putClamped(u16* p, const float (&v)[1], bool& lost) { p[0] = clampedHalf(v[0], lost); }

DEVICE void putClamped(u16* p, const float (&v)[8], bool& lost) {
  u32x4 x;
  UNROLL
  for (int j = 0; j < 4; j++) {
    u32 low = clampedHalf(v[2 * j], lost), high = clampedHalf(v[2 * j + 1], lost);
    x[j] = low | high << 16;
  }
  store8(p, x);
}

template <int N>
DEVICE void storeRows(u16* slots, u32* lost, const float* x, const u32* from, const u32* to, u32 rows,
                      u32 table, u32 slotRows, u32 cols, u32 stride, const u32* flag, u64* error) {
  if (flag && flag[0]) return;
  u32 lane = thread() & 31;
  for (u64 r = thread64() >> 5; r < rows; r += threads64() >> 5) {
    u32 source = from[r], slot = to[r];
    if (source >= table || slot >= slotRows) {
      if (lane == 0) fail(error, StoreRows, r);
      continue;  // the whole warp
    }
    bool odd = false;
    for (u64 c = (u64)lane * N; c < cols; c += 32 * N) {
      float v[N];
      get(v, x + (u64)source * cols + c);
      putClamped(slots + (u64)slot * stride + c, v, odd);
    }
    u32 any = odd;
    for (int mask = 16; mask != 0; mask >>= 1) any |= exchangeBits(any, mask);
    if (lane == 0) lost[r] = any;
  }
}

GLOBAL THREADS(256) void store_rows(u16* RESTRICT slots, u32* RESTRICT lost, const float* RESTRICT x,
                                    const u32* RESTRICT from, const u32* RESTRICT to, u32 rows,
                                    u32 table, u32 slotRows, u32 cols, u32 stride, const u32* flag,
                                    u64* error) {
  storeRows<1>(slots, lost, x, from, to, rows, table, slotRows, cols, stride, flag, error);
}

GLOBAL THREADS(256) void store_rows_half_wide(u16* RESTRICT slots, u32* RESTRICT lost,
                                              const float* RESTRICT x, const u32* RESTRICT from,
                                              const u32* RESTRICT to, u32 rows, u32 table,
                                              u32 slotRows, u32 cols, u32 stride, const u32* flag,
                                              u64* error) {
  storeRows<8>(slots, lost, x, from, to, rows, table, slotRows, cols, stride, flag, error);
}

// RowNorms: row_norms(dst, src, rows, cols) and row_norms_wide. Warp. dst has a float a row, and no
// alignment. Squares are added in float64.
template <int N>
DEVICE void rowNorms(float* dst, const float* src, u32 rows, u32 cols) {
  eachWarp(rows, [&](u64 r) {
    double sum = 0;
    eachGroup<N>(cols, [&](u32 c) {
      float v[N];
      get(v, src + r * cols + c);
      UNROLL
      for (int j = 0; j < N; j++) sum = sum + (double)v[j] * (double)v[j];
    });
    sum = sum64(sum);
    if ((thread() & 31) == 0) dst[r] = (float)__builtin_sqrt(sum);
  });
}

GLOBAL THREADS(256) void row_norms(float* RESTRICT dst, const float* RESTRICT src, u32 rows, u32 cols) {
  rowNorms<1>(dst, src, rows, cols);
}

GLOBAL THREADS(256) void row_norms_wide(float* RESTRICT dst, const float* RESTRICT src, u32 rows,
                                        u32 cols) {
  rowNorms<4>(dst, src, rows, cols);
}

// Columns: columns(dst, src, rows, cols, stride, first, shift), ColumnsGrad: columns_grad(dsrc,
// ddst, rows, cols, stride, first, shift), and their variants _wide. Lanes. The narrow matrix is
// rows × cols, the other rows × stride; its columns from first on are copied, or added to. The wide
// variants ask that stride and first are multiples of 4 too.
template <int N>
DEVICE void columnsOf(float* dst, const float* src, u32 rows, u32 cols, u32 stride, u32 first, u32 shift) {
  eachLane<N>(rows, cols, shift, [&](u64 r, u32 c) {
    copyColumns<N>(dst + r * cols + c, src + r * stride + first + c);
  });
}

template <int N>
DEVICE void columnsGrad(float* dsrc, const float* ddst, u32 rows, u32 cols, u32 stride, u32 first, u32 shift) {
  eachLane<N>(rows, cols, shift, [&](u64 r, u32 c) {
    float v[N], sum[N];
    float* p = dsrc + r * stride + first + c;
    getWritten(sum, p);
    get(v, ddst + r * cols + c);
    UNROLL
    for (int j = 0; j < N; j++) sum[j] += v[j];
    put(p, sum);
  });
}

GLOBAL THREADS(256) void columns(float* RESTRICT dst, const float* RESTRICT src, u32 rows, u32 cols,
                                 u32 stride, u32 first, u32 shift) {
  columnsOf<1>(dst, src, rows, cols, stride, first, shift);
}

GLOBAL THREADS(256) void columns_wide(float* RESTRICT dst, const float* RESTRICT src, u32 rows, u32 cols,
                                      u32 stride, u32 first, u32 shift) {
  columnsOf<4>(dst, src, rows, cols, stride, first, shift);
}

GLOBAL THREADS(256) void columns_grad(float* RESTRICT dsrc, const float* RESTRICT ddst, u32 rows, u32 cols,
                                      u32 stride, u32 first, u32 shift) {
  columnsGrad<1>(dsrc, ddst, rows, cols, stride, first, shift);
}

GLOBAL THREADS(256) void columns_grad_wide(float* RESTRICT dsrc, const float* RESTRICT ddst, u32 rows,
                                           u32 cols, u32 stride, u32 first, u32 shift) {
  columnsGrad<4>(dsrc, ddst, rows, cols, stride, first, shift);
}

// AddEdges and GatherRowsGrad, over a sorted list: add_sorted(dst, src, w, from, keys, order, n,
// rows, table, cols, shift, error), add_sorted_half for src in halves, and their variants _wide.
// Lanes. keys (n) are the rows of dst (rows × cols) that the n edges go to, ascending, and order
// their positions in the list, ascending among equal keys: see sort.cu. Edge e adds row from[e] of
// src (table × cols), or row e where from is null, times w[e], or once where w is null. A row of
// dst is written by the lanes of its first edge, so a row of many edges takes as long as they do.
// The error is of AddEdges, or of GatherRowsGrad where from is null.
template <int N, class T>
DEVICE void addSorted(float* dst, const T* src, const float* w, const u32* from, const u32* keys,
                      const u32* order, u32 n, u32 rows, u32 table, u32 cols, u32 shift, u64* error) {
  code of = from ? AddEdges : GatherRowsGrad;
  u32 lanes = 1u << shift, lane = thread() & (lanes - 1);
  for (u64 p = thread64() >> shift; p < n; p += threads64() >> shift) {
    u32 key = keys[p];
    if (p > 0 && keys[p - 1] == key) continue;
    u64 end = p + 1;
    while (end < n && keys[end] == key) end++;
    if (lane == 0) {
      for (u64 k = p; k < end; k++) {
        u32 e = order[k];
        if (key >= rows || e >= n || (from ? from[e] : e) >= table) fail(error, of, e);
      }
    }
    if (key >= rows) continue;
    for (u64 c = (u64)lane * N; c < cols; c += (u64)lanes * N) {
      float sum[N];
      getWritten(sum, dst + (u64)key * cols + c);
      for (u64 k = p; k < end; k++) {
        u32 e = order[k];
        if (e >= n) continue;
        u32 row = from ? from[e] : e;
        if (row >= table) continue;
        float v[N];
        get(v, src + (u64)row * cols + c);
        float by = w ? w[e] : 1.0f;
        UNROLL
        for (int j = 0; j < N; j++) sum[j] = fma32(by, v[j], sum[j]);
      }
      put(dst + (u64)key * cols + c, sum);
    }
  }
}

#define ADD_SORTED(name, T, N)                                                                     \
  GLOBAL THREADS(256) void name(float* RESTRICT dst, const T* RESTRICT src, const float* RESTRICT w, \
                                const u32* RESTRICT from, const u32* RESTRICT keys,                \
                                const u32* RESTRICT order, u32 n, u32 rows, u32 table, u32 cols,   \
                                u32 shift, u64* error) {                                           \
    addSorted<N>(dst, src, w, from, keys, order, n, rows, table, cols, shift, error);              \
  }

ADD_SORTED(add_sorted, float, 1)
ADD_SORTED(add_sorted_wide, float, 4)
ADD_SORTED(add_sorted_half, u16, 1)
ADD_SORTED(add_sorted_half_wide, u16, 8)
