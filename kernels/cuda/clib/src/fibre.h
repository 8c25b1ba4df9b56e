// Fibres: switching between stacks. On x86-64 a switch saves the registers that a call keeps, which
// takes a few ns; elsewhere it is swapcontext. The address sanitizer is told of each switch.
#pragma once

namespace host {
namespace {

const size_t stackBytes = 256 << 10;

struct fibre {
  char* stack;  // null: the stack of the thread that launches
#if defined(__x86_64__)
  void* pointer;
#else
  ucontext_t context;
#endif
#ifdef ADDRESS_SANITIZER
  const void* bottom;
  size_t size;
#endif
};

#if defined(__x86_64__)
}  // namespace
}  // namespace host

extern "C" void gnn_switch(void** from, void* to) __attribute__((visibility("hidden")));
__asm__(
    ".text\n"
    ".type gnn_switch, @function\n"
    "gnn_switch:\n"
    "  pushq %rbp\n"
    "  pushq %rbx\n"
    "  pushq %r12\n"
    "  pushq %r13\n"
    "  pushq %r14\n"
    "  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n"
    "  popq %r14\n"
    "  popq %r13\n"
    "  popq %r12\n"
    "  popq %rbx\n"
    "  popq %rbp\n"
    "  popq %rcx\n"  // not ret: the processor would expect it to return to the last caller
    "  jmpq *%rcx\n"
    ".size gnn_switch, .-gnn_switch\n");

namespace host {
namespace {
#endif

// arrive is the first thing on a stack that was switched to.
inline void arrive(fibre& from) {
#ifdef ADDRESS_SANITIZER
  const void* bottom;
  size_t size;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
  if (!from.stack) {
    from.bottom = bottom;
    from.size = size;
  }
#else
  (void)from;
#endif
}

inline void jump(fibre& from, fibre& to) {
#if defined(__x86_64__)
  gnn_switch(&from.pointer, to.pointer);
#else
  swapcontext(&from.context, &to.context);
#endif
}

// switchFibre goes on in to, and returns when something switches back.
inline void switchFibre(fibre& from, fibre& to) {
#ifdef ADDRESS_SANITIZER
  void* fake;
  __sanitizer_start_switch_fiber(&fake, to.stack ? to.stack : to.bottom, to.stack ? stackBytes : to.size);
  jump(from, to);
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#else
  jump(from, to);
#endif
}

// leaveFibre goes on in to for good.
[[noreturn]] inline void leaveFibre(fibre& from, fibre& to) {
#ifdef ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(nullptr, to.bottom, to.size);
#endif
  jump(from, to);
  abort();
}

extern fibre scheduler;

void (*entryPoint)();

void beginFibre() {
  arrive(scheduler);
  entryPoint();
  abort();
}

// startFibre prepares f to call run, on its own stack, when it is switched to. At the stack's end
// skip bytes stay free, a multiple of 16. If the stacks of many fibres began at the same place of a
// page, they would drive each other out of the processor's cache.
inline void startFibre(fibre& f, size_t skip, void (*run)()) {
  if (!f.stack) {
    void* p = mmap(nullptr, stackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) fault("no memory for the stack of a thread");
    f.stack = (char*)p;
  }
  entryPoint = run;
#if defined(__x86_64__)
  // beginFibre finds the stack aligned as after a call.
  void** top = (void**)(f.stack + stackBytes - skip) - 1;
  *--top = (void*)beginFibre;
  for (int i = 0; i < 6; i++) *--top = nullptr;
  f.pointer = top;
#else
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = f.stack;
  f.context.uc_stack.ss_size = stackBytes - skip;
  f.context.uc_link = nullptr;
  makecontext(&f.context, beginFibre, 0);
#endif
}

}  // namespace
}  // namespace host
