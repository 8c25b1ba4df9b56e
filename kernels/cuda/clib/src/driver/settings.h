// The settings of this driver, which are environment variables. They are read once, at the first
// call.
//
//   GNN_CUDA_MEMORY=BYTES      the memory of the device, also as 512MiB or 4GiB; default 8GiB
//   GNN_CUDA_ORDER=ORDER       the order of work on several streams, see stream.h; default lazy
//   GNN_CUDA_FAIL=NAME:N:CODE  the n-th call of a function, counted from 1, returns this code and
//                              does nothing. NAME is without _v2. N+ means this call and all later
//                              ones. Commas separate several.
//   GNN_CUDA_VERSION=VERSION   of the driver; default 13000, which is CUDA 13.0
//   GNN_CUDA_DEVICES=N         0 hides the device; default 1
//
// A setting that cannot be read makes every call return 1, and standard error says why.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <string>
#include <vector>

#include "codes.h"

namespace cuda {
namespace {

// An order decides what runs next when something is waited for.
enum class order { lazy, fifo, copiesFirst, reverse };

struct failure {
  std::string call;
  unsigned long nth;
  bool onwards;
  code with;
};

struct settings {
  uint64_t memory = 8ull << 30;
  order by = order::lazy;
  int version = 13000, devices = 1;
  std::vector<failure> failures;
  bool wrong = false;

  settings() {
    read("GNN_CUDA_MEMORY", [&](const char* s) { return readBytes(s, memory); });
    read("GNN_CUDA_ORDER", [&](const char* s) { return readOrder(s); });
    read("GNN_CUDA_FAIL", [&](const char* s) { return readFailures(s); });
    read("GNN_CUDA_VERSION", [&](const char* s) { return sscanf(s, "%d", &version) == 1; });
    read("GNN_CUDA_DEVICES", [&](const char* s) {
      return sscanf(s, "%d", &devices) == 1 && devices >= 0 && devices <= 1;
    });
  }

  template <class F>
  void read(const char* name, F f) {
    const char* value = getenv(name);
    if (!value || !*value || f(value)) return;
    fprintf(stderr, "libcuda of the host: %s=%s is not understood\n", name, value);
    wrong = true;
  }

  static bool readBytes(const char* s, uint64_t& bytes) {
    char* end;
    bytes = strtoull(s, &end, 10);
    const char* units[] = {"", "KiB", "MiB", "GiB"};
    for (int i = 0; i < 4; i++) {
      if (end != s && strcmp(end, units[i]) == 0) {
        bytes <<= 10 * i;
        return bytes != 0;
      }
    }
    return false;
  }

  bool readOrder(const char* s) {
    const std::map<std::string, order> orders = {
        {"lazy", order::lazy},
        {"fifo", order::fifo},
        {"copies-first", order::copiesFirst},
        {"reverse", order::reverse},
    };
    auto found = orders.find(s);
    if (found == orders.end()) return false;
    by = found->second;
    return true;
  }

  bool readFailures(std::string list) {
    for (size_t at = 0; at <= list.size();) {
      size_t comma = std::min(list.find(',', at), list.size());
      std::string one = list.substr(at, comma - at);
      at = comma + 1;
      char name[64], plus[2] = "";
      failure f = {};
      if (sscanf(one.c_str(), "%63[A-Za-z0-9]:%lu:%d", name, &f.nth, &f.with) != 3 &&
          sscanf(one.c_str(), "%63[A-Za-z0-9]:%lu%1[+]:%d", name, &f.nth, plus, &f.with) != 4) {
        return false;
      }
      if (f.nth == 0 || f.with == 0) return false;
      f.call = name;
      f.onwards = plus[0] != 0;
      failures.push_back(f);
    }
    return true;
  }

  // orderedFailure returns the code that the nth call of a function is to return, or 0.
  code orderedFailure(const std::string& call, unsigned long nth) const {
    for (const failure& f : failures) {
      if (f.call == call && (f.nth == nth || (f.onwards && nth > f.nth))) return f.with;
    }
    return ok;
  }
};

}  // namespace
}  // namespace cuda
