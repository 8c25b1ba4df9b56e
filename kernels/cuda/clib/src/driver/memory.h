// Memory: allocations of the device, and page-locked memory of the host.
//
// Device memory is memory of this process. The next multiple of 256 bytes behind an allocation,
// which is the alignment of the driver's, begins a page that nobody may touch. The bytes up to
// there, and those before the allocation in its first page, have a pattern, which is looked at when
// the memory is freed, and by cuCtxSynchronize. An address is not given twice, so that a
// kernel that uses freed memory is found too.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "../sanitizer.h"
#include "codes.h"

#ifdef ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace cuda {
namespace {

typedef uint64_t address;

// A region is memory that the driver knows: an allocation of either kind, or registered memory.
struct region {
  address at;
  uint64_t bytes;
  uint32_t flags;   // of page-locked memory
  bool ours;        // cuMemHostAlloc made it
  address from;     // the pages of device memory
  uint64_t mapped;  // their bytes
};

// Flags of page-locked memory.
const uint32_t hostMapped = 2, hostReadOnly = 8;

// Regions do not overlap. They are ordered by address.
struct regions : std::map<address, region> {
  // holding returns the region that holds all bytes from at on, or null.
  const region* holding(address at, uint64_t bytes) const {
    auto after = upper_bound(at);
    if (after == begin()) return nullptr;
    const region& r = std::prev(after)->second;
    return at - r.at <= r.bytes && bytes <= r.bytes - (at - r.at) ? &r : nullptr;
  }

  // touches reports whether a region has one of these bytes.
  bool touches(address at, uint64_t bytes) const {
    auto after = lower_bound(at);
    if (after != end() && after->second.at - at < bytes) return true;
    return after != begin() && at - std::prev(after)->second.at < std::prev(after)->second.bytes;
  }
};

const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
const uint64_t alignment = 256;            // of device memory
const uint64_t guard = 1 << 20;            // bytes between allocations that nobody may touch
const uint64_t arenaBytes = 4ull << 40;    // addresses, not memory
const uint64_t filledBytes = 64ull << 20;  // of a new allocation, to show who reads before writing

const unsigned char pattern = 0xa5;  // around an allocation
const unsigned char garbage = 0xff;  // in a new one: NaN, and no valid id

inline uint64_t roundUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// The memory of a device.
struct memory {
  regions device, host;
  uint64_t used = 0, total;

  explicit memory(uint64_t bytes) : total(bytes) {
    void* p = mmap(nullptr, arenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) arena = next = (address)p;
  }

  // inArena reports whether an address is one that device memory may have.
  bool inArena(address at) const { return at - arena < arenaBytes; }

  code allocate(uint64_t bytes, address& at) {
    if (bytes == 0) return invalidValue;
    if (bytes > total || roundUp(bytes, alignment) > total - used) return outOfMemory;
    uint64_t held = roundUp(bytes, alignment), mapped = roundUp(held, page);
    if (arena == 0 || next - arena > arenaBytes - mapped - guard) return outOfMemory;
    void* p = mmap((void*)next, mapped, PROT_READ | PROT_WRITE,
                   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return outOfMemory;
    region r = {next + mapped - held, bytes, 0, true, next, mapped};
    next += mapped + guard;
    used += held;
    device[r.at] = r;
    memset((void*)r.from, pattern, r.at - r.from);
    memset((void*)(r.at + bytes), pattern, held - bytes);
    memset((void*)r.at, garbage, std::min(bytes, filledBytes));
    poison(r, true);
    at = r.at;
    return ok;
  }

  // intact reports whether the pattern around an allocation is there.
  static bool intact(const region& r) {
    poison(r, false);
    bool same = only(r.from, r.at) && only(r.at + r.bytes, r.from + r.mapped);
    poison(r, true);
    return same;
  }

  void release(region r) {
    used -= roundUp(r.bytes, alignment);
    poison(r, false);
    mmap((void*)r.from, r.mapped, PROT_NONE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    device.erase(r.at);
  }

  code allocateHost(uint64_t bytes, uint32_t flags, void*& p) {
    if (posix_memalign(&p, page, bytes) != 0) return outOfMemory;
    host[(address)p] = region{(address)p, bytes, flags, true, 0, 0};
    return ok;
  }

  void releaseHost(region r) {
    if (r.ours) free((void*)r.at);
    host.erase(r.at);
  }

  void releaseAll() {
    while (!device.empty()) release(device.begin()->second);
    while (!host.empty()) releaseHost(host.begin()->second);
  }

  // there reports whether all pages of these bytes are mapped.
  static bool there(address at, uint64_t bytes) {
    address from = at / page * page;
    if (bytes > ~at) return false;
    return msync((void*)from, at + bytes - from, MS_ASYNC) == 0;
  }

  // reachable reports whether work on the device may use these bytes: of device memory, or of
  // page-locked memory that is mapped.
  bool reachable(address at, uint64_t bytes) const {
    if (bytes == 0) return true;
    if (device.holding(at, bytes)) return true;
    const region* r = host.holding(at, bytes);
    return r && (r->flags & hostMapped);
  }

 private:
  address arena = 0, next = 0;

  // only reports whether all bytes from a to b have the pattern.
  static bool only(address a, address b) {
    const unsigned char* p = (const unsigned char*)a;
    return a == b || (*p == pattern && memcmp(p, p + 1, b - a - 1) == 0);
  }

  // poison tells the address sanitizer which bytes around an allocation nobody may touch.
  static void poison(const region& r, bool on) {
#ifdef ADDRESS_SANITIZER
    if (on) {
      ASAN_POISON_MEMORY_REGION((void*)r.from, r.at - r.from);
      ASAN_POISON_MEMORY_REGION((void*)(r.at + r.bytes), r.from + r.mapped - r.at - r.bytes);
    } else {
      ASAN_UNPOISON_MEMORY_REGION((void*)r.from, r.mapped);
    }
#else
    (void)r;
    (void)on;
#endif
  }
};

}  // namespace
}  // namespace cuda
