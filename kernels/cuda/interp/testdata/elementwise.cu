// One element a thread, with a grid-stride loop: arithmetic, activations, Adam, hashed dropout.
#include "gpu.h"

GLOBAL THREADS(256) void axpy(float* RESTRICT y, const float* RESTRICT x, float a, u64 n) {
  for (u64 i = thread64(); i < n; i += threads64()) y[i] += a * x[i];
}

// to_half converts to halves, clamps to their range, and sets *flag where it had to.
GLOBAL THREADS(256) void to_half(u16* RESTRICT dst, const float* RESTRICT src, u32* flag, u64 n) {
  for (u64 i = thread64(); i < n; i += threads64()) {
    float v = src[i];
    float clamped = v > 65504.0f ? 65504.0f : v < -65504.0f ? -65504.0f : v;
    if (clamped != v) *(volatile u32*)flag = 1;
    dst[i] = floatToHalf(clamped);
  }
}

// gelu by the tanh of the device, which is coarse; elu; softplus by lg2; 1/sqrt; in four columns.
GLOBAL THREADS(256) void activations(float* RESTRICT dst, const float* RESTRICT src, u64 n) {
  for (u64 i = thread64(); i < n; i += threads64()) {
    float v = src[i];
    dst[4 * i] = tanhApprox(v);
    dst[4 * i + 1] = v > 0 ? v : exp2Approx(v * 1.44269504f) - 1.0f;
    dst[4 * i + 2] = log2Approx(1.0f + exp2Approx(v));
    dst[4 * i + 3] = rsqrtApprox(__builtin_fabsf(v) + 1.0f);
  }
}

struct Step { float lr, beta1, beta2, eps, decay, correct1, correct2; };

// adam leaves all as it was where *voided is not 0. The step comes as a struct by value.
GLOBAL THREADS(256) void adam(float* RESTRICT p, float* RESTRICT g, float* RESTRICT m,
                              float* RESTRICT v, u64 n, const u32* RESTRICT voided, Step s) {
  u32 skip = voided[0];
  for (u64 i = thread64(); i < n; i += threads64()) {
    float gradient = g[i];
    g[i] = 0;
    if (skip) continue;
    float value = p[i];
    gradient += s.decay * value;
    float mean = s.beta1 * m[i] + (1 - s.beta1) * gradient;
    float square = s.beta2 * v[i] + (1 - s.beta2) * gradient * gradient;
    m[i] = mean;
    v[i] = square;
    p[i] = value - s.lr * (mean / s.correct1) / (__builtin_sqrtf(square / s.correct2) + s.eps);
  }
}

DEVICE u64 splitMix(u64 x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// dropout: four columns a hash, 16 bits each.
GLOBAL THREADS(256) void dropout(float* RESTRICT dst, const float* RESTRICT src, u32 rows, u32 cols,
                                 u64 key, u32 threshold, float scale) {
  u64 n = (u64)rows * cols;
  for (u64 i = thread64(); i < n; i += threads64()) {
    u64 row = i / cols;
    u32 col = (u32)(i % cols);
    u64 hash = splitMix(key ^ splitMix((row << 32) | (col >> 2)));
    u32 draw = (u32)(hash >> (16 * (col & 3))) & 0xffff;
    dst[i] = draw >= threshold ? src[i] * scale : 0.0f;
  }
}

// integers: divisions, remainders, shifts, counts and conversions of every width, a word a kind.
GLOBAL THREADS(256) void integers(u64* RESTRICT dst, const u64* RESTRICT a, const u64* RESTRICT b, u32 n) {
  u32 i = (u32)thread64();
  if (i >= n) return;
  u64 x = a[i], y = b[i], *out = dst + (u64)i * 24;
  out[0] = x / (y | 1);
  out[1] = (u64)((long long)x % (long long)(y | 1));
  out[2] = (u32)x / ((u32)y | 1);
  out[3] = (u64)(long long)((int)x / ((int)y | 1));
  out[4] = (u64)(((__uint128_t)x * y) >> 64);
  out[5] = (u64)(((__int128_t)(long long)x * (long long)y) >> 64);
  out[6] = (u64)((long long)x >> (y & 63));
  out[7] = x << (y & 63);
  out[8] = (u64)__builtin_popcountll(x);
  out[9] = (u64)__builtin_clzll(x | 1);
  out[10] = (u64)__builtin_ctzll(x | (1ull << 63));
  out[11] = __builtin_bitreverse64(x);
  out[12] = (u64)(long long)(signed char)x;
  out[13] = (u64)(u16)((u16)x * (u16)y);
  out[14] = (u64)(long long)((short)x >> (y & 15));
  out[15] = __builtin_bswap32((u32)x);
  out[16] = (u64)((u32)x << (y & 31) | (u32)x >> (-y & 31));
  out[17] = (u64)((u32)x < (u32)y ? (u32)x : (u32)y) | (u64)((int)x > (int)y ? (u32)x : (u32)y) << 32;
  out[18] = (u64)(long long)(float)(long long)x;
  out[19] = (u64)(double)x;
  out[20] = (u64)(long long)(int)(float)(int)y;
  out[21] = (x >> 7) & 0x1ff;
  out[22] = (u64)((long long)x < 0 ? -(long long)x : (long long)x);
  out[23] = (x ^ y) & ~(x | 5);
}
