// A libcuda.so.1 for tests of the calls, without a GPU. It is built into a temporary folder:
//
//	cc -shared -fPIC -pthread -o libcuda.so.1 fake.c
//
// Every call writes its name and its arguments, as C has them, to a record of the thread, which
// fake_last returns. With fake_echo(1) a call does nothing else, and its results are constants
// that a test compares. Otherwise device memory is memory of the host, work is done before a call
// returns, and a call that wants a context returns 201 on a thread without one. A launch on a
// stream of another context returns 400.
//
// -DcuInit=other leaves out cuInit, and so on.
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t result;
typedef uint64_t address;

enum { INVALID = 1, NO_MEMORY = 2, UNINITIALIZED = 3, NO_DEVICE = 100, BAD_DEVICE = 101, NO_CONTEXT = 201,
       BAD_PTX = 218, NEW_PTX = 222, BAD_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600 };

static __thread struct { const char *name; int n; uint64_t arg[20]; } last;
static __thread void *current;
static char primary[8]; // a device each; a stream has the address of its own
static _Atomic int echo, initialised, retained, devices = 1, version = 13000;
static _Atomic long countdown = -1, launches, lost, calls;
static _Atomic uint32_t code_at_end;

static void record(const char *name, int n, ...) {
	last.name = name;
	last.n = n;
	va_list list;
	va_start(list, n);
	for (int i = 0; i < n; i++) last.arg[i] = va_arg(list, uint64_t);
	va_end(list);
}

// planned returns the code of the n-th call, if this is it.
static uint32_t planned(void) {
	calls++;
	if (countdown < 0) return 0;
	return atomic_fetch_sub(&countdown, 1) == 0 ? code_at_end : 0;
}

// A widens an argument from the type that the function declares. It does not see the bits above the
// argument in its register.
#define A(x) ((uint64_t)(x))
#define NAME(name, ...) record(name, __VA_ARGS__)
#define CHECK do { uint32_t r_ = planned(); if (r_) return r_; } while (0)
#define ECHO(stmt) do { if (echo) { stmt; return 0; } } while (0)
#define READY do { if (!initialised) return UNINITIALIZED; } while (0)
#define CTX do { READY; if (!current) { lost++; return NO_CONTEXT; } } while (0)

// Controls.
int fake_last(char *name, uint64_t *arg) {
	strcpy(name, last.name ? last.name : "");
	memcpy(arg, last.arg, sizeof last.arg);
	return last.n;
}
int fake_echo(int on) { echo = on; return 0; }
int fake_version(int v) { version = v; return 0; }
int fake_devices(int n) { devices = n; return 0; } // at most 8
int fake_fail(long n, uint32_t code) { code_at_end = code; countdown = n; return 0; } // n calls pass before
int fake_counts(long *out) { out[0] = launches; out[1] = lost; out[2] = retained; out[3] = calls; return 0; }
int fake_reset(void) {
	current = 0; echo = 0; initialised = 0; retained = 0; devices = 1; version = 13000; countdown = -1; launches = lost = calls = 0;
	return 0;
}

result cuInit(uint32_t flags) {
	NAME("cuInit", 1, A(flags)); CHECK; ECHO();
	if (flags) return INVALID;
	if (!devices) return NO_DEVICE;
	initialised = 1;
	return 0;
}
result cuDriverGetVersion(int *v) { NAME("cuDriverGetVersion", 0); CHECK; *v = version; return 0; }
result cuDeviceGetCount(int *n) { NAME("cuDeviceGetCount", 0); CHECK; ECHO(*n = 0x1234567); READY; *n = devices; return 0; }
result cuDeviceGet(int *d, int ordinal) {
	NAME("cuDeviceGet", 1, A(ordinal)); CHECK; ECHO(*d = 0x2345678); READY;
	if (ordinal < 0 || ordinal >= devices) return BAD_DEVICE;
	*d = ordinal;
	return 0;
}
result cuDeviceGetName(char *name, int len, int d) {
	NAME("cuDeviceGetName", 2, A(len), A(d)); CHECK; if (!echo) READY;
	snprintf(name, len, "Fake GPU %d", d);
	return 0;
}
result cuDeviceGetAttribute(int *v, int attribute, int d) {
	NAME("cuDeviceGetAttribute", 2, A(attribute), A(d)); CHECK; ECHO(*v = -7); READY;
	*v = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute;
	return 0;
}
result cuDeviceTotalMem_v2(size_t *n, int d) {
	NAME("cuDeviceTotalMem", 1, A(d)); CHECK; ECHO(*n = 0x1122334455667788); READY;
	*n = (size_t)80 << 30;
	return 0;
}
static result uuid(unsigned char *b, int d) {
	NAME("cuDeviceGetUuid", 1, A(d)); CHECK;
	for (int i = 0; i < 16; i++) b[i] = 0xf0 - i;
	return 0;
}
result cuDeviceGetUuid(unsigned char *b, int d) { return uuid(b, d); }
result cuDeviceGetUuid_v2(unsigned char *b, int d) { return uuid(b, d); }

result cuDevicePrimaryCtxRetain(void **c, int d) {
	NAME("cuDevicePrimaryCtxRetain", 1, A(d)); CHECK; ECHO(*c = (void *)0x1020304050607080); READY;
	retained++;
	*c = &primary[d];
	return 0;
}
result cuDevicePrimaryCtxRelease_v2(int d) { NAME("cuDevicePrimaryCtxRelease", 1, A(d)); CHECK; ECHO(); READY; retained--; return 0; }
result cuCtxSetCurrent(void *c) {
	NAME("cuCtxSetCurrent", 1, A(c)); CHECK; ECHO(); READY;
	if (c && ((char *)c < primary || (char *)c >= primary + devices)) return NO_CONTEXT;
	current = c;
	return 0;
}
result cuCtxGetCurrent(void **c) { NAME("cuCtxGetCurrent", 0); CHECK; ECHO(*c = (void *)0x1121314151617181); READY; *c = current; return 0; }
result cuCtxSynchronize(void) { NAME("cuCtxSynchronize", 0); CHECK; ECHO(); CTX; return 0; }

result cuMemAlloc_v2(address *p, size_t n) {
	NAME("cuMemAlloc", 1, A(n)); CHECK; ECHO(*p = 0x7f01020304050607); CTX;
	void *q = 0;
	if (!n) return INVALID;
	if (n > (size_t)1 << 32 || posix_memalign(&q, 256, n)) return NO_MEMORY;
	*p = (address)q;
	return 0;
}
result cuMemFree_v2(address p) { NAME("cuMemFree", 1, A(p)); CHECK; ECHO(); CTX; free((void *)p); return 0; }
result cuMemGetInfo_v2(size_t *free, size_t *total) {
	NAME("cuMemGetInfo", 0); CHECK; ECHO((*free = 0x0102030405060708, *total = 0x1112131415161718)); CTX;
	*free = (size_t)79 << 30;
	*total = (size_t)80 << 30;
	return 0;
}
result cuMemHostAlloc(void **p, size_t n, uint32_t flags) {
	NAME("cuMemHostAlloc", 2, A(n), A(flags)); CHECK; ECHO(*p = (void *)0x7172737475767778); CTX;
	return posix_memalign(p, 4096, n) ? NO_MEMORY : 0;
}
result cuMemFreeHost(void *p) { NAME("cuMemFreeHost", 1, A(p)); CHECK; ECHO(); CTX; free(p); return 0; }
result cuMemHostRegister_v2(void *p, size_t n, uint32_t flags) {
	NAME("cuMemHostRegister", 3, A(p), A(n), A(flags)); CHECK; ECHO(); CTX;
	return 0;
}
result cuMemHostUnregister(void *p) { NAME("cuMemHostUnregister", 1, A(p)); CHECK; ECHO(); CTX; return 0; }
result cuMemHostGetDevicePointer_v2(address *d, void *p, uint32_t flags) {
	NAME("cuMemHostGetDevicePointer", 2, A(p), A(flags)); CHECK; ECHO(*d = 0x0807060504030201); CTX;
	*d = (address)p;
	return 0;
}
result cuMemcpyHtoDAsync_v2(address d, const void *s, size_t n, void *stream) {
	NAME("cuMemcpyHtoDAsync", 4, A(d), A(s), A(n), A(stream)); CHECK; ECHO(); CTX;
	memcpy((void *)d, s, n);
	return 0;
}
result cuMemcpyDtoHAsync_v2(void *d, address s, size_t n, void *stream) {
	NAME("cuMemcpyDtoHAsync", 4, A(d), A(s), A(n), A(stream)); CHECK; ECHO(); CTX;
	memcpy(d, (void *)s, n);
	return 0;
}
result cuMemcpyDtoDAsync_v2(address d, address s, size_t n, void *stream) {
	NAME("cuMemcpyDtoDAsync", 4, A(d), A(s), A(n), A(stream)); CHECK; ECHO(); CTX;
	memmove((void *)d, (void *)s, n);
	return 0;
}
result cuMemsetD8Async(address d, unsigned char v, size_t n, void *stream) {
	NAME("cuMemsetD8Async", 4, A(d), A(v), A(n), A(stream)); CHECK; ECHO(); CTX;
	memset((void *)d, v, n);
	return 0;
}
result cuMemsetD32Async(address d, uint32_t v, size_t n, void *stream) {
	NAME("cuMemsetD32Async", 4, A(d), A(v), A(n), A(stream)); CHECK; ECHO(); CTX;
	for (size_t i = 0; i < n; i++) ((uint32_t *)d)[i] = v;
	return 0;
}

result cuStreamCreate(void **s, uint32_t flags) {
	NAME("cuStreamCreate", 1, A(flags)); CHECK; ECHO(*s = (void *)0x5152535455565758); CTX;
	*s = malloc(sizeof current);
	*(void **)*s = current;
	return 0;
}
result cuStreamDestroy_v2(void *s) { NAME("cuStreamDestroy", 1, A(s)); CHECK; ECHO(); CTX; free(s); return 0; }
result cuStreamSynchronize(void *s) { NAME("cuStreamSynchronize", 1, A(s)); CHECK; ECHO(); CTX; return 0; }
result cuStreamQuery(void *s) { NAME("cuStreamQuery", 1, A(s)); CHECK; ECHO(); CTX; return 0; }
result cuStreamWaitEvent(void *s, void *e, uint32_t flags) {
	NAME("cuStreamWaitEvent", 3, A(s), A(e), A(flags)); CHECK; ECHO(); CTX;
	return 0;
}
result cuEventCreate(void **e, uint32_t flags) {
	NAME("cuEventCreate", 1, A(flags)); CHECK; ECHO(*e = (void *)0x6162636465666768); CTX;
	*e = malloc(1);
	return 0;
}
result cuEventDestroy_v2(void *e) { NAME("cuEventDestroy", 1, A(e)); CHECK; ECHO(); CTX; free(e); return 0; }
result cuEventRecord(void *e, void *s) { NAME("cuEventRecord", 2, A(e), A(s)); CHECK; ECHO(); CTX; return 0; }
result cuEventSynchronize(void *e) { NAME("cuEventSynchronize", 1, A(e)); CHECK; ECHO(); CTX; return 0; }
result cuEventQuery(void *e) { NAME("cuEventQuery", 1, A(e)); CHECK; ECHO(); CTX; return 0; }
static result elapsed(float *ms, void *start, void *end) {
	NAME("cuEventElapsedTime", 2, A(start), A(end)); CHECK; ECHO(*ms = 1.5f); CTX;
	*ms = 0.25f;
	return 0;
}
result cuEventElapsedTime(float *ms, void *start, void *end) { return elapsed(ms, start, end); }
result cuEventElapsedTime_v2(float *ms, void *start, void *end) { return elapsed(ms, start, end); }

// A module is PTX of version 9.0 at most. Functions are known by their address in names.
static const char *names[] = {"scale", "nothing"};
result cuModuleLoadDataEx(void **m, const void *image, uint32_t n, int *option, void **value) {
	NAME("cuModuleLoadDataEx", 5, A(n), A(option[0]), A(option[1]), A(option[2]), A(option[3])); CHECK;
	if (n != 4 || option[0] != 3 || option[1] != 4 || option[2] != 5 || option[3] != 6) return INVALID;
	size_t info = (uint32_t)(uintptr_t)value[1], errors = (uint32_t)(uintptr_t)value[3];
	if (info < 4096 || errors < 4096) return INVALID;
	ECHO((*m = (void *)0x4142434445464748, strcpy(value[0], "compiled")));
	CTX;
	int major = 0, minor = 0;
	const char *at = strstr(image, ".version");
	if (!at || sscanf(at, ".version %d.%d", &major, &minor) != 2 || strstr(image, "nonsense")) {
		snprintf(value[2], errors, "ptxas application ptx input, line 4; fatal   : Parsing error near 'nonsense'");
		return BAD_PTX;
	}
	if (major * 10 + minor > 90) {
		snprintf(value[2], errors, "ptxas application ptx input, line 1; fatal   : Unsupported .version %d.%d; current version is '9.0'", major, minor);
		return NEW_PTX;
	}
	snprintf(value[0], info, "%zu bytes", strlen(image));
	*m = malloc(1);
	return 0;
}
result cuModuleUnload(void *m) { NAME("cuModuleUnload", 1, A(m)); CHECK; ECHO(); CTX; free(m); return 0; }
result cuModuleGetFunction(void **f, void *m, const char *name) {
	NAME("cuModuleGetFunction", 1, A(m)); CHECK;
	if (echo) { *f = (void *)0x3132333435363738; return strcmp(name, "gather_mean") ? NOT_FOUND : 0; }
	CTX;
	for (int i = 0; i < 2; i++)
		if (!strcmp(name, names[i])) { *f = (void *)names[i]; return 0; }
	return NOT_FOUND;
}
result cuFuncGetAttribute(int *v, int attribute, void *f) {
	NAME("cuFuncGetAttribute", 2, A(attribute), A(f)); CHECK; ECHO(*v = 0x3456789); CTX;
	*v = attribute == 0 ? 1024 : 32;
	return 0;
}
result cuFuncSetAttribute(void *f, int attribute, int v) {
	NAME("cuFuncSetAttribute", 3, A(f), A(attribute), A(v)); CHECK; ECHO(); CTX;
	return 0;
}
result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, void *f, int threads, size_t shared) {
	NAME("cuOccupancyMaxActiveBlocksPerMultiprocessor", 3, A(f), A(threads), A(shared)); CHECK; ECHO(*n = 0x4567891); CTX;
	*n = 8;
	return 0;
}

// The kernel scale: x[i] *= s for i < n, by parameters of 8, 4 and 4 bytes.
result cuLaunchKernel(void *f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz,
                      uint32_t shared, void *stream, void **params, void **extra) {
	NAME("cuLaunchKernel", 10, A(f), A(gx), A(gy), A(gz), A(bx), A(by), A(bz), A(shared), A(stream), A(params)); CHECK;
	if (extra && (extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4])) return INVALID;
	size_t size = extra ? *(size_t *)extra[3] : 0;
	const char *packed = extra ? extra[1] : 0;
	ECHO((last.n = 12, last.arg[10] = size, last.arg[11] = size ? *(uint64_t *)packed : 0));
	CTX;
	if (stream && *(void **)stream != current) { lost++; return BAD_HANDLE; }
	if (f == names[1]) { launches++; return size ? 701 : 0; }
	if (f != names[0]) return BAD_HANDLE;
	if (size != 16) return 701;
	float *x, s;
	uint32_t n;
	memcpy(&x, packed, 8); memcpy(&s, packed + 8, 4); memcpy(&n, packed + 12, 4);
	for (uint32_t i = 0; i < n; i++) x[i] *= s;
	launches++;
	return 0;
}

static const struct { result code; const char *name, *text; } words[] = {
	{0, "CUDA_SUCCESS", "no error"}, {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}, {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"}, {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
	{222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
	{500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"}, {600, "CUDA_ERROR_NOT_READY", "device not ready"},
	{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
};
static result word(result code, const char **out, int text) {
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (words[i].code == code) { *out = text ? words[i].text : words[i].name; return 0; }
	*out = 0;
	return INVALID;
}
result cuGetErrorName(result code, const char **out) { return word(code, out, 0); }
result cuGetErrorString(result code, const char **out) { return word(code, out, 1); }

// A function with the 19 parameters of cublasGemmEx.
int fake_nineteen(void *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int at, int lda,
                  const void *b, int bt, int ldb, const void *beta, void *c, int ct, int ldc, int compute, int algo) {
	NAME("fake_nineteen", 19, A(h), A(ta), A(tb), A(m), A(n), A(k), A(alpha), A(a), A(at), A(lda), A(b), A(bt), A(ldb),
	     A(beta), A(c), A(ct), A(ldc), A(compute), A(algo));
	return -13;
}
