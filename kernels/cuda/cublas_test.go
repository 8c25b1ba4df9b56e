//go:build cuda && linux

package cuda

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/clib"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

// cublasFolder is an environment variable: the folder of libcuda.so.1 and libcublas.so.12, in a
// process that runs a scenario of TestCublas.
const cublasFolder = "GNN_CUBLAS_TEST_FOLDER"

// A cublasScenario runs in a process of its own, since the library reads its settings once.
type cublasScenario struct {
	name string
	env  []string
	run  func(t *testing.T, o Options)
	says string // what the library writes to standard error
}

func conforms(run func(*testing.T, func() kernels.Backend)) func(t *testing.T, o Options) {
	return func(t *testing.T, o Options) {
		b, err := Open(o)
		require.NoError(t, err)
		require.Equal(t, "cuda+cublas-12.9.1", b.Name())
		run(t, func() kernels.Backend { return b })
		require.Positive(t, productsIn(t, o, cublasDefaultMath))
		require.Zero(t, productsIn(t, o, cublasTF32Math))
		require.NoError(t, b.Close())
	}
}

// failing opens a backend whose first call of that name is refused with 7.
func failing(call string) cublasScenario {
	run := func(t *testing.T, o Options) {
		_, err := Open(o)
		var refused *CublasError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, &CublasError{call, 7}, refused)
		require.ErrorContains(t, err, call+": cuBLAS error 7 CUBLAS_STATUS_INVALID_VALUE")
		b, err := Open(o) // the second call is not
		require.NoError(t, err)
		require.NotNil(t, b.cublas)
		require.NoError(t, b.Close())
	}
	return cublasScenario{name: "fails-" + call, env: []string{"GNN_CUDA_FAIL=" + call + ":1:7"}, run: run}
}

var cublasScenarios = []cublasScenario{
	{name: "conforms", env: []string{"GNN_CUDA_ORDER=lazy"}, run: conforms(kerneltest.Run)},
	{name: "conforms-aligned", env: []string{"GNN_CUDA_ORDER=reverse"}, run: conforms(kerneltest.RunAligned)},
	failing("cublasCreate"), failing("cublasSetStream"), failing("cublasSetWorkspace"), failing("cublasSetMathMode"),
	failing("cublasSetAtomicsMode"),

	// By default our own kernels stand in for a cuBLAS that does not start.
	{name: "falls-back", env: []string{"GNN_CUDA_FAIL=cublasCreate:1+:1"}, run: func(t *testing.T, o Options) {
		o.Products = ""
		b, err := Open(o)
		require.NoError(t, err)
		require.Equal(t, "cuda", b.Name())
		require.Len(t, product(b), 6)
		require.Zero(t, productsIn(t, o, cublasDefaultMath))
		require.NoError(t, b.Close())
		info, err := Look(o)
		require.NoError(t, err)
		require.Equal(t, "kernels of gnnstore; cuBLAS is not used: "+filepath.Join(o.CublasFolder, "libcublas.so.12")+
			": cublasCreate: cuBLAS error 1 CUBLAS_STATUS_NOT_INITIALIZED", info.Products)
	}},

	// A product that is refused is an error of the device.
	{name: "fails-cublasSgemm", env: []string{"GNN_CUDA_FAIL=cublasSgemm:2:13"}, run: func(t *testing.T, o Options) {
		b, err := Open(o)
		require.NoError(t, err)
		product(b)
		err = func() (err error) {
			defer kernels.RecoverMemory(&err)
			product(b)
			return nil
		}()
		var device *kernels.DeviceError
		require.ErrorAs(t, err, &device)
		require.EqualError(t, err,
			"gnnstore host device: matmul_nn: cublasSgemm: cuBLAS error 13 CUBLAS_STATUS_EXECUTION_FAILED")
		require.NoError(t, b.Close())
	}},

	// A product is refused whose bits might differ from run to run.
	{name: "stream-set-last", says: "a product without a workspace of the caller", run: func(t *testing.T, o Options) {
		b, err := Open(o)
		require.NoError(t, err)
		require.NoError(t, b.gpu.Do(func(*driver.Calls) error {
			return b.cublas.call("cublasSetStream_v2", b.cublas.handle, uintptr(b.compute))
		}))
		require.Panics(t, func() { product(b) })
		require.NoError(t, b.gpu.Do(func(*driver.Calls) error { return b.cublas.set(b.compute, b.workspace, false) }))
		product(b)
		require.NoError(t, b.Close())
	}},
	{name: "atomics", says: "a product with atomics allowed", run: func(t *testing.T, o Options) {
		b, err := Open(o)
		require.NoError(t, err)
		require.NoError(t, b.gpu.Do(func(*driver.Calls) error {
			return b.cublas.call("cublasSetAtomicsMode", b.cublas.handle, 1)
		}))
		require.Panics(t, func() { product(b) })
		require.NoError(t, b.Close())
	}},

	// It is found by folder or by the linker, in the newest version that works. A file that is no
	// library does not keep an older version from being used.
	{name: "found", run: func(t *testing.T, o Options) {
		info, err := Look(o)
		require.NoError(t, err)
		file := filepath.Join(o.CublasFolder, "libcublas.so.12")
		require.Equal(t, "cuBLAS 12.9.1 ("+file+")", info.Products)

		folder := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "libcublas.so.13"), []byte("no library"), 0o666))
		other := o
		other.CublasFolder = folder
		_, err = Open(other)
		require.ErrorContains(t, err, "libcublas.so.13")
		_, err = Look(other)
		require.ErrorContains(t, err, "libcublas.so.13")
		require.NoError(t, os.Symlink(file, filepath.Join(folder, "libcublas.so.12")))
		b, err := Open(other)
		require.NoError(t, err)
		require.NotNil(t, b.cublas)
		require.NoError(t, b.Close())

		empty := t.TempDir()
		other.CublasFolder = empty
		_, err = Open(other)
		require.EqualError(t, err, "cuBLAS: no libcublas.so.13, .12, .11 is in "+empty)
		require.NoError(t, os.Symlink(o.Library, filepath.Join(empty, "libcublas.so.11")))
		_, err = Open(other)
		none := "cuBLAS: " + filepath.Join(empty, "libcublas.so.11") + " has no function cublasGetProperty"
		require.EqualError(t, err, none)
		// And what is below it.
		require.NoError(t, os.WriteFile(filepath.Join(empty, "libcublasLt.so.11"), []byte("no library"), 0o666))
		_, err = Open(other)
		require.ErrorContains(t, err, "libcublasLt.so.11")
	}},

	// Without cuBLAS our own kernels compute, and nothing is said of an error.
	{name: "own", run: func(t *testing.T, o Options) {
		o.Products = OwnProducts
		b, err := Open(o)
		require.NoError(t, err)
		product(b)
		require.Equal(t, "cuda", b.Name())
		require.Zero(t, productsIn(t, o, cublasDefaultMath))
		require.NoError(t, b.Close())
		info, err := Look(o)
		require.NoError(t, err)
		require.Equal(t, "kernels of gnnstore; cuBLAS is not used: it is switched off", info.Products)
		o.TF32 = true
		_, err = Open(o)
		require.ErrorIs(t, err, kernels.ErrNoTF32)
		o.Products, o.CublasFolder = "", t.TempDir()
		_, err = Open(o)
		require.ErrorIs(t, err, kernels.ErrNoTF32)
		require.ErrorContains(t, err, "no libcublas.so.13, .12, .11 is in ")
		o.Products = CublasProducts
		_, err = Open(o)
		require.ErrorIs(t, err, kernels.ErrNoTF32)
		o.Products = "cuBLAS"
		_, err = Open(o)
		require.EqualError(t, err, "products by cuBLAS: there are own and cublas")
		PlaceCublas(CublasOff)
		require.Equal(t, Options{Products: OwnProducts}, placed())
		PlaceCublas("/somewhere")
		require.Equal(t, Options{Products: CublasProducts, CublasFolder: "/somewhere"}, placed())
		PlaceCublas("")
		require.Equal(t, Options{}, placed())
	}},

	// TF32 rounds what is multiplied, and only where it is asked for.
	{name: "tf32", run: func(t *testing.T, o Options) {
		results := map[bool][]float32{}
		for range 2 {
			for _, tf32 := range []bool{false, true} {
				o.TF32 = tf32
				b, err := Open(o)
				require.NoError(t, err)
				held := b.Bytes().Device
				require.GreaterOrEqual(t, held, int64(workspaceBytes))
				got, launches := product(b), b.Counts().Launches
				if results[tf32] != nil {
					require.Equal(t, results[tf32], got) // the same bits each time
				}
				results[tf32] = got
				require.Equal(t, held, b.Bytes().Device)
				x := kernels.NewTensor(b, kernels.F32, 3, 3)
				before := b.Counts().Launches
				b.MatMul(x, x, x, false, false, false)
				require.Equal(t, before+1, b.Counts().Launches, launches)
				b.Free(x.Buf)
				require.NoError(t, b.Close())
			}
		}
		require.EqualValues(t, 4, productsIn(t, o, cublasDefaultMath))
		require.EqualValues(t, 4, productsIn(t, o, cublasTF32Math))
		require.NotEqual(t, results[false], results[true])
		for i, want := range results[false] {
			require.InEpsilon(t, want, results[true][i], 1e-3)
		}
	}},
}

// product multiplies two small matrices.
func product(b *Backend) []float32 {
	of := func(rows, cols int) kernels.Tensor { return kernels.NewTensor(b, kernels.F32, rows, cols) }
	dst, x, y := of(2, 3), of(2, 5), of(5, 3)
	defer func() {
		for _, t := range []kernels.Tensor{dst, x, y} {
			b.Free(t.Buf)
		}
	}()
	values := make([]float32, 15)
	for i := range values {
		values[i] = float32(math.Sqrt(float64(i + 2)))
	}
	b.UploadF32(x, values[:10])
	b.UploadF32(y, values)
	b.MatMul(dst, x, y, false, false, false)
	got := make([]float32, 6)
	b.DownloadF32(got, dst)
	return got
}

// productsIn returns how many products the library has been asked for in a math mode.
func productsIn(t *testing.T, o Options, mode uintptr) int32 {
	l, err := driver.OpenLibrary(filepath.Join(o.CublasFolder, "libcublas.so.12"))
	require.NoError(t, err)
	s, err := l.Symbol("gnn_cublas_products")
	require.NoError(t, err)
	return s.Call(mode)
}

// TestCublas: products by cuBLAS conform, over a driver and a cuBLAS of the host.
func TestCublas(t *testing.T) {
	t.Parallel()
	folder := os.Getenv(cublasFolder)
	child := folder != ""
	if !child {
		folder = t.TempDir()
		err := errors.Join(clib.BuildDriver(folder), clib.BuildCublas(folder))
		if errors.Is(err, clib.ErrNoCompiler) {
			t.Skip(err)
		}
		require.NoError(t, err)
	}
	for _, s := range cublasScenarios {
		t.Run(s.name, func(t *testing.T) {
			if child {
				library := filepath.Join(folder, driver.DefaultLibrary)
				s.run(t, Options{Library: library, Products: CublasProducts, CublasFolder: folder})
				return
			}
			start := exec.Command(os.Args[0], "-test.v", "-test.run", "^TestCublas$/^"+s.name+"$")
			start.Env = append(os.Environ(), append(s.env, cublasFolder+"="+folder)...)
			out, err := start.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "--- PASS: TestCublas/"+s.name)
			require.Contains(t, string(out), s.says)
			if s.says == "" {
				require.NotContains(t, string(out), "of the host:")
			}
		})
	}
}

// viaKernels is a library whose products our own kernels compute.
type viaKernels struct{ b *Backend }

func (v viaKernels) multiply(dst, x, y operand, m, n, k int, transX, transY, adds bool) error {
	flags := 0
	if adds {
		flags = addsTo
	}
	v.b.ownProduct(dst, x, y, operand{}, m, n, k, transX, transY, false, flags)
	return nil
}

// checkFinish checks what an Affine does behind the products of a library.
func checkFinish(t *testing.T, b *Backend) {
	b.library = viaKernels{b}
	defer func() { b.library = nil }()
	const cols, from, most = 8, 4, 64 * fewTiles / 2
	values := make([]float32, most*cols)
	for i := range values {
		values[i] = float32(i*i%17) - 8
	}
	values[5] = float32(math.NaN())
	for kind := range 9 {
		biased, relu, terms, rows := kind&1 != 0, kind&2 != 0, 1+kind>>2, 9
		if kind == 8 { // our own kernels finish
			biased, relu, terms, rows = true, true, 2, most
		}
		require.Equal(t, kind == 8, b.finishes(kernels.Tensor{Rows: rows, Cols: cols}, from))
		var got [2][]float32
		for i, be := range []kernels.Backend{b, kernels.NewReference()} {
			make := func(rows, cols int) kernels.Tensor {
				x := kernels.NewTensor(be, kernels.F32, rows, cols)
				be.UploadF32(x, values[:x.Len()])
				return x
			}
			dst, row := make(rows, cols), kernels.Tensor{}
			if biased {
				row = make(1, cols)
			}
			var all []kernels.Term
			for range terms {
				all = append(all, kernels.Term{X: make(rows, from), W: make(cols, from)})
			}
			be.Affine(dst, row, relu, all...)
			got[i] = append([]float32(nil), values[:dst.Len()]...)
			be.DownloadF32(got[i], dst)
		}
		requireSame(t, got[1], got[0], fmt.Sprintf("bias %v, ReLU %v, %d terms", biased, relu, terms))
	}
}

// requireSame compares small integers, and takes a NaN as equal to another.
func requireSame(t *testing.T, want, got []float32, note string) {
	for i, w := range want {
		require.True(t, got[i] == w || w != w && got[i] != got[i], "%s: element %d is %v, want %v", note, i, got[i], w)
	}
}

// TestCublasWords: what cuBLAS reads and writes fits the memory that is mapped for it.
func TestCublasWords(t *testing.T) {
	require.LessOrEqual(t, int(unsafe.Sizeof(cublasWords{})), os.Getpagesize())
	require.ErrorContains(t, &CublasError{"cublasSgemm", 99}, "cublasSgemm: cuBLAS error 99")
	_, err := loadCublas("", "no-such-version")
	require.ErrorIs(t, err, os.ErrNotExist)
}
