// A libcublas.so.12 for tests: the functions of cuBLAS that kernels/cuda calls, over memory of the
// host. A product is queued on its stream in the libcuda.so.1 of driver.cc, and runs in its turn.
// That library has to be open in the process, with its symbols for all: else cublasCreate fails, as
// without a driver.
//
// It is stricter than cuBLAS, to find faults. It refuses a product without a workspace of the caller
// or with atomics allowed, since the bits might differ from run to run. It also refuses matrices
// that do not lie in memory of the device. In the math mode of TF32 it rounds factors to 10 bits of
// mantissa.
//
// GNN_CUDA_FAIL has calls fail, like the driver's: cublasSgemm:3:13. gnn_cuda_calls counts them.
//
// Source of prototypes, values and rules: NVIDIA, cuBLAS, "Using the cuBLAS API".
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace {

typedef int status;

const status ok = 0, notInitialized = 1, invalidValue = 7, executionFailed = 13;

// Values of cublasMath_t that are used here.
const int defaultMath = 0, tf32Math = 3, maths = 4;

const int majorVersion = 12, minorVersion = 9, patchLevel = 1;

const uint64_t alignment = 256;  // of a workspace

struct library {
  uint64_t mark;  // tells a handle from other pointers
  uint64_t stream, workspace;
  int math, atomics;
};

const uint64_t live = 0x6375626c6173;

std::atomic<int> products[maths];

// A function of driver.cc, or null.
template <class F>
F* find(const char* name) {
  return (F*)dlsym(RTLD_DEFAULT, name);
}

// begin counts a call. It returns a status other than 0 if the call is to fail with that status.
status begin(const char* name) {
  auto f = find<int(const char*)>("gnn_begin");
  int code = f ? f(name) : notInitialized;
  if (code < 100) return code;  // also what GNN_CUDA_FAIL orders
  return code == 201 ? notInitialized : executionFailed;
}

bool reachable(uint64_t at, uint64_t bytes) {
  auto f = find<int(uint64_t, uint64_t)>("gnn_reachable");
  return f && f(at, bytes) == 0;
}

status refuse(const char* why) {
  fprintf(stderr, "libcublas of the host: %s\n", why);
  return executionFailed;
}

// A product computes c = alpha·op(a)·op(b) + beta·c. Matrices lie column by column: op(a) is m × k,
// op(b) k × n, c m × n.
struct product {
  bool transA, transB, rounded;
  int64_t m, n, k, lda, ldb, ldc;
  float alpha, beta;
  const float *a, *b;
  float* c;
};

// tf32 rounds to the nearest number with 10 bits of mantissa.
float tf32(float v) {
  uint32_t bits;
  memcpy(&bits, &v, 4);
  if ((bits & 0x7f800000) == 0x7f800000) return v;
  bits = (bits + 0x1000) & ~0x1fffu;
  memcpy(&v, &bits, 4);
  return v;
}

int run(void* with) {
  const product& p = *(const product*)with;
  auto take = [&](float v) { return p.rounded ? tf32(v) : v; };
  std::vector<float> a((size_t)(p.m * p.k)), column((size_t)p.m);  // op(a), column by column
  for (int64_t l = 0; l < p.k; l++) {
    for (int64_t i = 0; i < p.m; i++) a[l * p.m + i] = take(p.transA ? p.a[i * p.lda + l] : p.a[l * p.lda + i]);
  }
  for (int64_t j = 0; j < p.n; j++) {
    std::fill(column.begin(), column.end(), 0.0f);
    for (int64_t l = 0; l < p.k; l++) {
      float v = take(p.transB ? p.b[l * p.ldb + j] : p.b[j * p.ldb + l]);
      const float* from = a.data() + l * p.m;
      for (int64_t i = 0; i < p.m; i++) column[i] += from[i] * v;
    }
    float* to = p.c + j * p.ldc;
    for (int64_t i = 0; i < p.m; i++) {
      to[i] = p.alpha * column[i] + (p.beta == 0 ? 0.0f : p.beta * to[i]);  // 0: c is not read
    }
  }
  return 0;
}

void drop(void* with) { delete (product*)with; }

// extent returns the bytes from the first element of a matrix to behind its last.
uint64_t extent(int64_t rows, int64_t cols, int64_t ld) {
  return rows == 0 || cols == 0 ? 0 : 4 * (uint64_t)((cols - 1) * ld + rows);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default"))) status

#define CALL(name)                      \
  if (status s = begin(name)) return s; \
  if (!l || l->mark != live) return notInitialized

// gnn_cublas_products returns how many products were queued in a math mode.
EXPORT gnn_cublas_products(int math) { return math >= 0 && math < maths ? products[math].load() : 0; }

EXPORT cublasGetProperty(int type, int* out) {
  const int values[] = {majorVersion, minorVersion, patchLevel};
  if (type < 0 || type > 2 || !out) return invalidValue;
  *out = values[type];
  return ok;
}

EXPORT cublasCreate_v2(library** out) {
  if (status s = begin("cublasCreate")) return s;
  if (!out) return invalidValue;
  *out = new library{live, 0, 0, defaultMath, 0};
  return ok;
}

EXPORT cublasDestroy_v2(library* l) {
  CALL("cublasDestroy");
  l->mark = 0;
  delete l;
  return ok;
}

// The stream of a handle. The workspace is the library's own again.
EXPORT cublasSetStream_v2(library* l, uint64_t stream) {
  CALL("cublasSetStream");
  l->stream = stream;
  l->workspace = 0;
  return ok;
}

EXPORT cublasSetWorkspace_v2(library* l, uint64_t at, size_t bytes) {
  CALL("cublasSetWorkspace");
  if (at == 0 || at % alignment != 0) return invalidValue;
  if (!reachable(at, bytes)) return refuse("the workspace is no memory of the device");
  l->workspace = at;
  return ok;
}

EXPORT cublasSetMathMode(library* l, int mode) {
  CALL("cublasSetMathMode");
  if (mode < 0 || mode >= maths) return invalidValue;
  l->math = mode;
  return ok;
}

EXPORT cublasSetAtomicsMode(library* l, int mode) {
  CALL("cublasSetAtomicsMode");
  l->atomics = mode;
  return ok;
}

EXPORT cublasSgemm_v2(library* l, int transA, int transB, int m, int n, int k, const float* alpha, const float* a,
                      int lda, const float* b, int ldb, const float* beta, float* c, int ldc) {
  CALL("cublasSgemm");
  if (transA < 0 || transA > 2 || transB < 0 || transB > 2 || m < 0 || n < 0 || k < 0) return invalidValue;
  if (lda < (transA ? k : m) || ldb < (transB ? n : k) || ldc < m || lda < 1 || ldb < 1 || ldc < 1) return invalidValue;
  if (l->workspace == 0) return refuse("a product without a workspace of the caller");
  if (l->atomics != 0) return refuse("a product with atomics allowed");
  bool there = reachable((uint64_t)a, transA ? extent(k, m, lda) : extent(m, k, lda)) &&
               reachable((uint64_t)b, transB ? extent(n, k, ldb) : extent(k, n, ldb)) &&
               reachable((uint64_t)c, extent(m, n, ldc));
  if (!there) return refuse("a matrix does not lie in memory of the device");
  if (m == 0 || n == 0) return ok;
  products[l->math]++;
  auto p = new product{transA != 0, transB != 0, l->math == tf32Math, m, n, k, lda, ldb, ldc, *alpha, *beta, a, b, c};
  auto enqueue = find<int(uint64_t, int (*)(void*), void (*)(void*), void*)>("gnn_enqueue");
  return enqueue && enqueue(l->stream, run, drop, p) == 0 ? ok : executionFailed;
}
