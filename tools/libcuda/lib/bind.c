// Leads the jumps of libcuda.a to a driver: see ../main.go.
#include <dlfcn.h>

__attribute__((visibility("hidden"))) int gnnstore_cuda_no_driver(void) { return 100; }
static int not_found(void) { return 500; }

static const char *const names[] = {
#include "names.h"
};

extern __attribute__((visibility("hidden"))) void *gnnstore_cuda_jumps[];

// gnnstore_cuda_bind leads every jump to the function of its name in library, which dlopen
// returned. No other thread may be in a jump.
void gnnstore_cuda_bind(void *library) {
	for (unsigned long i = 0; i < sizeof names / sizeof *names; i++) {
		void *function = dlsym(library, names[i]);
		gnnstore_cuda_jumps[i] = function ? function : (void *)not_found;
	}
}

int cuInit(unsigned int flags) {
	(void)flags;
	return 0;
}
