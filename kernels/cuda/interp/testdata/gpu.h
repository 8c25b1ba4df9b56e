// What the kernels of this folder need beside CUDA C: attributes, indices, and the instructions for
// which clang has no function.
#pragma once

#define GLOBAL extern "C" __attribute__((global))
#define DEVICE static inline __attribute__((device, always_inline))
#define SHARED static __attribute__((shared, aligned(16)))
#define CONSTANT static __attribute__((constant))
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
DEVICE u64 thread64() { return (u64)block() * threads() + thread(); }
DEVICE u64 threads64() { return (u64)blocks() * threads(); }
DEVICE void barrier() { __syncthreads(); }
DEVICE void warpBarrier() { __nvvm_bar_warp_sync(~0u); }

DEVICE float exchange(float v, int mask) { return __nvvm_shfl_sync_bfly_f32(-1, v, mask, 31); }
DEVICE u32 fromLower(u32 v, int lanes) { return (u32)__nvvm_shfl_sync_up_i32(-1, (int)v, lanes, 0); }
DEVICE u32 fromLane(u32 v, int lane) { return (u32)__nvvm_shfl_sync_idx_i32(-1, (int)v, lane, 31); }

// fromHigher sets *in to whether the lane lies in this warp.
DEVICE float fromHigher(float v, int lanes, u32* in) {
  float out;
  asm volatile("{ .reg .pred inside; shfl.sync.down.b32 %0|inside, %2, %3, 31, -1; selp.u32 %1, 1, 0, inside; }"
               : "=f"(out), "=r"(*in) : "f"(v), "r"(lanes));
  return out;
}

DEVICE float halfToFloat(u16 h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
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
DEVICE float log2Approx(float x) {
  float y;
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float rsqrtApprox(float x) {
  float y;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
DEVICE float tanhApprox(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// load4, load8: 16 bytes by one instruction. p lies at a multiple of 16.
DEVICE f32x4 load4(const float* p) {
  f32x4 v;
  asm("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
      : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p));
  return v;
}
DEVICE u32x4 load8(const u16* p) {
  u32x4 v;
  asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
DEVICE void store4(float* p, f32x4 v) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};"
               :: "l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}
DEVICE f32x4 shared4(const float* p) {
  u32 at = (u32)(u64)(const __attribute__((address_space(3))) float*)p;
  f32x4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(at) : "memory");
  return v;
}
// low and high half of a word, by a scoped register as clang writes it for vectors of halves.
DEVICE u16 highHalf(u32 v) {
  u16 h;
  asm("{ .reg .b16 tmp; mov.b32 {tmp, %0}, %1; }" : "=h"(h) : "r"(v));
  return h;
}
