//go:build cuda && linux

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// stopwatch times work on the compute stream by events.
type stopwatch struct {
	b          *Backend
	begin, end driver.Event
}

func newStopwatch(t testing.TB, b *Backend) *stopwatch {
	w := &stopwatch{b: b}
	b.do("test", func(c *driver.Calls) (err error) {
		if w.begin, err = c.EventCreate(0); err == nil {
			w.end, err = c.EventCreate(0)
		}
		return err
	})
	t.Cleanup(func() {
		b.do("test", func(c *driver.Calls) error {
			if err := c.EventDestroy(w.begin); err != nil {
				return err
			}
			return c.EventDestroy(w.end)
		})
	})
	return w
}

// once returns the milliseconds that work takes on the device.
func (w *stopwatch) once(work func()) float64 {
	var took float32
	w.b.do("test", func(c *driver.Calls) error { return c.EventRecord(w.begin, w.b.compute) })
	work()
	w.b.do("test", func(c *driver.Calls) (err error) {
		if err := c.EventRecord(w.end, w.b.compute); err != nil {
			return err
		}
		if err := c.EventSynchronize(w.end); err != nil {
			return err
		}
		took, err = c.EventElapsedTime(w.begin, w.end)
		return err
	})
	return max(float64(took), 1e-6)
}

// best returns the least milliseconds of five runs of a call, after one to warm up.
func (w *stopwatch) best(call func(c *driver.Calls) error) float64 {
	work := func() { w.b.do("test", call) }
	w.once(work)
	least := math.Inf(1)
	for range 5 {
		least = min(least, w.once(work))
	}
	return least
}

// median returns the milliseconds of one run of an operation: ten are timed together.
func (w *stopwatch) median(operation func()) float64 {
	runs := sized(10, 1)
	work := func() {
		for range runs {
			operation()
		}
		w.b.settleAll()
	}
	w.once(work)
	times := make([]float64, sized(11, 1))
	for i := range times {
		times[i] = w.once(work)
	}
	slices.Sort(times)
	return times[len(times)/2] / float64(runs)
}

// rate returns GB/s.
func rate(bytes int, milliseconds float64) float64 { return float64(bytes) / milliseconds / 1e6 }

// TestGPUSpeed prints the rates of a step's kernels. The sizes belong to a batch of 1,000 seeds at
// fanout 15, 10, 5.
func TestGPUSpeed(t *testing.T) {
	b := openGPU(t, Options{})
	s := &speed{b: b, watch: newStopwatch(t, b), rng: rand.New(rand.NewPCG(1, 2))}
	s.copies()
	s.uploads()
	inputs, rows := sized(500_000, 500), sized(130_000, 130)
	s.gather(inputs, 128)
	s.mean("mean_f16", kernels.F16, rows, 5, inputs, 128)
	s.mean("mean_f32", kernels.F32, sized(14_000, 14), 10, rows, 256)
	s.adam(sized(10_000_000, 10_000))
	s.gradient(sized(127_687, 300), sized(13_890, 30), 10, 256)
	s.products(t)
	s.affines(t)
}

// speed times operations of a backend.
type speed struct {
	b     *Backend
	watch *stopwatch
	rng   *rand.Rand
	copy  float64 // GB/s of a copy on the device, read and written
}

// tensor returns rows of normal numbers.
func (s *speed) tensor(typ kernels.DType, rows, cols int) kernels.Tensor {
	x := kernels.NewTensor(s.b, typ, rows, cols)
	switch typ {
	case kernels.F32:
		values := make([]float32, x.Len())
		for i := range values {
			values[i] = float32(s.rng.NormFloat64())
		}
		s.b.UploadF32(x, values)
	case kernels.F16:
		s.b.UploadHalf(x, slices.Repeat([]uint16{0x3c00, 0x3a66}, (x.Len()+1)/2)[:x.Len()]) // 1.0 and 0.8
	}
	return x
}

// ids returns n random numbers below limit.
func (s *speed) ids(n, limit int) kernels.Tensor {
	values := make([]uint32, n)
	for i := range values {
		values[i] = s.rng.Uint32N(uint32(limit))
	}
	return s.numbers(values)
}

func (s *speed) numbers(values []uint32) kernels.Tensor {
	x := kernels.NewTensor(s.b, kernels.U32, len(values), 1)
	s.b.UploadU32(x, values)
	return x
}

// show prints the rate of an operation that moves so many bytes, and its share of a copy's.
func (s *speed) show(name string, bytes int, took float64) {
	fmt.Printf("%s: %.4f ms, %.0f GB/s\n", name, took, rate(bytes, took))
	figure(name, 100*rate(bytes, took)/s.copy, "%")
}

// copies times a copy on the device.
func (s *speed) copies() {
	bytes := sized(1<<30, 1<<20)
	from, to := s.tensor(kernels.U32, bytes/4, 1), s.tensor(kernels.U32, bytes/4, 1)
	defer kernels.FreeTensors(s.b, from, to)
	x, y := s.b.u32("test", "from", from), s.b.u32("test", "to", to)
	s.copy = rate(2*bytes, s.watch.best(func(c *driver.Calls) error {
		return c.MemcpyDtoDAsync(y.at, x.at, uint64(bytes), s.b.compute)
	}))
	figure("copy", s.copy, "GB/s")
}

// uploads times what a pipeline does: memory that Stage lends goes up, piece after piece. Two are
// under way at a time, since the backend takes new memory where all it has is in use.
func (s *speed) uploads() {
	x := s.tensor(kernels.F32, sized(16<<20, 16<<10), 1)
	defer kernels.FreeTensors(s.b, x)
	pair := func() {
		for range 2 {
			_, send := s.b.Stage(x)
			send(true)
		}
		s.b.do("test", func(c *driver.Calls) error { return c.StreamSynchronize(s.b.copies) })
	}
	pair() // to have its slots
	const pairs = 5
	start := time.Now()
	for range pairs {
		pair()
	}
	figure("staged", rate(pairs*2*4*x.Len(), time.Since(start).Seconds()*1e3), "GB/s")
}

// gather times rows of halves that are gathered and converted.
func (s *speed) gather(rows, cols int) {
	table, dst, ids := s.tensor(kernels.F16, rows, cols), s.tensor(kernels.F32, rows, cols), s.ids(rows, rows)
	defer kernels.FreeTensors(s.b, table, dst, ids)
	s.show("gather", rows*(6*cols+4), s.watch.median(func() { s.b.GatherRows(dst, table, ids) }))
}

// mean times the mean of lists of fanout neighbours.
func (s *speed) mean(name string, typ kernels.DType, rows, fanout, sources, cols int) {
	offsets := make([]uint32, rows+1)
	for i := range offsets {
		offsets[i] = uint32(i * fanout)
	}
	start := s.numbers(offsets)
	list := kernels.Adjacency{
		Start: start.Slice(0, rows), End: start.Slice(1, rows+1), Nbr: s.ids(rows*fanout, sources),
	}
	src, dst := s.tensor(typ, sources, cols), s.tensor(kernels.F32, rows, cols)
	defer kernels.FreeTensors(s.b, start, list.Nbr, src, dst)
	bytes := rows * (fanout*(cols*typ.Size()+4) + 4*cols + 8)
	s.show(name, bytes, s.watch.median(func() { s.b.NeighborMean(dst, src, list) }))
}

// gradient times the operations on the gradient of a hidden layer of GraphSAGE that come before its
// products, with one launch (gradient_NAME) and with a launch for each operation
// (gradient_NAME_apart). mask is NeighborMeanGrad, ReLUMask and ColumnSumGrad; norm has Dropout and
// LayerNormGrad too.
func (s *speed) gradient(rows, dsts, fanout, cols int) {
	nbr, offsets := make([]uint32, dsts*fanout), make([]uint32, dsts+1)
	revStart, revDst := make([]uint32, rows+1), make([]uint32, dsts*fanout)
	for i := range nbr {
		nbr[i] = s.rng.Uint32N(uint32(rows))
		revStart[nbr[i]+1]++
	}
	for i := range dsts {
		offsets[i+1] = uint32((i + 1) * fanout)
	}
	for u := range rows {
		revStart[u+1] += revStart[u]
	}
	next := slices.Clone(revStart)
	for i, u := range nbr {
		revDst[next[u]] = uint32(i / fanout)
		next[u]++
	}
	start := s.numbers(offsets)
	list := kernels.Adjacency{
		Start: start.Slice(0, dsts), End: start.Slice(1, dsts+1), Nbr: s.numbers(nbr),
		RevStart: s.numbers(revStart), RevDst: s.numbers(revDst),
	}
	matrix := func(rows int) kernels.Tensor { return s.tensor(kernels.F32, rows, cols) }
	d, ddst, y, x, dx := matrix(rows), matrix(dsts), matrix(rows), matrix(rows), matrix(rows)
	gain, dgain, dbias, drow := matrix(1), matrix(1), matrix(1), matrix(1)
	stats, ids := s.tensor(kernels.F32, rows, 2), s.ids(rows, rows)
	defer kernels.FreeTensors(s.b, start, list.Nbr, list.RevStart, list.RevDst, d, ddst, y, x, dx, gain, dgain,
		dbias, drow, stats, ids)
	mean := func() { s.b.Fill(d, 0); s.b.NeighborMeanGrad(d, ddst, list, d.Rows) }
	mask := func() { s.b.ReLUMask(d, y) }
	drop := func() { s.b.Dropout(d, d, ids, 7, 0.5) }
	norm := func() { s.b.Fill(dx, 0); s.b.LayerNormGrad(dx, dgain, dbias, d, x, stats, gain, false) }
	sum := func(d kernels.Tensor) func() { return func() { s.b.ColumnSumGrad(drow, d) } }
	lists := 4 * (len(nbr) + 2*len(revDst) + rows)
	for _, c := range []struct {
		name       string
		bytes      int // read and written, if memory is passed once
		operations []func()
	}{
		{"mask", 4*cols*(2*rows+dsts) + lists, []func(){mean, mask, sum(d)}},
		{"norm", 4*cols*(4*rows+dsts) + lists, []func(){mean, drop, mask, norm, sum(dx)}},
	} {
		for suffix, between := range map[string]func(){"": func() {}, "_apart": s.b.settleAll} {
			took := s.watch.median(func() {
				for _, operation := range c.operations {
					operation()
					between()
				}
			})
			fmt.Printf("gradient_%s%s: %.0f GB/s of one pass\n", c.name, suffix, rate(c.bytes, took))
			figure("gradient_"+c.name+suffix, 1e3*took, "µs")
		}
	}
}

// adam times an update of n parameters.
func (s *speed) adam(n int) {
	p := kernels.AdamParam{
		Value: s.tensor(kernels.F32, n, 1), Grad: s.tensor(kernels.F32, n, 1),
		M: kernels.NewTensor(s.b, kernels.F32, n, 1), V: kernels.NewTensor(s.b, kernels.F32, n, 1),
	}
	defer kernels.FreeTensors(s.b, p.Value, p.Grad, p.M, p.V)
	step := kernels.AdamStep{LR: 1e-3, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Correct1: 0.5, Correct2: 0.5}
	s.show("adam", 7*4*n, s.watch.median(func() { s.b.Adam([]kernels.AdamParam{p}, 1, step, kernels.Guard{}) }))
}

// products times N×256×256 by our kernels, and by cuBLAS in float32 where it is installed.
func (s *speed) products(t *testing.T) {
	library, err := openRival(s.b)
	if err != nil {
		fmt.Printf("cuBLAS is not timed: %v\n", err)
	}
	for _, m := range []int{sized(130_000, 130), sized(14_000, 70), sized(1000, 33)} {
		const k = 256
		x, w := s.tensor(kernels.F32, m, k), s.tensor(kernels.F32, k, k)
		ours, theirs := kernels.NewTensor(s.b, kernels.F32, m, k), kernels.NewTensor(s.b, kernels.F32, m, k)
		at := func(x kernels.Tensor) operand { return s.b.f32("test", "x", x) }
		flops := 2 * float64(m) * k * k
		took := s.watch.median(func() {
			s.b.ownProduct(at(ours), at(x), at(w), operand{}, m, k, k, false, true, true, 0)
		})
		figure(fmt.Sprintf("product_%d", m), flops/took/1e9, "TFLOP/s")
		if library != nil {
			rival := s.watch.median(func() { library.multiply(at(theirs), at(x), at(w), m, k, k) })
			figure(fmt.Sprintf("cublas_%d", m), flops/rival/1e9, "TFLOP/s")
			figure(fmt.Sprintf("product_%d_of_cublas", m), 100*rival/took, "%")
			s.near(t, theirs, ours, k, fmt.Sprintf("%d × %d × %d", m, k, k))
		}
		kernels.FreeTensors(s.b, x, w, ours, theirs)
	}
	if library != nil {
		require.NoError(t, library.close())
	}
}

// near checks that ours is close to theirs, by cuBLAS. Each element is a sum of so many terms.
func (s *speed) near(t *testing.T, theirs, ours kernels.Tensor, terms int, note string) {
	got, want := make([]float32, ours.Len()), make([]float32, ours.Len())
	s.b.DownloadF32(got, ours)
	s.b.DownloadF32(want, theirs)
	for i := range got {
		off := math.Abs(float64(got[i] - want[i]))
		if !(off <= 4e-7*float64(terms)*(1+math.Abs(float64(want[i])))) {
			t.Fatalf("%s: element %d is %v, and %v by cuBLAS", note, i, got[i], want[i])
		}
	}
}

// affines times the Affines of a step of GraphSAGE, with two terms, bias and ReLU, in each form:
// affine_pair is one launch of our own kernels; affine_finish is cuBLAS, then our own kernel for
// the second term; affine_library is cuBLAS twice, then add_row_relu. affine is the one that Affine
// chooses.
func (s *speed) affines(t *testing.T) {
	for _, c := range []struct{ m, n, k int }{
		{sized(127_687, 200), 256, 128}, {sized(13_890, 100), 256, 256}, {sized(1000, 33), 172, 256},
	} {
		var terms []kernels.Term
		for range 2 {
			terms = append(terms, kernels.Term{X: s.tensor(kernels.F32, c.m, c.k), W: s.tensor(kernels.F32, c.n, c.k)})
		}
		bias, dst := s.tensor(kernels.F32, 1, c.n), kernels.NewTensor(s.b, kernels.F32, c.m, c.n)
		want := kernels.NewTensor(s.b, kernels.F32, c.m, c.n)
		at := func(x kernels.Tensor) operand { return s.b.f32("test", "x", x) }
		type computes func(dst, x, y, bias operand, m, n, k int, transX, transY, fits bool, flags int)
		by := func(first, second computes) func() {
			return func() {
				x, w := at(terms[0].X), at(terms[0].W)
				first(at(dst), x, w, operand{}, c.m, c.n, c.k, false, true, true, 0)
				x, w = at(terms[1].X), at(terms[1].W)
				second(at(dst), x, w, at(bias), c.m, c.n, c.k, false, true, true, addsTo|withMax)
			}
		}
		type form struct {
			name string
			run  func()
		}
		forms := []form{
			{"affine", func() { s.b.Affine(dst, bias, true, terms...) }},
			{"affine_pair", func() { require.True(t, s.b.pair(at(dst), at(bias), true, dst, terms)) }},
		}
		if s.b.library != nil {
			forms = append(forms,
				form{"affine_finish", by(s.b.product, s.b.ownProduct)},
				form{"affine_library", by(s.b.product, s.b.product)})
			by(s.b.product, s.b.product)()
			s.b.Convert(want, dst)
		}
		for _, f := range forms {
			took := s.watch.median(f.run)
			figure(fmt.Sprintf("%s_%d", f.name, c.m), 1e3*took, "µs")
			if s.b.library != nil {
				s.near(t, want, dst, 2*c.k, f.name)
			}
		}
		kernels.FreeTensors(s.b, terms[0].X, terms[0].W, terms[1].X, terms[1].W, bias, dst, want)
	}
}

// rival is cuBLAS, to compare products with.
type rival struct {
	b             *Backend
	handle        uintptr
	sgemm, delete driver.Symbol
	numbers       *kernels.HostBuf // 1 and 0
}

// openRival opens cuBLAS in a folder of LD_LIBRARY_PATH, or where the dynamic linker finds it.
func openRival(b *Backend) (r *rival, err error) {
	var library *driver.Library
	for _, major := range []string{"13", "12", "11"} {
		if _, err = driver.OpenLibrary("libcublasLt.so." + major); err == nil {
			library, err = driver.OpenLibrary("libcublas.so." + major)
		}
		if err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	r = &rival{b: b}
	var create, setStream driver.Symbol
	for name, to := range map[string]*driver.Symbol{
		"cublasCreate_v2": &create, "cublasSetStream_v2": &setStream, "cublasSgemm_v2": &r.sgemm,
		"cublasDestroy_v2": &r.delete,
	} {
		if *to, err = library.Symbol(name); err != nil {
			return nil, err
		}
	}
	if r.numbers, err = kernels.NewHostBuf(os.Getpagesize()); err != nil {
		return nil, err
	}
	memory := r.numbers.Bytes()
	*(*float32)(unsafe.Pointer(&memory[0])) = 1
	return r, b.gpu.Do(func(*driver.Calls) error {
		if code := create.Call(uintptr(unsafe.Pointer(&memory[16]))); code != 0 {
			return fmt.Errorf("cublasCreate: status %d", code)
		}
		r.handle = *(*uintptr)(unsafe.Pointer(&memory[16]))
		if code := setStream.Call(r.handle, uintptr(b.compute)); code != 0 {
			return fmt.Errorf("cublasSetStream: status %d", code)
		}
		return nil
	})
}

// multiply sets c (m × n) to a (m × k) times the transpose of w (n × k). cuBLAS takes matrices by
// columns, so it computes the transpose of c.
func (r *rival) multiply(c, a, w operand, m, n, k int) {
	memory := r.numbers.Bytes()
	one, zero := uintptr(unsafe.Pointer(&memory[0])), uintptr(unsafe.Pointer(&memory[4]))
	r.b.do("cublasSgemm", func(*driver.Calls) error {
		code := r.sgemm.Call(r.handle, 1, 0, uintptr(n), uintptr(m), uintptr(k), one, uintptr(w.at), uintptr(k),
			uintptr(a.at), uintptr(k), zero, uintptr(c.at), uintptr(n))
		if code != 0 {
			return fmt.Errorf("cublasSgemm: status %d", code)
		}
		return nil
	})
}

func (r *rival) close() error {
	err := r.b.gpu.Do(func(*driver.Calls) error {
		if code := r.delete.Call(r.handle); code != 0 {
			return fmt.Errorf("cublasDestroy: status %d", code)
		}
		return nil
	})
	r.numbers.Close()
	return err
}
