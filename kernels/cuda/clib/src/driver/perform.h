// Runs a piece of work: a kernel, a call of another library, a copy or a set.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <atomic>

#include "../launch.h"
#include "stream.h"

namespace host {
[[noreturn]] void fault(const char* what);  // of launch.cc
}

namespace cuda {
namespace {

std::atomic<bool> launching;
pthread_t launcher;
struct sigaction handlerBefore;

// outside is the handler of SIGSEGV while a kernel runs. On the thread that runs it, it ends the
// launch; the signals of other threads go where they went before, which in a Go program is to Go.
void outside(int number, siginfo_t* info, void* machine) {
  if (launching && pthread_equal(launcher, pthread_self())) {
    static char text[96];
    snprintf(text, sizeof text, "an access to %p, which is no memory of the device", info->si_addr);
    host::fault(text);
  }
  if (handlerBefore.sa_flags & SA_SIGINFO) return handlerBefore.sa_sigaction(number, info, machine);
  bool other = handlerBefore.sa_handler != SIG_DFL && handlerBefore.sa_handler != SIG_IGN;
  if (other) return handlerBefore.sa_handler(number);
  signal(number, SIG_DFL);  // the access is made again, and ends the process
}

// launch runs a kernel. One runs at a time.
inline code launch(const work& w) {
  struct sigaction a = {};
  a.sa_sigaction = outside;
  // The handler does not return, so that its signal must not stay blocked. Go wants signals handled
  // on their own stack, which its threads have.
  a.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  launcher = pthread_self();
  launching = true;
  sigaction(SIGSEGV, &a, &handlerBefore);
  int result = gnn_launch(w.kernel->name.c_str(), w.grid[0], w.grid[1], w.grid[2], w.threads, 1, 1, w.shared,
                          w.bytes.data());
  sigaction(SIGSEGV, &handlerBefore, nullptr);
  launching = false;
  if (result == GNN_OK) return ok;
  fprintf(stderr, "libcuda of the host: kernel %s: %s\n", w.kernel->name.c_str(),
          result == GNN_FAULT ? gnn_fault() : "the host's code refuses the launch");
  return illegalAddress;
}

// perform runs a piece of work. Addresses were checked when it was queued.
inline code perform(const work& w) {
  switch (w.what) {
    case kind::launch:
      return launch(w);
    case kind::call:
      return w.called(w.with.get());
    case kind::copy:
      memmove((void*)w.dst, w.staged ? (const void*)w.bytes.data() : (const void*)w.src, w.n);
      break;
    case kind::set8:
      memset((void*)w.dst, (int)w.value, w.n);
      break;
    case kind::set32:
      std::fill_n((uint32_t*)w.dst, w.n, w.value);
      break;
    case kind::record:
    case kind::wait:
      break;
  }
  return ok;
}

}  // namespace
}  // namespace cuda
