// Cuda tests, on a machine with an NVIDIA GPU, the assumptions that kernels/cuda was built on:
// contexts on many threads, PTX made by clang, packed parameters, page-locked memory, the order of
// events, and the speed of the first kernels. It is built with the tag cuda, and without cgo:
//
//	CGO_ENABLED=0 go build -tags cuda -trimpath -ldflags="-s -w" -o .gpu/look ./tools/cuda
//	bash tools/cuda/look.sh .gpu/look
//
// Each stage is a subcommand, since an error of a kernel ends the context of its process:
//
//	look [-library FILE] [-small] [-cublas DIR] device | contexts | load | pack | errors |
//	                                            illegal | memory | order | kernels | speed
//
// A stage prints lines of figures. It exits 1 if something failed: at once after a call that the
// driver refused, and at its end after wrong results. Start at [driver], the calls of libcuda; then
// [module] has the kernels and the packing of their parameters. Memory that the driver reads or
// writes lies off the Go heap, in an [arena].
//
// pyg.py times a training step in PyTorch Geometric, and pyg_loader.py training with its loader.
package main

//go:generate sh compile.sh
