// Package driver calls NVIDIA's driver, libcuda.so.1: the layer between the CUDA backend and C. It
// knows devices, memory, streams, events and launches, and nothing of graphs or tensors.
//
// [Calls] has a Go function for each C function that the backend uses. Start there. [Open] fills it
// from the library; a test may fill it with functions of its own. [GPU] is a device with its
// primary context, and [GPU.Do] makes calls with that context current. [ParamLists] reads from PTX
// how the parameters of each kernel lie in memory, and [Params] packs the arguments of a launch
// like that. A refused call returns an [*Error]; a library that is not there, or too old, an
// [*OpenError].
//
// Memory: the driver never keeps an address of the Go heap. Memory that it reads or writes after a
// call has returned (the host's end of a copy, registered memory) lies outside the heap: it is
// mapped, as kernels.HostBuf is, or comes from MemHostAlloc. Whoever allocated something frees it;
// nothing here has a finalizer.
//
// Concurrency: Calls and GPU are safe for concurrent use. Most calls need a context that is current
// on their thread, and fail with [ErrInvalidContext] without one: make them inside GPU.Do, which
// locks the thread and sets the context. A Params belongs to one goroutine at a time.
//
// # Providers
//
// Types, parameters and errors build everywhere, and Open under the tag cuda, on Linux. There are
// two providers, and [Table] lists what each takes for a call. Without further tags it is
// github.com/ebitengine/purego, which needs neither cgo nor headers nor a driver to build:
//
//	CGO_ENABLED=0 go build -tags cuda ./...
//
// With the tag gorgonia it is gorgonia.org/cu, by cgo, with C of our own for calls that it lacks.
// It needs NVIDIA's headers, which are not ours to distribute, and a libcuda.a that tools/libcuda
// writes. In the root of the repository:
//
//	pip download --no-deps -d DIR nvidia-cuda-runtime-cu12==12.9.79
//	unzip -d DIR DIR/nvidia_cuda_runtime_cu12-*.whl
//	go run ./tools/libcuda DIR
//	export CGO_LDFLAGS="-L DIR"
//	export CGO_CFLAGS="-I $PWD/kernels/cuda/driver/_cuda13 -I DIR/nvidia/cuda_runtime/include"
//	go build -tags cuda,gorgonia ./...
//
// DIR is an absolute path. The headers of CUDA 13, nvidia-cuda-runtime==13.5.37, lie in
// DIR/nvidia/cu13/include. They have new prototypes under five old names, and _cuda13 restores the
// old ones. With GNNSTORE_CUDA_HEADERS=DIR/nvidia/cuda_runtime/include, TestGorgonia does all this,
// and runs tests of this package and of package clib with that provider.
//
// Such a binary starts without a driver, and opens the library when Open is called, not before:
// that is why it links our libcuda.a, and not the stub of NVIDIA's toolkit. gorgonia.org/cu calls
// cuInit when the program starts, and ends the process if that fails.
//
// # Why not
//
// A worker goroutine that owns the thread with the context costs a switch for each call: 11 µs in a
// trial of gorgonia.org/cu's Ctx.Do on a fake driver. There, setting the context and launching take
// 0.23 µs by purego and 0.13 µs by gorgonia.org/cu (BenchmarkDo, AMD EPYC). On an H100 the launch
// itself takes 2.7 µs, and 160,000 launches of 8 goroutines that set it first lost no context
// (tools/results/gpu.md).
package driver
