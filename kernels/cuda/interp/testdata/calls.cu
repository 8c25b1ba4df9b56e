// What a kernel may do beside arithmetic: functions that are not inlined, an array that is indexed
// at run time and so lies in local memory, several atomics, and comparisons of every kind.
#include "gpu.h"

static __attribute__((device, noinline)) float horner(float x, u32 terms) {
  float sum = 0;
  for (u32 i = terms; i > 0; i--) sum = sum * x + 1.0f / (float)i;
  return sum;
}

GLOBAL THREADS(256) void polynomial(float* RESTRICT dst, const float* RESTRICT src, u32 n) {
  u32 i = (u32)thread64();
  if (i >= n) return;
  float v = src[i];
  if (v < 0) dst[i] = horner(-v, 1 + (i & 3));
  else dst[i] = horner(v, 5) - horner(v * 0.5f, i & 7);
}

// median of nine by insertion into an array.
GLOBAL THREADS(256) void median(float* RESTRICT dst, const float* RESTRICT src, u32 n) {
  u32 i = (u32)thread64();
  if (i >= n) return;
  float sorted[9];
  for (u32 k = 0; k < 9; k++) {
    float v = src[(u64)i * 9 + k];
    u32 at = k;
    while (at > 0 && sorted[at - 1] > v) {
      sorted[at] = sorted[at - 1];
      at--;
    }
    sorted[at] = v;
  }
  dst[i] = sorted[4];
}

// atomics counts in shared memory, adds the counts up in global memory, and takes extremes.
GLOBAL THREADS(256) void atomics(u32* RESTRICT counts, u64* sum, int* least, u32* most, u32* last,
                                 const u32* RESTRICT src, u32 n) {
  SHARED u32 bins[16];
  if (thread() < 16) bins[thread()] = 0;
  barrier();
  for (u32 i = block() * threads() + thread(); i < n; i += blocks() * threads()) {
    u32 v = src[i];
    __nvvm_atom_add_gen_i((int*)&bins[v & 15], 1);
    __nvvm_atom_add_gen_ll((long long*)sum, (long long)v);
    __nvvm_atom_min_gen_i(least, (int)v);
    __nvvm_atom_max_gen_ui(most, v);
    __nvvm_atom_xchg_gen_i((int*)last, (int)i);
  }
  barrier();
  if (thread() < 16) __nvvm_atom_add_gen_i((int*)&counts[thread()], (int)bins[thread()]);
}

// compare writes a bit a comparison.
GLOBAL THREADS(256) void compare(u32* RESTRICT dst, const float* RESTRICT a, const double* RESTRICT b, u32 n) {
  u32 i = (u32)thread64();
  if (i >= n) return;
  float x = a[2 * i], y = a[2 * i + 1];
  double p = b[2 * i], q = b[2 * i + 1];
  u32 r = 0;
  if (x < y) r |= 1;
  if (x <= y) r |= 2;
  if (x == y) r |= 4;
  if (x != y) r |= 8;
  if (!(x < y)) r |= 16;
  if (!(x >= y)) r |= 32;
  if (!(x == y)) r |= 64;
  if (__builtin_isunordered(x, y)) r |= 128;
  if (p < q) r |= 256;
  if (!(p > q)) r |= 512;
  if (!__builtin_isunordered(p, q)) r |= 1024;
  if (p == q && x != y) r |= 2048;
  if (__builtin_fmaxf(x, y) == x) r |= 4096;
  if (__builtin_fmin(p, q) == q) r |= 8192;
  if (__builtin_floorf(x) == x) r |= 1 << 14;
  if (__builtin_rint(p) == p) r |= 1 << 15;
  dst[i] = r;
}
