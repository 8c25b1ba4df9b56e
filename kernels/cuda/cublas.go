//go:build cuda && linux

package cuda

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// Values of Options.Products.
const (
	OwnProducts    = "own"    // by kernels of this package
	CublasProducts = "cublas" // by cuBLAS, or Open fails
)

// A multiplier is a library that multiplies matrices, on the compute stream.
type multiplier interface {
	// multiply computes dst = op(x)·op(y), or adds that to dst. dst is m × n, of k terms each, and
	// all are row-major. op transposes if asked.
	multiply(dst, x, y operand, m, n, k int, transX, transY, adds bool) error
}

// cublas is NVIDIA's library of products, with a handle. A context is current in each call.
//
// The same product gives the same bits in each run: there is one stream, atomics are not allowed,
// and the workspace is ours. NVIDIA promises that for one version of the library, and GPUs of one
// architecture with equally many multiprocessors (cuBLAS, "Results Reproducibility").
type cublas struct {
	file    string // as it was opened
	version string // "12.9.1"
	calls   map[string]driver.Symbol
	handle  uintptr
	words   *cublasWords // outside the Go heap
	memory  []byte       // of words
}

// cublasWords has what cuBLAS reads or writes by address.
type cublasWords struct {
	handle    uint64
	number    int32
	zero, one float32
}

// Values of cublas_api.h and library_types.h.
const (
	cublasNormal, cublasTransposed    = 0, 1 // cublasOperation_t
	cublasDefaultMath, cublasTF32Math = 0, 3 // cublasMath_t
	cublasNoAtomics                   = 0    // cublasAtomicsMode_t
	cublasMajorMinorPatch             = 3    // libraryPropertyType has these first
)

// workspaceBytes is NVIDIA's recommendation for sm_90, and eight times the one for earlier GPUs
// (cuBLAS, cublasSetWorkspace).
const workspaceBytes = 32 << 20

// cublasVersions are tried in this order.
var cublasVersions = []string{"13", "12", "11"}

var cublasFunctions = []string{
	"cublasGetProperty", "cublasCreate_v2", "cublasDestroy_v2", "cublasSetStream_v2", "cublasSetWorkspace_v2",
	"cublasSetMathMode", "cublasSetAtomicsMode", "cublasSgemm_v2",
}

// CublasError is a call that cuBLAS refused.
type CublasError struct {
	Call   string // "cublasSgemm"
	Status int32  // a cublasStatus_t
}

var cublasStatus = map[int32]string{
	1:  "NOT_INITIALIZED",
	3:  "ALLOC_FAILED",
	7:  "INVALID_VALUE",
	8:  "ARCH_MISMATCH",
	11: "MAPPING_ERROR",
	13: "EXECUTION_FAILED",
	14: "INTERNAL_ERROR",
	15: "NOT_SUPPORTED",
	16: "LICENSE_ERROR",
}

func (e *CublasError) Error() string {
	s := fmt.Sprintf("%s: cuBLAS error %d", e.Call, e.Status)
	if name := cublasStatus[e.Status]; name != "" {
		s += " CUBLAS_STATUS_" + name
	}
	return s
}

// openCublas opens the newest cuBLAS that works here, and makes a handle. folder has its files; ""
// leaves it to the dynamic linker to find them. A context is current.
func openCublas(folder string) (*cublas, error) {
	var errs []error
	for _, version := range cublasVersions {
		l, err := loadCublas(folder, version)
		if err == nil {
			if err = l.create(); err == nil {
				return l, nil
			}
			err = fmt.Errorf("%s: %w", l.file, errors.Join(err, unix.Munmap(l.memory)))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, errs[0]
	}
	where := "is installed; name its folder by GNNSTORE_CUBLAS if it lies elsewhere"
	if folder != "" {
		where = "is in " + folder
	}
	return nil, fmt.Errorf("no libcublas.so.%s %s", strings.Join(cublasVersions, ", ."), where)
}

// loadCublas opens a version, and looks up its functions. The error is fs.ErrNotExist if it is not
// there.
func loadCublas(folder, version string) (*cublas, error) {
	l := &cublas{file: "libcublas.so." + version, calls: map[string]driver.Symbol{}}
	if folder != "" {
		name := l.file
		l.file = filepath.Join(folder, name)
		if _, err := os.Stat(l.file); err != nil {
			return nil, err
		}
		// The linker would look for the library below it in its own folders alone.
		below := filepath.Join(folder, "libcublasLt.so."+version)
		if _, err := os.Stat(below); err == nil {
			if _, err := driver.OpenLibrary(below); err != nil {
				return nil, err
			}
		}
	}
	library, err := driver.OpenLibrary(l.file)
	switch {
	case err != nil && strings.Contains(err.Error(), l.file+": cannot open shared object file"):
		return nil, fmt.Errorf("%w: %v", fs.ErrNotExist, err)
	case err != nil:
		return nil, err
	}
	for _, name := range cublasFunctions {
		if l.calls[name], err = library.Symbol(name); err != nil {
			return nil, fmt.Errorf("%s has no function %s", l.file, name)
		}
	}
	l.memory, err = unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("memory for the arguments of cuBLAS: %w", err)
	}
	l.words = (*cublasWords)(unsafe.Pointer(&l.memory[0]))
	l.words.one = 1
	return l, nil
}

func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// call calls a function, and looks at its status.
func (l *cublas) call(name string, args ...uintptr) error {
	if status := l.calls[name].Call(args...); status != 0 {
		return &CublasError{strings.TrimSuffix(name, "_v2"), status}
	}
	return nil
}

// create asks for the version and makes the handle.
func (l *cublas) create() error {
	var numbers []string
	for i := range uintptr(cublasMajorMinorPatch) {
		if err := l.call("cublasGetProperty", i, address(&l.words.number)); err != nil {
			return err
		}
		numbers = append(numbers, fmt.Sprint(l.words.number))
	}
	l.version = strings.Join(numbers, ".")
	if err := l.call("cublasCreate_v2", address(&l.words.handle)); err != nil {
		return err
	}
	l.handle = uintptr(l.words.handle)
	return nil
}

// set has products run on a stream, with this workspace. A stream comes first: it takes the
// workspace away (cuBLAS, cublasSetStream).
func (l *cublas) set(s driver.Stream, workspace operand, tf32 bool) error {
	math := uintptr(cublasDefaultMath)
	if tf32 {
		math = cublasTF32Math
	}
	for _, c := range []struct {
		name string
		args []uintptr
	}{
		{"cublasSetStream_v2", []uintptr{uintptr(s)}},
		{"cublasSetWorkspace_v2", []uintptr{uintptr(workspace.at), uintptr(workspace.bytes)}},
		{"cublasSetMathMode", []uintptr{math}},
		{"cublasSetAtomicsMode", []uintptr{cublasNoAtomics}},
	} {
		if err := l.call(c.name, append([]uintptr{l.handle}, c.args...)...); err != nil {
			return err
		}
	}
	return nil
}

// multiply implements multiplier. To cuBLAS, whose matrices lie column by column, a row-major
// matrix is its transpose: it computes dstᵀ = op(y)ᵀ·op(x)ᵀ.
func (l *cublas) multiply(dst, x, y operand, m, n, k int, transX, transY, adds bool) error {
	opX, opY, colsX, colsY, beta := cublasNormal, cublasNormal, k, n, &l.words.zero
	if transX {
		opX, colsX = cublasTransposed, m
	}
	if transY {
		opY, colsY = cublasTransposed, k
	}
	if adds {
		beta = &l.words.one
	}
	return l.call("cublasSgemm_v2", l.handle, uintptr(opY), uintptr(opX), uintptr(n), uintptr(m), uintptr(k),
		address(&l.words.one), uintptr(y.at), uintptr(colsY), uintptr(x.at), uintptr(colsX),
		address(beta), uintptr(dst.at), uintptr(n))
}

// close gives the handle back. The library stays open.
func (l *cublas) close() error {
	return errors.Join(l.call("cublasDestroy_v2", l.handle), unix.Munmap(l.memory))
}

// openProducts opens what computes products. A context is current.
func (b *Backend) openProducts(*driver.Calls) error {
	l, _, err := chooseProducts(b.options)
	if l == nil || err != nil {
		return err
	}
	b.cublas, b.library = l, l
	b.workspace = b.allocate("cuBLAS", workspaceBytes).whole()
	if err := l.set(b.compute, b.workspace, b.options.TF32); err != nil {
		return fmt.Errorf("%s: %w", l.file, err)
	}
	return nil
}

// chooseProducts returns cuBLAS, or why it is not used: why is for people.
func chooseProducts(o Options) (l *cublas, why string, err error) {
	switch {
	case !slices.Contains([]string{"", OwnProducts, CublasProducts}, o.Products):
		return nil, "", fmt.Errorf("products by %s: there are %s and %s", o.Products, OwnProducts, CublasProducts)
	case o.Products == OwnProducts:
		why = "it is switched off"
	case o.Products == "" && o.Calls != nil:
		why = "the driver is a test's"
	default:
		if l, err = openCublas(o.CublasFolder); err == nil {
			return l, "", nil
		}
		why = err.Error()
	}
	switch {
	case o.TF32:
		return nil, why, fmt.Errorf("%w: %s", kernels.ErrNoTF32, why)
	case o.Products == CublasProducts:
		return nil, why, fmt.Errorf("cuBLAS: %w", err)
	}
	return nil, why, nil
}

// describeProducts names what computes products, for people. A context is current.
func describeProducts(o Options) (string, error) {
	l, why, err := chooseProducts(o)
	switch {
	case err != nil:
		return "", err
	case l == nil:
		return "kernels of gnnstore; cuBLAS is not used: " + why, nil
	}
	return fmt.Sprintf("cuBLAS %s (%s)", l.version, l.file), l.close()
}

// byLibrary has the library compute a product: see product, whose parameters these are.
func (b *Backend) byLibrary(dst, x, y, bias operand, m, n, k int, transX, transY bool, flags int) {
	adds := flags&addsTo != 0 && !b.takesZero(dst)
	args := []any{dst, x, y}
	b.settleArgs(args)
	b.before(args)
	b.do(productName(transX, transY), func(*driver.Calls) error {
		return b.library.multiply(dst, x, y, m, n, k, transX, transY, adds)
	})
	b.counted.launches.Add(1)
	b.after(args)
	relu := flags&withMax != 0
	switch {
	case bias.at != 0 && relu:
		b.run(b.wide("add_row_relu", n%4 == 0, dst, bias), b.flat(m*n), dst, bias, m, n)
	case bias.at != 0:
		b.run(b.wide("add_row", n%4 == 0, dst, bias), b.flat(m*n), dst, bias, m, n)
	case relu:
		b.map1("relu", dst, dst, m*n)
	}
}

var cublasPlace atomic.Pointer[string]

// CublasOff is a place of cuBLAS that has products computed by our own kernels.
const CublasOff = "off"

// PlaceCublas tells backends that kernels.Open opens, and kernels.Info, where cuBLAS is: in a
// folder, such as site-packages/nvidia/cublas/lib of Python, where it has to be then; or CublasOff.
// "" leaves it to the dynamic linker to find cuBLAS, if it is there.
func PlaceCublas(place string) { cublasPlace.Store(&place) }

// placed returns the options of a place.
func placed() (o Options) {
	p := cublasPlace.Load()
	switch {
	case p == nil || *p == "":
	case *p == CublasOff:
		o.Products = OwnProducts
	default:
		o.Products, o.CublasFolder = CublasProducts, *p
	}
	return o
}
