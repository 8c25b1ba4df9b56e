// Sums of a block by a tree in shared memory, prefix sums, and votes.
#include "gpu.h"

// sum_f32, sum_squares: block b adds up its part of x, in float32 or float64.
GLOBAL THREADS(256) void sum_f32(float* RESTRICT part, const float* RESTRICT x, u64 n) {
  SHARED float s[256];
  u64 per = (n + blocks() - 1) / blocks(), from = per * block(), to = from + per < n ? from + per : n;
  float sum = 0;
  for (u64 i = from + thread(); i < to; i += 256) sum += x[i];
  s[thread()] = sum;
  barrier();
  for (u32 half = 128; half; half >>= 1) {
    if (thread() < half) s[thread()] += s[thread() + half];
    barrier();
  }
  if (thread() == 0) part[block()] = s[0];
}

GLOBAL THREADS(256) void sum_squares(double* RESTRICT part, const float* RESTRICT x, u64 n) {
  SHARED double s[256];
  u64 per = (n + blocks() - 1) / blocks(), from = per * block(), to = from + per < n ? from + per : n;
  double sum = 0;
  for (u64 i = from + thread(); i < to; i += 256) sum += (double)x[i] * (double)x[i];
  s[thread()] = sum;
  barrier();
  for (u32 half = 128; half; half >>= 1) {
    if (thread() < half) s[thread()] += s[thread() + half];
    barrier();
  }
  if (thread() == 0) part[block()] = s[0];
}

// scan: exclusive prefix sums of each block's counts, by shuffles in a warp and shared memory
// between warps. totals receives each block's sum.
GLOBAL THREADS(256) void scan(u32* RESTRICT dst, u32* RESTRICT totals, const u32* RESTRICT src, u32 n) {
  SHARED u32 warps[8];
  u32 i = block() * 256 + thread(), lane = thread() & 31, warp = thread() >> 5;
  u32 own = i < n ? src[i] : 0, sum = own;
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    u32 lower = fromLower(sum, lanes);
    if (lane >= lanes) sum += lower;
  }
  if (lane == 31) warps[warp] = sum;
  barrier();
  u32 before = 0, total = 0;
  for (u32 w = 0; w < 8; w++) {
    if (w == warp) before = total;
    total += warps[w];
  }
  if (i < n) dst[i] = before + sum - own;
  if (thread() == 0) totals[block()] = total;
}

// warps: sums by shfl.down with its predicate, a ballot, a broadcast, and an exchange through
// shared memory that only bar.warp.sync orders. A warp writes four words.
GLOBAL THREADS(128) void warps(u32* RESTRICT dst, const float* RESTRICT src) {
  SHARED float own[128];
  u32 t = thread(), lane = t & 31, i = block() * 128 + t;
  float v = src[i], sum = v;
  for (int lanes = 16; lanes; lanes >>= 1) {
    u32 in;
    float other = fromHigher(sum, lanes, &in);
    if (in) sum += other;
  }
  u32 positive = (u32)__nvvm_vote_ballot_sync(~0u, v > 0);
  bool all = __nvvm_vote_all_sync(~0u, v > -100);
  u32 middle = fromLane(__builtin_bit_cast(u32, v), 16);
  own[t] = v;
  warpBarrier();
  float neighbour = own[t ^ 1];
  warpBarrier();
  own[t] = neighbour * 2;
  warpBarrier();
  float back = own[t ^ 1];
  bool same = __nvvm_vote_all_sync(~0u, back == v * 2);
  if (lane == 0) {
    u32* out = dst + (i >> 5) * 4;
    out[0] = __builtin_bit_cast(u32, sum);
    out[1] = positive;
    out[2] = (all ? 1 : 0) | (same ? 2 : 0);
    out[3] = middle;
  }
}

// reverse: dynamic shared memory, 64-bit and 8-bit; a barrier that counts; a table of constants.
extern __attribute__((shared, aligned(16))) u8 dynamic[];
CONSTANT u32 weights[4] = {3, 5, 7, 11};

GLOBAL THREADS(256) void reverse(u8* RESTRICT dst, const u8* RESTRICT src, u32* RESTRICT counts) {
  u32 t = thread(), n = threads(), i = block() * n + t;
  dynamic[t] = src[i];
  u32 large = (u32)__nvvm_bar0_popc(src[i] > 100);
  dst[i] = dynamic[n - 1 - t];
  if (t == 0) counts[block()] = large * weights[block() & 3];
}
