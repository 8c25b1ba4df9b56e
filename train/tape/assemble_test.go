package tape

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// TestAssembleGradient compares the gradients of a loss of rows put together, including rows of
// slots, with finite differences, in float64: where nothing else reads the computed rows, where
// something does, and where there are none.
func TestAssembleGradient(t *testing.T) {
	const cols, stride = 4, 7
	be, rng := kernels.NewReference(), rand.New(rand.NewPCG(1, 2))
	tensor := func(rows, cols int) kernels.Tensor {
		return kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
	}
	uints := func(values ...uint32) kernels.Tensor {
		u := kernels.Tensor{Buf: be.Alloc(kernels.U32, len(values)), Type: kernels.U32, Rows: len(values), Cols: 1}
		be.UploadU32(u, values)
		return u
	}
	read := func(x kernels.Tensor) []float64 {
		s := make([]float64, x.Len())
		be.DownloadF64(s, x)
		return s
	}
	const slot = kernels.InSlot
	slots := kernels.Tensor{Buf: be.Alloc(kernels.F16, 3*stride), Type: kernels.F16, Rows: 3, Cols: stride}
	bits := make([]uint16, 3*stride)
	for i := range bits {
		bits[i] = uint16(0x3800 + rng.IntN(0x800)) // 0.5 to 2
	}
	be.UploadHalf(slots, bits)
	wide := tensor(3, stride)
	be.Convert(wide, slots)
	tape := New(be)
	defer tape.Close()
	for _, c := range []struct {
		at, back []uint32
		readToo  bool // another operation adds to the gradient of the computed rows
	}{
		{at: []uint32{2, slot + 1, 0, slot, 1, slot + 1}, back: []uint32{2, 4, 0}},
		{at: []uint32{2, slot + 1, 0, slot, 1, slot + 2}, back: []uint32{2, 4, 0}, readToo: true},
		{at: []uint32{1, 0}, back: []uint32{1, 0}},
		{at: []uint32{slot + 2, slot}},
	} {
		rows := len(c.back)
		x, grad, labels := tensor(rows, cols), tensor(rows, cols), make([]uint32, len(c.at))
		point := make([]float64, rows*cols)
		for i := range point {
			point[i] = rng.NormFloat64()
		}
		for i := range labels {
			labels[i] = uint32(i % cols)
		}
		at, back, label := uints(c.at...), uints(c.back...), uints(labels...)
		some := uints(labels[:rows]...)
		var y *Var
		loss := func(record bool) (sum float64) {
			tape.Reset(record)
			be.UploadF64(x, point)
			v := tape.Leaf(x)
			if rows > 0 {
				v = tape.Affine(nil, Term{X: NewParam(x, grad), W: NewConstant(identity(be, cols))}) // its gradient is in memory of the tape
			}
			y = tape.Assemble(v, slots, at, back)
			for _, l := range read(tape.CrossEntropy(y, label, 1)) {
				sum += l
			}
			if c.readToo {
				for _, l := range read(tape.CrossEntropy(v, some, 1)) {
					sum += l
				}
			}
			return sum
		}
		be.Fill(grad, 0)
		loss(true)
		tape.Backward()
		got, value, dy := read(grad), read(y.Value), read(y.Grad)
		for i, from := range c.at {
			want := read(wide)
			if n := int(from); n < slot {
				want = point[n*cols:]
			} else {
				want = want[(n-slot)*stride:]
			}
			require.Equal(t, want[:cols], value[i*cols:][:cols], "row %d", i)
		}
		const h = 1e-5
		for i, v := range point {
			point[i] = v + h
			above := loss(false)
			point[i] = v - h
			below := loss(false)
			point[i] = v
			require.InDelta(t, (above-below)/(2*h), got[i], 1e-7, "%+v: element %d", c, i)
		}
		moved := tensor(len(c.at), cols)
		direct := func(i int, v float64) (sum float64) {
			changed := append([]float64{}, value...)
			changed[i] = v
			be.UploadF64(moved, changed)
			tape.Reset(false)
			for _, l := range read(tape.CrossEntropy(tape.Leaf(moved), label, 1)) {
				sum += l
			}
			return sum
		}
		for i, v := range value {
			require.InDelta(t, (direct(i, v+h)-direct(i, v-h))/(2*h), dy[i], 1e-7, "%+v: element %d of those put together", c, i)
		}
	}
	tape.Reset(false)
	require.False(t, tape.Assemble(tape.Leaf(tensor(1, cols)), slots, uints(0), uints(0)).needsGrad)
	require.Panics(t, func() { tape.Assemble(tape.Leaf(tensor(2, cols)), slots, uints(0, 1), uints(0)) })
}

func identity(be *kernels.Reference, n int) kernels.Tensor {
	x, values := kernels.Tensor{Buf: be.Alloc(kernels.F32, n*n), Rows: n, Cols: n}, make([]float64, n*n)
	for i := range n {
		values[i*n+i] = 1
	}
	be.UploadF64(x, values)
	return x
}

// TestAssembleKeepsItsMemory: once the arena is as large as a step, a step takes no more of it.
func TestAssembleKeepsItsMemory(t *testing.T) {
	be := kernels.NewCPU(kernels.CPUOptions{Threads: 1})
	const rows, cols = 3000, 33
	x := kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
	slots := kernels.Tensor{Buf: be.Alloc(kernels.F16, 10*cols), Type: kernels.F16, Rows: 10, Cols: cols}
	at, back := make([]uint32, 2*rows), make([]uint32, rows)
	for i := range rows {
		at[2*i], at[2*i+1], back[i] = uint32(i), kernels.InSlot+uint32(i%10), uint32(2*i)
	}
	upload := func(v []uint32) kernels.Tensor {
		u := kernels.Tensor{Buf: be.Alloc(kernels.U32, len(v)), Type: kernels.U32, Rows: len(v), Cols: 1}
		be.UploadU32(u, v)
		return u
	}
	places, backs := upload(at), upload(back)
	tape := New(be)
	defer tape.Close()
	step := func() {
		tape.Reset(true)
		v := tape.LearntLeaf(x, cols)
		y := tape.Assemble(v, slots, places, backs)
		be.Fill(tape.grad(y), 1)
		tape.Backward()
	}
	step()
	step()
	bytes := tape.Bytes()
	require.Less(t, testing.AllocsPerRun(5, step), 30.0)
	require.Equal(t, bytes, tape.Bytes())
}
