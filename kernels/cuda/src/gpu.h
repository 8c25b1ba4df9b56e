// What all kernels share: attributes, indices, the instructions that need inline assembly, and the
// error word. The same sources compile to PTX (clang, -x cuda) and, for tests, to host code, where
// kernels/cuda/clib runs the threads of a block one after another. So the inline assembly is here
// alone, beside its host twin.
//
// Conventions of all kernels:
//
//   - A pointer is the address of the first element of a tensor's window. Matrices are row-major.
//     Elements are counted in u64, rows and columns in u32.
//   - A block has 256 threads unless the comment of a kernel names another number. "Flat" kernels
//     loop over elements, so any grid does. "Lanes" kernels have a parameter shift from 0 to 5: a
//     row is computed by 2^shift neighbouring threads, each of which takes every 2^shift-th column
//     (or vector of columns). The caller takes the smallest shift at which these threads cover the
//     columns at once, or 5. "Warp" kernels take 32 threads for a row. Both loop over rows, so any
//     grid does.
//   - NAME_wide computes the same bits as NAME with loads and stores of 16 bytes. All its matrices
//     start at multiples of 16 bytes. In flat kernels nothing else is asked: a tail of fewer than
//     four elements is done one by one. In the others, cols (or width, for heads) is a multiple of
//     4, and of 8 in kernels with "half" in their name.
//   - The caller launches nothing where there are no rows; no columns are fine.
//   - dst never overlaps an input, except where a comment says "in place".
//   - Sums go in an order that depends on sizes alone: in the order of a list, or by fixed chunks
//     and a fixed tree. No kernel has atomic operations on floats, and none relies on an order
//     between blocks: what needs it is another launch.
//   - Kernels that read ids, labels or positions check them. What is out of range is left out, and
//     the error word tells the first such place: see fail.
//   - -ffp-contract=off: a product and a sum are one instruction only where the source has fma32 or
//     fma64. So a host computes the same bits.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define RESTRICT __restrict__

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#define UNROLL_TWICE _Pragma("unroll 2")
#else
#define UNROLL _Pragma("GCC unroll 8")
#define UNROLL_TWICE
#endif

#if defined(__CUDA__)

#define GLOBAL extern "C" __attribute__((global))
#define DEVICE static inline __attribute__((device, always_inline))
// aligned(16), since 16-byte loads read it.
#define SHARED static __attribute__((shared, aligned(16)))
// At least one block on a multiprocessor: without the 1, ptxas spills a few bytes to fit one more.
#define THREADS(n) __attribute__((launch_bounds(n, 1)))

typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));

DEVICE u32 thread() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u32 blockY() { return __nvvm_read_ptx_sreg_ctaid_y(); }
DEVICE u32 blockZ() { return __nvvm_read_ptx_sreg_ctaid_z(); }
DEVICE u32 blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }
DEVICE u32 threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE void barrier() { __syncthreads(); }

// exchange returns the v of the lane whose number is this lane's XOR mask. All 32 lanes call it.
DEVICE u32 exchangeBits(u32 v, int mask) {
  return (u32)__nvvm_shfl_sync_bfly_i32(-1, (int)v, mask, 31);
}

DEVICE float halfToFloat(u16 h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}

// floatToHalf rounds to the nearest half, ties to even.
DEVICE u16 floatToHalf(float f) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}

// load4 and load8 load 16 bytes with one instruction; clang would split a load of a vector type. p
// is a multiple of 16, and nothing writes there while the kernel runs.
DEVICE f32x4 load4(const float* p) {
  f32x4 v;
  asm("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
      : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
      : "l"(p));
  return v;
}

// load8 returns eight halves, two a word, the first in the low bits.
DEVICE u32x4 load8(const u16* p) {
  u32x4 v;
  asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(p));
  return v;
}

// load4Written is load4 for memory that this kernel may write to.
DEVICE f32x4 load4Written(const float* p) {
  f32x4 v;
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p)
               : "memory");
  return v;
}

DEVICE void store4(float* p, f32x4 v) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p), "f"(v.x), "f"(v.y), "f"(v.z),
               "f"(v.w)
               : "memory");
}

DEVICE void store8(u16* p, u32x4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}

// shared4 reads four floats of shared memory, at a multiple of 16 bytes; putShared4 writes them.
DEVICE f32x4 shared4(const float* p) {
  u32 at = (u32)(u64)(const __attribute__((address_space(3))) float*)p;
  f32x4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(at)
               : "memory");
  return v;
}

DEVICE void putShared4(float* p, f32x4 v) {
  u32 at = (u32)(u64)(__attribute__((address_space(3))) float*)p;
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at), "f"(v.x), "f"(v.y), "f"(v.z),
               "f"(v.w)
               : "memory");
}

// swapIfZero stores v at p if there is 0, atomically.
DEVICE void swapIfZero(u64* p, u64 v) { __nvvm_atom_cas_gen_ll((long long*)p, 0, (long long)v); }

// Addresses that come out of a table in memory: clang does not see that they are global.
#define IN_GLOBAL __attribute__((address_space(1)))

DEVICE u32 floatBits(float v) { return __builtin_bit_cast(u32, v); }

#else

#include "host.h"

#endif

DEVICE float floatOf(u32 bits) { return __builtin_bit_cast(float, bits); }
DEVICE u64 doubleBits(double v) { return __builtin_bit_cast(u64, v); }
DEVICE double doubleOf(u64 bits) { return __builtin_bit_cast(double, bits); }

// fma32 and fma64 round once.
DEVICE float fma32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE double fma64(double a, double b, double c) { return __builtin_fma(a, b, c); }

// thread64 returns the number of this thread in a row of blocks, and threads64 their number.
DEVICE u64 thread64() { return (u64)block() * threads() + thread(); }
DEVICE u64 threads64() { return (u64)blocks() * threads(); }

// A number for each operation that can fail, in the error word. kernels/cuda/ptx has their names.
enum code : u32 {
  GatherRows = 1,
  GatherRowsGrad = 2,
  ScatterRows = 3,
  AssembleRows = 4,
  StoreRows = 5,
  AddEdges = 6,
  NeighborMean = 7,
  NeighborMeanGrad = 8,
  WeightedSum = 9,
  WeightedSumGrad = 10,
  WeightedSumWeightGrad = 11,
  EdgeSoftmax = 12,
  EdgeSoftmaxGrad = 13,
  EdgeDot = 14,
  EdgeDotGrad = 15,
  EdgeSoftmaxOf = 16,
  EdgeSoftmaxOfGrad = 17,
  EdgeDropout = 18,
  EdgeDropoutGrad = 19,
  SoftmaxCrossEntropy = 20,
  RowsOf = 21,
  KeepRows = 22,
  EdgeDistance = 23,
  EdgeDistanceGrad = 24,
};

// fail writes the code of an operation and a place in one of its lists to the error word, in its
// high and its low half, unless an error is there. The caller zeroes the word. The place is the
// position of an id, label or edge in its list, or the number of a row whose list is out of range.
// When several threads fail, which of them comes first is open.
DEVICE void fail(u64* error, code of, u64 place) {
  swapIfZero(error, (u64)of << 32 | (place & 0xffffffff));
}

// sum32 and sum64 return the sum over the 32 lanes of a warp, the same in each, by a fixed tree.
// All lanes call them.
DEVICE float exchange(float v, int mask) { return floatOf(exchangeBits(floatBits(v), mask)); }

DEVICE double exchange64(double v, int mask) {
  u64 bits = doubleBits(v);
  u32 low = exchangeBits((u32)bits, mask);
  u32 high = exchangeBits((u32)(bits >> 32), mask);
  return doubleOf((u64)high << 32 | low);
}

DEVICE float sum32(float v) {
  for (int mask = 16; mask != 0; mask >>= 1) v += exchange(v, mask);
  return v;
}

DEVICE double sum64(double v) {
  for (int mask = 16; mask != 0; mask >>= 1) v += exchange64(v, mask);
  return v;
}

// larger returns the larger of two numbers, and NaN if either is.
DEVICE float larger(float a, float b) { return a >= b || a != a ? a : b; }

DEVICE float max32(float v) {
  for (int mask = 16; mask != 0; mask >>= 1) v = larger(v, exchange(v, mask));
  return v;
}

// blockSum64 returns to thread 0 the sum over a block of 256 threads, by a fixed tree. s has room
// for 256 numbers. All threads call it.
DEVICE double blockSum64(double* s, double v) {
  u32 t = thread();
  s[t] = v;
  barrier();
  for (u32 half = 128; half != 0; half >>= 1) {
    if (t < half) s[t] += s[t + half];
    barrier();
  }
  return s[0];
}

// eachGroup calls f(c) for the columns of a row that this lane of a warp takes, N at a time: every
// 32nd group of four, whatever N is, so that sums over them have the same bits.
template <int N, class F>
DEVICE void eachGroup(u32 cols, F f) {
  for (u64 c = (u64)(thread() & 31) * 4; c < cols; c += 128) {
    UNROLL
    for (int k = 0; k < 4; k += N) {
      if (c + k < cols) f((u32)(c + k));
    }
  }
}

// eachWarp calls f(r) for the rows of this warp.
template <class F>
DEVICE void eachWarp(u32 rows, F f) {
  for (u64 r = thread64() >> 5; r < rows; r += threads64() >> 5) f(r);
}

// get reads the columns from p on: one or four floats, or one or eight halves, widened. getWritten
// is get for memory that this kernel may write to. put writes them.
DEVICE void get(float (&v)[1], const float* p) { v[0] = p[0]; }
DEVICE void get(float (&v)[1], const u16* p) { v[0] = halfToFloat(p[0]); }

DEVICE void get(float (&v)[4], const float* p) {
  f32x4 x = load4(p);
  UNROLL
  for (int j = 0; j < 4; j++) v[j] = x[j];
}

DEVICE void get(float (&v)[8], const u16* p) {
  u32x4 x = load8(p);
  UNROLL
  for (int j = 0; j < 4; j++) {
    v[2 * j] = halfToFloat((u16)(x[j] & 0xffff));
    v[2 * j + 1] = halfToFloat((u16)(x[j] >> 16));
  }
}

DEVICE void get(float (&v)[8], const float* p) {
  f32x4 low = load4(p), high = load4(p + 4);
  UNROLL
  for (int j = 0; j < 4; j++) {
    v[j] = low[j];
    v[4 + j] = high[j];
  }
}

DEVICE void getWritten(float (&v)[1], const float* p) { v[0] = p[0]; }

DEVICE void getWritten(float (&v)[4], const float* p) {
  f32x4 x = load4Written(p);
  UNROLL
  for (int j = 0; j < 4; j++) v[j] = x[j];
}

DEVICE void getWritten(float (&v)[8], const float* p) {
  f32x4 low = load4Written(p), high = load4Written(p + 4);
  UNROLL
  for (int j = 0; j < 4; j++) {
    v[j] = low[j];
    v[4 + j] = high[j];
  }
}

DEVICE void put(float* p, const float (&v)[1]) { p[0] = v[0]; }

DEVICE void put(float* p, const float (&v)[4]) {
  f32x4 x = {v[0], v[1], v[2], v[3]};
  store4(p, x);
}

DEVICE void put(float* p, const float (&v)[8]) {
  f32x4 low = {v[0], v[1], v[2], v[3]}, high = {v[4], v[5], v[6], v[7]};
  store4(p, low);
  store4(p + 4, high);
}

DEVICE void put(u16* p, const float (&v)[1]) { p[0] = floatToHalf(v[0]); }

DEVICE void put(u16* p, const float (&v)[8]) {
  u32x4 x;
  UNROLL
  for (int j = 0; j < 4; j++) {
    x[j] = (u32)floatToHalf(v[2 * j]) | (u32)floatToHalf(v[2 * j + 1]) << 16;
  }
  store8(p, x);
}

// A list is the positions [from, to) of a list of neighbours.
struct list {
  u32 from, to;
};

// listOf returns list i, after checking that it lies within the n positions; if not, an empty one.
DEVICE list listOf(const u32* start, const u32* end, u64 i, u32 n, u64* error, code of) {
  list l = {start[i], end[i]};
  if (l.from > l.to || l.to > n) {
    fail(error, of, i);
    l.to = l.from;
  }
  return l;
}
