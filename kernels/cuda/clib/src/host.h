// The host twins of what gpu.h has for the device. gpu.h includes this where it is not compiled to
// PTX. launch.cc runs the threads.
#pragma once

#include <stdint.h>
#include <string.h>

#define GLOBAL extern "C"
#define DEVICE static inline __attribute__((always_inline, unused))
#define SHARED static __attribute__((aligned(16)))
#define THREADS(n)
#define IN_GLOBAL

typedef float f32x4 __attribute__((vector_size(16)));
typedef u32 u32x4 __attribute__((vector_size(16)));

namespace host {

// A place is the indices that a thread asks for.
struct place {
  u32 thread, block, blockY, blockZ, blocks, threads;
};

extern place now;

// wait returns when all threads of the block have called it, exchange when all 32 threads of the
// warp have, with the value of lane XOR mask. fault ends the launch with a message.
void wait();
u32 exchange(u32 value, u32 mask);
[[noreturn]] void fault(const char* what);

inline void aligned(const void* p) {
  if ((uintptr_t)p % 16 != 0) fault("an access of 16 bytes at an address that is no multiple of 16");
}

}  // namespace host

DEVICE u32 thread() { return host::now.thread; }
DEVICE u32 block() { return host::now.block; }
DEVICE u32 blockY() { return host::now.blockY; }
DEVICE u32 blockZ() { return host::now.blockZ; }
DEVICE u32 blocks() { return host::now.blocks; }
DEVICE u32 threads() { return host::now.threads; }
DEVICE void barrier() { host::wait(); }
DEVICE u32 exchangeBits(u32 v, int mask) { return host::exchange(v, (u32)mask); }

DEVICE u32 floatBits(float v) {
  u32 bits;
  memcpy(&bits, &v, 4);
  return bits;
}

// halfToFloat is exact. A half is 2^112 times smaller than the float whose exponent and mantissa
// are its own, shifted.
DEVICE float halfToFloat(u16 h) {
  u32 sign = (u32)(h & 0x8000) << 16, rest = (u32)(h & 0x7fff) << 13;
  float v;
  if (rest >= 0x0f800000) {  // infinity, or NaN
    rest += 0x70000000;
    memcpy(&v, &rest, 4);
  } else {
    memcpy(&v, &rest, 4);
    v *= 0x1p112f;
  }
  u32 bits = floatBits(v) | sign;
  memcpy(&v, &bits, 4);
  return v;
}

// floatToHalf rounds to the nearest half, ties to even; of NaN it makes 0x7fff, as the device does.
DEVICE u16 floatToHalf(float f) {
  u32 bits = floatBits(f), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return 0x7fff;
  if (rest >= 0x47800000) return (u16)(sign | 0x7c00);  // 65536 and more
  if (rest < 0x38800000) {                              // below 2^-14: a subnormal half
    float v;
    memcpy(&v, &rest, 4);
    v += 0.5f;  // whose last place is 2^-24, that of a subnormal half
    return (u16)(sign | (floatBits(v) - 0x3f000000));
  }
  rest += 0xfff + (rest >> 13 & 1);
  return (u16)(sign | ((rest - 0x38000000) >> 13));
}

DEVICE f32x4 load4(const float* p) {
  host::aligned(p);
  f32x4 v;
  memcpy(&v, p, 16);
  return v;
}

DEVICE u32x4 load8(const u16* p) {
  host::aligned(p);
  u32x4 v;
  memcpy(&v, p, 16);
  return v;
}

DEVICE void store4(float* p, f32x4 v) {
  host::aligned(p);
  memcpy(p, &v, 16);
}

DEVICE void store8(u16* p, u32x4 v) {
  host::aligned(p);
  memcpy(p, &v, 16);
}

DEVICE f32x4 load4Written(const float* p) { return load4(p); }
DEVICE f32x4 shared4(const float* p) { return load4(p); }
DEVICE void putShared4(float* p, f32x4 v) { store4(p, v); }

DEVICE void swapIfZero(u64* p, u64 v) {
  if (*p == 0) *p = v;
}
