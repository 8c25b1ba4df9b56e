// A stable sort of (key, position), for sums into rows that a list names in any order: a radix sort
// by digits of four bits, the least significant first. Only as many passes are wanted as the
// largest valid key has digits. A key that is not below the limit is an error of the caller of the
// sums, who reports it; it may land anywhere.
//
// Up to 2,048 keys: one launch of sort_small. More: for each pass sort_count, sort_scan and
// sort_scatter, with keys and positions going to and fro between two buffers. A block counts, and
// then moves, a chunk of 2,048 keys, eight in a row a thread. Where a key goes is its thread's
// share of the digit, found by a prefix sum over the counts of all threads, so nothing depends on
// timing.
#include "gpu.h"

enum { digits = 16, perThread = 8, chunk = 256 * perThread };

// prefix sets each of 16·256 counts to the sum of those before it, digit by digit and in a digit
// thread by thread, and returns their sum. sums has room for 256 numbers.
DEVICE u32 prefix(u32* counts, u32* sums) {
  u32 t = thread(), own = 0;
  for (u32 k = 0; k < digits; k++) own += counts[t * digits + k];
  sums[t] = own;
  barrier();
  for (u32 step = 1; step < 256; step <<= 1) {
    u32 before = t >= step ? sums[t - step] : 0;
    barrier();
    sums[t] += before;
    barrier();
  }
  u32 at = t > 0 ? sums[t - 1] : 0, total = sums[255];
  for (u32 k = 0; k < digits; k++) {
    u32 count = counts[t * digits + k];
    counts[t * digits + k] = at;
    at += count;
  }
  barrier();
  return total;
}

// countDigits counts the digits of the keys of this thread: counts[digit·256 + thread].
DEVICE void countDigits(u32* counts, const u32* keys, u64 from, u64 to, u32 bit) {
  u32 t = thread();
  for (u32 d = 0; d < digits; d++) counts[d * 256 + t] = 0;
  for (u64 i = from; i < to; i++) counts[(keys[i] >> bit & 15) * 256 + t]++;
  barrier();
}

// sort_small(keys, order, ids, n, bits): one block. It sorts the n ≤ 2,048 ids into keys and their
// positions into order, by the lowest bits bits.
GLOBAL THREADS(256) void sort_small(u32* RESTRICT keys, u32* RESTRICT order, const u32* RESTRICT ids,
                                    u32 n, u32 bits) {
  SHARED u32 counts[digits * 256];
  SHARED u32 sums[256];
  SHARED u32 key[2][chunk];
  SHARED u16 position[2][chunk];
  u32 t = thread();
  if (block() != 0 || n > chunk) return;
  for (u32 i = t; i < n; i += 256) {
    key[0][i] = ids[i];
    position[0][i] = (u16)i;
  }
  barrier();
  u32 from = t * perThread, to = from + perThread;
  from = from < n ? from : n;
  to = to < n ? to : n;
  u32 now = 0;
  for (u32 bit = 0; bit < bits; bit += 4) {
    countDigits(counts, key[now], from, to, bit);
    prefix(counts, sums);
    for (u32 i = from; i < to; i++) {
      u32 k = key[now][i];
      u32 at = counts[(k >> bit & 15) * 256 + t]++;
      key[now ^ 1][at] = k;
      position[now ^ 1][at] = position[now][i];
    }
    barrier();
    now ^= 1;
  }
  for (u32 i = t; i < n; i += 256) {
    keys[i] = key[now][i];
    order[i] = position[now][i];
  }
}

// sort_count(counts, keys, n, chunks, bit): counts[digit·chunks + c] is how often chunk c has the
// digit at this bit. Any grid. counts has 16·chunks words, chunks being n/2,048 rounded up.
GLOBAL THREADS(256) void sort_count(u32* RESTRICT counts, const u32* RESTRICT keys, u32 n, u32 chunks,
                                    u32 bit) {
  SHARED u32 own[digits * 256];
  u32 t = thread();
  for (u32 c = block(); c < chunks; c += blocks()) {
    u64 from = (u64)c * chunk + t * perThread, to = from + perThread;
    countDigits(own, keys, from < n ? from : n, to < n ? to : n, bit);
    u32 d = t >> 4, part = t & 15, sum = 0;  // 16 threads a digit, each 16 counts
    for (u32 k = 0; k < 16; k++) sum += own[d * 256 + part * 16 + k];
    barrier();
    own[t] = sum;
    barrier();
    if (t < digits) {
      u32 total = 0;
      for (u32 k = 0; k < 16; k++) total += own[t * 16 + k];
      counts[(u64)t * chunks + c] = total;
    }
    barrier();
  }
}

// sort_scan(counts, n): one block. It sets each of the n counts to the sum of those before it.
GLOBAL THREADS(256) void sort_scan(u32* counts, u32 n) {
  SHARED u32 own[digits * 256];
  SHARED u32 sums[256];
  u32 t = thread(), carry = 0;
  if (block() != 0) return;
  for (u64 base = 0; base < n; base += digits * 256) {
    for (u32 i = t; i < digits * 256; i += 256) own[i] = base + i < n ? counts[base + i] : 0;
    barrier();
    u32 total = prefix(own, sums);
    for (u32 i = t; i < digits * 256; i += 256) {
      if (base + i < n) counts[base + i] = own[i] + carry;
    }
    carry += total;
    barrier();
  }
}

// sort_scatter(keysTo, orderTo, keys, order, counts, n, chunks, bit) moves the keys and positions
// of every chunk to their places, after sort_scan of counts. With order null, the position of a key
// is its index: the first pass. Any grid.
GLOBAL THREADS(256) void sort_scatter(u32* RESTRICT keysTo, u32* RESTRICT orderTo,
                                      const u32* RESTRICT keys, const u32* RESTRICT order,
                                      const u32* RESTRICT counts, u32 n, u32 chunks, u32 bit) {
  SHARED u32 own[digits * 256];
  SHARED u32 sums[256];
  SHARED u32 first[digits];
  u32 t = thread();
  for (u32 c = block(); c < chunks; c += blocks()) {
    u64 from = (u64)c * chunk + t * perThread, to = from + perThread;
    from = from < n ? from : n;
    to = to < n ? to : n;
    countDigits(own, keys, from, to, bit);
    prefix(own, sums);
    if (t < digits) first[t] = own[t * 256];
    barrier();
    for (u64 i = from; i < to; i++) {
      u32 key = keys[i], d = key >> bit & 15;
      u32 at = counts[(u64)d * chunks + c] + own[d * 256 + t]++ - first[d];
      if (at >= n) continue;
      keysTo[at] = key;
      orderTo[at] = order ? order[i] : (u32)i;
    }
    barrier();
  }
}
