/*
 * gorgonia.org/cu v0.9.6 is written for the headers of CUDA 12. Those of CUDA 13 give five functions
 * another prototype under their old name. Their old symbols are still in the driver: this header
 * declares them by the old prototypes. Its folder comes before NVIDIA's in the list of folders.
 */
#include_next <cuda.h>

#if CUDA_VERSION >= 13000
#undef cuCtxCreate
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *, unsigned int, CUdevice);
#define cuCtxCreate cuCtxCreate_v2

#undef cuMemAdvise
CUresult CUDAAPI gnnstore_cuMemAdvise(CUdeviceptr, size_t, CUmem_advise, CUdevice) __asm__("cuMemAdvise");
#define cuMemAdvise gnnstore_cuMemAdvise

#undef cuMemPrefetchAsync
CUresult CUDAAPI gnnstore_cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream) __asm__("cuMemPrefetchAsync");
#define cuMemPrefetchAsync gnnstore_cuMemPrefetchAsync

#undef cuGraphAddDependencies
CUresult CUDAAPI gnnstore_cuGraphAddDependencies(CUgraph, const CUgraphNode *, const CUgraphNode *, size_t)
	__asm__("cuGraphAddDependencies");
#define cuGraphAddDependencies gnnstore_cuGraphAddDependencies

#undef cuGraphGetEdges
CUresult CUDAAPI gnnstore_cuGraphGetEdges(CUgraph, CUgraphNode *, CUgraphNode *, size_t *) __asm__("cuGraphGetEdges");
#define cuGraphGetEdges gnnstore_cuGraphGetEdges
#endif
