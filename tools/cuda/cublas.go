//go:build cuda && linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/ebitengine/purego"
)

// cublas multiplies matrices with NVIDIA's library, on one stream and with a fixed workspace.
type cublas struct {
	symbols     map[string]symbol
	handle      uintptr
	alpha, beta []float32 // 1 and 0, off the heap
}

// The constants of cublas_api.h and library_types.h.
const (
	transposed      = 1
	straight        = 0
	real32          = 0  // CUDA_R_32F
	compute32       = 68 // CUBLAS_COMPUTE_32F
	computeFastTF32 = 77 // CUBLAS_COMPUTE_32F_FAST_TF32
	defaultAlgo     = ^uintptr(0)
)

// openCublas loads libcublasLt, and then libcublas, which needs it, from the same directory.
func openCublas(d *driver, dir string, s stream) (*cublas, error) {
	var handle uintptr
	for _, stem := range []string{"libcublasLt", "libcublas"} {
		file, err := newest(dir, stem)
		if err != nil {
			return nil, err
		}
		handle, err = purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			return nil, fmt.Errorf("loading cuBLAS: %w", err)
		}
		fmt.Println("loaded", file)
	}
	b := &cublas{symbols: map[string]symbol{}}
	for _, name := range []string{
		"cublasCreate_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2", "cublasSetMathMode",
		"cublasGetVersion_v2", "cublasSgemm_v2", "cublasGemmEx",
	} {
		at, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("cuBLAS lacks a function: %w", err)
		}
		b.symbols[name] = symbol(at)
	}
	a := newArena(4096)
	b.alpha, b.beta = cast[float32](a.take(4)), cast[float32](a.take(4))
	b.alpha[0] = 1
	out, version := a.longs(1), a.words(1)
	const workspace = 32 << 20
	if c := b.symbols["cublasCreate_v2"].call(at(out)); c != success {
		return nil, fmt.Errorf("cublasCreate: status %d", c)
	}
	b.handle = uintptr(out[0])
	calls := []struct {
		name string
		args []uintptr
	}{
		{"cublasSetStream_v2", []uintptr{uintptr(s)}},
		{"cublasSetWorkspace_v2", []uintptr{uintptr(d.alloc(workspace)), workspace}},
		{"cublasSetMathMode", []uintptr{0}},
		{"cublasGetVersion_v2", []uintptr{at(version)}},
	}
	for _, call := range calls {
		args := append([]uintptr{b.handle}, call.args...)
		if c := b.symbols[call.name].call(args...); c != success {
			return nil, fmt.Errorf("%s: status %d", call.name, c)
		}
	}
	fmt.Println("cuBLAS version", version[0])
	return b, nil
}

// newest returns the library file in dir with the highest number in its name.
func newest(dir, stem string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, stem+".so.*"))
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", errors.New(dir + " holds no " + stem + ".so.*")
	}
	return slices.MaxFunc(files, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	}), nil
}

// multiply sets c (m × n) to a (m × k) times the transpose of bm (n × k). All are stored row by
// row. cuBLAS takes matrices column by column, so to cuBLAS the result is the transpose of c.
func (b *cublas) multiply(c, a, bm address, m, n, k int, compute uintptr) error {
	status := b.symbols["cublasGemmEx"].call(b.handle, transposed, straight, uintptr(n), uintptr(m),
		uintptr(k), at(b.alpha), uintptr(bm), real32, uintptr(k), uintptr(a), real32, uintptr(k),
		at(b.beta), uintptr(c), real32, uintptr(n), compute, defaultAlgo)
	if status != success {
		return fmt.Errorf("cublasGemmEx: status %d", status)
	}
	return nil
}

// multiplyPlain is multiply with cublasSgemm.
func (b *cublas) multiplyPlain(c, a, bm address, m, n, k int) error {
	status := b.symbols["cublasSgemm_v2"].call(b.handle, transposed, straight, uintptr(n), uintptr(m),
		uintptr(k), at(b.alpha), uintptr(bm), uintptr(k), uintptr(a), uintptr(k), at(b.beta),
		uintptr(c), uintptr(n))
	if status != success {
		return fmt.Errorf("cublasSgemm: status %d", status)
	}
	return nil
}
