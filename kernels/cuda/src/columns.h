// Sums over rows, of columns, in a block of 256 threads. Row r of a chunk that begins at row from
// goes to the (r-from) mod 8-th group of 32 threads, which adds its rows up in order. A tree adds
// the groups. So the bits of a sum depend on the chunks alone, and not on the columns of a
// thread.
#pragma once

#include "gpu.h"

// sumGroups adds up the sums of the eight groups. The first group has the result. All threads call
// it. OWNER is another type for each kernel, so that its shared memory is the kernel's own.
template <class OWNER, int M>
DEVICE void sumGroups(float (&sum)[M]) {
  SHARED float s[8][32 * M];
  u32 group = thread() >> 5, lane = thread() & 31;
  UNROLL
  for (int j = 0; j < M; j++) s[group][j * 32 + lane] = sum[j];
  barrier();
  for (u32 half = 4; half != 0; half >>= 1) {
    if (group < half) {
      UNROLL
      for (int j = 0; j < M; j++) {
        sum[j] += s[group + half][j * 32 + lane];
        s[group][j * 32 + lane] = sum[j];
      }
    }
    barrier();
  }
}
