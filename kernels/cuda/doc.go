//go:build cuda && linux

// Package cuda is the kernels.Backend of NVIDIA's GPUs. It needs the driver, libcuda.so.1, and
// nothing of the toolkit: the kernels are embedded as PTX, which the driver compiles. Where cuBLAS
// is installed, MatMul and Affine take their products from it: see cublas.go.
//
// Two types to know. A [Backend] has the primary context of a GPU, two streams, the kernels, and
// the memory that it has allocated. Its operations launch kernels on the compute stream and return;
// its uploads go through page-locked memory on the copy stream. A buffer remembers the last
// operation and the last upload that touch it, so that each waits for the other on the device. The
// host waits only in downloads and for a Mark.
//
// Memory: freed buffers are kept, since giving memory back waits for the device, and are reused by
// later ones. What the driver reads or writes after a call has returned lies outside the Go heap.
// Memory of others is page-locked by LockMemory, and GatherHost has a kernel read rows of it on the
// copy stream. Close gives everything back.
//
// Concurrency is as kernels.Backend has it: one goroutine computes, any may upload beside it.
//
// An id or a label out of range is found by the kernel. The panic comes with the next download, or
// with the wait of a Mark, and what the operation has computed is undefined. A call that the driver
// refuses panics with a *kernels.DeviceError.
//
// Start reading at [Open], then memory.go.
//
// # Why not
//
// cuBLASLt adds a bias and a ReLU in the launch of the product. But it chooses an algorithm for
// each shape, and the shapes of sampled blocks differ from step to step.
package cuda
