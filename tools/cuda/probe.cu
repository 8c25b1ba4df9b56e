// Kernels that test the machine and compute nothing of a network.
#include "gpu.h"

GLOBAL THREADS(32) void empty(u32* nothing, u32 n) {
  if (n != 0) nothing[0] = n;
}

// mixed writes each parameter to out, widened. The sizes are in an order that needs padding, so the
// caller has to pad its buffer in the same way.
GLOBAL THREADS(32) void mixed(u8 a, u32 b, u64* out, u8 c, float d, u8 e, u64 f, u16 g, double h) {
  out[0] = a;
  out[1] = b;
  out[2] = c;
  out[3] = (u64)(d * 4);
  out[4] = e;
  out[5] = f;
  out[6] = g;
  out[7] = (u64)(h * 8);
}

// write_at stores value at a made-up address.
GLOBAL THREADS(32) void write_at(u64 address, u32 value) { *(u32*)address = value; }

// spin keeps each thread busy for this many clock cycles.
GLOBAL THREADS(32) void spin(u64 cycles, u64* sink) {
  u64 start = cycle();
  while (cycle() - start < cycles) {
  }
  if (cycles == 0) sink[0] = start;
}

// count_other adds to bad[0] the number of words that differ from want. Integers may be added in
// any order.
GLOBAL THREADS(256) void count_other(u32* bad, const u32* words, u64 n, u32 want) {
  u32 other = 0;
  for (u64 i = thread64(); i < n; i += threads64()) {
    if (words[i] != want) other++;
  }
  if (other != 0) addTo(bad, other);
}
