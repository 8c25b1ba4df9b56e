// Loops over rows, for lanes kernels.
#pragma once

#include "gpu.h"

// eachLane calls f(r, c) for the rows and columns of this thread in a lanes kernel: c is the first
// of N columns.
template <int N, class F>
DEVICE void eachLane(u64 rows, u32 cols, u32 shift, F f) {
  u32 lanes = 1u << shift, lane = thread() & (lanes - 1);
  for (u64 r = thread64() >> shift; r < rows; r += threads64() >> shift) {
    for (u64 c = (u64)lane * N; c < cols; c += (u64)lanes * N) f(r, (u32)c);
  }
}

// eachCheckedRow is eachLane that first looks at a row: f(r, c, row(r)) for rows where row(r) is
// below n. Elsewhere one lane fails.
template <int N, class R, class F>
DEVICE void eachCheckedRow(u64 rows, u32 cols, u32 shift, u64 n, u64* error, code of, R row, F f) {
  u32 lanes = 1u << shift, lane = thread() & (lanes - 1);
  for (u64 r = thread64() >> shift; r < rows; r += threads64() >> shift) {
    u64 at = row(r);
    if (at >= n) {
      if (lane == 0) fail(error, of, r);
      continue;
    }
    for (u64 c = (u64)lane * N; c < cols; c += (u64)lanes * N) f(r, (u32)c, at);
  }
}
