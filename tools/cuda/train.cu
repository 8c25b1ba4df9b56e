// The element-wise kernels of a step: the update, norms, dropout, time encoding, and halves.
#include "gpu.h"

// adam updates n parameters, and clears their gradients. If bad[0] is not 0, the step is void: adam
// only clears the gradients. rates has the learning rate, beta1, beta2, epsilon, the weight decay,
// and the two bias corrections. clip[0] scales the gradients.
GLOBAL THREADS(256) void adam(
    float* RESTRICT param, float* RESTRICT grad, float* RESTRICT first, float* RESTRICT second,
    u64 n, const float* RESTRICT rates, const u32* RESTRICT bad, const float* RESTRICT clip) {
  float rate = rates[0];
  float beta1 = rates[1];
  float beta2 = rates[2];
  float epsilon = rates[3];
  float decay = rates[4];
  float correct1 = rates[5];
  float correct2 = rates[6];
  u32 isVoid = bad[0];
  float factor = clip[0];
  for (u64 i = thread64(); i < n; i += threads64()) {
    float g = grad[i] * factor;
    grad[i] = 0;
    if (isVoid) continue;
    float x = param[i];
    g += decay * x;
    float m = beta1 * first[i] + (1 - beta1) * g;
    float v = beta2 * second[i] + (1 - beta2) * g * g;
    first[i] = m;
    second[i] = v;
    param[i] = x - rate * (m / correct1) / (__builtin_sqrtf(v / correct2) + epsilon);
  }
}

// treeSum sums 256 numbers of shared memory in a fixed order; thread 0 finds the sum at s[0].
DEVICE void treeSum(double* s) {
  u32 t = thread();
  for (u32 half = 128; half != 0; half >>= 1) {
    if (t < half) s[t] += s[t + half];
    barrier();
  }
}

// sumsq sums the squares of x in float64. Block b sums the b-th chunk into parts[b]; a second
// launch, of total, adds up the parts.
GLOBAL THREADS(256) void sumsq(double* RESTRICT parts, const float* RESTRICT x, u64 n) {
  SHARED double s[256];
  u64 chunk = (n + blocks() - 1) / blocks();
  u64 from = chunk * block();
  u64 to = from + chunk < n ? from + chunk : n;
  double sum = 0;
  for (u64 i = from + thread(); i < to; i += 256) {
    double v = x[i];
    sum += v * v;
  }
  s[thread()] = sum;
  barrier();
  treeSum(s);
  if (thread() == 0) parts[block()] = s[0];
}

GLOBAL THREADS(256) void total(double* RESTRICT sum, const double* RESTRICT parts, u32 n) {
  SHARED double s[256];
  double own = 0;
  for (u32 i = thread(); i < n; i += 256) own += parts[i];
  s[thread()] = own;
  barrier();
  treeSum(s);
  if (thread() == 0) sum[0] = s[0];
}

// splitMix is the output function of SplitMix64 (Steele, Lea, Flood 2014).
DEVICE u64 splitMix(u64 x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

// dropout computes the same as kernels.Dropout: four columns share a hash, and each has 16 bits of
// it. A thread computes four columns at a time.
GLOBAL THREADS(256) void dropout(
    float* dst, const float* src, const u32* ids, u64 rows, u32 cols, u64 key, u32 threshold,
    float factor) {
  u32 groups = (cols + 3) / 4;
  for (u64 i = thread64(); i < rows * groups; i += threads64()) {
    u64 r = i / groups;
    u32 group = (u32)(i - r * groups);
    u64 hash = splitMix(key + 0x9e3779b97f4a7c15ull * ((u64)ids[r] << 32 | group));
    for (u32 j = 0; j < 4; j++) {
      u32 c = group * 4 + j;
      if (c >= cols) break;
      u32 lane = (u32)(hash >> 16 * j) & 0xffff;
      dst[r * cols + c] = lane >= threshold ? src[r * cols + c] * factor : 0.0f;
    }
  }
}

// cosine subtracts quarter turns in float64. Then it computes in float32, with the polynomials of
// Cephes for |x| <= pi/4.
DEVICE float cosine(double phase) {
  double quarters = __builtin_floor(phase * 0.63661977236758134 + 0.5);
  double rest = __builtin_fma(quarters, -1.5707963267948966, phase);
  rest = __builtin_fma(quarters, -6.123233995736766e-17, rest);
  int quadrant = (int)(quarters - 4 * __builtin_floor(quarters * 0.25));
  float x = (float)rest;
  float z = x * x;
  float cosX = ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f);
  cosX = cosX * z * z - 0.5f * z + 1.0f;
  float sinX = (-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f;
  sinX = sinX * z * x + x;
  float y = quadrant & 1 ? sinX : cosX;
  return quadrant == 1 || quadrant == 2 ? -y : y;
}

// time_encode sets row r to cos(t·w + b), where time t is the sum of two float32. The phase is
// computed in float64, with one rounding.
GLOBAL THREADS(256) void time_encode(
    float* dst, const float* times, const float* w, const float* b, u64 rows, u32 cols) {
  for (u64 i = thread64(); i < rows * cols; i += threads64()) {
    u64 r = i / cols;
    u32 c = (u32)(i - r * cols);
    double at = (double)times[2 * r] + (double)times[2 * r + 1];
    dst[i] = cosine(__builtin_fma(at, (double)w[c], (double)b[c]));
  }
}

GLOBAL THREADS(256) void widen(float* dst, const u16* src, u64 n) {
  for (u64 i = thread64(); i < n; i += threads64()) dst[i] = halfToFloat(src[i]);
}

GLOBAL THREADS(256) void narrow(u16* dst, const float* src, u64 n) {
  for (u64 i = thread64(); i < n; i += threads64()) dst[i] = floatToHalf(src[i]);
}
