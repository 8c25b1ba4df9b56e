// A libcuda.so.1 for tests: the driver's functions that kernels/cuda/driver calls, over memory of
// the host and the kernels of launch.cc. So the real binaries train under LD_LIBRARY_PATH without a
// GPU. Functions have the driver's symbols and prototypes; handles are numbers.
//
// It is stricter than a driver where that finds faults. Work runs as late as it may (stream.h), and
// the addresses of copies are checked (memory.h). A launch needs a context, and refuses parameters
// of another size, which a driver takes if they are too few. tools/results/gpu.md has what an H100
// does in such cases.
//
// A kernel that touches memory outside all allocations, or that faults otherwise, loses the
// context, as on a device: the call that waits for it, and all later ones, return 700. Standard
// error names the kernel.
//
// One lock guards everything, also while kernels run. settings.h has the environment variables.
#include <stdint.h>
#include <stdlib.h>

#include "driver/call.h"
#include "driver/codes.h"
#include "driver/memory.h"
#include "driver/module.h"
#include "driver/stream.h"

using namespace cuda;

#define EXPORT extern "C" __attribute__((visibility("default"))) code

#define CALL(name, what)     \
  call k(name, needs::what); \
  if (k.refused) return k.refused

// gnn_cuda_calls returns how often a function was called. name is without _v2.
extern "C" __attribute__((visibility("default"))) unsigned long gnn_cuda_calls(const char* name) {
  driver& d = theDriver();
  std::lock_guard<std::mutex> held(d.lock);
  auto found = d.calls.find(name);
  return found == d.calls.end() ? 0 : found->second;
}

// What a library that queues work of its own calls, such as cublas.cc.

// gnn_begin counts a call of that library, and returns the code that it is to return, if not 0.
EXPORT gnn_begin(const char* name) {
  CALL(name, context);
  return ok;
}

// gnn_reachable returns 0 if work on the device may use these bytes.
EXPORT gnn_reachable(address at, uint64_t bytes) {
  driver& d = theDriver();
  std::lock_guard<std::mutex> held(d.lock);
  return d.mem.reachable(at, bytes) ? ok : invalidValue;
}

// gnn_enqueue queues run(with) on a stream. drop(with) follows, also where run was never called.
EXPORT gnn_enqueue(handle on, code (*run)(void*), void (*drop)(void*), void* with) {
  std::shared_ptr<void> owned(with, drop);
  CALL("gnn_enqueue", context);
  stream* s = k.c->find(on);
  if (!s) return invalidHandle;
  work w;
  w.what = kind::call;
  w.called = run;
  w.with = owned;
  k.c->work.push(s, std::move(w));
  return k.c->failed;
}

// The driver and the device.

EXPORT cuGetErrorName(code c, const char** out) {
  const words* w = wordsOf(c);
  *out = w ? w->name : nullptr;
  return w ? ok : invalidValue;
}

EXPORT cuGetErrorString(code c, const char** out) {
  const words* w = wordsOf(c);
  *out = w ? w->text : nullptr;
  return w ? ok : invalidValue;
}

EXPORT cuInit(unsigned flags) {
  CALL("cuInit", nothing);
  if (flags != 0) return invalidValue;
  if (k.d.set.devices == 0) return noDevice;
  k.d.initialized = true;
  return ok;
}

EXPORT cuDriverGetVersion(int* out) {
  CALL("cuDriverGetVersion", nothing);
  *out = k.d.set.version;
  return ok;
}

EXPORT cuDeviceGetCount(int* out) {
  CALL("cuDeviceGetCount", init);
  *out = 1;
  return ok;
}

EXPORT cuDeviceGet(int* out, int ordinal) {
  CALL("cuDeviceGet", init);
  if (ordinal != 0) return invalidDevice;
  *out = 0;
  return ok;
}

EXPORT cuDeviceGetName(char* out, int size, int device) {
  CALL("cuDeviceGetName", init);
  if (device != 0) return invalidDevice;
  if (size <= 0) return invalidValue;
  snprintf(out, (size_t)size, "gnnstore host device");
  return ok;
}

EXPORT cuDeviceGetAttribute(int* out, int attribute, int device) {
  // Those of an A100 (compute capability 8.0), but for the multiprocessors.
  static const std::map<int, int> values = {
      {1, 1024},       // MAX_THREADS_PER_BLOCK
      {2, 1024},       // MAX_BLOCK_DIM_X, Y, Z
      {3, 1024},
      {4, 64},
      {5, 2147483647}, // MAX_GRID_DIM_X, Y, Z
      {6, 65535},
      {7, 65535},
      {8, 48 << 10},   // MAX_SHARED_MEMORY_PER_BLOCK
      {9, 64 << 10},   // TOTAL_CONSTANT_MEMORY
      {10, 32},        // WARP_SIZE
      {12, 65536},     // MAX_REGISTERS_PER_BLOCK
      {13, 1410000},   // CLOCK_RATE
      {15, 1},         // GPU_OVERLAP
      {16, 8},         // MULTIPROCESSOR_COUNT: few, so that grids are small and threads loop
      {17, 0},         // KERNEL_EXEC_TIMEOUT
      {18, 0},         // INTEGRATED
      {19, 1},         // CAN_MAP_HOST_MEMORY
      {20, 0},         // COMPUTE_MODE
      {31, 1},         // CONCURRENT_KERNELS
      {32, 1},         // ECC_ENABLED
      {36, 1215000},   // MEMORY_CLOCK_RATE
      {37, 5120},      // GLOBAL_MEMORY_BUS_WIDTH
      {38, 40 << 20},  // L2_CACHE_SIZE
      {39, 2048},      // MAX_THREADS_PER_MULTIPROCESSOR
      {40, 2},         // ASYNC_ENGINE_COUNT
      {41, 1},         // UNIFIED_ADDRESSING
      {75, 8},         // COMPUTE_CAPABILITY_MAJOR, MINOR
      {76, 0},
      {81, 164 << 10}, // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
      {82, 65536},     // MAX_REGISTERS_PER_MULTIPROCESSOR
      {91, 1},         // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
      {97, 163 << 10}, // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
      {99, 1},         // HOST_REGISTER_SUPPORTED
      {106, 32},       // MAX_BLOCKS_PER_MULTIPROCESSOR
      {113, 1},        // READ_ONLY_HOST_REGISTER_SUPPORTED
  };
  CALL("cuDeviceGetAttribute", init);
  if (device != 0) return invalidDevice;
  auto found = values.find(attribute);
  if (found == values.end()) return invalidValue;
  *out = found->second;
  return ok;
}

EXPORT cuDeviceTotalMem_v2(size_t* out, int device) {
  CALL("cuDeviceTotalMem", init);
  if (device != 0) return invalidDevice;
  *out = k.d.mem.total;
  return ok;
}

EXPORT cuDeviceGetUuid_v2(char* out, int device) {
  CALL("cuDeviceGetUuid", init);
  if (device != 0) return invalidDevice;
  memcpy(out, "gnnstore host 00", 16);
  return ok;
}

EXPORT cuDeviceGetUuid(char* out, int device) { return cuDeviceGetUuid_v2(out, device); }

// Contexts.

EXPORT cuDevicePrimaryCtxRetain(handle* out, int device) {
  CALL("cuDevicePrimaryCtxRetain", init);
  if (device != 0) return invalidDevice;
  if (k.d.retained > 0 && k.d.contexts[k.d.primary]->failed) return k.d.contexts[k.d.primary]->failed;
  if (k.d.lost) return k.d.lost;
  if (k.d.retained++ == 0) {
    k.d.primary = k.d.newHandle();
    k.d.contexts[k.d.primary].reset(new context(k.d.set.by));
  }
  *out = k.d.primary;
  return ok;
}

EXPORT cuDevicePrimaryCtxRelease_v2(int device) {
  CALL("cuDevicePrimaryCtxRelease", init);
  if (device != 0) return invalidDevice;
  if (k.d.retained == 0) return invalidContext;
  if (--k.d.retained > 0) return ok;
  context* c = k.d.contexts[k.d.primary].get();
  if (!c->failed) c->work.finishAll();
  k.d.lost = c->failed;
  k.d.mem.releaseAll();
  c->destroy();
  k.d.primary = 0;
  return k.d.lost;
}

EXPORT cuCtxSetCurrent(handle h) {
  CALL("cuCtxSetCurrent", init);
  auto found = k.d.contexts.find(h);
  if (h != 0 && (found == k.d.contexts.end() || found->second->destroyed)) return invalidContext;
  current = h;
  return ok;
}

EXPORT cuCtxGetCurrent(handle* out) {
  CALL("cuCtxGetCurrent", init);
  *out = current;
  return ok;
}

EXPORT cuCtxSynchronize() {
  CALL("cuCtxSynchronize", context);
  if (code failed = k.waitForAll()) return failed;
  for (auto& r : k.d.mem.device) {
    if (code failed = k.checkAround(r.second)) return failed;
  }
  return ok;
}

// Memory. What gives memory back waits for all work, as on an H100.

EXPORT cuMemAlloc_v2(address* out, size_t bytes) {
  CALL("cuMemAlloc", context);
  return k.d.mem.allocate(bytes, *out);
}

EXPORT cuMemFree_v2(address at) {
  CALL("cuMemFree", context);
  if (at == 0) return ok;
  auto found = k.d.mem.device.find(at);
  if (found == k.d.mem.device.end()) return invalidValue;
  if (code failed = k.waitForAll()) return failed;
  if (code failed = k.checkAround(found->second)) return failed;
  k.d.mem.release(found->second);
  return ok;
}

EXPORT cuMemGetInfo_v2(size_t* available, size_t* total) {
  CALL("cuMemGetInfo", context);
  *available = k.d.mem.total - k.d.mem.used;
  *total = k.d.mem.total;
  return ok;
}

EXPORT cuMemHostAlloc(void** out, size_t bytes, unsigned flags) {
  CALL("cuMemHostAlloc", context);
  if (bytes == 0 || flags > 7) return invalidValue;
  return k.d.mem.allocateHost(bytes, flags, *out);
}

EXPORT cuMemFreeHost(void* p) {
  CALL("cuMemFreeHost", context);
  auto found = k.d.mem.host.find((address)p);
  if (found == k.d.mem.host.end() || !found->second.ours) return invalidValue;
  if (code failed = k.waitForAll()) return failed;
  k.d.mem.releaseHost(found->second);
  return ok;
}

EXPORT cuMemHostRegister_v2(void* p, size_t bytes, unsigned flags) {
  CALL("cuMemHostRegister", context);
  if (!p || bytes == 0 || flags > 15 || !memory::there((address)p, bytes)) return invalidValue;
  if (k.d.mem.host.touches((address)p, bytes)) return alreadyRegistered;
  k.d.mem.host[(address)p] = region{(address)p, bytes, flags, false, 0, 0};
  return ok;
}

EXPORT cuMemHostUnregister(void* p) {
  CALL("cuMemHostUnregister", context);
  auto found = k.d.mem.host.find((address)p);
  if (found == k.d.mem.host.end() || found->second.ours) return notRegistered;
  if (code failed = k.waitForAll()) return failed;
  k.d.mem.host.erase(found);
  return ok;
}

EXPORT cuMemHostGetDevicePointer_v2(address* out, void* p, unsigned flags) {
  CALL("cuMemHostGetDevicePointer", context);
  const region* r = k.d.mem.host.holding((address)p, 1);
  if (flags != 0 || !r || !(r->flags & hostMapped)) return invalidValue;
  *out = (address)p;
  return ok;
}

// Copies and sets.

namespace {

// pageLocked sets locked to the page-locked memory that has these bytes of the host, or to null if
// they lie in other memory. A copy does not take some of each.
code pageLocked(driver& d, address at, size_t bytes, const region*& locked) {
  if (at == 0 || d.mem.inArena(at)) return invalidValue;
  locked = d.mem.host.holding(at, bytes);
  return !locked && d.mem.host.touches(at, bytes) ? invalidValue : ok;
}

work copyOf(address dst, address src, size_t bytes) {
  work w;
  w.what = kind::copy;
  w.dst = dst;
  w.src = src;
  w.n = bytes;
  return w;
}

}  // namespace

// Page-locked memory is read when the copy runs. Other memory is read at once, and the copy still
// runs in its turn.
EXPORT cuMemcpyHtoDAsync_v2(address dst, const void* src, size_t bytes, handle on) {
  CALL("cuMemcpyHtoDAsync", context);
  stream* s = k.c->find(on);
  if (!s) return invalidHandle;
  if (bytes == 0) return ok;
  const region* locked;
  if (code failed = pageLocked(k.d, (address)src, bytes, locked)) return failed;
  if (!k.d.mem.reachable(dst, bytes)) return invalidValue;
  work w = copyOf(dst, (address)src, bytes);
  if (!locked) {
    w.staged = true;
    w.bytes.assign((const char*)src, (const char*)src + bytes);
  }
  k.c->work.push(s, std::move(w));
  return k.c->failed;
}

// A copy to memory that is not page-locked is done when the call returns.
EXPORT cuMemcpyDtoHAsync_v2(void* dst, address src, size_t bytes, handle on) {
  CALL("cuMemcpyDtoHAsync", context);
  stream* s = k.c->find(on);
  if (!s) return invalidHandle;
  if (bytes == 0) return ok;
  const region* locked;
  if (code failed = pageLocked(k.d, (address)dst, bytes, locked)) return failed;
  if (!k.d.mem.reachable(src, bytes) || (locked && (locked->flags & hostReadOnly))) return invalidValue;
  markOf done = k.c->work.push(s, copyOf((address)dst, src, bytes));
  if (!locked) k.c->work.finish(done);
  return k.c->failed;
}

EXPORT cuMemcpyDtoDAsync_v2(address dst, address src, size_t bytes, handle on) {
  CALL("cuMemcpyDtoDAsync", context);
  stream* s = k.c->find(on);
  if (!s) return invalidHandle;
  if (!k.d.mem.reachable(dst, bytes) || !k.d.mem.reachable(src, bytes)) return invalidValue;
  k.c->work.push(s, copyOf(dst, src, bytes));
  return k.c->failed;
}

namespace {

code set(call& k, kind what, address dst, uint32_t value, size_t n, handle on) {
  size_t size = what == kind::set32 ? 4 : 1;
  stream* s = k.c->find(on);
  if (!s) return invalidHandle;
  if (n > SIZE_MAX / size || dst % size != 0 || !k.d.mem.reachable(dst, n * size)) return invalidValue;
  work w;
  w.what = what;
  w.dst = dst;
  w.value = value;
  w.n = n;
  k.c->work.push(s, std::move(w));
  return k.c->failed;
}

}  // namespace

EXPORT cuMemsetD8Async(address dst, unsigned char value, size_t n, handle on) {
  CALL("cuMemsetD8Async", context);
  return set(k, kind::set8, dst, value, n, on);
}

EXPORT cuMemsetD32Async(address dst, unsigned value, size_t n, handle on) {
  CALL("cuMemsetD32Async", context);
  return set(k, kind::set32, dst, value, n, on);
}

// Streams and events.

EXPORT cuStreamCreate(handle* out, unsigned flags) {
  CALL("cuStreamCreate", context);
  if (flags > streamNonBlocking) return invalidValue;
  *out = k.d.newHandle();
  k.c->streamOf[*out] = k.c->work.add(flags != streamNonBlocking);
  return ok;
}

EXPORT cuStreamDestroy_v2(handle h) {
  CALL("cuStreamDestroy", context);
  auto found = k.c->streamOf.find(h);
  if (found == k.c->streamOf.end()) return invalidHandle;
  k.c->work.destroy(found->second);
  k.c->streamOf.erase(found);
  return ok;
}

EXPORT cuStreamSynchronize(handle h) {
  CALL("cuStreamSynchronize", context);
  stream* s = k.c->find(h);
  if (!s) return invalidHandle;
  k.c->work.finish(s);
  return k.c->failed;
}

namespace {

// query answers whether work is done. If not, it runs one piece of what is waited for, so that who
// asks again and again gets there.
code query(call& k, markOf m) {
  if (!m || m->done) return ok;
  k.c->work.step(*m);
  return k.c->failed ? k.c->failed : notReady;
}

}  // namespace

EXPORT cuStreamQuery(handle h) {
  CALL("cuStreamQuery", context);
  stream* s = k.c->find(h);
  return s ? query(k, s->last) : invalidHandle;
}

// The stream waits for the event as it was recorded last before this call; for one that was not
// recorded, it does not wait.
EXPORT cuStreamWaitEvent(handle h, handle of, unsigned flags) {
  CALL("cuStreamWaitEvent", context);
  stream* s = k.c->find(h);
  auto e = k.c->events.find(of);
  if (!s || e == k.c->events.end()) return invalidHandle;
  if (flags != 0) return invalidValue;
  work w;
  w.what = kind::wait;
  if (e->second.recorded) w.after.push_back(e->second.recorded);
  k.c->work.push(s, std::move(w));
  return k.c->failed;
}

EXPORT cuEventCreate(handle* out, unsigned flags) {
  CALL("cuEventCreate", context);
  if (flags > 3) return invalidValue;
  *out = k.d.newHandle();
  k.c->events[*out] = event{!(flags & eventDisableTiming), nullptr};
  return ok;
}

EXPORT cuEventDestroy_v2(handle h) {
  CALL("cuEventDestroy", context);
  return k.c->events.erase(h) ? ok : invalidHandle;
}

EXPORT cuEventRecord(handle of, handle on) {
  CALL("cuEventRecord", context);
  stream* s = k.c->find(on);
  auto e = k.c->events.find(of);
  if (!s || e == k.c->events.end()) return invalidHandle;
  work w;
  w.what = kind::record;
  e->second.recorded = k.c->work.push(s, std::move(w));
  return k.c->failed;
}

EXPORT cuEventSynchronize(handle h) {
  CALL("cuEventSynchronize", context);
  auto e = k.c->events.find(h);
  if (e == k.c->events.end()) return invalidHandle;
  k.c->work.finish(e->second.recorded);
  return k.c->failed;
}

EXPORT cuEventQuery(handle h) {
  CALL("cuEventQuery", context);
  auto e = k.c->events.find(h);
  return e == k.c->events.end() ? invalidHandle : query(k, e->second.recorded);
}

EXPORT cuEventElapsedTime(float* out, handle from, handle to) {
  CALL("cuEventElapsedTime", context);
  auto a = k.c->events.find(from), b = k.c->events.find(to), none = k.c->events.end();
  if (a == none || b == none) return invalidHandle;
  if (!a->second.timed || !b->second.timed || !a->second.recorded || !b->second.recorded) return invalidHandle;
  if (!a->second.recorded->done || !b->second.recorded->done) return notReady;
  *out = (float)(b->second.recorded->milliseconds - a->second.recorded->milliseconds);
  return ok;
}

EXPORT cuEventElapsedTime_v2(float* out, handle from, handle to) { return cuEventElapsedTime(out, from, to); }

// Modules and functions.

namespace {

// Options of the compiler.
const int infoLog = 3, infoBytes = 4, errorLog = 5, errorBytes = 6;

// A log is a buffer of the caller, given by two options.
struct log {
  char* buffer = nullptr;
  void** size = nullptr;  // where the buffer's size is, and how much of it is used afterwards

  void write(const std::string& text) {
    size_t room = size ? (uint32_t)(uintptr_t)*size : 0, n = 0;
    if (buffer && room > 0) {
      n = std::min(text.size(), room - 1);
      memcpy(buffer, text.data(), n);
      buffer[n] = 0;
    }
    if (size) *size = (void*)(uintptr_t)n;
  }
};

}  // namespace

EXPORT cuModuleLoadDataEx(handle* out, const void* image, unsigned n, const int* options, void** values) {
  CALL("cuModuleLoadDataEx", context);
  if (!image || (n > 0 && (!options || !values))) return invalidValue;
  log remarks, errors;
  for (unsigned i = 0; i < n; i++) {
    if (options[i] == infoLog) remarks.buffer = (char*)values[i];
    if (options[i] == infoBytes) remarks.size = &values[i];
    if (options[i] == errorLog) errors.buffer = (char*)values[i];
    if (options[i] == errorBytes) errors.size = &values[i];
  }
  if (code failed = k.waitForAll()) return failed;
  // CUDA 11.8 has PTX 7.8, 12.0 has 8.0 and 13.0 has 9.0 (NVIDIA, PTX ISA, release notes). Some
  // between have a minor number that is less by one.
  int newest = (k.d.set.version / 1000 - 4) * 10 + k.d.set.version / 10 % 100;
  ptxReader r((const char*)image, newest, 80);
  for (auto& f : r.found) {
    std::string differs = compareWithHost(*f.second);
    if (!differs.empty()) r.refuse(invalidPTX, differs);
  }
  remarks.write("");
  errors.write(r.log);
  if (r.failed) return r.failed;
  *out = k.d.newHandle();
  k.c->modules[*out] = r.found;
  return ok;
}

EXPORT cuModuleUnload(handle h) {
  CALL("cuModuleUnload", context);
  if (!k.c->modules.count(h)) return invalidHandle;
  if (code failed = k.waitForAll()) return failed;
  k.c->unload(h);
  return ok;
}

EXPORT cuModuleGetFunction(handle* out, handle h, const char* name) {
  CALL("cuModuleGetFunction", context);
  auto m = k.c->modules.find(h);
  if (m == k.c->modules.end()) return invalidHandle;
  auto found = m->second.find(name);
  if (found == m->second.end() || gnn_kernel_size(name) < 0) return notFound;
  *out = k.d.newHandle();
  k.c->kernels[*out] = found->second;
  k.c->moduleOf[*out] = h;
  return ok;
}

EXPORT cuFuncGetAttribute(int* out, int attribute, handle h) {
  CALL("cuFuncGetAttribute", context);
  auto found = k.c->kernels.find(h);
  if (found == k.c->kernels.end()) return invalidHandle;
  const function& f = *found->second;
  const std::map<int, int> values = {
      {0, (int)f.mostThreads},  // MAX_THREADS_PER_BLOCK
      {1, (int)f.sharedBytes},  // SHARED_SIZE_BYTES
      {2, 0},                   // CONST_SIZE_BYTES
      {3, 0},                   // LOCAL_SIZE_BYTES
      {4, 32},                  // NUM_REGS: the host has another number
      {5, f.ptxVersion},        // PTX_VERSION
      {6, 80},                  // BINARY_VERSION
      {8, f.mostDynamic},       // MAX_DYNAMIC_SHARED_SIZE_BYTES
  };
  auto value = values.find(attribute);
  if (value == values.end()) return invalidValue;
  *out = value->second;
  return ok;
}

EXPORT cuFuncSetAttribute(handle h, int attribute, int value) {
  CALL("cuFuncSetAttribute", context);
  auto found = k.c->kernels.find(h);
  if (found == k.c->kernels.end()) return invalidHandle;
  function& f = *found->second;
  if (attribute != 8 || value < 0 || (uint32_t)value + f.sharedBytes > 163 << 10) return invalidValue;
  f.mostDynamic = value;
  return ok;
}

EXPORT cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, handle h, int threads, size_t shared) {
  CALL("cuOccupancyMaxActiveBlocksPerMultiprocessor", context);
  auto found = k.c->kernels.find(h);
  if (found == k.c->kernels.end()) return invalidHandle;
  const function& f = *found->second;
  if (threads <= 0) return invalidValue;
  *out = 0;
  if ((uint32_t)threads > f.mostThreads || shared > (size_t)f.mostDynamic) return ok;
  size_t blocks = std::min(32u, 2048u / ((uint32_t)(threads + 31) / 32 * 32));
  size_t each = f.sharedBytes + shared + 1024;  // the system keeps 1 KiB a block
  *out = (int)std::min(blocks, (size_t)(164 << 10) / each);
  return ok;
}

namespace {

// parameters reads the packed parameters of a launch, which are all that it takes.
code parameters(const function& f, void** list, void** extra, std::vector<char>& into) {
  const void* packed = nullptr;
  const size_t* bytes = nullptr;
  if (list) return notSupported;
  for (int i = 0; extra && extra[i]; i += 2) {
    switch ((uintptr_t)extra[i]) {
      case 1:  // CU_LAUNCH_PARAM_BUFFER_POINTER
        packed = extra[i + 1];
        break;
      case 2:  // CU_LAUNCH_PARAM_BUFFER_SIZE
        bytes = (const size_t*)extra[i + 1];
        break;
      default:
        return invalidValue;
    }
  }
  size_t n = packed && bytes ? *bytes : 0;
  if (n > f.paramBytes) return launchOutOfResources;
  if (n < f.paramBytes) return invalidValue;
  into.assign((const char*)packed, (const char*)packed + n);
  return ok;
}

}  // namespace

EXPORT cuLaunchKernel(handle h, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned shared, handle on, void** list, void** extra) {
  CALL("cuLaunchKernel", context);
  auto found = k.c->kernels.find(h);
  stream* s = k.c->find(on);
  if (found == k.c->kernels.end() || !s) return invalidHandle;
  const function& f = *found->second;
  bool empty = gridX == 0 || gridY == 0 || gridZ == 0 || blockX == 0;
  if (empty || gridX > 0x7fffffff || gridY > 65535 || gridZ > 65535 || blockX > 1024) return invalidValue;
  // The host runs blocks of one row.
  if (blockY != 1 || blockZ != 1 || shared > (unsigned)f.mostDynamic) return invalidValue;
  if (blockX > f.mostThreads) return launchOutOfResources;
  work w;
  if (code failed = parameters(f, list, extra, w.bytes)) return failed;
  w.what = kind::launch;
  w.kernel = found->second;
  w.grid[0] = gridX;
  w.grid[1] = gridY;
  w.grid[2] = gridZ;
  w.threads = blockX;
  w.shared = shared;
  k.c->work.push(s, std::move(w));
  return k.c->failed;
}
