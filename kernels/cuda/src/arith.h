// Functions that PTX has no instruction for, or only one that is too coarse. They are made of
// products, sums and quotients that round as IEEE 754 has it, so a host computes the same bits.
#pragma once

#include "gpu.h"

// reduce splits x into a power of two and a rest: x = n·ln 2 + r, |r| ≤ ln 2 / 2. ln 2 is the sum
// of two floats, the first of which has zeros at its end, so that its product with n is exact. Of
// NaN, r is NaN and n anything. |x| is at most some hundreds.
DEVICE float reduce(float x, u32& n) {
  const float magic = 12582912.0f;  // 1.5·2^23: what is added to it is rounded to an integer
  float t = x * 1.44269504f + magic;
  n = floatBits(t) - floatBits(magic);
  t -= magic;
  return fma32(t, -1.42860677e-6f, fma32(t, -0.693145752f, x));
}

// powerOfTwo returns 2^n for n from -126 to 127.
DEVICE float powerOfTwo(u32 n) { return floatOf((n + 127) << 23); }

// expm1Rest returns e^r - 1 by Taylor's series, whose first term left out is below 2^-27 of it.
DEVICE float expm1Rest(float r) {
  float p = 1.98412698e-4f;
  p = fma32(p, r, 1.38888889e-3f);
  p = fma32(p, r, 8.33333333e-3f);
  p = fma32(p, r, 4.16666667e-2f);
  p = fma32(p, r, 1.66666667e-1f);
  p = fma32(p, r, 0.5f);
  return fma32(p * r, r, r);
}

// exp32 returns e^x, to about a unit in the last place, subnormal results included.
DEVICE float exp32(float x) {
  x = x > 89.0f ? 89.0f : x;  // e^89 is infinite, and e^-104 is 0; a NaN stays
  x = x < -104.0f ? -104.0f : x;
  u32 n;
  float r = reduce(x, n);
  u32 half = (u32)((int)n >> 1);  // in two steps, since 2^n may be out of range
  return (1.0f + expm1Rest(r)) * powerOfTwo(half) * powerOfTwo(n - half);
}

// expm132 returns e^x - 1 for x ≤ 0, to about a unit in the last place.
DEVICE float expm132(float x) {
  x = x < -40.0f ? -40.0f : x;
  u32 n;
  float r = reduce(x, n);
  float scale = powerOfTwo(n);
  return fma32(scale, expm1Rest(r), scale - 1.0f);
}

DEVICE float sigmoid32(float x) { return 1.0f / (1.0f + exp32(-x)); }

DEVICE float tanh32(float x) {
  float e = expm132(-2.0f * __builtin_fabsf(x));
  return __builtin_copysignf(-e / (2.0f + e), x);
}

// normalRatio is Φ(-a)·e^(a²/2) for a ≥ 0: see gelu.go of package kernels, which has the
// polynomial's origin.
DEVICE float normalRatio(float a) {
  float t = 1.0f / (1.0f + 0.34375f * a);
  float p = -0.027582220320610695f;
  p = fma32(p, t, 0.1428039903298205f);
  p = fma32(p, t, -0.2696805019502913f);
  p = fma32(p, t, 0.18874313801388573f);
  p = fma32(p, t, -0.03790764719431593f);
  p = fma32(p, t, 0.11210726743247729f);
  p = fma32(p, t, 0.11686963239022899f);
  p = fma32(p, t, 0.1375258096531078f);
  p = fma32(p, t, 0.1371205439100659f);
  return t * p;
}

// exp64 returns e^x in float64, to 1e-14.
DEVICE double exp64(double x) {
  x = x > 709.0 ? 709.0 : x;
  x = x < -708.0 ? -708.0 : x;
  const double magic = 6755399441055744.0;  // 1.5·2^52
  double t = x * 1.4426950408889634 + magic;
  u64 n = doubleBits(t) - doubleBits(magic);
  t -= magic;
  double r = fma64(t, -1.9082149292705877e-10, fma64(t, -0.693147180369123816, x));
  double p = 1.0;
  UNROLL
  for (int k = 12; k > 0; k--) p = fma64(p * r, 1.0 / k, 1.0);
  return p * doubleOf((n + 1023) << 52);
}

// log64 returns the natural logarithm of a normal number above 0, to 1e-15; of infinity and NaN
// these.
DEVICE double log64(double x) {
  u64 bits = doubleBits(x);
  if (!(x <= 1.7976931348623157e308)) return x;
  int exponent = (int)(bits >> 52) - 1023;
  double m = doubleOf((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    exponent++;
  }
  double s = (m - 1.0) / (m + 1.0);
  double z = s * s;
  double p = 0;
  UNROLL
  for (int k = 19; k > 1; k -= 2) p = fma64(p, z, 1.0 / k);
  return fma64((double)exponent, 0.6931471805599453, 2.0 * fma64(p * z, s, s));
}

// cosine returns the cosine of phase + turns quarter turns, within 1e-7 for phases below 2^50; 0
// for phases from 2^60 on, and NaN where phase is not finite. It subtracts quarter turns in float64
// and then computes in float32, with the polynomials of Cephes for |x| ≤ π/4.
DEVICE float cosine(double phase, u32 turns) {
  if (!(__builtin_fabs(phase) < 1152921504606846976.0)) {
    return phase - phase == 0.0 ? 0.0f : floatOf(0x7fc00000);
  }
  double quarters = __builtin_floor(phase * 0.63661977236758134 + 0.5);
  double rest = fma64(quarters, -1.5707963267948966, phase);
  rest = fma64(quarters, -6.123233995736766e-17, rest);
  u32 quadrant = ((u32)(int)(quarters - 4.0 * __builtin_floor(quarters * 0.25)) + turns) & 3;
  float x = (float)rest;
  float z = x * x;
  float cosX = fma32(fma32(2.443315711809948e-5f, z, -1.388731625493765e-3f), z, 4.166664568298827e-2f);
  cosX = fma32(cosX * z, z, fma32(-0.5f, z, 1.0f));
  float sinX = fma32(fma32(-1.9515295891e-4f, z, 8.3321608736e-3f), z, -1.6666654611e-1f);
  sinX = fma32(sinX * z, x, x);
  float y = quadrant & 1 ? sinX : cosX;
  return quadrant == 1 || quadrant == 2 ? -y : y;
}

// sine is the cosine a quarter turn before.
DEVICE float sine(double phase) { return cosine(phase, 3); }

// splitMix is the output function of SplitMix64 (Steele, Lea, Flood 2014), and golden its step: see
// dropout.go of package kernels.
DEVICE u64 splitMix(u64 x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

constexpr u64 golden = 0x9e3779b97f4a7c15ull;

// keepLane returns v where the 16 bits of a hash for column col keep it, else 0.
DEVICE float keepLane(float v, u64 hash, u32 col, u32 threshold) {
  return ((u32)(hash >> 16 * (col & 3)) & 0xffff) >= threshold ? v : 0.0f;
}
