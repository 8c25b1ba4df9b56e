// The state of the library, and what each call does first.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "perform.h"
#include "settings.h"
#include "stream.h"

namespace cuda {
namespace {

// A handle is a number that is not given twice, so that a stale one is found.
typedef uint64_t handle;

// A context is the primary context of the device, from its first retain to its last release.
struct context {
  streams work;
  code failed = ok;  // 700 and the like, which all later calls return
  bool destroyed = false;
  std::map<handle, stream*> streamOf;
  std::map<handle, event> events;
  std::map<handle, functions> modules;
  std::map<handle, std::shared_ptr<function>> kernels;
  std::map<handle, handle> moduleOf;  // the module of a kernel

  explicit context(order by) : work(by, perform, [this](code c) { failed = c; }) {}

  // find returns the stream of a handle, or null. The default stream is 0 and 1, which is
  // CU_STREAM_LEGACY.
  stream* find(handle h) {
    if (h <= 1) return work.main();
    auto found = streamOf.find(h);
    return found == streamOf.end() ? nullptr : found->second;
  }

  void unload(handle module) {
    for (auto at = moduleOf.begin(); at != moduleOf.end();) {
      if (at->second == module) {
        kernels.erase(at->first);
        at = moduleOf.erase(at);
      } else {
        ++at;
      }
    }
    modules.erase(module);
  }

  // destroy drops everything. The context stays, for threads on which it is current.
  void destroy() {
    destroyed = true;
    work.clear();
    streamOf.clear();
    events.clear();
    modules.clear();
    kernels.clear();
    moduleOf.clear();
  }

  void fail(code with) {
    work.clear();
    failed = with;
  }
};

struct driver {
  std::mutex lock;
  settings set;
  memory mem{set.memory};
  std::map<std::string, unsigned long> calls;  // by the name in GNN_CUDA_FAIL
  std::map<handle, std::unique_ptr<context>> contexts;  // also destroyed ones
  handle primary = 0;
  int retained = 0;
  code lost = ok;  // why there is no other context
  bool initialized = false;

  handle newHandle() { return handles += 0x10; }

 private:
  handle handles = 0x1000;
};

inline driver& theDriver() {
  static driver* d = new driver;  // never destroyed: threads may call while the process ends
  return *d;
}

thread_local handle current;  // the context of the thread

// What a call needs, beside settings that can be read.
enum class needs { nothing, init, context };

// A call holds the lock while it runs, and has the context of its thread.
struct call {
  driver& d = theDriver();
  std::lock_guard<std::mutex> held{d.lock};
  context* c = nullptr;
  code refused;  // what the call returns at once, if not 0

  call(const char* name, needs what) : refused(check(name, what)) {}

  // checkAround loses the context if something was written beside an allocation.
  code checkAround(const region& r) {
    if (memory::intact(r)) return ok;
    fprintf(stderr, "libcuda of the host: something was written beside the %llu bytes at %#llx\n",
            (unsigned long long)r.bytes, (unsigned long long)r.at);
    c->fail(illegalAddress);
    return illegalAddress;
  }

  code waitForAll() {
    c->work.finishAll();
    return c->failed;
  }

 private:
  code check(const char* name, needs what) {
    unsigned long nth = ++d.calls[name];
    if (d.set.wrong) return invalidValue;
    auto found = d.contexts.find(current);
    if (found != d.contexts.end()) c = found->second.get();
    if (code ordered = d.set.orderedFailure(name, nth)) {
      if (c && losesContext(ordered)) c->fail(ordered);
      return ordered;
    }
    if (what != needs::nothing && !d.initialized) return notInitialized;
    if (what != needs::context) return ok;
    if (!c) return invalidContext;
    return c->destroyed ? contextIsDestroyed : c->failed;
  }
};

}  // namespace
}  // namespace cuda
