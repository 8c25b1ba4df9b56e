// Ptx compiles the kernels of the CUDA backend, kernels/cuda/src, to PTX. It also writes a MANIFEST
// of their sources and contents, and the table by which kernels/cuda/clib finds the kernels when
// they are compiled for a host:
//
//	go run ./tools/ptx [-root DIR]
//
// It needs clang-19 and no part of CUDA. It writes nothing if a kernel has something that kernels
// may not have: local memory, an atomic operation on floats, an approximation, or a call.
//
//	go run ./tools/ptx -assemble PTXAS [-root DIR]
//
// has NVIDIA's assembler take the committed files for sm_80, sm_90 and sm_100, and prints the
// registers of each kernel. It fails if one spills. The assembler is in the package
// nvidia-cuda-nvcc-cu12 (12.9) or nvidia-cuda-nvcc (13) of PyPI.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", ".", "the repository's `directory`")
	assembler := flag.String("assemble", "", "have this `ptxas` take the committed files")
	flag.Parse()
	run := func() error { return generate(*root) }
	if *assembler != "" {
		run = func() error { return assemble(os.Stdout, *root, *assembler) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "ptx:", err)
		os.Exit(1)
	}
}
