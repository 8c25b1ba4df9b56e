// Sums of columns over the rows of a chunk, by a block of 256 threads. In a chunk that begins at
// row from, row r goes to group (r-from) mod 8 of 32 threads. Each group adds its rows up in order,
// and a tree adds up the groups. So the bits of a sum depend on the chunks alone, and not on how
// many columns a thread has.
#pragma once

#include "gpu.h"

// sumGroups adds up the sums of the eight groups. The first group has the result. All threads call
// it. OWNER is a type of its own for each kernel, so that no two kernels share s.
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
