// Cuda asks a machine with an NVIDIA GPU what the CUDA backend relies on, before that backend is
// written: contexts on many threads, PTX made by clang, packed parameters, page-locked memory, the
// order of events, and the speed of the first kernels. It is built with the tag cuda, and without
// cgo:
//
//	CGO_ENABLED=0 go build -tags cuda -trimpath -ldflags="-s -w" -o .gpu/look ./tools/cuda
//	bash tools/cuda/look.sh .gpu/look
//
// Each stage is a subcommand, since an error of a kernel ends the context of its process:
//
//	look [-small] [-cublas DIR] device | contexts | load | pack | errors | illegal | memory |
//	                            order | kernels | speed
//
// A stage prints lines of figures and exits 1 at the first failure. Start at [driver], the calls of
// libcuda, then [module] for the kernels and how their parameters are packed. What the driver may
// read or write lies off the Go heap, in an [arena].
//
// pyg.py times the same step in PyTorch Geometric.
package main

//go:generate sh compile.sh
