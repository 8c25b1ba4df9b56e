// Runs kernels on the host: see launch.h. Threads of a block are fibres, so that a barrier and an
// exchange within a warp can wait for the others. Kernels without either run as plain loops.
#include "launch.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <mutex>
#include <utility>

#include "gpu.h"

#include "arith.h"
#include "columns.h"
#include "lanes.h"
#include "map.h"
#include "sanitizer.h"

#ifdef ADDRESS_SANITIZER
extern "C" void __sanitizer_start_switch_fiber(void** fake, const void* bottom, size_t size);
extern "C" void __sanitizer_finish_switch_fiber(void* fake, const void** bottom, size_t* size);
#endif

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace host {

place now;

}  // namespace host

#include "fibre.h"

namespace host {
namespace {

const unsigned mostThreads = 1024, warpSize = 32;

enum state { ready, atBarrier, atExchange, done };

// A lane is a thread of the block that runs.
struct lane {
  fibre self;
  state is;
  u32 value, mask;  // of an exchange
};

lane lanes[mostThreads];
fibre scheduler;
lane* running;  // null while no fibre runs
jmp_buf abandoned;
char message[256];
bool faulty;

// What a launch runs, for the fibres.
void (*kernel)(const char*);
const char* buffer;

void yield() {
  lane* own = running;
  switchFibre(own->self, scheduler);
  now.thread = (u32)(own - lanes);
}

void body() {
  kernel(buffer);
  running->is = done;
  leaveFibre(running->self, scheduler);
}

void resume(lane* l) {
  running = l;
  now.thread = (u32)(l - lanes);
  switchFibre(scheduler, l->self);
  running = nullptr;
}

// shuffled returns the i-th of n numbers in the order of a seed: a step that has no divisor in
// common with n visits each once.
u64 shuffled(u64 i, u64 n, u64 seed) {
  if (seed == 0 || n < 2) return i;
  u64 step = seed * 2654435761u % n;
  for (;; step++) {
    u64 a = step, b = n;
    while (b != 0) {
      u64 rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) break;
  }
  return (i * (step % n) + seed) % n;
}

// countOf returns how many of n lanes are in a state. Like exchangeValues it is not inlined: the
// constants of its vectors would be loaded again after each switch.
__attribute__((noinline)) u32 countOf(state s, const lane* l, u32 n) {
  u32 count = 0;
  for (u32 i = 0; i < n; i++) count += l[i].is == s;
  return count;
}

// exchangeValues hands out the values of a warp, once all its lanes wait for them.
__attribute__((noinline)) bool exchangeValues(lane* warp, u32 size) {
  if (countOf(atExchange, warp, size) != warpSize) return false;
  u32 values[warpSize];
  for (u32 i = 0; i < warpSize; i++) {
    values[i] = warp[i].value;
    if (warp[i].mask != warp[0].mask) fault("lanes of a warp exchange by different masks");
  }
  for (u32 i = 0; i < warpSize; i++) {
    warp[i].value = values[i ^ warp[i].mask];
    warp[i].is = ready;
  }
  return true;
}

// runFibres runs a block whose threads wait for each other.
void runFibres(u32 threads, u64 seed) {
  for (u32 i = 0; i < threads; i++) {
    lanes[i].is = ready;
    startFibre(lanes[i].self, i % 128 * 320, body);
  }
  u32 warps = (threads + warpSize - 1) / warpSize;
  for (;;) {
    bool moved = false;
    for (u64 w = 0; w < warps; w++) {
      lane* warp = lanes + shuffled(w, warps, seed) * warpSize;
      u32 size = (u32)(lanes + threads - warp);
      if (size > warpSize) size = warpSize;
      do {
        for (u64 i = 0; i < size; i++) {
          lane* l = warp + shuffled(i, size, seed);
          if (l->is != ready) continue;
          resume(l);
          moved = true;
          if (faulty) longjmp(abandoned, 1);
        }
      } while (exchangeValues(warp, size));
    }
    if (countOf(done, lanes, threads) == threads) return;
    if (countOf(atBarrier, lanes, threads) == threads) {
      for (u32 i = 0; i < threads; i++) lanes[i].is = ready;
      continue;
    }
    if (!moved) fault("threads wait at a barrier, or in an exchange, that others do not come to");
  }
}

}  // namespace

void fault(const char* what) {
  snprintf(message, sizeof message, "block %u,%u,%u thread %u: %s", now.block, now.blockY, now.blockZ,
           now.thread, what);
  faulty = true;
  if (running) leaveFibre(running->self, scheduler);
  longjmp(abandoned, 1);
}

void wait() {
  if (!running) fault("a kernel that the table says has no barrier waits at one");
  running->is = atBarrier;
  yield();
}

u32 exchange(u32 value, u32 mask) {
  if (!running) fault("a kernel that the table says has no exchange makes one");
  lane* own = running;
  own->value = value;
  own->mask = mask;
  own->is = atExchange;
  yield();
  return own->value;
}

namespace {

// layout has the offsets of parameters, each at a multiple of its size, and their end.
template <class... A>
struct layout {
  static constexpr unsigned count = sizeof...(A);
  unsigned long offset[count + 1] = {}, size[count + 1] = {}, end = 0;
  constexpr layout() {
    const unsigned long sizes[] = {sizeof(A)...};
    for (unsigned i = 0; i < count; i++) {
      end = (end + sizes[i] - 1) / sizes[i] * sizes[i];
      offset[i] = end;
      size[i] = sizes[i];
      end += sizes[i];
    }
  }
};

template <class T>
T read(const char* p) {
  T v;
  memcpy(&v, p, sizeof v);
  return v;
}

template <class... A, size_t... I>
void call(void (*f)(A...), const char* p, std::index_sequence<I...>) {
  constexpr layout<A...> of;
  f(read<A>(p + of.offset[I])...);
}

template <class... A>
void unpack(void (*f)(A...), const char* p) {
  call(f, p, std::index_sequence_for<A...>());
}

// An entry is a kernel of the table, with the layout of its parameters.
struct entry {
  const char* name;
  void (*run)(const char*);
  bool waits;
  unsigned count;
  unsigned long size;
  const unsigned long *offsets, *sizes;
};

template <class... A>
constexpr layout<A...> layoutOf(void (*)(A...)) {
  return {};
}

template <auto F>
struct kernelOf {
  static constexpr auto of = layoutOf(F);
  static void run(const char* p) { unpack(F, p); }
};

}  // namespace
}  // namespace host

#include "kernels.inc"

namespace host {
namespace {

// KERNEL makes an entry. size is what the PTX's parameters take: both compilers agree, or this does
// not compile.
template <auto F, unsigned long SIZE>
constexpr entry entryOf(const char* name, bool waits) {
  typedef kernelOf<F> k;
  static_assert(k::of.end == SIZE, "the parameters differ from the PTX");
  return {name, k::run, waits, k::of.count, k::of.end, k::of.offset, k::of.size};
}

#define KERNEL(file, name, size, waits) entryOf<file::name, size>(#name, waits),
const entry table[] = {KERNELS};
#undef KERNEL

const unsigned tableSize = sizeof table / sizeof table[0];

const entry* find(const char* name) {
  for (const entry& e : table) {
    if (strcmp(e.name, name) == 0) return &e;
  }
  return nullptr;
}

// runBlocks runs the blocks of a grid of x × y × z.
void runBlocks(const entry* e, u32 x, u32 y, u32 z, u32 threads, u64 seed) {
  u64 n = (u64)x * y * z;
  for (u64 i = 0; i < n; i++) {
    u64 at = shuffled(i, n, seed);
    now = {0, (u32)(at % x), (u32)(at / x % y), (u32)(at / x / y), x, threads};
    if (e->waits) {
      runFibres(threads, seed);
      continue;
    }
    for (u64 t = 0; t < threads; t++) {
      now.thread = (u32)shuffled(t, threads, seed);
      e->run(buffer);
    }
  }
}

std::mutex one;

}  // namespace
}  // namespace host

using namespace host;

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int gnn_launch(const char* name, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX,
                      unsigned blockY, unsigned blockZ, unsigned, const void* params) {
  const entry* e = find(name);
  if (!e) return GNN_NO_KERNEL;
  if (gridX == 0 || gridY == 0 || gridZ == 0 || blockX == 0 || blockX > mostThreads || blockY != 1 ||
      blockZ != 1) {
    return GNN_BAD_SHAPE;
  }
  std::lock_guard<std::mutex> lock(one);
  const char* order = getenv("GNN_LAUNCH_ORDER");
  u64 seed = order ? strtoull(order, nullptr, 10) : 0;
  kernel = e->run;
  buffer = (const char*)params;
  faulty = false;
  running = nullptr;
  if (setjmp(abandoned)) return GNN_FAULT;
  runBlocks(e, gridX, gridY, gridZ, blockX, seed);
  return GNN_OK;
}

EXPORT const char* gnn_fault(void) { return message; }

EXPORT int gnn_fault_text(char* to, unsigned long size) {
  snprintf(to, size, "%s", message);
  return GNN_OK;
}

EXPORT unsigned gnn_kernel_count(void) { return tableSize; }
EXPORT const char* gnn_kernel_name(unsigned i) { return i < tableSize ? table[i].name : nullptr; }

EXPORT long gnn_kernel_size(const char* name) {
  const entry* e = find(name);
  return e ? (long)e->size : -1;
}

EXPORT int gnn_kernel_param(const char* name, unsigned i, unsigned long* offset, unsigned long* size) {
  const entry* e = find(name);
  if (!e || i >= e->count) return GNN_NO_KERNEL;
  *offset = e->offsets[i];
  *size = e->sizes[i];
  return GNN_OK;
}
