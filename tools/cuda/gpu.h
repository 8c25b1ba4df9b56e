// Attributes, indices, and the instructions for which clang has no function. All inline assembly of
// the kernels is here, so that a test on a host need replace only this file.
#pragma once

#define GLOBAL extern "C" __attribute__((global))
#define DEVICE static inline __attribute__((device, always_inline))
// aligned(16), since 16-byte loads read it.
#define SHARED static __attribute__((shared, aligned(16)))
#define THREADS(n) __attribute__((launch_bounds(n)))
#define UNROLL _Pragma("unroll")
#define RESTRICT __restrict__

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));

DEVICE u32 thread() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 block() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u32 blockY() { return __nvvm_read_ptx_sreg_ctaid_y(); }
DEVICE u32 blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }
DEVICE u32 threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE u64 cycle() { return __nvvm_read_ptx_sreg_clock64(); }
DEVICE void barrier() { __syncthreads(); }

// thread64 returns the number of this thread in the launch, and threads64 the number of threads.
DEVICE u64 thread64() { return (u64)block() * threads() + thread(); }
DEVICE u64 threads64() { return (u64)blocks() * threads(); }

// exchange returns the v of the lane whose number is this lane's XOR mask. All 32 lanes call it.
DEVICE float exchange(float v, int mask) { return __nvvm_shfl_sync_bfly_f32(-1, v, mask, 31); }

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

DEVICE float exp2Approx(float x) {
  float y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// load4 and load8 load 16 bytes with one instruction; clang would split a load of a vector type. p
// is aligned to 16 bytes, and nothing writes there while the kernel runs.
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

// load4Written is load4 for memory that this kernel writes to.
DEVICE f32x4 load4Written(const float* p) {
  f32x4 v;
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
      : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
      : "l"(p) : "memory");
  return v;
}

DEVICE void store4(float* p, f32x4 v) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};"
               :: "l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}

// shared4 reads four floats of shared memory, at a multiple of 16 bytes.
DEVICE f32x4 shared4(const float* p) {
  u32 at = (u32)(u64)(const __attribute__((address_space(3))) float*)p;
  f32x4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(at) : "memory");
  return v;
}

// addTo adds v to *p atomically, in no fixed order.
DEVICE void addTo(u32* p, u32 v) { __nvvm_atom_add_gen_i((int*)p, (int)v); }
